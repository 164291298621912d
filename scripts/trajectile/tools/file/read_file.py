"""Tool `read_file`."""

from trajectile.tools.tool import Arguments, Tool, ToolContext, error, parameters

LINE_LIMIT = 2000
DEFAULT_LINES = 500


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
    shown = numbered(asked, first, context.settings.output_limit)
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


TOOL = Tool(
    "read_file",
    "file",
    "Read a text file with line numbers.",
    parameters(
        ["path"],
        path={"type": "string"},
        offset={"type": "integer", "minimum": 1, "description": "first line, from 1"},
        limit={"type": "integer", "minimum": 1, "description": f"lines, {DEFAULT_LINES} if not given"},
    ),
    read_file,
)
