"""The server: binds its address before serving anything; Ctrl-C ends everything."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from passhat.dashboard.guard import Access
from passhat.errors import InvalidValue

__all__ = ["address_of", "listen", "serve"]

_GRACE_SECONDS = 3


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address; port 0 takes a free one."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[
            0
        ]
    except (socket.gaierror, UnicodeError, OverflowError):
        raise InvalidValue(f"{host!r} is no address of this machine.") from None
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY), not 40 ms later.
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(128)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidValue(
                f"port {port} of {host} is in use.",
                hint="Take another with --port, or any free one with --port 0.",
            ) from None
        raise InvalidValue(f"cannot listen at {host}, port {port}: {error.strerror}.") from None
    return found


def address_of(listening: socket.socket, access: Access, name: str = "") -> str:
    """URL to open in a browser, with the token if there is one; ``name`` for other machines."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    host = name or host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={access.token}" if access.token else "")


def serve(
    store: str,
    access: Access,
    listening: socket.socket,
    *,
    allow_run: bool,
    ready: Callable[[], None],
) -> None:
    """Serve until Ctrl-C; ``ready`` is called when the first request can be answered."""
    import uvicorn

    from passhat.dashboard.app import make_app

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    app = make_app(store, access, allow_run=allow_run, ending=lambda: server.should_exit)
    server = Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ws="none",
        )
    )
    logging.getLogger("uvicorn.error").addFilter(_is_no_farewell)
    server.run(sockets=[listening])


def _is_no_farewell(record: logging.LogRecord) -> bool:
    """Filter tracebacks of responses that were cut off when the server ended."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
