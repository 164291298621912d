"""split_dataset: the plan becomes shard files and a manifest."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from results_files import Run, failure, lines_of
from split_dataset import main
from trajectile.planning.inventory import failed_attempts, take_inventory
from trajectile.planning.plan import Plan, make_plan
from trajectile.rows import PromptRow
from trajectile.run_folder.batch import Manifest
from trajectile.run_folder.lease import Lease


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, [{"prompt": f"prompt {n}", "n": n} for n in range(5)])


def plan(run: Run, **options: Any) -> Plan:
    reading = {"on_bad_row": "error", "max_samples": None, **options}
    inventory = take_inventory(run.folder, run.dataset, **reading)
    return make_plan(inventory, failed_attempts(run.folder), batch_size=2)


def split(run: Run, digest: str, *options: str) -> Result:
    files = ["--run_folder", str(run.folder.root), "--dataset_file", str(run.dataset)]
    return CliRunner().invoke(main, [*files, "--batch_size", "2", "--digest", digest, *options])


def shards(run: Run) -> dict[int, list[PromptRow]]:
    return {number: lines_of(run.folder.shard(number), PromptRow) for number in run.folder.numbers("shards")}


def test_owed_rows_are_cut_in_dataset_order(run: Run) -> None:
    run.batch(0, run.row(1), run.row(3))
    digest = plan(run).digest
    result = split(run, digest)
    assert (result.exit_code, result.output) == (0, "3 of 5 prompts are owed, in 2 shards\n")
    assert {number: [row.prompt_index for row in rows] for number, rows in shards(run).items()} == {1: [0, 2], 2: [4]}
    assert [json.loads(row.source) for row in shards(run)[1]] == [{"n": 0}, {"n": 2}]
    manifest = msgspec.json.decode(run.folder.manifest(digest).read_bytes(), type=Manifest)
    assert {number: shard.to_run for number, shard in manifest.shards.items()} == {"1": 2, "2": 1}


def test_splitting_again_changes_no_shard_that_was_begun(run: Run) -> None:
    assert split(run, plan(run).digest).exit_code == 0
    before = {number: run.folder.shard(number).read_bytes() for number in run.folder.numbers("shards")}
    run.set_dataset([{"prompt": "in front"}, *({"prompt": f"prompt {n}", "n": n} for n in range(5))])
    assert split(run, plan(run).digest).exit_code == 0
    assert {number: run.folder.shard(number).read_bytes() for number in before} == before
    assert [row.turns[0].value for row in shards(run)[3]] == ["in front"]


def test_a_dataset_that_changed_since_the_plan_is_refused(run: Run) -> None:
    digest = plan(run).digest
    run.set_dataset(["other"])
    result = split(run, digest)
    assert result.exit_code == 2 and "changed since the run was planned. Run again." in result.output
    assert not run.folder.numbers("shards")


def test_an_earlier_start_that_ends_with_failures_after_the_plan_changes_no_cut(run: Run) -> None:
    """Its failed prompts are owed to the next run, as those of any other shard."""
    assert split(run, plan(run).digest).exit_code == 0
    run.set_dataset([*({"prompt": f"prompt {n}", "n": n} for n in range(5)), "new"])
    run.journal(0, run.row(0))
    run.batch(1)
    run.journal(1)
    os.utime(run.folder.batch(1), (0, 0))
    digest = plan(run).digest
    run.batch(0, run.row(0))
    run.ledger(0, failure(run.prompts[1], "timeout", 1))
    assert split(run, digest).exit_code == 2, "nobody makes the run"
    assert Lease(run.folder.lease).acquire() is None
    done = split(run, digest)
    assert done.exit_code == 0, done.output
    texts = {number: [row.turns[0].value for row in rows] for number, rows in shards(run).items()}
    assert texts[3] == ["prompt 2", "prompt 3"] and texts[4] == ["new"]
    after = plan(run)
    assert [shard.number for shard in after.shards] == [2, 3, 4, 5] and len(after.shards[-1].rows) == 1


def test_separators_in_a_prompt_stay_inside_their_line(run: Run) -> None:
    text = "a\u2028b\u2029c\u0085d\r\ne"
    run.set_dataset([{"prompt": text, "t": text}, "next"])
    assert split(run, plan(run).digest).exit_code == 0
    first, second = shards(run)[0]
    assert (first.turns[0].value, json.loads(first.source), second.turns[0].value) == (text, {"t": text}, "next")


def test_bad_rows_are_left_out_as_the_plan_left_them_out(run: Run) -> None:
    run.dataset.write_bytes(b'{"prompt": "a"}\n7\n{"prompt": "b"}\n')
    digest = plan(run, on_bad_row="skip").digest
    refused = split(run, digest)
    assert refused.exit_code == 2 and "line 2: a JSON number" in refused.output
    assert split(run, digest, "--on_bad_row", "skip").exit_code == 0
    assert [row.prompt_index for row in shards(run)[0]] == [0, 2]


@pytest.mark.parametrize("name", ["batch_prompts.jsonl", "batch_0.jsonl", "shard_7.jsonl"])
def test_a_dataset_may_be_named_like_a_file_of_the_run(run: Run, name: str) -> None:
    run.dataset = run.dataset.rename(run.dataset.with_name(name))
    run.batch(0, run.row(0))
    before = plan(run)
    assert split(run, before.digest).exit_code == 0
    after = plan(run)
    assert len(after.owed) == 4 and [shard.number for shard in after.shards] == [1, 2]


def test_what_was_noted_of_a_dataset_is_remembered(run: Run) -> None:
    run.dataset.write_bytes(b'{"prompt": "a\\ud800"}\n7\n{"prompt": "b", "image": "x"}\n')
    reading = {"on_bad_row": "skip", "max_samples": None}
    first = take_inventory(run.folder, run.dataset, **reading)
    assert split(run, plan(run, **reading).digest, "--on_bad_row", "skip").exit_code == 0
    again = take_inventory(run.folder, run.dataset, **reading)
    assert again.dataset == first.dataset and (again.dataset.notes.bad, again.dataset.notes.repaired) == (1, 1)
