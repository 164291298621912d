"""How many prompts may run at once where a process may have so many files open and no more."""

import resource
from contextlib import suppress

FOR_A_PROMPT = 6  # descriptors: a connection to the model, the ends of a sandbox and of a command in it
FOR_A_SHARD = 64


def room_for(prompts: int) -> int:
    """Raise the limit of open files as far as that many prompts at once need it; return how many have room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FOR_A_SHARD + FOR_A_PROMPT * prompts
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return prompts
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    return max(1, min(prompts, (soft - FOR_A_SHARD) // FOR_A_PROMPT))
