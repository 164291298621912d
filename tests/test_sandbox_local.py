"""Local sandboxes under each layer of isolation that this machine has."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from trajectile.errors import FatalError, PromptError
from trajectile.sandbox import isolation, landlock_rules, scratch
from trajectile.sandbox.base import SandboxDied
from trajectile.sandbox.isolation import describe_isolation
from trajectile.sandbox.local import LocalSandbox
from trajectile.sandbox.output import HeadTail, to_text

PROBLEMS: dict[str, Callable[[], str]] = {
    "bwrap": isolation.bwrap_problem,
    "landlock": landlock_rules.problem,
    "none": str,
}
ALLOWED_VARIABLES = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "PAGER", "TMPDIR"}
ALLOWED_VARIABLES |= {"PWD", "OLDPWD", "SHLVL", "_"}  # bash's own
Test = Callable[[LocalSandbox], Coroutine[Any, Any, None]]


@pytest.fixture(params=PROBLEMS)
def layer(request: pytest.FixtureRequest) -> str:
    if problem := PROBLEMS[request.param]():
        pytest.skip(f"{request.param}: {problem}")
    return str(request.param)


@asynccontextmanager
async def opened(parent: Path, layer: str, **options: Any) -> AsyncIterator[LocalSandbox]:
    sandbox = LocalSandbox(parent, layer, **{"output_limit": 20_000, **options})
    await sandbox.start()
    try:
        yield sandbox
    finally:
        await sandbox.close()


def within(parent: Path, layer: str, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with opened(parent, layer, **options) as sandbox:
            await test(sandbox)

    asyncio.run(run())
    assert list(parent.iterdir()) == []


async def said(sandbox: LocalSandbox, command: str, timeout_s: float = 30) -> str:
    return (await sandbox.exec(command, timeout_s=timeout_s)).output.decode()


def running(mark: str) -> list[str]:
    """Pids of the processes, of any sandbox, that have `mark` as an argument."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:
            continue
    return found


def gone(mark: str, within_s: float = 5) -> bool:
    end = time.monotonic() + within_s
    while running(mark) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(mark)


def test_folder_and_variables_last(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        first = await sandbox.exec("export N=$((N+1)) A='two\nlines'; mkdir -p a; cd a; exit 3", timeout_s=30)
        assert first.exit_code == 3
        assert not first.timed_out
        assert await said(sandbox, 'echo "$N|$A|${PWD##*/}|$OLDPWD"') == f"1|two\nlines|a|{await home(sandbox)}\n"
        assert await said(sandbox, "f() { echo F; }; export -f f; unset A LANG; set -e; false; echo no") == ""
        assert await said(sandbox, "cd -; f; echo ${A-no} ${LANG-no}") == f"{await home(sandbox)}\nF\nno no\n"

    async def home(sandbox: LocalSandbox) -> str:
        return (await said(sandbox, "echo -n ~")).strip()

    within(tmp_path, layer, test)


def test_state_survives_own_traps_and_a_removed_folder(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        assert await said(sandbox, "trap 'echo bye' EXIT; export X=1; mkdir b; cd b") == "bye\n"
        assert await said(sandbox, "echo $X; rmdir ../b") == "1\n"
        assert await said(sandbox, "[[ $PWD == $HOME ]] && echo home") == "home\n"
        assert await said(sandbox, "export PATH=/nowhere") == ""
        assert await said(sandbox, "echo $PATH") == "/nowhere\n"

    within(tmp_path, layer, test)


def test_wrapper_leaves_nothing_of_its_own(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        before = await said(sandbox, "set | cut -d= -f1; echo $#")
        assert "_status" not in before
        assert "_saved" not in before
        plain = await said(sandbox, "env | cut -d= -f1 | sort")
        assert set(plain.split()) <= ALLOWED_VARIABLES
        assert await said(sandbox, "nosuchcommand") == "bash: line 1: nosuchcommand: command not found\n"

    within(tmp_path, layer, test)


def test_unpersisted_command_changes_nothing(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        await sandbox.exec("export A=1", timeout_s=30)
        result = await sandbox.exec("echo $A; export A=2; cd /", timeout_s=30, persist=False)
        assert result.output == b"1\n"
        assert await said(sandbox, "echo $A; [[ $PWD == $HOME ]] && echo home") == "1\nhome\n"

    within(tmp_path, layer, test)


def test_deadline_kills_the_whole_tree(tmp_path: Path, layer: str) -> None:
    """S18, with children that double-fork, start sessions of their own and clear their environment."""
    mark = f"6{os.getpid()}"

    async def test(sandbox: LocalSandbox) -> None:
        await sandbox.exec("export KEEP=1", timeout_s=30)
        start = time.monotonic()
        result = await sandbox.exec(
            f"export KEEP=2; echo part; (setsid sleep {mark} &); env -i setsid sleep {mark} & sleep {mark} & wait",
            timeout_s=1,
        )
        assert 1 <= time.monotonic() - start < 3
        assert result.timed_out
        assert result.output == b"part\n"
        assert running(mark) == []
        assert await said(sandbox, "echo $KEEP") == "1\n"

    within(tmp_path, layer, test)


def test_deadline_leaves_other_commands_alone(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        beside = asyncio.ensure_future(sandbox.exec("sleep 2; echo done", timeout_s=30, persist=False))
        await sandbox.exec("(sleep 1.5; echo later >f) & echo", timeout_s=30)
        assert (await sandbox.exec("sleep 100", timeout_s=0.3)).timed_out
        assert (await beside).output == b"done\n"
        assert await sandbox.read_file("f") == b"later\n"

    within(tmp_path, layer, test)


def test_cancel_kills_the_tree_and_the_sandbox_goes_on(tmp_path: Path, layer: str) -> None:
    mark = f"7{os.getpid()}"

    async def test(sandbox: LocalSandbox) -> None:
        task = asyncio.ensure_future(sandbox.exec(f"sleep {mark} & sleep {mark}", timeout_s=None))
        while len(running(mark)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running(mark) == []
        assert await said(sandbox, "echo on") == "on\n"

    within(tmp_path, layer, test)


def test_leftovers_run_on_until_the_sandbox_closes(tmp_path: Path, layer: str) -> None:
    mark = f"8{os.getpid()}"

    async def test(sandbox: LocalSandbox) -> None:
        start = time.monotonic()
        assert await said(sandbox, f"echo started; sleep {mark} & (sleep 0.2; echo x; echo y >f) &") == "started\n"
        assert time.monotonic() - start < 1
        await asyncio.sleep(0.5)
        assert await sandbox.read_file("f") == b"y\n"  # its output had somewhere to go
        assert running(mark)

    within(tmp_path, layer, test)
    assert running(mark) == []


def test_files_are_bytes_and_errors_are_those_of_open(tmp_path: Path, layer: str) -> None:
    data = bytes(range(256)) * 1000
    name = "-odd 'na\nme\" $(x)*"

    async def test(sandbox: LocalSandbox) -> None:
        await sandbox.exec("mkdir -p d; cd d; mkdir sealed", timeout_s=30)
        await sandbox.write_file(name, data)
        assert await sandbox.read_file(name) == data
        assert await sandbox.read_file("../d/" + name) == data
        assert await sandbox.read_file("~/d/" + name) == data
        await sandbox.write_file("empty", b"")
        assert await sandbox.read_file("empty") == b""
        for path, kind in {"nope": FileNotFoundError, ".": IsADirectoryError, "empty/x": NotADirectoryError}.items():
            with pytest.raises(kind):
                await sandbox.read_file(path)
            with pytest.raises(kind if path != "nope" else FileNotFoundError):
                await sandbox.write_file(path if path != "nope" else "nope/x", b"")
        with pytest.raises(ValueError, match="NUL"):
            await sandbox.read_file("a\0b")

    within(tmp_path, layer, test)


def test_system_files_cannot_be_written(tmp_path: Path) -> None:
    for layer in ("bwrap", "landlock"):
        if not PROBLEMS[layer]():

            async def test(sandbox: LocalSandbox) -> None:
                with pytest.raises(OSError):
                    await sandbox.write_file("/usr/bin/trajectile-canary", b"")
                with pytest.raises(OSError):
                    await sandbox.write_file("/etc/trajectile-canary", b"")

            within(tmp_path, layer, test)
            assert not Path("/usr/bin/trajectile-canary").exists()


def test_large_files_and_commands(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        large = os.urandom(1 << 20) * 50
        await sandbox.write_file("large", large)
        assert await sandbox.read_file("large") == large
        await sandbox.exec("truncate -s 65M huge", timeout_s=30)
        with pytest.raises(OSError, match="larger than 64 MB"):
            await sandbox.read_file("huge")
        long = "x" * 300_000
        assert await said(sandbox, f"v={long}; export L=1; echo ${{#v}}; exit 4") == "300000\n"
        assert await said(sandbox, "echo $L") == "1\n"

    within(tmp_path, layer, test)


def test_output_is_bounded_and_stdin_is_fed(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        text = await said(sandbox, "echo first; yes | head -c 3000000; echo last")
        assert text.startswith("first\n")
        assert text.endswith("last\n")
        assert "2999011 bytes cut" in text
        assert await said(sandbox, "cat; echo end") == "end\n"
        stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        task = asyncio.ensure_future(sandbox.exec("read a; echo got $a; cat", timeout_s=30, stdin=stdin))
        for part in (b"one\n", b"two\n", None):
            stdin.put_nowait(part)
        assert (await task).output == b"got one\ntwo\n"

    within(tmp_path, layer, test, output_limit=1000)


def test_nothing_leaks_between_sandboxes(tmp_path: Path, layer: str) -> None:
    """S22."""

    async def one(number: int) -> str:
        async with opened(tmp_path, layer) as sandbox:
            await sandbox.exec(f"export N=$((N+1)); echo {number} > same; echo x > $TMPDIR/tmp$N", timeout_s=60)
            await asyncio.sleep(0.1)
            return await said(sandbox, 'echo "$N $(cat same) $(ls -A ~) $(ls ${TMPDIR:-/tmp})"')

    async def both() -> list[str]:
        return list(await asyncio.gather(one(1), one(2)))

    tmp_file = "" if layer == "bwrap" else "tmp1"
    assert [line.strip() for line in asyncio.run(both())] == [f"1 {n} same {tmp_file}".strip() for n in (1, 2)]


CANARY_PROGRAM = """
import asyncio, sys
from pathlib import Path
from trajectile.sandbox.local import LocalSandbox

async def main():
    sandbox = LocalSandbox(Path(sys.argv[1]), sys.argv[2], output_limit=10**8)
    await sandbox.start()
    command = "env; cat /proc/*/environ; cat $0" .replace("$0", sys.argv[3])
    print((await sandbox.exec(command, timeout_s=60)).output)
    await sandbox.close()

asyncio.run(main())
"""


def canary(tmp_path: Path, layer: str) -> str:
    """What commands see when the caller's environment, and a file of the caller's, hold a secret."""
    secret = tmp_path / "secret"
    secret.write_text("canary-in-file")
    env = {**os.environ, "CANARY": "canary-in-env", "PYTHONPATH": str(Path(isolation.__file__).parents[2])}
    command = [sys.executable, "-c", CANARY_PROGRAM, str(tmp_path / "run"), layer, str(secret)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("layer", ["bwrap", "landlock"])
def test_canaries_are_out_of_reach(tmp_path: Path, layer: str) -> None:
    if problem := PROBLEMS[layer]():
        pytest.skip(problem)
    seen = canary(tmp_path, layer)
    assert "HOME=" in seen
    assert "canary" not in seen.replace("CANARY", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_canaries_are_in_reach_without_isolation(tmp_path: Path) -> None:
    seen = canary(tmp_path, "none")
    assert "canary-in-env" in seen
    assert "canary-in-file" in seen


def test_isolated_commands_have_no_network_and_cannot_signal(tmp_path: Path, layer: str) -> None:
    if layer == "none":
        pytest.skip("nothing is cut")

    async def test(sandbox: LocalSandbox) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert (await sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port}", timeout_s=30)).exit_code != 0
        bystander = await asyncio.create_subprocess_exec("sleep", "60")
        try:
            await sandbox.exec(f"kill -9 {bystander.pid}", timeout_s=30)
            await asyncio.sleep(0.2)
            assert bystander.returncode is None
        finally:
            bystander.kill()
            await bystander.wait()
            server.close()

    within(tmp_path, layer, test)


def test_dead_supervisor_is_noticed(tmp_path: Path, layer: str) -> None:
    async def run() -> None:
        async with opened(tmp_path, layer) as sandbox:
            await said(sandbox, "true")
            assert sandbox._supervisor is not None
            process = sandbox._supervisor._process
            task = asyncio.ensure_future(sandbox.exec("sleep 50", timeout_s=None))
            await asyncio.sleep(0.1)
            os.kill(process.pid, signal.SIGKILL)
            with pytest.raises(SandboxDied, match="supervisor was killed"):
                await task
            with pytest.raises(SandboxDied):
                await said(sandbox, "true")

    asyncio.run(run())


def test_forty_at_once_leave_nothing(tmp_path: Path, layer: str) -> None:
    mark = f"9{os.getpid()}"

    async def one(number: int) -> str:
        async with opened(tmp_path, layer) as sandbox:
            await said(sandbox, f"setsid sleep {mark} & disown; export N={number}", 60)
            return await said(sandbox, "echo $N", 60)

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*map(one, range(40))))

    assert asyncio.run(all_of_them()) == [f"{number}\n" for number in range(40)]
    assert running(mark) == []
    assert list(tmp_path.iterdir()) == []


OWNER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from trajectile.sandbox.local import LocalSandbox

async def main():
    sandbox = LocalSandbox(Path(sys.argv[1]), sys.argv[2], output_limit=1000)
    await sandbox.start()
    await sandbox.exec(f"setsid sleep {sys.argv[3]} & sleep {sys.argv[3]}", timeout_s=None)

asyncio.run(main())
"""


def test_killed_owner_leaves_no_process_and_its_folder_is_reaped(tmp_path: Path, layer: str) -> None:
    mark = f"5{os.getpid()}"
    env = {**os.environ, "PYTHONPATH": str(Path(isolation.__file__).parents[2])}
    owner = subprocess.Popen([sys.executable, "-c", OWNER_PROGRAM, str(tmp_path), layer, mark], env=env)
    while len(running(mark)) < 3:
        assert owner.poll() is None
        time.sleep(0.02)
    assert scratch.reap(tmp_path) == 0
    owner.kill()
    owner.wait()
    assert gone(mark)
    mine = scratch.unused(tmp_path)
    mine.mkdir()
    assert scratch.reap(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [mine]


def test_folders_are_removed_whatever_is_in_them(tmp_path: Path, layer: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        deep = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
        command = f'mkdir -p a/b; touch a/b/c; chmod 0 a/b a; python3 -c "{deep}"'
        assert await said(sandbox, command) == ""

    within(tmp_path, layer, test)


@pytest.mark.parametrize("cwd", ["repo/src", "/repo/src", "/repo/../repo/src/"])
def test_cwd_is_inside_the_scratch_folder(tmp_path: Path, layer: str, cwd: str) -> None:
    async def test(sandbox: LocalSandbox) -> None:
        assert await said(sandbox, "echo ${PWD#$HOME}; cd ..; cd; echo ${PWD#$HOME}.") == "/repo/src\n.\n"

    within(tmp_path, layer, test, cwd=cwd)


@pytest.mark.parametrize("cwd", ["..", "/../x", "a/../../b", "a\0b"])
def test_cwd_that_leads_out_is_refused(tmp_path: Path, cwd: str) -> None:
    with pytest.raises(PromptError):
        LocalSandbox(tmp_path, "none", cwd=cwd, output_limit=1000)


def test_auto_takes_the_strongest_that_works() -> None:
    working = [name for name, problem in PROBLEMS.items() if name != "none" and not problem()]
    if not working:
        with pytest.raises(FatalError, match="local_isolation: none"):
            isolation.resolve("auto")
        return
    assert isolation.resolve("auto") == working[0]
    assert describe_isolation("auto") == describe_isolation(working[0])
    assert "WITHOUT isolation" in describe_isolation("none")


def test_head_tail_keeps_both_ends() -> None:
    buffer = HeadTail(10)
    for part in (b"0123", b"4567", b"x" * 200_000, b"abcde"):
        buffer.feed(part)
    assert buffer.value() == "01234\n[… 200003 bytes cut …]\nabcde".encode()
    small = HeadTail(10)
    small.feed(b"0123456789")
    assert small.value() == b"0123456789"


def test_text_is_valid_whatever_the_bytes() -> None:
    raw = b"\x1b[31mred\x1b[0m \x1b]0;title\x07\xff\xed\xa0\x80 a\x00b " + "\u2028\u2029\u0085é".encode()
    text = to_text(raw)
    assert text == "red \ufffd\ufffd\ufffd\ufffd a\ufffdb \u2028\u2029\u0085é"
    assert text.encode("utf-8")
