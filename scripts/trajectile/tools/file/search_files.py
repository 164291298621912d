"""Tool `search_files`: by grep and find inside the sandbox."""

import re
import shlex

from trajectile.sandbox.output import Whole, to_text
from trajectile.sandbox.shell import quote_path
from trajectile.tools.tool import Arguments, Tool, ToolContext, error, parameters

RAW_LIMIT_BYTES = 4 << 20
LINE_LIMIT = 300
DEFAULT_LIMIT = 50
BAD_PATTERN, NO_PATH = 2, 3
# Spellings that grep knows only with -P.
PERL = re.compile(r"\\[dDhHKRQ]|\(\?|[*+?}]\?")
RECORD = re.compile(rb"([^\0]*)\0(\d+):(.*)\n")


async def search_files(context: ToolContext, arguments: Arguments) -> str:
    """Result: a line for each match, `path:line:text`, or for each file, sorted by path."""
    limit, offset = int(arguments.get("limit", DEFAULT_LIMIT)), int(arguments.get("offset", 0))
    path, content = arguments.get("path", "."), arguments.get("target", "content") == "content"
    script = grep(path, arguments) if content else find(path, arguments["pattern"])
    raw = Whole(RAW_LIMIT_BYTES)
    result = await context.sandbox.exec(script, timeout_s=context.settings.command_timeout, output=raw, persist=False)
    if result.timed_out:
        return error(f"no end after {context.settings.command_timeout:g} s")
    if result.exit_code == NO_PATH:
        return error(f"no such file or directory: {path}")
    if result.exit_code == BAD_PATTERN:
        return error(to_text(result.output).strip())
    matches = content_lines(result.output) if content else file_lines(result.output)
    return page(matches, offset, limit, context.settings.output_limit, raw.overflow)


def grep(path: str, arguments: Arguments) -> str:
    """Names end in NUL, so that no name can look like a match; `sort` makes the order the same everywhere."""
    pattern = shlex.quote(arguments["pattern"])
    syntax = "-P" if PERL.search(arguments["pattern"]) else "-E"
    only = f"-name {shlex.quote(arguments['file_glob'])} " if arguments.get("file_glob") else ""
    return (
        f"{_checked(path)}grep {syntax} -e {pattern} /dev/null; [ $? -le 1 ] || exit {BAD_PATTERN}; "
        f"matches() {{ if grep -IZ -e x /dev/null; [ $? -le 1 ]; then {_gnu(syntax, pattern)}; "
        f"else {_other(syntax, pattern)}; fi; }} 2>/dev/null; "
        f"{_walk(path)} {only}-print0 2>/dev/null | LC_ALL=C sort -z | matches; exit 0"
    )


def _gnu(syntax: str, pattern: str) -> str:
    return f"xargs -0 -r grep -HnIsZ {syntax} -e {pattern} --"


def _other(syntax: str, pattern: str) -> str:
    """busybox's grep cannot end a name in NUL."""
    lines = f'grep -n {syntax} -e {pattern} -- "$file" | while IFS= read -r line'
    each = f'for file; do {lines}; do printf "%s\\0%s\\n" "$file" "$line"; done; done'
    return f"xargs -0 -r sh -c {shlex.quote(each)} sh"


def find(path: str, pattern: str) -> str:
    test = f"-path {shlex.quote('*/' + pattern.lstrip('/'))}" if "/" in pattern else f"-name {shlex.quote(pattern)}"
    return f"{_checked(path)}{_walk(path)} {test} -print0 2>/dev/null | LC_ALL=C sort -z; exit 0"


def _checked(path: str) -> str:
    return f"[ -e {quote_path(path)} ] || exit {NO_PATH}; "


def _walk(path: str) -> str:
    return f"find {quote_path(path)} -name .git -prune -o -type f"


def content_lines(raw: bytes) -> list[str]:
    return [f"{shown_name(name)}:{int(number)}:{cut(to_text(line))}" for name, number, line in RECORD.findall(raw)]


def file_lines(raw: bytes) -> list[str]:
    return [shown_name(name) for name in raw.split(b"\0")[:-1]]


def shown_name(name: bytes) -> str:
    return to_text(name.removeprefix(b"./")).replace("\n", "\\n")


def cut(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]} [… {len(line) - LINE_LIMIT} more]"


def page(matches: list[str], offset: int, limit: int, limit_bytes: int, more: bool) -> str:
    """Lines from `offset`, at most `limit` and as many as fit, and a note on the rest."""
    shown: list[str] = []
    for match in matches[offset : offset + limit]:
        limit_bytes -= len(match.encode()) + 1
        if shown and limit_bytes < 0:
            break
        shown.append(match)
    end, total = offset + len(shown), f"{len(matches)}{' or more' if more else ''}"
    if not shown:
        return f"[no matches from {offset} on, {total} in all]" if matches else "[no matches]"
    return "\n".join(shown if end == len(matches) else [*shown, f"[{end} of {total}; go on with offset={end}]"])


TOOL = Tool(
    "search_files",
    "file",
    "Search file contents for a regular expression, or find files by name.",
    parameters(
        ["pattern"],
        pattern={"type": "string", "description": "regular expression; for target files a glob"},
        target={"type": "string", "enum": ["content", "files"], "description": "content if not given"},
        path={"type": "string", "description": "where to look"},
        file_glob={"type": "string", "description": "only files with such names, like *.py"},
        limit={"type": "integer", "minimum": 1},
        offset={"type": "integer", "minimum": 0},
    ),
    search_files,
)
