"""The long-lived process of a local sandbox: it runs commands and lets none of them outlive it.

A program on its own, run as `python -I -S supervisor.py CONTROL SERVE [RULESET …]` (numbers of inherited descriptors)
with the environment and the folder its commands shall have. It splits into a stand-in, a guard and a server:

* the stand-in waits, and kills everything where the guard is killed; where it is killed itself, the guard does;
* the guard reads keeper pids (4 bytes, native order) from CONTROL and kills what these keepers started; at the end of
  CONTROL, or when the server is gone, it says so on CONTROL, kills everything and ends;
* the server restricts itself by the Landlock rulesets, then takes one byte and the descriptors (channel, stdin,
  stdout) from SERVE for each command and forks a keeper for it;
* the keeper writes `keeper PID` to its channel, reads a bash script from it up to the end, runs the script in a session
  of its own, writes `exit STATUS`, and stays for as long as anything the script started lives. Being a subreaper, it
  is the ancestor of all of it, double-forked daemons included.
"""

# Only modules that load at once: `socket`, `pathlib` or `contextlib` would each double the time to start.
# ruff: noqa: PTH123, PTH208, SIM105
import _socket
import ctypes
import os
import select
import sys

SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25
SIGSTOP = 19 if sys.platform == "linux" else 17
PR_SET_NAME, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 15, 24, 36, 38
SYS_LANDLOCK_RESTRICT_SELF = 446
LAST_CAPABILITY = 63
RETRY_S = 0.001

libc = ctypes.CDLL(None, use_errno=True)
linux = sys.platform == "linux"


def prctl(option: int, argument: int | bytes) -> None:
    if linux:
        libc.prctl(option, argument, 0, 0, 0)


def processes() -> "list[tuple[int, int]]":
    """All living processes as (pid, parent's pid)."""
    if not linux:
        with os.popen("ps -A -o pid=,ppid=,stat=") as lines:
            rows = [line.split() for line in lines]
        return [(int(row[0]), int(row[1])) for row in rows if not row[2].startswith("Z")]
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        # A zombie with more than one thread has lost its first thread only and still runs.
        if fields[0] not in b"ZX" or int(fields[17]) > 1:
            found.append((int(name), int(fields[1])))
    return found


def descendants(top: int) -> "list[int]":
    children: dict[int, list[int]] = {}
    for pid, parent in processes():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [top]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, SIGKILL)
    except OSError:
        pass


def stop(pid: int) -> None:
    try:
        os.kill(pid, SIGSTOP)
        while linux:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] in b"TtZX":
                    return
            select.select([], [], [], RETRY_S)
    except OSError:
        pass


def kill_below(top: int) -> None:
    """Kill what descends from a process that orphans fall to. What just became one may be missed once, not twice."""
    looks = 0
    while looks < 2:
        victims = descendants(top)
        looks = 0 if victims else looks + 1
        for pid in victims:
            kill(pid)
        reap()
        select.select([], [], [], RETRY_S)


def kill_all() -> None:
    """Kill what descends from this process."""
    while reap():
        for pid in descendants(os.getpid()):
            kill(pid)
        select.select([], [], [], RETRY_S)


def reap() -> bool:
    """Take in what has ended; whether any children are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def restrict(rulesets: "list[int]") -> None:
    """Enter the Landlock rulesets; as root, also give up every capability at the next exec."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if os.geteuid() == 0:
        for capability in range(LAST_CAPABILITY + 1):
            prctl(PR_CAPBSET_DROP, capability)
    for ruleset in rulesets:
        if libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(ruleset)


def read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def tell(channel: int, word: str, number: int) -> None:
    try:
        os.write(channel, f"{word} {number}\n".encode())
    except OSError:
        pass


def run_shell(script: bytes, stdin: int, stdout: int) -> None:
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stdout, 2)
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores both, and a shell cannot take back what it finds ignored
        libc.signal(number, None)
    try:
        os.execvp("bash", [b"bash", b"--noprofile", b"--norc", b"-c", script])
    except OSError as error:
        os.write(2, f"bash: {error.strerror}\n".encode())
    finally:
        os._exit(126)


def keep(channel: int, stdin: int, stdout: int) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    tell(channel, "keeper", os.getpid())
    script = read_all(channel)
    shell = os.fork()
    if shell == 0:
        run_shell(script, stdin, stdout)
    os.close(stdin)
    os.close(stdout)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == shell:
            tell(channel, "exit", os.waitstatus_to_exitcode(status))


def serve(descriptor: int, lifeline: int, rulesets: "list[int]") -> None:
    if rulesets:
        restrict(rulesets)
    inbox = _socket.socket(fileno=descriptor)
    while True:
        message, ancillary, _, _ = inbox.recvmsg(1, _socket.CMSG_SPACE(12))
        if not message:
            return
        reap()
        received = list(memoryview(ancillary[0][2]).cast("i"))
        for each in received:
            os.set_inheritable(each, False)
        if os.fork() == 0:
            inbox.close()
            os.close(lifeline)
            keep(*received)
            return
        for each in received:
            os.close(each)


def guard(control: int, lifelines: "list[int]") -> None:
    while True:
        ready = select.select([control, *lifelines], [], [])[0]
        reap()
        message = os.read(control, 4) if control in ready else b""
        if len(message) < 4:
            return
        keeper = int.from_bytes(message, sys.byteorder)
        stop(keeper)  # between the last look at what is below it and its own end it could start its script
        kill_below(keeper)
        kill(keeper)


def stand_by(guarding: int) -> None:
    """Wait for the end of the guard; what it leaves has this process for its parent."""
    while os.wait()[0] != guarding:
        pass


def start_server(control: int, inbox: int, rulesets: "list[int]") -> int:
    """Return what ends with the server."""
    lifeline, held = os.pipe()
    if os.fork() == 0:
        os.close(control)
        os.close(lifeline)
        try:
            serve(inbox, held, rulesets)
        except Exception as error:
            os.write(2, f"{error!r}\n".encode())
        os._exit(0)
    os.close(held)
    return lifeline


def main() -> None:
    control, inbox, *rulesets = map(int, sys.argv[1:])
    for descriptor in (control, inbox, *rulesets):
        os.set_inheritable(descriptor, False)
    prctl(PR_SET_NAME, b"sandbox")  # so that a command's `pkill python` does not end its own sandbox
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    lifeline, held = os.pipe()
    guarding = os.fork()
    if not guarding:
        os.close(held)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        served = start_server(control, inbox, rulesets)
    for descriptor in (inbox, *rulesets):
        os.close(descriptor)
    if guarding:
        os.close(control)
        stand_by(guarding)
    else:
        guard(control, [lifeline, served])
        tell(control, "ending", 0)  # the owner is to hear of this before it hears of the end of keepers
    kill_all()


if __name__ == "__main__":
    main()
