"""The shared server of the embedded model: found, shared, raced for, and gone when its users are."""

import asyncio
import json
import os
import signal
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from local_weights import MODEL, Holder, alive, needs_engine, private_cache, wait_until
from trajectile.errors import UserError
from trajectile.model.local.catalogue import resolve
from trajectile.model.local.manager import local_endpoint
from trajectile.model.local.servers import server_folder
from trajectile.model.serving.folder import ServerFolder
from trajectile.model.serving.locks import is_locked

pytestmark = [pytest.mark.local_model]

Start = Callable[..., Holder]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = private_cache(tmp_path / "cache")
    monkeypatch.setenv("TRAJECTILE_CACHE", str(folder))
    return folder


@pytest.fixture
def start(cache: Path) -> Iterator[Start]:
    holders: list[Holder] = []

    def holder(**options: float) -> Holder:
        holders.append(Holder(cache, **options))
        return holders[-1]

    yield holder
    for each in holders:
        each.kill()
    assert wait_until(lambda: not lives(the_folder())), "a server was left running"


def the_folder() -> ServerFolder:
    return server_folder(resolve(MODEL), n_parallel=4)


def lives(folder: ServerFolder) -> bool:
    """Whether its server lives; the folder goes with it."""
    with suppress(FileNotFoundError):
        return is_locked(folder.server_lock)
    return False


def answers(holder: Holder) -> bool:
    _pid, url, key = holder.server
    request = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return bool(response.status == 200)
    except urllib.error.URLError:
        return False


def test_processes_share_one_server_until_the_last_one_ends(cache: Path, start: Start) -> None:
    first = start()
    pid = first.server[0]
    second = start()
    assert second.server == first.server
    first.end()
    time.sleep(2)
    assert alive(pid) and answers(second)
    second.end()
    assert wait_until(lambda: not alive(pid), 10)
    assert list((cache / "servers").iterdir()) == []


def test_racing_starts_give_one_server(start: Start) -> None:
    holders = [start() for _ in range(5)]
    with ThreadPoolExecutor(5) as pool:
        servers = list(pool.map(lambda holder: holder.server, holders))
    assert len(set(servers)) == 1
    assert len(list(the_folder().users.iterdir())) == 5


def test_kill_9_of_the_starter_keeps_the_server_for_others_and_ends_it_after_the_last(start: Start) -> None:
    first = start()
    pid = first.server[0]
    second = start()
    assert second.server[0] == pid
    first.kill()
    time.sleep(2)
    assert answers(second)
    second.kill()
    assert wait_until(lambda: not alive(pid), 10)


def test_kill_9_of_the_starter_in_mid_start_leaves_no_orphan_and_no_second_server(start: Start) -> None:
    first = start()
    folder = the_folder()
    assert wait_until(lambda: lives(folder))
    assert folder.endpoint() is None, "too late to test: the server is ready"
    first.kill()
    second = start()
    assert answers(second)
    second.end()
    assert wait_until(lambda: not lives(folder), 15)


def test_a_starter_killed_before_anyone_else_came_leaves_nothing(start: Start) -> None:
    first = start()
    folder = the_folder()
    assert wait_until(lambda: lives(folder))
    first.kill()
    assert wait_until(lambda: not lives(folder), 30)


def test_a_dead_server_is_replaced_by_the_next_user(start: Start) -> None:
    first = start()
    pid = first.server[0]
    os.kill(pid, signal.SIGKILL)
    second = start()
    assert second.server[0] != pid
    assert answers(second)


def test_sigterm_ends_the_server_at_once(start: Start) -> None:
    pid = start().server[0]
    os.kill(pid, signal.SIGTERM)
    assert wait_until(lambda: not alive(pid), 5)


def test_the_key_is_for_the_owner_alone(start: Start) -> None:
    pid, url, key = start().server
    folder = the_folder()
    assert stat.S_IMODE(folder.state.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert url.startswith("http://127.0.0.1:")
    assert key not in (folder.path / "server.log").read_text()
    if Path("/proc/self").exists():
        assert key.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{url}/models", timeout=10)


def test_users_in_one_process_count_each(cache: Path) -> None:
    async def both() -> None:
        async with local_endpoint(MODEL, idle_s=0.5) as outer:
            async with local_endpoint(MODEL, idle_s=0.5) as inner:
                assert inner == outer
            await asyncio.sleep(1.5)
            assert alive(outer.pid)

    asyncio.run(both())
    assert wait_until(lambda: not lives(the_folder()), 10)


def test_each_cluster_job_has_its_own_server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = the_folder().path
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert the_folder().path.parent == alone.parent.with_name(f"{alone.parent.name}-17")


@needs_engine
def test_a_server_that_cannot_start_tells_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(64))

    async def attempt() -> None:
        async with local_endpoint(f"local/{tmp_path}/broken.gguf"):
            pass

    with pytest.raises(UserError, match="ended at its start") as caught:
        asyncio.run(attempt())
    assert "fail" in str(caught.value).lower()
    assert "broken.gguf" in str(caught.value)
    assert list((tmp_path / "cache" / "servers").iterdir()) == []


def test_a_caller_who_goes_away_frees_the_engine(start: Start) -> None:
    pid, url, key = start().server
    long = {"type": "json_schema", "json_schema": {"schema": {"type": "string", "minLength": 1500}}}
    messages = [{"role": "user", "content": "Count to 900."}]
    body = {"model": MODEL, "max_tokens": 3000, "messages": messages, "response_format": long}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(_number: int) -> None:
        request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
        with pytest.raises(OSError, match="timed out"):
            urllib.request.urlopen(request, timeout=1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert wait_until(lambda: cpu_seconds_in_one_second(pid) < 0.1, 20)


def cpu_seconds_in_one_second(pid: int) -> float:
    """How busy a process is, in CPUs."""
    return psutil.Process(pid).cpu_percent(interval=1.0) / 100
