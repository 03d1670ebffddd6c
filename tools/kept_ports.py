"""A port for a server that is told its number, kept until that server listens there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["kept_port"]


@contextmanager
def kept_port() -> Iterator[int]:
    """Whoever asks for any port gets another one.

    The server may listen there all the same: this socket does not listen, and neither minds.
    """
    with socket.socket() as keeping:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeping.bind(("127.0.0.1", 0))
        yield int(keeping.getsockname()[1])
