"""No tool that fetches URLs reaches anything but the public internet, with default settings."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trajectile.tools.addresses import (
    METADATA,
    PRIVATE,
    AddressRefused,
    checked_url,
    open_connection,
    refusal,
    resolve,
)
from web_site import Site, answer

PROGRAM = Path(__file__).with_name("public_network.py")
LOCAL = """
127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.1.1 100.64.0.1 100.127.0.1
192.0.0.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255
::1 :: ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::7f00:1 fe80::1 fe80::1%lo fc00::1 fd00::1 fec0::1 ff02::1 100::1 2001:db8::1
64:ff9b::7f00:1 64:ff9b::a00:1 2002:7f00:1:: 2002:a00:1:: 2001:0:1::1
"""
CREDENTIALS = """
169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 ::ffff:169.254.169.254
"""
PUBLIC = "8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808"


@pytest.mark.parametrize("address", LOCAL.split())
def test_local_addresses_are_refused_unless_allowed(address: str) -> None:
    assert refusal(address) == PRIVATE
    assert refusal(address, allow_private=True) == ""


@pytest.mark.parametrize("address", CREDENTIALS.split())
def test_addresses_that_hand_out_credentials_are_always_refused(address: str) -> None:
    assert refusal(address) == refusal(address, allow_private=True) == METADATA


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_are_not_refused(address: str) -> None:
    assert refusal(address) == ""


NO_URLS = [
    "",
    "x",
    "file:///etc/passwd",
    "javascript:1",
    "http://",
    "http:///x",
    "http://[::1",
    "http://a:b/",
    "ftp://a/",
]


@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        checked_url(url)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "::1"])
def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="web_allow_private"):
        asyncio.run(resolve(host, 80))


def test_a_connection_is_made_where_it_is_allowed() -> None:
    async def ask(port: int) -> bytes:
        reader, writer = await open_connection("127.0.0.1", port, allow_private=True)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        got = await reader.read()
        writer.close()
        return got

    with Site() as site:
        site.answers["/"] = answer("here")
        assert asyncio.run(ask(site.port)).endswith(b"here")
        with pytest.raises(AddressRefused):
            asyncio.run(open_connection("127.0.0.1", site.port))
        assert len(site.asked) == 1
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(open_connection("127.0.0.1", site.port, allow_private=True))


def in_own_network(folder: Path, urls: list[str], redirects: list[str]) -> dict[str, Any]:
    probe = ["unshare", "-Urnm", "true"]
    if (
        not shutil.which("unshare")
        or not shutil.which("mount")
        or subprocess.run(probe, capture_output=True).returncode
    ):
        pytest.skip("this machine allows no network namespaces to its users (unshare -Urnm)")
    done = subprocess.run(
        [*probe[:-1], sys.executable, str(PROGRAM), str(folder)],
        input=json.dumps({"urls": urls, "redirects": redirects}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


INWARDS = [
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://inside.example/",
    "http://metadata.example/",
    "http://localhost/",
    "http://[::ffff:127.0.0.1]/",
    "http://0.0.0.0/",
    "http://127.1/",
    "http://2130706433/",
]


def test_names_redirects_and_rebinding_lead_nowhere_inside(tmp_path: Path) -> None:
    """The same URLs given, and as redirects of a public site; a name whose address changes between two questions."""
    rebinding = ["http://outside-first.example/", "http://inside-first.example/"]
    outwards = ["http://public.example/", "http://93.184.216.34/", "http://both.example/"]
    found = in_own_network(tmp_path, [*outwards, *rebinding, *INWARDS], INWARDS)
    given, redirected = found["results"][: -len(INWARDS)], found["results"][-len(INWARDS) :]
    assert [page["content"] for page in given[:3]] == ["public page"] * 3
    assert given[3]["content"] == "public page"
    errors = [page["error"] for page in [*given[4:], *redirected]]
    assert all(error and ("refused" in error or "not a URL" in error) for error in errors), errors
    assert found["reached"] == []
    assert found["public"] >= len(outwards) + len(INWARDS)
