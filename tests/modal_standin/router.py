"""What runs commands in Modal's sandboxes."""

from typing import Any

from grpclib import GRPCError, Status
from modal_proto import task_command_router_grpc
from modal_proto import task_command_router_pb2 as pb

from modal_standin.control import Control
from modal_standin.machine import CHUNK_BYTES, Exec, Machine
from modal_standin.unimplemented import implement_nothing


class Router(implement_nothing(task_command_router_grpc.TaskCommandRouterBase)):  # type: ignore[misc]
    def __init__(self, control: Control) -> None:
        self._control = control

    def _machine(self, request: Any) -> Machine:
        machine = self._control.machines.get(request.task_id)
        if machine is None or machine.result is not None:
            raise GRPCError(Status.NOT_FOUND, f"task {request.task_id} has ended")
        return machine

    def _exec(self, request: Any) -> Exec:
        return self._control.machines[request.task_id].execs[request.exec_id]

    async def TaskExecStart(self, stream: Any) -> None:
        request = await stream.recv_message()
        self._machine(request).exec(request.exec_id, list(request.command_args))
        await stream.send_message(pb.TaskExecStartResponse())

    async def TaskExecStdioRead(self, stream: Any) -> None:
        """Only stdout holds anything: a local sandbox has both in one."""
        request = await stream.recv_message()
        running = self._exec(request)
        at = request.offset
        if request.file_descriptor != pb.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT:
            return
        while True:
            ended = running.code.done()
            running.output.changed.clear()
            while part := bytes(running.output.data[at : at + CHUNK_BYTES]):
                await stream.send_message(pb.TaskExecStdioReadResponse(data=part))
                at += len(part)
            if ended:
                return
            await running.output.changed.wait()

    async def TaskExecStdinWrite(self, stream: Any) -> None:
        request = await stream.recv_message()
        running = self._exec(request)
        if fresh := request.data[max(0, running.written - request.offset) :]:
            running.written += len(fresh)
            running.stdin.put_nowait(fresh)
        if request.eof:
            running.stdin.put_nowait(None)
        await stream.send_message(pb.TaskExecStdinWriteResponse())

    async def TaskExecWait(self, stream: Any) -> None:
        request = await stream.recv_message()
        code = await self._exec(request).code
        await stream.send_message(pb.TaskExecWaitResponse(code=code))
