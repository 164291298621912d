"""What a tool is, what it is given, and what its result means."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import msgspec

from trajectile.sandbox.base import Sandbox

Arguments = dict[str, Any]
ERROR_CHARACTERS = 1000


class State(Protocol):
    """Something a toolset keeps for one prompt."""

    async def close(self) -> None: ...


S = TypeVar("S", bound=State)


@dataclass
class ToolContext:
    """A prompt's sandbox and limits (seconds, bytes), and what its toolsets keep between calls."""

    sandbox: Sandbox
    command_timeout_s: float
    output_limit: int
    _states: dict[type[State], State] = field(default_factory=dict)

    def state(self, kind: type[S]) -> S:
        """This prompt's one object of `kind`, made at the first call."""
        if kind not in self._states:
            self._states[kind] = kind()
        return cast(S, self._states[kind])

    async def close(self) -> None:
        while self._states:
            await self._states.popitem()[1].close()


Handler = Callable[[ToolContext, Arguments], Awaitable[str]]


@dataclass(frozen=True)
class Tool:
    """A function the model can call: `parameters` is the JSON schema of its arguments, the handler's result is text."""

    name: str
    toolset: str
    description: str
    parameters: dict[str, Any]
    handler: Handler


def parameters(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an arguments object that takes `properties` and nothing else."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def as_json(**result: Any) -> str:
    return json.dumps(result, ensure_ascii=False)


def error(message: str) -> str:
    """A failure, told to the model in a few words of valid text."""
    text = message if len(message) <= ERROR_CHARACTERS else f"{message[:ERROR_CHARACTERS]}…"
    return as_json(error=text.encode("utf-8", "replace").decode("utf-8"))


def is_failure(result: str) -> bool:
    """Whether a tool call failed: JSON with an `error` (at the top or under `content`) or `success: false`, or text
    that is empty or begins with "Error:". An exit code is no failure: the model can react to it."""
    if not result.strip() or result.startswith("Error:"):
        return True
    try:
        data = msgspec.json.decode(result)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    if not isinstance(data, dict):
        return False
    content = data.get("content")
    below = content.get("error") if isinstance(content, dict) else None
    return data.get("error") is not None or below is not None or data.get("success") is False
