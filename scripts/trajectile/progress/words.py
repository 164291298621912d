"""How a run stands, in words."""

from collections.abc import Iterator

from trajectile.progress.standing import Standing

SECONDS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
ERROR_CHARS = 300
THREE_DIGITS = 0.9995  # of a unit, from where on a number is rounded up to it


def one_line(now: Standing) -> str:
    """Return the standing on one line."""
    flight = f"{now.running - now.waiting:,} running, {now.waiting:,} waiting for the server"
    ended = f"{now.failed:,} failed, {now.discarded:,} discarded"
    return f"{now.done:,} of {now.prompts:,} done, {flight}, {ended}; {expense(now)}; {pace(now)}"


def expense(now: Standing) -> str:
    tokens = f"{short(now.usage.prompt_tokens)} tokens in, {short(now.usage.completion_tokens)} out"
    return f"{tokens}, cost {now.usage.cost:.4g}" if now.usage.cost else tokens


def pace(now: Standing) -> str:
    left = now.seconds_left
    rate = f"{now.rate:.1f} prompts/min" if now.rate else "no rate yet"
    return f"{rate}, {duration(left)} left" if left and now.owner else rate


def rows(now: Standing) -> Iterator[tuple[str, str]]:
    """Yield the standing as pairs of a name and a value."""
    yield "made by", now.owner or "nobody now"
    yield "prompts", f"{now.prompts:,}"
    yield "done", f"{now.done:,} ({now.done / now.prompts:.1%})" if now.prompts else "0"
    yield "owed", f"{now.owed:,}"
    if now.given_up:
        yield "given up", f"{now.given_up:,} after max_attempts; --retry_failed tries them once more"
    yield "running", f"{now.running - now.waiting:,}"
    yield "waiting for the server", f"{now.waiting:,}"
    yield "failed", f"{now.failed:,}"
    yield "discarded", f"{now.discarded:,}"
    yield "tokens in", f"{now.usage.prompt_tokens:,}"
    yield "tokens out", f"{now.usage.completion_tokens:,}"
    yield "cost", f"{now.usage.cost:.4g}"
    yield "rate", pace(now)
    if now.last_error:
        yield "last error", clipped(now.last_error)


def clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= ERROR_CHARS else f"{line[:ERROR_CHARS]}…"


def short(number: int) -> str:
    """Return a number with three digits and k, M or G."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= THREE_DIGITS * size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """Return a time in its two largest units."""
    rest, parts = round(seconds), []
    for name, size in SECONDS:
        if rest >= size:
            parts.append(f"{rest // size} {name}")
            rest %= size
    return " ".join(parts[:2]) or "0 s"
