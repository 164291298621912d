"""The registry of tools: schemas, arguments, results."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tool_contexts import tool_context
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import arguments_problem, call
from trajectile.tools.registry import TOOLSETS, schemas, tools_of
from trajectile.tools.tool import Tool, ToolContext, error, is_failure, parameters

TOOLS = {tool.name: tool for tool in tools_of(TOOLSETS, TOOLSETS)}


def test_tools_have_the_names_of_the_field() -> None:
    names = {toolset: [tool.name for tool in tools] for toolset, tools in TOOLSETS.items()}
    assert names["terminal"] == ["process", "terminal"]
    assert names["file"] == ["patch", "read_file", "search_files", "write_file"]
    assert all(tool.toolset == toolset for toolset, tools in TOOLSETS.items() for tool in tools)
    assert [tool.name for tool in tools_of(["file"], TOOLSETS)] == names["file"]
    with pytest.raises(KeyError):
        tools_of(["nowhere"], TOOLSETS)


def test_schemas_are_valid_and_short() -> None:
    listed = schemas(tools_of(TOOLSETS, TOOLSETS))
    assert {entry["type"] for entry in listed} == {"function"}
    for entry in listed:
        Draft202012Validator.check_schema(entry["function"]["parameters"])
        assert set(entry["function"]) == {"name", "description", "parameters"}
    assert len(json.dumps(listed)) < 600 * len(listed)


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("terminal", {}, "'command' is a required property"),
        ("terminal", {"command": 5}, "command: 5 is not of type 'string'"),
        ("terminal", {"command": "x", "cmd": "y"}, "'cmd' was unexpected"),
        ("terminal", {"command": "x", "timeout": "5"}, "timeout: '5' is not of type 'number'"),
        ("terminal", {"command": "x", "timeout": 0}, "timeout: 0 is less than or equal to"),
        ("terminal", {"command": "x", "background": "yes"}, "'yes' is not of type 'boolean'"),
        ("terminal", {"command": None}, "None is not of type 'string'"),
        ("read_file", {"path": "x", "limit": 1.5}, "1.5 is not of type 'integer'"),
        ("process", {"action": "dance"}, "'dance' is not one of"),
    ],
)
def test_wrong_arguments_are_refused(name: str, arguments: dict[str, Any], problem: str) -> None:
    said = arguments_problem(TOOLS[name], arguments)
    assert problem in said
    assert "It takes: " in said


def test_right_arguments_pass() -> None:
    assert arguments_problem(TOOLS["terminal"], {"command": "x", "timeout": 1.5, "background": True}) == ""
    assert arguments_problem(TOOLS["read_file"], {"path": "x", "limit": 5.0}) == ""


def test_huge_wrong_argument_makes_a_short_error() -> None:
    assert len(arguments_problem(TOOLS["write_file"], {"path": "x", "content": ["y" * 1_000_000]})) < 500


def test_call_checks_and_catches(tmp_path: Path) -> None:
    async def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        if "raise" in arguments:
            raise {"os": OSError(28, "full", "f"), "value": ValueError("odd"), "key": KeyError("bug")}[
                arguments["raise"]
            ]
        return json.dumps(arguments)

    text = {"type": "string"}
    tool = Tool("t", "s", "d", parameters(["a"], **{"a": text, "b": text, "raise": text}), handler)

    async def run() -> None:
        context = tool_context(LocalSandbox(tmp_path, "none", output_limit=1000), 5, 1000)
        # null where an argument is optional means that it is not given
        assert await call(tool, context, {"a": "x", "b": None}) == '{"a": "x"}'
        assert is_failure(await call(tool, context, {"a": None}))
        assert await call(tool, context, {"a": "x", "raise": "os"}) == '{"error": "full: f"}'
        assert await call(tool, context, {"a": "x", "raise": "value"}) == '{"error": "odd"}'
        with pytest.raises(KeyError):
            await call(tool, context, {"a": "x", "raise": "key"})

    asyncio.run(run())


def test_context_keeps_one_state_a_kind_and_closes_it() -> None:
    class Kept:
        closed = False

        async def close(self) -> None:
            self.closed = True

    async def run() -> None:
        context = tool_context(LocalSandbox(Path(), "none", output_limit=1000), 5, 1000)
        kept = context.own.get(Kept)
        assert context.own.get(Kept) is kept
        await context.close()
        assert kept.closed
        assert context.own.get(Kept) is not kept

    asyncio.run(run())


def test_error_is_valid_text() -> None:
    assert error("a\ud800b") == '{"error": "a?b"}'


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("", True),
        (" \n", True),
        ("Error: no", True),
        ("No Error: here", False),
        ("text", False),
        ('{"error": "x"}', True),
        ('{"error": ""}', True),
        ('{"error": null}', False),
        ('{"error": false}', True),
        ('{"content": {"error": "x"}}', True),
        ('{"content": {"error": null}}', False),
        ('{"content": "error"}', False),
        ('{"success": false}', True),
        ('{"success": true}', False),
        ('{"success": null}', False),
        ('{"output": "", "exit_code": 1}', False),
        ('{"output": {"error": "deeper"}}', False),
        ('["error"]', False),
        ("null", False),
        ('{"error": "cut', False),
    ],
)
def test_what_is_a_failure(result: str, failed: bool) -> None:
    assert is_failure(result) is failed
