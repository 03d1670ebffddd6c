"""Between the store and those who make attempts: claims on one way, results on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from passhat.errors import StoreUnavailable
from passhat.store import AttemptRecord

__all__ = ["Claims", "Outbox", "StoreRetry", "Wanted"]

T = TypeVar("T")
Wanted = tuple[str, int]
"""A task and the number of an attempt at it."""

_DRAIN_SECONDS = 0.02
"""Finished attempts wait at most this long to be written together."""
_UNWRITTEN = 1_000
"""More than this many finished attempts are never held in memory."""
_QUICK_SECONDS = 0.1
"""A block of claims that is used up sooner than this was too small."""
_LARGEST_BLOCK = 500
_PAUSE_SECONDS = 0.5


class StoreRetry:
    """Waits for a store that is locked, full or away, rather than lose what was made.

    Parameters
    ----------
    seconds : float
        After so long it is given up.
    tell : callable
        Hears the reason, once for every time of trouble.
    """

    def __init__(self, seconds: float, tell: Callable[[str], None]) -> None:
        self._seconds = seconds
        self._tell = tell

    async def __call__(self, work: Callable[[], T]) -> T:
        time = asyncio.get_running_loop().time
        end = None
        while True:
            try:
                return work()
            except StoreUnavailable as error:
                if end is None:
                    end = time() + self._seconds
                    self._tell(f"{error.message} Trying again for {self._seconds:g} s.")
                if time() >= end:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)


class Claims:
    """Attempts to be made, claimed in blocks that grow while they are used up quickly.

    Parameters
    ----------
    claim : callable
        Marks attempts as being made, and returns those that nobody else has.
    todo : iterator
        Attempts in the order in which they are to be made.
    jobs : int
        Attempts at the same time: the smallest block.
    wanted : callable
        Whether anything new is still to be started.
    retry : StoreRetry
        For a store that is not to be had for the moment.
    """

    def __init__(
        self,
        claim: Callable[[Sequence[Wanted]], list[Wanted]],
        todo: Iterator[Wanted],
        jobs: int,
        wanted: Callable[[], bool],
        retry: StoreRetry,
    ) -> None:
        self._claim = claim
        self._todo = todo
        self._jobs = self._size = jobs
        self.more_wanted = wanted
        self._patience = retry
        self._claiming = asyncio.Lock()
        self._claimed: list[Wanted] = []
        self._time = asyncio.get_running_loop().time
        self._last = 0.0

    async def following(self) -> Wanted | None:
        """The next attempt; ``None`` when there is none, or no more are wanted."""
        if not self._claimed:
            async with self._claiming:
                while not self._claimed and self.more_wanted():
                    block = self._block()
                    if not block:
                        return None
                    got = await self._patience(partial(self._claim, block))
                    self._claimed = got[::-1]
        return self._claimed.pop() if self._claimed and self.more_wanted() else None

    def _block(self) -> list[Wanted]:
        now = self._time()
        quick = now - self._last < _QUICK_SECONDS
        self._size = min(2 * self._size, _LARGEST_BLOCK) if quick else self._jobs
        self._last = now
        return list(islice(self._todo, max(self._size, self._jobs)))


class Outbox:
    """Finished attempts on their way to the store."""

    def __init__(self) -> None:
        self._records: list[AttemptRecord] = []
        self._some = asyncio.Event()
        self._emptied = asyncio.Event()
        self.closed = False

    def put(self, record: AttemptRecord) -> None:
        self._records.append(record)
        self._some.set()

    async def room(self) -> None:
        """Let others have their turn; wait while too much is unwritten."""
        await asyncio.sleep(0)
        while len(self._records) >= _UNWRITTEN:
            await self._emptied.wait()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._some.set()

    async def take(self) -> list[AttemptRecord]:
        """What has come, after a moment in which more may come; empty once it is closed."""
        await self._some.wait()
        if not self.closed:
            await asyncio.sleep(_DRAIN_SECONDS)
        records, self._records = self._records, []
        if not self.closed:
            self._some.clear()
        self._emptied.set()
        self._emptied = asyncio.Event()
        return records
