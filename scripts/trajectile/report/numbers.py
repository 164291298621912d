"""Numbers as people read them, and round steps for an axis."""

import math

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """Write a number in about three digits: 0.0012, 3.5, 120, 4.2k."""
    for size, unit in UNITS:
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def counted(count: int, one: str, many: str = "") -> str:
    """Write a count with its noun: 1 turn, 2,000 turns."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def linear_ticks(highest: float, most: int = 5) -> list[float]:
    """Return round values from 0 to `highest` or a little beyond, whole ones where that is enough."""
    if highest <= 0:
        return [0.0, 1.0]
    step = nice_step(highest / most)
    return [n * step for n in range(math.ceil(highest / step - 1e-9) + 1)]


def nice_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, … (also below 1) that is not under `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return round values in [low, high] for a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: len(ticks) // most + 1]
