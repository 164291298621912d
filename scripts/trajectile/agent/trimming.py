"""Fits long conversations into the model's context window: older tool results are sent shortened."""

from typing import Any

from trajectile.configuration.settings import Settings
from trajectile.model import jsontext
from trajectile.rows import Usage

Message = dict[str, Any]
BYTES_PER_TOKEN = 4
# Shorter results are sent whole: the note would take as much as it saves.
SHORT_BYTES = 1000
HEAD_CHARACTERS = 200
# Room for an answer where max_tokens names none, and how much is made free at once: each trimming changes the start of
# the conversation, which servers then read anew instead of from their caches.
ANSWER_SHARE = 1 / 8
FREED_SHARE = 1 / 4


class Trimming:
    """What of one conversation is sent shortened; once shortened, a result stays so.

    The size of the conversation is what the server last said of it, and four bytes a token for what came since.
    """

    def __init__(self, settings: Settings, schemas: list[dict[str, Any]]) -> None:
        window = settings.context_window if settings.context_trimming == "trim" else None
        room = settings.max_tokens or int((window or 0) * ANSWER_SHARE)
        self._limit = None if window is None else window - room
        self._short: dict[int, Message] = {}
        self._known, self._saved_bytes = 0, 0
        self._tokens = 0.0 if window is None else size(schemas) / BYTES_PER_TOKEN

    @property
    def count(self) -> int:
        """The results that were sent shortened."""
        return len(self._short)

    def fit(self, messages: list[Message]) -> list[Message]:
        """Return what to send of `messages`, after shortening the oldest results where they do not fit."""
        if self._limit is None:
            return messages
        if self.estimate(messages) > self._limit:
            self._shorten(messages, self._limit * (1 - FREED_SHARE))
        return [self._short.get(place, message) for place, message in enumerate(messages)]

    def tighten(self, messages: list[Message]) -> bool:
        """Shorten all older results, since the server found them too long; False where there are none to shorten."""
        before = self.count
        if self._limit is not None:
            self._shorten(messages, 0)
        return self.count > before

    def estimate(self, messages: list[Message]) -> float:
        """Return about how many tokens `messages` have, as they would be sent now."""
        new = sum(size(message) for message in messages[self._known :])
        return self._tokens + (new - self._saved_bytes) / BYTES_PER_TOKEN

    def note(self, usage: Usage, count: int) -> None:
        """Learn from an answer how many tokens the first `count` messages have, the answer included."""
        if usage.prompt_tokens:
            self._known, self._saved_bytes = count, 0
            self._tokens = usage.prompt_tokens + usage.completion_tokens

    def _shorten(self, messages: list[Message], target: float) -> None:
        excess_bytes = (self.estimate(messages) - target) * BYTES_PER_TOKEN
        for place in older_results(messages):
            if excess_bytes <= 0:
                return
            if place not in self._short and size(messages[place]) > SHORT_BYTES:
                self._short[place] = shortened(messages[place])
                saved = size(messages[place]) - size(self._short[place])
                self._saved_bytes += saved
                excess_bytes -= saved


def older_results(messages: list[Message]) -> list[int]:
    """Return the places of tool results that the model has answered to, the oldest first."""
    newest = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=0)
    return [place for place, message in enumerate(messages[:newest]) if message["role"] == "tool"]


def shortened(message: Message) -> Message:
    """Return a tool result with the head of its text and a note in place of the rest."""
    text = message["content"]
    head = text[:HEAD_CHARACTERS]
    cut, whole = (len(part.encode("utf-8", "replace")) for part in (text[HEAD_CHARACTERS:], text))
    note = f"[trimmed: {cut:,} of {whole:,} bytes of this older result are left out to fit the context window]"
    return message | {"content": f"{head}\n{note}"}


def size(value: Any) -> int:
    """Return the bytes of a message as it is sent."""
    return len(jsontext.dumps(value))
