"""What a tool is called with, outside a run."""

from typing import Any

from trajectile.configuration.settings import load_settings
from trajectile.model.settings import ModelSettings
from trajectile.sandbox.base import Sandbox
from trajectile.tools.tool import Tool, ToolContext

RUN_KEY = "key-of-the-run"


def tool_context(
    sandbox: Sandbox,
    timeout_s: float = 60,
    output_limit: int = 20_000,
    tools: dict[str, Tool] | None = None,
    **settings: Any,
) -> ToolContext:
    """Return a context with default settings but for a command's time in seconds, output in bytes, and `settings`."""
    given = load_settings({"command_timeout": timeout_s, "output_limit": output_limit, **settings})
    model = ModelSettings(given.base_url, RUN_KEY, given.model, max_retries=given.max_retries, backoff_s=0.01)
    return ToolContext(sandbox, given, model, tools or {})
