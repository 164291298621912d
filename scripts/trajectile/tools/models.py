"""Asking models for tools: by one client a role and process, with costs counted and failures in words for the model."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, PromptError
from trajectile.model.errors import ContextOverflow, EndsPrompt
from trajectile.model.settings import ModelSettings
from trajectile.sandbox.output import cut
from trajectile.tools.images import data_url
from trajectile.tools.roles import lacks, settings_of, timeout_of, where_set
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from trajectile.model.client import ModelClient

T = TypeVar("T")
Ask = Callable[["ModelClient", float], Awaitable[T]]
LATE = ("deadline", "timeout")
KINDS = {
    "rate_limit": "takes no more requests now",
    "connection": "cannot be reached",
    "bad_answer": "gave an answer that cannot be used",
}
log = logging.getLogger(__name__)


class Models:
    """The clients of a process, one a role, each made when it is first asked."""

    def __init__(self, settings: Settings, run: ModelSettings) -> None:
        self._settings, self._run = settings, run
        self._clients: dict[str, ModelClient] = {}
        self._said: set[str] = set()

    def client(self, role: str) -> "ModelClient":
        """The client of a role: vision, image or tts."""
        from trajectile.model.client import ModelClient

        if role not in self._clients:
            self._clients[role] = ModelClient(settings_of(self._settings, role, self._run))
        return self._clients[role]

    def warn(self, role: str, problem: Exception) -> None:
        """Log once what the user can mend; the model is told less."""
        message = f"{role}: {problem} {where_set(role)}"
        if message not in self._said:
            self._said.add(message)
            log.warning("%s", message)

    async def close(self) -> None:
        while self._clients:
            await self._clients.popitem()[1].aclose()


async def ask(context: ToolContext, role: str, question: Ask[T]) -> T:
    """What the model of a role answers to `question(client, deadline)`; ValueError, in words for the model, where
    nothing comes of it."""
    models: Models = context.shared.get(Models, context.settings, context.model)
    timeout_s = timeout_of(context.settings, role)
    try:
        return await question(models.client(role), asyncio.get_running_loop().time() + timeout_s)
    except FatalError as problem:
        models.warn(role, problem)
        raise ValueError(f"the {role} model is not available") from None
    except ContextOverflow:
        raise ValueError(f"this is more than the {role} model takes") from None
    except EndsPrompt as refusal:
        raise ValueError(f"the {role} model refuses: {refusal}") from None
    except PromptError as problem:
        models.warn(role, problem)
        said = f"gave no answer within {timeout_s:g} s" if problem.kind in LATE else KINDS.get(problem.kind)
        raise ValueError(f"the {role} model {said or f'failed: {problem}'}") from None


async def look(context: ToolContext, image: bytes, question: str) -> str:
    """What the vision model says about an image; its cost is counted. ValueError where it says nothing."""
    if lacks(context.settings, "vision", "see"):
        raise ValueError("no model that sees is set for this run")
    content = [
        {"type": "text", "text": question},
        {"type": "image_url", "image_url": {"url": data_url(image, context.settings.vision_image_limit)}},
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    reply = await ask(context, "vision", lambda client, deadline: client.complete(messages, [], deadline=deadline))
    context.spend(reply.usage)
    if not reply.content.strip():
        raise ValueError("the vision model said nothing")
    return cut(reply.content.strip(), context.settings.output_limit)
