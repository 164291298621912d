"""When a server counts as ready, by its list of models and its health."""

import pytest
from statuses import answering
from trajectile.model.serving import probe
from trajectile.model.serving.folder import Endpoint

PROBLEMS = [
    (200, 200, ""),
    (200, 404, ""),
    (200, 503, "it is still loading"),
    (200, None, "/health: timed out"),
    (401, 200, "HTTP 401"),
    (503, 200, "HTTP 503"),
]


@pytest.mark.parametrize(("models", "health", "wanted"), PROBLEMS)
def test_a_server_is_ready_where_both_say_so(
    monkeypatch: pytest.MonkeyPatch, models: int, health: int | None, wanted: str
) -> None:
    monkeypatch.setattr(probe, "PROBE_TIMEOUT_S", 1.0)
    with answering(lambda path: models if path == "/v1/models" else health) as port:
        assert probe.problem(Endpoint(f"http://127.0.0.1:{port}/v1", "key", 1)) == wanted
