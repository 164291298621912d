"""Every spelling of reasoning comes to the same two texts."""

import time
from typing import Any

import pytest
from trajectile.model.reasoning import fields, split

SPELLINGS: list[dict[str, Any]] = [
    {"reasoning": "Why.", "content": "What."},
    {"reasoning_content": "Why.\n", "content": "What."},
    {"reasoning_details": [{"type": "reasoning.text", "text": "Why."}], "content": "What."},
    {"reasoning_details": [{"type": "reasoning.summary", "summary": "Why."}], "content": "What."},
    {"reasoning": "Why.", "reasoning_details": [{"type": "reasoning.text", "text": "Why."}], "content": "What."},
    {"reasoning": None, "content": "<think>Why.</think>What."},
    {"content": "\n<think>\nWhy.\n</think>\n\nWhat."},
    {"content": "<REASONING_SCRATCHPAD>Why.</REASONING_SCRATCHPAD>\nWhat."},
    {"content": "Why.\n</think>\n\nWhat."},
    {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Why."}]},
            {"type": "text", "text": "What."},
        ]
    },
    {"reasoning": "Why.", "content": [{"type": "text", "text": "Wh"}, "at."]},
    {"reasoning_content": "Why.", "content": "<think>Why.</think>\nWhat."},
]


@pytest.mark.parametrize("message", SPELLINGS)
def test_same_split(message: dict[str, Any]) -> None:
    assert split(message) == ("Why.", "What.")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None}, ("", "")),
        ({}, ("", "")),
        ({"content": "What."}, ("", "What.")),
        ({"content": "  What.\n"}, ("", "  What.\n")),
        ({"reasoning": "Why.", "content": None}, ("Why.", "")),
        ({"content": "<think>Why, and never an end"}, ("Why, and never an end", "")),
        ({"content": "<think></think>What."}, ("", "What.")),
        ({"content": "<think>A</think><think>B</think>What."}, ("A\n\nB", "What.")),
        ({"content": "Write <think>x</think> around it."}, ("", "Write <think>x</think> around it.")),
        ({"reasoning": "Why.", "content": "Use </think> to end."}, ("Why.", "Use </think> to end.")),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAA"}], "content": "a"}, ("", "a")),
        ({"reasoning_details": "rubbish", "reasoning": 3, "content": "a"}, ("", "a")),
        ({"content": [None, 3, {"type": "text", "text": None}]}, ("", "")),
    ],
)
def test_edges(message: dict[str, Any], expected: tuple[str, str]) -> None:
    assert split(message) == expected


def test_very_many_blocks_do_not_stop_the_process() -> None:
    started = time.process_time()
    reasoning, content = split({"content": "<think>a</think>" * 200_000 + "What."})
    assert (reasoning.count("a"), content) == (200_000, "What.")
    assert time.process_time() - started < 8, "half a minute, where the rest is copied for each"


def test_fields_keep_their_names() -> None:
    details = [{"type": "reasoning.encrypted", "data": "gAAA"}]
    message = {"content": "a", "reasoning": "Why.", "reasoning_content": None, "reasoning_details": details}
    assert fields(message) == {"reasoning": "Why.", "reasoning_details": details}
