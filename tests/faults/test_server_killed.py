"""The database server is killed in the middle of a run, and nothing is lost or made twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import quote

import psycopg
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


@pytest.fixture
def standby(own_postgres: Cluster) -> Iterator[Cluster]:
    """A server that follows another one, and refuses writes until it is promoted."""
    copy = own_postgres.make_standby()
    copy.start()
    yield copy
    copy.stop()


def ask(address: str, *statements: str) -> object:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchone()


@pytest.mark.usefixtures("folder", "patient")
@pytest.mark.parametrize("is_synchronous", [True, False], ids=["synchronous", "asynchronous"])
def test_a_standby_takes_over(
    own_postgres: Cluster, standby: Cluster, is_synchronous: bool
) -> None:
    """A synchronous standby has every commit; what an asynchronous one lacks is made again."""
    agent, told = Counting(), list[str]()
    database = psycopg.conninfo.conninfo_to_dict(own_postgres.make_database("team"))["dbname"]
    if is_synchronous:
        setting = "ALTER SYSTEM SET synchronous_standby_names = '*'"
        ask(own_postgres.address(), setting, "SELECT pg_reload_conf()")
    faults = [
        (500, own_postgres.kill_hard),
        (250, lambda: None if is_synchronous else cut_off(standby)),
    ]

    def seen(_record: AttemptRecord, progress: Progress) -> None:
        if faults and progress.done >= faults[-1][0]:
            faults.pop()[1]()

    def tell(reason: str) -> None:
        """The main server is missed, and the standby is not promoted before."""
        told.append(reason)
        if not (faults or promotion):
            promotion.append(beside.submit(standby.promote))

    folders = quote(f"{own_postgres.folder},{standby.folder}", safe="")
    address = f"postgresql://passhat@/{database}?host={folders}&target_session_attrs=read-write"
    promotion: list[Future[None]] = []
    suite = load_suite("jsonl:tasks.jsonl")
    plan = RunSpec(suite=suite, agent=agent, attempts=200, jobs=16).plan(tell=tell)
    with ThreadPoolExecutor() as beside, open_store(address) as store:
        progress = asyncio.run(run_attempts(plan, store, Stop(), seen))
        verdicts = Counter((task, number) for task, number, _ in store.verdicts(plan.record.id))
        (run,) = store.runs()
    assert [one.result() for one in promotion] == [None]
    assert (run.status, run.attempts) == ("complete", 1000)
    planned = {(f"t{i}", number) for i in range(5) for number in range(1, 201)}
    assert verdicts == Counter(planned)
    assert set(agent.made) == planned
    if is_synchronous:
        assert (progress.done, agent.made) == (1000, Counter(planned))
    else:
        assert max(agent.made.values()) == 2
        assert not any(line.endswith("another runner took the attempts over.") for line in told)


def cut_off(standby: Cluster) -> None:
    """The standby gets no further commit."""
    ask(standby.address(), "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    while ask(standby.address(), "SELECT count(*) FROM pg_stat_wal_receiver") != (0,):
        time.sleep(0.01)
