"""Notice an agent that blocks the event loop, and end it at its limit.

A coroutine that never awaits (a synchronous client inside ``async def``) holds up every attempt of
its process, and the timers that would end it. So a thread watches each uninterrupted step of an
agent. Time in which the process stood still, or waited for a processor, is not the agent's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["LoopBlocked", "LoopWatch"]

_TICK_SECONDS = 0.05
_NOTICE_SECONDS = 4.0
_AGAIN_SECONDS = 1.0


class LoopBlocked(BaseException):
    """Raised inside an agent's step that takes longer than its limit."""


class LoopWatch:
    """Watches the steps of all agents of one event loop.

    Parameters
    ----------
    limit : float
        Seconds that an agent may take for one step of a conversation.
    tell : callable
        Called once, with a notice, when an agent blocks the loop for seconds.
    """

    def __init__(self, limit: float, tell: Callable[[str], object]) -> None:
        self._limit = limit
        self._tell = tell
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._number = 0
        self._is_inside = self._was_raised = self._was_told = False
        self._thread_id = threading.get_ident()
        self._native_id = threading.get_native_id()

    def start(self) -> None:
        """Begin to watch the present thread."""
        self._thread_id = threading.get_ident()
        self._native_id = threading.get_native_id()
        threading.Thread(target=self._keep, daemon=True, name="loop watch").start()

    def stop(self) -> None:
        self._over.set()

    def enter(self) -> None:
        """An agent's code is about to be called."""
        self._number += 1
        self._is_inside = True

    def leave(self) -> bool:
        """The agent's code came back; return whether that was after its limit."""
        with self._lock:
            self._is_inside = False
            was_raised, self._was_raised = self._was_raised, False
            if was_raised:  # it may not have been delivered yet, and must not meet the runner
                _raise_in_thread(self._thread_id, None)
        return was_raised

    def _keep(self) -> None:
        number, blocked, due = 0, 0.0, self._limit
        last, waited = time.monotonic(), 0.0
        while not self._over.wait(_TICK_SECONDS):
            now = time.monotonic()
            elapsed, last = now - last, now
            if not self._is_inside:
                continue
            waited, before = self._waiting_seconds(), waited
            if number != self._number:
                number, blocked, due = self._number, 0.0, self._limit
                continue
            # A longer tick than two: this process was stopped, or had no processor.
            blocked += max(0.0, min(elapsed, 2 * _TICK_SECONDS) - (waited - before))
            if blocked >= _NOTICE_SECONDS and not self._was_told:
                self._was_told = True
                self._tell(
                    f"agent blocks the event loop for {blocked:.0f} s: attempts run one at a time; "
                    "make it a plain function (def instead of async def)"
                )
            if blocked >= due:
                due = blocked + _AGAIN_SECONDS  # it may swallow the first one
                self._interrupt(number)

    def _interrupt(self, number: int) -> None:
        with self._lock:
            if self._is_inside and self._number == number:
                self._was_raised = True
                _raise_in_thread(self._thread_id, LoopBlocked)

    def _waiting_seconds(self) -> float:
        """Seconds in which the loop's thread was ready to run and had no processor, so far."""
        try:
            text = Path(f"/proc/self/task/{self._native_id}/schedstat").read_text(encoding="ascii")
            return int(text.split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # not Linux
            return 0.0


def _raise_in_thread(thread_id: int, error: type[BaseException] | None) -> None:
    """Raise an exception in another thread, or take back one that is not delivered yet."""
    import ctypes

    pointer = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), pointer)
