"""How long a command may take."""

from trajectile.tools.tool import Arguments, ToolContext

SECONDS = {"type": "number", "exclusiveMinimum": 0, "description": "seconds"}


def deadline(context: ToolContext, arguments: Arguments) -> float:
    """Seconds: what the model asks for, up to what the user allows."""
    return min(context.settings.command_timeout, float(arguments.get("timeout", context.settings.command_timeout)))
