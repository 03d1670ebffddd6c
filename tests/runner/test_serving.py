"""A server within the event loop: one that is not wanted any more leaves nothing open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from passhat.runner.serving import Listening, open_socket


def test_a_start_that_is_given_up_leaves_nothing_open() -> None:
    begun = asyncio.Event()

    async def never_ready(_scope: Any, _receive: Any, _send: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def play() -> None:
        sock = open_socket("127.0.0.1", 0)
        starting = asyncio.create_task(Listening(never_ready, sock).__aenter__())
        await asyncio.wait_for(begun.wait(), 60)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert sock.fileno() == -1

    asyncio.run(play())


async def _hello(scope: Any, _receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-ok", b"1")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_that_never_sends_its_head_is_closed(head: bytes) -> None:
    async def play() -> None:
        async with Listening(_hello, header_seconds=0.05) as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head)
            assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()

    asyncio.run(play())


def test_a_second_head_that_stays_half_is_closed_too_and_an_idle_connection_is_kept() -> None:
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    async def play() -> None:
        async with Listening(_hello, header_seconds=0.05) as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            for _ in range(2):
                writer.write(request)
                assert b"200" in await asyncio.wait_for(reader.readuntil(b"hello"), 60)
            writer.write(request[:10])
            assert b"HTTP" not in await asyncio.wait_for(reader.read(), 60)
            writer.close()

    asyncio.run(play())


def test_connections_beyond_the_most_are_closed_at_once() -> None:
    async def play() -> None:
        async with Listening(_hello, most_connections=2) as server:
            host, port = server.url.removeprefix("http://").split(":")
            first = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
            for reader, writer in first:
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"200" in await asyncio.wait_for(reader.readuntil(b"hello"), 60)
            reader, third = await asyncio.open_connection(host, int(port))
            assert await asyncio.wait_for(reader.read(), 60) == b""
            for _, writer in [*first, (reader, third)]:
                writer.close()

    asyncio.run(play())
