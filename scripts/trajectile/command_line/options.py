"""Command-line options made from the settings' schema, so that the two cannot drift."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trajectile.configuration.schema import accepted, kinds_of, schema
from trajectile.step import Step

Command = TypeVar("Command", bound=Callable[..., Any])
EXECUTOR_MARK = "--"


class SnakemakeCommand(Step):
    """A command whose arguments after `--` go to Snakemake as they are, in the context's `obj`; none before it do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index(EXECUTOR_MARK) if EXECUTOR_MARK in args else len(args)
        ctx.obj = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])


def setting_options(command: Command) -> Command:
    """Give a command one option for each setting, with the text that was given or None."""
    for name, entry in reversed(schema()["properties"].items()):
        command = _option(name, entry)(command)
    return command


def _option(name: str, entry: dict[str, Any]) -> Callable[[Command], Command]:
    shown = f"{entry['description']} [{accepted(entry)}]"
    if kinds_of(entry) == ["boolean"]:  # `--verbose` as well as `--verbose=true`
        return click.option(f"--{name}", name, is_flag=False, flag_value="true", help=shown, metavar="[true|false]")
    return click.option(f"--{name}", name, help=shown, metavar="VALUE")
