"""Access control for our local servers: hosts, origins, content types, the token, headers.

The dashboard and ``passhat serve`` share it. Both listen on this machine, where any page in the
user's browser can reach them, so the Host, the Origin and the content type of a request are checked
before anything else looks at it.
"""

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

from passhat.errors import PasshatError

_MOST_BYTES = 64 * 1024
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class NotFound(PasshatError):
    """There is no such run, task or attempt: 404."""


class Forbidden(PasshatError):
    """The request is not allowed from there, or not without --allow-run: 403."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a server may be reached."""

    host: str = "127.0.0.1"
    """The address it listens at."""
    token: str = ""
    """Required in every request when not empty."""
    names: Sequence[str] = ()
    """Further host names by which it may be called."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Secret in every form of our own pages."""
    tickets: set[str] = field(default_factory=set)
    """Each stands for the token once: what a browser is started with is in the list of processes.
    """

    def may_be_called(self, host: str) -> bool:
        """Return whether a Host header is one of ours.

        Another site may let its own name resolve to this machine (DNS rebinding); its requests
        then carry that name. An address in numbers cannot be redirected.
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
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain(host: str) -> bool:
    return not set(host) & set("/@?#\\ ")


class Guard:
    """Middleware that refuses a request before the app sees it and sets strict headers.

    ``server`` names the server in refusals, as in ``dashboard``; ``command`` printed its address,
    as in ``passhat view``; ``name_option`` allows another host name. ``content_types`` are accepted
    in requests that change something; empty accepts all. A browser page of another site can send
    ``text/plain`` and forms without asking, but not ``application/json``. ``open_paths`` may be
    read without the token. Where the server has ``pages``, a link from another site may open one,
    and a browser may carry the token in a cookie. Otherwise no request of another site's page is
    answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        server: str = "dashboard",
        command: str = "passhat view",
        content_types: Sequence[str] = (),
        name_option: str = "--allow-host",
        open_paths: Sequence[str] = (),
        pages: bool = True,
    ) -> None:
        self._app, self._access = app, access
        self._server, self._command, self._name_option = server, command, name_option
        self._content_types, self._open_paths = tuple(content_types), tuple(open_paths)
        self._pages = pages

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

        await self._respond(scope)(scope, receive, send_with_headers)

    def _respond(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if not self._access.may_be_called(headers.get("host", "")):
            return PlainTextResponse(
                f"This {self._server} is not known by that host name. Use the address that "
                f"{self._command} printed, or name it with {self._name_option}.\n",
                status_code=400,
            )
        changes = scope["method"] not in _SAFE_METHODS
        if (changes or not self._pages) and (refusal := self._refusal(scope, headers, changes)):
            return refusal
        if not self._access.token or self._is_token(
            _token_of(headers, _cookie_name(scope) if self._pages else "")
        ):
            return self._app
        if not changes and scope["path"] in self._open_paths:
            return self._app
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if (
            self._pages
            and scope["method"] == "GET"
            and self._may_sign_in("".join(query.pop("token", [])))
        ):
            # One slash: a path that begins with two would lead to another host.
            path, rest = f"/{scope['path'].lstrip('/')}", urlencode(query, doseq=True)
            response = RedirectResponse(f"{path}{'?' if rest else ''}{rest}", 303)
            # Lax: an address that a colleague sent opens at once; forms are checked by themselves.
            response.set_cookie(
                _cookie_name(scope), self._access.token, httponly=True, samesite="lax"
            )
            return response
        return PlainTextResponse(
            f"A token is required: open the address that {self._command} printed, or send "
            "Authorization: Bearer TOKEN.\n",
            status_code=401,
            headers={"www-authenticate": "Bearer"},
        )

    def _refusal(self, scope: Scope, headers: Headers, changes: bool) -> PlainTextResponse | None:
        """A refusal of requests that a page of another site could have sent."""
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{headers.get('host')}":
            return PlainTextResponse(
                f"Requests from pages of {origin} are not accepted.\n", status_code=403
            )
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse(
                "Requests from pages of another site are not accepted.\n", status_code=403
            )
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if changes and self._content_types and kind not in self._content_types:
            types_text = " or ".join(self._content_types)
            return PlainTextResponse(
                f"The content type must be {types_text}, not {kind or 'absent'}.\n", status_code=415
            )
        return None

    def _may_sign_in(self, given: str) -> bool:
        if given in self._access.tickets:
            self._access.tickets.remove(given)
            return True
        return self._is_token(given)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._access.token.encode())


def _cookie_name(scope: Scope) -> str:
    """With the port: browsers send the cookies of one host to all of its ports."""
    return f"passhat-token-{(scope.get('server') or ('', 0))[1]}"


def _token_of(headers: Headers, cookie: str) -> str:
    """The token of a request: in the header that programs send, or in the cookie of a browser."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if not cookie:
        return ""
    jar: SimpleCookie = SimpleCookie()
    jar.load(headers.get("cookie", ""))
    return jar[cookie].value if cookie in jar else ""


async def read_form(request: Request, access: Access) -> dict[str, str]:
    """The fields of a form that one of our own pages sent; the guard has checked its origin."""
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
