"""A row on its way into trajectories.jsonl."""

import msgspec

from trajectile.rows import Metadata, PromptKey, ReasoningStats, ToolStat, Usage


class MergedRow(msgspec.Struct):
    """A Trajectory whose conversation, most of its bytes, is copied as it stands; it was checked by an earlier pass."""

    prompt_index: int
    prompt_key: PromptKey
    conversations: msgspec.Raw
    metadata: Metadata
    completed: bool
    partial: bool
    end_reason: str
    api_calls: int
    toolsets_used: list[str]
    tool_stats: dict[str, ToolStat]
    tool_error_counts: dict[str, int]
    reasoning_stats: ReasoningStats
    usage: Usage
    source: str = "{}"


MERGED_ROW = msgspec.json.Decoder(MergedRow)
