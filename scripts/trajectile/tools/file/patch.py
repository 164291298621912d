"""Tool `patch`."""

from trajectile.tools.file import matching
from trajectile.tools.file.difference import diff
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters


async def patch(context: ToolContext, arguments: Arguments) -> str:
    """Result: a unified diff of what was changed, or where, if that is much."""
    path, old, new = arguments["path"], arguments["old_string"], arguments["new_string"]
    # Bytes that are no UTF-8 come out as they went in.
    before = (await context.sandbox.read_file(path)).decode("utf-8", "surrogateescape")
    after = matching.replace(before, old, new, everywhere=bool(arguments.get("replace_all")))
    await context.sandbox.write_file(path, after.encode("utf-8", "surrogateescape"))
    return diff(before, after, path)


TOOL = Tool(
    "patch",
    "file",
    "Replace old_string by new_string in a file. old_string must occur once, unless replace_all is true.",
    parameters(
        ["path", "old_string", "new_string"],
        path={"type": "string"},
        old_string={"type": "string"},
        new_string={"type": "string"},
        replace_all={"type": "boolean"},
    ),
    patch,
)
