"""Ray workers at work: batches of attempts, deaths and revivals, questions about shared limits.

A worker that dies costs the attempts it was making, which are made again elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from passhat.errors import EngineUnavailable, RunStopped
from passhat.integrations.ray.batch_channel import BatchChannel, result_of
from passhat.integrations.ray.ray_worker import BatchResult
from passhat.runner.attempt import seed_of
from passhat.runner.budget import Budget
from passhat.runner.queues import Claims, Outbox, Wanted
from passhat.runner.remote_limits import Answer, Gatekeeper, LimitRequest, LimitUpdate, settle
from passhat.runner.run import RunPlan
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement

__all__ = ["RayPool", "connection_lost", "line_of"]

_GONE_SECONDS = 120.0
_HEAD_SECONDS = 10.0
"""A head that takes no connection for so long is gone. Ray itself would end this process, later."""
_HEAD_TRIES = 3
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


class RayPool:
    """The workers of one run, while it goes on.

    Parameters
    ----------
    ray : module
        Ray, connected to its cluster.
    actors : sequence
        The workers, started.
    plan : RunPlan
        What is to be run.
    gate : Gatekeeper
        Keeps rates, pauses and the cap for all of them.
    head : str
        Where the head of the cluster listens; empty where Ray's own client watches it.
    """

    def __init__(
        self,
        ray: Any,
        actors: Sequence[Any],
        plan: RunPlan,
        gate: Gatekeeper,
        head: str = "",
    ) -> None:
        self._ray = ray
        self._plan = plan
        self._gate = gate
        self._head = head
        self._workers = [_Worker(actor) for actor in actors]
        self._answering: set[asyncio.Task[None]] = set()
        self._last_tries = asyncio.Lock()

    async def work(self, claims: Claims, outbox: Outbox) -> None:
        """Have claimed attempts made until there are none; ``plan.jobs`` at once."""
        budget = self._plan.budget
        listening = [
            asyncio.create_task(self._listen(worker))
            for worker in self._workers
            if self._gate.is_needed
        ]
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch_head())
                slots = [
                    group.create_task(
                        self._slot(claims, outbox)
                        if budget is None
                        else self._capped_slot(budget, claims, outbox)
                    )
                    for _ in range(self._plan.jobs)
                ]
                await asyncio.wait(slots)
                watching.cancel()
        finally:
            reviving = [worker.reviving for worker in self._workers if worker.reviving]
            for task in (*listening, *reviving, *self._answering):
                task.cancel()
            for worker in self._workers:
                worker.channel.close()

    # -- attempts --------------------------------------------------------------------------------

    async def _slot(self, claims: Claims, outbox: Outbox) -> None:
        """One batch after the other, each of as many attempts as fit into its time."""
        size = 1
        while True:
            batch: list[Wanted] = []
            while len(batch) < size and (one := await claims.following()) is not None:
                batch.append(one)
            if not batch:
                return
            before = time.monotonic()
            for record in await self._made(batch):
                outbox.put(record)
            await outbox.room()
            spent = time.monotonic() - before
            fitting = int(len(batch) * _BATCH_SECONDS / max(spent, 1e-3))
            size = max(1, min(fitting, 2 * size, _LARGEST_BATCH))

    async def _made(self, batch: list[Wanted]) -> list[AttemptRecord]:
        """Whatever happens to workers, this returns what came of a batch."""
        for number in range(1, _DEATHS + 1):
            async with self._turn(number):
                made = await self._tried(batch)
            if made is not None:
                return made.records
            if len(batch) > 1:  # one of them may be what workers die of: the others are not
                return [record for one in batch for record in await self._made([one])]
        return [self._deadly(batch[0])]

    async def _capped_slot(self, budget: Budget, claims: Claims, outbox: Outbox) -> None:
        """One attempt after the other, each with its share of the cap."""
        while (one := await claims.following()) is not None:
            record = await self._made_under(budget, one, claims)
            if record is None:
                return
            outbox.put(record)
            await outbox.room()

    async def _made_under(
        self, budget: Budget, one: Wanted, claims: Claims
    ) -> AttemptRecord | None:
        """``None`` when it was not made: the cap is reached, or no more attempts are wanted."""
        lost = False
        for number in range(1, _DEATHS + 1):
            account = await budget.admit()
            if account is None:
                return None
            with account:
                if not claims.more_wanted():
                    return None  # no longer, while it waited for its share of the cap
                with self._gate.keeping(one, account):
                    async with self._turn(number):
                        made = await self._tried([one])
                if made is None:
                    lost = account.abandon() or lost
                    continue
                settle(account, made.settled)
            if account.refused_at_once:
                return None
            (record,) = made.records
            # What was used by a worker that died is spent, but nobody knows what it was.
            return replace(record, tokens=None, cost=None) if lost else record
        return self._deadly(one)

    def _turn(self, number: int) -> AbstractAsyncContextManager[object]:
        """The last try of an attempt is made while no other has its last.

        What shared a worker with a deadly attempt may have died with it twice, and is innocent.
        """
        return self._last_tries if number == _DEATHS else nullcontext()

    def _deadly(self, one: Wanted) -> AttemptRecord:
        task, number = one
        why = f"the worker died {_DEATHS} times while it made this attempt"
        judgement = Judgement.missing(MissingReason.INFRASTRUCTURE, why)
        seed = seed_of(self._plan.seed, task, number)
        return AttemptRecord(task, number, judgement, seed=seed, retries=_DEATHS - 1)

    async def _tried(self, batch: list[Wanted]) -> BatchResult | None:
        worker = await self._free_worker()
        worker.busy += 1
        try:
            made: BatchResult = await worker.channel.made(batch)
        except self._ray.exceptions.RayActorError:
            self._revive(worker)
            return None
        except ConnectionError as error:
            raise connection_lost(error) from None
        finally:
            worker.busy -= 1
        if made.stopped is not None:
            message, hint = made.stopped
            raise RunStopped(message, hint=hint)
        made.records = [self._redacted(record) for record in made.records]
        return made

    def _redacted(self, record: AttemptRecord) -> AttemptRecord:
        """The worker removed the secrets of its machine; these are the ones of this machine."""
        redact = self._plan.redact
        said = [{**entry, "text": redact(entry["text"])} for entry in record.transcript]
        judgement = replace(record.judgement, detail=redact(record.judgement.detail))
        return replace(record, judgement=judgement, transcript=said)

    # -- workers that die ------------------------------------------------------------------------

    async def _free_worker(self) -> _Worker:
        """The one with the least to do; waits while none answers."""
        end = time.monotonic() + _GONE_SECONDS
        while not (alive := [worker for worker in self._workers if not worker.down]):
            if time.monotonic() > end:
                raise EngineUnavailable(
                    f"no worker of the Ray cluster has answered for {_GONE_SECONDS:g} s.",
                    hint="What is finished is kept; the same command goes on.",
                )
            await asyncio.sleep(_PAUSE_SECONDS)
        return min(alive, key=lambda worker: worker.busy)

    def _revive(self, worker: _Worker) -> None:
        """Ray starts a worker that died again, here or on another node; wait for its first word."""
        if worker.down:
            return
        worker.down = True

        async def answer() -> None:
            while True:
                try:
                    await result_of(worker.actor.about.remote())
                except (self._ray.exceptions.RayError, ConnectionError):
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    worker.down = False
                    return

        worker.reviving = asyncio.create_task(answer())

    async def _watch_head(self) -> None:
        """Without its head a cluster does nothing any more, and says nothing about it."""
        host, _, port = self._head.rpartition(":")
        last, failed = time.monotonic(), 0
        while self._head:
            try:
                async with asyncio.timeout(_HEAD_SECONDS / 2):
                    _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                last, failed = time.monotonic(), 0
            except OSError:  # a TimeoutError is one
                failed += 1  # time alone says nothing: this process may have stood still itself
                if failed >= _HEAD_TRIES and time.monotonic() - last > _HEAD_SECONDS:
                    raise connection_lost(f"{self._head} takes no connection any more") from None
            await asyncio.sleep(_HEAD_SECONDS / 5)

    # -- limits that all share -------------------------------------------------------------------

    async def _listen(self, worker: _Worker) -> None:
        """Fetch what a worker asks and tells, as long as there is work."""
        news: list[LimitUpdate] = self._gate.news()
        while True:
            try:
                if news:
                    await result_of(worker.actor.hear.remote(news))
                    news = []
                said = await result_of(worker.actor.fetched.remote())
            except (self._ray.exceptions.RayError, ConnectionError):
                self._revive(worker)
                while worker.down:
                    await asyncio.sleep(_PAUSE_SECONDS)
                news = self._gate.news()
                continue
            for one in said:
                self._take(worker, one)

    def _take(self, worker: _Worker, said: LimitRequest | LimitUpdate) -> None:
        if isinstance(said, LimitUpdate):
            self._gate.learn(said)
            for other in self._workers:
                if other is not worker:
                    other.actor.hear.remote([said])
            return

        async def answer() -> None:
            answered: Answer = await self._gate.answered(said)
            worker.actor.hear.remote([answered])

        task = asyncio.create_task(answer())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)


def connection_lost(why: object) -> EngineUnavailable:
    """The head of the cluster is gone, or the network between."""
    return EngineUnavailable(
        f"the head of the Ray cluster is gone ({why}).",
        hint="What is finished is kept; the same command goes on, once there is a cluster.",
    )


def line_of(error: BaseException) -> str:
    """The beginning of what an error says; Ray's first line may only say that more follows.

    Of a traceback that Ray passes on, the end: what went wrong, without the way there.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent") for line in lines):
        lines = [lines[0].removesuffix(":") + ": " + lines[-1]]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = [" ".join(lines[:2]), *lines[2:]]
    return (lines or [type(error).__name__])[0][:200]
