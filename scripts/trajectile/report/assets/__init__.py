"""The viewer's page, put together of its parts."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

SCRIPTS = ("data.js", "rows.js", "elements.js", "list.js", "turns.js", "reader.js", "main.js")


def viewer_page() -> str:
    """Return viewer.html with its style and its script inside; it is the same for every run.

    Its policy lets the browser run this script and the data files, nothing else.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(map(_text, SCRIPTS)) + "\n})();\n"
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = _text("viewer.html").replace("{digest}", digest).replace("/* style */", _text("viewer.css"))
    return page.replace("/* script */", script)


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
