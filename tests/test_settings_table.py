"""The table of settings in config/README.md is the schema's."""

import re
from pathlib import Path

import yaml
from trajectile.command_line.settings_table import settings_table, with_table
from trajectile.configuration.schema import schema

CONFIG = Path(__file__).parents[1] / "config"


def test_the_table_in_the_readme_is_current() -> None:
    text = (CONFIG / "README.md").read_text(encoding="utf-8")
    assert settings_table() in text and with_table(text) == text, (
        "run: PYTHONPATH=scripts python -m trajectile.command_line.settings_table config/README.md"
    )


def test_the_table_names_every_setting_once_with_what_is_fixed() -> None:
    rows = [line.split(" | ") for line in settings_table().splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(schema()["properties"])
    fixed = {row[0].strip("| `") for row in rows if row[3] == "yes"}
    assert fixed == {name for name, entry in schema()["properties"].items() if entry.get("x-frozen")}


def test_a_document_keeps_what_is_around_the_table() -> None:
    text = (CONFIG / "README.md").read_text(encoding="utf-8")
    assert with_table(f"{text}after\n") == f"{text}after\n"


def test_the_configuration_file_and_the_readme_use_settings_that_exist() -> None:
    known = schema()["properties"]
    assert yaml.safe_load((CONFIG / "config.yaml").read_text(encoding="utf-8")).keys() <= known.keys()
    named = re.findall(r"--config (\w+)=|^\| `config/config.yaml` \| `(\w+):", (CONFIG / "README.md").read_text(), re.M)
    assert {name for pair in named for name in pair if name} - {"api_key"} <= known.keys()
