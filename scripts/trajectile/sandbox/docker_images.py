"""The images of a container engine."""

from collections.abc import Iterable
from typing import Any

from docker.utils import parse_repository_tag

from trajectile.sandbox.docker_engine import Engine, EngineError
from trajectile.sandbox.images import Found, ImageStore, ImageUnavailable, Progress

# A registry that says nothing for so long is gone.
SILENCE_S = 300


class DockerImages(ImageStore):
    """What the engine has and can pull."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
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
        engine = Engine(timeout_s=SILENCE_S)
        try:
            for line in engine.ask(lambda client: client.pull(name, tag or "latest", stream=True, decode=True)):
                if "error" in line:
                    raise ImageUnavailable(image, str(line["error"]))
                progress(str(line.get("status", "")))
        except EngineError as error:
            raise ImageUnavailable(image, str(error)) from error
        finally:
            engine.close()


def _digest(image: str, content: dict[str, Any]) -> str:
    """Return what the registry calls the image, or where it came from none, the engine."""
    named: Iterable[str] = content.get("RepoDigests") or ()
    name = parse_repository_tag(image)[0].rpartition("/")[2]
    return next((digest for digest in named if digest.partition("@")[0].endswith(name)), str(content["Id"]))
