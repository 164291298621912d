"""Singularity on the nodes: images in a folder that all of them share."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from container_images import rootfs
from sandbox_registry import Registry

from slurm.cluster import running, wait_for
from slurm.conftest import LATENCY_S, Make

pytestmark = [pytest.mark.slurm, pytest.mark.apptainer, pytest.mark.timeout(600)]
NODES = 4
MOST_OF_A_NODE_MB = 7000


def tool_results(row: dict[str, Any]) -> str:
    return "".join(turn["value"] for turn in row["conversations"] if turn["from"] == "tool")


@pytest.mark.usefixtures("by_hand")
@pytest.mark.skipif(not shutil.which("apptainer"), reason="apptainer is not in PATH")
def test_the_first_job_builds_an_image_for_all_nodes(make: Make, tmp_path: Path) -> None:
    cache, builds = tmp_path / "cache", tmp_path / "builds"
    builds.mkdir()
    with Registry(rootfs.make(tmp_path / "root", "made for the nodes"), seconds=2) as registry:
        image = f"docker://{registry.image('v1')}"
        run = make(NODES, batch_size=1, sandbox="singularity", sandbox_image=image, preflight="false")
        run.environment |= {"TRAJECTILE_CACHE": str(cache), "APPTAINER_TMPDIR": str(builds), "APPTAINER_NOHTTPS": "1"}
        unused_since = builds.stat().st_mtime_ns
        call = {"name": "terminal", "arguments": {"command": "cat /etc/mark"}}
        replies = [{"tool_calls": [call]}, {"text": "done", "reasoning": "seen"}]
        run.server.control(script={"rules": [{"regex": run.tag, "replies": replies}], "latency": LATENCY_S, "steps": 0})
        head = run.snakemake(resources=f"run_batch:mem_mb={MOST_OF_A_NODE_MB}")
        wait_for(lambda: len({job.node for job in running(run.work)}) == NODES, what="a job on each node")
        assert head.wait(300) == 0, run.said()
    assert run.problem() == ""
    assert registry.asked["blobs"] == 2  # the layer and the configuration, once
    assert len(list(cache.rglob("*.sif"))) == 1 and builds.stat().st_mtime_ns > unused_since
    rows = run.trajectories()
    assert all("made for the nodes" in tool_results(row) for row in rows)
    [digest] = {row["metadata"]["image_digest"] for row in rows}
    assert digest.startswith("sha256:")
