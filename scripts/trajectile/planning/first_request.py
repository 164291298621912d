"""The first request of a start, as it will go over the wire, for the user to read before anything is spent."""

from collections.abc import Iterator
from typing import Any

import msgspec

from trajectile.agent.conversation import start_messages
from trajectile.agent.prefill import load_prefill
from trajectile.agent.preflight import LOCAL_PREFIX, keyless_settings
from trajectile.dataset.prompts import read_prompts
from trajectile.model.request import build_body
from trajectile.planning.preparation import PreparedRun
from trajectile.rows import PromptRow
from trajectile.run_folder.ids import Id, make_id
from trajectile.run_folder.journal import PROMPT, records
from trajectile.run_folder.paths import write_atomic
from trajectile.tools.distributions import draw
from trajectile.tools.registry import schemas

EMBEDDED = "the embedded server"
SERVED = "the server of serve_command"


def write_first_request(run: PreparedRun) -> None:
    """Write first_request.json: address and body of the first owed prompt's first request; keys stand in no body."""
    row = first_owed(run)
    if row is not None:
        content = {"url": _url(run), "prompt_index": row.prompt_index, "body": request_of(run, row)}
        write_atomic(run.folder.first_request, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def request_of(run: PreparedRun, row: PromptRow) -> dict[str, Any]:
    """Return the body of a prompt's first request."""
    settings = run.settings
    toolsets = draw(run.offer.distribution, settings.seed, row.prompt_key, row.ordinal)
    messages = start_messages(row.turns, settings.ephemeral_system_prompt, load_prefill(settings.prefill_messages_file))
    return build_body(keyless_settings(settings), messages, schemas(run.offer.tools(toolsets)))


def _url(run: PreparedRun) -> str:
    if run.settings.model.startswith(LOCAL_PREFIX):
        return EMBEDDED
    if run.settings.serve_command:
        return SERVED
    return f"{keyless_settings(run.settings).endpoint}/chat/completions"


def first_owed(run: PreparedRun) -> PromptRow | None:
    """Return the first row of the first shard that runs any, from the shard's file or else the dataset."""
    shard = next((shard for shard in run.plan.shards if shard.rows), None)
    if shard is None:
        return None
    wanted: Id = shard.rows[0]
    return next((row for row in _rows(run, shard.number, shard.new) if _id(row) == wanted), None)


def _rows(run: PreparedRun, number: int, new: bool) -> Iterator[PromptRow]:
    if not new:
        return records(run.folder.shard(number), PROMPT)
    settings = run.settings
    return read_prompts(settings.dataset_path, on_bad_row=settings.on_bad_row, max_samples=settings.max_samples)


def _id(row: PromptRow) -> Id:
    return make_id(row.prompt_key, row.ordinal)
