"""Errors whose message tells the user what to do."""


class UserError(Exception):
    """Something the user can mend: a command line prints the message alone and ends with status 2."""


class FatalError(Exception):
    """Nothing more can be done in this run until the user acts (wrong key, no credit, no sandbox): stops the shard."""


class MachineError(FatalError):
    """Nothing can be run on this machine (no sandbox, no model server); on a cluster another one may do."""


# Kinds of failure that say nothing about other prompts.
OWN_FAULTS = frozenset({"bad_cwd", "image_unavailable"})


class PromptError(Exception):
    """One attempt at one prompt failed: a line in the failure ledger, the prompt stays owed.

    `kind` is a short word for counting, such as `rate_limit`, `timeout` or `sandbox_died`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
