"""One subject for each kind of sandbox; those that this machine lacks are skipped with the reason."""

from pathlib import Path

import pytest

from sandbox_contract.subjects import MARKERS, SUBJECTS, Subject


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(what): skipped for the kinds of sandboxes that lack it")


PARAMETERS = [
    pytest.param(name, marks=[getattr(pytest.mark, MARKERS[name])] if name in MARKERS else []) for name in SUBJECTS
]


@pytest.fixture(params=PARAMETERS)
def subject(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    problem, make = SUBJECTS[request.param]()
    if problem:
        pytest.skip(f"{request.param}: {problem}")
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))
    made = make(tmp_path / "run")
    for need in request.node.iter_markers("needs"):
        if reason := made.lacks.get(need.args[0]):
            pytest.skip(f"{request.param}: {need.args[0]}: {reason}")
    if made.engine:
        monkeypatch.setenv("DOCKER_HOST", made.engine)
    return made
