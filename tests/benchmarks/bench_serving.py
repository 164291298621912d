"""Measures what a model server that comes with the shards costs, and what sharing it saves.

    python tests/benchmarks/bench_serving.py --shards 8 --loading 5

Shards of one prompt run one after another: against a server that is there, one that they share, and one each.
"""

import shlex
import sys
import tempfile
import time
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import click
import psutil
from measuring import ROOT, print_table
from scripted_server.fixture import ScriptedServer

OPENROUTER = "https://openrouter.ai/api/v1"
LATER_S = 86400


def command(folder: Path, loading: float) -> str:
    """A server that takes `loading` seconds to come up, and notes each of its starts."""
    serve = shlex.join([sys.executable, "-m", "scripted_server"])
    return f"echo $$ >> {folder}/starts; cd {ROOT}/tests && sleep {loading} && exec {serve} --port {{port}}"


def measure(name: str, shards: int, loading: float, environment: dict[str, str]) -> list[str]:
    from helpers import Job

    with tempfile.TemporaryDirectory() as text, ScriptedServer(steps=0) as server:
        folder = Path(text)
        config = {"base_url": OPENROUTER, "serve_command": command(folder, loading)} if name != "there" else {}
        with redirect_stderr(StringIO()):
            job = Job(folder, server, [f"task {n}" for n in range(shards)], batch_size=1, **config)
        job.environment |= {"TMPDIR": text, "SLURM_JOB_END_TIME": str(int(time.time()) + LATER_S)}
        seconds = []
        for number in range(shards):
            job.environment |= {key: value.format(number) for key, value in environment.items()}
            began = time.monotonic()
            if job.run(number):
                raise click.ClickException(job.said(number))
            seconds.append(time.monotonic() - began)
        job.release()
        began = time.monotonic()
        while any(text in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])):
            time.sleep(0.1)
        starts = len((folder / "starts").read_text().split()) if (folder / "starts").exists() else 0
        others = sum(seconds[1:]) / max(1, shards - 1)
        return [name, str(starts), f"{seconds[0]:.1f}", f"{others:.2f}", f"{time.monotonic() - began:.1f}"]


@click.command()
@click.option("--shards", default=8, show_default=True)
@click.option("--loading", default=5.0, show_default=True, help="Seconds that the server takes to come up.")
def main(shards: int, loading: float) -> None:
    alone = {"SLURM_JOB_ID": "{}", "SLURM_STEP_ID": "0"}  # as jobs of a cluster, which share nothing
    rows = [
        measure(name, shards, loading, alone if name == "their own" else {})
        for name in ("there", "shared", "their own")
    ]
    print_table(
        f"{shards} shards, {loading:g} s of loading", ["server", "starts", "first s", "others s", "gone s"], rows
    )


if __name__ == "__main__":
    main()
