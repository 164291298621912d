"""Names of elements that a model has been shown: @e1, @e2 and so on, none of them given twice for a prompt."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page

PLAYWRIGHTS = re.compile(r"\[ref=((?:f\d+)?e\d+)\]")
NAME = re.compile(r"@?e(\d+)")


class References:
    """Names stand for Playwright's references, which are those of one document in one tab: an old name never means
    another element."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Page, str], int] = {}
        self._meant: list[tuple[Page, str]] = []

    def name(self, page: "Page", reference: str) -> str:
        """The name of an element, a new one where it has none."""
        meant = page, reference
        if meant not in self._numbers:
            self._meant.append(meant)
            self._numbers[meant] = len(self._meant)
        return f"@e{self._numbers[meant]}"

    def put_in(self, page: "Page", snapshot: str) -> str:
        """A snapshot of Playwright's with our names."""
        return PLAYWRIGHTS.sub(lambda found: f"[ref={self.name(page, found[1])}]", snapshot)

    def find(self, page: "Page", name: str) -> str:
        """The reference that a name stands for; ValueError where it is none of this tab."""
        matched = NAME.fullmatch(name.strip())
        if not matched or not 0 < int(matched[1]) <= len(self._meant):
            raise ValueError(f"there is no element {name[:50]!r}; take a name like @e5 from browser_snapshot")
        where, reference = self._meant[int(matched[1]) - 1]
        if where != page:
            raise ValueError(f"{name} is not in the tab in front; take a new browser_snapshot")
        return reference
