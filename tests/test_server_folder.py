"""The folder of a shared server: who waits for it hears how a start failed, and the last one removes it."""

import asyncio
import fcntl
import logging
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from trajectile.errors import UserError
from trajectile.model.serving import sharing
from trajectile.model.serving.folder import ServerFolder
from trajectile.model.serving.sharing import Server, shared_server
from trajectile.model.serving.users import User

SCRIPTS = Path(__file__).parents[1] / "scripts"
CHURN = """
import asyncio, sys
from pathlib import Path
from trajectile.model.serving.folder import ServerFolder
from trajectile.model.serving.users import User
async def main():
    folder = ServerFolder(Path(sys.argv[1]))
    for _ in range(30):
        user = User(folder.users)
        async with folder.starting(user):
            assert folder.starting_lock.exists() and folder.has_users()
        user.leave()
        folder.remove()
asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> ServerFolder:
    return ServerFolder(tmp_path / "servers" / platform.node() / "model")


def failing(folder: ServerFolder, log: Path) -> Server:
    command = [sys.executable, "-c", "import time; time.sleep(0.5); print('no weights')"]
    return Server("the server", folder, command, log, 30, os.environ)


async def use(server: Server) -> str:
    try:
        async with shared_server(server):
            return "served"
    except UserError as error:
        return str(error)


def test_all_who_wait_hear_of_a_failed_start_and_nothing_is_left(folder: ServerFolder, tmp_path: Path) -> None:
    server = failing(folder, tmp_path / "log")

    async def together() -> list[str]:
        return await asyncio.gather(*(use(server) for _ in range(5)))

    said = asyncio.run(together())
    assert len(set(said)) == 1 and "ended at its start" in said[0] and "no weights" in said[0]
    assert server.log.read_text().count("start of the server") == 1
    assert not folder.path.parent.exists()


def test_a_start_removes_what_killed_servers_left_and_no_more(folder: ServerFolder, tmp_path: Path) -> None:
    servers = folder.path.parents[1]
    dead, used = (ServerFolder(servers / f"{platform.node()}-{job}" / "model") for job in (1, 2))
    elsewhere, before = ServerFolder(servers / "another-3" / "model"), ServerFolder(folder.path.with_name("other"))
    for each in (dead, used, elsewhere, before):
        each.make()
    (user := User(used.users)).register()
    asyncio.run(use(failing(folder, tmp_path / "log")))
    assert not dead.path.parent.exists() and not before.path.exists()
    assert used.path.exists() and elsewhere.path.exists()
    user.leave()


def test_the_folder_of_a_living_server_is_not_removed_by_its_users(folder: ServerFolder) -> None:
    folder.make()
    with folder.server_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.remove()
        assert folder.path.exists()
        folder.remove(by_server=True)
        assert not folder.path.exists()


def test_no_registration_is_lost_while_others_remove_the_folder(folder: ServerFolder) -> None:
    command = [sys.executable, "-c", CHURN, str(folder.path)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    processes = [subprocess.Popen(command, env=environment) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    folder.remove()
    assert not folder.path.exists()


def test_all_who_wait_say_so_whoever_starts_the_server(
    folder: ServerFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sharing, "TOLD_EVERY_S", 0.2)
    server = failing(folder, tmp_path / "log")

    async def together() -> None:
        await asyncio.gather(use(server), use(server))

    with caplog.at_level(logging.INFO, sharing.__name__):
        asyncio.run(together())
    assert caplog.text.count("waiting for the server for 0 s") >= 4
