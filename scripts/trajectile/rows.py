"""The shapes of the two rows: a prompt that is owed and a trajectory that was made."""

from typing import Annotated

import msgspec
from msgspec.structs import astuple

PromptKey = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Ordinal = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
SUPERSEDED = -1  # prompt_index of a kept row whose prompt has left the dataset


class ToolCall(msgspec.Struct):
    """A tool call as the model wrote it; `arguments` is JSON text, valid or not."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Turn(msgspec.Struct, rename={"from_": "from"}):
    """One turn of a conversation; `from_` is system, human, gpt or tool, and every key is always written."""

    from_: str
    value: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    tool_call_id: str = ""
    name: str = ""


class PromptRow(msgspec.Struct):
    """A dataset row ready to run.

    `prompt_key` is the SHA-256 (hex) of what defines the work; equal rows differ in `ordinal` (0, 1, …).
    `turns` is the start of the conversation, one human turn for a plain prompt.
    `source` holds the dataset row's other columns as JSON text.
    """

    prompt_index: int
    prompt_key: PromptKey
    ordinal: Ordinal
    turns: list[Turn]
    image: str = ""
    cwd: str = ""
    source: str = "{}"


class ToolStat(msgspec.Struct):
    """How often a tool was called, and how the calls went."""

    count: int = 0
    success: int = 0
    failure: int = 0


class ReasoningStats(msgspec.Struct):
    """Assistant turns with and without reasoning."""

    total_assistant_turns: int = 0
    turns_with_reasoning: int = 0
    turns_without_reasoning: int = 0


class Usage(msgspec.Struct):
    """Tokens summed over a prompt's calls; `cost` in the provider's currency, 0 where it names none."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Metadata(msgspec.Struct):
    """Where a row comes from. `batch_num`, `timestamp` and the two durations differ between equal runs.

    `trimmed_results` counts the tool results that the model was sent shortened later on; rows hold them whole.
    """

    batch_num: int
    timestamp: str
    model: str
    distribution: str
    settings_digest: str
    ordinal: Ordinal
    image: str
    duration_seconds: float
    model_seconds: float
    image_digest: str = ""
    trimmed_results: int = 0


class Trajectory(msgspec.Struct):
    """A finished prompt: one line of a journal, of a batch file and of trajectories.jsonl.

    `prompt_index` counts the rows of the dataset; in trajectories.jsonl it is SUPERSEDED where the prompt has left it.
    `tool_stats` and `tool_error_counts` name every tool the run could offer, zero by default.
    """

    prompt_index: int
    prompt_key: PromptKey
    conversations: list[Turn]
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

    @property
    def given(self) -> int:
        """How many turns came before the first assistant turn that the model made in this run."""
        assistant = [number for number, turn in enumerate(self.conversations) if turn.from_ == "gpt"]
        made = self.reasoning_stats.total_assistant_turns
        return assistant[max(len(assistant) - made, 0)] if assistant and made else len(self.conversations)
