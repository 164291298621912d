"""A refusal of the server as one of our errors."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trajectile.errors import PromptError
from trajectile.model import jsontext, wordings
from trajectile.model.errors import (
    ContentFilter,
    ContextOverflow,
    NoCredit,
    NotAllowed,
    Retryable,
    UnknownModel,
    WrongKey,
)
from trajectile.model.retry_after import asked_wait_s
from trajectile.model.settings import ModelSettings

QUOTE_CHARS = 300
READ_CHARS = 16_384
# no place is read twice: looking for the end of what is not closed from each `<` anew takes minutes
_TAGS = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_SPACE = re.compile(r"\s+")


class Refusal(NamedTuple):
    """What a server said: HTTP status or code of an error body (0 where there is none), texts and metadata.

    `is_page` marks HTML, which a proxy or firewall writes rather than the model server.
    """

    status: int
    text: str
    message: str
    metadata: Mapping[str, Any]
    is_page: bool


def read_refusal(status: int, body: bytes) -> Refusal:
    """Read the body of a refusal; takes OpenAI's form, a list around it, bare messages, plain text and HTML.

    Texts are read as far as `READ_CHARS`.
    """
    try:
        data = jsontext.loads(body)
    except (ValueError, RecursionError):
        text = _cut(body.strip()[: 4 * READ_CHARS].decode("utf-8", "replace"))
        is_page = text.startswith("<")
        return Refusal(status, "" if is_page else text, _TAGS.sub(" ", text), {}, is_page)
    if isinstance(data, list) and data:
        data = data[0]
    return from_error(status, data.get("error", data) if isinstance(data, dict) else data)


def from_error(status: int, error: Any) -> Refusal:
    """Read an error object; its own code stands in for a status of 0."""
    if not isinstance(error, dict):
        return Refusal(status, _cut(error), _cut(error), {}, False)
    message = error.get("message") or error.get("detail") or error
    metadata = error.get("metadata") if isinstance(error.get("metadata"), dict) else {}
    upstream = metadata.get("raw") or "" if isinstance(metadata, dict) else ""
    text = " ".join(_cut(part) for part in (error.get("code"), error.get("type"), message, upstream))
    return Refusal(status or _status(error), text, _cut(message), metadata or {}, False)


def _cut(value: Any) -> str:
    return str(value)[:READ_CHARS]


def error_for(refusal: Refusal, headers: Mapping[str, str], settings: ModelSettings) -> Exception:
    """Return the error that a refusal stands for, with a message that says what to do where the user must act."""
    return _by_wording(refusal, settings) or _by_user(refusal, settings) or _by_status(refusal, headers, settings)


def _by_wording(refusal: Refusal, settings: ModelSettings) -> Exception | None:
    status, text = refusal.status, refusal.text
    said = _said(refusal, settings)
    if status == 413 or (status in (0, 400, 422, 500) and wordings.OVERFLOW.search(text)):
        return ContextOverflow(said)
    if status in (0, 400, 403, 422, 451) and wordings.FILTERED.search(text):
        return ContentFilter(said)
    if status in (0, 400, 422, 500) and wordings.BAD_CALL.search(text):
        return Retryable("bad_answer", said)
    return None


def _by_user(refusal: Refusal, settings: ModelSettings) -> Exception | None:
    status, text = refusal.status, refusal.text
    said = _said(refusal, settings)
    if status == 402 or (400 <= status < 500 and wordings.NO_CREDIT.search(text)):
        return NoCredit(f"The account at {settings.endpoint} is out of credit: add credit, then run again. ({said})")
    if status == 401 or (status in (0, 400) and wordings.WRONG_KEY.search(text)):
        return WrongKey(
            f"{settings.endpoint} refuses the key: set TRAJECTILE_API_KEY to a key that is valid there. ({said})"
        )
    if status == 403 and not refusal.is_page:
        return NotAllowed(
            f"{settings.endpoint} does not let this key use {settings.model}: "
            f"check the key's rights and limits, or set another model. ({said})"
        )
    if status == 404 or (status in (0, 400) and wordings.NO_MODEL.search(text)):
        return UnknownModel(
            f"{settings.endpoint} has no model {settings.model}, or no chat completions there: "
            f"check model and base_url. ({said})"
        )
    return None


def _by_status(refusal: Refusal, headers: Mapping[str, str], settings: ModelSettings) -> Exception:
    status, said = refusal.status, _said(refusal, settings)
    if status == 429:
        return Retryable("rate_limit", said, wait_s=asked_wait_s(headers, refusal.metadata))
    if status == 503:
        return Retryable("server_error", said, wait_s=asked_wait_s(headers, refusal.metadata))
    if status == 408:
        return Retryable("timeout", said)
    if status >= 500 or status in (409, 425):
        return Retryable("server_error", said)
    if 300 <= status < 400:
        target = _quote(headers.get("location", "nowhere"), settings)
        return PromptError("bad_answer", f"HTTP {status}: the server redirects to {target}: check base_url")
    if status >= 400:
        return PromptError("bad_request", said)
    return Retryable("model_error", said)


def _said(refusal: Refusal, settings: ModelSettings) -> str:
    quote = _quote(refusal.message, settings)
    code = f"HTTP {refusal.status}" if refusal.status else "error in the answer"
    return f"{code}: {quote}" if quote else code


def _quote(text: str, settings: ModelSettings) -> str:
    """Shorten to one line in which the key does not stand: some servers echo it."""
    line = _SPACE.sub(" ", jsontext.clean(text)).strip()
    if settings.api_key:
        line = line.replace(settings.api_key, "***")
    return line if len(line) <= QUOTE_CHARS else line[:QUOTE_CHARS] + "…"


def _status(error: dict[str, Any]) -> int:
    """Return the HTTP status that an error in a 200 answer stands for, 0 where it names none."""
    for value in (error.get("code"), error.get("status"), error.get("status_code")):
        digits = str(value)
        if len(digits) == 3 and digits.isdecimal() and 400 <= int(digits) < 600:
            return int(digits)
    name = f"{error.get('code')} {error.get('type')}".lower()
    if "rate_limit" in name:
        return 429
    return 0
