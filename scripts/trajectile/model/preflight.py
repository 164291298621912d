"""Whether an endpoint can be worked with, asked before anything is started."""

import asyncio
import difflib

from trajectile.errors import FatalError
from trajectile.model import jsontext
from trajectile.model.classify import error_for, read_refusal
from trajectile.model.errors import Retryable, UnknownModel, Unreachable
from trajectile.model.reply import Answer
from trajectile.model.settings import ModelSettings
from trajectile.model.transport import Endpoint

PREFLIGHT_TIMEOUT_S = 30.0
NEAR_MATCHES = 3
NO_LIST = (404, 405, 501)


async def check_endpoint(settings: ModelSettings) -> None:
    """Ask for the list of models; raises FatalError for no server, a wrong key, or a model that is not in the list.

    A server without a list, with an empty one, or too busy to give one passes: the first call will tell.
    """
    answer = await _ask(settings)
    if 300 <= answer.status < 400:
        raise Unreachable(_redirected(answer, settings))
    if answer.status >= 400:
        error = error_for(read_refusal(answer.status, answer.body), answer.headers, settings)
        if isinstance(error, FatalError) and answer.status not in NO_LIST:
            raise error
        return
    names = _names(answer)
    if names and settings.model not in names:
        raise UnknownModel(_unknown(settings, names))


async def _ask(settings: ModelSettings) -> Answer:
    endpoint = Endpoint(settings)
    try:
        async with asyncio.timeout(min(PREFLIGHT_TIMEOUT_S, settings.request_timeout_s)):
            return await endpoint.get("/models")
    except (Retryable, TimeoutError) as error:
        said = str(error) or "no answer in time"
        raise Unreachable(
            f"No model server answers at {settings.endpoint}: "
            f"check base_url, the network, and that the server is running. ({said})"
        ) from None
    finally:
        await endpoint.aclose()


def _names(answer: Answer) -> list[str]:
    """Return the ids in a list of models, [] where there is none that can be read."""
    try:
        data = jsontext.loads(answer.body)
    except (ValueError, RecursionError):
        return []
    items = data.get("data") if isinstance(data, dict) else data
    models = [m for m in items if isinstance(m, dict)] if isinstance(items, list) else []
    return [m["id"] for m in models if isinstance(m.get("id"), str)]


def _unknown(settings: ModelSettings, names: list[str]) -> str:
    near = difflib.get_close_matches(settings.model, names, NEAR_MATCHES, 0.5) or sorted(names)[:NEAR_MATCHES]
    return f"{settings.endpoint} has no model {settings.model}: set model to another, such as {', '.join(near)}."


def _redirected(answer: Answer, settings: ModelSettings) -> str:
    return f"{settings.endpoint} redirects to {answer.headers.get('location')}: set base_url to the right address."
