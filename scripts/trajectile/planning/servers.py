"""Asks the MCP servers on offer for their tools, once at the start of a run, and keeps a run to what it was told."""

import asyncio
from collections.abc import Iterator, Sequence

from trajectile.errors import PromptError, UserError
from trajectile.planning.first_request import first_owed
from trajectile.planning.offer import make_offer
from trajectile.planning.preparation import PreparedRun
from trajectile.rows import PromptRow
from trajectile.run_folder.identity import ServerTool
from trajectile.sandbox.backend import Backend
from trajectile.tools.mcp.asking import ask_for_tools
from trajectile.tools.mcp.servers import SANDBOX, Server, read_servers

Answer = Sequence[ServerTool] | str


def with_servers(run: PreparedRun, backend: Backend) -> PreparedRun:
    """The run with the tools that its MCP servers offer; a UserError says which cannot be had, or are others now.

    Without `preflight` a server that was asked at an earlier start is taken at its word.
    """
    known = {} if run.settings.preflight else run.offer.mcp_tools
    names = [name for name in run.offer.servers if name not in known]
    row = first_owed(run)
    if not names or row is None:
        return run
    every = read_servers(run.settings.mcp_servers)
    answers = dict(asyncio.run(_ask_all([every[name] for name in names], run, backend, row)))
    kept = {name: _settled(run, name, answer) for name, answer in answers.items()}
    return run._replace(offer=make_offer(run.settings, run.identity, kept))


async def _ask_all(
    servers: list[Server], run: PreparedRun, backend: Backend, row: PromptRow
) -> list[tuple[str, Answer]]:
    asked = await asyncio.gather(*(_ask(server, run, backend, row) for server in servers))
    return [(server.name, answer) for server, answer in zip(servers, asked, strict=True)]


async def _ask(server: Server, run: PreparedRun, backend: Backend, row: PromptRow) -> Answer:
    """A server for sandboxes is asked in a sandbox as the first prompt gets it."""
    timeout_s = run.settings.mcp_timeout
    if server.where != SANDBOX:
        return await ask_for_tools(server, None, timeout_s)
    sandbox = backend.open(row)
    try:
        await sandbox.start()
        return await ask_for_tools(server, sandbox, timeout_s)
    except PromptError as problem:
        return f"MCP server {server.name}: {problem}"
    finally:
        await sandbox.close()


def _settled(run: PreparedRun, server: str, answer: Answer) -> Answer:
    """The tools that a run goes on with, as `settings_change` says, where a server offers others than before."""
    before = run.identity.mcp_tools.get(server) if run.identity else None
    if isinstance(answer, str) or before is None or before == answer or run.settings.settings_change == "keep":
        return answer
    if run.settings.settings_change == "run":
        return before
    raise UserError(
        f"MCP server {server} offers other tools than when run {run.settings.run_name} was begun:\n"
        + "\n".join(f"  {line}" for line in _differences(before, answer))
        + "\nChoose another run_name, or set settings_change to run (go on with the run's own) or keep (use the new)."
    )


def _differences(before: Sequence[ServerTool], now: Sequence[ServerTool]) -> Iterator[str]:
    old, new = ({tool.name: tool for tool in tools} for tools in (before, now))
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{name}: gone"
        elif name not in old:
            yield f"{name}: new"
        elif old[name] != new[name]:
            yield f"{name}: another description or other arguments"
    if list(old) != list(new) and old.keys() == new.keys():
        yield "another order"
