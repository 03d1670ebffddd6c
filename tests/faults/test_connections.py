"""Networks and disks that fail under a runner: nothing is lost, doubled or mixed.

Time is moved, not waited for: a lock of a minute takes as long as the announcement of it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faulty_proxy import FaultyProxy
from moved_clock import move_clock, run_with_clock
from passhat.agents import Agent, AttemptInfo, Session
from passhat.errors import ReadError, StoreUnavailable
from passhat.runner import queues
from passhat.runner.queues import StoreRetry, StoreThread
from passhat.runner.run import Progress, RunPlan, Stop, run_attempts
from passhat.runner.run_spec import RunSpec
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, open_store
from passhat.store.database import is_address
from passhat.suites.base import Turn
from postgres_cluster import Cluster

Passhat = Callable[..., Any]
ATTEMPTS = 20
AHEAD = 8
PLANNED = {(f"t{task}", number) for task in range(5) for number in range(1, ATTEMPTS + 1)}


class Counting(Agent):
    """Answers right at odd seeds; counts how often each attempt was made.

    It is at most a few attempts ahead of what is written, so that faults meet a run at work.
    """

    name = "counting"

    def __init__(self) -> None:
        self.made: Counter[tuple[str, int]] = Counter()
        self.answers: dict[tuple[str, int], str] = {}
        self.written = 0

    async def session(self, attempt: AttemptInfo) -> Session:
        self.made[attempt.task, attempt.number] += 1
        self.answers[attempt.task, attempt.number] = answer = "yes" if attempt.seed % 2 else "no"
        return _Says(self, answer)


class _Says(Session):
    def __init__(self, agent: Counting, answer: str) -> None:
        self._agent = agent
        self._answer = answer

    async def answer(self, _turn: Turn) -> str:
        while self._agent.made.total() > self._agent.written + AHEAD:
            await asyncio.sleep(0.001)
        return self._answer


def planned(agent: Agent, tell: Callable[[str], None]) -> RunPlan:
    spec = RunSpec(suite="jsonl:tasks.jsonl", agent=agent, attempts=ATTEMPTS, jobs=4)
    return spec.plan(tell=tell)


def run(
    place: str,
    agent: Counting,
    tell: Callable[[str], None],
    at: dict[int, Callable[[], object]],
    stop: Stop | None = None,
    lease: float = 30.0,
) -> Progress:
    """Make all attempts; ``at`` says what happens once so many are written."""

    def seen(_record: AttemptRecord, progress: Progress) -> None:
        agent.written = progress.done
        for count in [count for count in at if progress.done >= count]:
            at.pop(count)()

    with open_store(place, lease_seconds=lease) as store:
        return run_with_clock(run_attempts(planned(agent, tell), store, stop or Stop(), seen))


def assert_whole(place: str, agent: Counting) -> None:
    """Nothing is lost (all are there), doubled (each was made once), or mixed."""
    with open_store(place, read_only=True) as store:
        (stored,) = store.runs()
        rows = list(store.verdicts(stored.id))
        assert Counter((task, number) for task, number, _ in rows) == Counter(PLANNED)
        for task, number, verdict in rows:
            ended = store.attempt(stored.id, task, number)
            assert ended is not None
            (answer,) = [entry["text"] for entry in ended.transcript if entry["role"] == "agent"]
            assert answer == agent.answers[task, number]
            assert (verdict is Verdict.PASSED) == (agent.answers[task, number] == "yes")
        assert store.is_sound()
    assert agent.made == Counter(PLANNED)


@pytest.fixture
def proxied(postgres_server: Cluster, postgres_address: str) -> Iterator[tuple[FaultyProxy, str]]:
    """A proxy in front of a database, and the database's address through it."""
    (sock,) = postgres_server.folder.glob(".s.PGSQL.*[0-9]")
    proxy = FaultyProxy(sock)
    settings = psycopg.conninfo.conninfo_to_dict(postgres_address)
    yield proxy, f"postgresql://{settings['user']}@127.0.0.1:{proxy.port}/{settings['dbname']}"
    proxy.close()


@pytest.mark.usefixtures("folder")
def test_connections_that_are_cut_are_made_again(
    proxied: tuple[FaultyProxy, str], postgres_address: str
) -> None:
    proxy, place = proxied
    agent, told = Counting(), list[str]()
    run(place, agent, told.append, dict.fromkeys((5, 30, 60, 90), proxy.cut))
    assert "Trying again" in told[0]
    assert_whole(postgres_address, agent)


@pytest.mark.usefixtures("folder")
def test_a_network_that_swallows_bytes_is_announced_and_the_run_goes_on(
    proxied: tuple[FaultyProxy, str], postgres_address: str
) -> None:
    proxy, place = proxied
    agent, told = Counting(), list[str]()

    def swallow() -> None:
        loop = asyncio.get_running_loop()
        proxy.when_swallowed = lambda: loop.call_soon_threadsafe(move_clock, 5.0)
        proxy.swallow()

    def tell(reason: str) -> None:
        told.append(reason)
        proxy.restore()
        if len(told) == 1:
            pass_time(30.0)  # the call is cut off, and made again over a new connection

    run(place, agent, tell, {30: swallow})
    assert "has not answered for 4 s. Trying again" in told[0]
    assert_whole(postgres_address, agent)


def pass_time(seconds: float) -> None:
    """Move the clock once the caller waits."""
    asyncio.get_running_loop().call_soon(move_clock, seconds)


class Lock:
    """Holds the attempts locked, as another program would."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._other: Any = None

    @property
    def is_taken(self) -> bool:
        return self._other is not None

    def take(self) -> None:
        if is_address(self._place):
            self._other = psycopg.connect(self._place)
            self._other.execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
            # A server says nothing to those who wait for a lock: time alone tells of it.
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._wait_for_waiting, args=(loop,), daemon=True).start()
        else:
            self._other = sqlite3.connect(self._place, timeout=60.0, isolation_level=None)
            self._other.execute("BEGIN IMMEDIATE")

    def _wait_for_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "
        asked += "(SELECT oid FROM pg_database WHERE datname = current_database())"
        with psycopg.connect(self._place, autocommit=True) as watcher:
            while not watcher.execute(asked).fetchone()[0]:  # type: ignore[index]
                pass
        loop.call_soon_threadsafe(move_clock, 5.0)

    def free(self) -> None:
        if self._other is not None:
            self._other.close()
            self._other = None


@pytest.fixture
def lock(store_place: str) -> Iterator[Lock]:
    own = Lock(store_place)
    yield own
    own.free()


@pytest.mark.usefixtures("folder")
def test_a_lock_of_a_minute_is_announced_and_waited_for(store_place: str, lock: Lock) -> None:
    agent, told = Counting(), list[str]()

    def tell(reason: str) -> None:
        if lock.is_taken and not told:  # several calls may wait for it
            told.append(reason)
            pass_time(60.0)  # the call is cut off; the next one waits again, and then it is free
            asyncio.get_running_loop().call_later(0.2, lock.free)

    run(store_place, agent, tell, {30: lock.take})
    assert "Trying again for 120 s" in told[0]
    assert_whole(store_place, agent)


@pytest.mark.usefixtures("folder")
def test_a_lock_of_more_than_two_minutes_ends_the_run_and_the_command_goes_on(
    store_place: str, lock: Lock
) -> None:
    agent = Counting()

    def never(_reason: str) -> None:
        if lock.is_taken:
            pass_time(180.0)

    with pytest.raises(StoreUnavailable, match="cannot be") as caught:
        run(store_place, agent, never, {30: lock.take}, lease=1.0)
    assert "run the same command again" in str(caught.value.hint)
    lock.free()
    again = Counting()
    run(store_place, again, lambda _reason: None, {})
    # What was in flight is made again; what was reported as written is not.
    assert sum(again.made.values()) <= len(PLANNED) - 30
    again.answers = agent.answers | again.answers
    again.made = Counter(PLANNED)
    assert_whole(store_place, again)


@pytest.mark.usefixtures("folder")
def test_ctrl_c_ends_a_run_whose_store_is_locked(store_place: str, lock: Lock) -> None:
    stop = Stop()

    def ask(_reason: str) -> None:
        if lock.is_taken:
            stop.ask()
            stop.ask()

    with pytest.raises(StoreUnavailable):
        run(store_place, Counting(), ask, {30: lock.take}, stop)


def test_a_call_that_waits_behind_a_silent_one_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupt would meet the silent one; the call behind it is not under way."""
    monkeypatch.setattr(queues, "_ANNOUNCE_SECONDS", 0.01)
    monkeypatch.setattr(queues, "_CALL_SECONDS", 0.02)
    released = threading.Event()

    def silent() -> str:
        released.wait(600)
        return "answered"

    async def whole() -> str:
        thread = StoreThread()
        retry = StoreRetry(0.0, lambda _reason: None, thread)
        first = asyncio.ensure_future(retry(silent))
        await asyncio.sleep(0)  # it is made first
        try:
            with pytest.raises(StoreUnavailable, match="has not answered"):
                await retry(lambda: "never made")
        finally:
            released.set()
            thread.close()
        return await first

    assert asyncio.run(whole()) == "answered"


@pytest.mark.usefixtures("folder", "patient")
def test_a_full_disk_of_the_server_is_waited_for(postgres_address: str) -> None:
    """The server's own error, 53100, raised by a trigger while there is no room."""
    agent, told = Counting(), list[str]()

    def fill() -> None:
        with psycopg.connect(postgres_address) as other:
            other.execute(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
                "EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = "
                "'disk_full'; END $$; CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON attempts "
                "EXECUTE FUNCTION full_disk()"
            )

    def tell(reason: str) -> None:
        told.append(reason)
        with psycopg.connect(postgres_address) as other:
            other.execute("DROP TRIGGER full_disk ON attempts")

    run(postgres_address, agent, tell, {30: fill})
    assert "No space left on device" in told[0]
    assert_whole(postgres_address, agent)


@pytest.mark.usefixtures("folder")
def test_a_database_that_is_dropped_ends_the_run(postgres_address: str) -> None:
    def drop() -> None:
        name = psycopg.conninfo.conninfo_to_dict(postgres_address)["dbname"]
        elsewhere = psycopg.conninfo.make_conninfo(postgres_address, dbname="postgres")
        with psycopg.connect(elsewhere, autocommit=True) as other:
            other.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    with pytest.raises(ReadError, match="does not exist"):
        run(postgres_address, Counting(), lambda _reason: None, {30: drop})


VANISHES = """
import os, shutil
def agent(prompt, attempt):
    if attempt.task == "t3" and not os.path.exists("gone"):
        open("gone", "w").close()
        {what}
    return "yes"
"""


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("deleted", "os.remove({place!r})"),
        ("replaced", "shutil.copy({place!r}, 'copy.db'); os.replace('copy.db', {place!r})"),
    ],
)
def test_a_store_that_is_deleted_or_replaced_ends_the_run_with_2(
    passhat: Passhat, folder: Path, way: str, fault: str, what: str
) -> None:
    place, module = str(folder / "store.db"), f"{fault}_{way}"
    (folder / f"{module}.py").write_text(VANISHES.format(what=what.format(place=place)))
    ended = passhat(
        *("run", "-s", "jsonl:tasks.jsonl", "-a", f"python:{module}:agent", "-n", "20"),
        *("--jobs", "1", "--store", place),
    )
    assert ended.code == 2
    assert "was deleted or replaced while it was in use" in ended.err
    assert "Traceback" not in ended.err


class Served:
    """A model's server that answers in the form of OpenAI, one request per connection."""

    def __init__(self) -> None:
        self.asked = 0
        self.when: dict[int, Callable[[], object]] = {}
        own = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Print nothing."""

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                own.asked += 1
                own.when.pop(own.asked, lambda: None)()
                message = {"role": "assistant", "content": "yes"}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                body = json.dumps({"choices": [choice], "usage": usage, "model": "small"}).encode()
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.mark.usefixtures("folder")
def test_a_network_that_is_cut_between_runner_and_model_costs_calls_and_no_attempt(
    passhat: Passhat, store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    served = Served()
    proxy = FaultyProxy(("127.0.0.1", served.server.server_port))
    served.when = {7: proxy.cut, 15: proxy.cut}
    try:
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-n", "5", "--jobs", "2", "--store", store_place),
            *("-a", f"openai:small@http://127.0.0.1:{proxy.port}/v1"),
        )
    finally:
        proxy.close()
        served.close()
    assert ended.code == 0, ended.err
    with open_store(store_place, read_only=True) as store:
        (stored,) = store.runs()
        assert (stored.attempts, stored.passed, stored.missing) == (25, 25, 0)
        rows = Counter((task, number) for task, number, _ in store.verdicts(stored.id))
    assert set(rows.values()) == {1}
