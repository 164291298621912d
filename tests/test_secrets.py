"""A key is in the environment and nowhere else: a real run with a canary, and a search through all it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, wait_until
from scripted_server.fixture import ScriptedServer
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.model.errors import WrongKey
from trajectile.model.keys import api_key

CANARY = "sk-canary-0d9a41"
COMMAND = "env; cat /proc/*/environ /proc/*/cmdline; sleep 1"


def everywhere(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def exposed_by_processes() -> list[bytes]:
    """The command lines with the key in them, of whatever runs now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return [line for line in found if CANARY.encode() in line]


def test_a_run_leaves_its_key_nowhere(tmp_path: Path) -> None:
    look = [{"tool_calls": [{"name": "terminal", "arguments": {"command": COMMAND}}], "reasoning": "hm"}, {"text": "x"}]
    echo = {"kind": "answer", "status": 500, "body": {"error": {"message": f"bad header: Bearer {CANARY}"}}}
    rules = [{"match": "look", "replies": look}, {"match": "break", "faults": [echo]}]
    prompts = ["look", "break", "work"]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in prompts))
    home = tmp_path / "home"
    home.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(home), "TRAJECTILE_API_KEY": CANARY}
    environment |= {"XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(tmp_path)}
    with ScriptedServer(rules, api_key=CANARY) as server:
        config = [f"base_url={server.base_url}", "dataset_file=p.jsonl", "run_name=r", "model=scripted"]
        config += ["max_retries=0", "max_failed_fraction=0.5", "verbose=true"]
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
        with (tmp_path / "screen.txt").open("wb") as screen:
            run = subprocess.Popen(
                [*command, "--config", *config], cwd=tmp_path, env=environment, stdout=screen, stderr=screen
            )
        wait_until(lambda: "look" in server.counters()["prompts"], "the command that looks around", 120)
        assert exposed_by_processes() == []
        assert run.wait(120) == 0, (tmp_path / "screen.txt").read_text()
    folder = tmp_path / "data" / "r"
    rows = {row["prompt_index"]: row for row in map(json.loads, (folder / "trajectories.jsonl").open())}
    assert set(rows) == {0, 2}, "the server took the key"
    assert "HOME=" in rows[0]["conversations"][2]["value"], "the command saw an environment"
    assert "bad header: Bearer ***" in (folder / "failures.jsonl").read_text(), "the echo was there, without the key"
    assert (tmp_path / ".snakemake" / "log").is_dir() and (folder / "logs" / "run_batch").is_dir()
    assert everywhere(tmp_path) == []


def test_a_key_in_the_configuration_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError, match="TRAJECTILE_API_KEY") as caught:
        load_settings({"api_key": CANARY})
    assert CANARY not in str(caught.value)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("TRAJECTILE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield lambda **names: [monkeypatch.setenv(name, value) for name, value in names.items()]


def test_each_endpoint_is_given_its_own_key_and_no_other(keys: Any) -> None:
    router, other = "https://openrouter.ai/api/v1", "https://openrouter.ai.example.com/v1"
    assert api_key(router) == api_key(other) == ""
    keys(OPENROUTER_API_KEY="router", OPENAI_API_KEY="openai")
    assert (api_key(router), api_key("https://eu.openrouter.ai/v1"), api_key(other)) == ("router", "router", "openai")
    keys(TRAJECTILE_API_KEY="mine")
    assert api_key(router) == api_key(other) == "mine"
    keys(TRAJECTILE_API_KEY=" \n")
    assert api_key(router) == "router", "an empty variable is none"


def test_space_around_a_key_is_not_part_of_it(keys: Any) -> None:
    keys(TRAJECTILE_API_KEY=f" {CANARY}\r\n")
    assert api_key("https://model.example/v1") == CANARY


@pytest.mark.parametrize(
    ("key", "said"), [("\nb", "7 is a line break"), ("\tb", "7 is a control"), ("é", "7 is outside ASCII")]
)
def test_a_key_that_no_header_can_carry_is_refused_by_name_and_not_repeated(keys: Any, key: str, said: str) -> None:
    keys(TRAJECTILE_API_KEY=f"canary{key}")
    with pytest.raises(WrongKey, match=f"TRAJECTILE_API_KEY holds no key: its character {said}") as caught:
        api_key("https://model.example/v1")
    assert "canary" not in str(caught.value)
