"""Measures run_batch on one shard against a scripted server: wall time, CPU a call, and peak memory.

    python tests/benchmarks/bench_engine.py --prompts 1000

The ideal wall time is prompts x answers x latency / concurrency; the yardstick of CPU a call is the bare openai client
(bare_client.py), which sends the same requests beside it, in a process of its own.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson
from measuring import ROOT, Used, medians, print_table, run
from scripted_server.fixture import ScriptedServer

ANSWERS = 3
# concurrency: the most that wall time may be of the ideal; None where one core cannot carry the calls in that time
WALL_BARS = {64: 1.05, 200: 1.15, 1000: None}
CPU_BAR, MEMORY_BAR = 1.25, 300e6
COMMANDS = {
    "process list": {"name": "process", "arguments": {"action": "list"}},
    "terminal echo": {"name": "terminal", "arguments": {"command": "echo hello"}},
}
WITHOUT_SANDBOX, WITH_SANDBOX = COMMANDS
ENGINE_COLUMNS = ["tool calls", "in flight", "prompts", "wall s", "engine s", "ideal s", "engine/ideal", "bar"]
CPU_COLUMNS = ["CPU ms/call", "bare ms/call", "ratio", "bar", "peak MB", "of 300"]


class Shard(NamedTuple):
    """A run folder with one shard that is cut and not yet run."""

    folder: Path
    manifest: Path

    def command(self) -> list[str]:
        program = str(ROOT / "scripts" / "run_batch.py")
        return [
            sys.executable,
            program,
            "--run_folder",
            str(self.folder),
            "--shard",
            "0",
            "--manifest",
            str(self.manifest),
        ]

    def engine_s(self) -> float:
        from trajectile.run_folder.paths import RunFolder
        from trajectile.run_folder.times import read_times

        ((start, end),) = read_times(RunFolder(self.folder).times(0)).sessions
        return end - start


def script(command: dict[str, Any], latency: float) -> dict[str, Any]:
    step = {"reasoning": "I should look first.", "tool_calls": [command]}
    replies = [step] * (ANSWERS - 1) + [{"text": "Done.", "reasoning": "It is there."}]
    return {"rules": [{"regex": "", "replies": replies}], "latency": latency}


def cut_shard(base_url: str, prompts: int, concurrency: int) -> Shard:
    """Make a run folder in the working folder as the start of a run and split_dataset do."""
    from trajectile.planning.preparation import prepare_run
    from trajectile.planning.splitting import write_shards
    from trajectile.planning.start import begin_run

    shutil.rmtree("data", ignore_errors=True)
    Path("prompts.jsonl").write_bytes(
        b"".join(
            orjson.dumps({"prompt": f"Task {number}: " + "look around. " * 20}) + b"\n" for number in range(prompts)
        )
    )
    settings = {"dataset_file": "prompts.jsonl", "run_name": "bench", "model": "scripted", "base_url": base_url}
    rest = {"distribution": "terminal_only", "batch_size": prompts, "concurrency": concurrency, "preflight": False}
    prepared = prepare_run(settings | rest)
    begin_run(prepared, asks_model=True).release()
    write_shards(prepared.folder, prepared.plan, Path("prompts.jsonl"), on_bad_row="error", max_samples=None)
    return Shard(prepared.folder.root, prepared.folder.manifest(prepared.plan.digest))


def measure(server: ScriptedServer, prompts: int, concurrency: int) -> tuple[Used, float, dict[str, float]]:
    """Run a shard and the bare client; return what run_batch took, the seconds of its engine, the bare client's use."""
    shard = cut_shard(server.base_url, prompts, concurrency)
    used = run(shard.command())
    batch, bare = shard.folder / "batch_0.jsonl", Path("bare.json")
    yardstick = str(Path(__file__).with_name("bare_client.py"))
    run([sys.executable, yardstick, server.base_url, str(batch), str(concurrency)], output=bare)
    return used, shard.engine_s(), orjson.loads(bare.read_bytes())


def figures(server: ScriptedServer, prompts: int, concurrency: int, floor_cpu: float) -> tuple[float, ...]:
    used, engine_s, bare = measure(server, prompts, concurrency)
    cpu_a_call = (used.cpu - floor_cpu) / (prompts * ANSWERS)
    bare_a_call = bare["cpu"] / bare["calls"]
    return used.wall, engine_s, cpu_a_call, bare_a_call, cpu_a_call / bare_a_call, used.memory


def row(kind: str, prompts: int, concurrency: int, latency: float, found: list[float]) -> list[str]:
    wall, engine_s, cpu, bare, ratio, memory = found
    ideal, bar = prompts * ANSWERS * latency / min(prompts, concurrency), WALL_BARS[concurrency]
    walls = [f"{wall:.2f}", f"{engine_s:.2f}", f"{ideal:.2f}", f"{engine_s / ideal:.3f}", str(bar or "-")]
    cpus = [f"{cpu * 1e3:.2f}", f"{bare * 1e3:.2f}", f"{ratio:.2f}", str(CPU_BAR if kind == WITHOUT_SANDBOX else "-")]
    return [kind, str(concurrency), str(prompts), *walls, *cpus, f"{memory / 1e6:.0f}", f"{memory / MEMORY_BAR:.2f}"]


@click.command()
@click.option("--prompts", default=1000, show_default=True, help="Prompts in the shard.")
@click.option("--latency", default=0.5, show_default=True, help="Seconds an answer takes.")
@click.option("--repeat", default=1, show_default=True, help="Runs of each line; medians are printed.")
@click.option(
    "--concurrency", "levels", multiple=True, type=click.Choice(list(map(str, WALL_BARS))), help="Only these."
)
@click.option("--sandboxed", default=100, show_default=True, help="Prompts of the line with real commands, 0 for none.")
def main(prompts: int, latency: float, repeat: int, levels: tuple[str, ...], sandboxed: int) -> None:
    """Print what one shard takes."""
    with tempfile.TemporaryDirectory() as temporary, ScriptedServer() as server:
        os.chdir(temporary)
        server.control(script=script(COMMANDS[WITHOUT_SANDBOX], 0))
        floor = run(cut_shard(server.base_url, 1, 1).command())
        rows = []
        server.control(script=script(COMMANDS[WITHOUT_SANDBOX], latency))
        for concurrency in map(int, levels or WALL_BARS):
            found = medians(lambda c=concurrency: figures(server, prompts, c, floor.cpu), repeat)  # type: ignore[misc]
            rows.append(row(WITHOUT_SANDBOX, prompts, concurrency, latency, found))
        if sandboxed:
            server.control(script=script(COMMANDS[WITH_SANDBOX], latency))
            rows.append(row(WITH_SANDBOX, sandboxed, 64, latency, list(figures(server, sandboxed, 64, floor.cpu))))
        os.chdir(ROOT)
    print_table(
        f"run_batch, {ANSWERS} answers of {latency} s a prompt; starting up (a shard of one prompt, no latency) took "
        f"{floor.wall:.2f} s wall, {floor.cpu:.2f} s CPU, {floor.memory / 1e6:.0f} MB, and is left out of CPU a call; "
        "`process list` starts no sandbox process",
        ENGINE_COLUMNS + CPU_COLUMNS,
        rows,
    )


if __name__ == "__main__":
    main()
