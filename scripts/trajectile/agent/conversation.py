"""Messages as servers speak them, and turns as rows keep them."""

from collections.abc import Iterable
from itertools import dropwhile
from typing import Any

from trajectile.agent.calls import wire_call
from trajectile.model.reasoning import split
from trajectile.rows import ToolCall, Turn

Message = dict[str, Any]
ROLE_OF = {"human": "user", "gpt": "assistant", "tool": "tool", "system": "system"}
FROM_OF = {role: name for name, role in ROLE_OF.items()}


def start_messages(turns: Iterable[Turn], system_prompt: str, prefill: list[Message]) -> list[Message]:
    """Return what the model first sees: the ephemeral system prompt, the prefill messages, then the prompt's turns.

    Many templates take one system message only: those that any of the three begins with are joined into the first.
    """
    shown, examples = _without_system(prefill)
    own, messages = _without_system([to_message(turn) for turn in turns])
    system = [*([system_prompt] if system_prompt else []), *shown, *own]
    head = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    return [*head, *examples, *messages]


def _without_system(messages: list[Message]) -> tuple[list[str], list[Message]]:
    """Return the texts of the system messages at the front, and the rest."""
    rest = list(dropwhile(lambda message: message["role"] == "system", messages))
    return [message["content"] for message in messages[: len(messages) - len(rest)]], rest


def to_message(turn: Turn) -> Message:
    """Return a given turn as a chat message."""
    message: Message = {"role": ROLE_OF[turn.from_], "content": turn.value}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [wire_call(call) for call in turn.tool_calls]
    if turn.from_ == "tool":
        message["tool_call_id"] = turn.tool_call_id
    return message


def to_turns(messages: Iterable[Message]) -> list[Turn]:
    """Return messages of an episode as turns."""
    return [_turn(message) for message in messages]


def _turn(message: Message) -> Turn:
    if message["role"] == "assistant":
        reasoning, content = split(message)
        return Turn("gpt", content, reasoning, [_call(call) for call in message.get("tool_calls") or ()])
    return Turn(
        FROM_OF[message["role"]],
        message["content"],
        tool_call_id=message.get("tool_call_id", ""),
        name=message.get("name", ""),
    )


def _call(call: Message) -> ToolCall:
    return ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
