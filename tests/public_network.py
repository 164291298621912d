"""A small internet in network namespaces of its own, to see what tools reach with default settings.

A program, run as `unshare -Urnm python public_network.py FOLDER`, which prints what `Report` holds. A site has a public
address (93.184.216.34) and redirects inwards; what must not be reached listens at 127.0.0.1, ::1 and 169.254.169.254;
a DNS server knows public.example, inside.example, both.example, and names whose address changes from question to
question. All ports are 80.
"""

import asyncio
import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

PUBLIC, INSIDE, METADATA = "93.184.216.34", "127.0.0.1", "169.254.169.254"
SET_ADDRESS, SET_FLAGS, UP = 0x8916, 0x8914, 0x1
NAMES = {
    "public.example": [[PUBLIC]],
    "inside.example": [[INSIDE]],
    "metadata.example": [[METADATA]],
    "both.example": [[INSIDE, PUBLIC]],
    "outside-first.example": [[PUBLIC], [INSIDE]],
    "inside-first.example": [[INSIDE], [PUBLIC]],
}


def set_up_loopback() -> None:
    """The loopback interface with a public and a link-local address beside its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for number, address in enumerate((INSIDE, PUBLIC, METADATA)):
            name = f"lo:{number}" if number else "lo"
            where = struct.pack("16sH2s4s8x", name.encode(), socket.AF_INET, b"", socket.inet_aton(address))
            fcntl.ioctl(control, SET_ADDRESS, where)
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH14x", name.encode(), UP))


def use_own_names(folder: Path) -> None:
    """Let the C library ask our DNS server alone."""
    (folder / "resolv.conf").write_text(f"nameserver {INSIDE}\noptions timeout:2 attempts:1\n")
    (folder / "hosts").write_text(f"{INSIDE} localhost\n::1 localhost\n")
    (folder / "nsswitch.conf").write_text("hosts: files dns\n")
    for name in ("resolv.conf", "hosts", "nsswitch.conf"):
        target = Path("/etc") / name
        if target.exists():
            subprocess.run(["mount", "--bind", str(folder / name), str(target.resolve())], check=True)


def serve_names() -> None:
    """Answer questions for IPv4 addresses from NAMES, each list in turn; others with nothing."""
    turns: dict[str, int] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((INSIDE, 53))
        while True:
            question, client = server.recvfrom(4096)
            server.sendto(dns_answer(question, turns), client)


def dns_answer(question: bytes, turns: dict[str, int]) -> bytes:
    labels, at = [], 12
    while size := question[at]:
        labels.append(question[at + 1 : at + 1 + size].decode())
        at += size + 1
    name, kind = ".".join(labels).lower(), question[at + 1 : at + 3]
    addresses: list[str] = []
    if kind == b"\0\1" and name in NAMES:
        addresses = NAMES[name][turns.get(name, 0) % len(NAMES[name])]
        turns[name] = turns.get(name, 0) + 1
    records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address) for address in addresses)
    return question[:2] + struct.pack(">HHHHH", 0x8580, 1, len(addresses), 0, 0) + question[12 : at + 5] + records


async def extract(urls: list[str]) -> list[dict[str, Any]]:
    from tool_contexts import tool_context
    from trajectile.sandbox.local.sandbox import LocalSandbox
    from trajectile.tools.calling import call
    from trajectile.tools.web.web_extract import TOOL

    # the sandbox is never started: no web tool uses it
    context = tool_context(LocalSandbox(Path(), "none", output_limit=1000), web_timeout=10)
    answers = [json.loads(await call(TOOL, context, {"urls": [url]})) for url in urls]
    await context.shared.close()
    return [answer["results"][0] for answer in answers]


def main(folder: Path) -> None:
    from web_site import Site, answer, redirect

    set_up_loopback()
    use_own_names(folder)
    threading.Thread(target=serve_names, daemon=True).start()
    with ExitStack() as stack:
        public = stack.enter_context(Site(PUBLIC, 80))
        inner = [stack.enter_context(Site(host, 80)) for host in (INSIDE, "::1", METADATA)]
        public.answers["/"] = answer("<html><title>t</title><body><p>public page</p></body></html>")
        targets = json.loads(sys.stdin.read())
        for number, target in enumerate(targets["redirects"]):
            public.answers[f"/{number}"] = redirect(target)
        urls = targets["urls"] + [f"http://public.example/{number}" for number in range(len(targets["redirects"]))]
        results = asyncio.run(extract(urls))
        reached = [each.path for site in inner for each in site.asked]
        print(json.dumps({"results": results, "reached": reached, "public": len(public.asked)}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    main(Path(sys.argv[1]))
