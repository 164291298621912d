"""What is checked before a run, in words that say what to mend."""

import os
from pathlib import Path
from typing import Any

import pytest
from trajectile.errors import UserError
from trajectile.planning.estimate import estimate
from trajectile.planning.preparation import PreparedRun, prepare_run
from trajectile.planning.refusals import refuse_misread_name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(lines: str, **config: Any) -> PreparedRun:
    Path("p.jsonl").write_text(lines)
    return prepare_run({"dataset_file": "p.jsonl", "run_name": "r", "model": "m", **config})


def test_a_plan_is_made_and_nothing_is_written(folder: Path) -> None:
    run = prepared('{"prompt": "a"}\n{"prompt": "b"}\n', batch_size=1)
    assert run.plan.prompts == 2 and len(run.plan.shards) == 2 and run.identity is None
    assert [path.name for path in folder.iterdir()] == ["p.jsonl"]


def test_what_snakemake_would_stumble_over_is_refused() -> None:
    with pytest.raises(UserError, match=r"the braces in \{x\}\.jsonl for wildcards"):
        prepared("", dataset_file="{x}.jsonl")
    ahead = Path("ahead.jsonl")
    ahead.write_text('{"prompt": "a"}\n')
    os.utime(ahead, (4e9, 4e9))
    with pytest.raises(UserError, match=r"in the future, by its time\. Correct that: touch ahead\.jsonl"):
        prepared("", dataset_file="ahead.jsonl")
    Path("data").mkdir()
    Path("data/r").touch()
    with pytest.raises(UserError, match=r"run_name: data/r is a file\. Choose another"):
        prepared('{"prompt": "a"}\n')


def test_images_are_refused_where_the_sandbox_runs_none() -> None:
    rows = '{"prompt": "a"}\n{"prompt": "b", "docker_image": "x"}\n{"prompt": "c", "image": "y"}\n'
    with pytest.raises(UserError) as error:
        prepared(rows, sandbox="local")
    assert str(error.value).startswith(
        "dataset_file: p.jsonl: 2 rows with an image (the first is line 2), which sandbox: local cannot run. "
    )
    assert str(error.value).endswith("take the columns image and docker_image out.")


def test_bad_rows_stop_or_are_noted() -> None:
    with pytest.raises(UserError, match="line 2: a JSON number"):
        prepared('{"prompt": "a"}\n5\n')
    run = prepared('{"prompt": "a"}\n5\n', on_bad_row="skip")
    assert run.plan.prompts == 1 and [problem.line for problem in run.notes.problems] == [2]


def test_toolsets_that_are_missing_stop_or_are_dropped() -> None:
    Path("d.yaml").write_text("own:\n  terminal: 100\n  mcp:gone: 50\n")
    own = {"distributions_file": "d.yaml", "distribution": "own"}
    with pytest.raises(UserError, match=r"'own' needs toolsets (?s:.*)Or set missing_toolsets: drop"):
        prepared('{"prompt": "a"}\n', **own)
    run = prepared('{"prompt": "a"}\n', **own, missing_toolsets="drop")
    assert run.offer.dropped == {"mcp:gone": "mcp_servers names no server 'gone'"}
    assert run.offer.distribution.chances == {"terminal": 100}


def test_what_an_embedded_model_costs_is_not_wondered_at() -> None:
    plain, paid = prepared('{"prompt": "a"}\n', model="local/smollm2-135m"), prepared('{"prompt": "a"}\n')
    assert estimate(plain).endswith(" tokens") and "cost" not in estimate(plain)
    assert "what that costs is not known before the first answers" in estimate(paid)


def test_rows_that_max_samples_leaves_out_are_not_estimated() -> None:
    few, many = ('{"prompt": "a"}\n' * 2, '{"prompt": "a"}\n' * 9999)
    assert estimate(prepared(few)) == estimate(prepared(many, max_samples=2))


def test_an_unknown_distribution_and_an_unreadable_prefill_are_named() -> None:
    with pytest.raises(UserError, match=r"unknown distribution 'none', accepted are: balanced,"):
        prepared('{"prompt": "a"}\n', distribution="none")
    with pytest.raises(UserError, match=r"prefill_messages_file: gone.json cannot be read"):
        prepared('{"prompt": "a"}\n', prefill_messages_file="gone.json")


@pytest.mark.parametrize(
    ("typed", "read"),
    [("run_name=007", "7"), ("run_name=1_0", "10"), ("--config=run_name=00", "0")],
)
def test_a_name_that_snakemake_misread_is_refused(typed: str, read: str) -> None:
    with pytest.raises(UserError, match=f"Snakemake's --config reads .* as {read}, which would be another run."):
        refuse_misread_name(read, ["snakemake", "--config", typed])


def test_a_name_that_snakemake_read_as_typed_is_taken() -> None:
    for arguments in (["run_name=7"], ["other_run_name=8"], ["run_name=8", "run_name=7"], []):
        refuse_misread_name("7", arguments)
