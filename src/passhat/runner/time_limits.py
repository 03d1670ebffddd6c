"""Time limits of all attempts that are under way, kept by one timer.

A timer for every attempt costs as much as all else that the runner does for an instant agent, so
one task looks at all clocks a few times a second. An agent that swallows its cancellation is
cancelled again until it gives way.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

__all__ = ["Clock", "Limits", "Watch"]

_FINEST, _COARSEST = 0.005, 0.25
_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may use: turns of the agent, seconds per turn, seconds in all."""

    max_steps: int = 30
    step_seconds: float = 60.0
    attempt_seconds: float = 600.0


class Clock:
    """One attempt's time. Starting the agent counts towards its first step."""

    __slots__ = ("_cancels", "_end", "_limits", "_now", "_reason", "_task", "due")

    def __init__(self, limits: Limits, task: asyncio.Task[object], now: float) -> None:
        self._limits = limits
        self._task = task
        self._now = task.get_loop().time
        self._end = now + limits.attempt_seconds
        self._cancels = 0
        self._reason = ""
        self.due = min(now + limits.step_seconds, self._end)

    def next_step(self) -> None:
        """From now on the agent has the time for one step, within what is left of the whole."""
        self.due = min(self._now() + self._limits.step_seconds, self._end)

    def expire(self, now: float) -> None:
        """Cancel what the attempt is waiting for."""
        if not self._reason:
            whole = now >= self._end
            self._reason = (
                f"wall clock: over {self._limits.attempt_seconds:g} s in all"
                if whole
                else f"wall clock: no answer within {self._limits.step_seconds:g} s"
            )
        self.due = now + _AGAIN_SECONDS
        self._cancels += 1
        self._task.cancel()

    def verdict(self) -> str | None:
        """Why the attempt was cancelled; ``None`` when it was not, or the whole run is."""
        left = 0
        for _ in range(self._cancels):
            left = self._task.uncancel()
        self._cancels = 0
        return self._reason if self._reason and left == 0 else None


class Watch:
    """All clocks that are running."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._clocks: set[Clock] = set()
        shortest = min(limits.step_seconds, limits.attempt_seconds)
        self._pause = min(max(shortest / 20, _FINEST), _COARSEST)

    def start(self) -> Clock:
        """A clock for an attempt that the present task is about to make."""
        task = asyncio.current_task()
        assert task is not None
        clock = Clock(self._limits, task, task.get_loop().time())
        self._clocks.add(clock)
        return clock

    def end(self, clock: Clock) -> None:
        self._clocks.discard(clock)

    async def keep(self) -> None:
        """Look at the clocks for ever; whoever starts this cancels it."""
        time = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._pause)
            now = time()
            # The earliest first: on a machine that was asleep, all are due at once.
            if min((clock.due for clock in self._clocks), default=math.inf) <= now:
                for clock in [clock for clock in self._clocks if clock.due <= now]:
                    clock.expire(now)
