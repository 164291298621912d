"""Storms over the real pipeline. `pytest tests/faults --seeds 200` for a long series, `--seed 17` for one again."""

from concurrent.futures import Future

import pytest

from faults.conftest import on_small_disk
from faults.report import Report


@pytest.mark.timeout(900)
def test_storm(seed: int, storms: dict[int, "Future[Report]"], no_small_disk: str) -> None:
    if on_small_disk(seed) and no_small_disk:
        pytest.skip(no_small_disk)
    report = storms[seed].result()
    print(report.story())
    assert report.violations == []
