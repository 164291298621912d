"""What a storm did and what it found."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """`events` tells the storm in order; `violations` are broken promises; the numbers are for the figures."""

    seed: int
    events: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    strikes: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    damages: int = 0
    starts: int = 0
    rows_lost: int = 0
    paid_twice: int = 0
    differing: int = 0
    answers_lost_in_flight: int = 0
    begun_in_vain: int = 0
    seconds: float = 0.0

    def note(self, event: str) -> None:
        self.events.append(event)

    def broken(self, promise: str, what: str) -> None:
        self.violations.append(f"{promise}: {what}")

    def line(self) -> str:
        struck = ", ".join(f"{kind} {count}" for kind, count in sorted(self.strikes.items())) or "nothing"
        return (
            f"seed {self.seed}: {'FAILED' if self.violations else 'ok'} in {self.seconds:.0f} s, {self.starts} starts, "
            f"{self.changes} dataset changes, {self.damages} damages; struck: {struck}"
        )

    def story(self) -> str:
        return "\n".join([self.line(), *(f"  {event}" for event in self.events), *self.violations])


def figures(reports: list[Report]) -> list[str]:
    """Return the sums over storms, a line each."""
    strikes = sum((report.strikes for report in reports), Counter[str]())
    names = ("starts", "changes", "damages", "rows_lost", "paid_twice", "differing")
    lines = [f"{len(reports)} storms, {sum(bool(r.violations) for r in reports)} with violations"]
    lines += [f"{name}: {sum(getattr(report, name) for report in reports)}" for name in names]
    lines.append(f"answers lost in flight: {sum(r.answers_lost_in_flight for r in reports)}")
    lines.append(f"prompts begun in vain, in flight when struck: {sum(report.begun_in_vain for report in reports)}")
    lines.append(f"strikes: {strikes.total()} ({', '.join(f'{k} {n}' for k, n in sorted(strikes.items()))})")
    return lines
