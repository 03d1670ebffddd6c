"""Functions as agents: one that is still at work when the run is over disturbs nobody."""

from __future__ import annotations

import asyncio
import decimal
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


def test_the_precision_that_an_attempt_sets_is_gone_in_the_next() -> None:
    def coarse() -> str:
        before = decimal.getcontext().prec
        decimal.getcontext().prec = 5
        return f"{before}: {decimal.Decimal(1) / 3}"

    async def ask_twice() -> list[str]:
        return [await _in_daemon_thread(coarse) for _ in range(2)]

    with decimal.localcontext(prec=9):  # the process has a context that copies share
        assert asyncio.run(ask_twice()) == ["9: 0.33333"] * 2
        assert decimal.getcontext().prec == 9
