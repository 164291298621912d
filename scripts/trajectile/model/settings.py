"""What a model call needs to know about its endpoint."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class ModelSettings:
    """One endpoint and how it is asked; a parameter that is None does not go over the wire.

    `request_timeout_s` bounds one whole exchange, `max_retries` the retries after anything but a rate limit,
    `concurrency` the requests in flight. `extra_body` goes into each request. Prices are for a million tokens, where
    the answer names no cost. Backoff starts at `backoff_s`, doubles, and stops at `backoff_max_s`.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    request_timeout_s: float = 600.0
    max_retries: int = 5
    concurrency: int = 8
    extra_body: dict[str, Any] = field(default_factory=dict)
    price_prompt: float | None = None
    price_completion: float | None = None
    backoff_s: float = 1.0
    backoff_max_s: float = 60.0

    @property
    def endpoint(self) -> str:
        """The base URL as it may be shown: without user, password and query."""
        url = urlsplit(self.base_url)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}".rstrip("/")
