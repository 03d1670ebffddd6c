"""A small HTTP server inside a running event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from passhat.errors import InvalidValue

if TYPE_CHECKING:
    from uvicorn import Server

_GRACE_SECONDS = 1
_KEEP_ALIVE_SECONDS = 75
"""How long a connection without requests is kept. Many HTTP clients keep theirs for 5 s: a server
that closes at the same age may close one on which a request is on its way."""

_HEADER_SECONDS = 20.0
"""How long a client may take for the head of a request; half-open connections end then."""
_HTTP2 = b"PRI * HTTP/2.0"
"""How a client that speaks nothing else begins (RFC 9113, 3.4)."""
_MOST_CONNECTIONS = 1_000
"""Connections at once; more are closed at once instead of using up the files of the process."""


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        raise InvalidValue(
            f"cannot listen on {host}:{port} ({error}).", hint="Choose another --host or --port."
        ) from None
    return listening


class Listening:
    """Serve an ASGI application while the block is open.

    Signals stay with their handlers: a server within a run must not swallow its Ctrl-C.
    """

    def __init__(
        self,
        app: Any,
        sock: socket.socket | None = None,
        *,
        header_seconds: float = _HEADER_SECONDS,
        most_connections: int = _MOST_CONNECTIONS,
        on_http2: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._protocol = limited_protocol(header_seconds, most_connections, on_http2)
        self._socket = sock or open_socket("127.0.0.1", 0)
        self._serving: asyncio.Task[None] | None = None
        self._server: Server | None = None
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = _server(self._app, self._protocol)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        try:
            while not self._server.started and not self._serving.done():
                await asyncio.sleep(0.002)
        except asyncio.CancelledError:  # a time limit, or the end of a run
            self._serving.cancel()
            self._socket.close()
            raise
        if self._serving.done():
            self._socket.close()
            raise InvalidValue(f"the server at {self.url} did not start.")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Take no more requests, give those in flight a moment, and end."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
        self._socket.close()


def limited_protocol(
    header_seconds: float, most_connections: int, on_http2: Callable[[], None] | None = None
) -> type:
    """Make the HTTP protocol class of a server that half-open connections cannot fill.

    ``on_http2`` is called for a connection of HTTP/2, such as one of gRPC, which is closed.

    uvicorn times out idle connections only after their first request: one that sends half a
    header, or nothing, would stay for ever.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class LimitedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most_connections:
                transport.close()
            else:
                self._timer = self.loop.call_later(header_seconds, transport.close)

        def data_received(self, data: bytes) -> None:
            if on_http2 is not None and data.startswith(_HTTP2):
                on_http2()
                self.transport.close()
                return
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:  # the head is whole
                self._cancel_timer()
            elif self._timer is None and not self.transport.is_closing():
                self._timer = self.loop.call_later(header_seconds, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_timer()
            super().connection_lost(exc)

        def _cancel_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return LimitedProtocol


def _server(app: Any, protocol: type) -> Server:
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            app,
            http=protocol,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            lifespan="auto",
            ws="none",
        )
    )
