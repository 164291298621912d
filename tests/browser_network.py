"""What a browser with default settings reaches in the small internet of public_network.py.

A program, run as `unshare -Urnm python browser_network.py FOLDER`. Prints what each address led to, what the page at
public.example could do, and all that arrived at the addresses inside, by TCP and UDP.
"""

import asyncio
import json
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from public_network import INSIDE, METADATA, PUBLIC, serve_names, set_up_loopback, use_own_names

STUN = 3478
TARGETS = (f"{INSIDE}", "[::1]", METADATA, "inside.example", "metadata.example", "2130706433", "0x7f.1", "localhost")
PAGE = f"""<title>public page</title><link rel=preconnect href="http://{INSIDE}/preconnect">
<link rel=prefetch href="http://inside.example/prefetch"><iframe src="http://{INSIDE}/frame"></iframe>
<img src="http://[::1]/image"><script src="http://{METADATA}/script"></script>
<link rel=stylesheet href="http://inside.example/style">"""
TRY = f"""(async () => {{
  const tried = {{}};
  const settled = (name, promise) => Promise.race([promise, new Promise(go => setTimeout(go, 1500, 'nothing'))])
    .then(value => tried[name] = String(value), () => tried[name] = 'failed');
  const opened = (made, good) => new Promise(go => {{ made[good] = () => go('open');
    made.onerror = () => go('failed'); }});
  navigator.sendBeacon('http://{INSIDE}/beacon', 'x');
  await Promise.all([
    settled('fetch', fetch('http://{INSIDE}/fetch').then(got => got.status)),
    settled('no_cors', fetch('http://inside.example/fetch', {{mode: 'no-cors'}}).then(got => got.type)),
    settled('socket', opened(new WebSocket('ws://{INSIDE}/socket'), 'onopen')),
    settled('metadata_socket', opened(new WebSocket('ws://{METADATA}/socket'), 'onopen')),
    settled('events', opened(new EventSource('http://{INSIDE}/events'), 'onopen')),
    settled('rtc', (async () => {{
      const servers = ['stun:{INSIDE}:{STUN}', 'turn:{INSIDE}:{STUN}', 'turn:{INSIDE}:80?transport=tcp'];
      const iceServers = servers.map(urls => ({{urls, username: 'u', credential: 'c'}}));
      const made = new RTCPeerConnection({{iceServers}});
      made.createDataChannel('x');
      await made.setLocalDescription();
      await new Promise(go => setTimeout(go, 1200));
      return made.iceGatheringState;
    }})()),
  ]);
  return tried;
}})()"""


def listen_by_udp(arrived: list[str]) -> None:
    """Note all packets to the ports of STUN and QUIC."""
    for port in (STUN, 443, 80):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((INSIDE, port))
        threading.Thread(target=_note, args=(server, port, arrived), daemon=True).start()


def _note(server: socket.socket, port: int, arrived: list[str]) -> None:
    while True:
        server.recvfrom(4096)
        arrived.append(f"udp {port}")


async def browse() -> dict[str, Any]:
    from browser_world import prompt
    from trajectile.tools.tool import States

    shared = States()
    async with prompt(shared, browser_timeout=20) as user:
        inside = {target: await user.result("navigate", url=f"http://{target}/") for target in TARGETS}
        inside |= {path: await user.result("navigate", url=f"http://public.example{path}") for path in ("/to", "/name")}
        changing = [await user.result("navigate", url="http://outside-first.example/plain") for _ in range(4)]
        opened = await user.use("navigate", url="http://public.example/")
        tried = json.loads((await user.use("console", expression=TRY))["result"])
        for step in ("location.href = 'file:///etc/passwd'", "window.open('chrome://version')"):
            where = await user.use("console", expression=f"(() => {{ {step} }})()")
    await shared.close()
    return {
        "inside": inside,
        "titles": [opened["title"], where["title"]],
        "changing": changing,
        "tried": tried,
        "messages": [message["text"] + message["at"] for message in where["messages"]],
    }


def main(folder: Path) -> None:
    from web_site import Site, answer, redirect

    set_up_loopback()
    use_own_names(folder)
    threading.Thread(target=serve_names, daemon=True).start()
    packets: list[str] = []
    listen_by_udp(packets)
    with ExitStack() as stack:
        public = stack.enter_context(Site(PUBLIC, 80))
        inner = [stack.enter_context(Site(host, 80)) for host in (INSIDE, "::1", METADATA)]
        public.answers |= {"/": answer(PAGE), "/plain": answer("<title>plain page</title>")}
        public.answers |= {"/to": redirect(f"http://{INSIDE}/to"), "/name": redirect("http://inside.example/name")}
        report = asyncio.run(browse())
        reached = packets + [each.path for site in inner for each in site.asked]
        print(json.dumps(report | {"reached": reached, "public": [each.path for each in public.asked]}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    main(Path(sys.argv[1]))
