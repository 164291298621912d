"""Long conversations: what is sent of them when the context window nears its end, and what the row keeps."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import Job
from scripted_server.fixture import ScriptedServer
from trajectile.agent.trimming import Trimming, older_results, shortened
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.results.totals import Totals
from trajectile.rows import Trajectory, Usage

RESULT = 8000
WINDOW = {"context_trimming": "trim", "context_window": 8000, "max_tokens": 100}
CALL = {"name": "terminal", "arguments": {"command": f"head -c {RESULT} /dev/zero | tr '\\0' x"}}
REPLIES = [*[{"tool_calls": [CALL], "reasoning": "hm"}] * 6, {"text": "done", "reasoning": "hm"}]
OVERFLOW = {"kind": "answer", "status": 400, "body": {"error": {"message": "context_length_exceeded"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def play(
    root: Path, server: ScriptedServer, faults: list[dict[str, Any]] | None = None, **config: Any
) -> tuple[Trajectory, list[list[dict[str, Any]]]]:
    """Run one prompt of six long results; returns its row and the messages of each request."""
    root.mkdir(exist_ok=True)
    job = Job(root, server, ["long"], **config)
    job.script({"match": "long", "replies": REPLIES, "faults": faults or []}, keep_requests=True)
    assert job.here() == 0
    job.release()
    [row] = job.rows()
    return row, [body["messages"] for body in server.requests()]


def cut(messages: list[dict[str, Any]]) -> list[bool]:
    """Tell of each tool result whether it was sent shortened."""
    return ["[trimmed: " in message["content"] for message in messages if message["role"] == "tool"]


def test_older_results_are_sent_shortened_and_the_row_keeps_them(server: ScriptedServer, tmp_path: Path) -> None:
    whole, sent_whole = play(tmp_path / "a", server)
    row, sent = play(tmp_path / "b", server, **WINDOW)
    assert row.conversations == whole.conversations and row.end_reason == "finished"
    assert not any(map(any, map(cut, sent_whole))) and whole.metadata.trimmed_results == 0
    for earlier, later in pairwise(sent):
        assert not cut(later)[-1], "the newest result is whole"
        assert all(after or not before for before, after in zip(cut(earlier), cut(later), strict=False))
    totals = Totals([])
    totals.add(row)
    assert totals.trimmed_results == row.metadata.trimmed_results == sum(cut(sent[-1])) == 4
    assert [sum(cut(messages)) for messages in sent] == [0, 0, 0, 0, 2, 2, 4], "in steps, for the server's caches"
    [note] = {message["content"] for message in sent[-1] if "[trimmed" in (message["content"] or "")}
    assert note.startswith('{"output": "xxx') and "bytes of this older result are left out" in note
    assert max(sum(len(str(message)) for message in messages) / 4 for messages in sent) < 8000


def test_a_server_that_finds_it_too_long_is_asked_again_with_less(server: ScriptedServer, tmp_path: Path) -> None:
    wide = {**WINDOW, "context_window": 100_000}
    row, sent = play(tmp_path / "a", server, [{**OVERFLOW, "on_calls": [5]}], **wide)
    assert (row.end_reason, row.metadata.trimmed_results, row.api_calls) == ("finished", 3, 7)
    assert (cut(sent[4]), cut(sent[5])) == ([False] * 4, [True] * 3 + [False])
    row, _ = play(tmp_path / "b", server, [{**OVERFLOW, "on_calls": [5, 6]}], **wide)
    assert (row.end_reason, row.partial, row.metadata.trimmed_results) == ("context_overflow", True, 3)
    row, sent = play(tmp_path / "c", server, [{**OVERFLOW, "on_calls": [5]}])
    assert (row.end_reason, len(sent), row.metadata.trimmed_results) == ("context_overflow", 5, 0)


def result(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "name": "t", "content": text}


ASSISTANT = {"role": "assistant", "content": "hm"}


def test_the_estimate_goes_by_what_the_server_said_and_by_bytes_since() -> None:
    trimming = Trimming(load_settings(WINDOW), [])
    messages = [{"role": "user", "content": "a" * 400}]
    assert 100 < trimming.estimate(messages) < 115
    messages += [ASSISTANT]
    trimming.note(Usage(prompt_tokens=2000, completion_tokens=50), 2)
    assert trimming.estimate(messages) == 2050
    messages += [result("x" * 2000)]
    assert 2550 < trimming.estimate(messages) < 2580
    trimming.note(Usage(), 3)
    assert trimming.estimate(messages) > 2550, "a server that tells nothing changes nothing"


def test_short_results_and_the_newest_are_never_shortened() -> None:
    short, long = result("short"), result("é" * 9000)
    messages = [{"role": "user", "content": "go"}, ASSISTANT, short, long, ASSISTANT, long, short]
    assert older_results(messages) == [2, 3]
    trimming = Trimming(load_settings(WINDOW), [])
    assert [place for place, sent in enumerate(trimming.fit(messages)) if sent is not messages[place]] == [3]
    assert trimming.count == 1 and not trimming.tighten(messages)
    assert shortened(long)["content"].endswith(
        "[trimmed: 17,600 of 18,000 bytes of this older result are left out to fit the context window]"
    )
    assert long["content"] == "é" * 9000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"context_trimming": "trim"}, "context_trimming: trim needs context_window"),
        ({**WINDOW, "max_tokens": 8000}, "more than max_tokens: 8000"),
    ],
)
def test_a_window_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_settings(given)
