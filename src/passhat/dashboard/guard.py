"""Who may ask: hosts, the token, and what a browser may do with an answer."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from passhat.dashboard.errors import Forbidden

__all__ = ["Access", "Guard", "checked_form", "is_loopback"]

_COOKIE = "passhat-token"
_MOST_BYTES = 64 * 1024
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Access:
    """How the server may be reached.

    Attributes
    ----------
    host : str
        The address it listens at.
    token : str
        Required from everybody when not empty.
    names : sequence of str
        Further names by which it may be called.
    csrf : str
        What every form of our own pages carries, and nobody else's can.
    """

    host: str = "127.0.0.1"
    token: str = ""
    names: Sequence[str] = ()
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def may_be_called(self, host: str) -> bool:
        """Whether a Host header is one of ours.

        A page of somebody else may have its own name point here (DNS rebinding); its requests then
        carry that name. An address in numbers cannot be pointed anywhere.
        """
        name = (urlsplit(f"//{host}").hostname or "") if _is_plain(host) else ""
        if name in ("localhost", self.host, *self.names):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain(host: str) -> bool:
    return not set(host) & set("/@?#\\ ")


class Guard:
    """Refuses before anything else looks at a request; strict headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._answer(scope)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if not self._access.may_be_called(headers.get("host", "")):
            return PlainTextResponse(
                "This dashboard is not known by that name. Use the address that passhat view "
                "printed, or name it with --allow-host.\n",
                status_code=400,
            )
        if not self._access.token or self._is_ours(_given(headers)):
            return self._app
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and self._is_ours("".join(query.pop("token", []))):
            # One slash: a path that begins with two would lead to another host.
            path, rest = f"/{scope['path'].lstrip('/')}", urlencode(query, doseq=True)
            answer = RedirectResponse(f"{path}{'?' if rest else ''}{rest}", 303)
            # Lax: an address that a colleague sent opens at once; forms are checked by themselves.
            answer.set_cookie(_COOKIE, self._access.token, httponly=True, samesite="lax")
            return answer
        return PlainTextResponse(
            "A token is required: open the address that passhat view printed, or send "
            "Authorization: Bearer TOKEN.\n",
            status_code=401,
            headers={"www-authenticate": "Bearer"},
        )

    def _is_ours(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._access.token.encode())


def _given(headers: Headers) -> str:
    """The token of a request: in the header that programs send, or in the cookie of a browser."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    cookies: SimpleCookie = SimpleCookie()
    cookies.load(headers.get("cookie", ""))
    return cookies[_COOKIE].value if _COOKIE in cookies else ""


async def checked_form(request: Request, access: Access) -> dict[str, str]:
    """The fields of a form, if one of our own pages sent it."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host')}":
        raise Forbidden(f"a form sent from {origin} is not accepted.")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("a form of another site is not accepted.")
    body = b""
    async for block in request.stream():
        body += block
        if len(body) > _MOST_BYTES:
            raise Forbidden("the form is too large.")
    fields = {
        name: values[-1]
        for name, values in parse_qs(
            body.decode("utf-8", "replace"), keep_blank_values=True
        ).items()
    }
    if not hmac.compare_digest(fields.pop("csrf", "").encode(), access.csrf.encode()):
        raise Forbidden("the form does not come from this dashboard; open its page again.")
    return fields
