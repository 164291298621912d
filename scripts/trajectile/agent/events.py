"""What a shard's log says of a prompt: one line an event, with the number of the prompt."""

import logging
from contextvars import ContextVar

from trajectile.rows import PromptRow, ToolCall, Usage

log = logging.getLogger(__name__)
prompt_index: ContextVar[int | None] = ContextVar("prompt_index", default=None)
preview_chars: ContextVar[int] = ContextVar("preview_chars", default=100)


def begin_prompt(row: PromptRow, chars: int) -> None:
    """Log that a prompt starts; later events of this task carry its number."""
    prompt_index.set(row.prompt_index)
    preview_chars.set(chars)
    asked = next((turn.value for turn in reversed(row.turns) if turn.from_ == "human"), "")
    log.info("%s: started: %s", _name(), preview(asked))


def log_wait(reason: str, seconds: float) -> None:
    log.info("%s: waiting %.1f s: %s", _name(), seconds, reason)


def log_reply(number: int, usage: Usage, seconds: float, finish_reason: str, text: str, calls: list[ToolCall]) -> None:
    """Log a model call, where every call is to be logged."""
    if log.isEnabledFor(logging.DEBUG):
        counts = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out, {seconds:.1f} s, {finish_reason}"
        log.debug("%s: model call %d: %s%s", _name(), number, counts, f": {preview(text)}" if text.strip() else "")
        for call in calls:
            log.debug("%s: tool call %s: %s", _name(), call.name or "without a name", preview(call.arguments))


def log_result(name: str, result: str, success: bool) -> None:
    """Log what a tool call gave, where every call is to be logged."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s: tool %s %s: %s", _name(), name, "answered" if success else "failed", preview(result))


def preview(text: str) -> str:
    """Return the beginning of a text, on one line."""
    chars = preview_chars.get()
    line = " ".join(text[: 4 * chars].split())
    return line if len(line) <= chars and len(text) <= 4 * chars else f"{line[:chars]}…"


def _name() -> str:
    number = prompt_index.get()
    return "shard" if number is None else f"prompt {number}"
