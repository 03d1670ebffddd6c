"""Functions as agents: one that is still at work when the run is over disturbs nobody."""

from __future__ import annotations

import asyncio
import threading

import pytest

from passhat.agents.function import _in_daemon_thread


def test_an_answer_that_comes_while_the_loop_closes_is_left_unheard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not told beforehand that the loop is closed, and must not fall over it."""
    over, threads = threading.Event(), list[threading.Thread]()
    broken: list[object] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)

    def late() -> str:
        threads.append(threading.current_thread())
        over.wait(60)
        return "yes"

    async def play() -> asyncio.AbstractEventLoop:
        asking = asyncio.create_task(_in_daemon_thread(late))
        while not threads:
            await asyncio.sleep(0.001)
        asking.cancel()
        return asyncio.get_running_loop()

    loop = asyncio.run(play())
    with monkeypatch.context() as patch:
        patch.setattr(loop, "is_closed", lambda: False)  # it was open a moment ago
        over.set()
        threads[0].join(60)
    assert not broken
