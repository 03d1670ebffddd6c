"""The database server is killed in the middle of a run, and nothing is lost or made twice."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from passhat.agents import AttemptInfo
from passhat.runner.planning import plan_run
from passhat.runner.running import Progress, Stop, run_attempts
from passhat.store import AttemptRecord, open_store
from passhat.suites import load_suite
from passhat.suites.base import Turn
from postgres_cluster import Cluster


class Counting:
    """Answers after a moment, and counts how often each attempt was made."""

    name = "counting"

    def __init__(self) -> None:
        self.made: Counter[tuple[str, int]] = Counter()

    async def session(self, attempt: AttemptInfo) -> Counting:
        self.made[attempt.task, attempt.number] += 1
        return self

    async def answer(self, _turn: Turn) -> str:
        await asyncio.sleep(0.01)
        return "yes"

    async def close(self) -> None:
        return


@pytest.mark.usefixtures("folder", "needs_postgres")
def test_every_attempt_is_made_and_stored_exactly_once() -> None:
    cluster, agent, told = Cluster(), Counting(), list[str]()
    cluster.start()
    try:
        address = cluster.make_database("team")
        kills = iter([(200, cluster.kill), (600, cluster.kill_hard)])
        following = [next(kills)]

        def again() -> None:
            cluster.start()

        def seen(_record: AttemptRecord, progress: Progress) -> None:
            at, kill = following[0]
            if progress.done >= at:
                following[0] = next(kills, (10**9, again))
                kill()
                threading.Timer(0.7, again).start()

        suite = load_suite("jsonl:tasks.jsonl")
        plan = plan_run(suite, agent, attempts=200, jobs=16, tell=told.append)
        with open_store(address) as store:
            progress = asyncio.run(run_attempts(plan, store, Stop(), seen))
            verdicts = Counter((task, number) for task, number, _ in store.verdicts(plan.record.id))
            (run,) = store.runs()
    finally:
        cluster.stop()
    assert len(told) >= 2
    assert "Trying again" in told[0]
    assert (progress.done, run.status) == (1000, "complete")
    planned = {(f"t{i}", number) for i in range(5) for number in range(1, 201)}
    assert set(verdicts) == planned
    assert agent.made == Counter(planned)
