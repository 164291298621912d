"""Misbehaviour, by name."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from time import time
from typing import Any

import orjson
from aiohttp import web

from .script import Fault

DRIP_S = 0.05


def payload(body: Any) -> bytes:
    """Return text as it is and everything else as JSON."""
    if isinstance(body, bytes):
        return body
    return body.encode("utf-8", "surrogateescape") if isinstance(body, str) else orjson.dumps(body)


def headers_of(fault: Fault) -> dict[str, str]:
    """Return the headers; `{date+N}` in a value stands for the HTTP date in N seconds."""
    return {name: _dated(value) for name, value in fault.headers.items()}


def _dated(value: str) -> str:
    if value.startswith("{date+"):
        return formatdate(time() + float(value[6:-1]), usegmt=True)
    return value


async def answer(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Whole answer with any status, headers, body and content type; `body` null keeps the normal one."""
    body = normal if fault.body is None else payload(fault.body)
    return web.Response(
        status=fault.status, body=body, headers={"Content-Type": fault.content_type, **headers_of(fault)}
    )


async def reset(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Drop the connection without a word."""
    _transport(request).abort()
    return web.Response()


async def cut(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Promise the whole body, send half of it, close."""
    response = await _begin(request, fault, len(normal))
    await response.write(normal[: len(normal) // 2])
    _transport(request).close()
    return response


async def drip(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Send one byte now and then, for `seconds`, then stay silent."""
    response = await _begin(request, fault, len(normal))
    for i in range(int(fault.seconds / DRIP_S)):
        await response.write(normal[i : i + 1])
        await asyncio.sleep(DRIP_S)
    return response


async def silent(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Send nothing for `seconds`, then the normal answer."""
    await asyncio.sleep(fault.seconds)
    return web.Response(body=normal, content_type="application/json")


async def stall(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Send headers and half of the body, then nothing."""
    response = await _begin(request, fault, len(normal))
    await response.write(normal[: len(normal) // 2])
    await asyncio.sleep(fault.seconds)
    return response


async def raw(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Write bytes that need not be HTTP, and close."""
    transport = _transport(request)
    transport.write(payload(fault.body))
    transport.close()
    return web.Response()


async def huge(request: web.Request, fault: Fault, normal: bytes) -> web.StreamResponse:
    """Send spaces without end."""
    response = web.StreamResponse(headers={"Content-Type": fault.content_type})
    await response.prepare(request)
    while True:
        await response.write(b" " * 2**20)


async def _begin(request: web.Request, fault: Fault, length: int) -> web.StreamResponse:
    response = web.StreamResponse(status=fault.status, headers={"Content-Type": fault.content_type})
    response.content_length = length
    await response.prepare(request)
    return response


def _transport(request: web.Request) -> asyncio.Transport:
    assert request.transport is not None
    return request.transport


KINDS: dict[str, Callable[[web.Request, Fault, bytes], Awaitable[web.StreamResponse]]] = {
    f.__name__: f for f in (answer, reset, cut, drip, silent, stall, raw, huge)
}
