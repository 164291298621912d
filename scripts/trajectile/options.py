"""Command-line options made from the settings' schema, so that the two cannot drift."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import yaml

from trajectile.settings import accepted, schema

Command = TypeVar("Command", bound=Callable[..., Any])


class SettingType(click.ParamType[Any]):
    """Takes what a configuration file would: the text is read as YAML where the setting is no text."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.name = accepted(entry)
        self._is_text = entry.get("type") == "string" or "enum" in entry

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or self._is_text:
            return value
        try:
            return yaml.safe_load(value)
        except yaml.YAMLError:
            return value


def setting_options(command: Command) -> Command:
    """Give a command one option for each setting, None where it is not given."""
    for name, entry in reversed(schema()["properties"].items()):
        command = _option(name, entry)(command)
    return command


def _option(name: str, entry: dict[str, Any]) -> Callable[[Command], Command]:
    shown = f"{entry['description']} [{accepted(entry)}]"
    if entry.get("type") == "boolean":  # `--verbose` as well as `--verbose=true`
        return click.option(f"--{name}", name, type=SettingType(entry), is_flag=False, flag_value="true", help=shown)
    return click.option(f"--{name}", name, type=SettingType(entry), help=shown)
