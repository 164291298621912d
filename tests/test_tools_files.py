"""Tools read_file, write_file, patch and search_files, in a real sandbox."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tool_contexts import tool_context
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.file import matching
from trajectile.tools.file.difference import diff
from trajectile.tools.registry import TOOLSETS
from trajectile.tools.tool import ToolContext, is_failure

TOOLS = {tool.name: tool for tool in TOOLSETS["file"]}
Test = Callable[[ToolContext], Coroutine[Any, Any, None]]


def within(parent: Path, test: Test, output_limit: int = 20_000) -> None:
    async def run() -> None:
        sandbox = LocalSandbox(parent, "auto", output_limit=output_limit)
        await sandbox.start()
        try:
            await test(tool_context(sandbox, 30, output_limit))
        finally:
            await sandbox.close()

    asyncio.run(run())


async def use(context: ToolContext, name: str, **arguments: Any) -> str:
    result = await call(TOOLS[name], context, arguments)
    assert not is_failure(result), result
    return result


async def refused(context: ToolContext, name: str, **arguments: Any) -> str:
    result = await call(TOOLS[name], context, arguments)
    assert is_failure(result), result
    return str(json.loads(result)["error"])


def test_read_shows_numbered_lines_in_pages(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        text = "".join(f"line {number}\n" for number in range(1, 11))
        assert await use(context, "write_file", path="sub/a.txt", content=text) == "Wrote 71 bytes to sub/a.txt"
        await context.sandbox.exec("cd sub", timeout_s=30)
        assert (await use(context, "read_file", path="a.txt")).splitlines()[::9] == ["1|line 1", "10|line 10"]
        page = await use(context, "read_file", path="a.txt", offset=3, limit=2)
        assert page == "3|line 3\n4|line 4\n[lines 3-4 of 10; go on with offset=5]"
        assert await use(context, "read_file", path="a.txt", offset=99) == "[no line 99: the file has 10 lines]"
        await use(context, "write_file", path="empty", content="")
        assert await use(context, "read_file", path="empty") == "[no line 1: the file has 0 lines]"

    within(tmp_path, test)


def test_read_is_bounded_and_keeps_odd_line_ends_inside_lines(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await use(context, "write_file", path="odd", content="a\u2028b\u0085c\fd\n" + "x" * 5000 + "\n" * 500)
        shown = (await use(context, "read_file", path="odd")).split("\n")
        assert shown[0] == "1|a\u2028b\u0085c\fd"
        assert shown[1].endswith("x [… 3000 more]")
        assert shown[-1].startswith("[lines 1-")
        assert len("\n".join(shown).encode()) < 3200

    within(tmp_path, test, output_limit=3000)


def test_read_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await context.sandbox.write_file("bin", b"a\0b")
        assert await refused(context, "read_file", path="bin") == "a binary file of 3 bytes"
        assert await refused(context, "read_file", path="no such") == "No such file or directory: no such"
        assert await refused(context, "read_file", path=".") == "Is a directory: ."
        assert "minimum" in await refused(context, "read_file", path="bin", offset=0)

    within(tmp_path, test)


def test_patch_answers_with_a_diff_and_keeps_other_bytes(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await context.sandbox.write_file("f", b"one\r\ntw\xff\r\nthree\r\n")
        shown = await use(context, "patch", path="f", old_string="three\n", new_string="3\n4\n")
        assert shown.startswith("--- a/f\n+++ b/f\n@@ -1,4 +1,5 @@\n")
        assert "-three" in shown
        assert "+4" in shown
        assert await context.sandbox.read_file("f") == b"one\r\ntw\xff\r\n3\r\n4\r\n"

    within(tmp_path, test)


def test_a_change_in_a_long_file_is_shown_and_very_many_are_named(tmp_path: Path) -> None:
    lines = [f"value {number % 150}" for number in range(50_000)]

    async def test(context: ToolContext) -> None:
        one = "\n".join([*lines[:30_000], "here", *lines[30_000:]])
        await use(context, "write_file", path="f", content=one)
        started = time.monotonic()
        shown = await use(context, "patch", path="f", old_string="here", new_string="there\nand")
        around = " value 148\n value 149\n-here\n+there\n+and\n value 0\n value 1"
        assert shown == f"--- a/f\n+++ b/f\n@@ -29999,5 +29999,6 @@\n{around}"
        shown = await use(context, "patch", path="f", old_string="value 1", new_string="v", replace_all=True)
        assert shown == "--- a/f\n+++ b/f\n[lines 2-49972 became lines 2-49972: too many to show]"
        shown = await use(context, "patch", path="f", old_string="value", new_string="v", replace_all=True)
        assert "too many" in shown and time.monotonic() - started < 40, "difflib takes minutes"
        assert b"value" not in await context.sandbox.read_file("f")

    within(tmp_path, test)


@pytest.mark.parametrize(
    ("before", "after", "hunks"),
    [
        ("a", "a", []),
        ("a\nb", "a\nb\nb", ["@@ -1,2 +1,3 @@"]),
        ("", "x\n", ["@@ -1 +1,2 @@"]),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\nx\n5\n6\n7\n8\n9\n10", ["@@ -2,5 +2,5 @@", "@@ -8,2 +8,3 @@"]),
    ],
)
def test_hunks_are_numbered_as_in_the_file(before: str, after: str, hunks: list[str]) -> None:
    assert [line for line in diff(before, after, "f").split("\n") if line.startswith("@@")] == hunks


def test_patch_refuses_the_ambiguous_and_the_absent(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await use(context, "write_file", path="f", content="a\na\nb\n")
        assert "occurs 2 times" in await refused(context, "patch", path="f", old_string="a", new_string="c")
        assert "not found" in await refused(context, "patch", path="f", old_string="z", new_string="c")
        assert "same" in await refused(context, "patch", path="f", old_string="b", new_string="b")
        assert "empty" in await refused(context, "patch", path="f", old_string="", new_string="b")
        assert await context.sandbox.read_file("f") == b"a\na\nb\n"
        await use(context, "patch", path="f", old_string="a", new_string="c", replace_all=True)
        assert await context.sandbox.read_file("f") == b"c\nc\nb\n"

    within(tmp_path, test)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("say “hi” – now", 'say "hi" - now', "bye", "bye"),
        ("x = 1   \ny = 2\nz", "x = 1\ny = 2", "q", "q\nz"),
        (
            "def f():\n        a\n        b\n",
            "    a\n    b\n",
            "    c\n      d\n",
            "def f():\n        c\n          d\n",
        ),
        ("  if a:\n    b\n", "if a:\n  b", "if c:\n  b", "  if c:\n    b\n"),
        ("f( a,  b )\nrest", "f( a, b )", "g()", "g()\nrest"),
        ("a\n\tb\nc", "a\n    b\nc", "x", "x"),
        ('exact “q”\nexact "q"', 'exact "q"', "x", "exact “q”\nx"),
    ],
)
def test_fuzzy_matching(text: str, old: str, new: str, expected: str) -> None:
    assert matching.replace(text, old, new, everywhere=False) == expected


def test_fuzzy_matches_are_counted_too() -> None:
    with pytest.raises(ValueError, match="occurs 2 times"):
        matching.replace("  a\n  b\n    a\n    b\n", "a\nb\n", "x", everywhere=False)
    with pytest.raises(ValueError, match="not found"):
        matching.replace("a\nc\n", "a\nb", "x", everywhere=False)


HOSTILE = "-e $(touch owned)\n'\".py"


def test_search_contents(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        for path, content in {
            "b.py": "import os\nx = 12\n",
            "a/c.py": "x = 34",
            "a/d.txt": "x = 56\n",
            ".git/config": "x = 78\n",
            HOSTILE: "x = 90\n",
        }.items():
            await use(context, "write_file", path=path, content=content)
        await context.sandbox.write_file("bin", b"x = 11\0")
        hostile = HOSTILE.replace("\n", "\\n")
        everything = [f"{hostile}:1:x = 90", "a/c.py:1:x = 34", "a/d.txt:1:x = 56", "b.py:2:x = 12"]
        assert (await use(context, "search_files", pattern=r"x = \d+")).split("\n") == everything
        only = await use(context, "search_files", pattern="x = [0-9]+", file_glob="*.py", path="a")
        assert only == "a/c.py:1:x = 34"
        page = await use(context, "search_files", pattern="x =", limit=1, offset=1)
        assert page == "a/c.py:1:x = 34\n[2 of 4; go on with offset=2]"
        assert await use(context, "search_files", pattern="x =", offset=4) == "[no matches from 4 on, 4 in all]"
        assert await use(context, "search_files", pattern="nowhere") == "[no matches]"
        assert await use(context, "search_files", pattern="x", path="b.py") == "b.py:2:x = 12"
        assert (await context.sandbox.exec("ls owned", timeout_s=30)).exit_code != 0

    within(tmp_path, test)


def test_search_names(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        for path in ("src/a.py", "src/sub/b.py", HOSTILE, "c.txt", ".git/d.py"):
            await use(context, "write_file", path=path, content="")
        found = await use(context, "search_files", pattern="*.py", target="files")
        assert found.split("\n") == [HOSTILE.replace("\n", "\\n"), "src/a.py", "src/sub/b.py"]
        assert await use(context, "search_files", pattern="sub/*.py", target="files") == "src/sub/b.py"
        found = await use(context, "search_files", pattern="*", target="files", path="src", limit=1)
        assert found == "src/a.py\n[1 of 2; go on with offset=1]"

    within(tmp_path, test)


def test_search_tells_what_is_wrong(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        assert "no such file" in await refused(context, "search_files", pattern="x", path="nowhere")
        assert "Unmatched" in await refused(context, "search_files", pattern="f(")
        assert "not one of" in await refused(context, "search_files", pattern="x", target="names")

    within(tmp_path, test)


def test_search_is_bounded(tmp_path: Path) -> None:
    async def test(context: ToolContext) -> None:
        await context.sandbox.exec("yes xxxxxxxxx | head -n 900000 > f; rm -f g", timeout_s=30)
        found = await use(context, "search_files", pattern="x", limit=100_000)
        assert len(found.encode()) < 3200
        assert "or more; go on with offset=" in found

    within(tmp_path, test, output_limit=3000)
