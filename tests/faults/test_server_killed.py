"""The database server is killed in the middle of a run, and nothing is lost or made twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from passhat.agents import Agent, AttemptInfo, Session
from passhat.runner.run import Progress, Stop, run_attempts
from passhat.runner.run_spec import RunSpec
from passhat.store import AttemptRecord, open_store
from passhat.suites import load_suite
from passhat.suites.base import Turn
from postgres_cluster import Cluster


class Counting(Agent, Session):
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


@pytest.mark.usefixtures("folder")
def test_every_attempt_is_made_and_stored_exactly_once(own_postgres: Cluster) -> None:
    agent, told = Counting(), list[str]()
    cluster = own_postgres
    kills = [(600, cluster.kill_hard), (200, cluster.kill)]
    returns: list[Future[None]] = []
    with ThreadPoolExecutor() as beside:

        def seen(_record: AttemptRecord, progress: Progress) -> None:
            if kills and progress.done >= kills[-1][0]:
                for back in returns:
                    back.result(600)
                kills.pop()[1]()

        def tell(reason: str) -> None:
            """It is missed, by one or several: only now it comes back."""
            told.append(reason)
            if len(returns) + len(kills) < 2:
                returns.append(beside.submit(come_back))

        def come_back() -> None:
            time.sleep(0.7)  # longer than the first try again
            cluster.start()

        suite = load_suite("jsonl:tasks.jsonl")
        plan = RunSpec(suite=suite, agent=agent, attempts=200, jobs=16).plan(tell=tell)
        with open_store(cluster.make_database("team")) as store:
            progress = asyncio.run(run_attempts(plan, store, Stop(), seen))
            verdicts = Counter((task, number) for task, number, _ in store.verdicts(plan.record.id))
            (run,) = store.runs()
    assert [one.result() for one in returns] == [None, None]
    assert "Trying again" in told[0]
    assert (progress.done, run.status) == (1000, "complete")
    planned = {(f"t{i}", number) for i in range(5) for number in range(1, 201)}
    assert set(verdicts) == planned
    assert agent.made == Counter(planned)
