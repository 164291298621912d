"""Settings from a configuration: defaults, what is refused and in which words, what is fixed for a run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from trajectile.configuration.frozen import frozen_settings, settings_digest
from trajectile.configuration.schema import read_value, schema
from trajectile.configuration.settings import Settings, load_settings
from trajectile.errors import UserError


def test_the_schema_and_the_typed_settings_have_the_same_names() -> None:
    assert list(schema()["properties"]) == list(Settings.__struct_fields__)
    for name, entry in schema()["properties"].items():
        assert {"default", "description"} <= entry.keys(), name
        assert "type" in entry or "enum" in entry, name


def test_defaults_fill_what_is_left_out() -> None:
    settings = load_settings({"run_name": "a", "max_turns": 3})
    assert (settings.max_turns, settings.max_samples, settings.require_reasoning) == (3, None, "auto")
    assert settings.folder == Path("data/a") and load_settings(msgspec.structs.asdict(settings)) == settings


SPELLED = [
    ("run_name", 20260101, "20260101"),
    ("run_name", "007", "007"),
    ("max_turns", "12", 12),
    ("max_turns", 12.0, 12),
    ("temperature", "1e-3", 0.001),
    ("temperature", "null", None),
    ("max_samples", "None", None),
    ("max_samples", "", None),
    ("verbose", "True", True),
    ("preflight", "false", False),
    ("require_reasoning", True, "true"),
    ("require_reasoning", "False", "false"),
    ("on_bad_row", "SKIP", "skip"),
    ("command_timeout", 5, 5.0),
    ("ephemeral_system_prompt", "null", "null"),
    ("model", "7", "7"),
]


@pytest.mark.parametrize(("name", "given", "wanted"), SPELLED)
def test_a_value_may_come_as_text_or_as_yaml_reads_it(name: str, given: Any, wanted: Any) -> None:
    value = getattr(load_settings({name: given}), name)
    assert value == wanted and type(value) is type(wanted)


REFUSED = [
    ("max_turns", 0, "0 is not accepted; expected whole number at least 1"),
    ("max_turns", 1.5, "1.5 is not accepted; expected whole number at least 1"),
    ("max_turns", True, "True is not accepted; expected whole number at least 1"),
    ("max_turns", None, "None is not accepted; expected whole number at least 1"),
    ("batch_size", 10**7, "10000000 is not accepted; expected whole number at least 1 and at most 1,000,000"),
    ("temperature", "hot", "'hot' is not accepted; expected number at least 0 and at most 2, or null"),
    ("top_p", 0, "0 is not accepted; expected number above 0 and at most 1, or null"),
    ("command_timeout", "nan", "nan is not accepted; expected number above 0"),
    ("command_timeout", float("inf"), "inf is not accepted; expected number above 0"),
    ("seed", 2**63, "9223372036854775808 is not accepted; expected whole number of 64 bits"),
    ("verbose", "maybe", "'maybe' is not accepted; expected true or false"),
    ("on_bad_row", "ignore", "'ignore' is not accepted; expected error or skip"),
    ("require_reasoning", "yes", "'yes' is not accepted; expected auto or true or false"),
    ("dataset_file", "", "'' is not accepted; expected non-empty text"),
    ("base_url", "openrouter.ai", "'openrouter.ai' is not accepted; expected text beginning with http:// or https://"),
    ("run_name", "../x", "'../x' is not accepted; expected text of up to 100 letters, digits"),
    ("run_name", ".hidden", "'.hidden' is not accepted; expected text of"),
    ("run_name", "a/b", "'a/b' is not accepted; expected text of"),
    ("run_name", "", "'' is not accepted; expected text of"),
    ("run_name", "a" * 101, "is not accepted; expected text of"),
    ("run_name", 1e3, "1000.0 is not accepted; expected text of"),
    ("max_turn", 3, "there is no such setting; did you mean max_turns?"),
    ("zzz", 3, "there is no such setting; the settings are dataset_file, run_name, batch_size,"),
]


@pytest.mark.parametrize(("name", "value", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_with_what_is_accepted(name: str, value: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        load_settings({name: value})
    assert str(error.value).startswith(f"{name}: ") and message in str(error.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UserError) as error:
        load_settings({"max_turns": 0, "sandbox": "moon", "foo": 1, "bar": 2})
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == ["bar", "foo", "max_turns", "sandbox"]


def test_a_key_in_the_configuration_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError, match="environment as TRAJECTILE_API_KEY") as error:
        load_settings({"api_key": "canary"})
    assert "canary" not in str(error.value)


@pytest.mark.parametrize(
    "address", ["https://user:canary@host/v1", "http://canary@host", "ftp://u:canary@h", "https://u:c@nary@host/v1"]
)
def test_a_password_in_the_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UserError, match=r"base_url: .* leave them out\. A key goes into the environment") as error:
        load_settings({"base_url": address})
    assert "canary" not in str(error.value) and "c@nary" not in str(error.value)
    with pytest.raises(UserError, match="sandbox_network: '//…@h' is not accepted") as error:
        load_settings({"sandbox_network": "//u:canary@h"})


@pytest.mark.parametrize(
    "change",
    [
        {"model": "b"},
        {"max_turns": 3},
        {"temperature": 0.5},
        {"base_url": "http://other.example/v1"},
        {"ephemeral_system_prompt": "x"},
        {"seed": 1},
    ],
)
def test_what_shapes_rows_is_fixed(change: dict[str, Any]) -> None:
    assert digest(change) != digest({})


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 3},
        {"concurrency": 1},
        {"base_url": "http://endpoint.example:8000/v2"},
        {"command_timeout": 1},
        {"verbose": True},
    ],
)
def test_what_does_not_shape_rows_is_free(change: dict[str, Any]) -> None:
    assert digest(change) == digest({})


def digest(change: dict[str, Any]) -> str:
    base = {"model": "a", "base_url": "http://endpoint.example/v1"}
    return settings_digest(frozen_settings(load_settings(base | change)))


def test_prompt_texts_are_fixed_by_their_digest_alone(tmp_path: Path) -> None:
    prefill = tmp_path / "prefill.json"
    prefill.write_text("[]")
    config = {"ephemeral_system_prompt": "secret plan", "prefill_messages_file": str(prefill)}
    before = frozen_settings(load_settings(config))
    assert "secret plan" not in str(before) and str(prefill) not in str(before)
    prefill.write_text("[ ]")
    assert frozen_settings(load_settings(config)) != before
    prefill.unlink()
    with pytest.raises(UserError, match=r"prefill_messages_file: .* cannot be read"):
        frozen_settings(load_settings(config))


def test_text_that_stands_for_nothing_known_stays_for_the_refusal() -> None:
    assert read_value({"type": "integer"}, "ten") == "ten"
    assert read_value({"type": "boolean"}, 1) == 1
