"""Cases of resuming, each replayed at the command line: who is run again, and who is not."""

import json
import signal
from pathlib import Path

import pytest
from trajectile.exports.formats import FORMATS

from faults.evidence import lines_of
from faults.pipeline import pipeline
from faults.processes import shards


def test_equal_prompts_are_rows_of_their_own(tmp_path: Path) -> None:
    with pipeline(tmp_path, latency=1.0) as run:
        run.want("equal", "other", "equal", "equal")
        run.kill_when(lambda: run.rows().total() == 1)
        run.forget_calls()
        assert run.run("-n") == 0 and "1 rows in its journal, 3 to run" in run.said()
        assert run.run() == 0
        assert sum(run.asked().values()) == 3
        assert run.merged() == ["equal", "other", "equal", "equal"]


def test_a_resumed_run_that_is_killed_in_its_first_second_loses_nothing(tmp_path: Path) -> None:
    with pipeline(tmp_path, latency=0.2) as run:
        run.want(*"abcdefgh")
        run.kill_when(lambda: run.rows().total() >= 3)
        finished = run.rows()
        run.forget_calls()
        for _ in range(2):
            run.kill_when(lambda: True)
        assert run.rows() == finished
        assert run.run() == 0
        assert run.asked() == dict.fromkeys(set("abcdefgh") - set(finished), 1)
        assert run.merged() == list("abcdefgh")


def test_torn_last_lines_cost_one_row_each(tmp_path: Path) -> None:
    with pipeline(tmp_path, latency=0.8, batch_size=3) as run:
        run.want(*"abc")
        assert run.run() == 0
        run.want(*"abcdef")
        run.kill_when(lambda: run.rows().total() >= 5)
        for path in (run.folder / "batch_0.jsonl", run.folder / "journal" / "shard_1.jsonl"):
            content = path.read_bytes()
            path.write_bytes(content[: -len(lines_of(path)[-1]) // 2])
        assert run.rows() == dict.fromkeys("abd", 1)
        run.forget_calls()
        assert run.run() == 0
        assert run.asked() == dict.fromkeys("cef", 1)
        assert run.merged() == list("abcdef")


def test_discarded_rows_have_their_reason_and_are_not_paid_for_again(tmp_path: Path) -> None:
    with pipeline(tmp_path, batch_size=2) as run:
        mute = {"regex": ".", "replies": [{"text": "done", "reasoning": ""}], "latency": 0.3}
        run.server.control(script={"rules": [mute]})
        run.want(*"abcd")
        run.kill_when(lambda: run.rows().total() >= 2)
        finished = run.rows()
        run.forget_calls()
        assert run.run() == 0
        assert run.asked() == dict.fromkeys(set("abcd") - set(finished), 1)
        discarded = [json.loads(line) for line in lines_of(run.folder / "discarded.jsonl")]
        assert [row["reasons"] for row in discarded] == [["no_reasoning"]] * 4
        assert run.merged() == [] and run.statistics()["discarded"]["total"] == 4
        run.forget_calls()
        assert run.run(require_reasoning="false") == 0
        assert run.asked() == {} and run.merged() == list("abcd")


def test_a_kill_half_way_costs_what_was_in_flight_and_no_more(tmp_path: Path) -> None:
    prompts = [f"prompt {n}" for n in range(200)]
    with pipeline(tmp_path, latency=0.1, batch_size=200, concurrency=8) as run:
        run.want(*prompts)
        run.kill_when(lambda: run.rows().total() >= 100)
        finished = run.rows()
        assert run.run() == 0
        asked = run.asked()
        assert all(asked[prompt] == 1 for prompt in finished)
        assert sum(asked.values()) - 200 <= 8 and run.merged() == prompts


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_shard_that_is_ended_in_mid_prompt_costs_no_attempt(tmp_path: Path, number: int) -> None:
    with pipeline(tmp_path, latency=1.0) as run:
        run.want(*"abcd")
        started = run.start()
        run.wait(started, lambda: run.rows().total() == 1 and run.server.counters()["in_flight"] == 1)
        shards(run.folder)[0].send_signal(number)
        assert started.root.wait(60) == 1
        assert lines_of(run.folder / "failures" / "shard_0.jsonl") == []
        assert run.rows() == {"a": 1} and not (run.folder / "batch_0.jsonl").exists()
        run.forget_calls()
        assert run.run() == 0
        assert run.asked() == dict.fromkeys("bcd", 1)
        assert run.statistics()["attempts_failed"] == 0


def test_exports_do_not_tell_that_a_run_was_killed_and_cut_anew(tmp_path: Path) -> None:
    made = []
    for name, kills, sizes in (("killed", True, (6, 2)), ("whole", False, (4, 4))):
        (tmp_path / name).mkdir()
        with pipeline(tmp_path / name, latency=0.2, steps=1, batch_size=sizes[0], exports=",".join(FORMATS)) as run:
            run.want(*"abcdef")
            if kills:
                run.kill_when(lambda run=run: run.rows().total() >= 2)
                assert 0 < run.rows().total() < 6
            assert run.run(batch_size=sizes[1]) == 0
        exports = run.folder / "exports"
        made.append(
            {str(path.relative_to(exports)): path.read_bytes() for path in exports.rglob("*") if path.is_file()}
        )
    assert made[0] == made[1] and {name.split("/")[0] for name in made[0]} == {*FORMATS, "README.md"}


def test_a_killed_merge_is_all_that_is_made_again(tmp_path: Path) -> None:
    with pipeline(tmp_path) as run:
        run.want(*"abcd")
        run.kill_when(lambda: (run.folder / "statistics.json").exists())
        assert run.merged() == []
        run.forget_calls()
        (run.work / "log.txt").unlink()
        assert run.run() == 0
        assert run.asked() == {} and run.merged() == list("abcd")
        assert "rule merge_trajectories" in run.said() and "rule split_dataset" not in run.said()


def test_another_dataset_under_the_same_name_is_not_mixed_in(tmp_path: Path) -> None:
    with pipeline(tmp_path) as run:
        run.want(*"abcd")
        assert run.run() == 0
        run.want(*"wxyz")
        run.forget_calls()
        assert run.run() == 0
        assert run.asked() == dict.fromkeys("wxyz", 1) and run.merged() == list("wxyz")
        assert run.statistics()["superseded"] == 4


def test_rows_put_in_front_are_all_that_runs(tmp_path: Path) -> None:
    with pipeline(tmp_path) as run:
        run.want(*"abcd")
        assert run.run() == 0
        run.want(*"yzabcd")
        run.forget_calls()
        assert run.run() == 0
        assert run.asked() == dict.fromkeys("yz", 1) and run.merged() == list("yzabcd")
