"""Tool `write_file`."""

from trajectile.tools.saving import save
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters


async def write_file(context: ToolContext, arguments: Arguments) -> str:
    """Result: how much was written where; missing folders are made."""
    path, data = arguments["path"], arguments["content"].encode("utf-8")
    await save(context.sandbox, path, data)
    return f"Wrote {len(data)} bytes to {path}"


TOOL = Tool(
    "write_file",
    "file",
    "Write a file, replacing what is there.",
    parameters(["path", "content"], path={"type": "string"}, content={"type": "string"}),
    write_file,
)
