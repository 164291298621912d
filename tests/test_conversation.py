import pytest
from trajectile.agent.conversation import start_messages, to_message, to_turns
from trajectile.rows import ToolCall, Turn

CALL = {"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
HUMAN = Turn("human", "hello")
USER = {"role": "user", "content": "hello"}


def test_a_prompt_alone_is_one_message() -> None:
    assert start_messages([HUMAN], "", []) == [USER]


def test_system_prompt_and_examples_come_first() -> None:
    example = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    assert start_messages([HUMAN], "Be brief.", example) == [
        {"role": "system", "content": "Be brief."},
        *example,
        USER,
    ]


def test_a_rows_own_system_turn_joins_the_systems_one_message() -> None:
    turns = [Turn("system", "You are a pirate."), HUMAN]
    head, *rest = start_messages(turns, "Be brief.", [])
    assert head == {"role": "system", "content": "Be brief.\n\nYou are a pirate."} and rest == [USER]
    assert start_messages(turns, "", [])[0]["content"] == "You are a pirate."


def test_system_messages_of_the_prefill_join_the_one_message_too() -> None:
    example = [{"role": "system", "content": "Show your work."}, {"role": "user", "content": "2+2?"}]
    turns = [Turn("system", "You are a pirate."), HUMAN]
    head, *rest = start_messages(turns, "Be brief.", example)
    assert head == {"role": "system", "content": "Be brief.\n\nShow your work.\n\nYou are a pirate."}
    assert rest == [example[1], USER]
    assert start_messages([HUMAN], "", example) == [*example, USER]
    assert len(example) == 2, "the prefill is every prompt's"


def test_given_turns_become_what_servers_speak() -> None:
    turn = Turn("gpt", "", "I think", [ToolCall("c", "terminal", "{}")])
    assert to_message(turn) == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I think",
        "tool_calls": [CALL],
    }
    assert to_message(Turn("tool", "out", tool_call_id="c", name="terminal")) == {
        "role": "tool",
        "content": "out",
        "tool_call_id": "c",
    }


@pytest.mark.parametrize(
    "message",
    [
        {"content": "yes", "reasoning": "hm"},
        {"content": "yes", "reasoning_content": "hm"},
        {"content": "yes", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"content": "<think>hm</think>\n\nyes"},
        {"content": "<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>yes"},
        {"content": "hm</think>yes"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]},
    ],
)
def test_every_spelling_of_reasoning_is_the_same_turn(message: dict[str, object]) -> None:
    assert to_turns([{"role": "assistant", **message}]) == [Turn("gpt", "yes", "hm")]


def test_calls_and_their_results_become_turns() -> None:
    made = to_turns(
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "name": "terminal", "content": "out"},
        ]
    )
    assert made == [
        Turn("gpt", "", "", [ToolCall("c", "terminal", "{}")]),
        Turn("tool", "out", tool_call_id="c", name="terminal"),
    ]


def test_turns_and_messages_are_two_forms_of_one_thing() -> None:
    turns = [Turn("system", "s"), HUMAN, Turn("gpt", "a", "b", [ToolCall("c", "t", "{}")])]
    assert to_turns(to_message(turn) for turn in turns) == turns
