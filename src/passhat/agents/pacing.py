"""What all calls to one provider share: its rate, the pauses it asked for, its first answer."""

from __future__ import annotations

import asyncio
import random
import time

from passhat.agents.rates import Bucket

__all__ = ["Pace"]

_SPREAD = 0.1
"""Part of a pause over which attempts come back one after the other."""


class Pace:
    """When the next call may be made.

    Attributes
    ----------
    answered : bool
        Whether the provider ever took a call.
    """

    def __init__(self) -> None:
        self.answered = False
        self._bucket: Bucket | None = None
        self._resume = 0.0
        self._spread = 0.0
        self._dice = random.Random()

    @property
    def is_limited(self) -> bool:
        """Whether there is a rate, beside the pauses that come as they come."""
        return self._bucket is not None

    @property
    def left(self) -> float:
        """Seconds until the end of the pause, if there is one."""
        return max(0.0, self._resume - time.monotonic())

    def limit(self, per_second: float) -> None:
        """Let calls be made at most so often from now on."""
        self._bucket = Bucket(per_second)

    def hold(self, seconds: float) -> None:
        """Let nobody call for so long."""
        self._resume = max(self._resume, time.monotonic() + seconds)
        self._spread = _SPREAD * seconds

    def note_answer(self) -> None:
        """A call was taken."""
        self.answered = True

    async def turn(self) -> None:
        """Wait for a place under the rate, and for the end of a pause."""
        turn = 0.0
        if self._bucket is not None:
            turn = time.monotonic() + self._bucket.take(time.monotonic())
        while (left := max(turn, self._resume) - time.monotonic()) > 0:
            await asyncio.sleep(left + self._dice.uniform(0.0, self._spread))
