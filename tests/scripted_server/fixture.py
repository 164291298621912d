"""The scripted server as a process of its own, for tests and benchmarks."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import orjson

TESTS = Path(__file__).parents[1]
STOP_S = 10


class ScriptedServer:
    """A server process; also a context manager. `rules` is a list of rules or a whole script as plain data.

    The port is kept, so a server that was stopped starts again where it was. The log is appended to; one that is
    given outlives the server.
    """

    def __init__(self, rules: Any = None, *, log: Path | None = None, port: int = 0, **options: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="scripted_server_")
        self.log = log or Path(self._folder.name) / "events.jsonl"
        self.port = port
        script = rules if isinstance(rules, dict) else {"rules": rules or []}
        self._script = Path(self._folder.name) / "script.json"
        self._script.write_bytes(orjson.dumps({**script, **options}))
        self._process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "ScriptedServer":
        command = [sys.executable, "-m", "scripted_server", "--port", str(self.port)]
        command += ["--rules", str(self._script), "--log", str(self.log)]
        self._process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the scripted server did not start")
        self.port = int(line)
        return self

    def stop(self) -> None:
        """End the process; requests in flight are dropped."""
        if self._process:
            self._process.terminate()
            self._process.wait(STOP_S)
            assert self._process.stdout
            self._process.stdout.close()
            self._process = None

    def counters(self) -> dict[str, Any]:
        """Return calls, finished, faults, in_flight, max_in_flight and prompts {text: {calls, finished}}."""
        counts: dict[str, Any] = self._ask("/_counters", None)
        return counts

    def requests(self) -> list[dict[str, Any]]:
        """Return the bodies of chat requests since the counters were reset, kept where the script says so."""
        bodies: list[dict[str, Any]] = self._ask("/_requests", None)
        return bodies

    def control(self, **orders: Any) -> None:
        """Change the running server: outage (fault or None), latency, script, reset_counters."""
        self._ask("/_control", orjson.dumps(orders))

    def _ask(self, path: str, body: bytes | None) -> Any:
        with urlopen(Request(f"http://127.0.0.1:{self.port}{path}", body), timeout=10) as answer:
            return orjson.loads(answer.read())

    def __enter__(self) -> "ScriptedServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log: time, event (asked, answered), prompt, turn, final."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
