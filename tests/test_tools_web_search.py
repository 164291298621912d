"""Tool web_search: each provider against a stand-in that answers over HTTP as the provider documents."""

import asyncio
import json
import logging
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tool_contexts import tool_context
from trajectile.configuration.settings import load_settings
from trajectile.errors import UserError
from trajectile.sandbox.local.sandbox import LocalSandbox
from trajectile.tools.calling import call
from trajectile.tools.tool import is_failure
from trajectile.tools.web.providers.choice import choose
from trajectile.tools.web.web_search import TOOL
from web_site import Asked, Site, answer, redirect

KEY = "key-canary-50ba"
VARIABLES = {
    "tavily": "TAVILY_API_KEY",
    "exa": "EXA_API_KEY",
    "firecrawl": "FIRECRAWL_API_KEY",
    "brave": "BRAVE_API_KEY",
}
OWLS = [("Owls", "https://owls.example/", "They hunt at night."), ("More owls", "https://more.example/?a=1&b", "Many.")]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


def search(arguments: dict[str, Any], **settings: Any) -> str:
    async def run() -> str:
        # the guard stays up: a provider that the user named may be anywhere
        context = tool_context(LocalSandbox(Path(), "none", output_limit=1000), **settings)
        try:
            return await call(TOOL, context, arguments)
        finally:
            await context.shared.close()

    return asyncio.run(run())


def results(raw: str) -> list[tuple[str, str, str]]:
    assert not is_failure(raw), raw
    web = json.loads(raw)["data"]["web"]
    assert [each["position"] for each in web] == list(range(1, len(web) + 1))
    return [(each["title"], each["url"], each["description"]) for each in web]


def objects(title: str, url: str, description: str, **more: Any) -> list[dict[str, Any]]:
    return [{title: a, url: b, description: c, **more} for a, b, c in OWLS]


ANSWERS: dict[str, tuple[str, Any]] = {
    "tavily": (
        "/search",
        {"query": "q", "answer": None, "images": [], "results": objects("title", "url", "content", score=0.9)},
    ),
    "exa": (
        "/search",
        {
            "requestId": "b5",
            "resolvedSearchType": "neural",
            "results": [
                {"id": url, "title": title, "url": url, "publishedDate": None, "highlights": [text]}
                for title, url, text in OWLS
            ],
        },
    ),
    "firecrawl": ("/v2/search", {"success": True, "data": {"web": objects("title", "url", "description")}}),
    "brave": (
        "/res/v1/web/search",
        {"type": "search", "query": {}, "web": {"type": "search", "results": objects("title", "url", "description")}},
    ),
    "searxng": (
        "/search",
        {"query": "q", "number_of_results": 0, "results": objects("title", "url", "content", engine="x", score=1.0)},
    ),
}


def place(name: str, site: Site) -> dict[str, Any]:
    return {"searxng_url": site.url()} if name == "searxng" else {"web_provider": name, "web_base_url": site.url()}


def sent(asked: Asked) -> tuple[str, Any]:
    """The query and the number of results of a request, as the provider reads them."""
    if asked.method == "GET":
        given = parse_qs(urlsplit(asked.path).query)
        return given["q"][0], int(given.get("count", ["7"])[0])
    body = json.loads(asked.body)
    return body["query"], body.get("max_results", body.get("numResults", body.get("limit")))


AUTHORISED = {
    "tavily": ("authorization", f"Bearer {KEY}"),
    "exa": ("x-api-key", KEY),
    "firecrawl": ("authorization", f"Bearer {KEY}"),
    "brave": ("x-subscription-token", KEY),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_provider_is_asked_and_understood(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, body = ANSWERS[name]
    if name in VARIABLES:
        monkeypatch.setenv(VARIABLES[name], KEY)
    with Site() as site:
        site.answers[path] = answer(json.dumps(body), "application/json")
        raw = search({"query": " owls  at\nnight ü", "limit": 7}, **place(name, site))
        assert results(raw) == OWLS
        (asked,) = site.asked
    assert sent(asked) == ("owls at night ü", 7)
    header, value = AUTHORISED.get(name, ("accept", "application/json"))
    assert asked.headers[header] == value
    if name == "searxng":
        assert "format=json" in asked.path


REFUSALS = [
    ("401 Unauthorized", {"detail": {"error": "Unauthorized: missing or invalid API key."}}, "check TAVILY_API_KEY"),
    (
        "432 Plan",
        {"detail": {"error": "This request exceeds your plan's set usage limit."}},
        "no credit left (HTTP 432",
    ),
    ("400 Bad Request", {"detail": {"error": "Query is too long."}}, "could not search (HTTP 400: Query is too long.)"),
    ("418 Teapot", f"echo of {KEY}", "could not search (HTTP 418: echo of ***)"),
    ("302 Found", {}, "could not search (HTTP 302)"),
]


@pytest.mark.parametrize(("status", "body", "message"), REFUSALS, ids=[status for status, *_ in REFUSALS])
def test_a_refusal_is_one_sentence_without_the_key(
    status: str, body: Any, message: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    with Site() as site, caplog.at_level(logging.WARNING):
        site.answers["/search"] = answer(
            json.dumps({"error": body} if isinstance(body, str) else body), "application/json", status=status
        )
        if status.startswith("302"):
            site.answers["/search"] = redirect(site.url("/elsewhere"))
        raw = search({"query": "owls"}, **place("tavily", site))
        assert len(site.asked) == 1, "a refusal is not asked again, and the key is not carried elsewhere"
    assert message in json.loads(raw)["error"] and "\n" not in json.loads(raw)["error"]
    assert message in caplog.text and KEY not in raw + caplog.text


def test_searxng_without_json_says_what_to_change() -> None:
    with Site() as site:
        site.answers["/search"] = answer("<h1>Forbidden</h1>", status="403 Forbidden")
        assert "add json to search.formats in its settings.yml" in search({"query": "owls"}, searxng_url=site.url())
        site.answers["/search"] = answer("<h1>hello</h1>")
        assert "something else than results; check searxng_url" in search({"query": "owls"}, searxng_url=site.url())
        site.answers["/search"] = answer("[" * 100_000)
        assert "something else than results; check searxng_url" in search({"query": "owls"}, searxng_url=site.url())
    assert "searxng cannot be reached at 127.0.0.1" in search({"query": "owls"}, searxng_url=site.url())


def test_a_busy_provider_is_asked_again_briefly() -> None:
    busy = answer("{}", status="429 Too Many Requests", Retry_After="0")
    good = answer(json.dumps(ANSWERS["searxng"][1]), "application/json")
    with Site() as site:
        site.answers["/search"] = [busy, answer("", status="500 Internal Server Error"), good]
        assert results(search({"query": "owls"}, searxng_url=site.url())) == OWLS
        site.answers["/search"] = busy
        before = len(site.asked)
        assert "limits the rate (HTTP 429); lower concurrency" in search({"query": "owls"}, searxng_url=site.url())
        assert len(site.asked) == before + 3


def test_a_silent_provider_is_given_up() -> None:
    with Site() as site:
        site.answers["/search"] = None
        raw = search({"query": "owls"}, searxng_url=site.url(), web_timeout=0.3)
    assert json.loads(raw) == {"error": "searxng did not answer within 0.3 s (web_timeout)"}


ODD = [
    {"results": None},
    {"results": [None, 1, "x", {}, {"url": 1, "title": "t"}, {"title": "no url"}]},
    {},
]


@pytest.mark.parametrize("body", ODD, ids=repr)
def test_odd_answers_are_no_results(body: Any) -> None:
    with Site() as site:
        site.answers["/search"] = answer(json.dumps(body), "application/json")
        assert json.loads(search({"query": "owls"}, searxng_url=site.url())) == {"success": True, "data": {"web": []}}


def test_long_and_odd_texts_stay_within_bounds() -> None:
    many = [{"title": "\ud800" * 900, "url": f"https://a.example/{n}", "content": 'é"\0' * 900} for n in range(50)]
    many.append({"title": None, "url": "https://b.example/", "content": None})
    with Site() as site:
        site.answers["/search"] = answer(json.dumps({"results": many}), "application/json")
        raw = search({"query": "owls", "limit": 20}, searxng_url=site.url(), output_limit=20_000)
        assert len(raw.encode()) <= 20_000 and len(json.loads(raw)["data"]["web"]) == 20
        assert len(results(search({"query": "owls"}, searxng_url=site.url()))) == 5, "five unless more are asked for"
        site.answers["/search"] = answer(b" " * (9 << 20), "application/json")
        assert "(larger than 8388608 bytes); check searxng_url" in search({"query": "owls"}, searxng_url=site.url())


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": 1}, {"query": "a", "limit": 0}, {"q": "a"}])
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    assert "Wrong arguments for web_search" in json.loads(search(arguments))["error"]


def test_a_query_of_blanks() -> None:
    assert json.loads(search({"query": " \n"})) == {"error": "the query is empty"}


def test_auto_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(**settings: Any) -> str:
        return choose(load_settings(settings)).name

    assert chosen() == "ddgs"
    for name in ("brave", "firecrawl", "exa", "tavily"):
        monkeypatch.setenv(VARIABLES[name], KEY)
        assert chosen() == name
    assert chosen(searxng_url="http://searx.example") == "searxng"
    assert chosen(web_provider="ddgs") == "ddgs"


@pytest.mark.parametrize("name", [*VARIABLES, "searxng"])
def test_what_is_missing_is_said_before_a_run(name: str) -> None:
    lacks = TOOL.requirement(load_settings({"web_provider": name}))
    assert lacks.startswith(f"web_provider: {name} needs ")
    assert VARIABLES.get(name, "searxng_url") in lacks


@pytest.mark.parametrize("provider", ["auto", "exa"])
def test_a_key_that_cannot_be_one_is_said_before_a_run(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    monkeypatch.setenv("EXA_API_KEY", f"{KEY}\nexport B=1")
    lacks = TOOL.requirement(load_settings({"web_provider": provider}))
    assert lacks.startswith("EXA_API_KEY holds no key: its character 16 is a line break") and KEY not in lacks


def test_the_default_needs_nothing_more() -> None:
    assert TOOL.requirement(load_settings({})) == ""
    assert TOOL.requirement(load_settings({"web_provider": "firecrawl", "web_base_url": "http://mine.example"})) == ""


@pytest.mark.parametrize("name", ["auto", "searxng", "ddgs"])
def test_an_address_without_a_provider_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"web_base_url does not go with web_provider: {name}"):
        load_settings({"web_provider": name, "web_base_url": "http://mine.example"})


def certificates(folder: Path) -> ssl.SSLContext:
    """A server's certificate for the search engines of ddgs, and the authority that signed it in authority.pem."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text("subjectAltName=DNS:*.duckduckgo.com,DNS:*.mojeek.com\nbasicConstraints=CA:FALSE\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem", "-subj", "/CN=authority")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    signing = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", "names"]
    openssl("x509", "-req", "-in", "server.csr", *signing, "-out", "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context


FOUND = """<html><body>
<div class="result body"><h2>Owls</h2><a href="https://owls.example/">They hunt at night.</a></div>
<div class="result body"><h2>More owls</h2><a href="https://more.example/?a=1&amp;b">Many owls.</a></div>
</body></html>"""


async def search_through(folder: Path, monkeypatch: pytest.MonkeyPatch, page: bytes) -> tuple[str, list[str]]:
    """A real search by ddgs, whose way out is a proxy that answers in the engines' place; and the engines it asked."""
    tls, asked = certificates(folder), []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().removesuffix(":443")
        asked.append(host)
        if host == "html.duckduckgo.com":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.start_tls(tls)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(page)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    monkeypatch.setenv("DDGS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    context = tool_context(LocalSandbox(Path(), "none", output_limit=1000), web_timeout=20)
    try:
        return await call(TOOL, context, {"query": "owls"}), asked
    finally:
        await context.shared.close()
        server.close()


needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates of the stand-in")


@needs_openssl
def test_ddgs_finds_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, asked = asyncio.run(search_through(tmp_path, monkeypatch, answer(FOUND)))
    assert "html.duckduckgo.com" in asked
    found = results(raw)
    assert ("Owls", "https://owls.example/", "They hunt at night.") in found and len(found) == 2


@needs_openssl
def test_ddgs_without_an_answer_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, _ = asyncio.run(search_through(tmp_path, monkeypatch, answer("busy", status="202 Accepted")))
    assert "set web_provider to one with a key" in json.loads(raw)["error"]
