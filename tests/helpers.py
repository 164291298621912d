"""A run folder prepared by the library, whose shards run as the real program in a process of their own."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
from results_files import lines_of
from scripted_server.fixture import ScriptedServer
from trajectile.planning.inventory import remember_all, take_inventory
from trajectile.planning.plan import Plan
from trajectile.planning.preparation import prepare_run
from trajectile.planning.splitting import write_shards
from trajectile.planning.start import begin_run
from trajectile.rows import PromptRow, Trajectory
from trajectile.run_folder.ids import make_id
from trajectile.run_folder.journal import TRAJECTORY, Failure, records
from trajectile.run_folder.lease import Lease
from trajectile.run_folder.paths import RunFolder
from trajectile.shard.execution import Execution
from trajectile.shard.signals import STOP_SIGNALS

ROOT = Path(__file__).parents[1]
RUN_BATCH = ROOT / "scripts" / "run_batch.py"
STARTUP_S = 60


class Job:
    """A working directory with dataset and run folder; `plan` is a start of the run, `run` a shard of it.

    `prompts` are dataset rows, each a text or a dictionary; `config` are settings beside the ones that fit a test.
    """

    def __init__(self, root: Path, server: ScriptedServer, prompts: list[Any], **config: Any) -> None:
        self.root = root
        self.folder = RunFolder(root / "data" / "r")
        self.config = {
            "dataset_file": "prompts.jsonl",
            "run_name": "r",
            "model": "scripted",
            "base_url": server.base_url,
            "preflight": False,
            "batch_size": 1000,
            "max_retries": 0,
            **config,
        }
        self.server = server
        self.environment = dict(os.environ)
        self._lease: Lease | None = None
        self.set_dataset(prompts)
        self.plan()

    def script(self, *rules: dict[str, Any], **options: Any) -> None:
        """Give the server another script, by default to answer at once, and forget what it was asked."""
        self.server.control(script={"rules": list(rules), "steps": 0, **options}, outage=None, reset_counters=True)

    def asked(self) -> dict[str, int]:
        """Model calls by prompt, since the last script."""
        return {prompt: counts["calls"] for prompt, counts in self.server.counters()["prompts"].items()}

    def set_dataset(self, prompts: list[Any]) -> None:
        rows = [{"prompt": prompt} if isinstance(prompt, str) else prompt for prompt in prompts]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (self.root / "prompts.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")

    def plan(self, **config: Any) -> Plan:
        """Start the run anew: lease, run.json, shard files and manifest, as Snakemake's main process makes them."""
        self.config |= config
        with contextlib.chdir(self.root):
            self.release()
            run = prepare_run(self.config)
            self._lease = begin_run(run, asks_model=True)
            reading = {"on_bad_row": run.settings.on_bad_row, "max_samples": run.settings.max_samples}
            dataset = take_inventory(run.folder, run.settings.dataset_path, **reading).dataset
            remember_all(run.folder, run.settings.dataset_path, dataset, **reading)
            write_shards(run.folder, run.plan, run.settings.dataset_path, **reading)
        self.planned = run.plan
        return run.plan

    def release(self) -> None:
        """End the start of the run, as Snakemake's main process does."""
        if self._lease:
            with contextlib.chdir(self.root):
                self._lease.release()

    def command(self, number: int = 0) -> list[str]:
        manifest = self.folder.manifest(self.planned.digest)
        return [
            *(sys.executable, str(RUN_BATCH), "--run_folder", "data/r"),
            *("--shard", str(number), "--manifest", str(manifest)),
        ]

    def start(self, number: int = 0) -> "subprocess.Popen[bytes]":
        """Start a shard; what it says goes to its log."""
        with self._log(number).open("ab") as log:
            return subprocess.Popen(self.command(number), cwd=self.root, env=self.environment, stdout=log, stderr=log)

    def run(self, number: int = 0) -> int:
        """Run a shard to its end; returns its status."""
        return self.start(number).wait(STARTUP_S)

    def here(self, number: int = 0) -> int:
        """Run a shard to its end in this process; returns its status."""
        with own_signals(), contextlib.chdir(self.root):
            folder = RunFolder(Path("data") / "r")
            return asyncio.run(Execution(folder, number, folder.manifest(self.planned.digest)).run())

    def _log(self, number: int) -> Path:
        return self.root / f"shard_{number}.log"

    def said(self, number: int = 0) -> str:
        return self._log(number).read_text()

    def rows(self, number: int = 0) -> list[Trajectory]:
        """The rows of a batch file."""
        found: list[Trajectory] = lines_of(self.folder.batch(number), Trajectory)
        return found

    def journal(self, number: int = 0) -> list[Trajectory]:
        path = self.folder.journal(number)
        return lines_of(path, Trajectory) if path.exists() else []

    def journal_of_whole_lines(self, number: int = 0) -> list[Trajectory]:
        """The rows of a journal that may be torn."""
        return list(records(self.folder.journal(number), TRAJECTORY))

    def failures(self, number: int = 0) -> list[Failure]:
        path = self.folder.ledger(number)
        return lines_of(path, Failure) if path.exists() else []

    def prompts(self, number: int = 0) -> list[PromptRow]:
        """The rows that a shard was given."""
        found: list[PromptRow] = lines_of(self.folder.shard(number), PromptRow)
        return found

    def sandboxes(self) -> list[Path]:
        """The scratch folders that are left."""
        return list(self.folder.scratch.glob("*"))


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Give the test process its signal handlers back after a shard ran in it."""
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes, as a full disk would not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def text_of(row: Trajectory) -> str:
    """The prompt of a row, the text of its first human turn."""
    return next(turn.value for turn in row.conversations if turn.from_ == "human")


def id_of(row: Trajectory) -> bytes:
    return make_id(row.prompt_key, row.metadata.ordinal)


def without_times(row: Trajectory) -> dict[str, Any]:
    """A row as plain data, less what differs between equal runs."""
    plain: dict[str, Any] = msgspec.to_builtins(row)
    for name in ("batch_num", "timestamp", "duration_seconds", "model_seconds"):
        del plain["metadata"][name]
    return plain


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 30) -> None:
    """Wait for something that a test relies on; its absence is a failure with a name."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """kill -9, and wait for it."""
    process.send_signal(signal.SIGKILL)
    process.wait()


class Recorder:
    """A model server that keeps what it is sent: headers and body of `requests`.

    It answers with `replies` in turn, assistant messages of which the last one is repeated.
    """

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self._replies = replies or ({"content": "done", "reasoning": "because"},)
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorder.requests.append((headers, json.loads(body)))
                answer = json.dumps(recorder.answer(len(recorder.requests) - 1)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def answer(self, number: int) -> dict[str, Any]:
        message = {"role": "assistant", **self._replies[min(number, len(self._replies) - 1)]}
        return {"choices": [{"message": message}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}

    def __enter__(self) -> "Recorder":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
