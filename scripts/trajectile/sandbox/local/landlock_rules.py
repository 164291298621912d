"""Landlock rulesets for a local sandbox, made by the `landlock` package."""

import ctypes
import functools
import importlib.util
import sys
from pathlib import Path

# ABI versions that brought what we ask for: TCP (Linux 6.7), signals and abstract sockets (Linux 6.12).
ABI_TCP, ABI_SCOPE = 4, 6
TCP_BIND_AND_CONNECT = 0b11
SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
DEVICES = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")]
# Nothing below a process's own folder: there lie the environments of all of the user's processes.
KERNEL = ["/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version"]
KERNEL += ["/proc/filesystems", "/sys/devices/system/cpu"]
ACCOUNTS = ["/etc/passwd", "/etc/group", "/etc/hosts"]


@functools.cache
def problem() -> str:
    """Why Landlock cannot be used here; empty where it can."""
    if sys.platform != "linux":
        return "not Linux"
    if importlib.util.find_spec("landlock") is None:
        return "the Python package landlock is not installed"
    try:
        abi()
    except OSError as error:
        return f"not in this kernel ({error.strerror})"
    return ""


def abi() -> int:
    import landlock

    ctypes.set_errno(0)  # the package takes an old error for its own
    return int(landlock.landlock_abi_version())


def gaps(*, network: bool = False) -> str:
    """What this kernel's Landlock leaves open, in a few words; the network is left open on purpose with `network`."""
    reach = "" if network else "UDP, " if abi() >= ABI_TCP else "network access, "
    signals = "" if abi() >= ABI_SCOPE else "signals to your processes, "
    return f"it cannot cut {reach}{signals}sockets by path, and programs that insist on /tmp fail"


def rulesets(readable: list[str], writable: list[str], *, network: bool = False) -> list[int]:
    """Descriptors of rulesets to be entered one after the other; the caller closes them."""
    from landlock import FSAccess, Ruleset

    ctypes.set_errno(0)
    look = FSAccess.READ_FILE | FSAccess.READ_DIR | FSAccess.EXECUTE
    files = Ruleset()
    for path in filter(Path.exists, map(Path, [*readable, *ACCOUNTS, *KERNEL])):
        files.allow(path, rules=look if path.is_dir() else look & FSAccess.all_file())
    for path in filter(Path.exists, map(Path, DEVICES)):
        files.allow(path, rules=FSAccess.READ_FILE | FSAccess.WRITE_FILE)
    files.allow(*writable)
    return [files._fd, *_network_ruleset(network)]


def _network_ruleset(network: bool) -> list[int]:
    """No TCP, no signals or abstract sockets to the outside, as far as the kernel can; the package only does files."""
    from landlock.plumbing import RulesetAttr, get_create_ruleset

    class Attributes(RulesetAttr):  # type: ignore[misc]
        _fields_ = (("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))

    if abi() < ABI_TCP:
        return []
    scoped = SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if abi() >= ABI_SCOPE else 0
    if network and not scoped:
        return []
    attributes = Attributes(0, 0 if network else TCP_BIND_AND_CONNECT, scoped)
    size = ctypes.sizeof(attributes) if scoped else Attributes.scoped.offset
    return [get_create_ruleset()(ctypes.byref(attributes), size, 0)]
