"""How many shards run at once, and where: what batch_runner.py tells Snakemake."""

import pytest
from trajectile.command_line.placement import place

SLURM = ["--workflow-profile", "slurm"]


@pytest.mark.parametrize(
    ("options", "workers", "arguments", "elsewhere"),
    [
        ([], None, ["--cores", "4"], False),
        (["-n"], 7, ["--cores", "7", "-n"], False),
        (["--executor", "local"], 2, ["--cores", "2", "--executor", "local"], False),
        (["--executor", "slurm"], None, [*SLURM, "--executor", "slurm"], True),
        (["--executor=slurm"], 7, ["--jobs", "7", *SLURM, "--executor=slurm"], True),
        (["-e", "elsewhere"], None, ["--jobs", "4", "-e", "elsewhere"], True),
        (["--profile", "mine"], None, ["--profile", "mine"], True),
        (["--profile=mine", "-e", "slurm"], 9, ["--jobs", "9", "--profile=mine", "-e", "slurm"], True),
    ],
)
def test_the_number_of_shards_goes_to_where_they_run(
    options: list[str], workers: int | None, arguments: list[str], elsewhere: bool
) -> None:
    assert place(options, workers) == (arguments, elsewhere)


def test_a_profile_of_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "site")
    assert place([], None) == ([], True)
    assert place([], 3) == (["--jobs", "3"], True)
