"""Limits on requests of unknown callers: which addresses we contact for them, and how much.

A request names agents and backends by URL. Without rules a stranger could make this machine send
requests to anything it reaches: other programs on it, the metadata service of a cloud, a network
behind a firewall. A name is checked when a request comes and again when each connection is made,
and the connection goes to the very address that was checked: a name server that answers
differently the second time (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from urllib.parse import urlsplit

import httpx

from passhat.agents.a2a_wire import is_address
from passhat.errors import InvalidValue, shorten

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PRINTABLE = re.compile(r"[!-~]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Gateways of a private network translate these; which part is the inner address is their choice.
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_PRIVATE = tuple(
    map(
        ipaddress.ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
    )
)
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
_METADATA = frozenset(
    {ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200")}
)
"""Metadata services of clouds that are not at a link-local address."""


async def _resolve(host: str, port: int) -> list[str]:
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in addresses))


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Hosts whose agents and backends may be contacted for a caller.

    Attributes
    ----------
    hosts : frozenset of str
        Names and addresses in lower case, each for all its ports, or as ``host:port`` for one.
    loopback : bool
        Whether our own server can be reached from this machine only. Then programs on this
        machine may be contacted; otherwise only those listed with their port.
    resolve : callable
        Returns the addresses of a name.
    """

    hosts: frozenset[str] = frozenset()
    loopback: bool = True
    resolve: Resolve = _resolve

    @classmethod
    def of(cls, hosts: Iterable[str], *, loopback: bool = True) -> AllowedHosts:
        """The hosts of ``--allow-host``, each ``HOST`` or ``HOST:PORT``."""
        names = frozenset(host.strip().lower() for host in hosts)
        for host in names:
            if not _PRINTABLE.fullmatch(host) or set(host) & set("/@?#\\*,"):
                raise InvalidValue(
                    f"--allow-host takes a host, not {shorten(host)}.",
                    hint="As in --allow-host agents.example or --allow-host 127.0.0.1:9210",
                )
        return cls(names, loopback)

    def refusal(self, url: str, whose: str) -> str | None:
        """Return why an address may not be contacted, as far as its text shows it."""
        if not is_address(url) or not _PRINTABLE.fullmatch(url) or "\\" in url:
            return f"the address of {whose} should be http://..., not {shorten(url)}"
        parts = urlsplit(url)
        if "@" in parts.netloc or "?" in url or "#" in url:
            return f"the address of {whose} should have no user name, query or fragment"
        host, port = (parts.hostname or "").lower(), _port(parts.scheme, parts.port)
        try:
            same = httpx.URL(url).host.lower() == host
        except httpx.InvalidURL:
            same = False
        if not same:  # two readers of one text: neither is believed
            return f"the host of {whose} cannot be read from {shorten(url)}"
        if not self._is_listed(host, port):
            hint = "" if self._literal_refusal(host, port) else f"; start with --allow-host {host}"
            return f"{whose} is at {host}, which is not allowed here{hint}"
        if wrong := self._literal_refusal(host, port):
            return f"{whose} is at {host}, {wrong}"
        return None

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of them allowed.

        Raises
        ------
        httpx.ConnectError
            The name cannot be resolved, or one of its addresses is not allowed.
        """
        host = host.lower()
        if not self._is_listed(host, port):
            raise httpx.ConnectError(f"{host}:{port} is not allowed here")
        try:
            addresses = [str(ipaddress.ip_address(host))]
        except ValueError:
            try:
                addresses = await self.resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise httpx.ConnectError(f"{host} cannot be resolved ({error})") from None
        for address in addresses:
            if wrong := self._address_refusal(address, host, port):
                raise httpx.ConnectError(f"{host} has the address {address}, {wrong}")
        if not addresses:
            raise httpx.ConnectError(f"{host} has no address")
        return addresses

    async def refusal_when_resolved(self, url: str, whose: str) -> str | None:
        """Return why an address may not be contacted, once its name is resolved.

        A name that cannot be resolved is not refused: its attempts fail as unreachable.
        """
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), _port(parts.scheme, parts.port)
        try:
            addresses = await self.resolve(host, port)
        except (OSError, UnicodeError):
            return None
        reasons = (self._address_refusal(address, host, port) for address in addresses)
        wrong = next((reason for reason in reasons if reason), None)
        return f"{whose} is at {host}, {wrong}" if wrong else None

    def _is_listed(self, host: str, port: int) -> bool:
        if self.loopback and host in _LOOPBACK:
            return True
        return host in self.hosts or self._has_port(host, port)

    def _has_port(self, host: str, port: int) -> bool:
        return f"{host}:{port}" in self.hosts or f"[{host}]:{port}" in self.hosts

    def _literal_refusal(self, host: str, port: int) -> str | None:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return None
        return self._address_refusal(host, host, port)

    def _address_refusal(self, address: str, host: str, port: int) -> str | None:
        inner = _innermost(ipaddress.ip_address(address))
        if inner.is_link_local or inner in _METADATA:
            return "a link-local address, which is never contacted"
        if inner in _LOCAL_NAT64:
            return "an address that a private gateway translates, which is never contacted"
        if inner.is_multicast or inner.is_unspecified or inner in _THIS_NETWORK:
            return "an address of no single machine"
        if inner.is_loopback and not self.loopback and not self._has_port(host, port):
            return (
                "on the machine of this server, which others can reach; the owner may list it with "
                f"its port, as in --allow-host {host}:{port}"
            )
        is_private = any(inner in network for network in _PRIVATE)
        # A name can be given any address by its owner; an address that is listed is meant.
        if is_private and not self.loopback and host != address and not self._has_port(host, port):
            return (
                f"a private address ({inner}), which others cannot choose; the owner may list it "
                f"with its port, as in --allow-host {host}:{port}"
            )
        return None


def _port(scheme: str, port: int | None) -> int:
    return port or (443 if scheme == "https" else 80)


def _innermost(address: Address) -> Address:
    """The IPv4 address that an IPv6 address carries inside (mapped, NAT64, 6to4, Teredo), or it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects to allowed addresses only, and to the address that was checked."""

    def __init__(self, hosts: AllowedHosts) -> None:
        self._hosts = hosts
        self._inner = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=None, keepalive_expiry=2.0), trust_env=False
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        port = _port(url.scheme, url.port)
        *earlier, last = await self._hosts.addresses(url.host, port)
        # The name stays in the Host header and in the TLS handshake.
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        for address in earlier:
            request.url = url.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        request.url = url.copy_with(host=last)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


_WINDOW_SECONDS = 3_600.0
_MOST_CALLERS = 4_096


@dataclass(frozen=True, slots=True)
class Caps:
    """Amounts that one caller may use within an hour."""

    runs: float = 60
    attempts: float = 10_000
    seconds: float = 3_600
    bytes: float = 1_000_000_000

    @classmethod
    def of(cls, words: Iterable[str]) -> Caps:
        """The caps of ``--cap NAME=NUMBER``."""
        names = [field.name for field in fields(cls)]
        caps: dict[str, float] = {}
        for word in words:
            name, _, number = word.partition("=")
            try:
                caps[name] = float(number)
            except ValueError:
                caps[name] = -1
            if name not in names or not caps[name] > 0:
                raise InvalidValue(
                    f"--cap takes NAME=NUMBER, not {shorten(word)}.",
                    hint=f"Names: {', '.join(names)}. As in --cap attempts=50000",
                )
        return cls(**caps)


@dataclass(slots=True)
class Usage:
    """Amounts that an evaluation, or a request, has used so far."""

    runs: float = 0
    attempts: float = 0
    seconds: float = 0
    bytes: float = 0
    at: float = 0


@dataclass(slots=True)
class Callers:
    """Usage of every caller in the last hour; a caller is identified by its address."""

    caps: Caps = field(default_factory=Caps)
    clock: Callable[[], float] = time.monotonic
    _used: dict[str, list[Usage]] = field(default_factory=dict)

    def left(self, caller: str, name: str) -> float:
        """The rest of an amount that a caller may still use."""
        total = sum(getattr(usage, name) for usage in self._recent(caller))
        return float(getattr(self.caps, name) - total)

    def refusal(self, caller: str, *, runs: int = 0, attempts: int = 0) -> str | None:
        """Return why a caller may not start this much, or ``None``."""
        amounts = {"runs": runs, "attempts": attempts, "seconds": 1, "bytes": 1}
        for name, amount in amounts.items():
            if amount > self.left(caller, name):
                cap = getattr(self.caps, name)
                return (
                    f"over the limit of {cap:,.0f} {name} an hour for one caller; "
                    f"the server's owner can raise it with --cap {name}=NUMBER"
                )
        return None

    def begin(self, caller: str, *, runs: int = 0, attempts: int = 0) -> Usage:
        """Count the start of an evaluation; its seconds and bytes are added as they are used."""
        usage = Usage(runs=runs, attempts=attempts, at=self.clock())
        self._recent(caller).append(usage)
        return usage

    def receive(self, caller: str, count: int) -> bool:
        """Count the bytes of a request; return whether the caller has any left."""
        recent = self._recent(caller)
        if not recent or recent[-1].runs:
            recent.append(Usage(at=self.clock()))
        recent[-1].bytes += count
        return self.left(caller, "bytes") > 0

    def _recent(self, caller: str) -> list[Usage]:
        key, since = _network(caller), self.clock() - _WINDOW_SECONDS
        recent = [usage for usage in self._used.pop(key, []) if usage.at > since]
        self._used[key] = recent  # last: the caller that was silent longest is first
        while len(self._used) > _MOST_CALLERS:
            del self._used[next(iter(self._used))]
        return recent


def _network(caller: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address: one customer has all of it."""
    try:
        address = _innermost(ipaddress.ip_address(caller))
    except ValueError:
        return caller
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network(f"{address}/64", strict=False))
