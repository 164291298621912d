"""What is checked before the first prompt is paid for, and where the model of a run is."""

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from trajectile.agent.controls import request_controls
from trajectile.configuration.settings import Settings
from trajectile.errors import FatalError, MachineError, UserError
from trajectile.model.errors import UnknownModel
from trajectile.model.keys import api_key
from trajectile.model.preflight import check_endpoint
from trajectile.model.serving.folder import Endpoint
from trajectile.model.settings import ModelSettings
from trajectile.run_folder.paths import RunFolder
from trajectile.run_folder.stop import mark_served
from trajectile.tools.roles import roles_elsewhere, settings_of, where_set

LOCAL_PREFIX = "local/"
log = logging.getLogger(__name__)


@asynccontextmanager
async def model_settings(settings: Settings, folder: RunFolder) -> AsyncIterator[ModelSettings]:
    """Yield how to reach the model, keeping the server alive meanwhile where the run starts one itself.

    MachineError: there is no server on this machine. ConnectionError: it died.
    """
    if not settings.model.startswith(LOCAL_PREFIX) and not settings.serve_command:
        yield _model_settings(settings, settings.base_url, api_key(settings.base_url))
        return
    async with AsyncExitStack() as stack:
        try:
            endpoint = await stack.enter_async_context(_own_server(settings, folder))
            model = _model_settings(settings, endpoint.base_url, endpoint.api_key)
            if settings.preflight:
                await check_endpoint(model)
        except UnknownModel:
            raise
        except (UserError, FatalError) as error:
            raise MachineError(str(error)) from None
        mark_served(folder)
        yield model


def _own_server(settings: Settings, folder: RunFolder) -> AbstractAsyncContextManager[Endpoint]:
    if settings.serve_command:
        from trajectile.model.serving.served import served_endpoint

        log.info("the model server's log is in %s", folder.server_logs)
        return served_endpoint(settings.serve_command, settings.model, folder, settings.serve_timeout)
    from trajectile.model.local.manager import local_endpoint

    return local_endpoint(settings.model)


def keyless_settings(settings: Settings) -> ModelSettings:
    """Return how the model is asked, without the key, for showing."""
    return _model_settings(settings, settings.base_url, "")


def _model_settings(settings: Settings, base_url: str, key: str) -> ModelSettings:
    return ModelSettings(
        base_url=base_url,
        api_key=key,
        model=settings.model,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        request_timeout_s=settings.request_timeout,
        max_retries=settings.max_retries,
        concurrency=settings.concurrency,
        extra_body=request_controls(settings),
        price_prompt=settings.price_prompt_per_million,
        price_completion=settings.price_completion_per_million,
    )


async def check_tool_models(settings: Settings, toolsets: Iterable[str]) -> None:
    """Check the endpoints beside the run's own that tools will ask; FatalError for one that cannot be used.

    Many servers leave models that draw or speak out of their list.
    """
    own_server = settings.model.startswith(LOCAL_PREFIX) or bool(settings.serve_command)
    base_url = "" if own_server else settings.base_url
    run = _model_settings(settings, base_url, "" if own_server else api_key(base_url))
    for role in roles_elsewhere(settings, toolsets):
        try:
            await check_endpoint(settings_of(settings, role, run))
        except UnknownModel as error:
            if role == "vision":
                raise FatalError(f"{role}: {error} {where_set(role)}") from None
        except FatalError as error:
            raise FatalError(f"{role}: {error} {where_set(role)}") from None


async def check_model(settings: Settings) -> None:
    """Check that the model can be asked, spending no token; an embedded model's weights are fetched here.

    A server that the shards will start is not there yet: the first of them checks it.
    """
    if settings.model.startswith(LOCAL_PREFIX):
        from trajectile.model.local.catalogue import resolve
        from trajectile.model.local.weights import ensure_entry, require_engine, show_progress

        require_engine()
        entry = resolve(settings.model)
        await ensure_entry(entry, show_progress(entry))
        return
    if settings.serve_command:
        from trajectile.model.serving.command import syntax_problem

        if problem := syntax_problem(settings.serve_command):
            raise UserError(f"serve_command: bash cannot read it: {problem}")
        return
    await check_endpoint(_model_settings(settings, settings.base_url, api_key(settings.base_url)))
