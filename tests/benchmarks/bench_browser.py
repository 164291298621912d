"""Measures what prompts take that have the browser at once: memory of all processes, wall time, what is left of them.

    python tests/benchmarks/bench_browser.py --prompts 20

The bar is 4 GB for 20 prompts, and nothing left. PSS counts memory that processes share once; RSS counts it in each.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import click
import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(Path(__file__).parent)]

from browser_world import prompt  # noqa: E402
from living_processes import processes_below  # noqa: E402
from measuring import print_table  # noqa: E402
from trajectile.tools.tool import States  # noqa: E402
from web_site import Site, answer  # noqa: E402

SAMPLE_S = 0.5
LIMIT_BYTES = 4 << 30
PAGE = """<title>Page</title><h1>A page of some size</h1><iframe srcdoc="<button>Inside</button>"></iframe>
<canvas id=c width=1200 height=600></canvas><ul id=list></ul>
<button onclick="this.textContent = 'pressed'">Press</button>
<script>c.getContext('2d').fillRect(0, 0, 900, 500);
for (let i = 0; i < 300; i++) { const item = document.createElement('li');
  item.innerHTML = `<a href="/${i}">link ${i}</a> <b>some words</b> and <input value="${i}">`; list.append(item); }
window.kept = Array.from({length: 1e5}, (_, i) => ({i}));</script>"""


class Peak(NamedTuple):
    """The most of each, over all samples: bytes and processes."""

    rss: int = 0
    pss: int = 0
    processes: int = 0


async def sample(peak: list[Peak]) -> None:
    """Keep the highest figures of this process and of all below it, until cancelled."""
    while True:
        rss, pss, count = await asyncio.to_thread(memory_of_all)
        peak[0] = Peak(max(peak[0].rss, rss), max(peak[0].pss, pss), max(peak[0].processes, count))
        await asyncio.sleep(SAMPLE_S)


def memory_of_all() -> Peak:
    rss = pss = count = 0
    for process in [psutil.Process(), *processes_below(os.getpid())]:
        try:
            memory = process.memory_full_info()
        except psutil.Error:
            continue
        rss, pss, count = rss + memory.rss, pss + memory.pss, count + 1
    return Peak(rss, pss, count)


async def one(shared: States, url: str, together: asyncio.Barrier, settings: dict[str, int]) -> None:
    async with prompt(shared, web_allow_private=True, browser_timeout=300, **settings) as user:
        await user.use("navigate", url=url)
        await user.shown(full=True)
        await user.use("scroll", direction="down")
        await together.wait()  # all pages are open now
        await asyncio.sleep(3 * SAMPLE_S)


async def measure(prompts: int) -> tuple[Peak, float, int]:
    """Peak figures, seconds, and the number of processes that are left."""
    shared, peak, began = States(), [Peak()], time.perf_counter()
    together = asyncio.Barrier(prompts)
    sampling = asyncio.create_task(sample(peak))
    with Site() as site:
        site.answers["/"] = answer(PAGE)
        users = [one(shared, site.url(), together, {"browser_contexts": prompts}) for _ in range(prompts)]
        await asyncio.gather(*users)
        await shared.close()
    sampling.cancel()
    took = time.perf_counter() - began
    await asyncio.sleep(1)
    return peak[0], took, len(processes_below(os.getpid()))


@click.command()
@click.option("--prompts", type=click.IntRange(min=1), default=20, show_default=True)
def main(prompts: int) -> None:
    """Print the peak memory of prompts that have the browser at once."""
    peak, took, left = asyncio.run(measure(prompts))
    row = [str(prompts), f"{peak.pss / 1e6:,.0f}", f"{peak.rss / 1e6:,.0f}", f"{peak.pss / LIMIT_BYTES:.2f}"]
    columns = ["prompts", "peak PSS MB", "peak RSS MB", "of 4 GB", "processes", "wall s", "left"]
    print_table("Browser", columns, [[*row, str(peak.processes), f"{took:.1f}", str(left)]])


if __name__ == "__main__":
    main()
