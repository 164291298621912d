"""A row of the Parquet export: a trajectory without what differs between equal runs, and with its tools."""

import msgspec

from trajectile.exports.example import Example
from trajectile.rows import PromptKey, ReasoningStats, Turn, Usage


class ToolCount(msgspec.Struct):
    """How often a tool was called; a list of these has the same type for every run, whatever its tools are."""

    tool: str
    count: int
    success: int
    failure: int


class ParquetRow(msgspec.Struct):
    """`tools` (schemas of the tools on offer), `source` and the arguments of calls are JSON text."""

    prompt_index: int
    prompt_key: PromptKey
    ordinal: int
    conversations: list[Turn]
    tools: str
    model: str
    distribution: str
    settings_digest: str
    image: str
    trimmed_results: int
    completed: bool
    partial: bool
    end_reason: str
    api_calls: int
    toolsets_used: list[str]
    tool_stats: list[ToolCount]
    reasoning_stats: ReasoningStats
    usage: Usage
    source: str


def parquet_row(example: Example) -> ParquetRow:
    row, metadata = example.row, example.row.metadata
    return ParquetRow(
        prompt_index=row.prompt_index,
        prompt_key=row.prompt_key,
        ordinal=metadata.ordinal,
        conversations=example.turns,
        tools=example.tools.text,
        model=metadata.model,
        distribution=metadata.distribution,
        settings_digest=metadata.settings_digest,
        image=metadata.image,
        trimmed_results=metadata.trimmed_results,
        completed=row.completed,
        partial=row.partial,
        end_reason=row.end_reason,
        api_calls=row.api_calls,
        toolsets_used=row.toolsets_used,
        tool_stats=[ToolCount(name, stat.count, stat.success, stat.failure) for name, stat in row.tool_stats.items()],
        reasoning_stats=row.reasoning_stats,
        usage=row.usage,
        source=row.source,
    )
