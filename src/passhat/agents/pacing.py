"""Rate limit and pauses that all calls to a provider share."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterable
from types import MappingProxyType

from passhat.errors import InvalidValue

_RATE = re.compile(r"(?:(?P<provider>[\w-]+)=)?(?P<count>\d+(?:\.\d+)?)/(?P<unit>[a-z]+)")
_SECONDS = MappingProxyType(
    {"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
)


class Bucket:
    """A token bucket: a number of calls per second, with bursts of up to one second.

    Examples
    --------
    >>> bucket = Bucket(per_second=2)
    >>> [bucket.take(now=10.0) for _ in range(4)]
    [0.0, 0.0, 0.5, 1.0]
    """

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._most = max(1.0, per_second)
        self._tokens = self._most
        self._filled = 0.0

    def take(self, now: float) -> float:
        """Take a place in the queue; returns the seconds until it is its turn."""
        if self._filled:
            new_tokens = (now - self._filled) * self.per_second
            self._tokens = min(self._most, self._tokens + new_tokens)
        self._filled = now
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self.per_second


def read_rates(words: Iterable[str]) -> dict[str, float]:
    """Calls per second by provider; ``""`` stands for every provider.

    Examples
    --------
    >>> read_rates(["openai=120/min", "1/s"])
    {'openai': 2.0, '': 1.0}
    """
    rates: dict[str, float] = {}
    for word in words:
        match = _RATE.fullmatch(word.strip())
        if match is None or match["unit"] not in _SECONDS or float(match["count"]) == 0:
            raise InvalidValue(
                f"rate takes COUNT/s, COUNT/min or COUNT/h, not {word!r}.",
                hint="As in rate=60/min, or rate=openai=60/min for one provider.",
            )
        rates[match["provider"] or ""] = float(match["count"]) / _SECONDS[match["unit"]]
    return rates


_SPREAD = 0.1
"""Part of a pause over which attempts come back one after the other."""


class Pace:
    """When the next call may be made; ``answered`` is whether the provider ever took one."""

    def __init__(self) -> None:
        self.answered = False
        self._bucket: Bucket | None = None
        self._resume = 0.0
        self._spread = 0.0
        self._dice = random.Random()

    @property
    def is_limited(self) -> bool:
        """Whether a rate is set, apart from pauses that the provider asks for."""
        return self._bucket is not None

    @property
    def left(self) -> float:
        """Seconds until the end of the pause, if there is one."""
        return max(0.0, self._resume - time.monotonic())

    def limit(self, per_second: float) -> None:
        """Let calls be made at most so often from now on."""
        self._bucket = Bucket(per_second)

    def hold(self, seconds: float) -> None:
        """Hold all calls for so many seconds."""
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
