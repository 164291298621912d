"""Which network addresses tools may connect to: the public internet alone, unless web_allow_private says otherwise."""

import asyncio
import contextlib
import ipaddress
import socket
from typing import Any
from urllib.parse import SplitResult, urlsplit

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

PRIVATE = "local and private addresses are refused; the setting web_allow_private allows them"
METADATA = "addresses of cloud metadata services are always refused"

# Link-local and the like are not public either; these hand out credentials, so no setting opens them.
METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
UNICAST_6 = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
PROTOCOLS_4 = ipaddress.IPv4Network("192.0.0.0/24")


class AddressRefused(OSError):
    """The address is none that tools may connect to; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def refusal(address: str, *, allow_private: bool = False) -> str:
    """Why tools may not connect to an IP address, "" where they may."""
    meant = _meant(ipaddress.ip_address(address))
    if meant in METADATA_ADDRESSES:
        return METADATA
    return "" if allow_private or _is_public(meant) else PRIVATE


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or ipaddress.IPv6Address(int(address))


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and address not in PROTOCOLS_4
    return address.is_global and address in UNICAST_6


def checked_url(url: str) -> SplitResult:
    """The parts of an http or https URL with a host; ValueError for any other text."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"not an http or https URL: {url[:200]}")
    if not parts.hostname or parts.port == 0:
        raise ValueError(f"not a URL with a host: {url[:200]}")
    return parts


def guarded_socket(info: AddressInfo, *, allow_private: bool = False) -> socket.socket:
    """A socket for the very address that is about to be connected to; AddressRefused where that is refused.

    It is what aiohttp calls a socket factory. A name that resolves to something else the next time gains nothing.
    """
    family, kind, protocol, _, where = info
    if reason := refusal(where[0], allow_private=allow_private):
        raise AddressRefused(reason)
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made


async def resolve(host: str, port: int, *, allow_private: bool = False) -> list[AddressInfo]:
    """The addresses of a host that tools may connect to; AddressRefused where there is none, OSError where the name is
    not known."""
    loop = asyncio.get_running_loop()
    infos: list[AddressInfo] = [*await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    reasons = [refusal(info[4][0], allow_private=allow_private) for info in infos]
    allowed = [info for info, reason in zip(infos, reasons, strict=True) if not reason]
    if not allowed:
        raise AddressRefused(reasons[0])
    return allowed


async def open_connection(
    host: str, port: int, *, allow_private: bool = False
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a host, as a proxy does, at an address that was checked; OSError where no address can be had."""
    problem: OSError | None = None
    for info in await resolve(host, port, allow_private=allow_private):
        made = guarded_socket(info, allow_private=allow_private)
        try:
            await asyncio.get_running_loop().sock_connect(made, info[4])
            return await asyncio.open_connection(sock=made)
        except OSError as error:
            made.close()
            problem = error
        except BaseException:
            with contextlib.suppress(OSError):
                made.close()
            raise
    raise problem or AddressRefused(PRIVATE)
