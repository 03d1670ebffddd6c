"""Many attempts at once: planned attempts minus those in the store, claimed in blocks.

Ctrl-C once lets what is in flight finish; a second time stops at once. Killed at any moment, only
attempts in flight are lost, and the same command makes them again.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from passhat._display import counted, some
from passhat.agents.base import Agent, AttemptInfo
from passhat.agents.function import FunctionAgent
from passhat.errors import InvalidValue, PasshatError, RunStopped, StoreUnavailable
from passhat.protocol import Protocol
from passhat.runner.attempt import Attempter, maybe_await, seed_of
from passhat.runner.boundary import Canary, ProcessGuard, hide_task, list_stuck_attempts
from passhat.runner.budget import Account, Budget
from passhat.runner.queues import (
    Claims,
    Outbox,
    StopRule,
    StoreRetry,
    StoreThread,
    cancel_until_done,
    raise_first_error,
    take_exception,
    wait_in_steps,
)
from passhat.runner.redaction import Redactor
from passhat.runner.spending import SpendingWatch
from passhat.runner.stop_reasons import (
    FirstAttempts,
    SetupMistake,
    SilentAttempts,
    Stop,
    refuse_broken,
    stop_on_account,
    stop_on_unknown_use,
)
from passhat.runner.telemetry import Telemetry
from passhat.runner.time_limits import AttemptLimits, Watch
from passhat.stats.gate.sequential_gate import Look
from passhat.stats.outcomes import Verdict
from passhat.stats.sequential import consumption_order
from passhat.store import AttemptRecord, AttemptSet, PlannedAttempts, RunRecord, Store
from passhat.store.opening import StoredPlan, load_plan, restore_plan
from passhat.suites.base import Episode, Suite, Task
from passhat.suites.jsonl import QuestionSuite

__all__ = [
    "RETRY_SECONDS",
    "AttemptLimits",
    "Harness",
    "Progress",
    "RunPlan",
    "Stop",
    "Work",
    "expire_leases",
    "run_attempts",
]

RETRY_SECONDS = 120.0
"""How long store calls are retried while the database is locked, full or unreachable."""
_RELEASE_SECONDS = 10.0
_HURRIED_SECONDS = 1.0
_LOCKED_SECONDS = 1.0
"""A SQLite file that is locked for longer is announced."""
_LOOK_SECONDS = 0.5
_WAIT_SECONDS = 2.0


def silent(_text: str) -> None:
    """No-op callback."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run: suite, agent, tasks, attempts and limits.

    ``attempts``, the number at each task, is the only place that has it. ``tell`` is called with
    progress messages. Fields that a :class:`~passhat.runner.run_spec.RunSpec` has mean the same.
    """

    suite: Suite
    agent: Agent
    record: RunRecord
    tasks: Sequence[Task]
    attempts: PlannedAttempts
    limits: AttemptLimits = field(default_factory=AttemptLimits)
    jobs: int = 8
    seed: int = 0
    temperature: float | None = None
    redact: Redactor = field(default_factory=Redactor)
    top_p: float | None = None
    budget: Budget | None = None
    stop_when: tuple[str, ...] = ()
    give_up_after: int = 8
    keep_going: bool = False
    wait: bool = False
    canary: bool = False
    timeouts_are_missing: bool = False
    telemetry: Telemetry | None = None
    tell: Callable[[str], None] = silent

    def order_seed(self, store: Store) -> str:
        """Seed of the order of tasks under a watched rule.

        The id of a run comes from its protocol, so every build would repeat the same unlucky
        beginning. With the time at which the store has the run begun, each run has an order of its
        own, which is recorded and stays the same when the run goes on.
        """
        return f"{self.record.id}/{store.find(self.record.id).started}"

    def order_attempts(self, order_seed: str = "") -> Iterator[tuple[str, int]]:
        """Every attempt, in the order in which they are to be made.

        All tasks once, then all of them again, so that a stop stays fair. A rule that is watched
        needs whole tasks, in an order drawn beforehand.
        """
        return self.left(AttemptSet(), order_seed)

    def left(self, stored_attempts: AttemptSet, order_seed: str = "") -> Iterator[tuple[str, int]]:
        """The planned attempts that are not in a set, in the order in which to make them."""
        ids = [task.id for task in self.tasks]
        counts = self.attempts
        if self.stop_when:
            for task in consumption_order(ids, order_seed):
                numbers = range(1, counts.of(task) + 1)
                yield from (
                    (task, number) for number in numbers if (task, number) not in stored_attempts
                )
            return
        # Rounds that every task has behind it are not drawn: a run of a million attempts goes on
        # at once.
        behind = stored_attempts.common(ids)
        for number in range(1, counts.each + 1):
            if behind >> number & 1:
                continue
            round_ = [task for task in ids if number <= counts.of(task)]
            random.Random(f"{self.seed}/{number}").shuffle(round_)
            yield from ((task, number) for task in round_ if (task, number) not in stored_attempts)

    def attempter(
        self, guard: ProcessGuard | None = None, stopping: Callable[[], bool] | None = None
    ) -> Attempter:
        """The object that makes the attempts."""
        tasks = [task.id for task in self.record.tasks]
        canary = Canary(f"{self.record.id}/{self.seed}", tasks, self.attempts.each)
        return Attempter(
            self.suite,
            self.agent,
            self.limits,
            self.redact,
            canary if self.canary else None,
            guard,
            stopping or (lambda: True),
            timeouts_are_missing=self.timeouts_are_missing,
            telemetry=self.telemetry,
        )


@dataclass(slots=True)
class Progress:
    """Counts of a run so far; passed to the progress callback after every group of attempts."""

    total: int
    done: int = 0
    passed: int = 0
    failed: int = 0
    missing: int = 0
    retries: int = 0
    last_retry: str = ""
    tokens: float = 0.0
    cost: float = 0.0
    costed: int = 0
    leaks: int = 0
    dropped: int = 0
    """Results that were not stored, because another runner had taken the attempts over."""
    settled: Look | None = None
    """The last result of the run's own rules, if it has any."""

    @property
    def results(self) -> int:
        """Attempts that were made here, those that another runner took over included."""
        return self.done + self.dropped

    def count(self, record: AttemptRecord) -> None:
        self.done += 1
        if record.retries:
            self.retries += record.retries
            self.last_retry = record.retry_reason or self.last_retry
        self.tokens += record.tokens or 0.0
        if record.cost is not None:
            self.cost += record.cost
            self.costed += 1
        self.leaks += bool(record.leak)
        verdict = record.judgement.verdict
        if verdict is Verdict.PASSED:
            self.passed += 1
        elif verdict is Verdict.FAILED:
            self.failed += 1
        else:
            self.missing += 1


Seen = Callable[[AttemptRecord, Progress], None]
"""Called after every finished attempt."""

Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Makes a call of the store, perhaps in a thread."""
Work = Callable[[RunPlan, Claims, Outbox], Awaitable[None]]
"""Has claimed attempts made: in this process, or elsewhere."""


class Harness(Suite):
    """A suite that another harness runs: the plan is handed over to it.

    Its agents have the same ``harness`` name; they go with no other suite, and no other agent with
    this one.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ("tasks", "harness", "protocol", "run")

    @property
    def protocol(self) -> Protocol:
        """The settings of the harness; must be available before the first attempt."""
        raise NotImplementedError

    async def run(self, plan: RunPlan, store: Store, stop: Stop, seen: Seen) -> Progress:
        """Make every planned attempt that the store does not have yet."""
        raise NotImplementedError

    def episode(self, task: Task, seed: int) -> Episode:
        raise InvalidValue(f"{self.name} is run by {self.harness}, not here ({task.id}, {seed}).")


async def run_attempts(
    plan: RunPlan, store: Store, stop: Stop, seen: Seen, work: Work | None = None
) -> Progress:
    """Make every planned attempt that the store does not have yet."""
    if isinstance(plan.suite, Harness):
        return await plan.suite.run(plan, store, stop, seen)
    try:
        return await _run(plan, store, stop, seen, work or _work)
    finally:
        await maybe_await(plan.agent.close())
        await maybe_await(plan.suite.close())


async def _run(plan: RunPlan, store: Store, stop: Stop, seen: Seen, work: Work) -> Progress:
    thread = StoreThread()
    try:
        progress = await _Execution(plan, store, stop, seen, thread).run(work)
        if isinstance(plan.suite, QuestionSuite) and plan.suite.judges and not stop.asked:
            from passhat.runner.regrade import judge_anchors

            await judge_anchors(store, plan.record.id, plan.suite, plan.redact, thread)
        return progress
    finally:
        thread.close()


class _Execution:
    """A call of :func:`run_attempts`: workers on one side, one writer on the other."""

    def __init__(
        self, plan: RunPlan, store: Store, stop: Stop, seen: Seen, thread: StoreThread
    ) -> None:
        self._plan = plan
        self._store = store
        self._stop = stop
        self._seen = seen
        self._thread = thread
        self._run = plan.record.id
        self._tasks = [task.id for task in plan.tasks]
        self._order_seed = ""
        # Rules that cannot be evaluated are refused here, before the run is stored; the order is
        # drawn once it is.
        self._rule = StopRule(plan.stop_when, self._tasks, plan.attempts.each, "")
        self._retry = StoreRetry(RETRY_SECONDS, plan.tell, thread, store.interrupt)
        self._watched = SpendingWatch(plan.budget, store, self._run, thread)
        self._outbox = Outbox()
        self._first = FirstAttempts(is_watching=not plan.keep_going)
        self._silent = SilentAttempts(plan.give_up_after)
        self._others = False
        self._fault: RunStopped | None = None
        self._plan_before: StoredPlan | None = None
        self._progress = Progress(total=0)

    async def run(self, work: Work) -> Progress:
        """Make the remaining attempts with ``work``."""
        self._claims = await self._begin()
        watching = hide_task(asyncio.create_task(self._watched.keep()))
        watching.add_done_callback(take_exception)
        try:
            while True:
                claimed, results = self._claims.handed_out, self._progress.results
                await self._make(work)
                # A cap may keep this runner from making what it claims: another round is no use.
                idle = self._claims.handed_out > claimed and self._progress.results == results
                if idle or not await self._find_left():
                    break
        except StoreUnavailable:
            self._retry.hurry()  # it was waited for long enough
            raise
        finally:
            watching.cancel()
            await self._release()
            if isinstance(self._fault, SetupMistake) and self._plan_before is not None:
                restore = partial(restore_plan, self._store, self._run, self._plan_before)
                await self._retry(restore)
        self._progress.settled = self._rule.look
        return self._progress

    async def _make(self, work: Work) -> None:
        """Make attempts until there are none to claim, and write their results."""
        self._outbox = Outbox(decisive=bool(self._plan.stop_when))
        workers = asyncio.ensure_future(work(self._plan, self._claims, self._outbox))
        writer = asyncio.create_task(self._write())
        for task in (workers, writer):
            hide_task(task)
            task.add_done_callback(take_exception)  # the first error is raised, and only that

        def give_up() -> None:
            cancel_until_done(workers)
            self._retry.hurry()

        self._stop.when_impatient(give_up)
        await asyncio.wait({workers, writer}, return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            workers.cancel()  # a store that cannot be written makes further attempts pointless
            await asyncio.wait({workers})
        self._outbox.close()
        await writer
        self._claims.in_flight.clear()
        if self._fault is not None:
            raise self._fault
        if not workers.cancelled():
            raise_first_error(workers, self._plan.redact)

    async def _find_left(self) -> bool:
        """Whether other runners left attempts to make; waits for those runners if the plan says so.

        Workers end when there is nothing to claim. A result that was dropped since, or a runner
        that ended since, leaves attempts that no runner makes.
        """
        is_announced = False
        if self._retry.has_failed and not self._stop.asked:
            # A standby that took over may know finished attempts as claimed; none is being made.
            await self._retry(partial(self._store.release, self._run))
        while not self._stop.asked:
            attempts = await self._reclaim()
            if attempts is not None:
                self._claims.add(attempts)
                return True
            if not self._plan.wait:
                return False
            claims_of_others = await self._retry(partial(self._store.list_claims, self._run))
            if not claims_of_others and await self._is_complete():
                return False
            if claims_of_others and not is_announced:
                is_announced = True
                how_many = counted(sum(held.claims for held in claims_of_others), "attempt")
                self._plan.tell(f"Waiting for other runners, which are making {how_many}.")
            await asyncio.sleep(_WAIT_SECONDS)
        return False

    async def _is_complete(self) -> bool:
        """Whether every attempt has ended, by one look: between two, another runner may claim."""
        ended = await self._retry(partial(self._store.load_attempts, self._run, ended=True))
        return ended.left(self._tasks, self._plan.attempts) == 0

    async def _begin(self) -> Claims:
        """Count the attempts in the store, check that the agent is reachable, store the run."""
        plan, store = self._plan, self._store
        # Before and after: a claim that comes or goes in between is seen in one of them.
        generation = await self._retry(partial(store.load_generation, self._run))
        claims_before = await self._retry(partial(store.list_claims, self._run))
        stored_attempts = await self._retry(partial(store.load_attempts, self._run))
        claims_after = await self._retry(partial(store.list_claims, self._run))
        self._others = bool(claims_before or claims_after)
        self._progress.total = stored_attempts.left(self._tasks, plan.attempts)
        if self._progress.total:
            refuse_broken(await maybe_await(plan.suite.check(plan.tasks)))
            await maybe_await(plan.agent.check())  # a wrong address is no reason to fail attempts
        store.wait_at_most(_LOCKED_SECONDS)
        self._plan_before = await self._retry(partial(load_plan, store, self._run))
        if generation != await self._retry(partial(store.begin, plan.record, plan.attempts)):
            # New, or removed since it was looked at: what was stored then is not there any more.
            stored_attempts = await self._retry(partial(store.load_attempts, self._run))
            self._progress.total = stored_attempts.left(self._tasks, plan.attempts)
            self._others = self._others or len(stored_attempts) > 0  # another runner began it
        if plan.stop_when:
            self._order_seed = await self._thread(partial(plan.order_seed, store))
            self._rule = StopRule(plan.stop_when, self._tasks, plan.attempts.each, self._order_seed)
            for verdict in await self._thread(lambda: list(store.verdicts(self._run))):
                self._rule.take(*verdict)
            if self._rule.ask():
                self._stop.start_nothing_new()
        return Claims(
            partial(store.claim, self._run),
            plan.left(stored_attempts, self._order_seed),
            plan.jobs,
            lambda: not self._stop.asked,
            self._retry,
            self._reclaim,
            self._note_refused,
        )

    def _note_refused(self, count: int) -> None:
        """Attempts that another runner claimed first are not this runner's to make."""
        self._progress.total -= count
        self._others = self._others or count > 0

    async def _reclaim(self) -> Iterator[tuple[str, int]] | None:
        """Attempts that other runners claimed and did not finish; ``None`` when there are none."""
        plan = self._plan
        # Looking through a million attempts takes a while, so not where there is no other runner.
        has_trouble = self._progress.dropped or self._retry.has_failed
        if not (self._others or has_trouble or plan.wait):
            return None
        await expire_leases(self._store, self._run, self._stop, plan.tell, self._retry)
        stored_attempts = await self._retry(partial(self._store.load_attempts, self._run))
        left = stored_attempts.left(self._tasks, plan.attempts)
        # Lost and free again, but still being made here: counted once.
        lost = [key for key in self._claims.in_flight if key not in stored_attempts]
        self._progress.total = self._progress.done + len(self._claims.in_flight) + left - len(lost)
        return plan.left(stored_attempts, self._order_seed) if left else None

    async def _write(self) -> None:
        """Write finished attempts in groups; each is durable within hundredths of a second."""
        while records := await self._outbox.take():
            try:
                records = self._first.take(records)
            except RunStopped as fault:
                self._give_up(fault)
            else:
                await self._note(records)
        await self._note(self._first.release())

    async def _note(self, records: list[AttemptRecord]) -> None:
        progress = self._progress
        if not records:
            return
        async with self._watched.writing:
            lost_records = await self._retry(partial(self._store.finish, self._run, records))
            self._claims.in_flight.difference_update((r.task, r.number) for r in records)
            lost_keys = {(record.task, record.number) for record in lost_records}
            if lost_keys:
                records = [r for r in records if (r.task, r.number) not in lost_keys]
            self._watched.note_written(records)
        for record in records:
            progress.count(record)
            self._seen(record, progress)
            if (fault := self._silent.count(record)) is not None:
                self._give_up(fault)
            self._rule.take(record.task, record.number, record.judgement.verdict)
        if self._rule.ask():
            self._stop.start_nothing_new()
        if lost_keys:
            progress.dropped += len(lost_keys)
            progress.total -= len(lost_keys)
            standby = ", or the database server came back without its last commits"
            self._plan.tell(
                f"{counted(len(lost_keys), 'result')} dropped: this runner gave no sign of life "
                "for longer than its lease, and another runner took the attempts over"
                f"{standby if self._retry.has_failed else ''}."
            )
            await self._claims.check()

    def _give_up(self, fault: RunStopped) -> None:
        if self._fault is None:
            self._fault = fault
            self._stop.give_up()

    async def _release(self) -> None:
        """Free claims without a result, after a second Ctrl-C.

        A store that does not answer is not waited for: the lease expires by itself.
        """
        releasing = asyncio.wrap_future(
            self._thread.submit(partial(self._store.release, self._run))
        )
        releasing.add_done_callback(take_exception)
        patience = _HURRIED_SECONDS if self._retry.hurried else _RELEASE_SECONDS
        if not await wait_in_steps(releasing, patience):
            self._store.interrupt()
            return
        with suppress(PasshatError):
            releasing.result()


async def expire_leases(
    store: Store, run: str, stop: Stop, tell: Callable[[str], None], call: Call = asyncio.to_thread
) -> None:
    """Wait for claims of runners that were killed, and free them.

    A runner that was killed cannot give its claims back; they are free when its lease ends. One
    whose lease is renewed meanwhile lives, and keeps its claims.
    """
    beats: dict[str, int | None] = {}
    is_announced = False
    while not stop.asked:
        claims_of_others = await call(partial(store.list_claims, run))
        if any(claims.expired for claims in claims_of_others):
            await call(partial(store.release_expired, run))
        waiting = [
            claims
            for claims in claims_of_others
            if not claims.expired and beats.setdefault(claims.token, claims.beats) == claims.beats
        ]
        if not waiting:
            return
        longest = max(claims.left for claims in waiting)
        if not is_announced:
            is_announced = True
            how_many = counted(sum(claims.claims for claims in waiting), "attempt")
            tell(
                f"{how_many} claimed by another runner; waiting up to {longest:.0f} s to see "
                "whether it still runs"
            )
        await asyncio.sleep(min(_LOOK_SECONDS, longest + 0.01))


async def _work(plan: RunPlan, claims: Claims, outbox: Outbox) -> None:
    """Workers that take the next claimed attempt until there is none."""
    tasks = {task.id: task for task in plan.tasks}
    watch = Watch(plan.limits, plan.tell)
    guard = ProcessGuard(plan.tell, always=isinstance(plan.agent, FunctionAgent))
    earlier = set(threading.enumerate())
    whole = asyncio.current_task()

    def stopping() -> bool:
        return whole is None or whole.cancelling() > 0

    attempter = plan.attempter(guard, stopping)

    async def worker() -> None:
        clock = watch.clock()
        # An agent may swallow the cancellation that ends the run: its worker makes no further one.
        while not stopping() and (attempt := await claims.next_attempt()) is not None:
            account = Account() if plan.budget is None else await plan.budget.admit()
            if account is None:
                return  # the cap is reached
            with account:
                if not claims.more_wanted():
                    return  # no longer, while it waited for its share of the cap
                task, number = attempt
                seed = seed_of(plan.seed, task, number)
                info = AttemptInfo(task, number, seed, plan.temperature, plan.top_p, account)
                record = await attempter.attempt(tasks[task], info, clock)
            if account.refused_at_once:
                return  # not one call of it fitted under the cap: it was not made
            outbox.put(record)
            stop_on_account(record)
            stop_on_unknown_use(plan.agent, plan.budget, record)
            await outbox.wait_for_room()  # an agent that never waits must not starve the writer

    watching = hide_task(asyncio.create_task(watch.keep()))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(plan.jobs):
                hide_task(group.create_task(worker()))
    finally:
        watching.cancel()
        guard.close()
        if names := list_stuck_attempts(earlier):
            plan.tell(
                f"{counted(len(names), 'agent')} did not stop when the time was over: "
                f"{some(names, 5)}. --isolate runs every Python agent in a process of its own, "
                "which is killed."
            )
