"""serve_command: a shard starts the model's server on its machine, shares it, and leaves none behind."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers import Job, kill, text_of
from helpers import wait_until as wait_for
from local_weights import MODEL, private_cache
from scripted_server.fixture import ScriptedServer, read_log
from statuses import answering
from trajectile.configuration.frozen import frozen_settings
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.model.serving.command import filled, syntax_problem
from trajectile.model.serving.logs import HEAD_BYTES
from trajectile.model.serving.ports import free_port, is_free
from trajectile.run_folder.stop import stopped

TESTS = Path(__file__).parent
SNAKEFILE = TESTS.parent / "Snakefile"
OPENROUTER = "https://openrouter.ai/api/v1"


def wait_until(condition: Callable[[], Any], what: str) -> None:
    """Wait long: starting a shard, a keeper and a server takes a loaded machine a while."""
    wait_for(condition, what, seconds=90)


class Serving:
    """A folder with a serve_command for the scripted server, which notes its starts and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.starts_file = folder / "starts"
        self.log = folder / "events.jsonl"
        self.runtime = folder / "tmp"
        self.runtime.mkdir()

    def command(self, *rules: dict[str, Any], before: str = "", options: str = "") -> str:
        script = self.folder / "rules.json"
        script.write_text(json.dumps({"rules": list(rules), "steps": 0}))
        server = (
            f"{sys.executable} -m scripted_server --port {{port}} --host {{host}} --rules {script} --log {self.log}"
        )
        return f"echo $$ >> {self.starts_file}; {before} cd {shlex.quote(str(TESTS))} && exec {server} {options}"

    def job(self, prompts: list[str], command: str, **config: Any) -> Job:
        """A prepared run; its shards run as steps of a cluster's job do, whose servers wait for nobody."""
        settings = {
            "base_url": OPENROUTER,
            "serve_command": command,
            "local_isolation": "none",
            "concurrency": 2,
            "max_retries": 3,
        }
        job = Job(self.folder, ScriptedServer(), prompts, **(settings | config))
        job.environment |= {"TMPDIR": str(self.runtime), "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}
        job.environment["SLURM_JOB_END_TIME"] = str(int(time.time()) + 3600)
        return job

    def pids(self) -> list[int]:
        """The pids of the servers that were started."""
        return list(map(int, self.starts_file.read_text().split())) if self.starts_file.exists() else []

    def asked(self) -> list[str]:
        """The prompts in the order in which they were asked."""
        return (
            [event["prompt"] for event in read_log(self.log) if event["event"] == "asked"] if self.log.exists() else []
        )

    def living(self) -> list[str]:
        """The command lines of the processes that belong to this folder's servers."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ", "status"]):
            environment = process.info["environ"] or {}
            if environment.get("TMPDIR") == str(self.runtime) and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.info["cmdline"]))
        return found

    def is_gone(self) -> bool:
        return not self.living() and not list(self.runtime.glob("*/*"))


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    return Serving(tmp_path)


def snakemake(serving: Serving, prompts: int, command: str) -> "subprocess.CompletedProcess[str]":
    lines = [json.dumps({"prompt": f"task {n}"}) + "\n" for n in range(prompts)]
    (serving.folder / "prompts.jsonl").write_text("".join(lines))
    config = {"dataset_file": "prompts.jsonl", "run_name": "r", "model": "scripted", "batch_size": 2}
    config |= {"serve_command": command, "local_isolation": "none", "serve_timeout": 60}
    (serving.folder / "run.yaml").write_text(json.dumps(config))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "-s", str(SNAKEFILE), "--cores", "2", "--configfile", "run.yaml"],
        cwd=serving.folder,
        env={**os.environ, "PATH": path, "TMPDIR": str(serving.runtime), "TRAJECTILE_API_KEY": "canary-41"},
        capture_output=True,
        text=True,
    )


def test_all_shards_of_a_machine_share_one_start_and_no_process_is_left(serving: Serving) -> None:
    guarded = serving.command(options='--api-key "$TRAJECTILE_SERVE_KEY"', before="env > environment;")
    made = snakemake(serving, 8, guarded)
    assert made.returncode == 0, made.stderr
    assert len(serving.pids()) == 1, "four shards, one start"
    assert sorted(serving.asked()) == [f"task {n}" for n in range(8)]
    run = serving.folder / "data" / "r"
    assert len((run / "trajectories.jsonl").read_bytes().splitlines()) == 8
    first = json.loads((run / "first_request.json").read_bytes())
    assert first["url"] == "the server of serve_command" and first["body"]["model"] == "scripted"
    given = (serving.folder / "environment").read_text()
    [key] = [line.partition("=")[2] for line in given.splitlines() if line.startswith("VLLM_API_KEY=")]
    assert "canary-41" not in given and f"LLAMA_API_KEY={key}" in given
    written = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert written and not any(key.encode() in content for content in written)
    wait_until(serving.is_gone, "the end of the server after its idle time")


def test_a_server_that_does_not_start_is_said_once_and_tried_once(serving: Serving) -> None:
    made = snakemake(serving, 12, f"echo $$ >> {serving.starts_file}; echo no such weights; exit 3 # {{port}}")
    assert made.returncode == 1
    assert len(serving.pids()) == 1, "six shards, one try"
    sentence = "the model server of serve_command ended at its start with status 3; data/r/logs/model_server/"
    assert made.stderr.count(sentence) == 1 and made.stderr.count("no such weights") == 1
    assert f"trajectile: stopped: {sentence}" in made.stderr
    assert serving.is_gone()


def test_a_server_that_never_answers_is_ended_with_all_that_it_started(serving: Serving) -> None:
    job = serving.job(["a"], "setsid sleep 300 & echo loading; sleep 300 # {port}", serve_timeout=1)
    assert job.run() == 1
    assert "was not ready within 1 s (serve_timeout): " in job.said() and "\nloading" in job.said()
    assert job.failures() == [] and serving.is_gone()


def test_another_process_at_the_port_is_not_taken_for_the_server(serving: Serving) -> None:
    port = serving.folder / "port"
    shard = (job := serving.job(["a"], f"echo {{port}} > {port}.new; mv {port}.new {port}; sleep 300")).start()
    wait_until(port.exists, "the start")
    with answering(lambda _: 200, int(port.read_text())):
        status = shard.wait(60)
    said = f"does not have port {port.read_text().strip()} to itself, process {os.getpid()} ("
    assert status == 1 and said in job.said() and serving.living() == []


def test_a_server_with_a_key_of_its_own_is_ended_soon(serving: Serving) -> None:
    began = time.monotonic()
    job = serving.job(["a"], serving.command(options="--api-key mine"), serve_timeout=600)
    assert job.run() == 1 and time.monotonic() - began < 120
    said = (
        'refuses its key (HTTP 401): take --api-key out of serve_command, or write --api-key "$TRAJECTILE_SERVE_KEY"; '
    )
    assert said in job.said() and serving.is_gone()


LOADING = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Loading(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503)
        self.end_headers()
HTTPServer(("{host}", {port}), Loading).serve_forever()
"""


def test_the_cause_is_not_pushed_out_of_the_log_by_the_questions_whether_it_is_ready(serving: Serving) -> None:
    job = serving.job(["a"], f"echo no space left; exec {sys.executable} -c {shlex.quote(LOADING)}", serve_timeout=4)
    assert job.run() == 1
    assert "(serve_timeout): HTTP 503; " in job.said() and "\nno space left\n" in job.said()


def test_a_talkative_server_does_not_fill_the_folder_of_logs(serving: Serving) -> None:
    job = serving.job(["a"], serving.command(before="echo first; yes | head -c 40000000; echo last;"))
    assert job.run() == 0
    [log] = job.folder.server_logs.glob("*.log")
    said = log.read_text()
    assert len(said) < HEAD_BYTES + (1 << 20) and "\nfirst\n" in said and "\nlast\n" in said


def test_a_server_of_another_model_stops_the_run(serving: Serving) -> None:
    job = serving.job(["a"], serving.command(options="--model llama"), preflight=True)
    assert job.run() == 1 and serving.asked() == []
    assert "has no model scripted: set model to another, such as llama." in stopped(job.folder)


def test_a_server_that_dies_stops_the_shard_and_a_resume_keeps_what_is_finished(serving: Serving) -> None:
    slow = {"match": "slow", "latency": 120}
    job = serving.job(["quick 0", "slow", "quick 1", "quick 2"], serving.command(slow))
    shard = job.start()
    wait_until(lambda: len(job.journal_of_whole_lines()) == 3, "the quick ones")
    os.kill(serving.pids()[0], signal.SIGKILL)
    assert shard.wait(60) == 1
    assert "stopped: the model server of serve_command ended while it was in use, by signal 9; " in job.said()
    assert job.failures() == [] and not job.folder.stop.exists()
    assert len(job.plan(serve_command=serving.command()).owed) == 1
    assert job.run() == 0
    assert [text_of(row) for row in job.rows()] == ["quick 0", "slow", "quick 1", "quick 2"]
    assert sorted(serving.asked()) == ["quick 0", "quick 1", "quick 2", "slow", "slow"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_a_shard_that_is_ended(serving: Serving, number: signal.Signals) -> None:
    command = serving.command({"match": "a", "latency": 120}, before="setsid sleep 300 & (setsid sleep 300 &);")
    job = serving.job(["a"], command)
    shard = job.start()
    wait_until(serving.asked, "the prompt")
    assert sum("sleep 300" in line for line in serving.living()) >= 2
    shard.send_signal(number)
    assert shard.wait(60) == (143 if number == signal.SIGTERM else -9)
    wait_until(serving.is_gone, "the end of the server")


def test_a_kill_while_the_server_starts_leaves_none_behind(serving: Serving) -> None:
    job = serving.job(["a"], serving.command(before="sleep 300;"))
    shard = job.start()
    wait_until(serving.pids, "the start")
    kill(shard)
    wait_until(serving.is_gone, "the end of the server")


@pytest.mark.parametrize("which", [0, 1], ids=["guard", "keeper"])
def test_the_death_of_its_keeper_ends_the_server(serving: Serving, which: int) -> None:
    job = serving.job(["a"], serving.command({"match": "a", "latency": 120}, before="setsid sleep 300 &"))
    shard = job.start()
    wait_until(serving.asked, "the prompt")
    server = psutil.Process(serving.pids()[0])
    [server.parent().parent(), server.parent()][which].kill()
    assert shard.wait(60) == 1 and "stopped: the model server of serve_command " in job.said()
    wait_until(lambda: not serving.living(), "the end of the server")


def test_one_machine_that_cannot_serve_does_not_stop_the_others(serving: Serving) -> None:
    command = serving.command(before=f"test ! -e {serving.folder}/broken || exit 4;")
    job = serving.job(["a", "b", "c"], command, batch_size=1)
    assert job.run(0) == 0
    wait_until(serving.is_gone, "the end of the server")
    (serving.folder / "broken").touch()
    assert job.run(1) == 1 and "ended at its start with status 4" in job.said(1)
    assert not job.folder.stop.exists()
    (serving.folder / "broken").unlink()
    assert job.run(2) == 0 and job.run(1) == 0


@pytest.mark.local_model
def test_the_embedded_model_serves_by_its_own_command(serving: Serving) -> None:
    cache = private_cache(serving.folder / "cache")
    name = MODEL.removeprefix("local/")
    command = f"exec {sys.executable} -m trajectile.model.local.alone {{model}} --port {{port}}"
    job = serving.job(["Say hello."], command, model=name, max_turns=1, max_tokens=24, preflight=True)
    job.environment["TRAJECTILE_CACHE"] = str(cache)
    assert job.start().wait(240) == 0, job.said()
    [row] = job.rows()
    assert row.metadata.model == name and row.usage.completion_tokens > 0
    wait_until(lambda: not serving.living(), "the end of the server")


REFUSED = [
    ({"base_url": "http://localhost:1/v1"}, "starts a server and base_url names another one; take one of them out"),
    ({"serve_command": "vllm serve m"}, "{port} is missing; the server must listen where it is told"),
    ({"serve_command": "vllm serve m --port ${port}"}, "{port} is missing"),
    ({"model": MODEL}, "brings its own server; take serve_command out"),
    ({"max_cost": 1}, "max_cost needs to know what tokens cost"),
    ({"serve_timeout": 0}, "serve_timeout: 0 is not accepted; expected number above 0"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_does_not_go_with_it_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        load_settings({"model": "m", "serve_command": "vllm serve m --port {port}", **change})
    assert message in str(error.value)


def test_the_command_is_free_and_where_it_serves_is_fixed() -> None:
    def frozen(**change: Any) -> dict[str, Any]:
        return frozen_settings(load_settings({"model": "m", **change}))

    served = frozen(serve_command="vllm serve m --port {port}")
    assert frozen(serve_command="llama-server --port {port}", serve_timeout=5) == served
    assert frozen(base_url="http://127.0.0.1:8000/v1") == served
    assert frozen() != served


def test_only_the_names_in_braces_are_put_in_and_quoted() -> None:
    given = """serve {model} --port {port} --host {host} --x '{"a": 1}' ${port} ${HOME} {models}"""
    wanted = """serve 'a b$(x)' --port 7 --host 127.0.0.1 --x '{"a": 1}' ${port} ${HOME} {models}"""
    assert filled(given, port=7, model="a b$(x)") == wanted
    assert filled("{model}", port=7, model="Qwen/Qwen3-32B") == "Qwen/Qwen3-32B"


def test_bash_is_asked_whether_it_can_read_the_command() -> None:
    assert syntax_problem("touch there; vllm serve m") == "" and not Path("there").exists()
    assert "unexpected EOF" in syntax_problem("vllm serve 'm")


def test_ports_are_free_and_below_those_of_outgoing_connections() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 1 and all(20000 <= port < 32768 for port in ports)


@pytest.mark.parametrize("listening", [True, False])
def test_a_port_that_another_server_has_bound_is_not_free(listening: bool) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port := free_port()))
        if listening:
            other.listen()
        assert not is_free(port)
    assert is_free(port)
