"""Measures the exports of a generated run: trajectories a second of CPU, peak memory, and the size that comes out.

    python tests/benchmarks/bench_exports.py --size 1GB --consumers /tmp/trajectile_consumers

With `--consumers`, the environments that tests/consumers/run.py made, `datasets` loads each export too.
"""

import json
import sys
import tempfile
from pathlib import Path

import click
from bench_results import SIZES, TOOL_NAMES, generate, steps
from measuring import ROOT, Used, print_table, run

FORMATS = ["messages", "hermes", "llamafactory", "parquet", "atif"]
STEP = str(ROOT / "scripts" / "export_dataset.py")
COLUMNS = ["format", "MB in", "CPU s", "MB/s CPU", "peak MB", "beyond 20 MB run", "MB out", "datasets: wall s", "rows"]
LOAD = """
import json, sys, time
import datasets
start = time.perf_counter()
rows = datasets.load_dataset(sys.argv[1], split="train")
seconds = time.perf_counter() - start
assert len(rows[len(rows) - 1]["prompt_key"]) == 64
print(json.dumps([round(seconds, 1), len(rows)]))
"""


def make_run(root: Path, size: int) -> Path:
    """Generate a run of `size` bytes and take it through the result steps; returns its folder."""
    generated = generate(root, size)
    identity = json.loads((generated.folder / "run.json").read_bytes())
    identity |= {"tool_schemas": [_schema(name) for name in TOOL_NAMES], "toolsets": {"terminal": TOOL_NAMES}}
    (generated.folder / "run.json").write_text(json.dumps(identity))
    list(steps(generated))
    for batch in generated.folder.glob("batch_*.jsonl"):
        batch.unlink()
    return generated.folder


def _schema(name: str) -> dict[str, object]:
    properties = {key: {"type": "string", "description": f"what {key} is for"} for key in ("path", "pattern", "limit")}
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


def measure(folder: Path, name: str) -> Used:
    return run([sys.executable, STEP, "--run_folder", str(folder), "--exports", name])


def load(consumers: Path, folder: Path, cache: Path) -> list[str]:
    """Load an export in the environment of TRL; returns seconds of wall time, and rows."""
    output = cache / "loaded.json"
    environment = {"HF_HOME": str(cache / "huggingface"), "HF_HUB_OFFLINE": "1"}
    run([str(consumers / "trl" / "bin" / "python"), "-c", LOAD, str(folder)], output, environment)
    return [str(value) for value in json.loads(output.read_bytes())]


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@click.command()
@click.option("--size", type=click.Choice(list(SIZES)), default="100MB", show_default=True)
@click.option(
    "--consumers", type=click.Path(exists=True, path_type=Path), help="Environments of tests/consumers/run.py."
)
@click.option("--only", type=click.Choice(FORMATS), multiple=True, help="These formats only.")
def main(size: str, consumers: Path | None, only: tuple[str, ...]) -> None:
    """Print what the exports take."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        small = make_run(Path(temporary) / "small", SIZES["20MB"])
        large = make_run(Path(temporary) / "large", SIZES[size])
        megabytes = (large / "trajectories.jsonl").stat().st_size / 1e6
        if consumers:
            rows.append(["(the run folder)", f"{megabytes:.0f}", *[""] * 5, *load(consumers, large, Path(temporary))])
        for name in only or FORMATS:
            floor, used = measure(small, name), measure(large, name)
            folder = large / "exports" / name
            loaded = load(consumers, folder, Path(temporary)) if consumers and name != "atif" else ["", ""]
            cells = [f"{megabytes:.0f}", f"{used.cpu:.1f}", f"{megabytes / used.cpu:.0f}", f"{used.memory / 1e6:.0f}"]
            rows.append(
                [name, *cells, f"{(used.memory - floor.memory) / 1e6:.0f} MB", f"{size_of(folder) / 1e6:.0f}", *loaded]
            )
    print_table(f"exports of {size}", COLUMNS, rows)


if __name__ == "__main__":
    main()
