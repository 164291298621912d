"""What strikes a running pipeline, and when. Each strike returns whether it struck."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import psutil
from scripted_server.fixture import ScriptedServer

from faults.disk import Disk
from faults.processes import GONE, Started, kill_all, sandboxes, shards

POLL_S = 0.01
OUTAGES: dict[str, dict[str, Any]] = {
    "overloaded": {"kind": "answer", "status": 503, "body": {"error": {"message": "overloaded"}}},
    "rate_limited": {"kind": "answer", "status": 429, "headers": {"Retry-After": "1"}, "body": {"error": "slow down"}},
    "broken": {"kind": "answer", "status": 500, "body": "<html>oops</html>", "content_type": "text/html"},
    "resetting": {"kind": "reset"},
    "cutting": {"kind": "cut"},
    "dripping": {"kind": "drip", "seconds": 1},
    "slow": {"kind": "silent", "seconds": 1.5},
    "stalled": {"kind": "stall", "seconds": 60},
}


class Scene(NamedTuple):
    """What a strike can reach; `rng` decides what the plan could not know, such as which shard."""

    started: Started
    server: ScriptedServer
    disk: Disk
    rng: random.Random


def _send(processes: list[psutil.Process], number: int) -> bool:
    hit = False
    for process in processes:
        with suppress(*GONE):
            process.send_signal(number)
            hit = True
    return hit


def _one(processes: list[psutil.Process], rng: random.Random) -> list[psutil.Process]:
    return [rng.choice(processes)] if processes else []


def _to_shard(number: int) -> Callable[[Scene], bool]:
    return lambda scene: _send(_one(shards(scene.started.run_folder), scene.rng), number)


def _to_sandbox(scene: Scene) -> bool:
    return _send(_one(sandboxes(scene.started.run_folder), scene.rng), signal.SIGKILL)


def _to_root(number: int) -> Callable[[Scene], bool]:
    return lambda scene: _send([psutil.Process(scene.started.root.pid)], number)


def _to_snakemake(number: int) -> Callable[[Scene], bool]:
    return lambda scene: _send([found] if (found := scene.started.snakemake()) else [], number)


def _to_group(number: int, times: int = 1) -> Callable[[Scene], bool]:
    """What a terminal does to all processes in the foreground, as often as an impatient user presses the keys."""

    def strike(scene: Scene) -> bool:
        for _ in range(times):
            with suppress(*GONE):
                os.killpg(scene.started.root.pid, number)
            time.sleep(0.3)
        return True

    return strike


def _kill_tree(scene: Scene) -> bool:
    return kill_all(scene.started.tag, scene.started.snakemake()) > 0


def _freeze_shard(scene: Scene) -> bool:
    frozen = _one(shards(scene.started.run_folder), scene.rng)
    hit = _send(frozen, signal.SIGSTOP)
    _pause(scene, 2)
    _send(frozen, signal.SIGCONT)
    return hit


def _outage(name: str) -> Callable[[Scene], bool]:
    def strike(scene: Scene) -> bool:
        scene.server.control(outage=OUTAGES[name])
        _pause(scene, scene.rng.uniform(0.5, 4))
        scene.server.control(outage=None)
        return True

    return strike


def _restart_server(scene: Scene) -> bool:
    scene.server.stop()
    _pause(scene, scene.rng.uniform(0.1, 3))
    scene.server.start()
    return True


def _start_again(scene: Scene) -> bool:
    """What a user does who has forgotten the other window: one of the two is to be refused."""
    scene.started.again().root.wait(timeout=240)
    return True


def _fill_disk(scene: Scene) -> bool:
    scene.disk.fill(leave=scene.rng.choice([0, 4 << 10, 60 << 10, 6 << 20]))
    _pause(scene, scene.rng.uniform(0.5, 5))
    scene.disk.free()
    return True


def _pause(scene: Scene, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not scene.started.ended():
        time.sleep(POLL_S)


STRIKES: dict[str, Callable[[Scene], bool]] = {
    "kill_shard": _to_shard(signal.SIGKILL),
    "kill_snakemake": _to_snakemake(signal.SIGKILL),
    "kill_root": _to_root(signal.SIGKILL),
    "kill_tree": _kill_tree,
    "kill_sandbox": _to_sandbox,
    "freeze_shard": _freeze_shard,
    "term_shard": _to_shard(signal.SIGTERM),
    "int_shard": _to_shard(signal.SIGINT),
    "term_root": _to_root(signal.SIGTERM),
    "int_root": _to_root(signal.SIGINT),
    "hup_root": _to_root(signal.SIGHUP),
    "ctrl_c": _to_group(signal.SIGINT),
    "ctrl_c_thrice": _to_group(signal.SIGINT, times=3),
    "term_group": _to_group(signal.SIGTERM),
    "restart_server": _restart_server,
    "start_again": _start_again,
    "fill_disk": _fill_disk,
    **{name: _outage(name) for name in OUTAGES},
}
# Strikes after which no process of the run is meant to lose what it has finished, and no answer is thrown away.
GENTLE = frozenset({"start_again", "restart_server", "freeze_shard", *OUTAGES})
# Strikes after which all processes end soon, whichever program was started, or where it was batch_runner.py.
STOPS_ALL = frozenset({"ctrl_c", "ctrl_c_thrice", "term_group"})
STOPS_ALL_OF_RUNNER = frozenset({"term_root", "int_root", "hup_root"})
HARD = ["kill_shard", "kill_snakemake", "kill_root", "kill_tree", "kill_tree", "kill_sandbox"]
SIGNALS = ["term_shard", "int_shard", "term_root", "int_root", "hup_root", "ctrl_c", "ctrl_c_thrice", "term_group"]
