"""The command line's options are the schema's settings."""

from typing import Any

import click
import pytest
from click.testing import CliRunner
from trajectile.command_line.cli import main
from trajectile.command_line.options import SnakemakeCommand, setting_options
from trajectile.configuration.schema import schema

OWN = {"num_workers", "resume", "dry_run", "status", "watch", "clean", "list_distributions", "api_key"}


@click.command(cls=SnakemakeCommand)
@setting_options
@click.pass_obj
def show(rest: tuple[str, ...], /, **given: Any) -> None:
    click.echo(f"{ {name: value for name, value in given.items() if value is not None} } {rest}")


def test_every_setting_is_an_option_and_there_are_no_others() -> None:
    assert {option.name for option in main.params} == set(schema()["properties"]) | OWN
    assert not set(schema()["properties"]) & OWN


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--max_turns=3"], "{'max_turns': '3'} ()"),
        (["--max_turns", "3"], "{'max_turns': '3'} ()"),
        (["--run_name=20260101"], "{'run_name': '20260101'} ()"),
        (["--run_name", "007"], "{'run_name': '007'} ()"),
        (["--verbose"], "{'verbose': 'true'} ()"),
        (["--verbose=false"], "{'verbose': 'false'} ()"),
        (["--verbose", "true"], "{'verbose': 'true'} ()"),
        (["--verbose", "--seed=1"], "{'verbose': 'true', 'seed': '1'} ()"),
        (["--max_samples=null"], "{'max_samples': 'null'} ()"),
        (["--seed=-1"], "{'seed': '-1'} ()"),
        (["--verbose", "--", "--executor", "slurm"], "{'verbose': 'true'} ('--executor', 'slurm')"),
        ([], "{} ()"),
    ],
)
def test_options_are_handed_over_as_text(arguments: list[str], shown: str) -> None:
    assert CliRunner().invoke(show, arguments).output == f"{shown}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max_turn=3"], "No such option '--max_turn'"),
        (["stray"], "Got unexpected extra argument (stray)"),
        (["--max_turns"], "Option '--max_turns' requires an argument"),
    ],
)
def test_what_is_no_option_ends_with_status_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(show, arguments)
    assert result.exit_code == 2 and message in result.output


def test_help_says_what_each_option_takes() -> None:
    text = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert "--on_bad_row VALUE" in text and "[error or skip]" in text
    assert "[number at least 0 and at most 2, or null]" in text
