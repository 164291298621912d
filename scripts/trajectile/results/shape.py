"""The shape of statistics.json."""

import msgspec


class ToolStatistics(msgspec.Struct):
    """A tool's calls; rates are fractions of `count`."""

    count: int
    success: int
    failure: int
    success_rate: float
    failure_rate: float


class ReasoningStatistics(msgspec.Struct):
    """Assistant turns; `coverage` is the fraction with reasoning."""

    total_assistant_turns: int
    turns_with_reasoning: int
    turns_without_reasoning: int
    coverage: float


class Tokens(msgspec.Struct):
    """Tokens of all rows; `reasoning` is part of `completion`, `cached` of `prompt`."""

    prompt: int
    completion: int
    reasoning: int
    cached: int


class Discarded(msgspec.Struct):
    """Rows the filter took out; one with two reasons counts under both."""

    total: int
    by_reason: dict[str, int]


class Failed(msgspec.Struct):
    """Prompts that failed and have no row, by the kind of their last failure."""

    total: int
    by_kind: dict[str, int]


class Statistics(msgspec.Struct):
    """statistics.json. Counts of rows are of all finished rows; `owed`, `given_up` and `failed` are of prompts.

    The next start runs the `owed` ones; those that are `given_up` reached max_attempts. Both may be among the `failed`.
    `trimmed_results` are tool results that the model was sent shortened later on.
    """

    run_name: str
    distribution: str
    model: str
    batch_size: int
    total_prompts: int
    total_batches: int
    completed: int
    partial: int
    discarded: Discarded
    failed: Failed
    attempts_failed: int
    superseded: int
    owed: int
    given_up: int
    damaged_lines: int
    duration_seconds: float
    tool_statistics: dict[str, ToolStatistics]
    reasoning_statistics: ReasoningStatistics
    tokens: Tokens
    cost: float
    api_calls: int
    trimmed_results: int
    latency_seconds: dict[str, float]
    turns: dict[str, float]
    end_reasons: dict[str, int]

    @property
    def finished(self) -> int:
        """Prompts that have a row, one that the filter took out included."""
        return self.total_prompts - self.owed - self.given_up
