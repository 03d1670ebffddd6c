"""Queues between the store and the workers: claims one way, results the other way."""

from __future__ import annotations

import asyncio
import math
import threading
import types
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

from passhat.errors import PasshatError, ReadError, RunStopped, StoreUnavailable
from passhat.runner.redaction import Redactor
from passhat.stats.gate.sequential_gate import Look, Watcher
from passhat.stats.outcomes import Outcomes, Run, Verdict
from passhat.store import AttemptRecord


class StopRule:
    """Decides from the verdicts so far whether a run can stop; without rules, never.

    ``attempts`` are planned at every one of ``tasks``, all of the plan's. ``seed`` draws the order
    of tasks; see :meth:`passhat.runner.run.RunPlan.order_seed`.
    """

    def __init__(
        self, rules: Sequence[str], tasks: Sequence[str], attempts: int, seed: int | str
    ) -> None:
        self._watcher = Watcher(rules, tasks=tasks, attempts=attempts, seed=seed) if rules else None
        self._attempts = attempts
        self._verdicts: dict[str, dict[int, Verdict]] = {}
        self._whole: list[str] = []
        self.look: Look | None = None

    @property
    def settled(self) -> bool:
        return self.look is not None and self.look.settled

    def take(self, task: str, number: int, verdict: Verdict) -> None:
        """Add a verdict. Rules are evaluated only in :meth:`ask`."""
        if self._watcher is None or number > self._attempts:
            return
        verdicts = self._verdicts.setdefault(task, {})
        verdicts[number] = verdict
        if len(verdicts) == self._attempts:
            self._whole.append(task)

    def ask(self) -> bool:
        """Whether the rules are settled, after all verdicts so far."""
        if self._watcher is not None and self._whole and not self.settled:
            tasks = [self._verdicts[task] for task in self._whole]
            rows = [[int(verdicts[i]) for i in sorted(verdicts)] for verdicts in tasks]
            self.look = self._watcher.look(Run("", "", Outcomes.from_matrix(rows, self._whole)))
        return self.settled


T = TypeVar("T")
AttemptKey = tuple[str, int]
"""A task and the number of an attempt at it."""

_DRAIN_SECONDS = 0.05
"""Finished attempts wait at most this long to be written together."""
_UNWRITTEN = 1_000
"""More than this many finished attempts are never held in memory."""
_UNDECIDED = 50
"""With a rule that may end the run, fewer: what is made meanwhile may not have been needed."""
_QUICK_SECONDS = 0.5
_QUERY_SECONDS = 1.0
"""A block of claims that is used up sooner than this was too small."""
_LARGEST_BLOCK = 500
_PAUSE_SECONDS = 0.5
_ANNOUNCE_SECONDS = 4.0
"""A store that has not answered for so long is announced."""
_CALL_SECONDS = 30.0
"""A call that has not come back after so long is cut off and made again."""
_INTERRUPTED_SECONDS = 15.0
"""Longer than the store tries to connect: that cannot be interrupted."""
_STEP_SECONDS = 0.5
_CANCEL_SECONDS = 1.0


async def wait_in_steps(
    call: asyncio.Future[Any], seconds: float, before_each: Callable[[], object] = lambda: None
) -> bool:
    """Whether a call comes back in time; a standstill of this process counts as one short step.

    After a standstill all timers are due at once, before the call had a chance to come back.
    """
    for _ in range(math.ceil(seconds / _STEP_SECONDS)):
        before_each()
        done, _ = await asyncio.wait({call}, timeout=_STEP_SECONDS)
        if done:
            return True
    return False


def take_exception(future: asyncio.Future[Any]) -> None:
    """Mark an error as seen: asyncio prints one that was never awaited, in the middle of a run."""
    if not future.cancelled():
        future.exception()


def cancel_until_done(task: asyncio.Future[None]) -> None:
    """Cancel again and again: an agent may swallow the first cancellation."""
    if not task.done():
        task.cancel()
        task.get_loop().call_later(_CANCEL_SECONDS, cancel_until_done, task)


def raise_first_error(workers: asyncio.Task[None], redact: Redactor) -> None:
    """Raise a single error for a run that cannot go on, however many workers met it."""
    try:
        workers.result()
    except BaseExceptionGroup as group:
        errors = group.subgroup(PasshatError)
        if errors is None:
            raise
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if isinstance(first, RunStopped):  # it quotes the message of a server
            first = RunStopped(redact(first.message), hint=first.hint)
        raise first from None


class StoreThread:
    """Runs calls of one store one after the other, in a thread of their own.

    The event loop goes on meanwhile: agents are served, and Ctrl-C works, while a database is
    locked or silent. A daemon thread, because a call that never returns must not keep the process.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, daemon=True, name="store")
            self._thread.start()
        result: Future[T] = Future()
        self._calls.put((work, result))
        return result

    async def __call__(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        self._calls.put(None)

    def _keep(self) -> None:
        while (call := self._calls.get()) is not None:
            work, result = call
            if not result.set_running_or_notify_cancel():  # given up while it waited its turn
                continue
            try:
                result.set_result(work())
            except BaseException as error:
                result.set_exception(error)


class StoreRetry:
    """Retries store calls while the database is locked, full, silent or unreachable.

    Gives up after ``seconds``. ``tell`` is called with the reason, once per outage; ``interrupt``
    makes a call that does not come back fail.
    """

    def __init__(
        self,
        seconds: float,
        tell: Callable[[str], None],
        thread: StoreThread,
        interrupt: Callable[[], object] = lambda: None,
    ) -> None:
        self._seconds = seconds
        self._tell = tell
        self._thread = thread
        self._interrupt = interrupt
        self._hurried = asyncio.Event()
        self.has_failed = False
        """Whether a call failed: the server that answers next may lack the last commits."""

    @property
    def hurried(self) -> bool:
        """Whether the user asked not to wait any longer."""
        return self._hurried.is_set()

    def hurry(self) -> None:
        """Stop waiting for a locked or silent store; a store that answers is not affected."""
        self._hurried.set()

    async def __call__(self, work: Callable[[], T]) -> T:
        time = asyncio.get_running_loop().time
        began = time()
        is_announced = False

        def announce(reason: str) -> None:
            nonlocal is_announced
            if not is_announced:
                self._tell(f"{reason} Trying again for {self._seconds:g} s.")
            is_announced = True

        while True:
            try:
                return await self._call(work, announce)
            except StoreUnavailable as error:
                self.has_failed = True
                announce(error.message)
                if time() - began >= self._seconds or self.hurried:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _call(self, work: Callable[[], T], announce: Callable[[str], None]) -> T:
        future = self._thread.submit(work)
        call = asyncio.wrap_future(future)
        call.add_done_callback(take_exception)  # its caller may be canceled
        # Not wait_for, which would cancel the call when the time is over.
        done, _ = await asyncio.wait({call}, timeout=_ANNOUNCE_SECONDS)
        if not done:
            announce(f"The store has not answered for {_ANNOUNCE_SECONDS:g} s.")
            hurry = asyncio.ensure_future(self._hurried.wait())
            waits: set[asyncio.Future[Any]] = {call, hurry}
            await asyncio.wait(
                waits,
                timeout=_CALL_SECONDS - _ANNOUNCE_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            hurry.cancel()
        if not call.done() and future.cancel():
            # It waits for another call, which is cut off by itself; an interrupt would meet that.
            raise StoreUnavailable(
                f"cannot be used just now (it has not answered for {_CALL_SECONDS:g} s).",
                source="the store",
                hint="Finished attempts are kept; run the same command again when it can.",
            )
        if not call.done():
            patience = _ANNOUNCE_SECONDS if self.hurried else _INTERRUPTED_SECONDS
            await wait_in_steps(call, patience, self._interrupt)
        if not call.done():
            # The thread is stuck in the operating system (a network disk, say).
            raise ReadError(
                f"does not answer; a call has not returned for {_CALL_SECONDS:g} s.",
                source="the store",
                hint="Finished attempts are kept; run the same command again when it does.",
            )
        return call.result()


Refill = Callable[[], Awaitable[Iterator[AttemptKey] | None]]
"""Called when there is nothing more to claim; returns further attempts, if there are any."""


class Claims:
    """Attempts to be made, claimed in blocks that grow while they are used up quickly.

    ``claim`` marks attempts as being made, and returns those that no other runner has; ``refuse``
    is called with the number of the others. ``todo`` has the order in which to make them, ``jobs``
    is the smallest block. ``wanted`` is whether anything new is still to be started, and ``refill``
    returns attempts that other runners left behind meanwhile.
    """

    def __init__(
        self,
        claim: Callable[[Sequence[AttemptKey]], list[AttemptKey]],
        todo: Iterator[AttemptKey],
        jobs: int,
        wanted: Callable[[], bool],
        retry: StoreRetry,
        refill: Refill | None = None,
        refuse: Callable[[int], object] = lambda _count: None,
    ) -> None:
        self._claim = claim
        self._todo = todo
        self._jobs = self._size = jobs
        self.more_wanted = wanted
        self._retry = retry
        self._refill = refill
        self._refuse = refuse
        self.handed_out = 0
        self.in_flight: set[AttemptKey] = set()
        """Attempts handed out whose results are not written yet. One of them that was lost and is
        claimed again is already being made: its result counts, and it is not made twice."""
        self._claiming = asyncio.Lock()
        self._claimed: list[AttemptKey] = []
        self._time = asyncio.get_running_loop().time
        self._last = 0.0
        self._last_query = -math.inf

    async def next_attempt(self) -> AttemptKey | None:
        """The next attempt; ``None`` when there is none, or no more are wanted."""
        if not self._claimed:
            async with self._claiming:
                while not self._claimed and self.more_wanted():
                    block = self._block()
                    if block:
                        own_claims = await self._retry(partial(self._claim, block))
                        self._refuse(len(block) - len(own_claims))
                        # From the end, where pop() takes them in their order.
                        self._claimed = [
                            attempt
                            for attempt in reversed(own_claims)
                            if attempt not in self.in_flight
                        ]
                        continue
                    attempts = await self._find_more()
                    if attempts is None:
                        return None
                    self._todo = attempts
        if not self._claimed or not self.more_wanted():
            return None
        self.handed_out += 1
        attempt = self._claimed.pop()
        self.in_flight.add(attempt)
        return attempt

    def add(self, attempts: Iterator[AttemptKey]) -> None:
        """Go on with these attempts, after there were none."""
        self._todo = attempts

    async def _find_more(self) -> Iterator[AttemptKey] | None:
        """Attempts that other runners left; queried once for all workers that run out together."""
        now = self._time()
        if self._refill is None or now - self._last_query < _QUERY_SECONDS:
            return None
        attempts = await self._refill()
        self._last_query = self._time()
        return attempts

    async def check(self) -> None:
        """Drop claims that another runner took over; called when a result was refused."""
        async with self._claiming:
            pending, self._claimed = self._claimed, []
            if pending:
                self._claimed = await self._retry(partial(self._claim, pending))
                self._refuse(len(pending) - len(self._claimed))

    def _block(self) -> list[AttemptKey]:
        now = self._time()
        quick = now - self._last < _QUICK_SECONDS
        self._size = min(2 * self._size, _LARGEST_BLOCK) if quick else self._jobs
        self._last = now
        return list(islice(self._todo, max(self._size, self._jobs)))


class Outbox:
    """Finished attempts on their way to the store.

    ``decisive`` is whether what is written may end the run.
    """

    def __init__(self, *, decisive: bool = False) -> None:
        self._most = _UNDECIDED if decisive else _UNWRITTEN
        self._records: list[AttemptRecord] = []
        self._available = asyncio.Event()
        self._emptied = asyncio.Event()
        self.closed = False

    def put(self, record: AttemptRecord) -> None:
        self._records.append(record)
        self._available.set()

    @types.coroutine
    def wait_for_room(self) -> Generator[Any, Any, None]:
        """Let others have their turn; wait while too much is unwritten."""
        yield  # as asyncio.sleep(0), without two more coroutines for every attempt
        while len(self._records) >= self._most:
            yield from self._emptied.wait().__await__()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._available.set()

    async def take(self) -> list[AttemptRecord]:
        """The records so far, after a short wait for more; empty once it is closed."""
        await self._available.wait()
        if not self.closed:
            await asyncio.sleep(_DRAIN_SECONDS)
        records, self._records = self._records, []
        if not self.closed:
            self._available.clear()
        self._emptied.set()
        self._emptied = asyncio.Event()  # those who wait have the old one, which stays set
        return records
