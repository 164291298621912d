"""What a tool is called with, outside a run."""

from typing import Any

from trajectile.configuration.settings import load_settings
from trajectile.sandbox.base import Sandbox
from trajectile.tools.tool import Tool, ToolContext


def tool_context(
    sandbox: Sandbox,
    timeout_s: float = 60,
    output_limit: int = 20_000,
    tools: dict[str, Tool] | None = None,
    **settings: Any,
) -> ToolContext:
    """Return a context with default settings but for a command's time in seconds, output in bytes, and `settings`."""
    given = {"command_timeout": timeout_s, "output_limit": output_limit, **settings}
    return ToolContext(sandbox, load_settings(given), tools or {})
