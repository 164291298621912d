"""When a server counts as ready, by its list of models and its health."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from trajectile.model.serving import probe
from trajectile.model.serving.folder import Endpoint


@contextmanager
def server(models: int, health: int | None) -> Iterator[Endpoint]:
    """Answers with these statuses; None is no answer before the end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = models if self.path == "/v1/models" else health
            if status is None:
                over.wait()
            else:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever).start()
        try:
            yield Endpoint(f"http://127.0.0.1:{running.server_port}/v1", "key", 1)
        finally:
            over.set()
            running.shutdown()


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
    with server(models, health) as endpoint:
        assert probe.problem(endpoint) == wanted
