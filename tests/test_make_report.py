import re
import subprocess
import sys
import zlib
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from make_report import main
from report_files import HOSTILE, finish, identity, make_run
from results_files import invoke
from trajectile.report.pages import PAGES
from trajectile.report.pictures import PICTURES
from trajectile.results.sources import FinishedRows
from trajectile.results.verdict import read_statistics
from trajectile.rows import ToolStat, Trajectory

ROOT = Path(__file__).parents[1]
SCRIPT = re.compile(rb'trajectile\("([0-9a-f]+)","(\w+)","([A-Za-z0-9+/=]*)"\)\n')


@pytest.fixture
def run(tmp_path):
    return finish(make_run(tmp_path, 240, failures=20, owed=3))


def report(run):
    result = invoke(main, run, dataset=False)
    assert result.exit_code == 0, result.output
    return result.output


def data(folder, name):
    stamp, found, text = SCRIPT.fullmatch((folder.root / "viewer_data" / f"{name}.js").read_bytes()).groups()
    assert found.decode() == name
    return stamp, msgspec.json.decode(zlib.decompress(b64decode(text)))


def texts(folder, name):
    root = ElementTree.parse(folder.root / "report" / f"{name}.svg").getroot()
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


def tips(folder, name):
    root = ElementTree.parse(folder.root / "report" / f"{name}.svg").getroot()
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]


def test_viewer_holds_every_row_as_it_is_and_the_index_says_where(run):
    assert "240 rows" in report(run)
    rows = {row.prompt_index: row for row, _, _ in FinishedRows(run.folder)}
    stamp, about = data(run.folder, "about")
    assert (about["rows"], about["pieces"], about["prompts"], about["owed"]) == (240, 1, 243, 3)
    chunks = [data(run.folder, f"chunk_{n}") for n in range(about["chunks"])]
    assert {chunk[0] for chunk in chunks} == {stamp}
    assert sum(len(chunk) for _, chunk in chunks) == 240
    _, index = data(run.folder, "index_0")
    for n, number in enumerate(index["prompt"]):
        row = msgspec.convert(chunks[index["chunk"][n]][1][index["at"][n]], Trajectory)
        assert row == rows[number]
        assert index["key"][n] == f"{row.prompt_key[:16]}-{row.metadata.ordinal}"
        assert index["turns"][n] == row.reasoning_stats.total_assistant_turns
        assert about["ends"][index["end"][n]] == row.end_reason
        used = {name: (s.count, s.failure) for name, s in row.tool_stats.items() if s.count}
        flat = index["tools"][n]
        assert used == {about["tools"][flat[k]]: (flat[k + 1], flat[k + 2]) for k in range(0, len(flat), 3)}


def test_index_names_the_reasons_of_discarded_rows(run):
    report(run)
    _, index = data(run.folder, "index_0")
    discarded = [number for number, reasons in zip(index["prompt"], index["reasons"], strict=True) if reasons]
    without = [r.prompt_index for r, _, _ in FinishedRows(run.folder) if not r.reasoning_stats.turns_with_reasoning]
    assert discarded == without and len(without) > 20
    assert ["no_reasoning"] in index["reasons"]


def test_a_second_report_replaces_the_first_and_leaves_nothing_behind(run):
    report(run)
    run.batch(2, *(run.row(n, batch=2) for n in range(200, 205)))
    finish(run)
    report(run)
    _, about = data(run.folder, "about")
    assert about["rows"] == 205
    assert {path.name for path in (run.folder.root / "viewer_data").iterdir()} == {
        "about.js",
        "index_0.js",
        *(f"chunk_{n}.js" for n in range(about["chunks"])),
    }
    assert not [path for path in run.folder.root.iterdir() if path.name.startswith(".")]


def test_the_page_and_its_data_hold_nothing_of_a_row_in_the_clear(run):
    report(run)
    assert b"hacked" not in (run.folder.root / "viewer.html").read_bytes()
    for path in (run.folder.root / "viewer_data").iterdir():
        assert SCRIPT.fullmatch(path.read_bytes())


def test_pictures_say_what_the_statistics_say(run):
    report(run)
    statistics = read_statistics(run.folder)
    drawn = tips(run.folder, "tools")
    for name, tool in statistics.tool_statistics.items():
        assert f"{name}: {tool.success} succeeded" in drawn and f"{name}: {tool.failure} failed" in drawn
    ends = tips(run.folder, "ends")
    assert f"finished: {statistics.end_reasons['finished']} finished" in ends
    assert f"max_turns: {statistics.end_reasons['max_turns']} cut short" in ends
    turns = sum(int(tip.rpartition(": ")[2]) for tip in tips(run.folder, "turns") if tip)
    assert turns == 240
    assert any("20 attempts failed; 3 prompts owed" in text for text in texts(run.folder, "failures"))
    spent = [float(tip.split()[-3]) for tip in tips(run.folder, "cost") if tip and tip.endswith("so far")]
    assert spent == sorted(spent) and spent[-1] == pytest.approx(statistics.cost, rel=1e-3)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_run_without_rows_says_so_in_words(tmp_path, name):
    run = finish(make_run(tmp_path, 0, owed=2))
    report(run)
    assert len(texts(run.folder, name)) == 2
    assert data(run.folder, "about")[1]["rows"] == 0


@pytest.mark.parametrize("rows", [1, 2])
def test_very_small_runs_have_pictures(tmp_path, rows):
    report(run := finish(make_run(tmp_path, rows)))
    assert all(len(texts(run.folder, name)) > 1 for name in PICTURES)


def test_hostile_names_are_text(tmp_path):
    run = make_run(tmp_path, 3, run_name=HOSTILE)
    name = f"tool {HOSTILE}"
    run.batch(0, run.row(0, tool_stats={name: ToolStat(2, 1, 1)}, end_reason=HOSTILE), run.row(1))
    finish(run)
    report(run)
    assert any(text.startswith("tool </script>") for text in texts(run.folder, "tools"))
    for page in PAGES:
        text = (run.folder.root / "report" / f"{page}.html").read_text()
        assert "<script" not in text and "<img" not in text and "<svg" not in text
    assert "&lt;script&gt;" in (run.folder.root / "report" / "settings.html").read_text()


def test_provenance_names_the_settings_of_earlier_starts(tmp_path):
    before = {"model": "m/0", "temperature": 0.1}
    history = {"first": before, "abc": identity().frozen}
    run = finish(make_run(tmp_path, 1, history=history))
    report(run)
    text = (run.folder.root / "report" / "provenance.html").read_text()
    assert "settings_digest first" in text and "<td>m/0</td>" in text and "<td>0123456789abcdef</td>" in text


def test_without_statistics_the_user_is_told_what_to_run(tmp_path):
    result = invoke(main, make_run(tmp_path, 2), dataset=False)
    assert result.exit_code == 2 and "run compute_statistics first" in result.output


def test_files_that_changed_after_the_filter_are_refused_and_the_old_viewer_stays(run):
    report(run)
    run.batch(0, run.row(0))
    result = invoke(main, run, dataset=False)
    assert result.exit_code == 2 and "run filter_trajectories again" in result.output
    assert data(run.folder, "about")[1]["rows"] == 240
    assert not (run.folder.root / ".viewer_data.tmp").exists()


def test_snakemake_puts_all_pictures_and_captions_into_its_report(run, tmp_path):
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "Snakefile").write_text(
        f'class TARGETS:\n    results_digest = "digest"\npathvars:\n    run="run"\n'
        f'include: "{ROOT}/rules/report.smk"\n'
        'rule all:\n    default_target: True\n    input:\n        "run/viewer.html"\n'
    )
    run.write(run.folder.trajectories)
    config = ["--config", "run_name=my_run", "model=m/1", "dataset_file=p.jsonl", "distribution=default"]
    for options in ([], ["--report", "report.html"]):
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *options, *config]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.html").read_text()
    assert all(f"run/report/{name}.svg" in text for name in PICTURES)
    assert all(f"run/report/{name}.html" in text for name in PAGES)
    assert "my_run" in text and "Calls of each tool" in text and "SHA-256" in text
