"""The yardstick of bench_engine: sends the requests of a finished batch again with the bare openai client.

    python tests/benchmarks/bare_client.py BASE_URL BATCH_FILE CONCURRENCY

Prints seconds of CPU and of wall time, and the number of calls, as JSON; starting up is not in them.
"""

import asyncio
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import orjson
from measuring import ROOT
from openai import AsyncOpenAI, DefaultAioHttpClient
from trajectile.agent.conversation import to_message
from trajectile.rows import Trajectory
from trajectile.run_folder.journal import TRAJECTORY, records
from trajectile.tools.registry import TOOLSETS, schemas, tools_of

assert ROOT


def requests(row: Trajectory) -> list[list[dict[str, Any]]]:
    """Return the messages of each call that made a row."""
    messages = [to_message(turn) for turn in row.conversations]
    return [messages[:place] for place, turn in enumerate(row.conversations) if turn.from_ == "gpt"]


async def send_all(client: AsyncOpenAI, prompts: "deque[list[Any]]", fixed: dict[str, Any], concurrency: int) -> None:
    async def worker() -> None:
        while prompts:
            for messages in prompts.popleft():
                await client.chat.completions.create(messages=messages, **fixed)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def main(base_url: str, batch: Path, concurrency: int) -> None:
    rows = list(records(batch, TRAJECTORY))
    fixed = {"model": rows[0].metadata.model, "tools": schemas(tools_of(rows[0].toolsets_used, TOOLSETS))}
    prompts = deque(requests(row) for row in rows)
    calls = sum(map(len, prompts))
    async with AsyncOpenAI(base_url=base_url, api_key="none", http_client=DefaultAioHttpClient()) as client:
        cpu, wall = time.process_time(), time.perf_counter()
        await send_all(client, prompts, fixed, concurrency)
        used = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "calls": calls}
    sys.stdout.write(orjson.dumps(used).decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
