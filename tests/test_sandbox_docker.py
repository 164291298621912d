"""What containers of an engine have beyond what every sandbox has: images, hardening, other shells."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import docker
import pytest
from container_images import archive, rootfs
from helpers import Job
from sandbox_contract import engines
from sandbox_contract.subjects import Subject, container, said
from scripted_server.fixture import ScriptedServer
from tool_contexts import tool_context
from trajectile.errors import FatalError, PromptError, UserError
from trajectile.sandbox.base import Sandbox
from trajectile.sandbox.docker.engine import Engine
from trajectile.sandbox.reach import binds
from trajectile.tools.calling import call
from trajectile.tools.registry import TOOLSETS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(bool(engines.problem(None)), reason=engines.problem(None)),
]
TOOLS = {tool.name: tool for tool in TOOLSETS["file"]}


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))
    return container("docker", os.environ.get("DOCKER_HOST"), "")[1](tmp_path / "run")


@pytest.fixture
def engine() -> docker.DockerClient:
    return engines.client(None)


def test_rows_say_what_they_ran_in(tmp_path: Path, subject: Subject) -> None:
    with ScriptedServer() as server:
        (tmp_path / "job").mkdir()
        rows = [{"prompt": "a", "image": subject.images[1]}, {"prompt": "b"}, {"prompt": "c", "image": "none/such:1"}]
        job = Job(tmp_path / "job", server, rows, **subject.settings)
        assert job.run() == 0
        ids = [engines.client(None).images.get(image).id for image in subject.images]
        made = {row.metadata.image: row.metadata.image_digest for row in job.rows()}
        assert made == dict(zip(subject.images, ids, strict=True))
        [failure] = job.failures()
        assert failure.kind == "image_unavailable" and "image_pull is never" in failure.message


def test_a_folder_that_cannot_be_made_is_said(subject: Subject) -> None:
    async def nothing(_: Sandbox) -> None:
        raise AssertionError("it started")

    with pytest.raises(PromptError) as failure:
        subject.run(nothing, cwd="/proc/no/such")
    assert failure.value.kind == "bad_cwd"


def test_images_without_bash_have_what_any_shell_has(subject: Subject, tmp_path: Path) -> None:
    programs = [name for name in engines.PROGRAMS if name != "bash"]
    root = rootfs.make(tmp_path / "sh", "sh", programs)
    packed = archive.write(tmp_path / "sh.tar", root, f"{engines.REPOSITORY}:sh")
    engines.client(None).images.load(packed.read_bytes())
    mark = f"6{os.getpid()}"

    async def test(sandbox: Sandbox) -> None:
        first = await sandbox.exec("export N=$((N+1)) A='two\nlines'; mkdir -p /tmp/a; cd /tmp/a; exit 3", timeout_s=60)
        assert first.exit_code == 3
        assert await said(sandbox, 'echo "$N|$A|$PWD|$OLDPWD"; unset A') == "1|two\nlines|/tmp/a|/\n"
        assert await said(sandbox, "echo ${A-no}; echo $0; false") == "no\nsh\n"
        assert (await sandbox.exec(f"setsid sleep {mark} & sleep {mark}", timeout_s=1)).timed_out
        assert await said(sandbox, f"ps ax | grep 'sleep {mark}' | grep -v -e grep -e -c; kill 0") == "Terminated\n"
        data = bytes(range(256)) * 100
        await sandbox.write_file("f", data)
        assert await sandbox.read_file("../a/f") == data
        for path, kind in {"no/x": FileNotFoundError, ".": IsADirectoryError, "f/x": NotADirectoryError}.items():
            with pytest.raises((kind, FileNotFoundError)):
                await sandbox.write_file(path, b"")
        assert await said(sandbox, f"v={'x' * 300_000}; echo ${{#v}}") == "300000\n"
        assert await said(sandbox, "if") != ""
        assert await said(sandbox, "pwd") == "/tmp/a\n"

    subject.run(test, image=f"{engines.REPOSITORY}:sh")


def test_busybox_is_enough_for_all_tools(subject: Subject, tmp_path: Path) -> None:
    program = shutil.which("busybox")
    if not program or b"statically" not in subprocess.run(["file", "-L", program], capture_output=True).stdout:
        pytest.skip("there is no static busybox on this machine")
    root = tmp_path / "root"
    for name in ("bin", "etc", "proc", "tmp", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy(program, root / "bin" / "busybox")
    for name in subprocess.run([program, "--list"], capture_output=True, text=True).stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    packed = archive.write(tmp_path / "busybox.tar", root, f"{engines.REPOSITORY}:busybox")
    engines.client(None).images.load(packed.read_bytes())

    async def test(sandbox: Sandbox) -> None:
        context = tool_context(sandbox, 60, 20_000)
        await call(TOOLS["write_file"], context, {"path": "a b/c:d.txt", "content": "one\ntwo: 2\n"})
        for pattern, wanted in {"tw[o]": "./a b/c:d.txt:2:two: 2", "none": "[no matches]"}.items():
            found = await call(TOOLS["search_files"], context, {"pattern": pattern})
            assert found == wanted.removeprefix("./")
        found = await call(TOOLS["search_files"], context, {"pattern": "*.txt", "target": "files"})
        assert found == "a b/c:d.txt"
        assert "two: 3" in await call(
            TOOLS["patch"], context, {"path": "a b/c:d.txt", "old_string": "2", "new_string": "3"}
        )

    subject.run(test, image=f"{engines.REPOSITORY}:busybox", cwd="/work")


def test_a_read_only_container_has_room_in_memory_alone(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        assert "Read-only file system" in await said(sandbox, "echo x >/etc/x; mkdir /work/x")
        assert await said(sandbox, "cd; echo x >/tmp/x; echo x >/var/tmp/x; echo x >x; pwd; export A=1") == "/tmp\n"
        assert await said(sandbox, "head -c 40M /dev/zero >/tmp/large || echo $A") != ""

    subject.run(test, sandbox_read_only=True, sandbox_tmpfs="32m")


def test_a_user_without_rights(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "id -u; id -g") == "1234\n1234\n"
        assert "Permission denied" in await said(sandbox, "echo x >/etc/x")
        assert await said(sandbox, "cd; echo x >x; cat x; export A=1") == "x\n"
        assert (await sandbox.exec("setsid sleep 600 & wait", timeout_s=1)).timed_out
        assert await said(sandbox, "echo $A; grep CapEff /proc/self/status") == "1\nCapEff:\t0000000000000000\n"

    subject.run(test, sandbox_user="1234:1234")


def test_only_the_folders_that_the_user_lists_are_seen(subject: Subject, tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)

    async def test(sandbox: Sandbox) -> None:
        assert await said(sandbox, "cat /r/f /w/f; echo new >/w/g") == "readwrite"
        assert "Read-only" in await said(sandbox, "echo x >/r/g")
        assert await said(sandbox, f"ls {tmp_path} 2>&1 | grep -c 'No such'") == "1\n"

    subject.run(test, sandbox_mounts=f"{tmp_path}/read:/r, {tmp_path}/write:/w:rw")
    assert (tmp_path / "write" / "g").read_text() == "new\n"


@pytest.mark.parametrize("mounts", ["/a", "a:/b", "/a:/b:rx", "/a:/", "/a:/run/sandbox", "/a:/b:ro:z"])
def test_mounts_that_make_no_sense_are_refused(mounts: str) -> None:
    with pytest.raises(UserError, match="sandbox_mounts"):
        binds(mounts)


def test_a_network_that_is_not_there_is_refused_before_the_run(subject: Subject) -> None:
    with pytest.raises(FatalError, match="sandbox_network: nosuch"):
        subject.backend(sandbox_network="nosuch").check()
    subject.backend().check()


def test_a_network_that_is_asked_for_is_joined(subject: Subject, engine: docker.DockerClient) -> None:
    try:
        network = engine.networks.create(f"trajectile-test-{os.getpid()}")
    except docker.errors.APIError as error:
        pytest.skip(f"this engine makes no networks: {error.explanation}")

    async def test(sandbox: Sandbox) -> None:
        assert "eth0" in await said(sandbox, "cat /proc/net/dev")

    try:
        subject.run(test, sandbox_network=network.name)
    finally:
        network.remove()


def test_proxies_of_the_client_do_not_reach_commands(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"proxies": {"default": {"httpProxy": "http://user:canary@proxy"}}}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    async def test(sandbox: Sandbox) -> None:
        assert "canary" not in await said(sandbox, "env")

    subject.run(test)


def test_an_engine_that_is_not_there_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, words in {"unix:///no/such.sock": "DOCKER_HOST", "ssh://host": "ssh -L"}.items():
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(FatalError, match=words):
            Engine().ask(lambda client: client.ping())


def test_a_command_that_finds_no_room_for_a_process_says_so_and_can_be_killed(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        filling = "for n in $(seq 40); do sleep 600 & done; wait"
        beside = asyncio.ensure_future(sandbox.exec(filling, timeout_s=None))
        await asyncio.sleep(1.5)
        full = await sandbox.exec("echo on", timeout_s=60)
        assert full.exit_code != 0 and b"on\n" not in full.output
        beside.cancel()
        await asyncio.wait([beside])
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test, sandbox_pids=16)
