"""A model's address that is no API: told within a few tries, with the cause in the first line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import passhat as api
from passhat.agents import provider as provider_module
from passhat.agents.base import ProviderFault
from passhat.agents.provider import Provider, ProviderError
from passhat.agents.provider_tables import ErrorKind
from passhat.errors import RunStopped

TASKS = [{"id": f"t{i}", "prompt": "2 + 2?", "answer": "4"} for i in range(4)]
PAGE = b"<!DOCTYPE html><title>Sign in</title>"


class _Pages(BaseHTTPRequestHandler):
    """Serves web pages: at /v1 one with status 200, at /old one behind a redirect, else a 404."""

    def do_GET(self) -> None:
        self._send(200, PAGE)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.path.startswith("/v1"):
            self._send(200, PAGE)
        elif self.path.startswith("/old"):
            self._send(302, b"", location="/login")
        else:
            self._send(404, b"<html>Not found</html>")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.server.requests += 1  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in {"content-type": "text/html", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def _serve_pages() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        server.requests = 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "_FIRST_PAUSE", 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


@pytest.mark.parametrize(
    ("word", "path", "message"),
    [
        ("openai:small", "/v1", "serves web pages, not an API. an answer that is not JSON: '<!DOC"),
        ("openai:small", "/old", "serves web pages, not an API"),
        ("anthropic:small", "/v1", "serves web pages, not an API"),
        ("openai:small", "/other", "cannot be used. HTTP 404"),
    ],
)
def test_a_site_that_is_no_api(word: str, path: str, message: str) -> None:
    with _serve_pages() as server:
        url = f"http://127.0.0.1:{server.server_port}{path}"
        with pytest.raises(RunStopped, match=message) as caught:
            api.run(f"{word}@{url}", TASKS, n=4, jobs=1, progress=False)
        assert f"http://127.0.0.1:{server.server_port}" in caught.value.message
        assert server.requests <= 4  # two tries, each perhaps with a redirect


def test_a_page_of_an_address_that_answered_before_is_tried_again() -> None:
    provider = Provider("openai", "http://host/v1", None)
    page = ProviderError(ErrorKind.PAGE, "an answer that is not JSON")
    provider._give_up(page, "small", 0)
    with pytest.raises(RunStopped):
        provider._give_up(page, "small", 1)
    provider.pace.note_answer()
    provider._give_up(page, "small", 7)
    with pytest.raises(ProviderFault, match="given up after 8 retries"):
        provider._give_up(page, "small", 8)


def _hang_up(connection: socket.socket) -> None:
    connection.close()


def _speak_another_language(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    connection.close()


@contextmanager
def _listen(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection = server.accept()[0]
                    with suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("answer", [_hang_up, _speak_another_language])
def test_a_port_that_does_not_speak_http(answer: Callable[[socket.socket], None]) -> None:
    message = "3 of 3 attempts could not be made: given up after 3 retries; Connection error"
    with _listen(answer) as url, pytest.raises(RunStopped, match=message):
        api.run(f"openai:small@{url}", TASKS, n=4, jobs=1, progress=False)


def test_a_port_that_never_answers() -> None:
    message = "3 of 3 attempts got no answer in time: wall clock: no answer within 0.1 s"
    open_connections: list[socket.socket] = []
    with _listen(open_connections.append) as url, pytest.raises(RunStopped, match=message):
        api.run(f"openai:small@{url}", TASKS, n=4, jobs=1, step_seconds=0.1, progress=False)
    for connection in open_connections:
        connection.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_an_address_without_a_server(url: str) -> None:
    with pytest.raises(RunStopped, match="nothing answers at"):
        api.run(f"openai:small@{url}", TASKS, n=4, progress=False)
