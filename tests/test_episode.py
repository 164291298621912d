import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import Recorder, without_times
from scripted_server.fixture import ScriptedServer
from trajectile.agent.episode import EpisodeSettings, reasoning_stats, run_episode, tool_stats
from trajectile.agent.prefill import load_prefill
from trajectile.configuration.settings import load_settings
from trajectile.dataset.work import prompt_key
from trajectile.errors import PromptError
from trajectile.model.client import ModelClient
from trajectile.model.settings import ModelSettings
from trajectile.rows import PromptRow, ReasoningStats, ToolCall, ToolStat, Trajectory, Turn
from trajectile.run_folder.journal import TRAJECTORY, decode, encode
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.distributions import Distribution

OFFERED = {"terminal": 100.0, "file": 100.0}
STYLES = ("reasoning", "reasoning_content", "reasoning_details", "think", "scratchpad", "unopened")
LINE_BREAKS = "a\u2028b\u2029c\u0085d\x0be\x0cf\rg"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def prompt(text: str = "go", ordinal: int = 0, **more: Any) -> PromptRow:
    turns = [Turn("human", text)]
    return PromptRow(7, prompt_key(text, turns, "", ""), ordinal, turns, **more)


def play(
    base_url: str,
    row: PromptRow,
    folder: Path,
    *,
    offered: dict[str, float] = OFFERED,
    prefill: list[dict[str, Any]] | None = None,
    batch_num: int = 3,
    sandbox: Callable[[PromptRow], Sandbox] | None = None,
    cancel_when: "asyncio.Event | None" = None,
    **settings: Any,
) -> Trajectory:
    """Run one episode; with `cancel_when` it is cancelled at that moment."""

    def local(row: PromptRow) -> Sandbox:
        return LocalSandbox(folder, "none", cwd=row.cwd, output_limit=1000)

    async def run() -> Trajectory:
        config = load_settings({"model": "scripted", "max_retries": 0, **settings})
        async with ModelClient(ModelSettings(base_url, "key", "scripted", max_retries=0)) as model:
            shared = EpisodeSettings(
                *(config, batch_num, "digest", Distribution("mine", offered), prefill or [], model, sandbox or local)
            )
            episode = asyncio.ensure_future(run_episode(row, shared))
            if cancel_when:
                await cancel_when.wait()
                episode.cancel()
            return await episode

    return asyncio.run(run())


def test_a_row_tells_all_that_happened(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={})
    row = play(server.base_url, prompt(ordinal=2, source='{"tag":1}', cwd="deep/er"), tmp_path, seed=5)
    assert [turn.from_ for turn in row.conversations] == ["human", "gpt", "tool", "gpt"]
    assert row.conversations[0] == Turn("human", "go")
    assert (row.prompt_index, row.prompt_key, row.source) == (7, prompt().prompt_key, '{"tag":1}')
    assert (row.completed, row.partial, row.end_reason, row.api_calls) == (True, False, "finished", 2)
    assert row.toolsets_used == ["terminal", "file"]
    assert row.tool_stats["terminal"] == ToolStat(1, 1, 0) and row.tool_stats["patch"] == ToolStat()
    assert row.tool_error_counts == dict.fromkeys(row.tool_stats, 0)
    assert row.reasoning_stats == ReasoningStats(2, 2, 0)
    metadata = row.metadata
    assert (metadata.batch_num, metadata.ordinal, metadata.settings_digest) == (3, 2, "digest")
    assert metadata.model == "scripted" and 0 <= metadata.model_seconds <= metadata.duration_seconds
    assert list(tmp_path.iterdir()) == [], "the sandbox is gone"


@pytest.mark.parametrize("style", STYLES)
def test_every_spelling_of_reasoning_makes_the_same_row(server: ScriptedServer, tmp_path: Path, style: str) -> None:
    server.control(script={"reasoning_style": "reasoning"})
    plain = play(server.base_url, prompt(), tmp_path)
    server.control(script={"reasoning_style": style})
    styled = play(server.base_url, prompt(), tmp_path)
    assert plain.reasoning_stats.turns_with_reasoning == 2
    fields = ("conversations", "reasoning_stats", "tool_stats", "end_reason")
    first, second = without_times(plain), without_times(styled)
    assert {name: first[name] for name in fields} == {name: second[name] for name in fields}


def test_a_model_without_reasoning_is_counted_so(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={"reasoning_style": "none"})
    assert play(server.base_url, prompt(), tmp_path).reasoning_stats == ReasoningStats(2, 0, 2)


def test_system_prompt_and_examples_are_sent_and_in_no_row(tmp_path: Path) -> None:
    examples = tmp_path / "prefill.json"
    examples.write_text('[{"role": "user", "content": "EXAMPLE"}, {"role": "assistant", "content": "SHOWN"}]')
    with Recorder() as recorder:
        prefill = load_prefill(str(examples))
        row = play(recorder.base_url, prompt(), tmp_path, prefill=prefill, ephemeral_system_prompt="EPHEMERAL")
    [(_, body)] = recorder.requests
    assert [message["content"] for message in body["messages"]] == ["EPHEMERAL", "EXAMPLE", "SHOWN", "go"]
    assert [turn.value for turn in row.conversations] == ["go", "done"]
    assert not any(word in encode(row) for word in (b"EPHEMERAL", b"EXAMPLE", b"SHOWN"))
    assert row.reasoning_stats.total_assistant_turns == 1


def test_a_start_of_several_turns_goes_on_and_its_turns_are_not_counted(tmp_path: Path) -> None:
    turns = [Turn("system", "Be a pirate."), Turn("human", "hi"), Turn("gpt", "arr", "hm"), Turn("human", "and?")]
    start = PromptRow(0, "0" * 64, 0, turns)
    with Recorder() as recorder:
        row = play(recorder.base_url, start, tmp_path)
    [(_, body)] = recorder.requests
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert row.conversations == [*turns, Turn("gpt", "done", "because")]
    assert row.reasoning_stats == ReasoningStats(1, 1, 0)


def test_calls_of_the_model_get_ids_that_no_given_call_has(server: ScriptedServer, tmp_path: Path) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "todo", "arguments": "{}"}}
    shown = {"role": "assistant", "content": None, "tool_calls": [call]}
    turns = [Turn("human", "a"), Turn("gpt", tool_calls=[ToolCall("call_1", "todo", "{}")]), Turn("tool", "{}")]
    start = PromptRow(0, "0" * 64, 0, [*turns, Turn("human", "go")])
    made = [{"id": name, "name": "terminal", "arguments": {"command": "true"}} for name in ("call_0", "call_1")]
    replies = [{"tool_calls": made}, {"text": "done"}]
    server.control(script={"rules": [{"regex": ".", "replies": replies, "offset": 1}]})
    row = play(server.base_url, start, tmp_path, prefill=[shown])
    asked = [call.id for turn in row.conversations[4:] for call in turn.tool_calls]
    answered = [turn.tool_call_id for turn in row.conversations[4:] if turn.from_ == "tool"]
    assert asked == answered == ["call_0_2", "call_1_2"]


def test_toolsets_are_drawn_by_content_and_seed_alone(tmp_path: Path) -> None:
    chances = {"terminal": 50.0, "file": 50.0}
    with Recorder() as recorder:

        def used(text: str, **options: Any) -> list[str]:
            row = play(recorder.base_url, prompt(text), tmp_path, offered=chances, **options)
            sent = {tool["function"]["name"] for tool in recorder.requests[-1][1]["tools"]}
            assert ("terminal" in sent) == ("terminal" in row.toolsets_used)
            assert ("patch" in sent) == ("file" in row.toolsets_used)
            assert {"terminal", "patch"} <= row.tool_stats.keys(), "what could be offered is counted"
            return row.toolsets_used

        texts = [f"task {n}" for n in range(12)]
        first = [used(text) for text in texts]
        assert [used(text, batch_num=99) for text in texts] == first
        assert all(first) and len({tuple(toolsets) for toolsets in first}) > 1
        assert [used(text, seed=1) for text in texts] != first


def test_line_breaks_of_unicode_stay_inside_one_row(server: ScriptedServer, tmp_path: Path) -> None:
    call = {"name": "terminal", "arguments": {"command": r"printf 'a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d\x0be\x0cf'"}}
    replies = [{"tool_calls": [call], "reasoning": LINE_BREAKS}, {"text": LINE_BREAKS}]
    server.control(script={"rules": [{"regex": ".", "replies": replies}]})
    row = play(server.base_url, prompt(LINE_BREAKS), tmp_path)
    assert "a\u2028b\u2029c\u0085d" in row.conversations[2].value
    assert row.conversations[0].value == row.conversations[1].reasoning == row.conversations[3].value == LINE_BREAKS
    line = encode(row)
    assert line.count(b"\n") == 1 and decode(line[:-1], TRAJECTORY) == row


def test_lone_surrogates_of_a_model_are_replaced(tmp_path: Path) -> None:
    with Recorder({"content": "half \ud83d of it", "reasoning": "\udcff"}) as recorder:
        row = play(recorder.base_url, prompt(), tmp_path)
    assert row.conversations[1] == Turn("gpt", "half \ufffd of it", "\ufffd") and encode(row)


def test_hard_stops_are_partial_and_soft_ones_are_not(server: ScriptedServer, tmp_path: Path) -> None:
    script = {"rules": [{"regex": ".", "replies": [{"text": "half", "finish_reason": "length"}]}]}
    server.control(script=script)
    row = play(server.base_url, prompt(), tmp_path)
    assert (row.completed, row.partial, row.end_reason) == (False, True, "output_truncated")
    server.control(script={"steps": 9})
    row = play(server.base_url, prompt(), tmp_path, max_turns=2)
    assert (row.completed, row.partial, row.end_reason) == (False, False, "max_turns")


def test_a_command_past_its_deadline_is_a_result_and_the_next_one_works(server: ScriptedServer, tmp_path: Path) -> None:
    slow = {"name": "terminal", "arguments": {"command": "echo early; sleep 600 & wait", "timeout": 0.5}}
    replies = [{"tool_calls": [slow]}, {"tool_calls": [{**slow, "arguments": {"command": "echo on"}}]}, {"text": "ok"}]
    server.control(script={"rules": [{"regex": ".", "replies": replies}]})
    row = play(server.base_url, prompt(), tmp_path)
    first, second = (turn.value for turn in row.conversations if turn.from_ == "tool")
    assert "early" in first and "timed out after 0.5 s" in first and '"output": "on' in second
    assert row.tool_stats["terminal"] == ToolStat(2, 1, 1) and row.metadata.duration_seconds < 20


class Careless(LocalSandbox):
    """A sandbox whose end goes wrong."""

    closed = 0

    async def close(self) -> None:
        await super().close()
        self.closed += 1
        raise OSError("the folder cannot be removed")


def test_a_sandbox_that_cannot_be_closed_costs_no_finished_prompt(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={})
    careless = Careless(tmp_path, "none", output_limit=1000)
    assert play(server.base_url, prompt(), tmp_path, sandbox=lambda _: careless).completed
    assert careless.closed == 1


def test_a_failed_attempt_closes_its_sandbox_and_says_what_failed(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={"rules": [{"regex": ".", "faults": [{"kind": "answer", "status": 500}]}]})
    careless = Careless(tmp_path, "none", output_limit=1000)
    with pytest.raises(PromptError, match="HTTP 500"):
        play(server.base_url, prompt(), tmp_path, sandbox=lambda _: careless)
    assert careless.closed == 1


def test_a_working_folder_outside_the_sandbox_is_a_failed_attempt(server: ScriptedServer, tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="leads out of the sandbox") as caught:
        play(server.base_url, prompt(cwd="../.."), tmp_path)
    assert caught.value.kind == "bad_cwd"


class Slow(LocalSandbox):
    """A sandbox that takes its time to close, and says when it begins to."""

    def __init__(self, folder: Path, closing: asyncio.Event) -> None:
        super().__init__(folder, "none", output_limit=1000)
        self.closing = closing
        self.closed = False

    async def close(self) -> None:
        self.closing.set()
        await asyncio.sleep(0.2)
        await super().close()
        self.closed = True


def test_a_cancellation_does_not_interrupt_the_closing(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(script={})
    closing = asyncio.Event()
    slow = Slow(tmp_path, closing)
    with pytest.raises(asyncio.CancelledError):
        play(server.base_url, prompt(), tmp_path, sandbox=lambda _: slow, cancel_when=closing)
    assert slow.closed and list(tmp_path.iterdir()) == []


def test_reasoning_counts_turns_of_the_model_with_words_in_it() -> None:
    turns = [Turn("gpt", "a", "why"), Turn("gpt", "b", " \n"), Turn("human", "c", "not mine"), Turn("gpt", "d")]
    assert reasoning_stats(turns) == ReasoningStats(3, 1, 2)


def test_tools_nobody_could_offer_have_no_place_in_the_statistics() -> None:
    assert tool_stats(["b", "a"], []) == {"a": ToolStat(), "b": ToolStat()}
    assert list(tool_stats(["b", "a"], [])) == ["a", "b"]


def test_every_turn_has_every_key() -> None:
    plain = msgspec.to_builtins(Turn("gpt", tool_calls=[ToolCall()]))
    assert list(plain) == ["from", "value", "reasoning", "tool_calls", "tool_call_id", "name"]
