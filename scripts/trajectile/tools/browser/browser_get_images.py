"""Tool `browser_get_images`."""

from typing import TYPE_CHECKING

from trajectile.tools.browser.acting import Result, act
from trajectile.tools.browser.events import shortened
from trajectile.tools.browser.finding import requirement
from trajectile.tools.browser.session import Session
from trajectile.tools.tool import Arguments, Tool, ToolContext, parameters

if TYPE_CHECKING:
    from playwright.async_api import Page

IMAGES = """() => Array.from(document.images, image => ({
  src: (image.currentSrc || image.src).slice(0, 1000), alt: image.alt,
  width: image.naturalWidth, height: image.naturalHeight,
})).filter(image => image.src)"""


async def browser_get_images(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with url, title and the images of the page and its frames, each address once."""

    async def list_images(session: Session, page: "Page") -> Result:
        from playwright.async_api import Error

        images: dict[str, Result] = {}
        for frame in page.frames:
            try:
                found = await frame.evaluate(IMAGES)
            except Error:
                if frame == page.main_frame:
                    raise
                continue  # a frame that has gone meanwhile
            for image in found:
                images.setdefault(image["src"], image | {name: shortened(image[name]) for name in ("src", "alt")})
        return {"count": len(images), "images": list(images.values())}

    return await act(context, list_images)


TOOL = Tool(
    "browser_get_images",
    "browser",
    "List the images of the current page with address, alternative text and size.",
    parameters([]),
    browser_get_images,
    requirement,
)
