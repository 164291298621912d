"""What a search provider is, and what it finds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trajectile.configuration.settings import Settings
from trajectile.sandbox.output import to_text
from trajectile.tools.tool import ToolContext


class Found(NamedTuple):
    """One result of a search."""

    title: str
    url: str
    description: str


class SearchError(ValueError):
    """A search came to nothing; the message is one sentence that names the setting to look at."""


Search = Callable[[ToolContext, str, int], Awaitable[list[Found]]]


@dataclass(frozen=True)
class Provider:
    """`search` takes a query and the number of results wanted; `lacks` says what is missing on this machine."""

    name: str
    search: Search
    lacks: Callable[[Settings], str]


@dataclass(frozen=True)
class Request:
    """An HTTP request: GET with `query`, or POST where there is a `body`."""

    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)


def found(results: Any, title: str, url: str, *descriptions: str) -> list[Found]:
    """Results out of a list of objects by their field names, the first description that is not empty; odd ones are
    left out."""
    items = [item for item in results if isinstance(item, dict)] if isinstance(results, list) else []
    return [
        Found(
            _text(item.get(title)),
            item[url],
            next((text for name in descriptions if (text := _text(item.get(name)))), ""),
        )
        for item in items
        if isinstance(item.get(url), str)
    ]


def _text(value: Any) -> str:
    """A field's text; that of a list is its parts."""
    parts = value if isinstance(value, list) else [value]
    text = " … ".join(part for part in parts if isinstance(part, str))
    return " ".join(to_text(text.encode("utf-8", "replace")).split())
