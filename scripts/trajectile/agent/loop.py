"""The agent: run, step, query, execute, over one list of messages."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from trajectile.agent.calls import CheckedCall, Outcome, check_calls, ids_of_calls, perform, wire_calls
from trajectile.agent.events import log_reply, log_result
from trajectile.agent.trimming import Trimming
from trajectile.errors import PromptError
from trajectile.model.client import ModelClient
from trajectile.model.errors import ContextOverflow, EndsPrompt
from trajectile.model.reply import Reply
from trajectile.rows import ToolCall, Usage
from trajectile.tools.registry import schemas
from trajectile.tools.tool import Tool, ToolContext

Message = dict[str, Any]
INVALID_REPLIES = 3


class Ended(Exception):
    """The episode is over; the argument is its end_reason."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Limits(NamedTuple):
    """What one prompt may take: model calls, seconds in all, tokens and cost in all its calls (None for no limit)."""

    max_turns: int
    prompt_timeout_s: float
    max_tokens: int | None
    max_cost: float | None = None


class Agent:
    """Runs one prompt; its attributes tell afterwards what happened."""

    def __init__(self, model: ModelClient, tools: Mapping[str, Tool], context: ToolContext, limits: Limits) -> None:
        self.model = model
        self.tools = tools
        self.schemas = schemas(list(tools.values()))
        self.context = context
        self.trimming = Trimming(context.settings, self.schemas)
        self.limits = limits
        self.messages: list[Message] = []
        self.outcomes: list[Outcome] = []
        self.usage = Usage()
        self.api_calls = 0
        self.model_seconds = 0.0
        self._used_ids: set[str] = set()
        self._invalid = 0
        self._deadline = 0.0

    async def run(self, messages: list[Message]) -> str:
        """Take turns from `messages` on until the end, and return the end_reason."""
        self.messages = messages
        self._used_ids |= ids_of_calls(messages)
        self._deadline = asyncio.get_running_loop().time() + self.limits.prompt_timeout_s
        try:
            while True:
                await self.step()
        except Ended as end:
            return end.reason

    async def step(self) -> None:
        reply = await self.query()
        self.messages.append(reply.message)
        if not reply.tool_calls:
            raise Ended(_end_without_calls(reply))
        checked = check_calls(reply.tool_calls, self._used_ids, cut_off=reply.finish_reason == "length")
        reply.message["tool_calls"] = wire_calls(checked)
        await self.execute(checked)
        self._check_limits()

    async def query(self) -> Reply:
        """Ask the model; what it cannot answer at all ends the episode, a failed attempt is a PromptError."""
        try:
            reply = await self._complete()
        except EndsPrompt as end:
            raise Ended(end.end_reason) from None
        except PromptError as error:
            if error.kind == "deadline" and self.api_calls:
                raise Ended("time_limit") from None
            raise
        self.api_calls += 1
        self.model_seconds += reply.latency_s
        self.usage = self.usage + reply.usage
        self.trimming.note(reply.usage, len(self.messages) + 1)
        log_reply(self.api_calls, reply.usage, reply.latency_s, reply.finish_reason, reply.content, reply.tool_calls)
        return reply

    async def _complete(self) -> Reply:
        while True:
            sent = self.trimming.fit(self.messages)
            try:
                return await self.model.complete(sent, self.schemas, deadline=self._deadline)
            except ContextOverflow:
                if not self.trimming.tighten(self.messages):
                    raise

    async def execute(self, checked: list[CheckedCall]) -> None:
        """Run calls one after the other; each gets a result, an error where it cannot be executed."""
        outcomes = [await self._perform(item) for item in checked]
        for item, outcome in zip(checked, outcomes, strict=True):
            self.messages.append(_result(item.call, outcome))
            log_result(outcome.name, outcome.result, outcome.success)
        self.outcomes += outcomes
        self._invalid = 0 if any(outcome.executed for outcome in outcomes) else self._invalid + 1

    async def _perform(self, item: CheckedCall) -> Outcome:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await perform(item, self.tools, self.context)
        except TimeoutError:
            return Outcome(item.call.name, "Error: the time for this task is over", executed=True, success=False)

    def _check_limits(self) -> None:
        usage = self.usage + self.context.own.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        if self._invalid >= INVALID_REPLIES:
            raise Ended("invalid_tool_calls")
        if asyncio.get_running_loop().time() >= self._deadline:
            raise Ended("time_limit")
        if self.limits.max_tokens is not None and tokens >= self.limits.max_tokens:
            raise Ended("token_limit")
        if self.limits.max_cost is not None and usage.cost >= self.limits.max_cost:
            raise Ended("cost_limit")
        if self.api_calls >= self.limits.max_turns:
            raise Ended("max_turns")


def _end_without_calls(reply: Reply) -> str:
    return {"length": "output_truncated", "content_filter": "content_filter"}.get(reply.finish_reason, "finished")


def _result(call: ToolCall, outcome: Outcome) -> Message:
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": outcome.result}
