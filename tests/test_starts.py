"""Prompt texts, ShareGPT turns and chat messages as turns."""

from typing import Any

import pytest
from trajectile.dataset.starts import BadStart, start_turns
from trajectile.rows import ToolCall, Turn


def test_a_text_is_one_turn_kept_as_it_is() -> None:
    assert start_turns(" two\nlines ") == [Turn("human", " two\nlines ")]


def test_share_gpt_turns_and_chat_messages_are_the_same() -> None:
    share_gpt = [
        {"from": "system", "value": "brief"},
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": "yes?"},
        {"from": "human", "value": "go"},
    ]
    chat = [
        {"role": "developer", "content": "brief"},
        {"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]},
        {"role": "assistant", "content": "yes?", "tool_calls": None},
        {"role": "user", "content": "go"},
    ]
    wanted = [Turn("system", "brief"), Turn("human", "hi"), Turn("gpt", "yes?"), Turn("human", "go")]
    assert start_turns(share_gpt) == start_turns(chat) == wanted


def test_tool_calls_and_reasoning_of_the_start_are_kept() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": {"command": "é"}}}
    turns = start_turns(
        [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": None, "reasoning_content": "I look", "tool_calls": [call]},
            {"role": "tool", "content": "a file", "tool_call_id": "c1", "name": "terminal"},
        ]
    )
    assert turns[1:] == [
        Turn("gpt", "", "I look", [ToolCall("c1", "terminal", '{"command": "é"}')]),
        Turn("tool", "a file", tool_call_id="c1", name="terminal"),
    ]


BAD = [
    (None, "the prompt is null, a text or a list of turns was expected"),
    (5, "the prompt is a number (5), a text or a list of turns was expected"),
    (True, "the prompt is a boolean (true), a text"),
    ({"a": 1}, 'the prompt is an object ({"a": 1}), a text'),
    ("", "the prompt is empty"),
    (" \n\u2028", "the prompt is empty"),
    ([], "the prompt is an empty list"),
    (["a"], "turn 1 is a string (\"a\"), an object with 'role' and 'content' was expected"),
    ([{"content": "a"}], "turn 1 has no role: 'role' (or 'from') must be one of human, user,"),
    ([{"role": "robot", "content": "a"}], "turn 1 has the role 'robot': 'role' (or 'from') must be"),
    ([{"role": ["user"], "content": "a"}], "turn 1 has the role ['user']"),
    ([{"role": "user", "content": None}], "turn 1 holds null, a text was expected"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "turn 1 holds an array"),
    ([{"role": "user", "content": [{"text": 5}]}], "turn 1 holds an array"),
    ([{"role": "user", "content": " "}], "the prompt is empty: no turn of the user holds a text"),
    ([{"role": "user", "content": "a", "tool_calls": 5}], "turn 1 has a number (5) as tool_calls, a list was expected"),
    ([{"role": "assistant", "content": "", "tool_calls": ["x"]}], "turn 1 has a tool call without a name"),
    ([{"role": "assistant", "tool_calls": [{"function": "x"}]}], "turn 1 has a tool call without a name"),
    ([{"role": "assistant", "tool_calls": [{"function": {"name": 5}}]}], "turn 1 has a tool call without a name"),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "ends with a turn of 'gpt'"),
    ([{"role": "system", "content": "a"}], "ends with a turn of 'system'"),
]


@pytest.mark.parametrize(("start", "message"), BAD, ids=lambda value: str(value)[:40])
def test_what_is_no_start_is_refused_with_its_reason(start: Any, message: str) -> None:
    with pytest.raises(BadStart) as error:
        start_turns(start)
    assert message in str(error.value)
