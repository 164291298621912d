"""Toolset `terminal`: commands in the foreground and in the background."""

from trajectile.sandbox.output import to_text
from trajectile.sandbox.shell import quote_path
from trajectile.tools.processes import ACTIONS, Processes
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, error, parameters


async def terminal(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with output and exit_code, and with error where the deadline ended the command."""
    command, workdir = str(arguments["command"]), arguments.get("workdir")
    if workdir is not None:
        command = f"cd -- {quote_path(workdir)} || exit\n{command}"
    if arguments.get("background"):
        return as_json(session_id=context.state(Processes).begin(context, arguments["command"], command))
    timeout_s = deadline(context, arguments)
    result = await context.sandbox.exec(command, timeout_s=timeout_s, persist=workdir is None)
    answer = {"output": to_text(result.output), "exit_code": result.exit_code}
    if result.timed_out:
        answer["error"] = f"timed out after {timeout_s:g} s, killed with all it had started"
    return as_json(**answer)


async def process(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON; see processes.Processes."""
    processes, action, session = context.state(Processes), arguments["action"], arguments.get("session_id")
    if action == "list":
        return as_json(processes=processes.all())
    if session is None:
        return error(f"{action} needs a session_id")
    if session not in processes.by_id:
        known = ", ".join(processes.by_id) or "none"
        return error(f"no background process {session!r}; there are: {known}")
    return await processes.act(action, session, arguments.get("data"), deadline(context, arguments))


def deadline(context: ToolContext, arguments: Arguments) -> float:
    """Seconds: what the model asks for, up to what the user allows."""
    return min(context.command_timeout_s, float(arguments.get("timeout", context.command_timeout_s)))


SECONDS = {"type": "number", "exclusiveMinimum": 0, "description": "seconds"}
TERMINAL = Tool(
    "terminal",
    "terminal",
    "Run a bash command. The working directory and exported variables last from one call to the next.",
    parameters(
        ["command"],
        command={"type": "string"},
        background={"type": "boolean", "description": "return at once; see process"},
        timeout=SECONDS,
        workdir={"type": "string", "description": "run in this directory, for this call only"},
    ),
    terminal,
)
PROCESS = Tool(
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
