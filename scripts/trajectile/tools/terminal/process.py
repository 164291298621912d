"""Tool `process`: background commands."""

from trajectile.tools.terminal.deadlines import SECONDS, deadline
from trajectile.tools.terminal.processes import ACTIONS, Processes
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, error, parameters


async def process(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON; see processes.Processes."""
    processes, action, session = context.own.get(Processes), arguments["action"], arguments.get("session_id")
    if action == "list":
        return as_json(processes=processes.all())
    if session is None:
        return error(f"{action} needs a session_id")
    if session not in processes.by_id:
        known = ", ".join(processes.by_id) or "none"
        return error(f"no background process {session!r}; there are: {known}")
    return await processes.act(action, session, arguments.get("data"), deadline(context, arguments))


TOOL = Tool(
    "process",
    "terminal",
    "Look after background commands: list; poll: new output; log: all output; wait for the end; kill; write to stdin.",
    parameters(
        ["action"],
        action={"type": "string", "enum": list(ACTIONS)},
        session_id={"type": "string"},
        data={"type": "string", "description": "what to write, with its newline"},
        timeout=SECONDS,
    ),
    process,
)
