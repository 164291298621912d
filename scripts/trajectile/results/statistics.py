"""Computes statistics.json: the numbers of every batch and every resume, discarded rows included."""

from typing import NamedTuple

from trajectile.results.command import Dataset, RunIdentity
from trajectile.results.discarded import DiscardedRows
from trajectile.results.failures import Failures
from trajectile.results.matching import Matcher, Matching
from trajectile.results.sessions import running_seconds
from trajectile.results.shape import Discarded, Statistics
from trajectile.results.tool_names import ToolNames
from trajectile.results.totals import Totals
from trajectile.run_folder.paths import RunFolder

COST_DIGITS = 6


class Reading(NamedTuple):
    """All that one pass over a run's finished rows and ledgers gives; `names` are the tools in trajectories.jsonl."""

    totals: Totals
    matching: Matching
    discarded: DiscardedRows
    names: list[str]
    failures: Failures
    damaged: int


def read_run(folder: RunFolder, dataset: Dataset, offered: list[str]) -> Reading:
    """Read finished rows, discards and ledgers of a run, each once."""
    matcher = Matcher(prompt.prompt_key for prompt in dataset.prompts())
    discarded, totals, tools = DiscardedRows(folder), Totals(offered), ToolNames(offered)
    for row, place, _ in discarded.rows:
        matcher.add(row.prompt_key, row.metadata.ordinal)
        totals.add(row)
        if not discarded.takes(place):
            tools.add(row)
    discarded.finish()
    matching = matcher.match()
    failures = Failures(folder, matcher)
    return Reading(totals, matching, discarded, tools.sorted(), failures, discarded.rows.damaged + failures.damaged)


def statistics_of(folder: RunFolder, identity: RunIdentity, reading: Reading, max_attempts: int = 0) -> Statistics:
    """Return the statistics of a run that was read; prompts are given up after `max_attempts` failures, 0 for never."""
    settings, totals, matching = identity.settings, reading.totals, reading.matching
    given_up = reading.failures.given_up(matching.row_of_prompt, max_attempts)
    return Statistics(
        run_name=identity.run_name,
        distribution=str(settings.get("distribution") or ""),
        model=str(settings.get("model") or ""),
        batch_size=int(settings.get("batch_size") or 0),
        total_prompts=len(matching.row_of_prompt),
        total_batches=len(folder.numbers("")),
        completed=totals.completed,
        partial=totals.partial,
        discarded=Discarded(reading.discarded.total, dict(reading.discarded.by_reason.most_common())),
        failed=reading.failures.of_unfinished(matching.row_of_prompt),
        attempts_failed=len(reading.failures),
        superseded=len(matching.superseded),
        owed=int((matching.row_of_prompt < 0).sum()) - given_up,
        given_up=given_up,
        damaged_lines=reading.damaged,
        duration_seconds=round(running_seconds(folder), 3),
        tool_statistics=totals.tools(),
        reasoning_statistics=totals.reasoning_statistics(),
        tokens=totals.tokens(),
        cost=round(totals.usage.cost, COST_DIGITS),
        api_calls=totals.api_calls,
        trimmed_results=totals.trimmed_results,
        latency_seconds=totals.latencies(),
        turns=totals.turns(),
        end_reasons=dict(totals.ends.most_common()),
    )
