"""The last bound on what tools return."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tool_contexts import tool_context
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.bounding import bounded
from trajectile.tools.calling import call
from trajectile.tools.tool import Tool, ToolContext, is_failure, parameters


def test_what_fits_stays_as_it_is() -> None:
    for result in ("short", '{"output": "%s"}' % ("\\n" * 700), "é" * 1000):
        assert bounded(result, 1000) == result


def test_a_text_keeps_its_head_and_tail() -> None:
    cut = bounded(f"head{'é' * 5000}tail", 1000)
    assert cut.startswith("headé") and cut.endswith("étail") and "[… 9008 bytes cut …]" in cut
    assert len(cut.encode()) < 1100


@pytest.mark.parametrize("escaped", ["x", '"', "\x01"])
def test_an_object_stays_one_and_what_it_says_of_success(escaped: str) -> None:
    whole = json.dumps({"output": escaped * 9000, "parts": [{"text": "y" * 9000}], "n": 5, "error": "no", "x": None})
    cut = bounded(whole, 1000)
    data = json.loads(cut)
    assert len(cut.encode()) <= 2000 and is_failure(cut)
    assert (data["n"], data["error"], data["x"]) == (5, "no", None) and "bytes cut" in data["output"]
    assert data["output"].startswith(escaped) and data["parts"][0]["text"].endswith("y")


def test_an_object_of_many_parts_is_cut_as_text() -> None:
    cut = bounded(json.dumps({"rows": list(range(5000))}), 1000)
    assert cut.startswith('{"rows": [0, 1,') and len(cut.encode()) < 1100 and not is_failure(cut)


def test_every_call_passes_the_bound(tmp_path: Path) -> None:
    async def flood(_context: ToolContext, _arguments: dict[str, Any]) -> str:
        return "\udcff" + "z" * 9000

    tool = Tool("flood", "t", "", parameters([]), flood)
    context = tool_context(LocalSandbox(tmp_path, "none", output_limit=1000), output_limit=1000)
    result = asyncio.run(call(tool, context, {}))
    assert result.startswith("\ufffdzz") and len(result.encode()) < 1100
