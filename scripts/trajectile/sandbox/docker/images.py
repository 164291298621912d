"""The images of a container engine."""

from collections.abc import Iterable
from typing import Any

from docker.errors import APIError
from docker.utils import parse_repository_tag
from requests.exceptions import Timeout
from urllib3.exceptions import HTTPError, ReadTimeoutError

from trajectile.sandbox.docker.engine import UNREACHABLE, Engine, EngineError
from trajectile.sandbox.images import Found, ImageStore, ImageUnavailable, Progress

# A pull without a word for so long is stuck; unpacking a large layer may take minutes of it.
SILENCE_S = 600


class DockerImages(ImageStore):
    """What the engine has and can pull."""

    def __init__(self, engine: Engine, silence_s: int = SILENCE_S) -> None:
        super().__init__()
        self._engine, self._silence_s = engine, silence_s
        self.place = engine.address

    def find(self, image: str) -> Found | None:
        try:
            content = self._engine.ask(lambda client: client.inspect_image(image))  # type: ignore[no-untyped-call]
        except EngineError as error:
            if error.missing:
                return None
            raise ImageUnavailable(image, str(error)) from error
        return Found(content["Id"], _digest(image, content))

    def fetch(self, image: str, progress: Progress) -> None:
        name, tag = parse_repository_tag(image)
        engine, layers = Engine(self._silence_s), _Layers()
        try:
            for line in engine.client().pull(name, tag or "latest", stream=True, decode=True):
                if "error" in line:
                    raise ImageUnavailable(image, str(line["error"]))
                progress(layers.take(line))
        except APIError as error:
            raise ImageUnavailable(image, str(error.explanation or error)) from error
        except (Timeout, ReadTimeoutError) as error:
            raise ImageUnavailable(image, f"the engine said nothing for {self._silence_s} s while it pulled") from error
        except (*UNREACHABLE, HTTPError) as error:
            raise ImageUnavailable(image, "the engine broke off its pull; the engine's own log may say why") from error
        finally:
            engine.close()


class _Layers:
    """Adds up how much of each layer has come."""

    def __init__(self) -> None:
        self._bytes: dict[str, tuple[int, int]] = {}

    def take(self, line: dict[str, Any]) -> str:
        """Return how far a pull is after another line of the engine's."""
        detail = line.get("progressDetail") or {}
        if detail.get("total") and line.get("status") == "Downloading":
            self._bytes[str(line.get("id"))] = int(detail.get("current", 0)), int(detail["total"])
        if not self._bytes:
            return str(line.get("status", ""))
        done, total = (sum(part) for part in zip(*self._bytes.values(), strict=True))
        return f"{done / total:.0%} of {total / 1e6:.0f} MB, {line.get('status', '')}"


def _digest(image: str, content: dict[str, Any]) -> str:
    """Return what the registry calls the image, or where it came from none, the engine."""
    named: Iterable[str] = content.get("RepoDigests") or ()
    name = parse_repository_tag(image)[0].rpartition("/")[2]
    return next((digest for digest in named if digest.partition("@")[0].endswith(name)), str(content["Id"]))
