"""Tool `terminal`: a bash command."""

from trajectile.sandbox.output import to_text
from trajectile.sandbox.shell import quote_path
from trajectile.tools.terminal.deadlines import SECONDS, deadline
from trajectile.tools.terminal.processes import Processes
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, parameters


async def terminal(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with output and exit_code, and with error where the deadline ended the command."""
    command, workdir = str(arguments["command"]), arguments.get("workdir")
    if workdir is not None:
        command = f"cd -- {quote_path(workdir)} || exit\n{command}"
    if arguments.get("background"):
        return as_json(session_id=context.own.get(Processes).begin(context, arguments["command"], command))
    timeout_s = deadline(context, arguments)
    result = await context.sandbox.exec(command, timeout_s=timeout_s, persist=workdir is None)
    answer = {"output": to_text(result.output), "exit_code": result.exit_code}
    if result.timed_out:
        answer["error"] = f"timed out after {timeout_s:g} s, killed with all it had started"
    return as_json(**answer)


TOOL = Tool(
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
