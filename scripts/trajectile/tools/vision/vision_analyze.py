"""Tool `vision_analyze`."""

from trajectile.configuration.settings import Settings
from trajectile.tools.fetching import FetchError, fetch
from trajectile.tools.images import from_data_url
from trajectile.tools.models import look
from trajectile.tools.roles import lacks
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, parameters


async def vision_analyze(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with what a vision model says."""
    image = await load(context, arguments["image_url"])
    return as_json(success=True, analysis=await look(context, image, arguments["question"]))


async def load(context: ToolContext, place: str) -> bytes:
    """The bytes at a URL, in a data URL or in a file of the sandbox; ValueError or OSError where there are none."""
    scheme = place.partition(":")[0].lower()
    if scheme == "data":
        return from_data_url(place)
    if scheme in ("http", "https"):
        page = await fetch(context, place, max_bytes=context.settings.vision_image_limit, accept="image/*")
        if page.status >= 400:
            raise FetchError(f"HTTP {page.status}")
        return page.content
    return await context.sandbox.read_file(place.removeprefix("file://"))


def requirement(settings: Settings) -> str:
    return lacks(settings, "vision", "see")


TOOL = Tool(
    "vision_analyze",
    "vision",
    "Ask a question about an image: what it shows, what is written on it.",
    parameters(
        ["image_url", "question"],
        image_url={"type": "string", "description": "http(s) URL, data URL, or path of a file"},
        question={"type": "string"},
    ),
    vision_analyze,
    requirement,
)
