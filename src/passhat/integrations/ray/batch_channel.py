"""Batches to one Ray worker and what came of them, many at a time.

A call to a worker costs some 3 ms of processors, at both ends together: as much as everything else
about a short attempt. So one call takes along what all slots hand in, stays open at the worker, and
brings back what is finished by then.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from passhat.integrations.ray.ray_worker import BatchResult
from passhat.runner.queues import Wanted

__all__ = ["BatchChannel", "result_of"]

_REFILL_SECONDS = 0.005
"""Slots that got a result hand in their next batch within this, or have none."""


class BatchChannel:
    """This end of the way to one worker, which is at the other.

    Parameters
    ----------
    actor : ray.actor.ActorHandle
        A :class:`~passhat.integrations.ray.ray_worker.RayWorker`.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._tickets = itertools.count()
        self._unsent: list[tuple[int, Sequence[Wanted]]] = []
        self._open: dict[int, asyncio.Future[BatchResult]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._lives = 0
        self._expected = 1
        self._sending: asyncio.Handle | None = None

    async def made(self, batch: Sequence[Wanted]) -> BatchResult:
        """What came of a batch; raises what the call to the worker raised."""
        loop = asyncio.get_running_loop()
        ticket = next(self._tickets)
        coming: asyncio.Future[BatchResult] = loop.create_future()
        self._open[ticket] = coming
        self._unsent.append((ticket, batch))
        if len(self._unsent) >= self._expected:
            self._send_by(loop.call_soon(self._send))
        try:
            return await coming
        finally:
            self._open.pop(ticket, None)

    def close(self) -> None:
        """Nobody waits any more."""
        if self._sending is not None:
            self._sending.cancel()
        for call in self._calls:
            call.cancel()

    def _send_by(self, handle: asyncio.Handle) -> None:
        if self._sending is not None:
            self._sending.cancel()
        self._sending = handle

    def _send(self) -> None:
        """Take along what was handed in; an open call has to be there while anything is made."""
        self._sending = None
        self._expected = 1
        if not self._unsent and (self._calls or not self._open):
            return
        unsent, self._unsent = self._unsent, []
        call = asyncio.create_task(self._call(unsent, self._lives))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, batches: Sequence[tuple[int, Sequence[Wanted]]], life: int) -> None:
        try:
            finished: list[tuple[int, BatchResult]] = await result_of(
                self._actor.exchange.remote(batches)
            )
        except Exception as error:
            if life == self._lives:  # or another call said it before
                self._lose_all(error)
            return
        for ticket, made in finished:
            if (coming := self._open.get(ticket)) is not None and not coming.done():
                coming.set_result(made)
        if self._sending is None:
            self._expected = max(1, len(finished))
            loop = asyncio.get_running_loop()
            self._sending = loop.call_later(_REFILL_SECONDS, self._send)

    def _lose_all(self, error: Exception) -> None:
        """A worker that died knows nothing of what it was given."""
        self._lives += 1
        self._expected = 1
        self._unsent = []
        for coming in self._open.values():
            if not coming.done():
                coming.set_exception(error)


async def result_of(reference: Any) -> Any:
    """What a call to a worker returns.

    Whoever waits may be cancelled; Ray's own future must not be, it is still going to be set.
    """
    loop = asyncio.get_running_loop()
    ours: asyncio.Future[Any] = loop.create_future()

    def hand_over(theirs: Future[Any]) -> None:
        if ours.done():
            return
        if (error := theirs.exception()) is not None:
            ours.set_exception(error)
        else:
            ours.set_result(theirs.result())

    def done(theirs: Future[Any]) -> None:
        with suppress(RuntimeError):  # the run is over, and its loop closed
            loop.call_soon_threadsafe(hand_over, theirs)

    reference.future().add_done_callback(done)
    return await ours
