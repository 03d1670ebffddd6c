"""An event loop whose clock a test sets forward, instead of waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["move_clock", "run_with_clock"]

T = TypeVar("T")


class _MovedLoop(asyncio.SelectorEventLoop):
    moved = 0.0

    def time(self) -> float:
        return super().time() + self.moved


def run_with_clock(whole: Coroutine[Any, Any, T]) -> T:
    """Like ``asyncio.run``; what runs in it may call :func:`move_clock`."""
    with asyncio.Runner(loop_factory=_MovedLoop) as runner:
        return runner.run(whole)


def move_clock(seconds: float) -> None:
    """Let so much time pass at once: timers are late by it, as if the process had stood still."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _MovedLoop)
    loop.moved += seconds
