"""Every tool in one run of thirty prompts, through Snakemake, in a local sandbox and in containers."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_images import host_python
from sandbox_contract import engines
from scripted_server.fixture import ScriptedServer
from trajectile.tools.registry import TOOLSETS, tools_of
from web_site import Site, answer

ROOT = Path(__file__).parents[1]
NEEDED = ("playwright", "trafilatura", "pypdf")
PROMPTS = 30
PAGE = """<html><head><title>Shop</title></head><body><h1>Shop</h1><p>Open from nine to five, every day but Sunday.</p>
<a href="/more">More</a><label>Name <input></label><button onclick="console.log('sold')">Buy</button>
<img src="/a.png" alt="A shop" width="40" height="40"></body></html>"""
Step = tuple[str, dict[str, Any], bool]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not shutil.which("chromium") or not all(map(find_spec, NEEDED)), reason=f"needs chromium and {NEEDED}"
    ),
]


def steps(site: str) -> list[list[Step]]:
    """For each kind of prompt its calls and whether they succeed: each tool well, and each that can fail badly."""
    code = "from agent_tools import terminal\nprint(terminal(command='echo inner')['output'])"
    item = {"id": "1", "content": "look", "status": "pending"}
    browsing: list[Step] = [
        ("browser_navigate", {"url": f"{site}/"}, True),
        ("browser_snapshot", {"full": True}, True),
        ("browser_type", {"ref": "@e6", "text": "Ada"}, True),
        ("browser_press", {"key": "Tab"}, True),
        ("browser_click", {"ref": "@e7"}, True),
        ("browser_console", {}, True),
        ("browser_get_images", {}, True),
        ("browser_scroll", {"direction": "down"}, True),
        ("browser_vision", {"question": "What is it?"}, True),
        ("browser_click", {"ref": "@e4"}, True),
        ("browser_back", {}, True),
    ]
    broken: list[Step] = [
        ("browser_snapshot", {"full": 5}, False),
        ("browser_navigate", {"url": "ftp://nowhere"}, False),
        ("browser_click", {"ref": "@e99"}, False),
        ("browser_type", {"ref": "@e99", "text": "x"}, False),
        ("browser_scroll", {"direction": "sideways"}, False),
        ("browser_press", {}, False),
        ("browser_back", {"far": 1}, False),
        ("browser_console", {"clear": 5}, False),
        ("browser_get_images", {"all": 1}, False),
        ("browser_vision", {}, False),
    ]
    return [
        browsing,
        broken,
        [("terminal", {"command": "echo hi"}, True), ("terminal", {"command": "sleep 60", "timeout": 0.5}, False)],
        [
            ("terminal", {"command": "sleep 60", "background": True}, True),
            ("process", {"action": "list"}, True),
            ("process", {"action": "poll"}, False),
        ],
        [("write_file", {"path": "a/b", "content": "one\n"}, True), ("write_file", {"path": "a"}, False)],
        [
            ("write_file", {"path": "f", "content": "one\ntwo\n"}, True),
            ("read_file", {"path": "f"}, True),
            ("patch", {"path": "f", "old_string": "two", "new_string": "TWO"}, True),
            ("search_files", {"pattern": "TWO"}, True),
            ("read_file", {"path": "gone"}, False),
            ("patch", {"path": "f", "old_string": "three", "new_string": ""}, False),
            ("search_files", {"pattern": "(", "path": "."}, False),
        ],
        [("web_search", {"query": "shops"}, True), ("web_search", {"query": " "}, False)],
        [("web_extract", {"urls": [f"{site}/"]}, True), ("web_extract", {"urls": [f"{site}/gone"]}, False)],
        [
            ("image_generate", {"prompt": "a shop", "output_path": "shop.png"}, True),
            ("vision_analyze", {"image_url": "shop.png", "question": "What is it?"}, True),
            ("image_generate", {"prompt": ""}, False),
            ("vision_analyze", {"image_url": "gone.png", "question": "What is it?"}, False),
        ],
        [("text_to_speech", {"text": "hello"}, True), ("text_to_speech", {"text": "x", "output_path": "a.b"}, False)],
        [
            ("terminal", {"command": host_python.FIND}, True),
            ("execute_code", {"code": code}, True),
            ("execute_code", {"code": "while True: pass", "timeout": 0.5}, False),
        ],
        [("todo", {"todos": [item]}, True), ("todo", {"todos": [{"id": "1"}]}, False)],
    ]


def script(kinds: list[list[Step]]) -> dict[str, Any]:
    """One call a turn; prompt number n takes kind n, those beyond the last kind the terminal."""
    rules = []
    for number, kind in enumerate(kinds):
        replies = [
            {"reasoning": "so", "tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments, _ in kind
        ]
        rules.append({"match": f"prompt {number}", "replies": [*replies, {"reasoning": "so", "text": "done"}]})
    return {"rules": rules, "steps": 1}


def expected(kinds: list[list[Step]]) -> dict[str, tuple[int, int]]:
    """Successes and failures by tool, with the call that the script makes."""
    good, bad = Counter({"terminal": PROMPTS - len(kinds) + 1}), Counter[str]()
    for name, _, succeeds in (step for kind in kinds for step in kind):
        (good if succeeds else bad)[name] += 1
    return {tool.name: (good[tool.name], bad[tool.name]) for tool in tools_of(TOOLSETS, TOOLSETS)}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    found = {"results": [{"title": "Shop", "url": "http://shop.example/", "content": "a shop"}]}
    with Site() as running:
        running.answers["/"] = answer(PAGE)
        running.answers["/more"] = answer("<h1>More</h1>")
        running.answers["/search"] = answer(json.dumps(found), "application/json")
        running.answers["/gone"] = answer("no", status="404 Not Found")
        yield running


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def sandbox(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "local":
        return {"sandbox": "local"}
    address = os.environ.get("DOCKER_HOST")
    if problem := engines.problem(address):
        pytest.skip(problem)
    image = {"sandbox_image": engines.image(address, "one"), "image_pull": "never"}
    return {"sandbox": "docker", "sandbox_memory": "512m", "sandbox_mounts": host_python.mounts(), **image}


def test_every_tool_is_used_and_counted(tmp_path: Path, site: Site, sandbox: dict[str, Any]) -> None:
    distributions = yaml.safe_load((ROOT / "config" / "distributions.yaml").read_text())
    everything = {**distributions["default"], "tts": 100, "code_execution": 100, "todo": 100}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"everything": everything}))
    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"prompt": f"prompt {n}"}) + "\n" for n in range(PROMPTS)))
    kinds = steps(site.url("").rstrip("/"))
    with ScriptedServer(script(kinds)) as server:
        speech = {"tts_engine": "api", "tts_base_url": server.base_url, "tts_model": "scripted"}
        web = {"web_provider": "searxng", "searxng_url": site.url("").rstrip("/"), "web_allow_private": True}
        run = {"dataset_file": "p.jsonl", "run_name": "r", "batch_size": PROMPTS, "max_turns": 20}
        model = {"model": "scripted", "base_url": server.base_url}
        own = {"distributions_file": "own.yaml", "distribution": "everything"}
        (tmp_path / "config.json").write_text(json.dumps({**run, **model, **own, **speech, **web, **sandbox}))
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
        done = subprocess.run([*command, "--configfile", "config.json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "data" / "r"
    rows = [json.loads(line) for line in (folder / "trajectories.jsonl").read_bytes().splitlines()]
    assert len(rows) == PROMPTS and all(row["completed"] for row in rows)
    assert all(set(row["toolsets_used"]) == set(TOOLSETS) for row in rows), "what was drawn is what was offered"
    wanted = expected(kinds)
    assert all(row["tool_stats"].keys() == wanted.keys() for row in rows)
    for row in rows:
        check(row, kinds)
    counted = json.loads((folder / "statistics.json").read_bytes())["tool_statistics"]
    assert {name: (tool["success"], tool["failure"]) for name, tool in counted.items()} == wanted
    assert all(success and failure for success, failure in wanted.values()), "each tool does both at least once"


def check(row: dict[str, Any], kinds: list[list[Step]]) -> None:
    """Compare a prompt's results with its steps one by one, so that a wrong count has a name."""
    number = row["prompt_index"]
    if number < len(kinds):
        results = [turn["value"] for turn in row["conversations"] if turn["from"] == "tool"]
        for (name, arguments, succeeds), result in zip(kinds[number], results, strict=True):
            failed = '"error": ' in result and '"error": null' not in result
            assert failed is not succeeds, f"{name} {arguments}: {result[:1000]}"
