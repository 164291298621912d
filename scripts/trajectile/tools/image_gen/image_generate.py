"""Tool `image_generate`."""

from trajectile.configuration.settings import Settings
from trajectile.tools.image_gen.drawing import SHAPES, draw
from trajectile.tools.images import SUFFIXES, media_type
from trajectile.tools.roles import lacks
from trajectile.tools.saving import FileNames, save
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, parameters


async def image_generate(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with path and size of the image file in the sandbox."""
    image = await draw(context, arguments["prompt"], arguments.get("aspect_ratio", "landscape"))
    kind = media_type(image)
    path = arguments.get("output_path") or context.own.get(FileNames).next("image", SUFFIXES[kind])
    await save(context.sandbox, path, image)
    return as_json(success=True, image=path, media_type=kind, bytes=len(image))


def requirement(settings: Settings) -> str:
    return lacks(settings, "image", "draw")


TOOL = Tool(
    "image_generate",
    "image_gen",
    "Draw an image from a description, into a file.",
    parameters(
        ["prompt"],
        prompt={"type": "string", "minLength": 1, "description": "what it shows, in detail"},
        aspect_ratio={"type": "string", "enum": list(SHAPES), "description": "landscape if not given"},
        output_path={"type": "string", "minLength": 1, "description": "file to write; named by the tool if not given"},
    ),
    image_generate,
    requirement,
)
