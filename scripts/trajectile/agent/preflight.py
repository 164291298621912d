"""What is checked before the first prompt is paid for, and where the model of a run is."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from trajectile.agent.controls import request_controls
from trajectile.configuration.settings import Settings
from trajectile.model.preflight import check_endpoint
from trajectile.model.settings import ModelSettings

LOCAL_PREFIX = "local/"


def api_key(base_url: str) -> str:
    """Return the key for an endpoint from the environment; "" where none is set, as servers of one's own allow."""
    names = ["TRAJECTILE_API_KEY", "OPENAI_API_KEY"]
    host = urlsplit(base_url).hostname or ""
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        names.insert(1, "OPENROUTER_API_KEY")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


@asynccontextmanager
async def model_settings(settings: Settings) -> AsyncIterator[ModelSettings]:
    """Yield how to reach the model, keeping the embedded server alive meanwhile where the model is a local one."""
    if not settings.model.startswith(LOCAL_PREFIX):
        yield _model_settings(settings, settings.base_url, api_key(settings.base_url))
        return
    from trajectile.model.local.manager import local_endpoint

    async with local_endpoint(settings.model) as endpoint:
        yield _model_settings(settings, endpoint.base_url, endpoint.api_key)


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


async def check_model(settings: Settings) -> None:
    """Check that the model can be asked, spending no token; an embedded model's weights are fetched here."""
    if settings.model.startswith(LOCAL_PREFIX):
        from trajectile.model.local.catalogue import resolve
        from trajectile.model.local.weights import ensure_entry, require_engine, show_progress

        require_engine()
        entry = resolve(settings.model)
        await ensure_entry(entry, show_progress(entry))
        return
    await check_endpoint(_model_settings(settings, settings.base_url, api_key(settings.base_url)))
