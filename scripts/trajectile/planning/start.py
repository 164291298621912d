"""The start and the end of a run in the main process: lease, run.json, checks that cost nothing but time."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from trajectile.agent.preflight import check_model, check_tool_models
from trajectile.console import say
from trajectile.dataset.files import unit_of
from trajectile.errors import UserError
from trajectile.notes import remarks
from trajectile.planning.estimate import estimate
from trajectile.planning.first_request import write_first_request
from trajectile.planning.preparation import PreparedRun
from trajectile.planning.servers import with_servers
from trajectile.run_folder.batch import save_batch_rows
from trajectile.run_folder.checkpoint import rebuild_checkpoint
from trajectile.run_folder.identity import new_identity, write_identity
from trajectile.run_folder.lease import HEARTBEAT_S, Lease, LeaseLost
from trajectile.run_folder.mishaps import forget_mishaps
from trajectile.run_folder.paths import remove_temporaries, write_atomic
from trajectile.run_folder.spending import exhausted, open_purse
from trajectile.sandbox.backend import Backend
from trajectile.sandbox.factory import make_backend
from trajectile.tools.registry import schemas


def begin_run(run: PreparedRun, *, asks_model: bool) -> Lease:
    """Take the run's lease, check sandbox and model where prompts will run, and write run.json and settings.json."""
    lease = Lease(run.folder.lease)
    if holder := lease.acquire():
        raise UserError(f"run {run.settings.run_name} is being made by {holder}. Wait for it, or end that process.")
    threading.Thread(target=_beat, args=(lease,), daemon=True).start()
    try:
        _prepare(run, asks_model)
    except Exception:
        lease.release()
        raise
    return lease


def _prepare(run: PreparedRun, asks_model: bool) -> None:
    run.folder.stop.unlink(missing_ok=True)
    forget_mishaps(run.folder)
    _save_batches(run)
    remove_temporaries(run.folder.root)
    backend = make_backend(run.settings, run.folder)
    backend.reap()
    isolation = _check(run, backend, asks_model)
    if asks_model:
        run = _ask_servers(run, backend)
    backend.close()
    _write_settings(run, isolation)
    rebuild_checkpoint(run.folder)
    if asks_model:
        write_first_request(run)


def _ask_servers(run: PreparedRun, backend: Backend) -> PreparedRun:
    asked = with_servers(run, backend)
    _say_dropped({name: lack for name, lack in asked.offer.dropped.items() if name not in run.offer.dropped})
    return asked


def _save_batches(run: PreparedRun) -> None:
    """Snakemake deletes the batch files it is to make: damaged ones, and those finished since the run was planned."""
    for shard in run.plan.shards:
        if run.folder.batch(shard.number).exists():
            save_batch_rows(run.folder, shard.number)


def _beat(lease: Lease) -> None:
    with suppress(LeaseLost):
        while True:
            threading.Event().wait(HEARTBEAT_S)
            with suppress(OSError):
                lease.beat()


def _check(run: PreparedRun, backend: Backend, asks_model: bool) -> str:
    """Return how commands are isolated, having said so; nothing is checked where no prompt will run."""
    for remark in remarks(run.notes, unit_of(run.settings.dataset_path)):
        say(remark)
    if not asks_model:
        return run.identity.isolation if run.identity else ""
    isolation = backend.describe()
    say(isolation)
    _say_dropped(run.offer.dropped)
    say(estimate(run))
    _check_money(run)
    if run.settings.preflight:
        backend.check()
        asyncio.run(check_model(run.settings))
        asyncio.run(check_tool_models(run.settings, run.offer.distribution.chances))
    return isolation


def _say_dropped(dropped: Mapping[str, str]) -> None:
    if dropped:
        lacks = ", ".join(f"{name} ({lack})" for name, lack in dropped.items())
        say(f"toolsets left out because they cannot work here: {lacks}")


def _check_money(run: PreparedRun) -> None:
    """Refuse to begin where nothing may be spent any more."""
    limit = run.settings.max_cost
    if limit is not None and (spent := open_purse(run.folder)) >= limit:
        raise UserError(f"max_cost: {exhausted(spent, limit)}")


def _write_settings(run: PreparedRun, isolation: str) -> None:
    """Write what the shards of this start go by (settings.json) and what the run is (run.json)."""
    chances = run.offer.distribution.chances
    identity = new_identity(
        run.settings,
        run.identity,
        chances=dict(chances),
        dropped=list(run.offer.dropped),
        toolsets={name: [tool.name for tool in run.offer.tools([name])] for name in chances},
        tool_schemas=schemas(run.offer.tools()),
        dataset={
            "file": run.settings.dataset_file,
            "prompts": run.plan.prompts,
            "sha256": run.plan.dataset_digest,
            "superseded": run.superseded,
        },
        isolation=isolation,
        mcp_tools={name: run.offer.mcp_tools.get(name, []) for name in run.offer.servers},
    )
    write_identity(run.folder, identity)
    write_atomic(run.folder.settings_json, msgspec.json.format(msgspec.json.encode(run.settings), indent=2))
