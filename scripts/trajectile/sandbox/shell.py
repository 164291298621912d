"""A sandbox in which everything is a shell script: backends supply the runner of scripts, this class the rest."""

import asyncio
import errno
import os
import shlex
from abc import abstractmethod
from typing import Any

from trajectile.sandbox import posix_wrap
from trajectile.sandbox.base import ExecResult, OutputBuffer, Sandbox
from trajectile.sandbox.command import Runner
from trajectile.sandbox.output import HeadTail, Whole

READ_LIMIT_BYTES = 64 << 20
FILE_TIMEOUT_S = 60.0
# Linux takes 128 KiB for one argument of a program.
ARGUMENT_LIMIT_BYTES = 120_000

_ERRNO_OF = {
    # as shells that are not bash put it
    "nonexistent directory": errno.ENOENT,
    "Directory nonexistent": errno.ENOENT,
    "No such file": errno.ENOENT,
} | {
    os.strerror(number): number
    for number in (
        errno.ENOENT,
        errno.EISDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOSPC,
        errno.EROFS,
        errno.ETXTBSY,
    )
}


def quote_path(path: str) -> str:
    """A path as one word of a script: never an option, and `~/` is the home folder."""
    if "\x00" in path:
        raise ValueError("a path cannot hold a NUL character")
    if path == "~" or path.startswith("~/"):
        return '"$HOME"' + (shlex.quote(path[1:]) if path[1:] else "")
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def wrap(command: str, state_dir: str, *, persist: bool) -> str:
    """A script that runs `command` with the folder and the exported variables that `state_dir` holds.

    With `persist` it also leaves the new ones there, whether the command falls through or exits, and all at once:
    a command that is killed changes nothing. All but the last line is on the command's own first line, so that
    bash counts lines as the author of the command does.
    """
    state, first = shlex.quote(f"{state_dir}/state"), shlex.quote(f"{state_dir}/first")
    # The names of the variables a fresh shell has: one that was unset must not come back.
    forget = f'mapfile -t _names <{first}; unset "${{_names[@]}}" _names'
    restore = f"if [[ -f {state} ]]; then {forget}; . {state}; else compgen -e >|{first}; fi 2>/dev/null; "
    if not persist:
        return f"{restore}eval {shlex.quote(command)}"
    # `builtin` and `command -p`: the command may have defined functions, or lost its PATH. `&&`: bash stops in the
    # middle of its list of variables where an earlier write of the command failed.
    save = (
        "{ { builtin export -p && builtin export -fp && "
        'builtin printf "cd -- %q || cd\\nOLDPWD=%q\\n" "$PWD" "${OLDPWD-}"; } >|STATE.$$'
        " && builtin command -p mv -f -- STATE.$$ STATE; } 2>/dev/null || :"
    ).replace("STATE", state)
    # The trap serves commands that exit; a command may set its own, so the state is also saved when it falls through.
    trap = f"[[ ${{_saved-}} ]] || {save}"
    return (
        f"trap {shlex.quote(trap)} EXIT; {restore}eval {shlex.quote(command)}\n"
        f"_status=$?; {save}; _saved=1; exit $_status"
    )


def file_error(path: str, output: bytes) -> OSError:
    """The exception for what cat, head or bash said about `path`."""
    message = output.decode("utf-8", "replace").strip()
    reason = message.rpartition(": ")[2]
    return OSError(_ERRNO_OF.get(reason, errno.EIO), reason or "the sandbox gave no reason", path)


class ShellSandbox(Sandbox):
    """Folder and variables that last, and files, over one primitive.

    `state_dir` is a folder inside the sandbox that commands have no business with; `output_limit` in bytes. `shell` is
    what scripts are written for, bash or sh.
    """

    shell = "bash"
    argument_limit = ARGUMENT_LIMIT_BYTES
    state_dir: str
    output_limit: int

    @abstractmethod
    def runner(self) -> Runner[Any]:
        """Return what runs the scripts. SandboxDied where the sandbox is not started, or closed."""

    async def run_script(
        self,
        script: str,
        *,
        timeout_s: float | None,
        output: OutputBuffer,
        stdin: "asyncio.Queue[bytes | None] | None",
    ) -> ExecResult:
        """Run a script that is no longer than `argument_limit` bytes, as `exec` promises."""
        return await self.runner().run(script, timeout_s=timeout_s, output=output, stdin=stdin)

    async def exec(
        self,
        command: str,
        *,
        timeout_s: float | None,
        output: OutputBuffer | None = None,
        stdin: "asyncio.Queue[bytes | None] | None" = None,
        persist: bool = True,
    ) -> ExecResult:
        if "\x00" in command:
            raise ValueError("a command cannot hold a NUL character")
        wrapped = wrap if self.shell == "bash" else posix_wrap.wrap
        script = wrapped(command, self.state_dir, persist=persist)
        if len(script.encode()) > self.argument_limit:
            script = wrapped(await self._parked(command), self.state_dir, persist=persist)
        buffer = HeadTail(self.output_limit) if output is None else output
        return await self.run_script(script, timeout_s=timeout_s, output=buffer, stdin=stdin)

    async def _parked(self, command: str) -> str:
        path = f"{self.state_dir}/{id(command)}"
        await self.write_file(path, command.encode())
        return f'eval "$(command -p cat {path}; command -p rm {path})"'

    async def read_file(self, path: str) -> bytes:
        output = Whole(READ_LIMIT_BYTES)
        place = quote_path(path)
        script = (
            f"if [ -d {place} ]; then echo 'read: Is a directory'; exit 1; fi; "
            f"LC_ALL=C command -p head -c {READ_LIMIT_BYTES + 1} -- {place}"
        )
        result = await self._file_script(path, script, output, None)
        if output.overflow:
            raise OSError(errno.EFBIG, f"larger than {READ_LIMIT_BYTES >> 20} MB", path)
        return result

    async def write_file(self, path: str, data: bytes) -> None:
        stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        for part in (data, None):
            stdin.put_nowait(part)
        await self._file_script(path, f"LC_ALL=C; command -p cat > {quote_path(path)}", Whole(1 << 16), stdin)

    async def _file_script(
        self, path: str, script: str, output: OutputBuffer, stdin: "asyncio.Queue[bytes | None] | None"
    ) -> bytes:
        result = await self.exec(script, timeout_s=FILE_TIMEOUT_S, output=output, stdin=stdin, persist=False)
        if result.timed_out:
            raise TimeoutError(errno.ETIMEDOUT, f"no end after {FILE_TIMEOUT_S:.0f} s", path)
        if result.exit_code:
            raise file_error(path, result.output)
        return result.output
