"""Time limits of all attempts that are under way, kept by one timer.

A timer for every attempt costs as much as all else that the runner does for an instant agent, so
one task looks at all clocks a few times a second. An agent that swallows its cancellation is
cancelled again until it gives way.

A coroutine that never awaits (a synchronous client inside ``async def``) holds up every attempt of
its process, and the timer. So a thread watches each uninterrupted step of an agent. Time in which
the process stood still, or waited for a processor, is not the agent's.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passhat.stats.outcomes import MissingReason

_FINEST, _COARSEST = 0.005, 0.25
_AGAIN_SECONDS = 1.0
_TICK_SECONDS = 0.05
_NOTICE_SECONDS = 4.0
_VAIN_INTERRUPTS = 10
_NUDGE = getattr(signal, "SIGURG", 0)
"""A signal that no program needs and that does nothing where it is not handled."""
_HELD_UP, _HELD_UP_PART = 0.5, 0.25
"""A look that is late by so much, or by this part of the shortest limit: the machine was asleep, or
busy with something else."""


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Limits of an attempt: turns of the agent, seconds per turn, seconds in all."""

    max_steps: int = 30
    step_seconds: float = 60.0
    attempt_seconds: float = 600.0


class LoopBlocked(BaseException):
    """Raised inside an agent's step that takes longer than its limit."""


class LoopWatch:
    """Watches the steps of all agents of one event loop.

    ``limit`` is in seconds, for one step of a conversation. ``tell`` is called once, with a notice,
    when an agent blocks the loop for seconds.
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
        self._handler: Any = None
        self._interrupts = 0

    def start(self) -> None:
        """Begin to watch the present thread."""
        self._thread_id = threading.get_ident()
        self._native_id = threading.get_native_id()
        if threading.current_thread() is threading.main_thread() and _NUDGE:
            self._handler = signal.signal(_NUDGE, lambda *_: None)
        threading.Thread(target=self._keep, daemon=True, name="loop watch").start()

    def stop(self) -> None:
        self._over.set()
        if self._handler is not None:
            signal.signal(_NUDGE, self._handler)
            self._handler = None

    def enter(self) -> None:
        """An agent's code is about to be called."""
        self._number += 1
        self._is_inside = True

    def leave(self) -> bool:
        """The agent's code came back; return whether that was after its limit."""
        self._is_inside = False
        # The watching thread raises under its lock, and only while this is true.
        if not self._was_raised and not self._lock.locked():
            return False
        with self._lock:
            was_raised, self._was_raised = self._was_raised, False
            self._interrupts = 0
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
                self._interrupts += 1
                _raise_in_thread(self._thread_id, LoopBlocked)
                if self._handler is not None:
                    # Python runs a handler in the middle of time.sleep or socket.recv, and raises
                    # in the handler what waits to be raised in its thread.
                    signal.pthread_kill(self._thread_id, _NUDGE)
        if self._interrupts == _VAIN_INTERRUPTS:
            self._tell(
                "the agent cannot be interrupted and holds up the whole run: end this process with "
                f"kill -9 {os.getpid()}. Finished attempts are kept; give the agent as "
                "python:MODULE:NAME, and it runs in worker processes, which can be ended"
            )

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


class Clock:
    """The time of the attempt that a worker is making; one attempt after the other."""

    __slots__ = (
        *("_cancels", "_end", "_left", "_limits", "_now", "_pauses", "_reason", "_since", "_task"),
        *("blocking", "due", "paused", "whose"),
    )

    def __init__(
        self, limits: AttemptLimits, task: asyncio.Task[object], blocking: LoopWatch
    ) -> None:
        self._limits = limits
        self.blocking = blocking
        self._task = task
        loop = task.get_loop()
        # What the usual loop calls; an attempt asks for the time half a dozen times.
        usual = getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time
        self._now = time.monotonic if usual else loop.time
        self._end = self.due = math.inf
        self._cancels = self._pauses = 0
        self._reason = ""
        self._since = self._left = self.paused = 0.0
        self.whose: MissingReason | None = None

    def start(self) -> None:
        """An attempt begins."""
        self._end = self._now() + self._limits.attempt_seconds
        self._reason = ""
        self._pauses = 0
        self.paused = 0.0
        self.next_step()

    def stop(self) -> None:
        """The attempt is over."""
        self._end = self.due = math.inf

    def next_step(self) -> None:
        """Start the time of a step, within the rest of the attempt's time."""
        self.whose = None
        now = self._now()
        due = now + self._limits.step_seconds
        if due > self._end:
            due = self._end
        if self._pauses:
            self._left = due - now
        else:
            self.due = due

    def next_reply(self, whose: MissingReason) -> None:
        """From now on the world has it: a delay is not the agent's, but a missing attempt."""
        self.next_step()
        self.whose = whose

    def judging(self) -> None:
        """From now on the judge has it, with as much time as a whole attempt."""
        self._end = self.due = self._now() + self._limits.attempt_seconds
        self.whose = MissingReason.JUDGE_ERROR

    def pause(self) -> None:
        """Stop the clock: the attempt waits for something that is not the agent's doing."""
        self._pauses += 1
        if self._pauses == 1:
            self._since = self._now()
            self._left = self.due - self._since
            self.due = math.inf

    def resume(self) -> None:
        """Restart the clock with the time that was left."""
        self._pauses -= 1
        if self._pauses == 0:
            now = self._now()
            self.paused += now - self._since
            self._end += now - self._since
            self.due = now + self._left

    def forgive(self, seconds: float) -> None:
        """Time in which this process was held up is not the agent's."""
        if not self._pauses:  # else it is forgiven already
            self._end += seconds
            self.due += seconds

    def expire(self, now: float) -> None:
        """Cancel the attempt's current wait."""
        if not self._reason:
            whole = now >= self._end
            self._reason = (
                f"wall clock: over {self._limits.attempt_seconds:g} s in all"
                if whole
                else self.describe_step_limit()
            )
        self.due = now + _AGAIN_SECONDS
        self._cancels += 1
        self._task.cancel()

    def describe_step_limit(self) -> str:
        return f"wall clock: no answer within {self._limits.step_seconds:g} s"

    def is_over(self) -> bool:
        """Whether the attempt continued although it was canceled at its limit."""
        return bool(self._reason) and self._cancels > 1

    def forget_cancellations(self) -> None:
        """Take back every cancellation of the task: they were the agent's."""
        while self._task.cancelling():
            self._task.uncancel()

    def verdict(self) -> str | None:
        """Why the attempt was cancelled; ``None`` when it was not, or the whole run is."""
        if not self._reason:
            return None
        left = 0
        for _ in range(self._cancels):
            left = self._task.uncancel()
        self._cancels = 0
        return self._reason if left == 0 else None


class Watch:
    """The clocks of all workers; ``tell`` is called with a notice about a blocked event loop."""

    def __init__(
        self, limits: AttemptLimits, tell: Callable[[str], object] = lambda _text: None
    ) -> None:
        self._limits = limits
        self._clocks: list[Clock] = []
        self._tell = tell
        self._blocking = LoopWatch(limits.step_seconds, self._note_blocking)
        shortest = min(limits.step_seconds, limits.attempt_seconds)
        self._pause = min(max(shortest / 20, _FINEST), _COARSEST)
        self._held_up = min(_HELD_UP, _HELD_UP_PART * shortest)

    def _note_blocking(self, notice: str) -> None:
        if len(self._clocks) > 1:  # else attempts run one at a time anyway
            self._tell(notice)

    def clock(self) -> Clock:
        """A clock for the present task, which makes attempts."""
        task = asyncio.current_task()
        assert task is not None
        self._clocks.append(Clock(self._limits, task, self._blocking))
        return self._clocks[-1]

    def forget(self, clock: Clock) -> None:
        """Its task makes no more attempts."""
        self._clocks.remove(clock)

    async def keep(self) -> None:
        """Check the clocks until canceled by the caller."""
        now = asyncio.get_running_loop().time
        self._blocking.start()
        try:
            while True:
                before = now()
                await asyncio.sleep(self._pause)
                self.look(before, now())
        finally:
            self._blocking.stop()

    def look(self, before: float, now: float) -> None:
        """Cancel what is due; a look that comes late is not held against the attempts."""
        if (late := now - before - self._pause) > self._held_up:
            for clock in self._clocks:
                clock.forgive(late)
        for clock in self._clocks:
            if clock.due <= now:
                clock.expire(now)
