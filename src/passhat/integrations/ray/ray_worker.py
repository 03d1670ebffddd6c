"""The Ray worker: loads suite and agent by name, and makes attempts as the local runner does.

Nothing here imports Ray. The worker is a process of its own, perhaps on another machine, so it is
given everything in one :class:`Job`. It judges programs in a sandbox of its own, serves MCP worlds
on its own machine, and asks the process that started the run before it passes a shared limit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version

from passhat.agents.base import AttemptInfo
from passhat.errors import PasshatError, RunStopped
from passhat.runner.attempt import Attempter, maybe_await, seed_of
from passhat.runner.boundary import Canary
from passhat.runner.budget import Account
from passhat.runner.redaction import Redactor
from passhat.runner.remote_limits import (
    AccountElsewhere,
    Answer,
    LimitRequest,
    LimitUpdate,
    RemoteLimits,
    Settled,
)
from passhat.runner.run_spec import Loaded, RunSpec
from passhat.runner.stop_reasons import stop_on_account
from passhat.runner.time_limits import AttemptLimits, Watch
from passhat.store.rows import AttemptRecord
from passhat.suites.base import Suite

_GATHER_SECONDS = 0.05
"""Seconds that finished batches wait, at most, for others to be returned with them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run as workers receive it; suite and agent are words, not objects.

    ``folder`` is where the words mean what they meant to the user; empty where Ray has brought the
    project's files along. ``tasks``, ``limits`` and ``canary`` are those of the plan.
    """

    spec: RunSpec
    folder: str
    run: str
    tasks: tuple[str, ...]
    limits: AttemptLimits
    canary: bool
    attempts: int
    """The most attempts at one task."""


@dataclass(frozen=True, slots=True)
class About:
    """Versions and fingerprints that must be the same on every worker as in the driver."""

    passhat: str
    suite: str
    judge: str
    wrong: str = ""
    """Why this worker can do nothing, if it cannot."""

    @classmethod
    def of(cls, suite: Suite) -> About:
        """Asks the suite for its judge, so that a sandbox is tried before any attempt."""
        judge = f"{suite.judge}, {suite.judge_fingerprint}"
        return cls(version("passhat"), suite.fingerprint, judge)


@dataclass(slots=True)
class BatchResult:
    """The result of a batch.

    ``settled`` is the usage of calls not yet reported to the gatekeeper; ``stopped`` is set when no
    further attempt could succeed.
    """

    records: list[AttemptRecord] = field(default_factory=list)
    settled: Settled = ()
    stopped: tuple[str, str | None] | None = None


class _ResultQueue:
    """Batches that are being made, and finished batches until a call returns them."""

    def __init__(self) -> None:
        self._making: set[asyncio.Task[BatchResult]] = set()
        self._finished: list[tuple[int, asyncio.Task[BatchResult]]] = []
        self._call: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, ticket: int, making: asyncio.Task[BatchResult]) -> None:
        self._making.add(making)
        making.add_done_callback(partial(self._take, ticket))

    async def collect(self) -> list[tuple[int, BatchResult]]:
        """Finished batches, once enough are finished; none, if a newer call has come."""
        self.close()
        call = self._call = asyncio.get_running_loop().create_future()
        self._return_call_if_due()
        await call
        if self._call is not call:
            return []
        self._call = None
        results, self._finished = self._finished, []
        return [(ticket, task.result()) for ticket, task in results]

    def close(self) -> None:
        """Let the open call return."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._call is not None and not self._call.done():
            self._call.set_result(None)

    def _take(self, ticket: int, made: asyncio.Task[BatchResult]) -> None:
        self._making.discard(made)
        self._finished.append((ticket, made))
        self._return_call_if_due()

    def _return_call_if_due(self) -> None:
        """Return a call when three in four batches are finished: the rest keep the worker busy."""
        if len(self._finished) >= max(1, 3 * len(self._making)):
            self.close()
        elif self._finished and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_GATHER_SECONDS, self.close)


class RayWorker:
    """Makes attempts, several at a time; one of these per process."""

    def __init__(self, job: Job) -> None:
        if job.folder:
            os.chdir(job.folder)
        # Ray calls the methods, which are async, in one event loop: nothing here needs a lock.
        self._job = job
        self._remote = RemoteLimits()
        self._results = _ResultQueue()
        self._watch = Watch(job.limits)
        self._watching: asyncio.Task[None] | None = None
        # The secrets to be kept out of transcripts are those of this machine.
        self._redact = Redactor(os.environ)
        self._wrong = ""
        try:
            self._loaded = self._load(job.spec)
        except Exception as error:  # anything may be wrong with a user's module
            self._wrong = _describe(error)
            return
        self._tasks = {task.id: task for task in self._loaded.suite.tasks}
        canary = None
        if job.canary:
            canary = Canary(f"{job.run}/{job.spec.seed}", job.tasks, job.attempts)
        self._telemetry = job.spec.telemetry(self._loaded, job.run)
        self._attempter = Attempter(
            self._loaded.suite,
            self._loaded.agent,
            job.limits,
            self._redact,
            canary,
            timeouts_are_missing=job.spec.timeouts_are_missing(self._loaded.agent),
            telemetry=self._telemetry,
        )

    def _load(self, spec: RunSpec) -> Loaded:
        # As many programs at once as this worker has processors.
        loaded = replace(spec, judges=1).load()
        self._remote.share(loaded.models)
        return loaded

    async def about(self) -> About:
        """Also a sign of life."""
        if not self._wrong:
            try:
                return About.of(self._loaded.suite)
            except Exception as error:
                self._wrong = _describe(error)
        return About(version("passhat"), "", "", self._wrong)

    async def poll(self) -> list[LimitRequest | LimitUpdate]:
        """This worker's requests and updates about limits, as soon as there are any."""
        return await self._remote.poll()

    async def receive(self, messages: Sequence[Answer | LimitUpdate]) -> None:
        """Take answers to this worker's requests, and updates of other workers."""
        self._remote.receive(messages)

    async def exchange(
        self, batches: Sequence[tuple[int, Sequence[tuple[str, int]]]]
    ) -> list[tuple[int, BatchResult]]:
        """Start some batches; return all finished batches, soon after the first is.

        A batch is made one attempt after the other; under a cap it is one attempt. When a newer
        call comes this one returns, with nothing: one that is open is enough.
        """
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch.keep())
        for ticket, attempts in batches:
            # A time limit cancels the task that it is about, which must be our own and not Ray's.
            self._results.expect(ticket, asyncio.create_task(self._make(attempts)))
        return await self._results.collect()

    async def _make(self, attempts: Sequence[tuple[str, int]]) -> BatchResult:
        clock, spec = self._watch.clock(), self._job.spec
        result = BatchResult()
        try:
            for task, number in attempts:
                seed = seed_of(spec.seed, task, number)
                account = self._account(task, number)
                info = AttemptInfo(task, number, seed, spec.temperature, spec.top_p, account)
                record = await self._attempter.attempt(self._tasks[task], info, clock)
                result.records.append(record)
                if isinstance(account, AccountElsewhere):
                    result.settled += account.take_unreported()
                stop_on_account(record)
        except RunStopped as error:
            result.stopped = (self._redact(error.message), error.hint)
        finally:
            self._watch.forget(clock)
        return result

    def _account(self, task: str, number: int) -> Account:
        if self._job.spec.spending.is_capped:
            return AccountElsewhere(self._remote, (task, number))
        return Account()

    async def close(self) -> None:
        """Close the resources of suite and agent, such as sandboxes."""
        self._remote.close()
        self._results.close()
        if self._watching is not None:
            self._watching.cancel()
        if self._wrong:
            return
        for model in self._loaded.models:
            await maybe_await(model.close())
        await maybe_await(self._loaded.suite.close())
        if self._telemetry is not None:
            await self._telemetry.close()


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, PasshatError) else f"{type(error).__name__}: {error}"
