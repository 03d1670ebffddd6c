"""Leases: claims are fenced by a token, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, ReadError, StoreUnavailable
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, leases, open_store
from passhat.store.leases import Heartbeat
from passhat.suites.base import Judgement, Task

RUN = RunRecord("agent", Protocol(suite="suite"), [Task("a", "?"), Task("b", "?")])
BOTH = [("a", 1), ("b", 1)]


@pytest.fixture
def store(store_place: str) -> Iterator[Store]:
    with open_store(store_place) as opened:
        opened.begin(RUN, 1)
        yield opened


def record(task: str, verdict: Verdict, words: str, number: int = 1) -> AttemptRecord:
    talk = [{"role": "agent", "text": words}]
    return AttemptRecord(task, number, Judgement(verdict), tokens=5, cost=1.0, transcript=talk)


def expire(store: Store) -> None:
    """End the leases of all runners, as if none had been renewed for an hour."""
    store._db.execute("UPDATE leases SET seen = seen - 3600, seconds = 1")


def test_a_runner_that_lost_its_lease_writes_nothing(store: Store, store_place: str) -> None:
    """Issue 17: A was stopped for longer than its lease, B failed the attempts, A comes back."""
    assert store.claim(RUN.id, BOTH) == BOTH
    store._heart.stop()
    store.claim(RUN.id, [])  # renews once more, and the clock goes on without A
    expire(store)
    with open_store(store_place) as other:
        assert [held.claims for held in other.list_claims(RUN.id)] == [2]
        assert wait_released(other) == 2
        assert other.claim(RUN.id, BOTH) == BOTH
        assert other.finish(RUN.id, [record("a", Verdict.FAILED, "b's words")]) == []
        # A's own results: one is finished by B, the other is B's claim.
        late = [record(task, Verdict.PASSED, "a's words") for task in ("a", "b")]
        assert store.finish(RUN.id, late) == late
        ended = other.attempt(RUN.id, "a", 1)
        assert ended is not None
        assert ended.verdict is Verdict.FAILED
        assert ended.transcript == [{"role": "agent", "text": "b's words"}]
        assert other.attempt(RUN.id, "b", 1) is None
        assert other.load_usage(RUN.id, priced=True).cost == 1.0
        assert other.finish(RUN.id, [record("b", Verdict.FAILED, "b's words")]) == []
    assert list(store.verdicts(RUN.id)) == [
        ("a", 1, Verdict.FAILED),
        ("b", 1, Verdict.FAILED),
    ]


def wait_released(store: Store) -> int:
    """Release; a server that has just started counts no time before its start."""
    end = time.monotonic() + 60
    while not (count := store.release_expired(RUN.id)) and time.monotonic() < end:
        time.sleep(0.05)
    return count


def test_part_of_a_group_may_be_ours(store: Store, store_place: str) -> None:
    store.claim(RUN.id, BOTH)
    store._db.execute("DELETE FROM attempts WHERE task = (SELECT max(task) FROM attempts)")
    with open_store(store_place) as other:
        assert other.claim(RUN.id, BOTH) == [("b", 1)]
        mine = [record(task, Verdict.PASSED, "mine") for task in ("a", "b")]
        assert store.finish(RUN.id, mine) == mine[1:]
        assert list(store.verdicts(RUN.id)) == [("a", 1, Verdict.PASSED)]


def test_a_result_whose_answer_was_lost_may_be_written_again(store: Store) -> None:
    store.claim(RUN.id, BOTH)
    group = [record("a", Verdict.PASSED, "first")]
    assert store.finish(RUN.id, group) == []
    assert store.finish(RUN.id, group) == []
    assert list(store.verdicts(RUN.id)) == [("a", 1, Verdict.PASSED)]


def test_without_a_claim_nothing_is_written(store: Store) -> None:
    group = [record("a", Verdict.PASSED, "never claimed")]
    assert store.finish(RUN.id, group) == group
    assert list(store.verdicts(RUN.id)) == []


def test_a_live_lease_is_never_taken(store: Store, store_place: str) -> None:
    store.claim(RUN.id, BOTH)
    with open_store(store_place) as other:
        (held,) = other.list_claims(RUN.id)
        assert not held.expired
        assert 0 < held.left <= 30
        assert other.release(RUN.id) == 0
        assert other.claim(RUN.id, BOTH) == []


def test_a_lease_that_was_renewed_since_it_was_looked_at_is_kept(
    store: Store, store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.claim(RUN.id, BOTH)
    expire(store)
    with open_store(store_place) as other:
        looked = other.list_claims

        def look_then_renew(run: str) -> list[object]:
            found = looked(run)
            store.claim(RUN.id, [])
            return [type(held)(held.token, held.claims, held.beats, 0.0) for held in found]

        monkeypatch.setattr(other, "list_claims", look_then_renew)
        assert other.release_expired(RUN.id) == 0
    assert store.finish(RUN.id, [record("a", Verdict.PASSED, "kept")]) == []


def test_a_store_that_is_closed_leaves_no_lease(store_place: str) -> None:
    with open_store(store_place) as store:
        store.begin(RUN, 1)
        store.claim(RUN.id, BOTH)
    with open_store(store_place) as other:
        assert other._db.execute("SELECT count(*) FROM leases").fetchone()[0] == 0
        assert other.release(RUN.id) == 2


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_another_machines_clock_is_not_believed(
    store: Store, store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease counts as expired only when its beats stood still for a lease of our own clock."""
    store.claim(RUN.id, BOTH)
    store._heart.stop()
    store.claim(RUN.id, [])
    store._db.execute("UPDATE leases SET clock = 'elsewhere', seen = 0")
    now = [1000.0]
    monkeypatch.setattr("passhat.store.sqlite.time.monotonic", lambda: now[0])
    with open_store(store_place) as other:
        assert not other.list_claims(RUN.id)[0].expired
        now[0] += 29
        assert not other.list_claims(RUN.id)[0].expired
        store._db.execute("UPDATE leases SET beats = beats + 1")  # it lives
        now[0] += 29
        assert not other.list_claims(RUN.id)[0].expired
        now[0] += 31
        assert other.list_claims(RUN.id)[0].expired


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_a_file_that_was_replaced_is_noticed(store: Store, store_place: str) -> None:
    store.claim(RUN.id, BOTH)
    Path(store_place).rename(f"{store_place}.away")
    with pytest.raises(ReadError, match="deleted or replaced"):
        store.finish(RUN.id, [record("a", Verdict.PASSED, "lost")])
    open_store(store_place).close()
    with pytest.raises(ReadError, match="deleted or replaced"):
        store.finish(RUN.id, [record("a", Verdict.PASSED, "lost")])


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_a_store_is_closed_while_its_file_is_locked(
    store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease cannot be deleted, and is left to expire; no thread raises anything."""
    monkeypatch.setattr(leases, "_STOP_SECONDS", 0.05)
    open_store(store_place).close()
    with closing(sqlite3.connect(store_place, isolation_level=None)) as other:
        with open_store(store_place) as store:
            store.begin(RUN, 1)
            store.claim(RUN.id, BOTH)
            store._heart._renew()
            store.wait_at_most(0.3)
            other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM leases").fetchone() == (1,)


def test_a_lease_lasts_at_least_a_second(store_place: str) -> None:
    with pytest.raises(InvalidValue, match="at least 1 s"):
        open_store(store_place, lease_seconds=0.0)


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_a_claim_of_which_a_part_is_taken_leaves_no_trace_of_the_rest(
    store: Store, store_place: str
) -> None:
    """Rows that were claimed together and undone may be claimed one by one, each once."""
    with open_store(store_place) as other:
        other.claim(RUN.id, [("a", 1)])
        assert store.claim(RUN.id, [("b", 2), ("a", 1), ("b", 1)]) == [("b", 2), ("b", 1)]
        assert sum(held.claims for held in other.list_claims(RUN.id)) == 2
        assert other.claim(RUN.id, [("b", 1), ("a", 1)]) == [("a", 1)]


def _beating(renew: Callable[[], None]) -> tuple[Heartbeat, list[str]]:
    """A heartbeat that renews a hundred times a second, and what it did."""
    events: list[str] = []

    def end(was_started: bool) -> None:
        events.append(f"end {was_started}")

    heart = Heartbeat(renew, end, lambda: events.append("interrupt"), 1.0)
    heart._every = 0.01
    return heart, events


def test_a_lease_is_renewed_again_and_again_also_behind_an_error() -> None:
    renewed = threading.Event()
    calls: list[int] = []

    def renew() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise StoreUnavailable("is locked.", source="s.db")
        renewed.set()

    heart, events = _beating(renew)
    heart.start()
    thread = heart._thread
    heart.start()
    assert heart._thread is thread
    assert renewed.wait(30)
    heart.stop()
    assert events == ["end True"]
    assert thread is not None
    assert not thread.is_alive()


def test_a_renewal_that_does_not_come_back_is_interrupted() -> None:
    gate = threading.Event()

    def renew() -> None:
        gate.wait(30)

    heart, events = _beating(renew)
    interrupt = heart._interrupt

    def let_go() -> None:
        interrupt()
        gate.set()

    heart._interrupt = let_go
    heart.start()
    assert gate.wait(30)
    heart.stop()
    assert events[0] == "interrupt"
    assert events[-1] == "end True"


def test_without_a_claim_nothing_was_begun() -> None:
    heart, events = _beating(lambda: None)
    heart.stop()
    assert events == ["end False"]


# -- a heartbeat, without its thread ---------------------------------------------------------------


def _nothing(_begun: bool = False) -> None:
    """A step that does nothing."""


@pytest.mark.parametrize("seconds", [0.0, 0.99, -1.0, float("nan")])
def test_a_lease_that_is_too_short_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidValue, match="a lease must last at least 1 s, not"):
        Heartbeat(_nothing, _nothing, _nothing, seconds)
    assert Heartbeat(_nothing, _nothing, _nothing, 1.0)._every == pytest.approx(1 / 6)


@pytest.mark.parametrize(("left", "expired"), [(-1.0, True), (0.0, True), (0.01, False)])
def test_claims_expire_with_their_lease(left: float, expired: bool) -> None:
    assert leases.HeldClaims("t", 1, 1, left).expired is expired


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_renewal_under_way_is_interrupted_when_the_store_is_closed(is_alive: bool) -> None:
    log: list[str] = []
    heart = Heartbeat(
        _nothing, lambda begun: log.append(f"end {begun}"), lambda: log.append("cut"), 9
    )
    thread: Any = SimpleNamespace(
        join=lambda *seconds: log.append(f"join {seconds}"), is_alive=lambda: is_alive
    )
    heart._thread = thread
    heart.stop()
    assert log == ["join (2.0,)", *(["cut", "join ()"] if is_alive else []), "end True"]
    assert heart._over.is_set()
    heart.stop()
    assert log[-1] == "end False"


def test_a_server_that_is_away_is_not_waited_for_at_the_end() -> None:
    def end(_begun: bool) -> None:
        raise StoreUnavailable("is away.", source="s")

    Heartbeat(_nothing, end, _nothing, 9.0).stop()


@pytest.mark.parametrize(
    ("seconds", "trouble", "pauses"),
    [
        (12.0, [False, True, True, False], [2.0, 2.0, 1.0, 1.0, 2.0]),
        (3.0, [True, False], [0.5, 0.5, 0.5]),
    ],
)
def test_after_trouble_a_lease_is_renewed_soon(
    seconds: float, trouble: list[bool], pauses: list[float]
) -> None:
    waited: list[float] = []
    limits: list[float] = []

    def renew() -> None:
        if trouble[len(waited) - 1]:
            raise StoreUnavailable("is locked.", source="s")

    def wait(pause: float) -> bool:
        waited.append(pause)
        return len(waited) > len(trouble)

    @contextmanager
    def limit(most: float) -> Iterator[None]:
        limits.append(most)
        yield

    heart: Any = Heartbeat(renew, _nothing, _nothing, seconds)
    heart._over, heart._interrupt_after = SimpleNamespace(wait=wait), limit
    heart._keep()
    assert waited == pauses
    assert set(limits) == {seconds / 3}


def test_a_call_that_takes_longer_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, _call: object) -> None:
            log.append(seconds)

        def start(self) -> None:
            log.append(f"start, daemon {self.daemon}")

        def cancel(self) -> None:
            log.append("cancel")

    monkeypatch.setattr(threading, "Timer", Timer)
    heart = Heartbeat(_nothing, _nothing, _nothing, 6.0)
    with pytest.raises(ValueError, match="inside"), heart._interrupt_after(2.5):
        raise ValueError("inside")
    assert log == [2.5, "start, daemon True", "cancel"]


def test_tokens_differ_and_the_clock_goes_on() -> None:
    assert len({leases.new_token() for _ in range(99)}) == 99
    assert {len(leases.new_token()) for _ in range(9)} == {11}
    assert leases.clock_id() == leases.clock_id()
    assert leases.clock_now() <= leases.clock_now()
