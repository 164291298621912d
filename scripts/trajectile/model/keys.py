"""Which key an endpoint is given: keys come from the environment alone, and none goes where it does not belong."""

import os
from urllib.parse import urlsplit

from trajectile.model.errors import WrongKey


def api_key(base_url: str) -> str:
    """Return the key for the run's endpoint; "" where none is set, as servers of one's own allow."""
    names = ["TRAJECTILE_API_KEY", "OPENAI_API_KEY"]
    host = urlsplit(base_url).hostname or ""
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        names.insert(1, "OPENROUTER_API_KEY")
    return next((key for name in names if (key := key_in(name))), "")


def key_in(variable: str) -> str:
    """Return the key in an environment variable, less space around it; "" where none is set.

    Raises WrongKey for what cannot stand in a header.
    """
    key = os.environ.get(variable, "").strip()
    for place, character in enumerate(key, 1):
        if not character.isascii() or not character.isprintable():
            said = f"its character {place} is {_kind(character)}"
            raise WrongKey(f"{variable} holds no key: {said}. Set it to the key and nothing else.")
    return key


def _kind(character: str) -> str:
    if not character.isascii():
        return "outside ASCII"
    return "a line break" if character in "\r\n" else "a control character"


def are_one_server(one: str, other: str) -> bool:
    """Tell whether two URLs lead to the same server, by scheme, host and port: a key for one may go to the other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
