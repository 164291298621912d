"""Example messages from a file."""

import json
from pathlib import Path

import pytest
from trajectile.agent.prefill import load_prefill
from trajectile.errors import UserError


def test_no_file_means_no_messages() -> None:
    assert load_prefill("") == []


def test_messages_are_taken_as_they_are(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "b", "tool_call_id": "c1"},
    ]
    (tmp_path / "p.json").write_text(json.dumps(messages))
    assert load_prefill(str(tmp_path / "p.json")) == messages


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "must hold an array of messages such as"),
        ("[", "is not JSON"),
        ('[{"role": "user", "content": "a"}, 5]', "item 2 is no message such as"),
        ('[{"role": "robot", "content": "a"}]', "item 1 is no message such as"),
        ('[{"role": "user", "content": null}]', "item 1 is no message such as"),
        ('[{"role": ["user"], "content": "a"}]', "item 1 is no message such as"),
        ('[{"role": "assistant", "content": null, "tool_calls": []}]', "item 1 is no message such as"),
        ('[{"role": "assistant", "content": "a", "tool_calls": [5]}]', "item 1 is no message such as"),
        ('[{"role": "assistant", "content": "a", "tool_calls": [{"id": "c"}]}]', "item 1 is no message such as"),
    ],
)
def test_what_is_no_message_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(UserError, match=f"prefill_messages_file: .*p.json.*{message}"):
        load_prefill(str(tmp_path / "p.json"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.json cannot be read: No such file"):
        load_prefill(str(tmp_path / "none.json"))
