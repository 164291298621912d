"""The browser tools in a real Chromium, against pages on loopback."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_pages import fill
from browser_world import Prompt, prompt
from helpers import Job, wait_until
from living_processes import lives, processes_below
from scripted_server.fixture import ScriptedServer
from trajectile.configuration.settings import load_settings
from trajectile.errors import PromptError, UserError
from trajectile.sandbox import scratch
from trajectile.tools.browser import finding
from trajectile.tools.browser.session import Session
from trajectile.tools.registry import TOOLSETS, problems
from trajectile.tools.tool import States
from web_site import Site

pytestmark = pytest.mark.browser
TESTS = Path(__file__).parent
Test = Callable[[Prompt], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    if lack := finding.requirement(load_settings({})):
        pytest.skip(lack)
    with Site() as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


class World:
    """One browser for many prompts: `run` gives each test a prompt of its own."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.states = States()

    def run(self, test: Test, **settings: Any) -> None:
        async def within() -> None:
            given = {"web_allow_private": True, **settings}
            async with prompt(self.states, **given) as user:
                await test(user)

        self.runner.run(within())

    def close(self) -> None:
        self.runner.run(self.states.close())
        self.runner.close()


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    others = processes_below(os.getpid())
    made = World()
    yield made
    made.close()
    assert set(processes_below(os.getpid())) <= set(others), "the browser left processes"


def test_a_page_is_opened_read_and_left_again(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        opened = await user.use("navigate", url=site.url())
        assert (opened["url"], opened["title"]) == (site.url(), "Home")
        assert '- heading "Welcome" [level=1] [ref=@e' in opened["snapshot"] and "status" not in opened
        assert (await user.click("To the second page"))["title"] == "Second"
        assert (await user.use("back"))["title"] == "Home"
        assert "Some plain words." in await user.shown(full=True)
        assert (await user.use("back"))["url"] == "about:blank"
        assert "no page to go back to" in await user.refused("back")
        missing = await user.use("navigate", url=site.url("/nowhere"))
        assert missing["status"] == 404 and "nothing here" in missing["snapshot"]
        assert (await user.use("navigate", url=site.url("/redirecting")))["title"] == "Second"

    world.run(test)


def test_a_form_is_filled_in_and_sent(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/form"))
        await user.use("type", ref=await user.name_of("Name"), text="Ada Löve")
        kind = await user.name_of("Kind")
        await user.use("type", ref=kind, text="large")
        assert "the options are small, large" in await user.refused("type", ref=kind, text="huge")
        await user.click("Agree")
        assert "not enabled" in await user.refused("click", ref=await user.name_of("Locked"))
        sent = await user.click("Send")
        assert sent["title"] == "Sent" and "name=Ada+L%C3%B6ve&kind=large&agree=on" in sent["url"]

    world.run(test, browser_timeout=10)


def test_names_of_elements_mean_what_was_shown(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/form"))
        old = await user.name_of("Send")
        await user.use("navigate", url=site.url("/form"))
        assert "not on this page now" in await user.refused("click", ref=old)
        assert await user.name_of("Send") != old
        for wrong in ("@e0", "@e9999", "Send", "", "@e1 "):
            assert "snapshot" in await user.refused("click", ref=wrong), wrong
        await user.use("navigate", url=site.url("/covered"))
        assert "intercepts pointer events" in await user.refused("click", ref=await user.name_of("Below"))

    world.run(test, browser_timeout=10)


def test_an_endless_list_grows_as_it_is_scrolled(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/list"))
        assert "item 61" not in await user.shown(full=True)
        seen = [(await user.use("scroll", direction="down"))["in_view"] for _ in range(4)]
        assert "item 61" in await user.shown(full=True), seen
        assert (await user.use("scroll", direction="up"))["in_view"] != seen[-1]

    world.run(test)


def test_dialogs_are_accepted_and_told(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/dialogs"))
        told = [(await user.click(label))["notes"][0] for label in ("Alert", "Confirm", "Prompt")]
        assert "(alert), accepted: Careful" in told[0] and "(confirm), accepted: Really?" in told[1]
        assert "(prompt), accepted with 'Ada': Your name?" in told[2]
        shown = await user.shown()
        assert all(f'"{label}"' in shown for label in ("alerted", "yes", "Ada"))

    world.run(test)


def test_frames_are_seen_and_used(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/frames"))
        assert (await user.shown()).count('button "Inside"') == 2
        await user.click("Inside")
        shown = await user.shown()
        assert shown.count('button "Inside"') == 1 and shown.count('button "pressed"') == 1
        images = await user.use("get_images")
        assert [image["src"] for image in images["images"]] == [site.url("/inner.png")]

    world.run(test)


def test_a_new_tab_is_followed_and_left(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/popups"))
        opener = await user.name_of("Many")
        opened = await user.click("In a new tab")
        assert opened["title"] == "Second" and opened["notes"] == ["a new tab was opened and is in front now"]
        assert "not in the tab in front" in await user.refused("click", ref=opener)
        closed = await user.use("console", expression="setTimeout(() => window.close(), 50)")
        assert closed["title"] == "Opener" and "a tab was closed" in closed["notes"]
        await user.result("click", ref=opener)
        await asyncio.sleep(1)
        assert len(user.context.own.get(Session).tabs) == 8

    world.run(test)


def test_a_page_that_never_loads_ends_in_time_with_what_is_there(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.shown()
        began = time.monotonic()
        assert "gave no answer within 5.6 s" in await user.refused("navigate", url=site.url("/never"))
        assert time.monotonic() - began < 30
        half = await user.use("navigate", url=site.url("/half"))
        assert "The first half" in half["snapshot"] and "still loading after 5.6 s" in half["notes"][0]
        assert "The first half" in await user.shown()

    world.run(test, browser_timeout=8)


def test_a_page_that_does_not_respond_is_stopped(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/spin"))
        ended = await user.refused("console", expression="while (true);")
        assert "no end within 4 s" in ended and "its running script was ended" in ended
        assert 'button "Spin"' in await user.shown()
        await user.result("click", ref=await user.name_of("Spin"))
        assert (await user.use("navigate", url=site.url()))["title"] == "Home"

    world.run(test, browser_timeout=4)


def test_downloads_go_into_the_sandbox_up_to_a_size(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/downloads"))
        notes = [(await user.click("File"))["notes"], (await user.use("navigate", url=site.url("/file")))["notes"]]
        paths = [note[0].rpartition(" as ")[2] for note in notes]
        assert len(set(paths)) == 2 and all(path.startswith("downloads/") for path in paths)
        assert not any(".." in part for path in paths for part in path.split("/"))
        assert [await user.context.sandbox.read_file(path) for path in paths] == [b"file content"] * 2
        began = time.monotonic()
        [note] = (await user.click("Endless"))["notes"]
        assert "was ended: it has more than 1,000,000 bytes (browser_max_bytes)" in note
        assert time.monotonic() - began < 30

    world.run(test, browser_max_bytes=1_000_000)


def test_the_console_is_read_and_written_to(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/console"))
        messages = (await user.use("console"))["messages"]
        texts = {(message["type"], message["text"]) for message in messages}
        assert ("error", "bad thing") in texts and ("exception", "undefinedFunction is not defined") in texts
        assert any(kind == "log" and text.startswith("hello") for kind, text in texts)
        value = await user.use("console", expression="({words: document.title, n: [1, null]})", clear=True)
        assert json.loads(value["result"]) == {"words": "Console", "n": [1, None]}
        assert (await user.use("console", expression="await Promise.resolve(5)"))["messages"] == []
        assert "nowhere is not defined" in await user.refused("console", expression="nowhere")
        printed = {"document.body": "[object HTMLBodyElement]", "window": "[object Window]"}
        printed |= {"undefined": "undefined", "'a\\ud800b'": '"a\\ud800b"'}
        for expression, text in printed.items():
            assert (await user.use("console", expression=expression))["result"] == text
        assert len((await user.use("console", expression="'x'.repeat(3e7)"))["result"]) < 21_000
        changed = "Array.from = () => ({filter: () => 5}); Array.prototype.map = () => 7; 0"
        await user.use("console", expression=changed)
        for name, arguments in (("get_images", {}), ("scroll", {"direction": "down"})):
            assert "makes no sense" in await user.refused(name, **arguments)

    world.run(test)


def test_keys_go_where_the_cursor_is(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/keys"))
        assert (await user.use("press", key="ArrowDown"))["title"] == "ArrowDown"
        assert 'Unknown key: "Foo"' in await user.refused("press", key="Foo")

    world.run(test)


def test_images_are_listed_once_with_their_size(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url())
        listed = await user.use("get_images")
        image = {"src": site.url("/red.png"), "alt": "a red square", "width": 8, "height": 8}
        assert (listed["count"], listed["images"]) == (1, [image])

    world.run(test)


def test_a_screenshot_is_looked_at_and_kept(world: World, site: Site, server: ScriptedServer) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/form"))
        seen = [await user.use("vision", question="What is it?", annotate=marks) for marks in (False, True)]
        images = [await user.context.sandbox.read_file(each["screenshot_path"]) for each in seen]
        assert all(each["analysis"] for each in seen) and all(image.startswith(b"\x89PNG") for image in images)
        assert images[0] != images[1], "the second has marks"
        assert "trajectile-labels" not in str(await user.use("console", expression="document.body.innerHTML"))
        assert user.context.own.usage.prompt_tokens > 0
        server.control(outage={"kind": "answer", "status": 500, "body": {}})
        assert "vision model" in await user.refused("vision", question="?")
        server.control(outage=None)

    world.run(test, model="scripted", base_url=server.base_url, max_retries=0)


def test_what_happened_on_a_page_is_told_with_its_screenshot(world: World, site: Site, server: ScriptedServer) -> None:
    async def test(user: Prompt) -> None:
        async def later(script: str) -> None:
            await user.use("console", expression=f"setTimeout(() => {script}, 800), 0")
            await asyncio.sleep(1)

        await user.use("navigate", url=site.url("/downloads"))
        await later("alert('Careful')")
        seen = await user.use("vision", question="?")
        assert "accepted: Careful" in seen["notes"][0] and (seen["url"], seen["title"]) == (
            site.url("/downloads"),
            "Downloads",
        )
        server.control(outage={"kind": "answer", "status": 500, "body": {}})
        await later("alert('Again')")
        failed = json.loads(await user.result("vision", question="?"))
        server.control(outage=None)
        assert "vision model" in failed["error"] and "accepted: Again" in failed["notes"][0]
        await later("document.links[1].click()")
        assert "no end within 3 s" in await user.refused("vision", question="?"), "after the screenshot"

    settings = {"model": "scripted", "base_url": server.base_url, "max_retries": 0}
    world.run(test, browser_timeout=3, browser_max_bytes=10**12, **settings)


def test_the_reason_of_a_failure_is_that_of_the_last_connection(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        assert "Connect call failed" in await user.refused("navigate", url=f"http://127.0.0.1:{free_port()}")
        await user.use("navigate", url=site.url())
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as hangs_up:
            port = hangs_up.sockets[0].getsockname()[1]
            said = await user.refused("navigate", url=f"http://127.0.0.1:{port}")
        assert said.startswith("net::ERR_"), said  # which one is a matter of time

    world.run(test)


def test_a_result_keeps_to_the_size_limit(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/long"))
        whole, short = await user.result("snapshot", full=True), await user.result("snapshot")
        assert len(whole.encode()) <= 5000 and "bytes cut" in json.loads(whole)["snapshot"]
        assert "full: true" in json.loads(short)["snapshot"]
        text = json.loads(await user.result("console", expression="'ü\\n'.repeat(100000)"))
        assert "bytes cut" in text["result"]

    world.run(test, output_limit=5000)


REFUSED = [
    ("navigate", {}, "'url' is a required property"),
    ("navigate", {"url": "file:///etc/passwd"}, "not an http or https URL"),
    ("navigate", {"url": "chrome://version"}, "not an http or https URL"),
    ("navigate", {"url": "view-source:http://a/"}, "not an http or https URL"),
    ("navigate", {"url": "nowhere.invalid"}, "cannot be opened: the name of the host is not known"),
    ("navigate", {"url": "http://127.0.0.1:1/"}, "UNSAFE_PORT"),
    ("click", {}, "'ref' is a required property"),
    ("type", {"ref": "@e1"}, "'text' is a required property"),
    ("scroll", {"direction": "left"}, "'left' is not one of"),
    ("press", {}, "'key' is a required property"),
    ("snapshot", {"full": "yes"}, "'yes' is not of type 'boolean'"),
    ("back", {"steps": 2}, "'steps' was unexpected"),
    ("get_images", {"max": 1}, "'max' was unexpected"),
    ("console", {"expression": 5}, "5 is not of type 'string'"),
    ("vision", {}, "'question' is a required property"),
]


@pytest.mark.parametrize(("name", "arguments", "said"), REFUSED)
def test_wrong_calls_are_refused_in_words(world: World, name: str, arguments: dict[str, Any], said: str) -> None:
    async def test(user: Prompt) -> None:
        assert said in await user.refused(name, **arguments)

    world.run(test)


def test_prompts_do_not_see_each_other(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/second"))
        before = await user.use("console", expression="[document.cookie, localStorage.length]")
        assert json.loads(before["result"]) == ["", 0]
        await user.use("console", expression="document.cookie = 'a=1'; localStorage.setItem('a', 1)")

    world.run(test)
    world.run(test)


def test_no_packet_leaves_past_the_gate(world: World, site: Site) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        there = f"127.0.0.1:{server.getsockname()[1]}"
        script = f"""new Promise(async go => {{
          const made = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{there}'}}]}});
          made.createDataChannel('x');
          await made.setLocalDescription();
          setTimeout(go, 1500, 'nothing');
          new WebTransport('https://{there}/').ready.then(() => go('open'), () => 0);
        }})"""

        async def test(user: Prompt) -> None:
            await user.use("navigate", url=site.url())
            assert json.loads((await user.use("console", expression=script))["result"]) == "nothing"

        world.run(test)
        with pytest.raises(BlockingIOError):
            server.recvfrom(4096)


def test_a_crashed_page_or_browser_is_told_and_replaced(world: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        for word, said in (
            ("--type=renderer", "crashed"),
            ("--remote-debugging-pipe", "the browser died"),
            ("run-driver", "the browser died"),
        ):
            await user.use("navigate", url=site.url())
            calling = asyncio.create_task(user.refused("console", expression="new Promise(() => 0)"))
            await asyncio.sleep(0.5)
            found = processes_below(os.getpid(), word)
            assert found
            for process in found:
                process.kill()
            ended = await calling
            assert said in ended and "the next call" in ended, ended
            assert (await user.use("navigate", url=site.url("/second")))["title"] == "Second"

    world.run(test)


@pytest.fixture(scope="module")
def narrow(site: Site) -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_a_page_that_takes_too_much_memory_is_ended(narrow: World, site: Site) -> None:
    async def test(user: Prompt) -> None:
        await user.use("navigate", url=site.url("/hog"))
        said = await user.result("click", ref=await user.name_of("Eat"))
        end = time.monotonic() + 30
        while "crashed, or took more memory than browser_memory" not in said:
            assert time.monotonic() < end, said
            await asyncio.sleep(0.5)
            said = await user.result("snapshot")
        assert (await user.use("navigate", url=site.url()))["title"] == "Home"

    narrow.run(test, browser_memory="150m", browser_contexts=1)


def test_more_prompts_than_places_wait_for_one(narrow: World, site: Site) -> None:
    order: list[str] = []
    settings = {"web_allow_private": True, "browser_memory": "150m", "browser_contexts": 1}

    async def one(number: int) -> None:
        async with prompt(narrow.states, **settings) as user:
            await user.use("navigate", url=site.url("/second"))
            order.append(f"begin {number}")
            await asyncio.sleep(0.3)
            order.append(f"end {number}")

    async def all_at_once() -> None:
        await asyncio.gather(*(one(number) for number in range(3)))

    narrow.runner.run(all_at_once())
    assert [word.split()[0] for word in order] == ["begin", "end"] * 3


def test_a_killed_process_leaves_no_browser_and_its_folder_goes(site: Site, tmp_path: Path) -> None:
    program = f"import asyncio, browser_world; asyncio.run(browser_world.main({site.url('/spin')!r}))"
    environment = os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'scripts'}", "TMPDIR": str(tmp_path)}
    started = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    started.stdout.readline()
    below = processes_below(started.pid)
    assert len(below) > 4
    time.sleep(0.5)
    started.send_signal(signal.SIGKILL)
    started.wait()
    started.stdout.close()
    end = time.monotonic() + 15
    while left := [process for process in below if lives(process)]:
        assert time.monotonic() < end, left
        time.sleep(0.1)
    [folders] = tmp_path.glob("trajectile-browser-*")
    assert scratch.reap(folders) == 1 and list(folders.iterdir()) == []


def test_nothing_inside_is_reached_with_default_settings(site: Site, tmp_path: Path) -> None:
    own_network = ["unshare", "-Urnm"]
    if not shutil.which("unshare") or subprocess.run([*own_network, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no network namespaces to its users (unshare -Urnm)")
    program = [sys.executable, str(TESTS / "browser_network.py"), str(tmp_path)]
    done = subprocess.run([*own_network, *program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reached"] == []
    assert len(found["inside"]) == 10
    for target, result in found["inside"].items():
        assert re.search(r"cannot be opened: .* (are|always) refused", json.loads(result)["error"]), target
    assert found["titles"] == ["public page", "public page"] and "/" in found["public"]
    assert found["tried"].pop("rtc") and set(found["tried"].values()) == {"failed"}
    assert "Not allowed to load local resource: file:///etc/passwd" in found["messages"]
    turned = [message for message in found["messages"] if "FAILED" in message and "outside-first.example" in message]
    assert turned or any("addresses are refused" in result for result in found["changing"]), "the name did not turn"


@pytest.fixture
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:  # tmp_path is too long for Chromium's socket
        yield made


def test_a_browser_elsewhere_is_used_and_its_key_kept(site: Site, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    path = finding.executable(load_settings({})) or pytest.skip("needs a Chromium in PATH")
    options = [f"--remote-debugging-port={port}", f"--user-data-dir={folder}", "--headless", "--no-sandbox"]
    environment = os.environ | {"TMPDIR": folder}
    elsewhere = subprocess.Popen(
        [path, *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    monkeypatch.setenv(finding.KEY_VARIABLE, "key-of-the-browser")
    world = World()

    async def test(user: Prompt) -> None:
        assert (await user.use("navigate", url=site.url()))["title"] == "Home"

    async def fails(user: Prompt) -> None:
        with pytest.raises(PromptError, match="the browser does not start") as caught:
            await user.result("navigate", url=site.url())
        assert "key-of-the-browser" not in str(caught.value) and "***" in str(caught.value)

    try:
        wait_until(lambda: can_connect(port), "the other browser", 30)
        world.run(test, browser_cdp_url=f"http://127.0.0.1:{port}")
        world.close()
        world = World()
        world.run(fails, browser_cdp_url=f"ws://127.0.0.1:{port}/{{key}}")
    finally:
        world.close()
        elsewhere.terminate()
        elsewhere.wait(20)


def can_connect(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


@pytest.mark.parametrize("query", ["apiKey=sk-canary", "x=1&token=sk-canary"])
def test_a_key_in_the_address_of_a_browser_is_refused_and_not_repeated(query: str) -> None:
    with pytest.raises(UserError, match=finding.KEY_VARIABLE) as caught:
        load_settings({"browser_cdp_url": f"wss://browsers.example/?{query}"})
    assert "sk-canary" not in str(caught.value)
    load_settings({"browser_cdp_url": "wss://browsers.example/?apiKey={key}&project=a"})


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(finding.KEY_VARIABLE, raising=False)

    def lack(**settings: Any) -> str:
        return problems({"browser": TOOLSETS["browser"]}, load_settings(settings)).get("browser", "")

    assert "browser_path: /nowhere is no program" in lack(browser_path="/nowhere")
    assert finding.KEY_VARIABLE in lack(browser_cdp_url="wss://a/?apiKey={key}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    assert "playwright install chromium" in lack()
    (tmp_path / "chromium-1").mkdir()
    assert "vision_base_url" in lack(model="local/smollm2-135m") and lack(model="m") == ""


def test_a_driver_that_dies_costs_the_prompts_that_need_it_alone(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright")
    job = Job(tmp_path, server, ["look", "think"], distribution="browser_only", browser_path=sys.executable)
    call = {"name": "browser_snapshot", "arguments": {}}
    job.script(
        {"match": "look", "replies": [{"tool_calls": [call]}]}, {"match": "think", "replies": [{"text": "done"}]}
    )
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/bin/false")
    assert job.here() == 0
    job.release()
    assert [failure.kind for failure in job.failures()] == ["browser_start"] and len(job.rows()) == 1


def test_a_run_with_a_browser_counts_its_calls(site: Site, tmp_path: Path, server: ScriptedServer) -> None:
    calls = [
        ("browser_navigate", {"url": site.url()}),
        ("browser_click", {"ref": "@e4"}),
        ("browser_click", {"ref": "@e999"}),
    ]
    replies = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    job = Job(tmp_path, server, ["look"], distribution="browser_only", web_allow_private=True)
    job.script({"match": "look", "replies": [*replies, {"text": "done"}]})
    assert job.run() == 0, job.said()
    [row] = job.rows()
    counts = {name: (stat.success, stat.failure) for name, stat in row.tool_stats.items() if stat.count}
    assert counts == {"browser_navigate": (1, 0), "browser_click": (1, 1)}
    assert len(row.tool_stats) == 10 and row.end_reason == "finished"
    job.release()
