"""A process that takes apart what strangers wrote: pages, PDF files, the result pages of search engines.

A program on its own, run as `python -P worker.py`: it may hang, crash or eat memory without harm to the shard, and it
has no key in its environment. A message is its length in four bytes and a JSON line; a page's bytes follow the line.
"""

import codecs
import io
import json
import re
import resource
import signal
import struct
import sys
from typing import Any

MEMORY_BYTES = 2 << 30
TEXT_CHARACTERS = 4_000_000
TITLE_CHARACTERS = 300
LINKS = 100
POOR_CHARACTERS = 200
META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
TEXT_TYPES = re.compile(r"text/|application/([a-z0-9.+-]*[+])?(json|xml|javascript|yaml|x-yaml|toml|x-ndjson|csv)$")

Answer = dict[str, Any]


def main() -> None:
    """Answer one message after another until there are no more."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while length := sys.stdin.buffer.read(4):
        line, _, content = sys.stdin.buffer.read(struct.unpack(">I", length)[0]).partition(b"\n")
        task = json.loads(line)
        # the default action ends the process, whatever it is caught in
        signal.setitimer(signal.ITIMER_REAL, task["seconds"])
        answer = attempt(task, content)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(answer)


def send(answer: Answer) -> None:
    data = json.dumps(answer).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)
    sys.stdout.buffer.flush()


def attempt(task: Answer, content: bytes) -> Answer:
    try:
        return search(**task["search"]) if "search" in task else read(task, content)
    except MemoryError:
        return {"error": "takes too much memory to read"}
    except Exception as error:
        return {"error": f"cannot be read: {type(error).__name__}: {str(error)[:300]}"}


def search(query: str, limit: int, seconds: float) -> Answer:
    """Ask the search engines that ddgs knows."""
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        return {"results": DDGS(timeout=max(1, int(seconds))).text(query, max_results=limit)}
    except DDGSException as error:
        nothing = str(error) == "No results found."
        return {"results": []} if nothing else {"error": str(error)}


def read(task: Answer, content: bytes) -> Answer:
    """Title and text of a page; `error` where it holds none."""
    kind, start = task["media_type"], content[:1024].lstrip()
    if kind == "application/pdf" or start.startswith(b"%PDF-"):
        return read_pdf(content)
    if "html" in kind or (kind in ("", "application/octet-stream") and start[:1] == b"<"):
        return read_html(decoded(content, task["charset"]), task["url"])
    if TEXT_TYPES.match(kind) or (kind in ("", "application/octet-stream") and b"\0" not in content):
        return {"title": "", "text": decoded(content, task["charset"])[:TEXT_CHARACTERS]}
    return {"error": f"{kind or 'bytes of no known type'}, {len(content)} bytes: not a page, text or PDF file"}


def decoded(content: bytes, charset: str) -> str:
    """Text by the byte order mark, the server's word, the page's own word, or a guess."""
    meta = META_CHARSET.search(content[:4096])
    mark = "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else ""
    for name in (mark, charset, meta[1].decode() if meta else ""):
        try:
            if name and codecs.lookup(name)._is_text_encoding:
                return content.decode(name, "replace")
        except (LookupError, ValueError):
            continue
    from trafilatura.utils import decode_file

    return decode_file(content)


def read_html(page: str, url: str) -> Answer:
    """The main text as markdown; the whole page's text and links where there is hardly any main text."""
    from trafilatura import extract, html2txt
    from trafilatura.utils import load_html

    tree = load_html(page)
    if tree is None:
        return {"title": "", "text": page[:TEXT_CHARACTERS]}
    title = " ".join((tree.findtext(".//title") or "").split())[:TITLE_CHARACTERS]
    text = extract(tree, url=url, output_format="markdown", include_links=True, include_formatting=True) or ""
    if len(text) < POOR_CHARACTERS:
        whole = html2txt(tree)
        text = "\n\n".join(part for part in (text if len(text) > len(whole) else whole, links(tree, url)) if part)
    return {"title": title, "text": text[:TEXT_CHARACTERS]} if text else {"error": "a page without text"}


def links(tree: Any, url: str) -> str:
    """The links of a page, a line each."""
    from urllib.parse import urljoin

    found: dict[str, str] = {}
    for link in tree.iterfind(".//a[@href]"):
        name, target = " ".join(link.text_content().split())[:200], link.get("href").strip()
        if name and not target.startswith(("#", "javascript:", "data:")):
            try:
                found.setdefault(urljoin(url, target), name)
            except ValueError:
                continue
    return "\n".join(f"- [{name}]({target})" for target, name in list(found.items())[:LINKS])


def read_pdf(content: bytes) -> Answer:
    """The text of a PDF file, its pages one after the other."""
    from pypdf import PdfReader

    reader, texts, length = PdfReader(io.BytesIO(content)), [], 0
    if reader.is_encrypted and not reader.decrypt(""):
        return {"error": "a PDF file that needs a password"}
    for page in reader.pages:
        texts.append(page.extract_text().strip())
        length += len(texts[-1])
        if length > TEXT_CHARACTERS:
            break
    title = str(reader.metadata.title or "")[:TITLE_CHARACTERS] if reader.metadata else ""
    if not length:
        return {"error": f"a PDF file of {len(texts)} pages without text; they may be pictures"}
    return {"title": title, "text": "\n\n".join(texts)[:TEXT_CHARACTERS]}


if __name__ == "__main__":
    main()
