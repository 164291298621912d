"""A container engine on loopback that breaks off, or says no more, in the middle of what it is asked."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = b'{"ApiVersion": "1.44"}'
LAYER = b'{"status": "Downloading", "id": "a", "progressDetail": {"current": 1, "total": 4}}\n'


class FakeEngine:
    """Has no image. A pull tells of one layer, then `breaks off`, or is `silent`, from the `start` on or after that.

    Lists of containers are refused, as podman refuses them while another one is being removed.
    """

    def __init__(self, pull: str = "") -> None:
        self.over = threading.Event()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path.endswith("/version"):
                    return self.answer(200, VERSION)
                status = 404 if "/images/" in self.path else 500
                return self.answer(status, b'{"message": "not now"}')

            def do_POST(self) -> None:
                if pull == "silent from the start":
                    engine.over.wait()
                    return
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(LAYER), LAYER))
                if pull == "silent":
                    engine.over.wait()
                self.close_connection = True

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.address = f"tcp://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "FakeEngine":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()
