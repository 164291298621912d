"""A container engine with Docker's API: the docker SDK in threads, and connections that become streams."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from docker import APIClient
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env, parse_host
from requests import PreparedRequest, Response
from requests.exceptions import RequestException

from trajectile.errors import FatalError, MachineError, UserError
from trajectile.sandbox.docker.stream import HEAD_END, Stream

T = TypeVar("T")
THREADS = 16
# Starting a container takes a busy engine seconds; an answer that takes longer than this does not come.
ANSWER_TIMEOUT_S = 180
UNREACHABLE = (RequestException, OSError, DockerException)


class EngineError(Exception):
    """The engine refused something; the message is its own, `missing` says that it does not have what was named."""

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Client(APIClient):
    """The docker SDK's, but for pulls: it asks them to wait for ever."""

    def send(self, request: PreparedRequest, **options: Any) -> Response:
        return super().send(request, **{**options, "timeout": options.get("timeout") or self.timeout})


class Engine:
    """The engine that DOCKER_HOST names, or the one at the usual place. Nothing is asked before the first call.

    `timeout_s` is for each part of an answer. UserError where the variables make no sense.
    """

    def __init__(self, timeout_s: int = ANSWER_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        try:
            self._environment = kwargs_from_env()
            self.address = str(parse_host(self._environment.get("base_url"), tls=bool(self._environment.get("tls"))))
        except (DockerException, ValueError) as error:
            raise UserError(
                "sandbox: docker: DOCKER_HOST, or DOCKER_TLS_VERIFY and DOCKER_CERT_PATH where they are set, lead to "
                f"no container engine ({error}). Correct them, or set sandbox to local."
            ) from error
        self._threads = ThreadPoolExecutor(THREADS, "docker")
        self._local = threading.local()
        self._version: str | None = None

    def client(self) -> APIClient:
        """Return this thread's client. FatalError where no engine answers."""
        if self.address.startswith("ssh"):
            raise FatalError("DOCKER_HOST: ssh:// is not supported; forward the engine's socket with ssh -L instead")
        if not hasattr(self._local, "client"):
            try:
                client = Client(**self._environment, version=self._version, timeout=self._timeout_s)
                self._version = client.api_version
            except UNREACHABLE as error:
                raise self.unreachable(error) from error
            self._local.client = client
        return cast(APIClient, self._local.client)

    def unreachable(self, error: Exception) -> MachineError:
        return MachineError(
            f"no container engine answers at {self.address.removeprefix('http+')} ({innermost(error)}). Start Docker, "
            "or podman system service, set DOCKER_HOST to where it listens, or set sandbox to local."
        )

    def ask(self, request: Callable[[APIClient], T]) -> T:
        """Return what the engine answers, blocking. EngineError where it refuses, FatalError where it is gone."""
        try:
            return request(self.client())
        except APIError as error:
            raise EngineError(str(error.explanation or error), isinstance(error, NotFound)) from error
        except UNREACHABLE as error:
            raise self.unreachable(error) from error

    async def call(self, request: Callable[[APIClient], T]) -> T:
        """As ask, in a thread, which goes on to its end when the caller is cancelled."""
        return await self.run(lambda: self.ask(request))

    async def run(self, function: Callable[[], T]) -> T:
        """Run what blocks in one of the engine's threads, of which there are few."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def stream(self, path: str, body: dict[str, Any] | None = None) -> Stream:
        """Turn a request into a stream in both directions. EngineError where the engine refuses.

        Without `body` nothing follows the request's head: podman takes it for the process's input.
        """
        content = b"" if body is None else json.dumps(body).encode()
        head = f"POST /v{self._version}{path} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        try:
            async with asyncio.timeout(self._timeout_s):
                reader, writer = await self._connect()
                writer.write(head.encode() + b"\r\n" + content)
                answer = await reader.readuntil(HEAD_END)
                if answer.split(b" ", 2)[1] in (b"101", b"200"):
                    return Stream(reader, writer)
                said = await reader.read(1 << 16)
                writer.close()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            raise self.unreachable(error) from error
        raise EngineError(_message(said))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.address.startswith("http+unix://"):
            return await asyncio.open_unix_connection(self.address.removeprefix("http+unix://"))
        place = urlsplit(self.address)
        return await asyncio.open_connection(place.hostname, place.port, ssl=self._tls())

    def _tls(self) -> ssl.SSLContext | None:
        if not (tls := self._environment.get("tls")):
            return None
        context = ssl.create_default_context(cafile=tls.ca_cert)
        context.check_hostname = bool(tls.verify)
        context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
        if tls.cert:
            context.load_cert_chain(tls.cert[0], tls.cert[1])
        return context

    def close(self) -> None:
        self._threads.shutdown(wait=False)


def _message(body: bytes) -> str:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body)["message"])
    return body.decode(errors="replace").strip()


def innermost(error: BaseException) -> str:
    """Return what really went wrong, below the wrappings of several libraries."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return str(getattr(error, "strerror", None) or error)
