"""Checks of a store: what is counted, in which order, and which conversations are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, CallRecords, RunRecord, Store, open_store
from passhat.store.check import DAMAGES, Health, check, forget_orphans, forget_transcripts
from passhat.store.database import LogProblem
from passhat.suites.base import Judgement, Task

RUN = RunRecord("agent", Protocol(suite="s"), [Task("a", "?"), Task("b", "?")])
CALLS = CallRecords(1, 0, None, 0, 0, 0, b"[]")
TALK = [{"role": "agent", "text": "yes"}]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Three attempts: the first with a conversation and calls, the second with calls alone."""
    with open_store(":memory:") as opened:
        monkeypatch.setattr(opened, "log_problem", lambda **_: None)  # it has no file
        opened.begin(RUN, 3)
        opened.claim(RUN.id, [("a", 1), ("a", 2), ("b", 1), ("b", 2)])
        opened.finish(
            RUN.id,
            [
                AttemptRecord("a", 1, Judgement(Verdict.PASSED), transcript=TALK, calls=CALLS),
                AttemptRecord("a", 2, Judgement(Verdict.PASSED), calls=CALLS),
                AttemptRecord("b", 1, Judgement(Verdict.PASSED), transcript=TALK),
            ],
        )
        yield opened


def _health(**parts: Any) -> Health:
    """A store that is whole, but for these parts."""
    names = ("size", "runs", "tasks", "attempts", "transcripts", "open_claims", "abandoned_claims")
    counts = dict.fromkeys((*names, *DAMAGES, "transcripts_without_attempt"), 0)
    return Health(**{"version": 1, "sound": True, **counts, **parts})


def test_everything_is_counted_step_by_step(store: Store) -> None:
    told: list[str] = []
    health = check(store, told.append)
    assert (health.runs, health.tasks, health.attempts, health.transcripts) == (1, 2, 3, 2)
    assert (health.open_claims, health.abandoned_claims) == (1, 0)
    assert health.whole
    assert told[:3] == ["whether the database is sound", "runs", "tasks"]
    assert told[-1] == "whether transcripts can be read"
    assert "transcripts without attempt" in told


@pytest.mark.parametrize(("left", "abandoned"), [(-1.0, 3), (0.0, 3), (0.5, 0)])
def test_claims_of_runners_that_are_gone_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch, left: float, abandoned: int
) -> None:
    from passhat.store.leases import HeldClaims

    claims = [HeldClaims("x", 3, 1, left), HeldClaims("y", 5, 1, 9.0)]
    monkeypatch.setattr(store, "list_claims", lambda _: claims)
    assert check(store).abandoned_claims == abandoned


@pytest.mark.parametrize(
    ("table", "text", "count"),
    [
        ("runs", "protocol = '{}'", 0),
        ("runs", "protocol = 'no json'", 1),
        ("runs", "protocol = '[1]'", 1),
        ("runs", "protocol = '{\"odd\": 1}'", 1),
        ("tasks", "labels = '{'", 1),
        ("tasks", 'labels = \'{"kind": "x"}\'', 0),
    ],
)
def test_damaged_protocols_and_labels_are_counted_by_run(
    store: Store, table: str, text: str, count: int
) -> None:
    store._db.execute(f"UPDATE {table} SET {text}")
    health = check(store)
    assert health.unreadable_runs == count
    assert health.whole is not bool(count)


def test_a_run_with_both_damages_is_one(store: Store) -> None:
    store._db.execute("UPDATE runs SET protocol = '['")
    store._db.execute("UPDATE tasks SET labels = '['")
    assert check(store).unreadable_runs == 1


def test_every_damaged_conversation_is_counted(store: Store) -> None:
    store._db.execute("UPDATE transcripts SET body = x'00'")
    assert check(store).unreadable_transcripts == 2


@pytest.mark.parametrize("problem", [None, LogProblem.FOREIGN])
def test_nothing_is_counted_where_the_database_is_not_sound(
    store: Store, monkeypatch: pytest.MonkeyPatch, problem: LogProblem | None
) -> None:
    monkeypatch.setattr(store, "is_sound", lambda: False)
    monkeypatch.setattr(store, "log_problem", lambda *, sound: None if sound else problem)
    health = check(store)
    counts = {
        name: getattr(health, name)
        for name in Health.__slots__
        if name not in ("version", "sound", "size", "log_problem")
    }
    assert set(counts.values()) == {0}
    assert (health.sound, health.whole, health.log_problem) == (False, False, problem)
    assert health.size > 0


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ({}, True),
        ({"open_claims": 1, "abandoned_claims": 1, "transcripts_without_attempt": 1}, True),
        ({"sound": False}, False),
        ({"log_problem": LogProblem.ABSENT}, False),
        *(({name: 1}, False) for name in DAMAGES),
    ],
)
def test_a_store_is_whole_without_any_damage(parts: dict[str, Any], whole: bool) -> None:
    assert _health(**parts).whole is whole


# -- forgetting ------------------------------------------------------------------------------------


def _left(store: Store) -> tuple[int, int, int]:
    counts = [
        store.read(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("transcripts", "calls", "attempts")
    ]
    return counts[0], counts[1], counts[2]


def test_old_conversations_and_calls_are_forgotten_and_conversations_counted(
    store: Store,
) -> None:
    assert forget_transcripts(store, timedelta(days=1)) == 0
    assert _left(store) == (2, 2, 4)
    told: list[int] = []
    assert forget_transcripts(store, timedelta(days=-1), told.append) == 2
    assert told == [2]
    assert _left(store) == (0, 0, 4)


def test_conversations_of_attempts_that_are_gone_are_forgotten(store: Store) -> None:
    assert forget_orphans(store) == 0
    store._db.execute("DELETE FROM attempts WHERE number = 1 AND task = 1")
    told: list[int] = []
    assert forget_orphans(store, told.append) == 1
    assert told[-1] == 1
    assert _left(store) == (1, 1, 3)


def test_a_step_looks_at_no_run_or_task_but_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passhat.store.check._AT_ONCE", 1)
    told: list[int] = []
    assert forget_transcripts(store, timedelta(days=-1), told.append) == 2
    assert told[-1] == 2
