"""References drawn over the elements of a page while a screenshot is taken."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trajectile.tools.browser.session import Session
from trajectile.tools.browser.snapshots import is_useful

if TYPE_CHECKING:
    from playwright.async_api import Page

PLACED = re.compile(r"\[ref=((f\d+)?e\d+)\].*\[box=(-?\d+),(-?\d+),(\d+),(\d+)\]")
DRAW = """labels => {
  const host = document.createElement('div');
  host.id = 'trajectile-labels';
  host.style.cssText = 'all:initial;position:fixed;inset:0;z-index:2147483647;pointer-events:none';
  for (const [text, x, y, width, height] of labels) {
    const box = document.createElement('div');
    box.style.cssText = `position:fixed;left:${x}px;top:${y}px;width:${width}px;height:${height}px;` +
      'box-sizing:border-box;border:2px solid #d00';
    const label = document.createElement('div');
    label.textContent = text;
    label.style.cssText = 'position:absolute;left:0;top:0;background:#d00;color:#fff;font:bold 11px sans-serif';
    box.append(label);
    host.append(box);
  }
  document.documentElement.append(host);
}"""
REMOVE = "() => document.getElementById('trajectile-labels')?.remove()"


@asynccontextmanager
async def labelled(session: Session, page: "Page", wanted: bool) -> AsyncIterator[None]:
    """Show the references of what can be used on the page itself, where `wanted`."""
    if not wanted:
        yield
        return
    placed = _placed(await page.aria_snapshot(mode="ai", boxes=True))
    await page.evaluate(DRAW, [[session.references.name(page, reference), *box] for reference, *box in placed])
    try:
        yield
    finally:
        await page.evaluate(REMOVE)


def _placed(snapshot: str) -> list[tuple[str, int, int, int, int]]:
    """References and boxes of what can be used; not in frames, whose boxes begin at their own corners."""
    found = [(line, match) for line in snapshot.split("\n") if (match := PLACED.search(line))]
    page = found[0][1][2] if found else None
    return [
        (match[1], int(match[3]), int(match[4]), int(match[5]), int(match[6]))
        for line, match in found
        if match[2] == page and is_useful(line.lstrip())
    ]
