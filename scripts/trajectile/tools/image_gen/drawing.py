"""An image from the images API of an OpenAI-compatible server."""

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from trajectile.model import jsontext
from trajectile.model.errors import Retryable
from trajectile.model.keys import are_one_server
from trajectile.model.settings import ModelSettings
from trajectile.model.usage import read_usage
from trajectile.rows import Usage
from trajectile.tools.fetching import FetchError, WebClient, fetch, read_body
from trajectile.tools.images import from_base64, from_data_url
from trajectile.tools.models import ask
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from trajectile.model.client import ModelClient
    from trajectile.model.reply import Answer

IMAGE_MAX_BYTES = 32 << 20
OPENROUTER = "openrouter.ai"


class Shape(NamedTuple):
    """One aspect ratio as servers name it: OpenAI's by pixels, OpenRouter's by proportion."""

    size: str
    aspect_ratio: str


SHAPES = {
    "landscape": Shape("1536x1024", "3:2"),
    "square": Shape("1024x1024", "1:1"),
    "portrait": Shape("1024x1536", "2:3"),
}


class Drawn(NamedTuple):
    """Where the image is, as base64 or at a URL, and what it took."""

    base64: str
    url: str
    usage: dict[str, Any]


async def draw(context: ToolContext, prompt: str, shape: str) -> bytes:
    """The image file that the model draws; its cost is counted. ValueError or OSError where there is none."""

    async def question(client: "ModelClient", deadline: float) -> tuple[Drawn, str]:
        path, body = request_of(client.settings, prompt, SHAPES[shape])
        drawn = await client.ask(path, jsontext.dumps(body), reader(client.settings), deadline=deadline)
        return drawn, client.settings.base_url

    drawn, base_url = await ask(context, "image", question)
    context.spend(cost_of(drawn.usage, context.settings.image_price))
    return from_base64(drawn.base64) if drawn.base64 else await _download(context, drawn.url, base_url)


def request_of(settings: ModelSettings, prompt: str, shape: Shape) -> tuple[str, dict[str, Any]]:
    """Path and body of the request; OpenRouter's images API is a little different from OpenAI's."""
    body = {"model": settings.model, "prompt": prompt, "n": 1, **settings.extra_body}
    if urlsplit(settings.base_url).hostname == OPENROUTER:
        return "/images", body | {"aspect_ratio": shape.aspect_ratio}
    return "/images/generations", body | {"size": shape.size}


def reader(settings: ModelSettings) -> Any:
    """How an answer is read; it raises one of the client's errors for anything that holds no image."""
    from trajectile.model.reply import check_status, parse

    def read(answer: "Answer", _: float) -> Drawn:
        check_status(answer, settings)
        data = parse(answer.body)
        images = data.get("data")
        first = images[0] if isinstance(images, list) and images and isinstance(images[0], dict) else {}
        drawn = Drawn(_text(first.get("b64_json")), _text(first.get("url")), _mapping(data.get("usage")))
        if not drawn.base64 and not drawn.url:
            raise Retryable("bad_answer", "the answer holds no image")
        return drawn

    return read


def cost_of(usage: dict[str, Any], price: float | None) -> Usage:
    """What an image took: tokens by either name, the cost that the server tells or else the price of an image."""
    named = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    read = read_usage(named | usage)
    if usage.get("cost") is None:
        read.cost = price or 0.0
    return read


async def _download(context: ToolContext, url: str, base_url: str) -> bytes:
    """The image at a URL that the server names: its own, which may be local, or a public one."""
    if url.startswith("data:"):
        return from_data_url(url)
    if not are_one_server(url, base_url):
        page = await fetch(context, url, timeout_s=context.settings.image_timeout, max_bytes=IMAGE_MAX_BYTES)
        status, content = page.status, page.content
    else:
        status, content = await _from_server(context, url)
    if status >= 300:
        raise FetchError(f"the drawn image cannot be fetched: HTTP {status}")
    return content


async def _from_server(context: ToolContext, url: str) -> tuple[int, bytes]:
    import aiohttp

    session = context.shared.get(WebClient, context.settings).open
    try:
        async with asyncio.timeout(context.settings.image_timeout):
            async with session.get(url, allow_redirects=False) as response:
                return response.status, await read_body(response, IMAGE_MAX_BYTES)
    except (aiohttp.ClientError, TimeoutError):
        raise FetchError("the drawn image cannot be fetched") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
