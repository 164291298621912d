"""The command line of apptainer, or of singularity where that is what the machine has."""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from trajectile.environment import passed
from trajectile.errors import MachineError
from trajectile.sandbox.guard import STATE
from trajectile.sandbox.limits import Limits
from trajectile.sandbox.output import to_text
from trajectile.sandbox.singularity.keeper import ENTRY, KEEPER

VERSION_TIMEOUT_S = 30
PROBE_TIMEOUT_S = 120
REASON_CHARS = 500
# What package managers need of root; the kernel grants it to real root only.
CAPABILITIES = "CHOWN,DAC_OVERRIDE,FOWNER,KILL,SETGID,SETUID"
# Root in a container that is root outside too could change the host through these.
READ_ONLY = [f"/proc/{name}" for name in ("bus", "fs", "irq", "sys", "sysrq-trigger")]
# What the program itself needs of the caller's environment; nothing of it reaches the container.
PASSED = ("PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


def binary() -> str:
    found = shutil.which("apptainer") or shutil.which("singularity")
    if not found:
        raise MachineError("sandbox: singularity needs apptainer or singularity, and neither is in PATH")
    return found


@functools.cache
def is_apptainer(program: str) -> bool:
    """False for SingularityCE and the singularity before it, which share the rest of the command line."""
    said = subprocess.run([program, "--version"], capture_output=True, timeout=VERSION_TIMEOUT_S, check=False)
    return said.stdout.startswith(b"apptainer")


def environment() -> dict[str, str]:
    return passed(PASSED) | {"LANG": "C.UTF-8"}


def isolation() -> list[str]:
    flags = ["--containall", "--cleanenv", "--no-home", "--no-mount", "sys", "--no-privs", "--hostname", "sandbox"]
    for path in filter(os.path.exists, READ_ONLY):
        flags += ["--bind", f"{path}:{path}:ro"]
    if os.geteuid() == 0:
        return [*flags, "--add-caps", CAPABILITIES]
    # The user alone is root in there, so that an image's files can be changed.
    return [*flags, "--fakeroot", "--ignore-fakeroot-command"] if is_apptainer(binary()) else flags


def networking(network: str) -> list[str]:
    """`none`, `host`, or the name of a network of the engine's configuration (which only root may join)."""
    return [] if network == "host" else ["--net", "--network", network]


def limiting(limits: Limits) -> list[str]:
    flags = ["--memory", limits.memory, "--memory-swap", limits.memory] if limits.memory else []
    flags += ["--cpus", str(limits.cpus)] if limits.cpus else []
    return flags + (["--pids-limit", str(limits.pids)] if limits.pids else [])


class Options(NamedTuple):
    """What one container may reach and take; `mounts` as /here:/there:ro."""

    network: str = "none"
    limits: Limits = Limits()
    mounts: tuple[str, ...] = ()
    read_only: bool = False

    def flags(self) -> list[str]:
        binds = [word for mount in self.mounts for word in ("--bind", mount)]
        return [*isolation(), *networking(self.network), *limiting(self.limits), *binds]


def launch(image: str, folder: Path, cwd: str, options: Options) -> list[str]:
    """Run a keeper in `image`; all it writes lands in `folder`/overlay and `folder`/tmp."""
    for name in ("tmp", "shared"):
        (folder / name).mkdir()
    (folder / "shared" / "keeper").write_text(KEEPER)
    storage = ["--workdir", str(folder / "tmp"), "--bind", f"{folder}/shared:{STATE}"]
    storage += [] if options.read_only else _overlay(folder)
    return [binary(), "--silent", "exec", *options.flags(), *storage, image, "sh", "-c", ENTRY, "sandbox", cwd]


def _overlay(folder: Path) -> list[str]:
    (folder / "overlay").mkdir()
    return ["--overlay", str(folder / "overlay")]


@functools.cache
def problem(options: Options, scratch: Path | None = None) -> str:
    """Why this machine cannot hold containers to `options`, found by trying; empty where it can.

    With `scratch`, too, whether what they write can be kept there.
    """
    if scratch:
        scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        storage = _overlay(Path(folder)) if scratch and not options.read_only else []
        system = Path(folder) / "system"
        command = [binary(), "--silent", "exec", *options.flags(), *storage, *_own_system(system), str(system), "true"]
        try:
            done = subprocess.run(
                command, env=environment(), cwd=folder, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            return str(error)
    said = to_text(done.stderr).strip()[:REASON_CHARS]
    return said.removeprefix("FATAL:").strip() or f"status {done.returncode}" if done.returncode else ""


def _own_system(root: Path) -> list[str]:
    """Make an image folder of the machine's own /usr; the flags that bring it in."""
    root.mkdir()
    shown = ["--bind", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "dev", "proc", "tmp", "usr", "etc", "root"):
        path = Path("/") / name
        if path.is_symlink():
            (root / name).symlink_to(path.readlink())
        else:
            (root / name).mkdir()
            if path.exists() and ("bin" in name or "lib" in name):
                shown += ["--bind", str(path)]
    return shown
