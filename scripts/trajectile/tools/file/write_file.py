"""Tool `write_file`."""

import posixpath

from trajectile.sandbox.shell import quote_path
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

FILE_TIMEOUT_S = 60.0


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


TOOL = Tool(
    "write_file",
    "file",
    "Write a file, replacing what is there.",
    parameters(["path", "content"], path={"type": "string"}, content={"type": "string"}),
    write_file,
)
