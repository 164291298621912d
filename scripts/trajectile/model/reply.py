"""What the model said, read from whatever the server sent."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trajectile.model import jsontext, reasoning, sse
from trajectile.model.classify import error_for, from_error, read_refusal
from trajectile.model.errors import Retryable
from trajectile.model.settings import ModelSettings
from trajectile.model.usage import read_usage
from trajectile.rows import ToolCall, Usage

FINISH_NAMES = {"max_tokens": "length", "end_turn": "stop", "tool_use": "tool_calls", "safety": "content_filter"}
# with these an answer may be empty: thinking used up the tokens, or the provider took the words away
MAY_BE_EMPTY = ("length", "content_filter")


class Answer(NamedTuple):
    """An HTTP answer: header names in any case, body decoded from its content encoding."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """One assistant turn.

    `tool_calls` are as sent: names, ids and arguments may be missing, repeated or no JSON. `finish_reason` is `stop`,
    `tool_calls`, `length`, `content_filter` or a word of the server's. `message` is the turn in wire form, for the
    list of messages: reasoning stands in it under the name it came with.
    """

    content: str
    reasoning: str
    tool_calls: list[ToolCall]
    finish_reason: str
    usage: Usage
    message: dict[str, Any]
    latency_s: float


def read_reply(answer: Answer, settings: ModelSettings, latency_s: float) -> Reply:
    """Read an answer to a chat-completions request; raises one of our errors for anything that is no reply."""
    check_status(answer, settings)
    data = parse(answer.body)
    choice = _first_choice(data)
    error = data.get("error") or choice.get("error")
    if error:
        raise error_for(from_error(0, error), answer.headers, settings)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _bad("the answer has no message")
    return _reply(message, choice.get("finish_reason"), read_usage(data.get("usage"), settings), latency_s)


def check_status(answer: Answer, settings: ModelSettings) -> None:
    """Raise one of our errors for an answer that is a refusal."""
    if not 200 <= answer.status < 300:
        raise error_for(read_refusal(answer.status, answer.body), answer.headers, settings)


def _reply(source: dict[str, Any], finish: Any, usage: Usage, latency_s: float) -> Reply:
    message = _wire_message(source)
    calls = [_read_call(item) for item in _call_items(source)]
    if calls:
        message["tool_calls"] = [_wire_call(call) for call in calls]
    thought, content = reasoning.split(message)
    reason = _finish_reason(finish, bool(calls))
    if reason == "error":
        raise Retryable("model_error", "the provider reports that the model failed (finish_reason error)")
    if not calls and not content.strip() and reason not in MAY_BE_EMPTY:
        raise _bad("the answer has neither content nor tool calls")
    if not calls and message["content"] is None:
        message["content"] = ""
    return Reply(content, thought, calls, reason, usage, message, latency_s)


def parse(body: bytes) -> dict[str, Any]:
    """Read the JSON object that an answer is; raises Retryable for anything else."""
    if not body.strip():
        raise _bad("the answer is empty")
    try:
        data = sse.merge(body) if sse.is_stream(body) else jsontext.loads(body)
    except ValueError:
        raise _bad("the answer is not JSON") from None
    except RecursionError:
        raise _bad("the answer is JSON that is nested too deeply") from None
    if not isinstance(data, dict):
        raise _bad("the answer is JSON, but no object")
    return data


def _first_choice(data: dict[str, Any]) -> dict[str, Any]:
    choices = data.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    if data.get("error"):
        return {}
    raise _bad("the answer has no choices")


def _wire_message(source: dict[str, Any]) -> dict[str, Any]:
    content = source.get("content")
    if content is not None and not isinstance(content, str | list):
        raise _bad(f"the content is of type {type(content).__name__}")
    if not content and isinstance(source.get("refusal"), str):
        content = source["refusal"]
    return {"role": "assistant", "content": content or None, **reasoning.fields(source)}


def _call_items(source: dict[str, Any]) -> list[Any]:
    calls = source.get("tool_calls")
    if not calls:
        legacy = source.get("function_call")
        return [{"function": legacy}] if isinstance(legacy, dict) else []
    if not isinstance(calls, list):
        raise _bad(f"tool_calls is of type {type(calls).__name__}")
    return calls


def _read_call(item: Any) -> ToolCall:
    call = item if isinstance(item, dict) else {}
    function = call.get("function") if isinstance(call.get("function"), dict) else {}
    assert isinstance(function, dict)
    return ToolCall(
        id=_text(call.get("id")), name=_text(function.get("name")), arguments=_text(function.get("arguments"))
    )


def _text(value: Any) -> str:
    """Return text as it is, nothing for null, JSON for everything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else jsontext.dumps(value).decode()


def _wire_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish_reason(value: Any, has_calls: bool) -> str:
    if not isinstance(value, str) or not value:
        return "tool_calls" if has_calls else "stop"
    return FINISH_NAMES.get(value.lower(), value.lower())


def _bad(message: str) -> Retryable:
    return Retryable("bad_answer", message)
