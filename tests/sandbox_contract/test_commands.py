"""Commands: what lasts between them, what they print and read, and what of the sandbox they see."""

import asyncio

import pytest
from trajectile.sandbox.base import Sandbox

from sandbox_contract.subjects import Subject, said

SHELL_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_"}
VARIABLES = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "PAGER", "TMPDIR"} | SHELL_VARIABLES


def test_folder_and_variables_last(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        start = (await said(sandbox, "mkdir -p ~/start; cd ~/start; pwd")).strip()
        first = await sandbox.exec("export N=$((N+1)) A='two\nlines'; mkdir -p a/b; cd a; exit 3", timeout_s=60)
        assert first.exit_code == 3 and not first.timed_out
        assert await said(sandbox, 'echo "$N|$A|$PWD|$OLDPWD"') == f"1|two\nlines|{start}/a|{start}\n"
        assert await said(sandbox, "f() { echo F; }; export -f f; unset A LANG; set -e; false; echo no") == ""
        assert await said(sandbox, "cd b; f; echo ${A-no} ${LANG-no}") == "F\nno no\n"
        assert await said(sandbox, "cd -") == f"{start}/a\n"

    subject.run(test)


def test_state_survives_own_traps_and_a_removed_folder(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "trap 'echo bye' EXIT; export X=1; mkdir b; cd b") == "bye\n"
        assert await said(sandbox, "echo $X; rmdir ../b") == "1\n"
        assert await said(sandbox, "[[ $PWD == $HOME ]] && echo home") == "home\n"
        assert await said(sandbox, "export PATH=/nowhere") == ""
        assert await said(sandbox, "echo $PATH") == "/nowhere\n"

    subject.run(test)


def test_state_survives_commands_that_kill_what_they_can(subject: Subject) -> None:
    if subject.sees_host:
        pytest.skip("it would kill this machine's processes")

    async def test(sandbox: Sandbox) -> None:
        await sandbox.exec("export KEEP=1; mkdir d; cd d", timeout_s=60)
        for killing in ("kill 0; echo no", "kill -9 $$", "kill -9 0; echo no"):
            result = await sandbox.exec(killing, timeout_s=60)
            assert result.exit_code > 128 and b"no\n" not in result.output and not result.timed_out
            assert await said(sandbox, "echo $KEEP ${PWD##*/} ${PATH:+path}") == "1 d path\n"

    subject.run(test)


def test_wrapper_leaves_nothing_of_its_own(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        before = await said(sandbox, "set | cut -d= -f1; echo $#")
        assert "_status" not in before and "_saved" not in before
        plain = await said(sandbox, "env | cut -d= -f1 | sort")
        assert set(plain.split()) <= VARIABLES | subject.variables
        assert await said(sandbox, "nosuchcommand") == "bash: line 1: nosuchcommand: command not found\n"

    subject.run(test)


def test_unpersisted_command_changes_nothing(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        await sandbox.exec("export A=1", timeout_s=60)
        result = await sandbox.exec("echo $A; export A=2; cd /usr", timeout_s=60, persist=False)
        assert result.output == b"1\n"
        assert await said(sandbox, "echo $A; [[ $PWD == /usr ]] || echo not there") == "1\nnot there\n"

    subject.run(test)


def test_output_is_bounded_and_in_order(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        text = await said(sandbox, "echo first; yes | head -c 3000000; echo last")
        assert text.startswith("first\n") and text.endswith("last\n")
        assert "2999011 bytes cut" in text
        mixed = "for n in 1 2 3 4 5; do echo out$n; echo err$n >&2; done"
        assert await said(sandbox, mixed) == "".join(f"out{n}\nerr{n}\n" for n in range(1, 6))

    subject.run(test, output_limit=1000)


def test_any_bytes_come_out_as_they_went_in(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        odd = r"\0\0\xff\x1b[1m\xe2\x80\xa8\0 \n\0"
        result = await sandbox.exec(f"printf '{odd}'", timeout_s=60)
        assert result.output == b"\0\0\xff\x1b[1m\xe2\x80\xa8\0 \n\0"

    subject.run(test)


def test_leftovers_that_print_on_change_no_status(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        for _ in range(5):
            assert (await sandbox.exec("timeout 0.2 yes & sleep 0.01; exit 3", timeout_s=60)).exit_code == 3

    subject.run(test)


def test_input_is_fed_and_closed(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "cat; echo end") == "end\n"
        stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        task = asyncio.ensure_future(sandbox.exec("read a; echo got $a; cat", timeout_s=60, stdin=stdin))
        for part in (b"one\n", b"two\n", None):
            stdin.put_nowait(part)
        assert (await task).output == b"got one\ntwo\n"

    subject.run(test)


def test_large_commands(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        long = "x" * 300_000
        assert await said(sandbox, f"v={long}; export L=1; echo ${{#v}}; exit 4") == "300000\n"
        assert await said(sandbox, "echo $L") == "1\n"

    subject.run(test)


@pytest.mark.parametrize("cwd", ["repo/src", "/repo/my src"])
def test_a_rows_folder_is_made_and_begun_in(subject: Subject, cwd: str) -> None:
    if cwd.startswith("/") and "root" in subject.lacks:
        pytest.skip(f"the root folder: {subject.lacks['root']}")

    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "echo ${PWD##*/repo/}; pwd >f") == f"{cwd.rpartition('/')[2]}\n"
        assert await said(sandbox, "cd ..; cat */f") != ""

    subject.run(test, cwd=cwd)
