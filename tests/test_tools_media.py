"""vision_analyze, image_generate and text_to_speech against a scripted server over HTTP, and espeak-ng itself."""

import asyncio
import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers import Job
from scripted_server.fixture import ScriptedServer
from scripted_server.media import describe, png
from tool_contexts import RUN_KEY, tool_context
from trajectile.agent.preflight import check_tool_models
from trajectile.configuration.settings import load_settings
from trajectile.errors import FatalError, UserError
from trajectile.model.settings import ModelSettings
from trajectile.rows import ToolStat, Usage
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.image_gen.drawing import SHAPES, request_of
from trajectile.tools.images import data_url
from trajectile.tools.models import look
from trajectile.tools.registry import TOOLSETS, problems, tools_of
from trajectile.tools.roles import settings_of
from trajectile.tools.tool import is_failure

TOOLS = {tool.name: tool for tool in tools_of(("vision", "image_gen", "tts"), TOOLSETS)}
IMAGE = png("red")
ESPEAK = pytest.mark.skipif(not shutil.which("espeak-ng"), reason="needs espeak-ng")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="module")
def other() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server: ScriptedServer, other: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (server, other):
        each.control(script={}, reset_counters=True)
    for role in ("VISION", "IMAGE", "TTS"):
        monkeypatch.delenv(f"TRAJECTILE_{role}_API_KEY", raising=False)


class Called(NamedTuple):
    """What a call left: its result, the file that it names, what it cost, and all files of the sandbox."""

    result: str
    file: bytes
    usage: Usage

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.result)
        return found


def use(name: str, server: ScriptedServer, folder: Path, *calls: dict[str, Any], **settings: Any) -> Called:
    """Call a tool, several times with several arguments, in a sandbox that holds red.png and text.txt."""

    async def run() -> Called:
        sandbox = LocalSandbox(folder, "none", output_limit=20_000)
        given = {"model": "scripted", "base_url": server.base_url, "max_retries": 0, "tts_engine": "api", **settings}
        context = tool_context(sandbox, **given)
        await sandbox.start()
        try:
            await sandbox.write_file("red.png", IMAGE)
            await sandbox.write_file("text.txt", b"no image")
            results = [await call(TOOLS[name], context, arguments) for arguments in calls]
            last = json.loads(results[-1])
            path = last.get("image") or last.get("file_path")
            file = await sandbox.read_file(path) if path else b""
            assert context.own.usage == context.shared.usage
            return Called(results[-1], file, context.own.usage)
        finally:
            await context.close()
            await context.shared.close()
            await sandbox.close()

    return asyncio.run(run())


def keys_seen(server: ScriptedServer) -> set[str]:
    return {key for keys in server.counters()["authorizations"].values() for key in keys}


def describe_file(image: bytes) -> str:
    return describe(data_url(image, 1 << 20))


def test_an_image_is_looked_at_in_a_file_at_a_url_and_in_a_data_url(server: ScriptedServer, tmp_path: Path) -> None:
    at_url = server.base_url + "/images/red"
    asked = {"question": "What is it?"}
    for place, image in (("red.png", IMAGE), (at_url, IMAGE), (data_url(IMAGE, 10**6), IMAGE)):
        called = use("vision_analyze", server, tmp_path, {"image_url": place} | asked, web_allow_private=True)
        assert called.data == {"success": True, "analysis": describe_file(image)}, place
        assert called.usage.prompt_tokens > 0
    assert server.counters()["prompts"] == {"What is it?": {"calls": 3, "finished": 3}}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("gone.png", "No such file or directory"),
        ("text.txt", "not a PNG, JPEG, GIF or WebP image"),
        ("data:image/png,abc", "not a data URL in base64"),
        ("data:image/png;base64,%%%", "not base64"),
        ("http://127.0.0.1:1/x.png", "local and private addresses are refused"),
        ("http://", "not a URL"),
    ],
)
def test_what_is_no_image_is_not_sent(server: ScriptedServer, tmp_path: Path, place: str, said: str) -> None:
    called = use("vision_analyze", server, tmp_path, {"image_url": place, "question": "?"})
    assert said in called.data["error"] and server.counters()["calls"] == 0


def test_a_url_that_holds_no_usable_image(server: ScriptedServer, tmp_path: Path) -> None:
    def said(path: str, **more: Any) -> str:
        url = server.base_url + path
        call = {"image_url": url, "question": "?"}
        return str(use("vision_analyze", server, tmp_path, call, web_allow_private=True, **more).data["error"])

    assert said("/nowhere") == "HTTP 404" and "not a PNG" in said("/models")
    big = base64.b64encode(IMAGE + bytes(2000)).decode()
    call = {"image_url": f"data:image/png;base64,{big}", "question": "?"}
    called = use("vision_analyze", server, tmp_path, call, vision_image_limit=1000)
    assert f"the image has {len(IMAGE) + 2000:,} bytes, more than the 1,000" in called.data["error"]


def test_a_screenshot_is_looked_at_and_a_long_answer_is_cut(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={"rules": [{"match": "all of it", "replies": [{"text": "a" * 5000}]}]})

    async def run() -> tuple[str, Usage]:
        settings = {"model": "scripted", "base_url": server.base_url}
        context = tool_context(LocalSandbox(tmp_path, "none", output_limit=1000), output_limit=1000, **settings)
        try:
            return await look(context, IMAGE, "all of it"), context.own.usage
        finally:
            await context.shared.close()

    said, usage = asyncio.run(run())
    assert said.startswith("aaa") and "[… 4000 bytes cut …]" in said and usage.completion_tokens > 1000


def test_an_embedded_model_is_shown_no_image(server: ScriptedServer, tmp_path: Path) -> None:
    call = {"image_url": "red.png", "question": "?"}
    called = use("vision_analyze", server, tmp_path, call, model="local/smollm2-135m")
    assert called.data["error"] == "no model that sees is set for this run" and server.counters()["calls"] == 0


def test_an_image_is_drawn_into_a_file(server: ScriptedServer, tmp_path: Path) -> None:
    called = use("image_generate", server, tmp_path, {"prompt": "one"}, {"prompt": "a cat"}, image_price=0.04)
    assert called.data == {
        "success": True,
        "image": "image_2.png",
        "media_type": "image/png",
        "bytes": len(png("a cat")),
    }
    assert called.file == png("a cat")
    assert called.usage == Usage(prompt_tokens=20, completion_tokens=40, cost=0.08)
    called = use("image_generate", server, tmp_path, {"prompt": "x", "output_path": "new/dir/x.png"})
    assert called.data["image"] == "new/dir/x.png" and called.file == png("x") and called.usage.cost == 0


def test_an_image_may_come_as_a_url_of_the_server(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={"rules": [{"match": "a cat", "replies": [{"text": "url", "usage": {"cost": 0.5}}]}]})
    called = use("image_generate", server, tmp_path, {"prompt": "a cat"}, image_price=9)
    assert called.file.startswith(b"\x89PNG") and called.usage.cost == 0.5
    [path] = [path for path in server.counters()["authorizations"] if path.endswith(".png")]
    assert server.counters()["authorizations"][path] == [""], "no key goes there"


def test_an_image_at_a_private_address_elsewhere_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    body = {"data": [{"url": "http://127.0.0.2:1/secret.png"}]}
    server.control(script={"rules": [{"match": "a cat", "faults": [{"kind": "answer", "body": body}]}]})
    called = use("image_generate", server, tmp_path, {"prompt": "a cat"})
    assert "private addresses are refused" in called.data["error"]


def test_openrouters_images_api_takes_proportions() -> None:
    body = {"model": "m", "prompt": "p", "n": 1}
    router, openai = (ModelSettings(f"https://{host}/v1", "", "m") for host in ("openrouter.ai", "api.openai.com"))
    assert request_of(router, "p", SHAPES["landscape"]) == ("/images", body | {"aspect_ratio": "3:2"})
    assert request_of(openai, "p", SHAPES["portrait"]) == ("/images/generations", body | {"size": "1024x1536"})


def test_a_text_is_spoken_into_a_file(server: ScriptedServer, tmp_path: Path) -> None:
    price = {"tts_price_per_million_characters": 1000.0}
    called = use("text_to_speech", server, tmp_path, {"text": "hello"}, **price)
    assert called.data == {"success": True, "file_path": "speech_1.mp3", "format": "mp3", "bytes": len(called.file)}
    assert called.file == b"ID3\x04 alloy: hello" and called.usage == Usage(cost=0.005)
    call = {"text": "hello", "output_path": "a/b.flac"}
    assert use("text_to_speech", server, tmp_path, call, tts_voice="nova").file == b"fLaC nova: hello"
    called = use("text_to_speech", server, tmp_path, {"text": "hello", "output_path": "x.ogg"})
    assert called.data["error"] == "output_path must end in .mp3 or .wav or .opus or .aac or .flac, not ogg"


@ESPEAK
def test_a_text_is_spoken_offline(server: ScriptedServer, tmp_path: Path) -> None:
    def speak(text: str, **settings: Any) -> Called:
        return use("text_to_speech", server, tmp_path, {"text": text}, tts_engine="espeak-ng", **settings)

    short, long = speak("-w is no option"), speak("This takes quite a while to say aloud, with <tags> & all.")
    assert short.data["file_path"] == "speech_1.wav" and short.usage == Usage()
    assert short.file[:4] == long.file[:4] == b"RIFF" and 10_000 < len(short.file) < len(long.file)
    assert "voice does not exist" in speak("x", tts_voice="nobody").data["error"]
    assert speak("a b c " * 600, tts_timeout=0.01).data["error"] == "no speech within 0.01 s"
    assert server.counters()["calls"] == 0


CALLS = {
    "vision_analyze": ({"image_url": "red.png", "question": "a cat"}, "vision"),
    "image_generate": ({"prompt": "a cat"}, "image"),
    "text_to_speech": ({"text": "a cat"}, "tts"),
}
FAULTS = [
    (
        {"kind": "answer", "status": 500, "body": {"error": {"message": f"boom {RUN_KEY}"}}},
        "model failed: HTTP 500: boom ***",
    ),
    ({"kind": "answer", "status": 401, "body": {}}, "model is not available"),
    ({"kind": "answer", "status": 413, "body": {}}, "this is more than the"),
    ({"kind": "answer", "status": 429, "body": {}, "headers": {"Retry-After": "60"}}, "takes no more requests now"),
    ({"kind": "silent", "seconds": 5}, "model gave no answer within 0.3 s"),
    ({"kind": "reset"}, "model cannot be reached"),
    ({"kind": "answer", "body": "<html>"}, "model gave an answer that cannot be used"),
]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_a_model_that_fails_is_an_error_result(
    server: ScriptedServer, tmp_path: Path, name: str, fault: dict[str, Any], said: str
) -> None:
    arguments, role = CALLS[name]
    server.control(script={"rules": [{"match": "a cat", "faults": [fault]}]})
    called = use(name, server, tmp_path, arguments, **{f"{role}_timeout": 0.3 if fault["kind"] == "silent" else 30})
    assert said in called.data["error"] and is_failure(called.result) and RUN_KEY not in called.result
    assert called.usage == Usage()


def test_what_the_user_can_mend_is_logged_with_its_settings(
    server: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.control(script={"api_key": "another"})
    arguments, _ = CALLS["vision_analyze"]
    use("vision_analyze", server, tmp_path, arguments, arguments)
    [line] = [record.getMessage() for record in caplog.records if record.name == "trajectile.tools.models"]
    assert "vision_base_url and vision_model, its key is TRAJECTILE_VISION_API_KEY" in line and RUN_KEY not in line


def test_an_endpoint_of_a_tool_is_checked_at_the_start(
    server: ScriptedServer, other: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.control(script={"api_key": "own", "models": ["seer"]})
    there = {"base_url": server.base_url, "vision_base_url": other.base_url, "vision_model": "seer"}

    def check(*toolsets: str, **changes: Any) -> None:
        asyncio.run(check_tool_models(load_settings({**there, **changes}), toolsets))

    with pytest.raises(FatalError, match=r"^vision: .* refuses the key.* its key is TRAJECTILE_VISION_API_KEY"):
        check("vision")
    check("terminal", "image_gen")
    monkeypatch.setenv("TRAJECTILE_VISION_API_KEY", "own")
    check("vision")
    with pytest.raises(FatalError, match=r"^vision: .* has no model blind: .* such as seer"):
        check("vision", vision_model="blind")
    monkeypatch.setenv("TRAJECTILE_IMAGE_API_KEY", "own")
    check("image_gen", image_base_url=other.base_url, image_model="unlisted")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("vision_analyze", {"image_url": "red.png"}, "'question' is a required property"),
        ("image_generate", {"prompt": ""}, "prompt: "),
        ("image_generate", {"prompt": "x", "aspect_ratio": "round"}, "'round' is not one of"),
        ("text_to_speech", {"text": "a" * 5000}, "text: "),
        ("text_to_speech", {"text": "a", "voice": "b"}, "'voice' was unexpected"),
    ],
)
def test_wrong_arguments(server: ScriptedServer, tmp_path: Path, name: str, arguments: Any, said: str) -> None:
    assert said in use(name, server, tmp_path, arguments).data["error"] and server.counters()["calls"] == 0


@pytest.mark.parametrize("name", CALLS)
def test_the_runs_key_goes_to_no_other_server(
    server: ScriptedServer,
    other: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    arguments, role = CALLS[name]
    assert not is_failure(use(name, server, tmp_path, arguments).result)
    assert keys_seen(server) == {f"Bearer {RUN_KEY}"}
    elsewhere = {f"{role}_base_url": other.base_url, f"{role}_model": "m"}
    assert not is_failure(use(name, server, tmp_path, arguments, **elsewhere).result)
    assert RUN_KEY not in " ".join(keys_seen(other)) and other.counters()["calls"] == 1
    monkeypatch.setenv(f"TRAJECTILE_{role.upper()}_API_KEY", "own")
    assert not is_failure(use(name, server, tmp_path, arguments, **elsewhere).result)
    assert "Bearer own" in keys_seen(other) and "Bearer own" not in keys_seen(server)


def test_a_model_beside_the_runs_own_has_its_own_prices_and_no_routing() -> None:
    run = ModelSettings(
        "http://h/v1", "k", "m", price_prompt=1.0, price_completion=2.0, extra_body={"provider": {}, "top_k": 1}
    )
    plain = settings_of(load_settings({}), "vision", run)
    assert (plain.price_prompt, plain.price_completion, plain.api_key, plain.model) == (1.0, 2.0, "k", "m")
    routed = settings_of(
        load_settings({}), "vision", ModelSettings("http://h", "k", "m", extra_body={"provider": {"only": ["a"]}})
    )
    assert routed.extra_body == {"provider": {"only": ["a"]}} and plain.extra_body == {}
    given = {"vision_model": "v", "vision_price_prompt_per_million": 3, "vision_price_completion_per_million": 4}
    priced = settings_of(load_settings(given), "vision", run)
    assert (priced.price_prompt, priced.price_completion, priced.model) == (3.0, 4.0, "v")


def test_what_tools_spend_counts_for_the_row_and_the_run(server: ScriptedServer, tmp_path: Path) -> None:
    distributions = tmp_path / "own.yaml"
    distributions.write_text("drawing: {image_gen: 100}\n")
    free = {"price_prompt_per_million": 0, "price_completion_per_million": 0, "concurrency": 1}
    job = Job(
        *(tmp_path, server, [f"draw {number}" for number in range(4)]),
        distribution="drawing",
        distributions_file=str(distributions),
        image_price=0.1,
        max_cost=0.15,
        **free,  # type: ignore[arg-type]
    )
    calls = [{"name": "image_generate", "arguments": {"prompt": "a cat"}}]
    job.script({"regex": "draw", "replies": [{"tool_calls": calls, "reasoning": "hm"}, {"text": "done"}]})
    assert job.here() == 1 and "the run has cost 0.2, max_cost is 0.15" in job.folder.stop.read_text()
    rows = job.journal()
    assert [row.usage.cost for row in rows] == [0.1, 0.1] and rows[0].tool_stats["image_generate"] == ToolStat(1, 1, 0)
    assert rows[0].usage.prompt_tokens > 20 and '"image": "image_1.png"' in rows[0].conversations[2].value


@pytest.mark.parametrize("role", ["vision", "image", "tts"])
def test_a_key_in_the_configuration_is_refused_with_its_variable(role: str) -> None:
    for given in ({f"{role}_api_key": "sk-1"}, {f"{role}_base_url": "https://me:sk-1@x.example/v1"}):
        with pytest.raises(UserError, match=f"environment as TRAJECTILE_{role.upper()}_API_KEY") as caught:
            load_settings(given)
        assert "sk-1" not in str(caught.value)
    with pytest.raises(UserError, match=f"{role}_base_url: 'x.example' is not accepted; .* or empty"):
        load_settings({f"{role}_base_url": "x.example"})


def lacking(**settings: Any) -> dict[str, str]:
    names = ("vision", "image_gen", "tts")
    return problems({name: TOOLSETS[name] for name in names}, load_settings(settings))


def test_what_is_missing_is_said_with_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = lacking(model="local/smollm2-135m")
    assert said["vision"] == "the embedded model cannot see; set vision_base_url and vision_model to one that can"
    assert "set image_base_url and image_model" in said["image_gen"]
    assert said["tts"].startswith("espeak-ng is not installed here; install it, or set tts_base_url and tts_model")
    assert lacking(model="a", tts_engine="api") == {}
    assert "cannot speak" in lacking(tts_engine="api")["tts"]
    there = {
        f"{role}_{name}": "https://x.example" for role in ("vision", "image", "tts") for name in ("base_url", "model")
    }
    assert lacking(model="local/smollm2-135m", **there) == {}
    (tmp_path / "espeak-ng").write_text("#!/bin/sh\n")
    (tmp_path / "espeak-ng").chmod(0o755)
    assert "tts" not in lacking(model="a")
