"""run.json, as it is written and read."""

from pathlib import Path
from typing import Any

import pytest
from trajectile.configuration.settings import Settings, load_settings
from trajectile.errors import UserError
from trajectile.run_folder.identity import Identity, new_identity, read_identity, write_identity
from trajectile.run_folder.paths import RunFolder

BASE = {"model": "a", "base_url": "http://one.example/v1", "run_name": "r", "max_samples": 10}


def settings(**changes: Any) -> Settings:
    return load_settings(BASE | changes)


OFFER = {"terminal": ["terminal", "process"]}


def identity(
    before: Identity | None = None, offer: dict[str, list[str]] = OFFER, version: int = 1, **changes: Any
) -> Identity:
    return new_identity(
        settings(**changes),
        before,
        chances={"terminal": 100.0},
        dropped=[],
        toolsets=offer,
        tool_schemas=[{"function": {"name": name}, "version": version} for tools in offer.values() for name in tools],
        dataset={},
        isolation="none",
    )


def test_run_json_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder, made = RunFolder(tmp_path), identity(ephemeral_system_prompt="secret plan")
    assert read_identity(folder) is None
    write_identity(folder, made)
    assert read_identity(folder) == made and b"secret plan" not in folder.run_json.read_bytes()
    folder.run_json.write_bytes(folder.run_json.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"run.json is damaged .*Restore it, or choose another run_name"):
        read_identity(folder)


def test_what_earlier_starts_offered_stays_known() -> None:
    first = identity(offer={"terminal": ["terminal"], "mcp:docs": ["look_up", "list"]})
    second = identity(first, offer={"terminal": ["terminal", "process"]}, version=2)
    assert second.toolsets == {"terminal": ["terminal", "process"], "mcp:docs": ["look_up", "list"]}
    assert second.tools == ["list", "look_up", "process", "terminal"]
    assert {each["function"]["name"]: each["version"] for each in second.tool_schemas} == {
        **dict.fromkeys(("terminal", "process"), 2),
        **dict.fromkeys(("look_up", "list"), 1),
    }
