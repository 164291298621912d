"""The exports through the consumers' own loaders, in the environments of `python tests/consumers/run.py`."""

import json
import os
from pathlib import Path

import pytest
from exports_samples import export, folder_of, sample_run, summary_of, write_statistics
from results_files import lines_of
from trajectile.exports.formats import FORMATS
from trajectile.rows import Trajectory

from consumers.environments import python_of, run_check

pytestmark = [pytest.mark.consumers, pytest.mark.timeout(900)]
CACHE = Path(os.environ.get("TRAJECTILE_CONSUMERS", ""))
LINES = ["hermes", "llamafactory", "parquet"]


def check(environment, name, *arguments):
    if not python_of(CACHE, environment).exists():
        pytest.skip("set TRAJECTILE_CONSUMERS to the environments that tests/consumers/run.py made")
    counts = json.loads(run_check(CACHE, environment, name, *map(str, arguments)))
    print(f"\n{counts}")
    return counts


@pytest.fixture(scope="module", params=["object", "string"])
def run(request, tmp_path_factory):
    run = sample_run(tmp_path_factory.mktemp(request.param))
    write_statistics(run)
    options = ("--export_validation_fraction", "0.3", "--export_arguments", request.param)
    export(run, *[option for name in FORMATS for option in ("--exports", name)], *options)
    return run


@pytest.fixture
def objects(run):
    """Whether arguments are objects in this run."""
    return summary_of(run, "messages").options["arguments"] == "object"


def rows_out(run, name):
    return summary_of(run, name).rows_out


def test_datasets_loads_every_folder(run):
    counts = check("trl", "datasets", run.folder.root / "exports", "messages", *LINES)
    assert list(counts.values()) == [rows_out(run, name) for name in ("messages", *LINES)]


def test_tool_calls_may_come_after_any_number_of_rows_without(tmp_path):
    """A guess from the first 10 MB, as `datasets` makes without a card, would go wrong."""
    run = sample_run(tmp_path)
    rows = run.folder.trajectories.read_bytes()
    plain = lines_of(run.folder.trajectories, Trajectory)[0]
    plain.conversations[-1].value = "word " * 5_000
    run.write(run.folder.trajectories, *[plain] * 600, tail=rows)
    write_statistics(run)
    export(run, *[option for name in ("messages", *LINES) for option in ("--exports", name)])
    counts = check("trl", "datasets", run.folder.root / "exports", "messages", *LINES)
    assert list(counts.values()) == [rows_out(run, name) for name in ("messages", *LINES)]
    assert min(counts.values()) > 600


@pytest.mark.parametrize("environment", ["axolotl", "llamafactory"])
def test_older_datasets_load_what_needs_no_json_type(run, objects, environment):
    names = LINES if objects and environment == "llamafactory" else ["messages", *LINES]
    counts = check(environment, "datasets", run.folder.root / "exports", *names)
    assert list(counts.values()) == [rows_out(run, name) for name in names]


def test_trl_renders_and_prepares_messages(run, objects):
    if not objects:
        pytest.skip("TRL's documents ask for objects")
    counts = check("trl", "trl", folder_of(run, "messages"))
    train = summary_of(run, "messages").splits["train"]
    assert len(counts) == 10 and set(counts.values()) <= {train, train - 1} and list(counts.values())[-1] == train


def test_axolotl_tokenizes_messages(run):
    counts = check("axolotl", "axolotl", folder_of(run, "messages"))
    assert sum(counts.values()) == rows_out(run, "messages")


def test_llamafactory_converts_and_encodes(run):
    counts = check("llamafactory", "llamafactory", folder_of(run, "llamafactory"))
    assert sum(counts.values()) == 2 * rows_out(run, "llamafactory")


def test_harbor_validates_atif(run):
    counts = check("harbor", "harbor", folder_of(run, "atif"))
    assert sum(counts.values()) == rows_out(run, "atif")
