"""One subject for each kind of sandbox; those that this machine lacks are skipped with the reason."""

from pathlib import Path

import pytest

from sandbox_contract.subjects import MARKERS, SUBJECTS, Subject

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
    if made.engine:
        monkeypatch.setenv("DOCKER_HOST", made.engine)
    return made
