"""What the tests of the browser tools share: one browser, one site, and a prompt of its own for each test."""

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tool_contexts import tool_context
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.registry import TOOLSETS
from trajectile.tools.tool import States, ToolContext, is_failure

TOOLS = {tool.name: tool for tool in TOOLSETS["browser"]}


class Prompt:
    """A prompt that calls browser tools; names are without browser_."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    async def result(self, name: str, **arguments: Any) -> str:
        return await call(TOOLS[f"browser_{name}"], self.context, arguments)

    async def use(self, name: str, **arguments: Any) -> Any:
        """Call a tool that must succeed; its result as data."""
        result = await self.result(name, **arguments)
        assert not is_failure(result), result
        return json.loads(result)

    async def refused(self, name: str, **arguments: Any) -> str:
        """Call a tool that must fail; its error."""
        result = await self.result(name, **arguments)
        assert is_failure(result), result
        return str(json.loads(result)["error"])

    async def name_of(self, label: str) -> str:
        """The name of the first element with a label, in a new snapshot."""
        snapshot = (await self.use("snapshot", full=True))["snapshot"]
        found = re.search(rf'"{label}".*?\[ref=(@e\d+)\]', snapshot)
        assert found, snapshot
        return found[1]

    async def click(self, label: str) -> Any:
        return await self.use("click", ref=await self.name_of(label))

    async def shown(self, **arguments: Any) -> str:
        return str((await self.use("snapshot", **arguments))["snapshot"])


@asynccontextmanager
async def prompt(shared: States, **settings: Any) -> AsyncIterator[Prompt]:
    """A prompt in a local sandbox, closed with its part of the browser."""
    with tempfile.TemporaryDirectory() as folder:
        sandbox = LocalSandbox(Path(folder), "none", output_limit=20_000)
        context = tool_context(sandbox, **settings)
        context.shared = shared
        await sandbox.start()
        try:
            yield Prompt(context)
        finally:
            await context.close()
            await sandbox.close()


async def main(url: str) -> None:
    """Open a page, say so, and stay."""
    async with prompt(States(), web_allow_private=True) as user:
        await user.use("navigate", url=url)
        print("opened", flush=True)
        await user.result("console", expression="while (true);")
        await asyncio.sleep(600)
