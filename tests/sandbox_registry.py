"""A container registry on loopback with one image in it: the few GETs of the registry API that a pull takes."""

import gzip
import hashlib
import io
import json
import tarfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry:
    """Serves `root` as `name` under any tag but `denied`; `asked` counts the requests by what they ask for.

    Layers come `seconds` late.
    """

    def __init__(self, root: Path, seconds: float = 0.0, port: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self.blobs: dict[str, bytes] = {}
        self.manifest = self._manifest(root)
        self.digest = f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.answer(self, body=True)

            def do_HEAD(self) -> None:
                registry.answer(self, body=False)

            def log_message(self, *_: object) -> None:
                pass

        self.seconds = seconds
        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.host = f"127.0.0.1:{self._http.server_port}"

    def image(self, tag: str) -> str:
        return f"{self.host}/group/image:{tag}"

    def _manifest(self, root: Path) -> bytes:
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tar:
            tar.add(root, arcname=".")
        plain = layer.getvalue()
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
        }
        described = [self._blob(json.dumps(config).encode()), self._blob(gzip.compress(plain, 1))]
        kinds = ("application/vnd.docker.container.image.v1+json", "application/vnd.docker.image.rootfs.diff.tar.gzip")
        parts = [{"mediaType": kind, **part} for kind, part in zip(kinds, described, strict=True)]
        return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}).encode()

    def _blob(self, data: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return {"size": len(data), "digest": digest}

    def answer(self, request: BaseHTTPRequestHandler, *, body: bool) -> None:
        kind, _, name = request.path.removeprefix("/v2/group/image/").partition("/")
        self.asked[kind if kind in ("manifests", "blobs") else "other"] += 1
        if kind == "blobs" and name in self.blobs:
            time.sleep(self.seconds)
            return self._send(request, 200, "application/octet-stream", self.blobs[name], body)
        if kind == "manifests" and name != "denied":
            return self._send(request, 200, MANIFEST, self.manifest, body)
        if request.path == "/v2/":
            return self._send(request, 200, "application/json", b"{}", body)
        problem = {"errors": [{"code": "DENIED", "message": "this image is not for you"}]}
        return self._send(request, 403, "application/json", json.dumps(problem).encode(), body)

    def _send(self, request: BaseHTTPRequestHandler, status: int, kind: str, data: bytes, body: bool) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        if kind == MANIFEST:
            request.send_header("Docker-Content-Digest", self.digest)
        request.end_headers()
        if body:
            request.wfile.write(data)

    def __enter__(self) -> "Registry":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
