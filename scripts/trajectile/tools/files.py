"""Toolset `file`: read, write and patch files through the sandbox."""

import posixpath

from trajectile.sandbox.shell import quote_path
from trajectile.tools import matching
from trajectile.tools.tool import Arguments, Tool, ToolContext, error, parameters

LINE_LIMIT = 2000
DEFAULT_LINES = 500
FILE_TIMEOUT_S = 60.0


async def read_file(context: ToolContext, arguments: Arguments) -> str:
    """Result: the asked-for lines with their numbers, and a note where there are more."""
    data = await context.sandbox.read_file(arguments["path"])
    if b"\x00" in data:
        return error(f"a binary file of {len(data)} bytes")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    first = int(arguments.get("offset", 1))
    asked = lines[first - 1 : first - 1 + int(arguments.get("limit", DEFAULT_LINES))]
    if not asked:
        return f"[no line {first}: the file has {len(lines)} lines]"
    shown = numbered(asked, first, context.output_limit)
    last = first + len(shown) - 1
    more = [] if last == len(lines) else [f"[lines {first}-{last} of {len(lines)}; go on with offset={last + 1}]"]
    return "\n".join(shown + more)


def numbered(lines: list[str], first: int, limit_bytes: int) -> list[str]:
    """As many lines as fit, at least one, long ones cut."""
    shown: list[str] = []
    for number, line in enumerate(lines, first):
        cut = line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]} [… {len(line) - LINE_LIMIT} more]"
        limit_bytes -= len(cut.encode()) + 8
        if shown and limit_bytes < 0:
            break
        shown.append(f"{number}|{cut}")
    return shown


async def write_file(context: ToolContext, arguments: Arguments) -> str:
    """Result: how much was written where; missing folders are made."""
    path, data = arguments["path"], arguments["content"].encode("utf-8")
    try:
        await context.sandbox.write_file(path, data)
    except FileNotFoundError:
        folder = posixpath.dirname(path)
        await context.sandbox.exec(
            f"command -p mkdir -p -- {quote_path(folder)}", timeout_s=FILE_TIMEOUT_S, persist=False
        )
        await context.sandbox.write_file(path, data)
    return f"Wrote {len(data)} bytes to {path}"


async def patch(context: ToolContext, arguments: Arguments) -> str:
    """Result: a unified diff of what was changed."""
    path, old, new = arguments["path"], arguments["old_string"], arguments["new_string"]
    # Bytes that are no UTF-8 come out as they went in.
    before = (await context.sandbox.read_file(path)).decode("utf-8", "surrogateescape")
    after = matching.replace(before, old, new, everywhere=bool(arguments.get("replace_all")))
    await context.sandbox.write_file(path, after.encode("utf-8", "surrogateescape"))
    return matching.diff(before, after, path)


PATH = {"type": "string"}
READ_FILE = Tool(
    "read_file",
    "file",
    "Read a text file with line numbers.",
    parameters(
        ["path"],
        path=PATH,
        offset={"type": "integer", "minimum": 1, "description": "first line, from 1"},
        limit={"type": "integer", "minimum": 1, "description": f"lines, {DEFAULT_LINES} if not given"},
    ),
    read_file,
)
WRITE_FILE = Tool(
    "write_file",
    "file",
    "Write a file, replacing what is there.",
    parameters(["path", "content"], path=PATH, content={"type": "string"}),
    write_file,
)
PATCH = Tool(
    "patch",
    "file",
    "Replace old_string by new_string in a file. old_string must occur once, unless replace_all is true.",
    parameters(
        ["path", "old_string", "new_string"],
        path=PATH,
        old_string={"type": "string"},
        new_string={"type": "string"},
        replace_all={"type": "boolean"},
    ),
    patch,
)
