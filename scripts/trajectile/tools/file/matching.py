"""Find the text a model means, though it copied spaces, indentation or quotation marks wrongly, and replace it."""

import re
from collections.abc import Callable

Span = tuple[int, int]
PLAIN = str.maketrans("‘’‚‛“”„‟‐‑‒–—−\u00a0\u2009\u202f", "''''\"\"\"\"------   ")
INDENT = re.compile(r"[ \t]*")


def replace(text: str, old: str, new: str, *, everywhere: bool) -> str:
    """`text` with `old` replaced by `new`; ValueError where `old` is not found, or more than once.

    Exact occurrences come first; then, each only where the ones before found nothing: plain quotes, dashes and spaces
    for typographic ones, ends of lines trimmed, lines trimmed on both sides, inner spaces collapsed. Text whose lines
    end in CR LF keeps that.
    """
    if not old:
        raise ValueError("old_string is empty")
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    if crlf:
        text, old, new = (each.replace("\r\n", "\n") for each in (text, old, new))
    if old == new:
        raise ValueError("old_string and new_string are the same")
    spans = find(text, old)
    if not spans:
        raise ValueError("old_string was not found")
    if len(spans) > 1 and not everywhere:
        raise ValueError(f"old_string occurs {len(spans)} times: add lines around it, or set replace_all")
    text = replaced(text, spans, lambda found: reindent(new, old, found))
    return text.replace("\n", "\r\n") if crlf else text


def replaced(text: str, spans: list[Span], replacement: Callable[[str], str]) -> str:
    """`text` with each span, which follow one another, as its replacement."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], replacement(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def find(text: str, old: str) -> list[Span]:
    """Where `old` is meant in `text`, by the first way of looking that finds anything."""
    ways: list[Callable[[], list[Span]]] = [
        lambda: occurrences(text, old),
        lambda: occurrences(text.translate(PLAIN), old.translate(PLAIN)),
        lambda: line_runs(text, old, str.rstrip),
        lambda: line_runs(text, old, str.strip),
        lambda: line_runs(text, old, lambda line: " ".join(line.translate(PLAIN).split())),
    ]
    return next((spans for way in ways if (spans := way())), [])


def occurrences(text: str, old: str) -> list[Span]:
    return [(found.start(), found.end()) for found in re.finditer(re.escape(old), text)]


def line_runs(text: str, old: str, normal: Callable[[str], str]) -> list[Span]:
    """Runs of whole lines that equal the lines of `old` once both are made `normal`; they do not overlap."""
    wanted = [normal(line) for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return []
    lines = text.split("\n")
    normals = [normal(line) for line in lines]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans, at = [], 0
    while at + len(wanted) <= len(lines):
        if normals[at] == wanted[0] and normals[at : at + len(wanted)] == wanted:
            # A newline at the end of `old` is the one after the last line, where there is one.
            end = starts[at + len(wanted)] - (0 if old.endswith("\n") else 1)
            spans.append((starts[at], min(end, len(text))))
            at += len(wanted)
        else:
            at += 1
    return spans


def reindent(new: str, old: str, found: str) -> str:
    """`new`, moved by as much as the found text is indented otherwise than `old`."""
    ours, theirs = indent_of(old), indent_of(found)
    if ours == theirs or old == found:
        return new
    lines = new.split("\n")
    moved = [theirs + line[len(ours) :] if line.strip() and line.startswith(ours) else line for line in lines]
    return "\n".join(moved)


def indent_of(text: str) -> str:
    """The indentation of the first line that is not blank."""
    line = next((line for line in text.split("\n") if line.strip()), "")
    match = INDENT.match(line)
    return match[0] if match else ""
