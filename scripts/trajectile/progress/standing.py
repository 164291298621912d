"""How a run stands at one moment, by prompt."""

from dataclasses import dataclass

from trajectile.rows import Usage


@dataclass(frozen=True)
class Standing:
    """Counts are of prompts; `waiting` ones are among `running`, `discarded` ones among `done`.

    `given_up` ones reached max_attempts: they are not `owed`, since this start, or the next one, does not run them.
    `prompts` is 0 where the run has not begun. `rate` is in prompts a minute, 0 where it is not known yet; `owner` says
    who makes the run, "" for nobody.
    """

    prompts: int
    done: int
    running: int
    waiting: int
    failed: int
    given_up: int
    discarded: int
    usage: Usage
    rate: float
    last_error: str
    owner: str

    @property
    def owed(self) -> int:
        return max(0, self.prompts - self.done - self.given_up)

    @property
    def seconds_left(self) -> float | None:
        """Return the time left at this rate, None where it is not known."""
        return self.owed / self.rate * 60 if self.rate else None
