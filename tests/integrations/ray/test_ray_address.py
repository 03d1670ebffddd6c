"""passhat.integrations.ray.ray_runner: what answers there, and what that proves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from passhat.integrations.ray import ray_runner
from passhat.integrations.ray.ray_runner import check_ray_address


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers may take as long as a busy machine needs."""
    monkeypatch.setattr(ray_runner, "_SECONDS", 60.0)


@contextmanager
def _somebody(said: bytes, *, hangs: bool = False) -> Iterator[str]:
    """Somebody who reads a greeting and answers with these bytes; yields the address."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            line, _ = listening.accept()
            with line:
                line.recv(4096)
                line.sendall(said)
                if hangs:
                    done.wait(60)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    "said",
    [
        b"\0\0\x12\x04\0\0\0\0\0" + bytes(18),  # settings, as from any HTTP/2 server
        b"\x15\x03\x01\0\x02\x02\x46",  # encrypted: what we sent could not be read
        b"",  # closed without a word
    ],
)
def test_who_may_be_ray_is_left_to_ray(said: bytes) -> None:
    with _somebody(said) as address:
        check_ray_address(address)


def test_silence_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def impatient(place: tuple[str, int], seconds: float) -> socket.socket:
        """Waits for a connection, but not for an answer."""
        line = connect(place, seconds)
        line.settimeout(0.05)
        return line

    monkeypatch.setattr(socket, "create_connection", impatient)
    with _somebody(b"", hangs=True) as address:
        check_ray_address(address)
    with _somebody(b"\0\0\x12", hangs=True) as address:
        check_ray_address(address)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"-ERR unknown command 'PRI'\r\n", r'''"-ERR unknown command 'PRI'"'''),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "'SSH-2.0-OpenSSH_9.2'"),
        (b"\x1b[2J" + b"x" * 500, f"'?[2J{'x' * 56}'"),
        (b"\n\n\n\n\n", "''"),
    ],
)
def test_who_answers_otherwise_is_shown(said: bytes, shown: str) -> None:
    with _somebody(said) as address, pytest.raises(ConnectionError) as told:
        check_ray_address(f"ray://{address}")
    assert str(told.value) == f"the program at that address is not Ray; it answers {shown}"


def test_a_web_server_is_not_ray() -> None:
    """As when somebody gives the port of Ray's dashboard."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(ConnectionError, match="is not Ray; it answers"):
            check_ray_address(f"ray://127.0.0.1:{server.server_port}")
        thread.join()


def test_a_word_is_left_to_ray() -> None:
    check_ray_address("auto")
