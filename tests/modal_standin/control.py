"""Modal's control plane, as far as sandboxes need it."""

import base64
import json
import time
from pathlib import Path
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import api_grpc, api_pb2

from modal_standin.machine import Machine
from modal_standin.unimplemented import implement_nothing

TOKEN_LIFE_S = 3600
SUCCESS = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)


def token() -> str:
    parts: list[dict[str, Any]] = [{"alg": "none"}, {"exp": int(time.time()) + TOKEN_LIFE_S}, {}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


class Control(implement_nothing(api_grpc.ModalClientBase)):  # type: ignore[misc]
    """Knows one account, whose token is `known`; images whose name begins with `missing` cannot be built, nor
    those that begin with `refused` be run.
    """

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self.machines: dict[str, Machine] = {}
        self._images: dict[str, str] = {}
        self._folder = folder

    async def ClientHello(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(api_pb2.ClientHelloResponse())

    async def AuthTokenGet(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=token()))

    async def EnvironmentGetOrCreate(self, stream: Any) -> None:
        await stream.recv_message()
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        await stream.send_message(api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata))

    async def AppGetOrCreate(self, stream: Any) -> None:
        await stream.recv_message()
        if stream.metadata.get("x-modal-token-id") != "known":
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID not recognised")
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id="ap-1"))

    async def ImageGetOrCreate(self, stream: Any) -> None:
        request = await stream.recv_message()
        name = next(line.split()[1] for line in request.image.dockerfile_commands if line.startswith("FROM "))
        result = SUCCESS
        if name.startswith("missing"):
            failure = api_pb2.GenericResult.GENERIC_STATUS_FAILURE
            result = api_pb2.GenericResult(status=failure, exception=f"manifest for {name} not found")
        image_id = f"im-{len(self._images)}"
        self._images[image_id] = name
        await stream.send_message(api_pb2.ImageGetOrCreateResponse(image_id=image_id, result=result))

    async def SandboxCreateV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        image = self._images[request.definition.image_id]
        if image.startswith("refused"):
            raise GRPCError(Status.FAILED_PRECONDITION, f"no sandbox of {image} can be started")
        machine = Machine(self._folder, request)
        await machine.start(image)
        sandbox_id = f"sb-{len(self.machines)}-standin"
        self.machines[sandbox_id] = machine
        await stream.send_message(
            api_pb2.SandboxCreateV2Response(
                sandbox_id=sandbox_id,
                task_id=sandbox_id,
                command_router_access=api_pb2.CommandRouterAccess(url=self.url, jwt=token()),
            )
        )

    async def SandboxGetCommandRouterAccess(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(api_pb2.SandboxGetCommandRouterAccessResponse(url=self.url, jwt=token()))

    async def SandboxWaitV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        code = self.machines[request.sandbox_id].result
        result = api_pb2.GenericResult()
        if code is not None:
            result = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_FAILURE, exitcode=code)
        await stream.send_message(api_pb2.SandboxWaitResponse(result=result))

    async def SandboxTerminateV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        await self.machines[request.sandbox_id].end(137)
        await stream.send_message(api_pb2.SandboxTerminateResponse())

    async def SandboxListV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        wanted = {(tag.tag_name, tag.tag_value) for tag in request.tags}
        found = [
            api_pb2.SandboxInfo(id=sandbox_id, created_at=1.0)
            for sandbox_id, machine in self.machines.items()
            if machine.result is None and wanted <= machine.tags.items() and not request.before_timestamp
        ]
        await stream.send_message(api_pb2.SandboxListResponse(sandboxes=found))

    async def SandboxTagsGetV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        tags = self.machines[request.sandbox_id].tags
        found = [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]
        await stream.send_message(api_pb2.SandboxTagsGetResponse(tags=found))
