"""What the pictures show of the rows of a run, gathered in one pass and in constant memory."""

from collections import Counter

from trajectile.report.histogram import Histogram
from trajectile.report.timeline import Timeline
from trajectile.rows import Trajectory
from trajectile.run_folder.journal import Failure

SHARES = ("none", "under 25%", "25 to 50%", "50 to 75%", "over 75%", "all")


class Observed:
    """Distributions over the rows and failed attempts that are added."""

    def __init__(self) -> None:
        self.rows = 0
        self.turns = Counter[int]()
        self.reasoning = Counter[str]()
        self.prompt_tokens, self.completion_tokens, self.cost = Histogram(), Histogram(), Histogram()
        self.seconds, self.model_seconds = Histogram(), Histogram()
        self.finished, self.failed, self.spent = Timeline(), Timeline(), Timeline()

    def add(self, row: Trajectory) -> None:
        self.rows += 1
        self.turns[row.reasoning_stats.total_assistant_turns] += 1
        self.reasoning[_share(row.reasoning_stats.turns_with_reasoning, row.reasoning_stats.total_assistant_turns)] += 1
        self.prompt_tokens.add(row.usage.prompt_tokens)
        self.completion_tokens.add(row.usage.completion_tokens)
        self.cost.add(row.usage.cost)
        self.seconds.add(row.metadata.duration_seconds)
        self.model_seconds.add(row.metadata.model_seconds)
        self.finished.add(row.metadata.timestamp)
        self.spent.add(row.metadata.timestamp, amount=row.usage.cost)

    def add_failure(self, failure: Failure) -> None:
        self.failed.add(failure.timestamp, failure.kind)


def _share(part: int, whole: int) -> str:
    if not part:
        return SHARES[0]
    return SHARES[-1] if part >= whole else SHARES[1 + 4 * part // whole]
