"""Which key an endpoint is given: keys come from the environment alone, and none goes where it does not belong."""

import os
from urllib.parse import urlsplit


def api_key(base_url: str) -> str:
    """Return the key for the run's endpoint; "" where none is set, as servers of one's own allow."""
    names = ["TRAJECTILE_API_KEY", "OPENAI_API_KEY"]
    host = urlsplit(base_url).hostname or ""
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        names.insert(1, "OPENROUTER_API_KEY")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def are_one_server(one: str, other: str) -> bool:
    """Tell whether two URLs lead to the same server, by scheme, host and port: a key for one may go to the other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
