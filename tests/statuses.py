"""A server of HTTP that answers with nothing but a status."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def answering(status_of: Callable[[str], int | None], port: int = 0) -> Iterator[int]:
    """Yield the port; `status_of` a path is what is answered there, None no answer before the end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = status_of(self.path)
            if status is None:
                over.wait()
            else:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as running:
        threading.Thread(target=running.serve_forever).start()
        try:
            yield running.server_port
        finally:
            over.set()
            running.shutdown()
