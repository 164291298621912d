"""Options of the fault machine, and its storms, two at a time."""

import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from faults.disk import mount_problem
from faults.report import Report, figures
from faults.storm import Storm

AT_ONCE = 2
SMALL_DISK_EVERY = 5
REPORTS = pytest.StashKey[list[Report]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=2, help="Number of storms, from seed 0 on.")
    parser.addoption("--first_seed", type=int, default=0, help="Leave out the storms before this one.")
    parser.addoption("--seed", type=int, default=None, help="The one storm to run again.")


def seeds(config: pytest.Config) -> list[int]:
    one = config.getoption("--seed", default=None)
    first, end = config.getoption("--first_seed", default=0), config.getoption("--seeds", default=2)
    return [one] if one is not None else list(range(first, end))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.config))


@pytest.fixture(scope="session")
def no_small_disk(tmp_path_factory: pytest.TempPathFactory) -> str:
    return mount_problem(tmp_path_factory.mktemp("disk") / "small")


@pytest.fixture(scope="session")
def storms(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, no_small_disk: str
) -> Iterator[dict[int, Future[Report]]]:
    """All storms that are to be run, begun in the order of their seeds."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # children of a background job would ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = [seed for seed in seeds(request.config) if not (on_small_disk(seed) and no_small_disk)]
    reports = request.config.stash.setdefault(REPORTS, [])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = {seed: tmp_path_factory.mktemp(f"storm_{seed}_") for seed in wanted}
        yield {seed: pool.submit(_blow, seed, folder, reports) for seed, folder in folders.items()}
        pool.shutdown(cancel_futures=True)


def _blow(seed: int, folder: Path, reports: list[Report]) -> Report:
    report = Storm(seed, folder, on_small_disk=on_small_disk(seed)).run()
    reports.append(report)
    if report.violations:
        (folder / "story.txt").write_text(report.story(), encoding="utf-8")
    else:
        shutil.rmtree(folder)
    return report


def on_small_disk(seed: int) -> bool:
    return seed % SMALL_DISK_EVERY == SMALL_DISK_EVERY - 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reports := config.stash.get(REPORTS, []):
        terminalreporter.section("storms")
        for line in (*(report.line() for report in sorted(reports, key=lambda r: r.seed)), *figures(reports)):
            terminalreporter.line(line)
