"""Measures the report and the viewer: bytes of rows a second of CPU, peak memory, and what a browser takes to use it.

    python tests/benchmarks/bench_viewer.py --rows 10000

The ideal is 50 MB/s a core, no memory for a row, a first list in 1 s, and a frame (16.7 ms) a step of scrolling.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(Path(__file__).parent)]

from bench_results import BYTES_A_ROW, Usage, _table, measure  # noqa: E402
from browsers import headless_chromium  # noqa: E402
from test_viewer import SCROLL, _task_seconds  # noqa: E402

MB_S, LOAD_S, FRAME_MS, FRAMES = 50, 1.0, 1000 / 60, 60
GENERATE = f"""
import sys
sys.path[:0] = {sys.path[:2]}
from pathlib import Path
from report_files import finish, make_run
finish(make_run(Path(sys.argv[1]), int(sys.argv[2])))
"""  # in a process of its own: a child's peak memory begins with that of its parent


def bench_report(root: Path, rows: int) -> Any:
    """Make the report of two runs, one ten times the other."""
    table = _table("rows", "MB", "CPU s", "MB/s CPU", "of ideal", "peak MB", "bytes/row", "of ideal", "viewer MB")
    small = 0
    for count in (rows // 10, rows):
        folder = root / str(count) / "run"
        measure(["-c", GENERATE, str(folder.parent), str(count)])
        size = sum(path.stat().st_size for path in folder.glob("batch_*.jsonl"))
        used: Usage = measure([str(ROOT / "scripts" / "make_report.py"), "--run_folder", str(folder)])
        made = sum(path.stat().st_size for path in (folder / "viewer_data").iterdir())
        a_row = (used.memory - small) / (rows - rows // 10) if small else 0
        small = used.memory
        rate, cells = size / used.cpu / 1e6, (count, f"{size / 1e6:.0f}", f"{used.cpu:.2f}")
        rest = (f"{used.memory / 1e6:.0f}", f"{a_row:.0f}", f"{a_row / BYTES_A_ROW:.2f}", f"{made / 1e6:.0f}")
        table.add_row(*map(str, cells), f"{rate:.0f}", f"{rate / MB_S:.2f}", *rest)
    return table


def bench_browser(page_file: Path, rows: int) -> Any:
    """Open the viewer, search the whole text, scroll."""
    table = _table("in the browser", "took", "of ideal")
    with headless_chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        start = time.perf_counter()
        page.goto(page_file.as_uri())
        page.get_by_text(f"{rows:,} trajectories").wait_for()
        loaded = time.perf_counter() - start
        table.add_row("page to list", f"{loaded:.2f} s", f"{loaded / LOAD_S:.2f}")
        start = time.perf_counter()
        page.fill("#query", "no-such-word")
        page.keyboard.press("Enter")
        page.get_by_text("Searched whole text").wait_for()
        table.add_row("search of the whole text", f"{time.perf_counter() - start:.2f} s", "")
        page.click("#clear")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _task_seconds(session)
        page.evaluate(SCROLL)
        frame = (_task_seconds(session) - before) / FRAMES * 1000
        table.add_row("CPU a step of scrolling", f"{frame:.1f} ms", f"{frame / FRAME_MS:.2f}")
    return table


@click.command()
@click.option("--rows", type=click.IntRange(min=100), default=10_000, show_default=True)
def main(rows: int) -> None:
    """Print what the report and the viewer take."""
    console, root = Console(width=120), Path(tempfile.mkdtemp())
    try:
        console.print(bench_report(root, rows))
        console.print(bench_browser(root / str(rows) / "run" / "viewer.html", rows))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
