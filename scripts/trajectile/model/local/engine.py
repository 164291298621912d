"""The engine: llama.cpp with its HTTP server inside this process, for the front alone to talk to."""

import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

CACHE_RAM_MIB = 256
POOL_TOKENS = 16384
MAX_REPLY_TOKENS = 4096
LOG_WARNINGS = 2
DEFAULT_TEMPERATURE = 0.2
DEFAULT_TOP_P = 0.9
DRY_MULTIPLIER = 0.8  # breaks the endless repetitions that small models fall into
DRY_ALLOWED_TOKENS = 4
DRY_WINDOW_TOKENS = 128


class Engine(NamedTuple):
    """A running engine: `server` must stay referenced, `address` is its base URL, `key` its API key."""

    server: Any
    address: str
    key: str


def start_engine(weights: Path, n_ctx: int, n_parallel: int) -> Engine:
    """Load the weights and listen on an ephemeral loopback port; returns when it is ready to answer.

    `n_ctx` is the most tokens one request can hold; the parallel requests share one pool of POOL_TOKENS.
    """
    os.environ["OMP_WAIT_POLICY"] = "passive"  # read at import: waiting threads would spin on busy CPUs
    import xllamacpp

    key = secrets.token_urlsafe(24)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.cors_origins = ""
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.n_parallel = n_parallel
    params.kv_unified = True
    params.n_ctx = n_ctx if n_parallel == 1 else max(POOL_TOKENS, n_ctx)
    params.n_predict = MAX_REPLY_TOKENS
    params.cache_ram_mib = CACHE_RAM_MIB
    params.fit_params = False
    params.verbosity = LOG_WARNINGS
    params.cpuparams.n_threads = usable_cpus()
    params.sampling.temp = DEFAULT_TEMPERATURE
    params.sampling.top_p = DEFAULT_TOP_P
    params.sampling.dry_multiplier = DRY_MULTIPLIER
    params.sampling.dry_allowed_length = DRY_ALLOWED_TOKENS
    params.sampling.dry_penalty_last_n = DRY_WINDOW_TOKENS
    server = xllamacpp.Server(params)
    return Engine(server, server.listening_address, key)


def usable_cpus() -> int:
    """CPUs this process may run on: a scheduler's job has fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
