import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, Job
from scripted_server.fixture import ScriptedServer
from trajectile.planning import workflow
from trajectile.planning.preparation import prepare_run
from trajectile.run_folder.lease import Lease
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import invocation, mark_stop, stopped


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.fixture
def lease(folder: RunFolder) -> Lease:
    made = Lease(folder.lease)
    assert made.acquire() is None
    return made


def test_a_stop_holds_for_this_start_of_the_run(folder: RunFolder, lease: Lease) -> None:
    assert invocation(folder) == lease.owner.token and stopped(folder) == ""
    assert mark_stop(folder, "no credit")
    assert stopped(folder) == "no credit"
    lease.release()
    assert stopped(folder) == "", "the start is over"
    assert Lease(folder.lease).acquire() is None
    assert stopped(folder) == "", "another start begins anew"


def test_the_first_reason_stays(folder: RunFolder, lease: Lease) -> None:
    assert mark_stop(folder, "no credit") and mark_stop(folder, "no model")
    assert stopped(folder) == "no credit"


def test_shards_that_are_run_by_hand_stop_nobody(folder: RunFolder) -> None:
    assert not mark_stop(folder, "no credit"), "no start of the run reads it, so the shard says it itself"
    assert stopped(folder) == ""


@pytest.mark.parametrize("damage", [b"", b"{", b"[]"])
def test_a_damaged_marker_stops_nobody(folder: RunFolder, lease: Lease, damage: bytes) -> None:
    folder.stop.write_bytes(damage)
    assert stopped(folder) == "" and mark_stop(folder, "x") and stopped(folder) == "x"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def test_a_fatal_stop_ends_the_start_and_the_last_words_say_why(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    job = Job(tmp_path, server, ["a", "b", "c"], batch_size=2)
    monkeypatch.chdir(tmp_path)
    run = prepare_run(job.config)
    job.release()
    gave_up = threading.Event()
    workflow.begin(run, asks_model=True, give_up=gave_up.set)
    assert not gave_up.wait(3 * workflow.WATCH_S)
    run.folder.batch(0).touch()
    mark_stop(run.folder, "no credit: add some")
    assert gave_up.wait(20 * workflow.WATCH_S)
    capsys.readouterr()
    workflow.say_how_to_go_on(run)
    workflow.end()
    said = capsys.readouterr().err
    assert said.count("no credit: add some") == 1 and "1 of 2 shards are not finished" in said
    assert "snakemake collect" in said
    run.folder.batch(1).touch()
    workflow.say_how_to_go_on(run)
    assert capsys.readouterr().err == "", "where every shard has its batch, the verdict has said it all"


def test_a_run_without_credit_ends_at_once_with_its_one_sentence_last(tmp_path: Path) -> None:
    refusal = {"kind": "answer", "status": 402, "body": {"error": {"message": "Insufficient credits"}}}
    (tmp_path / "p.jsonl").write_text("".join(f'{{"prompt": "task {n}"}}\n' for n in range(30)))
    with ScriptedServer([{"regex": ".", "faults": [refusal]}]) as server:
        config = [f"base_url={server.base_url}", "dataset_file=p.jsonl", "run_name=r", "model=scripted"]
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
        command += ["--config", *config, "batch_size=1", "concurrency=1"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 1
        assert 1 <= server.counters()["calls"] <= 4
    folder, said = RunFolder(tmp_path / "data" / "r"), done.stderr
    sentence = "is out of credit: add credit, then run again"
    [reason] = [line for line in said.splitlines() if line.startswith("trajectile: stopped: ")]
    assert sentence in reason and said.count(sentence) == 1, "at the end, and not in the shard's log too"
    assert "nothing can be run now; the last lines of the run say why, and data/r/run.stop does" in said
    assert "30 of 30 shards are not finished" in said.partition(reason)[2]
    assert said.count("Error in rule run_batch") <= 4, "the other shards are not started to say so"
    assert folder.numbers("") == [] and not any(folder.ledger(n).stat().st_size for n in folder.numbers("failures"))
    assert "Traceback" not in said
