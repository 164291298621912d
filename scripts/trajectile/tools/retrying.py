"""When a tool asks a server again: briefly, since a model and a prompt's time are waiting."""

import random
from collections.abc import Mapping

from trajectile.model.retry_after import asked_wait_s

PASSING = frozenset({429, 500, 502, 503, 504})
BACKOFF_S = 0.5
WAIT_MAX_S = 8.0


def wait_before_retry(status: int, headers: Mapping[str, str], attempt: int) -> float | None:
    """Seconds until the next try after the `attempt`-th (from 0); None for an answer that will not change soon."""
    if status not in PASSING:
        return None
    asked = asked_wait_s(headers, {})
    if asked is not None:
        return asked if asked <= WAIT_MAX_S else None
    return float(BACKOFF_S * 2**attempt * random.uniform(0.5, 1.0))
