"""A shard's running counts, written down with its heartbeat for those who watch and for the limit on cost."""

from trajectile.agent.episode import EpisodeSettings
from trajectile.results.filters import reasoning_is_required, reasons_against
from trajectile.rows import Trajectory, Usage
from trajectile.run_folder.journal import TRAJECTORY, records
from trajectile.run_folder.mishaps import forget_mishaps
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.spending import Purse
from trajectile.run_folder.times import Clock


class Tally:
    """Counts one attempt at a shard, on top of the attempts before it."""

    def __init__(self, folder: RunFolder, number: int, shared: EpisodeSettings, clock: Clock) -> None:
        settings = shared.settings
        self.running = 0
        self._model, self._states = shared.model, shared.states
        self._tools = frozenset(shared.tool_names)
        self._required = reasoning_is_required(settings.require_reasoning, settings.reasons_not)
        self._clock = clock
        self._folder, self._bore_fruit = folder, False
        self._discarded, rows = 0, Usage()
        for row in records(folder.journal(number), TRAJECTORY):
            self.add(row)
            rows = rows + row.usage
        before = self._clock.state.usage
        # a kill loses what the last seconds before it took, unless a row tells
        self._before = max(before, rows, key=lambda usage: (usage.cost, usage.prompt_tokens))
        self._purse = Purse(folder, number, settings.max_cost)

    def add(self, row: Trajectory) -> None:
        """Count a row of the journal."""
        self._discarded += any(reasons_against(row, self._tools, require_reasoning=self._required))

    def finish(self, row: Trajectory) -> None:
        """Count a row that this attempt has made; that it made one is written down at once."""
        self.add(row)
        self._bore_fruit = True
        if self._clock.state.fruitless:
            self._clock.state.fruitless = 0
            self.beat()

    def beat(self) -> None:
        """Write the counts and the time down."""
        if self._bore_fruit:
            forget_mishaps(self._folder)
            self._bore_fruit = False
        state = self._clock.state
        state.running, state.waiting = self.running, min(self.running, self._model.waiting)
        state.discarded, state.usage = self._discarded, self._used()
        self._clock.beat()
        self._purse.share(state.usage.cost)

    def overspent(self) -> str:
        """Say that the run's money is spent, "" where it is not."""
        return self._purse.problem(self._used().cost) if self._purse.limit is not None else ""

    def _used(self) -> Usage:
        return self._before + self._model.usage + self._states.usage
