"""Tool web_extract against a local site over HTTP; what it may not reach is in test_addresses.py."""

import asyncio
import gzip
import json
import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from living_processes import processes_below
from tool_contexts import tool_context
from trajectile.configuration.settings import load_settings
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.addresses import AddressRefused
from trajectile.tools.calling import call
from trajectile.tools.fetching import FetchError, fetch
from trajectile.tools.tool import States, ToolContext, is_failure
from trajectile.tools.web import web_extract
from trajectile.tools.web.workers import PROGRAM, Readers
from web_site import Drip, Site, answer, redirect

CANARY = "tvly-canary-77f1"
OWLS = "".join(
    f"<p>Owls hunt at night, said number {number}; <a href='/more'>see there</a>.</p>" for number in range(9)
)
ARTICLE = f"<html><head><title>On &amp; owls</title></head><body><nav>Menu</nav><article><h1>Owls</h1>{OWLS}</article>"


class Web:
    """The tool in one event loop, with one process' connections and workers."""

    def __init__(self) -> None:
        self.runner, self.shared = asyncio.Runner(), States()

    def context(self, **settings: Any) -> ToolContext:
        # no web tool uses the sandbox, so it is not started
        given = {"web_allow_private": True, "web_timeout": 20, **settings}
        context = tool_context(LocalSandbox(Path(), "none", output_limit=1000), **given)
        context.shared = self.shared
        return context

    def raw(self, urls: Any, **settings: Any) -> str:
        return self.runner.run(call(web_extract.TOOL, self.context(**settings), {"urls": urls}))

    def page(self, url: str, **settings: Any) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(self.raw([url], **settings))["results"][0]
        return page

    def error(self, url: str, **settings: Any) -> str:
        raw = self.raw([url], **settings)
        assert is_failure(raw) and json.loads(raw)["error"] == "no page could be read"
        return str(json.loads(raw)["results"][0]["error"])


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.runner.run(web.shared.close())
    web.runner.close()
    assert not workers()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def workers() -> list[psutil.Process]:
    return processes_below(os.getpid(), str(PROGRAM))


def test_a_page_becomes_markdown(web: Web, site: Site) -> None:
    site.answers["/owls"] = answer(ARTICLE)
    page = web.page(site.url("/owls"))
    assert (page["url"], page["title"], page["error"]) == (site.url("/owls"), "On & owls", None)
    assert page["content"].startswith("# Owls\n\nOwls hunt at night, said number 0; [see there](")
    assert site.url("/more") in page["content"] and "Menu" not in page["content"]
    headers = site.asked[-1].headers
    assert headers["user-agent"].startswith("Trajectile/") and headers["accept"].startswith("text/html")
    assert "cookie" not in headers


def test_several_pages_and_what_failed_among_them(web: Web, site: Site) -> None:
    site.answers["/owls"] = answer(ARTICLE)
    raw = web.raw([site.url("/owls"), site.url("/none"), "ftp://a/", site.url("/owls")])
    assert not is_failure(raw)
    first, second, third, fourth = json.loads(raw)["results"]
    assert first == fourth and first["error"] is None
    assert (second["content"], second["error"]) == ("", "the server answered HTTP 404")
    assert third["error"] == "not an http or https URL: ftp://a/"


def test_a_page_with_little_text_is_shown_with_its_links(web: Web, site: Site) -> None:
    page = "<html><title>Hub</title><body><nav><a href='/a'>First</a> <a href='b#c'>Second</a><a href='#'>top</a></nav>"
    site.answers["/hub/"] = answer(page)
    assert f"- [First]({site.url('/a')})\n- [Second]({site.url('/hub/b#c')})" in web.page(site.url("/hub/"))["content"]


def pdf(*pages: str) -> bytes:
    """A PDF file with a line of text on each page."""
    bodies = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    bodies.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    bodies.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        bodies.append(f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * number} 0 R {resources} >>")
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        bodies.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    data, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"trailer << /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return (data + f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}{end}").encode()


def test_pdf_files(web: Web, site: Site) -> None:
    site.answers["/a.pdf"] = answer(pdf("On owls", "Second page"), "application/pdf")
    site.answers["/b"] = answer(pdf("Untold kind"), "application/octet-stream")
    site.answers["/scan.pdf"] = answer(pdf("", ""), "application/pdf")
    site.answers["/bad.pdf"] = answer(b"%PDF-1.4\n" + bytes(range(256)) * 9, "application/pdf")
    assert web.page(site.url("/a.pdf"))["content"] == "On owls\n\nSecond page"
    assert web.page(site.url("/b"))["content"] == "Untold kind"
    assert web.error(site.url("/scan.pdf")) == "a PDF file of 2 pages without text; they may be pictures"
    assert web.error(site.url("/bad.pdf")).startswith("cannot be read: ")


TEXTS = [
    ("text/plain; charset=utf-8", "Eulen – совы".encode(), "Eulen – совы"),
    ("text/plain; charset=windows-1251", "совы".encode("cp1251"), "совы"),
    ("text/plain; charset=no-such", b"plain", "plain"),
    ("text/plain; charset=zip", b"plain", "plain"),
    ("application/json", b'{"a": 1}', '{"a": 1}'),
    ("application/ld+json", b"[]", "[]"),
    ("", b"no type at all", "no type at all"),
    ("text/plain; charset=utf-8", b"\xff\x00\xed\xa0\x80\x1b[1m!", "\ufffd\ufffd\ufffd\ufffd\ufffd!"),
    ("text/html", "<meta charset='cp1251'><p>совы</p><p>ночью</p>".encode("cp1251"), "совы"),
]


@pytest.mark.parametrize(
    ("kind", "body", "text"), TEXTS, ids=[f"{kind}-{number}" for number, (kind, *_) in enumerate(TEXTS)]
)
def test_text_of_other_kinds_and_charsets(web: Web, site: Site, kind: str, body: bytes, text: str) -> None:
    site.answers["/text"] = answer(body, kind)
    content = web.page(site.url("/text"))["content"]
    assert content == text or (kind == "text/html" and content.startswith(text))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(ARTICLE.encode())),
        ("deflate", zlib.compress(ARTICLE.encode())),
        ("deflate", zlib.compress(ARTICLE.encode())[2:-4]),
    ],
    ids=["gzip", "deflate", "bare deflate"],
)
def test_packed_pages(web: Web, site: Site, encoding: str, body: bytes) -> None:
    site.answers["/packed"] = answer(body, Content_Encoding=encoding)
    assert web.page(site.url("/packed"))["title"] == "On & owls"


def test_redirects_are_followed_and_are_not_endless(web: Web, site: Site) -> None:
    site.answers["/there"] = answer("<p>arrived</p><p>here</p>")
    for path, target in {"/r1": "/r2", "/r2": site.url("/r3#part"), "/r3": "../there", "/loop": "/loop"}.items():
        site.answers[path] = redirect(target)
    site.answers["/bad"] = redirect("http://[nowhere/")
    site.answers["/script"] = redirect("javascript:alert(1)")
    site.answers["/metadata"] = redirect("http://169.254.169.254/latest/")
    assert web.page(site.url("/r1"))["content"].startswith("arrived")
    assert web.error(site.url("/loop")) == "more than 8 redirects"
    assert "not an http or https URL" in web.error(site.url("/script"))
    assert web.error(site.url("/bad"))
    assert "cloud metadata" in web.error(site.url("/metadata"))


PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
BOMB = gzip.compress(bytes(300 << 20), 1)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
FAILURES = {
    "forbidden": (answer("no", status="403 Forbidden"), "the server answered HTTP 403"),
    "empty": (answer(" \n"), "with nothing in it"),
    "no content": (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "HTTP 204 with nothing in it"),
    "picture": (answer(PNG, "image/png"), "image/png, 108 bytes: not a page, text or PDF file"),
    "bytes": (answer(PNG, ""), "application/octet-stream, 108 bytes"),
    "brotli": (answer(b"x", Content_Encoding="br"), "packed as br"),
    "damaged": (answer(b"x" * 99, Content_Encoding="gzip"), "cannot be unpacked"),
    "large": (answer(b"x" * 2_000_001, "text/plain"), "larger than 2000000 bytes"),
    "bomb": (answer(BOMB, Content_Encoding="gzip"), "larger than 2000000 bytes"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no usable answer"),
    "cut off": (HEAD + b"Content-Length: 1000\r\n\r\nhalf", "no usable answer"),
    "bad chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no usable answer"),
    "long header": (HEAD + b"X: " + b"x" * 100_000 + b"\r\n\r\n", "no usable answer"),
    "odd target": (b"HTTP/1.1 302 Found\r\nLocation: http://\xff\xfe/\r\nContent-Length: 0\r\n\r\n", ""),
    "nothing": (b"", "no usable answer"),
    "silent": (None, "no answer within 1 s"),
    "drip": (Drip(HEAD + b"\r\n", b"<p>x</p>", 0.2), "no answer within 1 s"),
    "flood": (Drip(HEAD + b"\r\n", b"x" * 500_000, 0), "larger than 2000000 bytes"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_cannot_be_read_is_told_in_a_few_words(web: Web, site: Site, name: str) -> None:
    site.answers["/bad"], message = FAILURES[name]
    assert message in web.error(site.url("/bad"), web_timeout=1, web_max_bytes=2_000_000)


def test_where_nobody_listens(web: Web) -> None:
    with Site() as gone:
        pass
    assert web.error(gone.url()).startswith("cannot connect: ")
    assert web.error("http://no-such-host.invalid/").startswith("cannot connect: ")


def test_passing_trouble_is_waited_out_briefly(web: Web, site: Site) -> None:
    busy = answer("later", status="429 Too Many Requests", Retry_After="0")
    broken = answer("oops", status="503 Service Unavailable")
    site.answers["/busy"] = [busy, broken, answer("<p>at</p><p>last</p>")]
    assert web.page(site.url("/busy"))["content"].startswith("at")
    site.answers["/busy"] = answer("later", status="429 Too Many Requests", Retry_After="3600")
    before = len(site.asked)
    assert web.error(site.url("/busy")) == "the server answered HTTP 429"
    assert len(site.asked) == before + 1, "nobody waits for an hour"


@pytest.mark.parametrize("urls", [[], ["http://a/"] * 6, "http://a/", [1], [""], ["http://a/" + "a" * 2000], {}])
def test_wrong_arguments(web: Web, urls: Any) -> None:
    raw = web.raw(urls)
    assert "Wrong arguments for web_extract" in json.loads(raw)["error"] and "urls (array, required)" in raw


def test_texts_share_the_room_there_is(web: Web, site: Site) -> None:
    site.answers["/short"] = answer("short", "text/plain")
    site.answers["/long"] = answer("HEAD\u2028\n" + '\u00e9"\\' * 40_000 + "TAIL", "text/plain; charset=utf-8")
    raw = web.raw([site.url("/short"), *[site.url("/long")] * 4], output_limit=10_000)
    assert 6_000 < len(raw.encode()) <= 10_000
    short, *long = json.loads(raw)["results"]
    assert short["content"] == "short"
    assert all(page["content"].startswith("HEAD") and page["content"].endswith("TAIL") for page in long)
    assert all("bytes cut" in page["content"] for page in long)
    assert len(web.raw([site.url("/long")] * 5, output_limit=1000)) <= 1000


def test_hostile_markup_ends_nothing(web: Web, site: Site) -> None:
    """Deep nesting, unclosed tags, NUL and lone surrogates as character references, a script as a title."""
    deep = "<div>" * 50_000 + "<p>deep</p><p>end</p>"
    site.answers["/deep"] = answer(deep)
    site.answers["/odd"] = answer(
        "<title>\ud800<b></title><p>a&#0;b&#xd800;c<p>\x00\x1b[2J</p><p>end".encode("utf-8", "surrogatepass")
    )
    site.answers["/owls"] = answer(ARTICLE)
    raw = web.raw([site.url("/deep"), site.url("/odd"), site.url("/owls")])
    assert json.loads(raw)["results"][2]["title"] == "On & owls"
    assert "\x1b" not in json.loads(raw)["results"][1]["content"]
    raw.encode()


def break_all(others: list[psutil.Process]) -> None:
    for each in workers():
        if each not in others:
            each.send_signal(signal.SIGSEGV)


def test_a_reader_that_hangs_is_replaced_and_none_has_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"url": "http://a/", "media_type": "text/html", "charset": ""}

    async def run(readers: Readers) -> None:
        # it cannot even import what it reads with in that time
        with pytest.raises(ValueError, match=r"takes longer than 0\.01 s"):
            await readers.ask(task, ARTICLE.encode(), seconds=0.01)
        both = asyncio.gather(*(readers.ask(task, ARTICLE.encode(), seconds=20) for _ in range(4)))
        assert {answer["title"] for answer in await both} == {"On & owls"}
        started = [each for each in workers() if each not in before]
        assert len(started) == 2
        assert all("PATH" in each.environ() and CANARY not in str(each.environ()) for each in started)
        # a call that is given up leaves no process that still answers it
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await readers.ask(task, ARTICLE.encode() * 200, seconds=20)
        assert (await readers.ask(task | {"media_type": "text/plain"}, b"mine", seconds=20))["text"] == "mine"
        # what breaks at work is told; what breaks while it waits is replaced
        busy = asyncio.create_task(readers.ask(task, ARTICLE.encode() * 2000, seconds=20))
        await asyncio.sleep(0.1)
        break_all(before)
        with pytest.raises(ValueError, match="the program that reads it ended with -11"):
            await busy
        assert (await readers.ask(task, ARTICLE.encode(), seconds=20))["title"] == "On & owls"
        break_all(before)
        await asyncio.sleep(0.3)
        assert (await readers.ask(task, ARTICLE.encode(), seconds=20))["title"] == "On & owls"

    async def closing() -> None:
        readers = Readers()
        try:
            await run(readers)
        finally:
            await readers.close()

    before = workers()
    monkeypatch.setenv("TAVILY_API_KEY", CANARY)
    asyncio.run(closing())
    assert workers() == before


def test_fetch_is_bounded_for_other_tools_too(web: Web, site: Site) -> None:
    site.answers["/image"], context = answer(PNG, "Image/PNG; q=1"), web.context()
    page = web.runner.run(fetch(context, site.url("/image"), accept="image/*"))
    assert (page.status, page.media_type, page.content) == (200, "image/png", PNG)
    assert site.asked[-1].headers["accept"] == "image/*"
    with pytest.raises(FetchError, match="larger than 50 bytes"):
        web.runner.run(fetch(context, site.url("/image"), max_bytes=50))
    site.answers["/silent"] = None
    with pytest.raises(FetchError, match=r"no answer within 0\.2 s"):
        web.runner.run(fetch(context, site.url("/silent"), timeout_s=0.2))


def test_by_default_this_machine_is_out_of_reach(site: Site) -> None:
    async def run() -> None:
        context = tool_context(LocalSandbox(Path(), "none", output_limit=1000))
        before = len(site.asked)
        with pytest.raises(AddressRefused, match="web_allow_private"):
            await fetch(context, site.url("/owls"))
        assert len(site.asked) == before
        await context.shared.close()

    asyncio.run(run())


def test_it_is_ready_where_its_packages_are() -> None:
    assert web_extract.TOOL.requirement(load_settings({})) == ""
