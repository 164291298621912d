"""What is still to be done and what that may cost, from the rows that are finished or else from the dataset's size."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from trajectile.configuration.settings import Settings
from trajectile.notes import counted
from trajectile.planning.preparation import PreparedRun
from trajectile.rows import Trajectory, Usage
from trajectile.run_folder.journal import TRAJECTORY, records
from trajectile.tools.registry import schemas

SAMPLE_ROWS = 200
BYTES_A_TOKEN = 4
BY_LINE = (".jsonl", ".ndjson", ".csv")
ANSWER_TOKENS = 300  # a tool call with its thought, of the size that agents' turns commonly have
RESULT_TOKENS = 300


def estimate(run: PreparedRun) -> str:
    """Return a sentence for the user: prompts owed, and tokens and cost where there is something to go by."""
    owed = sum(len(shard.rows) for shard in run.plan.shards)
    done = run.plan.prompts - len(run.plan.owed) - len(run.plan.given_up)
    head = f"{counted(owed, 'prompt')} to run in {counted(len(run.plan.shards), 'shard')}, {done:,} done"
    if run.plan.given_up:
        head += f", {len(run.plan.given_up):,} left alone after {run.settings.max_attempts} attempts"
    return ". ".join([head, *_expense(run, owed)]) if owed else head


def _expense(run: PreparedRun, owed: int) -> Iterator[str]:
    rows = list(islice(_finished(run), SAMPLE_ROWS))
    if rows:
        yield _as_before(run.settings, rows, owed)
    elif (size := _prompt_tokens(run)) is not None:
        yield _by_size(run.settings, size, owed)


def _finished(run: PreparedRun) -> Iterator[Trajectory]:
    """Yield finished rows of the run, as many as anyone asks for."""
    batches = run.folder.numbers("")
    for number in batches:
        yield from records(run.folder.batch(number), TRAJECTORY)
    for number in sorted(set(run.folder.numbers("journal")) - set(batches)):
        yield from records(run.folder.journal(number), TRAJECTORY)


def _is_free(settings: Settings) -> bool:
    return settings.model.startswith("local/")


def _as_before(settings: Settings, rows: list[Trajectory], owed: int) -> str:
    total = sum((row.usage for row in rows), Usage())
    share = owed / len(rows)
    tokens = f"about {total.prompt_tokens * share:,.0f} tokens in and {total.completion_tokens * share:,.0f} out"
    text = f"Going by {counted(len(rows), 'finished row')}: {tokens}"
    if _is_free(settings):
        return text
    return text + (f", cost about {total.cost * share:.4g}" if total.cost else ", cost unknown: answers name none")


def _by_size(settings: Settings, size: float, owed: int) -> str:
    """Give a range, from one turn a prompt to max_turns turns in which each reads all that came before."""
    turns = settings.max_turns
    most_in = turns * size + (ANSWER_TOKENS + RESULT_TOKENS) * turns * (turns - 1) / 2
    text = f"Prompt and tools are about {size:,.0f} tokens"
    if _is_free(settings):
        return text
    if settings.price_prompt_per_million is None or settings.price_completion_per_million is None:
        return f"{text}; what that costs is not known before the first answers (price_prompt_per_million)"
    prices = settings.price_prompt_per_million, settings.price_completion_per_million
    least, most = _cost(size, ANSWER_TOKENS, prices), _cost(most_in, ANSWER_TOKENS * turns, prices)
    return (
        f"{text}: cost roughly between {least * owed:.4g}, with one turn each, and {most * owed:.4g}, with "
        f"{counted(turns, 'turn')} of {ANSWER_TOKENS} tokens and results of {RESULT_TOKENS}"
    )


def _cost(tokens_in: float, tokens_out: float, prices: tuple[float, float]) -> float:
    return (tokens_in * prices[0] + tokens_out * prices[1]) / 1e6


def _prompt_tokens(run: PreparedRun) -> float | None:
    """Return the tokens of an average first request, None for files whose size says little."""
    size = _bytes_used(run.settings, run.plan.prompts)
    if size is None:
        return None
    tools = len(msgspec.json.encode(schemas(run.offer.tools())))
    system = len(run.settings.ephemeral_system_prompt.encode())
    return (size / max(run.plan.prompts, 1) + tools + system) / BYTES_A_TOKEN


def _bytes_used(settings: Settings, prompts: int) -> int | None:
    """Return the size of the rows that are used, of which max_samples may leave most out."""
    path = settings.dataset_path
    if settings.max_samples is None and path.suffix in (*BY_LINE, ".json"):
        return path.stat().st_size
    if path.suffix not in BY_LINE:
        return None
    with path.open("rb") as file:
        return sum(map(len, islice(file, prompts)))
