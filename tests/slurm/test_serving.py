"""serve_command on the cluster: one server for each job, or for the shards of an allocation; none outlives a job."""

import json
import shlex
import sys
from pathlib import Path

import psutil
import pytest
from local_weights import MODEL, needs_engine
from scripted_server.fixture import ScriptedServer
from trajectile.errors import UserError
from trajectile.model.local.weights import ensure_weights

from slurm.cluster import ask, running, wait_for
from slurm.conftest import Make
from slurm.runs import Run

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]
TESTS = Path(__file__).parents[1]
NONE = "https://openrouter.ai/api/v1"  # the default, which counts as none


def scripted(run: Run, log: Path, latency: float) -> str:
    rules = run.work / "rules.json"
    rules.write_text(json.dumps({"steps": 0, "latency": latency}))
    serve = shlex.join([sys.executable, "-m", "scripted_server", "--rules", str(rules), "--log", str(log)])
    return f"setsid sleep 600 & cd {TESTS} && exec {serve} --port {{port}}"


def left(run: Run) -> list[str]:
    """The processes that a run's servers are made of, known by the run's folder for temporary files."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        environment, words = process.info["environ"] or {}, process.info["cmdline"] or [""]
        is_part = words == ["sleep", "600"] or words[2:3] in (["scripted_server"], ["trajectile.model.serving.keeper"])
        if is_part and environment.get("TMPDIR") == str(run.work) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(words))
    return found


def servers(run: Run) -> list[Path]:
    """The logs of the servers, one for each step that started one."""
    return sorted((run.folder / "logs" / "model_server").glob("*.log"))


def test_each_job_serves_for_itself_and_a_cancelled_one_leaves_no_process(make: Make, server: ScriptedServer) -> None:
    run = make(4, batch_size=2, base_url=NONE)
    run.environment["TMPDIR"] = str(run.work)
    run.settings["serve_command"] = scripted(run, server.log, latency=15)
    head = run.snakemake()
    wait_for(lambda: len(run.asked()) == 4, 120, "the prompts of both jobs")
    assert len(servers(run)) == 2 and len(left(run)) == 2 * 4, left(run)
    first = running(run.work)[0]
    ask("scancel", first.id)
    wait_for(lambda: first.id not in [job.id for job in running(run.work)], what="the end of the job")
    assert head.wait(300) == 0, run.said()
    assert run.problem() == "" and len(servers(run)) >= 3
    wait_for(lambda: left(run) == [], what="the end of the servers")


@pytest.mark.usefixtures("by_hand")
def test_the_shards_of_one_allocation_share_a_server(make: Make, server: ScriptedServer) -> None:
    run = make(6, batch_size=1, base_url=NONE)
    run.environment["TMPDIR"] = str(run.work)
    run.settings["serve_command"] = scripted(run, server.log, latency=0.5)
    assert run.in_one_allocation().wait(300) == 0, run.said()
    assert run.problem() == ""
    assert [log.read_text().count("start of the model server") for log in servers(run)] == [1]
    wait_for(lambda: left(run) == [], what="the end of the server")


@needs_engine
@pytest.mark.local_model
def test_the_embedded_model_serves_on_the_node_by_its_own_command(make: Make) -> None:
    try:
        ensure_weights(MODEL)
    except UserError as error:
        pytest.skip(str(error))
    run = make(2, batch_size=1, base_url=NONE, model=MODEL.removeprefix("local/"), max_turns=1, max_tokens=24)
    run.settings["require_reasoning"] = "false"
    run.settings["serve_command"] = f"exec {sys.executable} -m trajectile.model.local.alone {{model}} --port {{port}}"
    assert run.snakemake().wait(400) == 0, run.said()
    assert len(servers(run)) == 2 and len(run.trajectories()) == 2
