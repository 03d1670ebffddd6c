"""A pool of Ray workers: batches of attempts, restarts, requests about shared limits.

A worker that dies costs the attempts it was making, which are made again elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from passhat.errors import EngineUnavailable, RunStopped
from passhat.integrations.ray.ray_worker import About, BatchResult
from passhat.runner.attempt import seed_of
from passhat.runner.budget import Budget
from passhat.runner.queues import AttemptKey, Claims, Outbox
from passhat.runner.remote_limits import Answer, Gatekeeper, LimitRequest, LimitUpdate, settle
from passhat.runner.run import RunPlan
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement

_REFILL_SECONDS = 0.005
"""Slots that got a result hand in their next batch within this, or have none."""


class BatchChannel:
    """The driver's end of the channel to a worker, the handle of a
    :class:`~passhat.integrations.ray.ray_worker.RayWorker`.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._tickets = itertools.count()
        self._unsent: list[tuple[int, Sequence[AttemptKey]]] = []
        self._open: dict[int, asyncio.Future[BatchResult]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._lives = 0
        self._expected = 1
        self._sending: asyncio.Handle | None = None

    async def make(self, batch: Sequence[AttemptKey]) -> BatchResult:
        """The result of a batch; raises the error of the call to the worker."""
        loop = asyncio.get_running_loop()
        ticket = next(self._tickets)
        pending: asyncio.Future[BatchResult] = loop.create_future()
        self._open[ticket] = pending
        self._unsent.append((ticket, batch))
        if len(self._unsent) >= self._expected:
            self._send_by(loop.call_soon(self._send))
        try:
            return await pending
        finally:
            self._open.pop(ticket, None)

    def close(self) -> None:
        """No caller waits any more."""
        if self._sending is not None:
            self._sending.cancel()
        for call in self._calls:
            call.cancel()

    def _send_by(self, handle: asyncio.Handle) -> None:
        if self._sending is not None:
            self._sending.cancel()
        self._sending = handle

    def _send(self) -> None:
        """Send the queued batches; a call stays open while anything is being made."""
        self._sending = None
        self._expected = 1
        if not self._unsent and (self._calls or not self._open):
            return
        unsent, self._unsent = self._unsent, []
        call = asyncio.create_task(self._call(unsent, self._lives))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, batches: Sequence[tuple[int, Sequence[AttemptKey]]], life: int) -> None:
        try:
            results: list[tuple[int, BatchResult]] = await result_of(
                self._actor.exchange.remote(batches)
            )
        except Exception as error:
            if life == self._lives:  # or another call reported it before
                self._fail_all_pending(error)
            return
        for ticket, result in results:
            if (pending := self._open.get(ticket)) is not None and not pending.done():
                pending.set_result(result)
        if self._sending is None:
            self._expected = max(1, len(results))
            loop = asyncio.get_running_loop()
            self._sending = loop.call_later(_REFILL_SECONDS, self._send)

    def _fail_all_pending(self, error: Exception) -> None:
        """Fail all open batches: the worker that had them died."""
        self._lives += 1
        self._expected = 1
        self._unsent = []
        for pending in self._open.values():
            if not pending.done():
                pending.set_exception(error)


async def result_of(reference: Any) -> Any:
    """The return value of a call to a worker.

    The caller may be canceled; Ray's own future must not be, it is still going to be set.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def hand_over(ray_future: Future[Any]) -> None:
        if result.done():
            return
        if (error := ray_future.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(ray_future.result())

    def on_done(ray_future: Future[Any]) -> None:
        with suppress(RuntimeError):  # the run is over, and its loop closed
            loop.call_soon_threadsafe(hand_over, ray_future)

    reference.future().add_done_callback(on_done)
    return await result


_GONE_SECONDS = 120.0
_HEAD_SECONDS = 10.0
"""A head that takes no connection for so long is gone. Ray itself would end this process, later."""
_HEAD_TRIES = 3
_NODE_SECONDS = 5.0
"""How often processors that joined the cluster are looked for."""
_PAUSE_SECONDS = 0.2
_DEATHS = 3
"""An attempt during which its worker died so often is not tried again."""
_BATCH_SECONDS = 0.2
"""About how long a batch takes: so much may have to be made again when a worker dies."""
_LARGEST_BATCH = 64


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker, how many batches it has, and whether it answers."""

    actor: Any
    busy: int = 0
    down: bool = False
    reviving: asyncio.Task[None] | None = field(default=None, repr=False)
    channel: BatchChannel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.channel = BatchChannel(self.actor)


class _StoppedRun(RunStopped):
    """A worker reported that the run cannot go on; ``records`` are its finished attempts."""

    def __init__(self, message: str, *, hint: str | None, records: Sequence[AttemptRecord]) -> None:
        super().__init__(message, hint=hint)
        self.records = records


@contextmanager
def _storing_when_stopped(outbox: Outbox) -> Iterator[None]:
    """Store the finished attempts when the run has to stop."""
    try:
        yield
    except _StoppedRun as error:
        for record in error.records:
            outbox.put(record)
        raise RunStopped(error.message, hint=error.hint) from None


class RayPool:
    """The workers of a run, while it goes on.

    ``ray`` is connected to its cluster, and ``actors`` are started there. ``gate`` keeps rates,
    pauses and the cap for all of them. ``head`` is where the cluster's head listens; empty where
    Ray's own client watches it. ``start_more`` starts workers for processors that joined the
    cluster, and is called every few seconds.
    """

    def __init__(
        self,
        ray: Any,
        actors: Sequence[Any],
        plan: RunPlan,
        gate: Gatekeeper,
        head: str = "",
        start_more: Callable[[], Sequence[Any]] = list,
    ) -> None:
        self._ray = ray
        self._start_more = start_more
        self._plan = plan
        self._gate = gate
        self._head = head
        self._workers = [_Worker(actor) for actor in actors]
        self._answering: set[asyncio.Task[None]] = set()
        self._listening: list[asyncio.Task[None]] = []
        self._last_tries = asyncio.Lock()

    async def work(self, claims: Claims, outbox: Outbox) -> None:
        """Have claimed attempts made until there are none; ``plan.jobs`` at once."""
        budget = self._plan.budget
        for worker in self._workers:
            self._listen_to(worker)
        try:
            async with asyncio.TaskGroup() as group:
                watching = [
                    group.create_task(self._watch_head()),
                    group.create_task(self._watch_nodes()),
                ]
                slots = [
                    group.create_task(
                        self._slot(claims, outbox)
                        if budget is None
                        else self._slot_with_budget(budget, claims, outbox)
                    )
                    for _ in range(self._plan.jobs)
                ]
                await asyncio.wait(slots)
                for task in watching:
                    task.cancel()
        finally:
            reviving = [worker.reviving for worker in self._workers if worker.reviving]
            for task in (*self._listening, *reviving, *self._answering):
                task.cancel()
            for worker in self._workers:
                worker.channel.close()

    # -- attempts --------------------------------------------------------------------------------

    async def _slot(self, claims: Claims, outbox: Outbox) -> None:
        """Make one batch after another, each sized to fit the time of a batch."""
        size = 1
        while True:
            batch: list[AttemptKey] = []
            while len(batch) < size and (attempt := await claims.next_attempt()) is not None:
                batch.append(attempt)
            if not batch:
                return
            before = time.monotonic()
            with _storing_when_stopped(outbox):
                for record in await self._make(batch):
                    outbox.put(record)
            await outbox.wait_for_room()
            seconds = time.monotonic() - before
            fitting = int(len(batch) * _BATCH_SECONDS / max(seconds, 1e-3))
            size = max(1, min(fitting, 2 * size, _LARGEST_BATCH))

    async def _make(self, batch: list[AttemptKey]) -> list[AttemptRecord]:
        """The records of a batch, after retries on other workers if workers die."""
        for number in range(1, _DEATHS + 1):
            async with self._turn(number):
                result = await self._try_batch(batch)
            if result is not None:
                return result.records
            if len(batch) > 1:  # one of them may kill workers: the others do not
                return [record for attempt in batch for record in await self._make([attempt])]
        return [self._failed_by_deaths(batch[0])]

    async def _slot_with_budget(self, budget: Budget, claims: Claims, outbox: Outbox) -> None:
        """Make one attempt after another, each with its share of the cap."""
        while (attempt := await claims.next_attempt()) is not None:
            with _storing_when_stopped(outbox):
                record = await self._make_with_budget(budget, attempt, claims)
            if record is None:
                return
            outbox.put(record)
            await outbox.wait_for_room()

    async def _make_with_budget(
        self, budget: Budget, attempt: AttemptKey, claims: Claims
    ) -> AttemptRecord | None:
        """``None`` when it was not made: the cap is reached, or no more attempts are wanted."""
        has_lost_usage = False
        for number in range(1, _DEATHS + 1):
            account = await budget.admit()
            if account is None:
                return None
            with account:
                if not claims.more_wanted():
                    return None  # no longer, while it waited for its share of the cap
                with self._gate.keeping(attempt, account):
                    async with self._turn(number):
                        result = await self._try_batch([attempt])
                if result is None:
                    has_lost_usage = account.abandon() or has_lost_usage
                    continue
                settle(account, result.settled)
            if account.refused_at_once:
                return None
            (record,) = result.records
            # A worker that died has spent something, but the amount is unknown.
            return (
                msgspec.structs.replace(record, tokens=None, cost=None)
                if has_lost_usage
                else record
            )
        return self._failed_by_deaths(attempt)

    def _turn(self, number: int) -> AbstractAsyncContextManager[object]:
        """The last try of an attempt is made while no other has its last.

        Attempts that shared a worker with the cause may have died with it twice, and are innocent.
        """
        return self._last_tries if number == _DEATHS else nullcontext()

    def _failed_by_deaths(self, attempt: AttemptKey) -> AttemptRecord:
        task, number = attempt
        why = f"the worker died {_DEATHS} times while it made this attempt"
        judgement = Judgement.missing(MissingReason.INFRASTRUCTURE, why)
        seed = seed_of(self._plan.seed, task, number)
        return AttemptRecord(task, number, judgement, seed=seed, retries=_DEATHS - 1)

    async def _try_batch(self, batch: list[AttemptKey]) -> BatchResult | None:
        worker = await self._free_worker()
        worker.busy += 1
        try:
            result: BatchResult = await worker.channel.make(batch)
        except self._ray.exceptions.RayActorError:
            self._wait_for_restart(worker)
            return None
        except ConnectionError as error:
            raise connection_lost(error) from None
        finally:
            worker.busy -= 1
        result.records = [self._redact(record) for record in result.records]
        if result.stopped is not None:
            message, hint = result.stopped
            raise _StoppedRun(message, hint=hint, records=result.records)
        return result

    def _redact(self, record: AttemptRecord) -> AttemptRecord:
        """Remove the secrets of this machine; the worker removed those of its own."""
        redact = self._plan.redact
        transcript = [{**entry, "text": redact(entry["text"])} for entry in record.transcript]
        judgement = replace(record.judgement, detail=redact.quote(record.judgement.detail))
        return msgspec.structs.replace(record, judgement=judgement, transcript=transcript)

    # -- workers that die ------------------------------------------------------------------------

    async def _free_worker(self) -> _Worker:
        """The worker with the fewest batches; waits while no worker is available."""
        end = time.monotonic() + _GONE_SECONDS
        while not (alive := [worker for worker in self._workers if not worker.down]):
            if time.monotonic() > end:
                raise EngineUnavailable(
                    f"no worker of the Ray cluster has answered for {_GONE_SECONDS:g} s.",
                    hint="Finished attempts are kept; the same command continues.",
                )
            await asyncio.sleep(_PAUSE_SECONDS)
        return min(alive, key=lambda worker: worker.busy)

    def _wait_for_restart(self, worker: _Worker) -> None:
        """Wait for the first reply of a worker that Ray restarts, here or on another node."""
        if worker.down:
            return
        worker.down = True

        async def answer() -> None:
            while True:
                try:
                    about = await result_of(worker.actor.about.remote())
                except (self._ray.exceptions.RayError, ConnectionError):
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    # A node that joined may have another version of passhat or of the suite.
                    worker.down = about != About.of(self._plan.suite)
                    return

        worker.reviving = asyncio.create_task(answer())

    async def _watch_nodes(self) -> None:
        """Use workers on nodes that join the cluster while the run goes on."""
        while True:
            await asyncio.sleep(_NODE_SECONDS)
            with suppress(self._ray.exceptions.RayError, ConnectionError, RuntimeError):
                for actor in await asyncio.to_thread(self._start_more):
                    worker = _Worker(actor)
                    self._wait_for_restart(worker)  # it is used from its first reply on
                    self._workers.append(worker)
                    self._listen_to(worker)

    def _listen_to(self, worker: _Worker) -> None:
        if self._gate.is_needed:
            self._listening.append(asyncio.create_task(self._listen(worker)))

    async def _watch_head(self) -> None:
        """Watch the cluster's head: a cluster without it stops silently."""
        host, _, port = self._head.rpartition(":")
        now = asyncio.get_running_loop().time
        last, failed = now(), 0
        while self._head:
            try:
                async with asyncio.timeout(_HEAD_SECONDS / 2):
                    _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                last, failed = now(), 0
            except OSError:  # a TimeoutError is one
                failed += 1  # time alone proves nothing: this process may have been paused itself
                if failed >= _HEAD_TRIES and now() - last > _HEAD_SECONDS:
                    raise connection_lost(f"{self._head} takes no connection any more") from None
            await asyncio.sleep(_HEAD_SECONDS / 5)

    # -- limits that all share -------------------------------------------------------------------

    async def _listen(self, worker: _Worker) -> None:
        """Poll a worker for requests and updates about limits, and send it the answers."""
        updates: list[LimitUpdate] = self._gate.current_updates()
        while True:
            try:
                if updates:
                    await result_of(worker.actor.receive.remote(updates))
                    updates = []
                messages = await result_of(worker.actor.poll.remote())
            except (self._ray.exceptions.RayError, ConnectionError):
                self._wait_for_restart(worker)
                while worker.down:
                    await asyncio.sleep(_PAUSE_SECONDS)
                updates = self._gate.current_updates()
                continue
            for message in messages:
                self._take(worker, message)

    def _take(self, worker: _Worker, message: LimitRequest | LimitUpdate) -> None:
        if isinstance(message, LimitUpdate):
            self._gate.apply(message)
            for other in self._workers:
                if other is not worker:
                    other.actor.receive.remote([message])
            return

        async def answer() -> None:
            reply: Answer = await self._gate.answer(message)
            worker.actor.receive.remote([reply])

        task = asyncio.create_task(answer())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)


def connection_lost(why: object) -> EngineUnavailable:
    """The head of the cluster is gone, or the network between."""
    return EngineUnavailable(
        f"the head of the Ray cluster is gone ({why}).",
        hint="Finished attempts are kept; the same command continues once there is a cluster.",
    )


def first_line_of(error: BaseException) -> str:
    """The first informative line of an error; Ray's first line may only announce the next.

    Of a traceback that Ray passes on, the end: the error itself, without the stack.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent") for line in lines):
        lines = [lines[0].removesuffix(":") + ": " + lines[-1]]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = [" ".join(lines[:2]), *lines[2:]]
    return (lines or [type(error).__name__])[0][:200]
