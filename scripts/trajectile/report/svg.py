"""Draws pictures as SVG: small, without a dependency, the same in a report, a page and an image viewer."""

from collections.abc import Iterable
from html import escape

STYLE = """
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
.title { font-size: 16px; font-weight: 600; } .small { font-size: 11.5px; fill: #5b6875; }
.grid { stroke: #e3e8ee; } .axis { stroke: #9aa6b2; } .mark { stroke: #1f2933; stroke-dasharray: 3 3; }
"""


class Drawing:
    """A picture built element by element on a white ground; all text is escaped."""

    def __init__(self, width: float, height: float, name: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-label="{_safe(name)}"><style>{STYLE}</style>',
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        ]

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{_safe(text)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, fill: str, tip: str = "") -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" fill="{fill}">'
            f"<title>{_safe(tip)}</title></rect>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def legend(self, x: float, y: float, entries: Iterable[tuple[str, str]]) -> None:
        """Write names with their colours in a row."""
        for name, colour in entries:
            self.rect(x, y - 9, 10, 10, colour)
            self.text(x + 15, y, name, "small")
            x += 30 + 6.6 * len(name)

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>\n"])


def _safe(text: str) -> str:
    """Escape text, and leave out the control characters that XML has no place for."""
    return escape("".join(c if c.isprintable() or c == " " else "\ufffd" for c in text))
