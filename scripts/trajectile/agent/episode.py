"""One prompt, from its row to a trajectory: draws toolsets, opens a sandbox, runs the agent, closes the sandbox."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trajectile.agent.calls import Outcome
from trajectile.agent.conversation import start_messages, to_turns
from trajectile.agent.loop import Agent, Limits
from trajectile.configuration.settings import Settings
from trajectile.model.client import ModelClient
from trajectile.rows import Metadata, PromptRow, ReasoningStats, ToolStat, Trajectory, Turn
from trajectile.sandbox.base import Sandbox
from trajectile.tools.distributions import Distribution, draw
from trajectile.tools.registry import TOOLSETS, Toolsets, tools_of
from trajectile.tools.tool import States, ToolContext

log = logging.getLogger(__name__)
PARTIAL_ENDS = frozenset(
    {
        "context_overflow",
        "output_truncated",
        "content_filter",
        "invalid_tool_calls",
        "time_limit",
        "token_limit",
        "cost_limit",
    }
)


@dataclass(frozen=True)
class EpisodeSettings:
    """What all episodes of a shard share. `distribution` holds the toolsets on offer."""

    settings: Settings
    batch_num: int
    settings_digest: str
    distribution: Distribution
    prefill: list[dict[str, Any]]
    model: ModelClient
    open_sandbox: Callable[[PromptRow], Sandbox]
    toolsets: Toolsets = field(default_factory=lambda: TOOLSETS)
    states: States = field(default_factory=States)

    @property
    def tool_names(self) -> list[str]:
        """All tools that the run can offer."""
        return [tool.name for tool in tools_of(self.distribution.chances, self.toolsets)]


async def run_episode(row: PromptRow, shared: EpisodeSettings) -> Trajectory:
    """Run the agent on one prompt. A PromptError means a failed attempt, a FatalError that no prompt can be run."""
    settings = shared.settings
    toolsets = draw(shared.distribution, settings.seed, row.prompt_key, row.ordinal)
    sandbox = shared.open_sandbox(row)
    tools = {tool.name: tool for tool in tools_of(toolsets, shared.toolsets)}
    context = ToolContext(sandbox, settings, shared.model.settings, tools, shared.states)
    limits = Limits(
        settings.max_turns, settings.prompt_timeout, settings.max_tokens_per_prompt, settings.max_cost_per_prompt
    )
    agent = Agent(shared.model, tools, context, limits)
    start = start_messages(row.turns, settings.ephemeral_system_prompt, shared.prefill)
    given, began = len(start), time.monotonic()
    try:
        await sandbox.start()
        end_reason = await agent.run(start)
    finally:
        await _close(context.close, sandbox.close)
    made = to_turns(agent.messages[given:])
    return _trajectory(row, shared, agent, end_reason, toolsets, made, time.monotonic() - began)


async def _close(*closers: Callable[[], Awaitable[None]]) -> None:
    """Close all, a cancellation notwithstanding; what cannot be closed costs no finished prompt."""
    closing = asyncio.ensure_future(_close_each(closers))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise


async def _close_each(closers: Iterable[Callable[[], Awaitable[None]]]) -> None:
    for close in closers:
        try:
            await close()
        except Exception:
            log.exception("something of a sandbox is left behind")


def _trajectory(
    row: PromptRow,
    shared: EpisodeSettings,
    agent: Agent,
    end_reason: str,
    toolsets: list[str],
    made: list[Turn],
    seconds: float,
) -> Trajectory:
    stats = tool_stats(shared.tool_names, agent.outcomes, agent.context.inner_calls)
    return Trajectory(
        prompt_index=row.prompt_index,
        prompt_key=row.prompt_key,
        conversations=row.turns + made,
        metadata=_metadata(row, shared, agent, seconds),
        completed=end_reason == "finished",
        partial=end_reason in PARTIAL_ENDS,
        end_reason=end_reason,
        api_calls=agent.api_calls,
        toolsets_used=toolsets,
        tool_stats=stats,
        tool_error_counts={name: stat.failure for name, stat in stats.items()},
        reasoning_stats=reasoning_stats(made),
        usage=agent.usage + agent.context.own.usage,
        source=row.source,
    )


def _metadata(row: PromptRow, shared: EpisodeSettings, agent: Agent, seconds: float) -> Metadata:
    return Metadata(
        batch_num=shared.batch_num,
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        model=shared.settings.model,
        distribution=shared.settings.distribution,
        settings_digest=shared.settings_digest,
        ordinal=row.ordinal,
        image=agent.context.sandbox.image,
        duration_seconds=round(seconds, 3),
        model_seconds=round(agent.model_seconds, 3),
        image_digest=agent.context.sandbox.image_digest,
        trimmed_results=agent.trimming.count,
    )


def tool_stats(
    offered: list[str], outcomes: list[Outcome], inner: Iterable[tuple[str, bool]] = ()
) -> dict[str, ToolStat]:
    """Count the calls of every tool that the run could offer, those made by tools included.

    Calls of unknown tools have no place here.
    """
    counts = Counter([*((outcome.name, outcome.success) for outcome in outcomes), *inner])
    pairs = {name: (counts[name, True], counts[name, False]) for name in sorted(offered)}
    return {name: ToolStat(good + bad, good, bad) for name, (good, bad) in pairs.items()}


def reasoning_stats(turns: list[Turn]) -> ReasoningStats:
    """Count the assistant turns with and without reasoning."""
    assistant = [turn for turn in turns if turn.from_ == "gpt"]
    reasoned = sum(bool(turn.reasoning.strip()) for turn in assistant)
    return ReasoningStats(len(assistant), reasoned, len(assistant) - reasoned)
