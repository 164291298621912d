"""scripts/batch_runner.py: what it refuses at once, and a few real runs of the workflow."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result
from scripted_server.fixture import ScriptedServer
from trajectile.command_line.cli import main
from trajectile.configuration.settings import load_settings
from trajectile.run_folder.identity import new_identity, write_identity
from trajectile.run_folder.paths import RunFolder

ROOT = Path(__file__).parents[1]
BATCH_RUNNER = [sys.executable, str(ROOT / "scripts" / "batch_runner.py")]
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
CANARY = "canary-5f2b9c"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    write(tmp_path, "a", "b")
    return tmp_path


def write(folder: Path, *prompts: str, name: str = "p.jsonl") -> None:
    (folder / "data" / name).write_text("".join(json.dumps({"prompt": text, "tag": 1}) + "\n" for text in prompts))


def begin(folder: Path, **changes: Any) -> None:
    """Leave the run.json of a run that was begun."""
    config = {"dataset_file": "data/p.jsonl", "run_name": "r", "model": "m", "max_samples": 10, **changes}
    made = new_identity(
        load_settings(config), None, chances={}, dropped=[], toolsets={}, tool_schemas=[], dataset={}, isolation=""
    )
    write_identity(RunFolder(folder / "data" / "r"), made)


def invoke(*options: str) -> Result:
    return CliRunner().invoke(main, options, catch_exceptions=False)


DATASET = "--dataset_file=data/p.jsonl"
NEW = (DATASET, "--run_name=new", "--model=m", "--distribution=terminal_only")
RESUMED = ("--run_name=r", "--resume")
REFUSED = [
    ((DATASET,), "Error: --run_name is missing; for example: --dataset_file=data/prompts.jsonl --batch_size=10"),
    (("--run_name=new",), "Error: --dataset_file is missing; for example: --dataset_file=data/prompts.jsonl"),
    ((DATASET, "--run_name=../x"), "Error: run_name: '../x' is not accepted; expected text of up to 100 letters"),
    ((*NEW, "--max_turns=0"), "Error: max_turns: 0 is not accepted; expected whole number at least 1"),
    ((*NEW, "--verbose=maybe"), "Error: verbose: 'maybe' is not accepted; expected true or false"),
    ((*NEW, "--on_bad_row", "ignore"), "Error: on_bad_row: 'ignore' is not accepted; expected error or skip"),
    ((*NEW, "--num_workers=0"), "Error: Invalid value for '--num_workers': 0 is not in the range x>=1"),
    ((*NEW, "--batchsize=3"), "Error: No such option '--batchsize'. (Did you mean one of: '--batch_size'"),
    ((*NEW, "stray"), "Error: Got unexpected extra argument (stray)"),
    ((*NEW, "--distribution=none"), "Error: unknown distribution 'none', accepted are: balanced, browser_only,"),
    (
        (DATASET, "--run_name=new", "--browser_path=nowhere"),
        "Error: distribution 'default' needs toolsets that cannot work here:\n  browser: ",
    ),
    ((*NEW, "--dataset_file=data"), "Error: dataset_file: data is a folder. Set dataset_file to a file of prompts"),
    ((*NEW, "--dataset_file=gone.jsonl"), "Error: dataset_file: there is no file gone.jsonl. Set dataset_file"),
    ((*NEW, "--dataset_file=data/bad.jsonl"), "  line 2: the prompt is empty\n  line 4: invalid UTF-8 at byte 13\n"),
    ((*NEW, "--dataset_file=data/image.jsonl"), "1 row with an image (the first is line 1), which sandbox: local"),
    ((*NEW, "--dataset_file=data/\udce9.jsonl"), r"Error: dataset_file: 'data/\udce9.jsonl' is not UTF-8. Give it in"),
    ((*NEW, "--ephemeral_system_prompt=\udce9"), r"Error: ephemeral_system_prompt: '\udce9' is not UTF-8. Give it in"),
    ((*NEW, "--prefill_messages_file=gone"), "Error: prefill_messages_file: gone cannot be read: No such file"),
    (
        (*NEW, "--reasoning_disabled", "--require_reasoning=true"),
        "true with reasoning_disabled: true would discard every",
    ),
    (
        (*NEW, "--provider_sort=speed"),
        "Error: provider_sort: 'speed' is not accepted; expected auto or price or throughput",
    ),
    ((*NEW, "--max_cost=5", "--base_url=http://h/v1"), "Error: max_cost needs to know what tokens cost"),
    ((*NEW, "--extra_body={"), "Error: extra_body: '{' is no JSON"),
    ((*NEW, "--", "collect"), "Error: run_name: run new has not begun: nothing to collect is in data/new"),
    ((DATASET, "--run_name=r"), "Error: run r exists; go on with it by --resume, or choose another --run_name"),
    ((DATASET, "--run_name=r", "--retry_failed=false"), "Error: run r exists; go on with it by --resume"),
    ((*RESUMED, "--model=n"), '  model: "m" in the run, "n" now\nChoose another run_name, or set settings_change'),
    ((*RESUMED, "--max_turns=3"), "  max_turns: 10 in the run, 3 now\n"),
    ((*RESUMED, "--max_samples=9"), "  max_samples: 10 in the run, 9 now\n"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[" ".join(options)[-40:] for options, _ in REFUSED])
def test_what_is_of_no_use_is_refused_before_anything_runs(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    begin(folder)
    (folder / "data" / "bad.jsonl").write_bytes(b'{"prompt": "a"}\n{"prompt": ""}\n\n{"prompt": "\xff"}\n')
    (folder / "data" / "image.jsonl").write_text('{"prompt": "a", "image": "x"}\n')
    before = sorted(folder.rglob("*"))
    result = invoke(*options)
    assert result.exit_code == 2 and message in result.output
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "words"), [("data/new", "Error: run_name: data/new is a file."), ("data", "Error: data is a file, and")]
)
def test_a_file_in_the_place_of_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    result = invoke("--dataset_file=p.jsonl", "--run_name=new", "--model=m")
    assert result.exit_code == 2 and result.output.startswith(words)


def test_batches_without_a_run_json_want_resume_too(folder: Path) -> None:
    (folder / "data" / "new").mkdir()
    (folder / "data" / "new" / "batch_0.jsonl").touch()
    result = invoke(*NEW)
    assert result.exit_code == 2 and "run new exists; go on with it by --resume" in result.output


def test_a_change_that_was_allowed_once_is_not_allowed_for_ever(folder: Path) -> None:
    begin(folder, settings_change="keep")
    assert "max_turns: 10 in the run, 3 now" in invoke(*RESUMED, "--max_turns=3").output


def test_list_distributions_prints_a_table() -> None:
    lines = invoke("--list_distributions").output.splitlines()
    (row,) = (line for line in lines if "terminal_only" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == [
        "terminal_only",
        "terminal and files",
        "terminal 100, file 100",
        "-",
    ]
    assert any("default" in line and "browser 100" in line for line in lines)


def test_snakemake_refuses_in_the_same_words(folder: Path) -> None:
    for setting, message in (
        ("run_name=007", "run_name: Snakemake's --config reads 007 as 7, which would be another run."),
        (f"api_key={CANARY}", "api_key does not belong in the configuration"),
        ("dataset_file=data", "dataset_file: data is a folder"),
    ):
        config = ["dataset_file=data/p.jsonl", "run_name=new", "model=m", setting]
        result = subprocess.run([*SNAKEMAKE, "-n", "--config", *config], cwd=folder, capture_output=True, text=True)
        assert result.returncode == 1 and message in result.stdout and "Traceback" not in result.stdout
        assert not (folder / "data" / "new").exists()


def test_nothing_is_collected_of_a_run_that_has_not_begun(folder: Path) -> None:
    config = ["--config", "dataset_file=data/p.jsonl", "run_name=new", "model=m"]
    result = subprocess.run([*SNAKEMAKE, "collect", *config], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 1 and not (folder / "data" / "new").exists()
    assert "run_name: run new has not begun: nothing to collect is in data/new" in result.stderr


class Project:
    """A working directory whose runs ask the scripted server."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        self.run_folder = RunFolder(folder / "data" / "r")

    def command(self, *options: str) -> list[str]:
        return [*BATCH_RUNNER, "--run_name=r", f"--base_url={self.server.base_url}", *options]

    def begin(self, *options: str) -> subprocess.CompletedProcess[str]:
        new = [DATASET, "--batch_size=2", "--model=scripted", "--distribution=default", "--missing_toolsets=drop"]
        return self.run(*new, "--max_turns=4", "--max_samples=50", "--num_workers=2", *options)

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options), cwd=self.folder, env=environment(), capture_output=True, text=True
        )

    def results(self) -> list[str]:
        lines = self.run_folder.trajectories.read_bytes().split(b"\n")[:-1]
        return [json.loads(line)["conversations"][0]["value"] for line in lines]

    def verdict(self) -> dict[str, Any]:
        return json.loads(self.run_folder.verdict.read_bytes())

    def asked(self) -> set[str]:
        return set(self.server.counters()["prompts"])


def environment() -> dict[str, str]:
    """Return an environment without a key, and without this Python in its PATH."""
    names = {name: value for name, value in os.environ.items() if not name.endswith("API_KEY")}
    folders = names["PATH"].split(os.pathsep)
    return names | {"PATH": os.pathsep.join(each for each in folders if each != str(Path(sys.executable).parent))}


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    with ScriptedServer(api_key=CANARY) as server:
        yield Project(folder, server)


def test_the_reference_command_runs_resumes_and_takes_another_dataset(project: Project) -> None:
    key = f"--api_key={CANARY}"
    odd = "one\u2028line\u2029still\u0085one"
    write(project.folder, "a", "b", odd)
    first = project.begin(key, "--browser_path=nowhere")
    assert first.returncode == 0, first.stderr
    assert "toolsets left out because they cannot work here: browser (" in first.stderr
    assert project.results() == ["a", "b", odd] and project.asked() == {"a", "b", odd}
    for path in project.folder.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    assert CANARY not in first.stdout + first.stderr

    project.server.control(reset_counters=True)
    write(project.folder, "c", "b", name="other.jsonl")
    other = project.run("--resume", key, "--dataset_file", "data/other.jsonl")
    assert other.returncode == 0, other.stderr
    assert project.asked() == {"c"} and project.results() == ["c", "b"]

    again = project.run("--resume", key)
    assert again.returncode == 0 and project.asked() == {"c"} and project.results() == ["c", "b"]


def test_dry_run_shows_the_shards_and_leaves_nothing(project: Project) -> None:
    write(project.folder, "a", "b", "c")
    result = project.begin("--dry-run", "--run_name=007")
    assert result.returncode == 0, result.stderr
    assert "shard 0: new: 2 to run" in result.stderr + result.stdout
    assert "shard 1: new: 1 to run" in result.stderr + result.stdout
    assert "data/007/batch_0.jsonl" in result.stderr + result.stdout
    assert [path.name for path in (project.folder / "data").iterdir()] == ["p.jsonl"] and not project.asked()


def test_results_are_collected_when_a_shard_fails(project: Project) -> None:
    down = [{"match": text, "faults": [{"kind": "answer", "status": 500}]} for text in ("c", "d")]
    project.server.control(script={"rules": down})
    write(project.folder, "a", "b", "c", "d")
    secrets = (f"--api_key={CANARY}", "--ephemeral_system_prompt=Be brief.")
    result = project.begin("--max_consecutive_failures=1", "--concurrency=1", "--max_retries=0", *secrets)
    assert result.returncode == 1, result.stderr
    assert sorted(project.results()) == ["a", "b"] and not project.run_folder.batch(1).exists()
    assert project.run_folder.statistics.exists()
    assert result.stderr.rstrip().endswith("--run_name=r --resume (and the same --ephemeral_system_prompt)")


def test_results_that_cannot_be_made_are_not_promised(project: Project) -> None:
    project.server.control(script={"rules": [{"regex": ".", "latency": 3}], "steps": 0})
    options = [DATASET, "--model=scripted", "--distribution=terminal_only", f"--api_key={CANARY}"]
    process = subprocess.Popen(
        project.command(*options), cwd=project.folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: project.asked())
    with (project.folder / "data" / "p.jsonl").open("a") as dataset:
        dataset.write('{"prompt": ""}\n')
    _, said = process.communicate()
    assert process.returncode == 1 and not project.run_folder.trajectories.exists()
    assert "trajectile: what is finished is kept, without results, in data/r. To go on: " in said


def test_what_is_collected_of_an_unfinished_run_speaks_of_the_run_as_it_is(project: Project) -> None:
    exports = ["--exports=messages", f"--api_key={CANARY}"]
    assert project.begin(*exports).returncode == 0
    project.server.control(script={"rules": [{"regex": "^bad", "faults": [{"kind": "answer", "status": 500}]}]})
    write(project.folder, "a", "b", "c", "bad 1", "bad 2")
    limits = ["--max_consecutive_failures=1", "--concurrency=1", "--max_retries=0"]
    result = project.run("--resume", *exports, *limits)
    assert result.returncode == 1 and sorted(project.results()) == ["a", "b", "c"], result.stderr
    verdict = project.verdict()
    assert (verdict["prompts"], verdict["finished"], verdict["owed"]) == (5, 3, 2)
    exported = project.run_folder.export("messages").glob("**/*.jsonl")
    assert sum(len(path.read_bytes().splitlines()) for path in exported) == 3


def test_what_is_collected_by_other_rules_is_made_anew_by_the_next_start(project: Project) -> None:
    mute = {"text": "done", "reasoning": ""}
    project.server.control(script={"rules": [{"match": "b", "replies": [mute]}]})
    key = f"--api_key={CANARY}"
    assert project.begin(key).returncode == 0 and project.results() == ["a"]
    assert project.run("--resume", key, "--require_reasoning=false", "--", "collect").returncode == 0
    assert project.results() == ["a", "b"]
    assert project.run("--resume", key, "--require_reasoning=auto").returncode == 0 and project.results() == ["a"]
    assert "Nothing to be done" in project.run("--resume", key).stderr


def test_a_finished_run_is_exported_without_what_its_tools_need(project: Project) -> None:
    (project.folder / "own.yaml").write_text("searching:\n  terminal: 100\n  web: 100\n")
    new = [DATASET, "--batch_size=1", "--model=scripted", "--distribution=searching", "--distributions_file=own.yaml"]
    options = [f"--api_key={CANARY}", "--web_provider=tavily"]
    with_key = environment() | {"TAVILY_API_KEY": "tvly"}
    begun = subprocess.run(
        project.command(*new, *options), cwd=project.folder, env=with_key, capture_output=True, text=True
    )
    assert begun.returncode == 0, begun.stderr
    exported = project.run("--resume", *options, "--exports=messages")
    assert exported.returncode == 0, exported.stderr
    assert (project.run_folder.export("messages") / "summary.json").exists()
    write(project.folder, "a", "b", "c")
    refused = project.run("--resume", *options)
    assert refused.returncode == 2 and "TAVILY_API_KEY" in refused.stderr
    assert project.run("--resume", *options, "--", "collect").returncode == 0
    chances = json.loads(project.run_folder.run_json.read_bytes())["chances"]
    assert chances == {"terminal": 100, "web": 100}


def test_a_refused_key_is_said_once_and_collects_nothing(project: Project) -> None:
    result = project.begin("--api_key=wrong")
    assert result.returncode == 1 and not project.run_folder.trajectories.exists()
    assert result.stderr.count("TRAJECTILE_API_KEY") == 1 and "Traceback" not in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_shards_and_what_they_have_is_collected(project: Project, number: signal.Signals) -> None:
    slow = [{"match": text, "latency": 600} for text in ("b", "d")]
    project.server.control(script={"rules": slow})
    write(project.folder, "a", "b", "c", "d")
    options = [DATASET, "--batch_size=2", "--model=scripted", "--distribution=terminal_only", f"--api_key={CANARY}"]
    with (project.folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            project.command(*options), cwd=project.folder, env=environment(), stdout=out, stderr=out
        )
    wait_until(lambda: finished(project) == {"a", "c"})
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert b"Traceback" not in (project.folder / "out.txt").read_bytes()
    assert project.results() == ["a", "c"]
    assert not list((project.run_folder.root / "journal").glob("*.lease"))
    left = [each for each in psutil.process_iter(["cwd"]) if each.info["cwd"] == str(project.folder)]
    assert [each.pid for each in left] == [os.getpid()]
    assert not any(path.stat().st_size for path in (project.run_folder.root / "failures").glob("*.jsonl"))


def finished(project: Project) -> set[str]:
    return {
        json.loads(line)["conversations"][0]["value"]
        for path in (project.run_folder.root / "journal").glob("*.jsonl")
        for line in path.read_bytes().split(b"\n")[:-1]
    }


def wait_until(holds: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
