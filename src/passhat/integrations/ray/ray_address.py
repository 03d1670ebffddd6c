"""Knock where a Ray cluster is said to be: Ray itself would try for half a minute or more."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

__all__ = ["knock"]

_SECONDS = 5.0
# Ray speaks gRPC, so HTTP/2: both sides begin with their settings, a frame of type 4 (RFC 9113).
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
_TYPE, _SETTINGS = 3, 4
_TLS_ALERT = b"\x15\x03"
_SAID_AT_MOST = 60


def knock(address: str) -> None:
    """Return if Ray may be there.

    Silence and a connection that is closed without a word prove nothing, as the head may be busy
    or encrypted; Ray then finds out by itself.

    Parameters
    ----------
    address : str
        ``ray://HEAD:10001``, ``HEAD:6379``, or a word that only Ray knows, such as ``auto``.

    Raises
    ------
    ValueError
        If the address cannot be one.
    ConnectionError
        If nobody listens there, or somebody who answers as Ray never does.
    """
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.scheme == "ray" and parts.port is None:
        raise ValueError("it needs a port, as in ray://HEAD:10001")
    if not (parts.hostname and parts.port):
        return
    try:
        line = socket.create_connection((parts.hostname, parts.port), _SECONDS)
    except OSError as error:
        raise ConnectionError(f"nobody listens there: {error.strerror or error}") from None
    with line:
        said = _answer(line)
    enough = len(said) > _TYPE and not said.startswith(_TLS_ALERT)
    if enough and said[_TYPE] != _SETTINGS:
        raise ConnectionError(f"who listens there is not Ray, but says {_shown(said)}")


def _answer(line: socket.socket) -> bytes:
    """The beginning of what is said to a greeting, up to where it shows what it is."""
    said = b""
    with suppress(OSError):
        line.sendall(_HELLO)
        while len(said) <= _TYPE and (more := line.recv(4096)):
            said += more
    return said


def _shown(said: bytes) -> str:
    """The first line, for a person: a server of another kind often names itself there."""
    text = said.decode("ascii", "replace").splitlines()[0].strip()
    shown = "".join(sign if sign.isprintable() else "?" for sign in text)
    return repr(shown[:_SAID_AT_MOST])
