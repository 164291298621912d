"""A user's own tools and distributions: the example of the documentation, and how what is wrong is told."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import Job, Recorder
from scripted_server.fixture import ScriptedServer
from trajectile.command_line.cli import main
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.planning.offer import make_offer
from trajectile.planning.preparation import prepare_run
from trajectile.tools.registry import load_toolsets

DOCUMENT = Path(__file__).parents[1] / "docs" / "tools-code-mcp.md"
HEAD = "from trajectile.tools.tool import Tool, parameters\nasync def f(context, arguments): return 'x'\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def example() -> tuple[str, str]:
    """The tool and the distribution of the documentation."""
    text = DOCUMENT.read_text(encoding="utf-8").split("<!-- example")[1]
    tool, distribution = re.findall(r"```(?:python|yaml)\n(.*?)```", text, re.S)
    return tool, distribution


def started(folder: Path, server: ScriptedServer, **config: str) -> Job:
    """A run with the example, and one prompt that uses its tool well and badly."""
    for name, text in zip(("count_words.py", "own.yaml"), example(), strict=True):
        (folder / name).write_text(text)
    own = {"tool_files": "count_words.py", "distributions_file": "own.yaml", "distribution": "words_too"}
    job = Job(folder, server, ["count"], **own, **config)
    calls = [
        {"name": "terminal", "arguments": {"command": "echo one two three >f"}},
        {"name": "count_words", "arguments": {"path": "f"}},
        {"name": "count_words", "arguments": {"path": "gone"}},
        {"name": "count_words", "arguments": {}},
    ]
    job.script({"match": "count", "replies": [{"tool_calls": calls}, {"text": "three"}]})
    return job


def test_the_example_of_the_documentation_works_and_is_fixed_for_the_run(folder: Path, server: ScriptedServer) -> None:
    job = started(folder, server)
    assert job.here() == 0
    [row] = job.rows()
    assert row.toolsets_used == ["terminal", "words"]
    assert (row.tool_stats["count_words"].success, row.tool_stats["count_words"].failure) == (1, 2)
    results = [turn.value for turn in row.conversations if turn.from_ == "tool"]
    assert results[1:3] == ['{"words": 3}', '{"error": "there is no file gone"}']
    identity = json.loads(job.folder.run_json.read_bytes())
    assert identity["toolsets"]["words"] == ["count_words"]
    assert "count_words" in {schema["function"]["name"] for schema in identity["tool_schemas"]}
    job.release()
    assert not list(folder.glob("**/__pycache__")), "reading a tool writes nothing"
    (folder / "count_words.py").write_text(example()[0] + "# changed\n")
    with pytest.raises(UserError, match=r"tool_files: SHA-256 .* in the run, SHA-256 .* now"):
        prepare_run(job.config)
    assert prepare_run({**job.config, "settings_change": "keep"}).offer.tools(["words"])


def test_other_chances_are_refused_or_settled(folder: Path, server: ScriptedServer) -> None:
    job = started(folder, server)
    job.release()
    own = folder / "own.yaml"
    own.write_text(own.read_text().replace("words: 100", "words: 50"))
    with pytest.raises(UserError, match="had other chances when the run was begun:\n  words: 100 in the run, 50 now"):
        prepare_run(job.config)
    for change, chance in (("run", 100), ("keep", 50)):
        offer = prepare_run({**job.config, "settings_change": change}).offer
        assert offer.distribution.chances == {"terminal": 100, "words": chance}


@pytest.mark.parametrize(
    ("chances", "said"),
    [
        ("  terminal: 100\n  file: 100\n  words: 100", "  file: 0 in the run, 100 now"),
        ("  terminal: 100", "  words: 100 in the run, 0 now"),
        ("  terminal: 100\n  words: 0", "  words: 100 in the run, 0 now"),
    ],
)
def test_other_toolsets_are_refused_or_settled(folder: Path, server: ScriptedServer, chances: str, said: str) -> None:
    job = started(folder, server)
    job.release()
    (folder / "own.yaml").write_text(f"words_too:\n{chances}\n")
    with pytest.raises(UserError, match=said):
        prepare_run(job.config)
    own = prepare_run({**job.config, "settings_change": "run"}).offer
    assert own.distribution.chances == {"terminal": 100, "words": 100}
    before = json.loads(job.folder.run_json.read_bytes())
    job.plan(settings_change="keep")
    after = json.loads(job.folder.run_json.read_bytes())
    assert after["chances"] != before["chances"] and after["settings_digest"] != before["settings_digest"]
    assert after["history"].keys() == {before["settings_digest"], after["settings_digest"]}
    job.release()


def test_a_fault_of_a_tool_fails_the_prompt_and_not_the_shard(folder: Path) -> None:
    (folder / "t.py").write_text(
        HEAD.replace("return 'x'", "return 1 / 0") + "TOOL = Tool('t', 'mine', '', parameters([]), f)"
    )
    (folder / "d.yaml").write_text("d:\n  mine: 100\n")
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    with Recorder({"tool_calls": [call]}) as recorder:
        config = {"tool_files": "t.py", "distributions_file": "d.yaml", "distribution": "d"}
        job = Job(folder, recorder, ["a"], **config)  # type: ignore[arg-type]
        assert job.here() == 0
        job.release()
    [failure] = job.failures()
    assert (failure.kind, failure.message) == ("internal_error", "ZeroDivisionError: division by zero")


WRONG = [
    ("x = (", r"t\.py, line 1: SyntaxError: '\(' was never closed"),
    ("\n\n1 / 0", r"t\.py, line 3: ZeroDivisionError: division by zero"),
    ("import no_such_module", r"t\.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    ("open('gone')", r"t\.py, line 1: FileNotFoundError"),
    ("x = 1", r"t\.py defines no tools; expected TOOL = Tool"),
    ("TOOL = 5", r"t\.py defines no tools"),
    ("TOOLS = []", r"t\.py defines no tools"),
    (HEAD + "TOOL = Tool('t', 'web', '', parameters([]), f)", r"toolset 'web' is one of Trajectile's own"),
    (HEAD + "TOOL = Tool('t', 'mcp:x', '', parameters([]), f)", r"toolset 'mcp:x': a name is of a to z"),
    (HEAD + "TOOL = Tool('terminal', 'mine', '', parameters([]), f)", r"there is a tool 'terminal' already"),
    (HEAD + "TOOL = Tool('a b', 'mine', '', parameters([]), f)", r"tool 'a b': a name is of up to 64 letters"),
    (HEAD + "TOOLS = [Tool('t', 'mine', '', parameters([]), f)] * 2", r"there is a tool 't' already"),
    (HEAD + "TOOL = Tool('t', 'mine', '', [], f)", r"tool 't': the schema of its arguments must be of type object"),
    (
        HEAD + "TOOL = Tool('t', 'mine', '', parameters([], a={'type': 'text'}), f)",
        r"is wrong at properties/a/type: 'text'",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_in_a_file_is_told_with_file_and_line(folder: Path, text: str, message: str) -> None:
    (folder / "t.py").write_text(text)
    with pytest.raises(UserError, match=f"tool_files: .*{message}"):
        load_toolsets(load_settings({"tool_files": "t.py"}))


def test_files_and_entry_points_that_are_not_there_are_named() -> None:
    with pytest.raises(UserError, match=r"tool_files: gone\.py cannot be read: No such file"):
        load_toolsets(load_settings({"tool_files": "gone.py"}))
    with pytest.raises(
        UserError, match=r"tool_files: gone is no file ending in \.py and no entry point in trajectile\.tools"
    ):
        load_toolsets(load_settings({"tool_files": "gone"}))


def test_an_installed_package_offers_tools_by_an_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = folder / "site"
    info = site / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trajectile.tools]\nmine = mine_tools:TOOLS\nbroken = mine_tools:GONE\n")
    (site / "mine_tools.py").write_text(HEAD + "TOOLS = [Tool(n, 'mine', '', parameters([]), f) for n in ('a', 'b')]")
    monkeypatch.syspath_prepend(str(site))
    found = load_toolsets(load_settings({"tool_files": "mine"}))["mine"]
    assert [tool.name for tool in found] == ["a", "b"]
    with pytest.raises(UserError, match="tool_files: broken: AttributeError"):
        load_toolsets(load_settings({"tool_files": "broken"}))


def test_an_own_distribution_takes_the_place_of_one_of_its_name(folder: Path) -> None:
    (folder / "d.yaml").write_text("terminal_only:\n  terminal: 100\n  todo: 50\n")
    offer = make_offer(load_settings({"distributions_file": "d.yaml"}))
    assert offer.distribution.chances == {"terminal": 100, "todo": 50}
    (folder / "d.yaml").write_text("mine:\n  words: 100\n")
    with pytest.raises(UserError, match=r"d\.yaml, line 2: mine: unknown toolset 'words', known are terminal, file,"):
        make_offer(load_settings({"distributions_file": "d.yaml"}))


STICKING = """
from trajectile.tools.tool import Tool, parameters

class Sticks:
    async def close(self):
        raise RuntimeError("it sticks")

async def f(context, arguments):
    context.own.get(Sticks), context.shared.get(Sticks)
    return "x"

TOOL = Tool("t", "mine", "", parameters([]), f)
"""


def test_what_a_tool_cannot_close_costs_no_batch(
    folder: Path, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "t.py").write_text(STICKING)
    (folder / "d.yaml").write_text("d:\n  mine: 100\n")
    job = Job(folder, server, ["a"], tool_files="t.py", distributions_file="d.yaml", distribution="d")
    job.script({"match": "a", "replies": [{"tool_calls": [{"name": "t", "arguments": {}}]}, {"text": "done"}]})
    assert job.here() == 0
    job.release()
    assert len(job.rows()) == 1 and caplog.text.count("Sticks of a tool cannot be closed") == 2


def test_own_toolsets_and_distributions_are_listed(folder: Path) -> None:
    for name, text in zip(("count_words.py", "own.yaml"), example(), strict=True):
        (folder / name).write_text(text)
    own = ["--tool_files=count_words.py", "--distributions_file=own.yaml"]
    shown = CliRunner().invoke(main, ["--list_distributions", *own])
    assert shown.exit_code == 0 and "words_too" in shown.output and "terminal 100, words 100" in shown.output


def test_a_requirement_of_an_own_tool_is_told_with_what_works(folder: Path) -> None:
    (folder / "t.py").write_text(HEAD + "TOOL = Tool('t', 'mine', '', parameters([]), f, lambda settings: 'no moon')")
    (folder / "d.yaml").write_text("d:\n  mine: 100\n  terminal: 100\n")
    own = {"tool_files": "t.py", "distributions_file": "d.yaml", "distribution": "d"}
    with pytest.raises(UserError, match=r"mine: no moon\n(?s:.*)work now: .*terminal_only"):
        make_offer(load_settings(own))
    assert make_offer(load_settings(own | {"missing_toolsets": "drop"})).distribution.chances == {"terminal": 100}
