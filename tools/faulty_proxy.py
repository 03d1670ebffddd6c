"""A network that can be cut: a port in front of a server, for tests and benchmarks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["FaultyProxy"]

_BYTES = 65_536


class FaultyProxy:
    """Passes bytes on between a port of this machine and a server, until it is asked not to.

    Parameters
    ----------
    server : Path or tuple
        The socket of the server: a path, or a host and a port.

    Attributes
    ----------
    port : int
        Where it listens, on 127.0.0.1.
    when_swallowed : callable, optional
        Called once, in a thread, when the first bytes are lost.
    """

    def __init__(self, server: Path | tuple[str, int]) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._swallows = self._refuses = False
        self._pairs: list[_Pair] = []
        self.when_swallowed: Callable[[], object] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Reset every connection; new ones are let through."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.cut()

    def refuse(self) -> None:
        """Reset every connection, and every new one at once, until :meth:`restore`."""
        self._refuses = True
        self.cut()

    def swallow(self) -> None:
        """Take every byte and pass none on, without closing anything, until :meth:`restore`."""
        self._swallows = True

    def restore(self) -> None:
        """Let new connections through; those that lost bytes stay silent, as they would."""
        self._swallows = self._refuses = False

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                client.close()
                continue
            try:
                server = self._connected()
            except OSError:
                client.close()
                continue
            pair = _Pair(client, server)
            with self._lock:
                self._pairs.append(pair)
            for source, target in ((client, server), (server, client)):
                pump = threading.Thread(target=self._pump, args=(pair, source, target), daemon=True)
                pump.start()

    def _connected(self) -> socket.socket:
        if isinstance(self._server, tuple):
            return socket.create_connection(self._server)
        own = socket.socket(socket.AF_UNIX)
        try:
            own.connect(str(self._server))
        except OSError:
            own.close()
            raise
        return own

    def _pump(self, pair: _Pair, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(_BYTES):
                if self._swallows or pair.lost:
                    pair.lost = True
                    called, self.when_swallowed = self.when_swallowed, None
                    if called is not None:
                        called()
                else:
                    target.sendall(data)
        except OSError:
            pass
        pair.cut()
        pair.leave()


class _Pair:
    """The two ends of a connection; ``lost`` is whether bytes of it were swallowed."""

    def __init__(self, *ends: socket.socket) -> None:
        self._ends = ends
        self._lock = threading.Lock()
        self._pumps = len(ends)
        self.lost = False

    def cut(self) -> None:
        """End both connections; the descriptors stay until both threads have left.

        A thread that is about to read would otherwise read from whatever gets the number next.
        """
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def leave(self) -> None:
        """Called once by each of the two threads; the second one closes the descriptors."""
        with self._lock:
            self._pumps -= 1
            if self._pumps:
                return
        for end in self._ends:
            end.close()
