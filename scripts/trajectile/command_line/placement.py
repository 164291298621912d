"""Where shards run, as Snakemake is told: here by default, else where an executor or a profile takes them."""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

PROFILES = Path(__file__).parents[3] / "profiles"
WORKERS = 4
EXECUTOR_OPTIONS, PROFILE_OPTIONS = ("--executor", "-e"), ("--profile", "--workflow-profile")


class Placement(NamedTuple):
    """Snakemake's arguments, and whether jobs of another machine may come of them."""

    arguments: list[str]
    elsewhere: bool


def place(options: Sequence[str], workers: int | None) -> Placement:
    """Tell Snakemake how many shards to run at once: `workers`, else the profile's number, else WORKERS.

    `options` are what the user has for Snakemake. An executor without a profile gets the profile of its own name.
    """
    executor = _value(options, EXECUTOR_OPTIONS)
    profile = _value(options, PROFILE_OPTIONS) or os.environ.get("SNAKEMAKE_PROFILE", "")
    if executor in ("", "local") and not profile:
        return Placement(["--cores", str(workers or WORKERS), *options], elsewhere=False)
    named = [] if profile or not (PROFILES / executor).is_dir() else ["--workflow-profile", executor]
    jobs = [] if workers is None and (profile or named) else ["--jobs", str(workers or WORKERS)]
    return Placement([*jobs, *named, *options], elsewhere=True)


def _value(options: Sequence[str], names: Sequence[str]) -> str:
    """Return what follows the last of an option's names, as a word of its own or after a `=`."""
    value = ""
    for option, following in pairwise([*options, ""]):
        name, _, joined = option.partition("=")
        if name in names:
            value = joined or following
    return value
