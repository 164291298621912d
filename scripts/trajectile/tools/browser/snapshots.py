"""Pages as models see them: the accessibility tree, its elements with names such as @e5."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page

    from trajectile.tools.browser.session import Session

SMALL_CHARACTERS = 4000
MORE = "(a large page: other text is left out, full: true shows it)"

ROLE = re.compile(r"- '?(\w+)")
USABLE = re.compile(
    "button|checkbox|combobox|gridcell|link|listbox|menuitem|menuitemcheckbox|menuitemradio|option|radio|searchbox|"
    "slider|spinbutton|switch|tab|textbox|treeitem"
)
LANDMARKS = re.compile("alert|alertdialog|dialog|heading|iframe|status")


async def snapshot(session: "Session", page: "Page", *, full: bool) -> str:
    """The page with its frames, a line an element; of a large page, if not `full`, what can be used, and headings."""
    text = await page.aria_snapshot(mode="ai")
    if not full and len(text) > SMALL_CHARACTERS:
        text = f"{compact(text)}\n{MORE}"
    return session.references.put_in(page, text) or "(an empty page)"


def compact(text: str) -> str:
    """Leave out lines of other elements, and indent the rest by what is left above them."""
    kept, above = [], list[int]()
    for line in text.split("\n"):
        body = line.lstrip()
        indent = len(line) - len(body)
        while above and above[-1] >= indent:
            above.pop()
        if is_useful(body):
            kept.append("  " * len(above) + body.removesuffix(":"))
            above.append(indent)
    return "\n".join(kept)


def is_useful(line: str) -> bool:
    """Whether a line is of an element that can be used, or tells where it is."""
    role = ROLE.match(line)
    if not role:
        return False
    return bool(USABLE.fullmatch(role[1]) or LANDMARKS.fullmatch(role[1])) or "[cursor=pointer]" in line
