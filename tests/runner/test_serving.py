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
