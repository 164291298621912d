"""The dataset card of the Parquet export, written from run.json and statistics.json."""

import msgspec

from trajectile.errors import UserError
from trajectile.exports.card import FOLDER, differences
from trajectile.exports.format import Counts
from trajectile.exports.run import Run
from trajectile.results.shape import ReasoningStatistics, Tokens, ToolStatistics
from trajectile.run_folder.paths import RunFolder

SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}
SETTINGS = ("model", "distribution", "sandbox", "max_turns", "temperature", "top_p", "seed")


class DiscardedTotal(msgspec.Struct):
    total: int


class Numbers(msgspec.Struct):
    """What of statistics.json does not depend on how the work was cut."""

    total_prompts: int
    owed: int
    given_up: int
    discarded: DiscardedTotal
    tool_statistics: dict[str, ToolStatistics]
    reasoning_statistics: ReasoningStatistics
    tokens: Tokens
    end_reasons: dict[str, int]


TEXT = """# {run_name}

Agent trajectories: a model works on each prompt with tools, in a sandbox of its own.

{differences}

```python
from datasets import load_dataset

rows = load_dataset("{folder}", split="train")
```

## How it was made

| setting | |
| --- | --- |
{settings}

Of {prompts} prompts {finished} were finished; the quality filter took out {discarded} rows. They ended as
follows: {ends}. {coverage:.1%} of the assistant turns carry reasoning. {prompt_tokens} prompt tokens,
{completion_tokens} completion tokens.

| tool | calls | success |
| --- | ---: | ---: |
{tools}

## Columns

- `conversations`: turns `from` human, gpt, tool or system, with `value`, `reasoning`, `tool_calls` (`id`,
  `name`, `arguments` as JSON text), `tool_call_id` and `name`; every turn has every key, nothing is null.
- `tools`: JSON text, the schemas of the tools on offer. `toolsets_used` names their toolsets.
- `prompt_index`, `prompt_key`, `ordinal`: the prompt, its SHA-256 and the number of the row among equal
  prompts. `source`: the prompt's other columns as JSON text. `image`: its sandbox image.
- `completed`, `partial`, `end_reason`, `api_calls`, `tool_stats`, `reasoning_stats`, `usage`: how it went.
- `model`, `distribution`, `settings_digest`: what made it.
"""


def read_numbers(folder: RunFolder) -> Numbers:
    """Read statistics.json; UserError where it is missing or is not one."""
    try:
        return msgspec.json.decode(folder.statistics.read_bytes(), type=Numbers)
    except FileNotFoundError:
        raise UserError(f"{folder.statistics} is missing; compute_statistics makes it") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder.statistics} cannot be read: {error}") from None


def size_category(rows: int) -> str:
    """Return the size class of a dataset, as the hub names them."""
    return next((name for limit, name in SIZES.items() if rows < limit), "n>10M")


def body(run: Run, numbers: Numbers, counts: Counts) -> str:
    """Return the text of the card."""
    known = [(name, run.settings[name]) for name in SETTINGS if run.settings.get(name) is not None]
    tools = [(name, tool) for name, tool in sorted(numbers.tool_statistics.items()) if tool.count]
    return TEXT.format(
        run_name=run.run_name,
        differences=differences(counts),
        folder=FOLDER,
        settings="\n".join(f"| {name} | `{value}` |" for name, value in known),
        prompts=numbers.total_prompts,
        finished=numbers.total_prompts - numbers.owed - numbers.given_up,
        discarded=numbers.discarded.total,
        ends=", ".join(f"{number} {reason}" for reason, number in sorted(numbers.end_reasons.items())) or "none",
        coverage=numbers.reasoning_statistics.coverage,
        prompt_tokens=numbers.tokens.prompt,
        completion_tokens=numbers.tokens.completion,
        tools="\n".join(f"| {name} | {tool.count} | {tool.success_rate:.1%} |" for name, tool in tools),
    )
