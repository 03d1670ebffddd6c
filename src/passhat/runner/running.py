"""Many attempts at once: what is planned minus what the store has, in blocks that are claimed.

Ctrl-C once lets what is in flight finish; a second time stops at once. Killed at any moment, only
attempts in flight are lost, and the same command makes them again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from passhat.agents.base import Agent, AttemptInfo
from passhat.gates.watching import Look
from passhat.outcomes import Verdict
from passhat.runner.attempting import Attempter, seed_of
from passhat.runner.canaries import Canary
from passhat.runner.redaction import Redactor
from passhat.runner.stopping import StopRule
from passhat.runner.time_limits import Limits, Watch
from passhat.sequential import consumption_order
from passhat.store import AttemptRecord, RunRecord, Store
from passhat.suites.base import Suite, Task

__all__ = ["Limits", "Progress", "RunPlan", "Stop", "run_attempts"]

_DRAIN_SECONDS = 0.02
"""Finished attempts wait at most this long to be written together."""
_UNWRITTEN = 1_000
"""More than this many finished attempts are never held in memory."""
_QUICK_SECONDS = 0.1
"""A block of claims that is used up sooner than this was too small."""
_LARGEST_BLOCK = 500


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run: one object that travels, rather than its fields.

    Attributes
    ----------
    stop_when : tuple of str
        Rules such as ``pass^4 >= 0.6``; the run ends once they are settled.
    canary : bool
        Whether conversations carry a reference by which a leak is found out.
    """

    suite: Suite
    agent: Agent
    record: RunRecord
    tasks: Sequence[Task]
    attempts: int
    limits: Limits = field(default_factory=Limits)
    jobs: int = 8
    seed: int = 0
    temperature: float | None = None
    redact: Redactor = field(default_factory=Redactor)
    stop_when: tuple[str, ...] = ()
    canary: bool = False

    def wanted(self) -> Iterator[tuple[str, int]]:
        """Every attempt, in the order in which they are to be made.

        All tasks once, then all of them again, so that a stop stays fair. A rule that is watched
        needs whole tasks, in an order drawn beforehand.
        """
        ids = [task.id for task in self.tasks]
        numbers = range(1, self.attempts + 1)
        if self.stop_when:
            order = consumption_order(ids, self.seed)
            yield from ((task, number) for task in order for number in numbers)
            return
        for number in numbers:
            round_ = list(ids)
            random.Random(f"{self.seed}/{number}").shuffle(round_)
            yield from ((task, number) for task in round_)

    def attempter(self, watch: Watch) -> Attempter:
        """Who makes the attempts."""
        tasks = [task.id for task in self.tasks]
        canary = Canary(f"{self.record.id}/{self.seed}", tasks, self.attempts)
        return Attempter(
            self.suite,
            self.agent,
            self.limits,
            self.redact,
            watch,
            canary if self.canary else None,
        )


@dataclass(slots=True)
class Progress:
    """How far a run is; handed to whoever shows it after every group of attempts."""

    total: int
    done: int = 0
    passed: int = 0
    failed: int = 0
    missing: int = 0
    retries: int = 0
    leaks: int = 0
    settled: Look | None = None
    """What was found when the run's own rules were looked at last, if it has any."""

    def count(self, record: AttemptRecord) -> None:
        self.done += 1
        self.retries += record.retries
        self.leaks += bool(record.leak)
        verdict = record.judgement.verdict
        self.passed += verdict is Verdict.PASSED
        self.failed += verdict is Verdict.FAILED
        self.missing += verdict is Verdict.MISSING


class Stop:
    """Asks a run to end: gently at first, then at once."""

    def __init__(self) -> None:
        self.asked = False
        self._now: Callable[[], object] | None = None

    def ask(self) -> None:
        """Once: start nothing new. Twice: give up what is in flight."""
        if self.asked and self._now is not None:
            self._now()
        self.asked = True

    def enough(self) -> None:
        """Start nothing new: the question is settled. Not a sign of impatience."""
        self.asked = True

    def when_impatient(self, now: Callable[[], object]) -> None:
        self._now = now


Seen = Callable[[AttemptRecord, Progress], None]


async def run_attempts(plan: RunPlan, store: Store, stop: Stop, seen: Seen) -> Progress:
    """Make every planned attempt that the store does not have yet."""
    store.begin(plan.record, plan.attempts)
    made = store.made(plan.record.id)
    todo = (one for one in plan.wanted() if not made.get(one[0], 0) >> one[1] & 1)
    progress = Progress(total=_left(plan, made))
    rule = _stop_rule(plan, store)
    if rule is not None and rule.ask():
        stop.enough()
    outbox = _Outbox()
    workers = asyncio.create_task(_work(plan, _Claims(plan, store, todo, stop), outbox))
    writer = asyncio.create_task(_write(plan, store, outbox, progress, seen, rule, stop))
    stop.when_impatient(workers.cancel)
    try:
        await asyncio.wait({workers, writer}, return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            workers.cancel()  # a store that cannot be written makes further attempts pointless
            await asyncio.wait({workers})
        outbox.close()
        await writer
        if not workers.cancelled():
            workers.result()
    finally:
        # Claims without a result, after a second Ctrl-C: free for the next runner.
        store.release(plan.record.id)
    progress.settled = None if rule is None else rule.look
    return progress


def _stop_rule(plan: RunPlan, store: Store) -> StopRule | None:
    """The run's own rules, told of every verdict that the store has already."""
    if not plan.stop_when:
        return None
    ids = [task.id for task in plan.tasks]
    rule = StopRule(plan.stop_when, ids, plan.attempts, plan.seed)
    for task, number, verdict in store.verdicts(plan.record.id):
        rule.take(task, number, verdict)
    return rule


def _left(plan: RunPlan, made: dict[str, int]) -> int:
    """How many attempts are to be made; bit i of ``made`` says that attempt i is there."""
    planned = (1 << plan.attempts + 1) - 2
    return sum((planned & ~made.get(task.id, 0)).bit_count() for task in plan.tasks)


class _Claims:
    """Attempts to be made, claimed in blocks that grow while they are used up quickly."""

    def __init__(
        self, plan: RunPlan, store: Store, todo: Iterator[tuple[str, int]], stop: Stop
    ) -> None:
        self._run = plan.record.id
        self._jobs = self._size = plan.jobs
        self._store = store
        self._todo = todo
        self._stop = stop
        self._claimed: list[tuple[str, int]] = []
        self._time = asyncio.get_running_loop().time
        self._last = 0.0

    def following(self) -> tuple[str, int] | None:
        """The next attempt; ``None`` when there is none, or no more are wanted."""
        while not self._claimed and not self._stop.asked:
            now = self._time()
            quick = now - self._last < _QUICK_SECONDS
            self._size = min(2 * self._size, _LARGEST_BLOCK) if quick else self._jobs
            self._last = now
            block = list(islice(self._todo, max(self._size, self._jobs)))
            if not block:
                return None
            self._claimed = self._store.claim(self._run, block)[::-1]
        return self._claimed.pop() if self._claimed and not self._stop.asked else None


async def _work(plan: RunPlan, claims: _Claims, outbox: _Outbox) -> None:
    """Workers that take the next claimed attempt until there is none."""
    tasks = {task.id: task for task in plan.tasks}
    watch = Watch(plan.limits)
    attempter = plan.attempter(watch)

    async def worker() -> None:
        while (one := claims.following()) is not None:
            task, number = one
            seed = seed_of(plan.seed, task, number)
            info = AttemptInfo(task, number, seed, plan.temperature)
            outbox.put(await attempter.attempt(tasks[task], info))
            await outbox.room()  # an agent that never waits must not starve the writer

    watching = asyncio.create_task(watch.keep())
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(plan.jobs):
                group.create_task(worker())
    finally:
        watching.cancel()


class _Outbox:
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


async def _write(
    plan: RunPlan,
    store: Store,
    outbox: _Outbox,
    progress: Progress,
    seen: Seen,
    rule: StopRule | None,
    stop: Stop,
) -> None:
    """Write finished attempts in groups; each is durable within a few hundredths of a second."""
    while records := await outbox.take():
        store.finish(plan.record.id, records)
        for record in records:
            progress.count(record)
            seen(record, progress)
            if rule is not None:
                rule.take(record.task, record.number, record.judgement.verdict)
        if rule is not None and rule.ask():
            stop.enough()
