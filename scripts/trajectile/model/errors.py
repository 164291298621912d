"""How a model call can end other than with a reply.

FatalError subclasses stop the shard, EndsPrompt subclasses end the prompt with a saved row, and PromptError
(kinds in `KINDS`) leaves the prompt owed. Retryable never leaves this package.
"""

from trajectile.errors import FatalError

KINDS = (
    "rate_limit",
    "server_error",
    "timeout",
    "deadline",
    "connection",
    "bad_answer",
    "bad_request",
    "model_error",
)


class WrongKey(FatalError):
    """The endpoint does not know the key."""


class NotAllowed(FatalError):
    """The endpoint knows the key and refuses the request."""


class NoCredit(FatalError):
    """The account is out of credit."""


class UnknownModel(FatalError):
    """The endpoint has no such model, or no chat completions at this address."""


class Unreachable(FatalError):
    """Nothing that talks like a model server answers at the address."""


class EndsPrompt(Exception):
    """The conversation cannot go on, and asking again would not help: the prompt's row is saved with `end_reason`."""

    end_reason = ""


class ContextOverflow(EndsPrompt):
    """The conversation is longer than the model or the server takes."""

    end_reason = "context_overflow"


class ContentFilter(EndsPrompt):
    """The provider refuses the conversation for what it says."""

    end_reason = "content_filter"


class Retryable(Exception):
    """One request failed and another may succeed; `wait_s` is what the server asked for.

    Only `bounded` failures count against `max_retries`: a rate limit ends at the prompt's deadline.
    """

    def __init__(self, kind: str, message: str, *, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.wait_s = wait_s

    @property
    def bounded(self) -> bool:
        return self.kind != "rate_limit"
