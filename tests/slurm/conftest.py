"""The cluster, or the reason why there is none, and the model server that all runs share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_server.fixture import ScriptedServer

from slurm import cluster
from slurm.runs import SMALL, Run

LATENCY_S = 0.5
Make = Callable[..., Run]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="Run the long cases on the cluster too.")


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    if problem := cluster.problem():
        pytest.skip(problem)
    with ScriptedServer(latency=LATENCY_S, steps=0) as running:
        yield running


@pytest.fixture(scope="session")
def virtual() -> None:
    """Daemons that may be killed."""
    if problem := cluster.virtual_problem():
        pytest.skip(problem)


@pytest.fixture(scope="session")
def by_hand(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--whole", default=False):
        pytest.skip("takes minutes; by hand: pytest tests/slurm --whole")


@pytest.fixture(scope="session")
def slow_run(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of one shard of 60 s whose jobs may take a minute, begun before all tests since it takes longest."""
    run = Run(tmp_path_factory.mktemp("slow"), server, 120, concurrency=1, batch_size=120)
    run.snakemake(resources=f"{SMALL} run_batch:runtime=1", retries=20)
    yield run
    run.cancel()


@pytest.fixture
def make(tmp_path: Path, server: ScriptedServer) -> Iterator[Make]:
    """Runs in folders of their own. What they leave in the queue is cancelled."""
    made: list[Run] = []

    def run(count: int, **settings: Any) -> Run:
        made.append(Run(tmp_path / f"run_{len(made)}", server, count, **settings))
        return made[-1]

    yield run
    for run_ in made:
        run_.cancel()
