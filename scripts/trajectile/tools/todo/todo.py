"""Tool `todo`."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, parameters

STATUSES = ("pending", "in_progress", "completed", "cancelled")
MOST_ITEMS = 100
CONTENT_CHARACTERS = 500


@dataclass
class Todos:
    """A prompt's list: items by id, in the order they were first written."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def close(self) -> None:
        pass


async def todo(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with the whole list and the number of items of each status."""
    kept = context.own.get(Todos)
    if "todos" in arguments:
        written = {item["id"]: item for item in arguments["todos"]}
        items = kept.items | written if arguments.get("merge") else written
        if len(items) > MOST_ITEMS:
            raise ValueError(f"the list would have {len(items)} items; it may have {MOST_ITEMS}")
        kept.items = items
    counts = Counter(item["status"] for item in kept.items.values())
    summary = {"total": len(kept.items), **{status: counts[status] for status in STATUSES}}
    return as_json(todos=list(kept.items.values()), summary=summary)


ITEM = parameters(
    ["id", "content", "status"],
    id={"type": "string", "minLength": 1, "maxLength": 100},
    content={"type": "string", "minLength": 1, "maxLength": CONTENT_CHARACTERS},
    status={"type": "string", "enum": list(STATUSES)},
)
TOOL = Tool(
    "todo",
    "todo",
    "Your list of things to do, for tasks of several steps. Without arguments it is read. Keep one item in_progress.",
    parameters(
        [],
        todos={"type": "array", "items": ITEM, "description": "the new list, in order"},
        merge={"type": "boolean", "description": "change the items of these ids and add new ones; keep the others"},
    ),
    todo,
)
