"""A sandbox in Modal's cloud."""

from collections.abc import Mapping
from contextlib import suppress

import modal
from modal.exception import AuthError, Error, ImageBuildError, NotFoundError, RemoteError

from trajectile.errors import FatalError, PromptError
from trajectile.sandbox.container import ContainerSandbox
from trajectile.sandbox.guard import GUARD, STATE
from trajectile.sandbox.images import ImageUnavailable
from trajectile.sandbox.modal.container import ModalContainer, ModalStream

APP = "trajectile"
# The longest that Modal lets a sandbox live.
LIFETIME_S = 24 * 3600
UNITS_MIB = {"k": 1 / 1024, "m": 1, "g": 1024}


class ModalSandbox(ContainerSandbox[modal.Sandbox]):
    """A Modal sandbox of the registry image `image`, with the labels `tags`.

    `network` is none or bridge, `memory` as in 4g, `cwd` a folder in the sandbox, made if need be, the image's own
    where it is empty. `start` raises FatalError where Modal does not know the caller, ImageUnavailable, PromptError.
    """

    # The SDK refuses more than 64 KiB of arguments.
    argument_limit = 60_000

    def __init__(
        self,
        image: str,
        *,
        cwd: str = "",
        output_limit: int,
        network: str = "none",
        memory: str | None = None,
        cpus: float | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.image = image
        self.output_limit = output_limit
        self._cwd, self._network, self._tags = cwd, network, dict(tags or {})
        self._memory = (mebibytes(memory),) * 2 if memory else None
        self._cpus = (cpus,) * 2 if cpus else None

    async def start(self) -> None:
        try:
            await super().start()
        except AuthError as error:
            raise FatalError(f"Modal does not know you: {error}. Run `modal token new`.") from error
        except (ImageBuildError, NotFoundError, RemoteError) as error:
            raise ImageUnavailable(self.image, str(error)) from error
        except Error as error:
            raise PromptError("sandbox_start", f"the Modal sandbox did not start: {error}") from error

    async def _make(self) -> modal.Sandbox:
        app = await modal.App.lookup.aio(APP, create_if_missing=True)
        image = modal.Image.from_registry(self.image)
        sandbox = await modal.Sandbox.create.aio(
            "sleep",
            str(LIFETIME_S),
            app=app,
            image=image,
            timeout=LIFETIME_S,
            cpu=self._cpus,
            memory=self._memory,
            block_network=self._network == "none",
            tags=self._tags,
        )
        self.image_digest = image.object_id
        return sandbox

    async def _enter(self, made: modal.Sandbox) -> ModalContainer:
        guard = f"mkdir -p {STATE}; {GUARD}"
        process = await made.exec.aio("sh", "-c", guard, "sh", self._cwd, text=False)
        return ModalContainer(made, ModalStream(process), self._cwd)

    async def _remove(self, made: modal.Sandbox) -> None:
        with suppress(Error):  # it is gone already
            await made.terminate.aio()
        await made.detach.aio()  # type: ignore[no-untyped-call]  # or each would keep a connection open


def mebibytes(memory: str) -> int:
    return max(1, round(float(memory[:-1]) * UNITS_MIB[memory[-1].lower()]))
