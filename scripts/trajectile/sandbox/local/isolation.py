"""What stands between a local sandbox and its host: bubblewrap, Landlock, or nothing."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trajectile.errors import FatalError, MachineError
from trajectile.sandbox.local import landlock_rules

CHOICES = ("auto", "bwrap", "landlock", "none")
# Whether commands reach the network, by sandbox_network.
NETWORKS = {"auto": False, "none": False, "bridge": True, "host": True}
PROBE_TIMEOUT_S = 20
SUPERVISOR = Path(__file__).with_name("supervisor.py")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What programs need of /etc, none of it secret.
ETC = (
    *(
        "alternatives",
        "ca-certificates",
        "crypto-policies",
        "debian_version",
        "fonts",
        "java-*",
        "ld.so.*",
        "localtime",
    ),
    *("magic", "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "python3*", "services", "ssl"),
)
HOME = "/workspace"
PREFIX = str(Path(sys.base_prefix).resolve())
PRIVATE = "/run/sandbox"


class Launch(NamedTuple):
    """How to start a supervisor: `command` gets the numbers of the inherited descriptors appended."""

    command: list[str]
    env: dict[str, str]
    folder: str
    rulesets: list[int]


class Layout(NamedTuple):
    """Where things lie as commands see them: the home folder, the first working folder, the private state."""

    home: str
    start: str
    state: str


def resolve(choice: str, network: str = "auto") -> str:
    """The layer that `choice` (one of CHOICES) means on this machine; FatalError where it does not work here.

    So too where `network` is none, which insists on a layer that can cut it, or no word of NETWORKS.
    """
    if network not in NETWORKS:
        raise FatalError(f"sandbox_network: {network} is for containers; sandbox: local takes {', '.join(NETWORKS)}")
    layer = _resolve(choice)
    if network == "none" and layer != "bwrap":
        raise MachineError(
            f"sandbox_network: none cannot be had with local_isolation: {layer}, which does not cut all of the "
            "network. Install bubblewrap, or set sandbox_network to auto to go on with what can be cut."
        )
    return layer


def _resolve(choice: str) -> str:
    if choice == "none":
        return choice
    problems = {"bwrap": bwrap_problem, "landlock": landlock_rules.problem}
    found = {name: problem() for name, problem in problems.items() if choice in ("auto", name)}
    for name, problem in found.items():
        if not problem:
            return name
    reasons = "; ".join(f"{name}: {problem}" for name, problem in found.items())
    raise MachineError(
        f"local sandboxes cannot be isolated as local_isolation: {choice} asks ({reasons}). Install bubblewrap, or "
        "a Linux kernel 5.13 or newer, or set local_isolation: none to run the model's "
        "commands with all your rights."
    )


def describe_isolation(choice: str, network: str = "auto") -> str:
    """One sentence for the start report: the layer in use and what it cannot cut."""
    layer = resolve(choice, network)
    reach = "this machine's network" if NETWORKS[network] else "no network"
    if layer == "bwrap":
        return f"Commands run in bubblewrap: system read-only, {reach}, own processes, nothing of your home."
    if layer == "landlock":
        gaps = landlock_rules.gaps(network=NETWORKS[network])
        return f"Commands run behind Landlock: system read-only, nothing of your home; {gaps}."
    return "Commands run WITHOUT isolation (local_isolation: none): they can do all that you can do."


def layout(layer: str, folder: Path, cwd: str) -> Layout:
    home, state = (HOME, PRIVATE) if layer == "bwrap" else (str(folder / "home"), str(folder / "private"))
    return Layout(home, f"{home}/{cwd}" if cwd else home, state)


def prepare(layer: str, folder: Path, cwd: str, *, network: bool = False) -> Launch:
    """Ready to start: `folder` is the sandbox's scratch folder, its home is `folder`/home.

    The caller closes the rulesets once the supervisor runs.
    """
    place = layout(layer, folder, cwd)
    supervisor = [_python(), "-I", "-S"]
    env = environment(place.home)
    if layer == "bwrap":
        inside = [*bwrap(folder, place.start, network=network), *supervisor, f"{PRIVATE}-supervisor"]
        return Launch(inside, env, str(folder), [])
    temporary = folder / "tmp"
    for name in (place.state, temporary):
        Path(name).mkdir(exist_ok=True)
    env["TMPDIR"] = str(temporary)
    writable = [place.home, place.state, str(temporary)]
    rulesets = []
    if layer == "landlock":
        rulesets = landlock_rules.rulesets([*_system(), *_etc(network)], writable, network=network)
    return Launch([*supervisor, str(SUPERVISOR)], env, place.start, rulesets)


def environment(home: str) -> dict[str, str]:
    names = {"HOME": home, "USER": "user", "LOGNAME": "user", "SHELL": "/bin/bash"}
    path = f"{SYSTEM_PATH}:{PREFIX}/bin"
    return {**names, "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat"}


def bwrap(folder: Path, start: str, *, network: bool) -> list[str]:
    """The bubblewrap command line up to the program it runs, which finds itself in `start`."""
    for name, text in _accounts().items():
        (folder / name).write_text(text)
    options = "--unshare-all --die-with-parent --new-session --cap-drop ALL --hostname sandbox"
    options += " --share-net" if network else ""
    binds = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", PRIVATE]
    binds += [word for path in _system() for word in _shown(Path(path))]
    binds += [word for path in _etc(network) for word in ("--ro-bind", path, path)]
    binds += [word for name in _accounts() for word in ("--ro-bind", str(folder / name), f"/etc/{name}")]
    binds += ["--ro-bind", str(SUPERVISOR), f"{PRIVATE}-supervisor", "--bind", str(folder / "home"), HOME]
    return ["bwrap", *options.split(), *binds, "--remount-ro", "/", "--chdir", start, "--"]


@functools.cache
def bwrap_problem() -> str:
    """Why bubblewrap cannot be used here, found by using it; empty where it can."""
    if not shutil.which("bwrap"):
        return "not installed"
    probe = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    probe += [word for path in _system() for word in _shown(Path(path))]
    try:
        done = subprocess.run([*probe, "true"], capture_output=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.decode(errors="replace").strip() if done.returncode else ""


def _accounts() -> dict[str, str]:
    user, group = os.getuid(), os.getgid()
    return {
        "passwd": f"user:x:{user}:{group}::{HOME}:/bin/bash\n",
        "group": f"user:x:{group}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    }


def _python() -> str:
    """The interpreter itself, not the link to it in a virtual environment."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def _system() -> Iterator[str]:
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", PREFIX):
        if Path(path).exists() and (path == "/usr" or not path.startswith("/usr/")):
            yield path


def _etc(network: bool) -> Iterator[str]:
    for pattern in (*ETC, "resolv.conf") if network else ETC:
        yield from map(str, Path("/etc").glob(pattern))


def _shown(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)]
