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
from typing import cast

from passhat.agents.base import Agent, AttemptInfo
from passhat.outcomes import Verdict
from passhat.runner.attempting import Limits, attempt, seed_of
from passhat.runner.harness import Harness
from passhat.runner.redaction import Redactor
from passhat.store import AttemptRecord, RunRecord, Store
from passhat.suites.base import Suite, Task

__all__ = ["Limits", "Progress", "RunPlan", "Stop", "run_attempts"]

_DRAIN_SECONDS = 0.02
"""Finished attempts wait at most this long to be written together."""
_UNWRITTEN = 1_000
"""More than this many finished attempts are never held in memory."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run: one object that travels, rather than its fields."""

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

    def wanted(self) -> Iterator[tuple[str, int]]:
        """Every attempt: all tasks once, then all of them again, so that a stop stays fair."""
        for number in range(1, self.attempts + 1):
            order = [task.id for task in self.tasks]
            random.Random(f"{self.seed}/{number}").shuffle(order)
            yield from ((task, number) for task in order)


@dataclass(slots=True)
class Progress:
    """How far a run is; handed to whoever shows it after every group of attempts."""

    total: int
    done: int = 0
    passed: int = 0
    failed: int = 0
    missing: int = 0
    retries: int = 0

    def count(self, record: AttemptRecord) -> None:
        self.done += 1
        self.retries += record.retries
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

    def when_impatient(self, now: Callable[[], object]) -> None:
        self._now = now


Seen = Callable[[AttemptRecord, Progress], None]


async def run_attempts(plan: RunPlan, store: Store, stop: Stop, seen: Seen) -> Progress:
    """Make every planned attempt that the store does not have yet."""
    if hasattr(plan.suite, "harness"):
        return await cast("Harness", plan.suite).run(plan, store, stop, seen)
    store.begin(plan.record, plan.attempts)
    made = store.made(plan.record.id)
    todo = [one for one in plan.wanted() if one not in made]
    progress = Progress(total=len(todo))
    finished: asyncio.Queue[AttemptRecord | None] = asyncio.Queue(_UNWRITTEN)
    workers = asyncio.create_task(_work(plan, store, iter(todo), finished, stop))
    writer = asyncio.create_task(_write(plan, store, finished, progress, seen))
    stop.when_impatient(workers.cancel)
    try:
        await asyncio.wait({workers, writer}, return_when=asyncio.FIRST_COMPLETED)
        if not writer.done():
            await finished.put(None)  # nothing more will come
        else:
            workers.cancel()  # a store that cannot be written makes further attempts pointless
        await asyncio.wait({workers})
        await writer
        if not workers.cancelled():
            workers.result()
    finally:
        # Claims without a result, after a second Ctrl-C: free for the next runner.
        store.release(plan.record.id)
        close = getattr(plan.suite, "close", None)
        if close is not None:
            await close()
    return progress


async def _work(
    plan: RunPlan,
    store: Store,
    todo: Iterator[tuple[str, int]],
    finished: asyncio.Queue[AttemptRecord | None],
    stop: Stop,
) -> None:
    """Workers that take the next claimed attempt until there is none."""
    tasks = {task.id: task for task in plan.tasks}
    claimed: list[tuple[str, int]] = []

    def following() -> tuple[str, int] | None:
        while not claimed and not stop.asked:
            block = list(islice(todo, plan.jobs))
            if not block:
                return None
            claimed.extend(reversed(store.claim(plan.record.id, block)))
        return claimed.pop() if claimed and not stop.asked else None

    async def worker() -> None:
        while (one := following()) is not None:
            task, number = one
            seed = seed_of(plan.seed, task, number)
            info = AttemptInfo(task, number, seed, plan.temperature)
            record = await attempt(
                plan.suite, plan.agent, tasks[task], info, plan.limits, plan.redact
            )
            await finished.put(record)
            await asyncio.sleep(0)  # an agent that never waits must not starve the writer

    async with asyncio.TaskGroup() as group:
        for _ in range(plan.jobs):
            group.create_task(worker())


async def _write(
    plan: RunPlan,
    store: Store,
    finished: asyncio.Queue[AttemptRecord | None],
    progress: Progress,
    seen: Seen,
) -> None:
    """Write finished attempts in groups; each is durable within a few hundredths of a second."""
    ended = False
    while not ended:
        group = [await finished.get()]
        await asyncio.sleep(_DRAIN_SECONDS)
        while not finished.empty():
            group.append(finished.get_nowait())
        records = [record for record in group if record is not None]
        ended = len(records) < len(group)
        store.finish(plan.record.id, records)
        for record in records:
            progress.count(record)
            seen(record, progress)
