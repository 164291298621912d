"""What a tool is, what it is given, and what its result means."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import msgspec

from trajectile.configuration.settings import Settings
from trajectile.model.settings import ModelSettings
from trajectile.rows import Usage
from trajectile.sandbox.base import Sandbox

Arguments = dict[str, Any]
ERROR_CHARACTERS = 1000
log = logging.getLogger(__name__)


class State(Protocol):
    """Something that tools keep between calls."""

    async def close(self) -> None: ...


S = TypeVar("S", bound=State)


class States:
    """Objects of tools, one of a kind, closed in reverse order; and what models cost that tools called."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._kept: dict[type[State], State] = {}

    def get(self, kind: type[S], *arguments: Any) -> S:
        """The one object of `kind`, made of `arguments` at the first call."""
        if kind not in self._kept:
            self._kept[kind] = kind(*arguments)
        return cast(S, self._kept[kind])

    async def close(self) -> None:
        """Close all; one that cannot be closed costs neither the others nor what was made with them."""
        while self._kept:
            kind, state = self._kept.popitem()
            try:
                await state.close()
            except Exception:
                log.exception("%s of a tool cannot be closed", kind.__name__)


@dataclass
class ToolContext:
    """What a call works with: its prompt's sandbox and offered tools, the run's settings, and what tools keep.

    `model` is how the run's own model is asked, key included.
    `own` lasts for the prompt, `shared` for the process and all its prompts (a browser, connections). `inner_calls`
    are the calls that tools made of other tools, by name and success; tool_stats count them with the model's own.
    """

    sandbox: Sandbox
    settings: Settings
    model: ModelSettings
    tools: Mapping[str, "Tool"] = field(default_factory=dict)
    shared: States = field(default_factory=States)
    own: States = field(default_factory=States)
    inner_calls: list[tuple[str, bool]] = field(default_factory=list)

    def spend(self, usage: Usage) -> None:
        """Count what a tool's model call cost, for the row and for the run's limits."""
        self.own.usage += usage
        self.shared.usage += usage

    async def close(self) -> None:
        await self.own.close()


Handler = Callable[[ToolContext, Arguments], Awaitable[str]]


def ready(settings: Settings) -> str:
    """The requirement of a tool that has none."""
    return ""


@dataclass(frozen=True)
class Tool:
    """A function the model can call: `parameters` is the JSON schema of its arguments, the handler's result is text.

    `requirement` says in a few words what the tool lacks on this machine and where to set it, "" where nothing; it is
    asked at every start and must be quick.
    """

    name: str
    toolset: str
    description: str
    parameters: dict[str, Any]
    handler: Handler
    requirement: Callable[[Settings], str] = ready


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
