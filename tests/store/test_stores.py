"""What every store does: the same tests for SQLite and for PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue, ReadError, StoreUnavailable
from passhat.protocol import Protocol
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import AttemptRecord, PlannedAttempts, RunRecord, Store, open_store, sqlite
from passhat.store.sqlite import SqliteConnection, SqliteStore
from passhat.suites.base import Judgement, Task

TASKS = [Task(f"t{i}", "?", {"kind": "odd" if i % 2 else "even"}) for i in range(4)]
RUN = RunRecord("agent", Protocol(suite="suite"), TASKS)
ALL = [(task.id, number) for task in TASKS for number in (1, 2, 3)]


@pytest.fixture
def store(store_place: str) -> Iterator[Store]:
    with open_store(store_place) as opened:
        opened.begin(RUN, 3)
        yield opened


def made(task: str, number: int, verdict: Verdict = Verdict.PASSED, **more: Any) -> AttemptRecord:
    whys = {
        Verdict.PASSED: "",
        Verdict.FAILED: str(FailureCategory.TIMEOUT),
        Verdict.MISSING: str(MissingReason.JUDGE_ERROR),
    }
    return AttemptRecord(task, number, Judgement(verdict, whys[verdict], "detail"), **more)


def test_a_run_is_written_down_once_and_may_be_extended(store: Store) -> None:
    store.begin(RUN, 2)
    (run,) = store.runs()
    assert (run.id, run.tasks, run.planned, run.attempts, run.status) == (
        *(RUN.id, 4, 3, 0, "stopped"),
    )
    store.begin(replace(RUN, tasks=[*TASKS, Task("new", "?")]), 5)
    (run,) = store.runs()
    assert (run.tasks, run.planned) == (5, 5)
    assert store.protocol(run.id) == RUN.protocol


@pytest.mark.parametrize("has_update_from", [True, False])
def test_many_attempts_are_claimed_and_finished_together(
    store: Store, store_place: str, monkeypatch: pytest.MonkeyPatch, has_update_from: bool
) -> None:
    """More than one statement takes; what another runner has is left to it."""
    monkeypatch.setattr(sqlite, "_HAS_UPDATE_FROM", has_update_from)
    tasks = [Task(f"u{i}", "?") for i in range(997)]
    run = RunRecord("other agent", Protocol(suite="suite"), tasks)
    keys = [(task.id, 1) for task in reversed(tasks)]
    with open_store(store_place) as other:
        store.begin(run, 1)
        other.begin(run, 1)
        assert store.claim(run.id, keys) == keys
        assert other.claim(run.id, keys[:300]) == []
    talk = [{"role": "agent", "text": "yes"}]
    records = [made(*key, seconds=float(key[0][1:]), transcript=talk) for key in keys]
    assert store.finish(run.id, records) == []
    rows = [row for block in store.rows(run.id) for row in block]
    assert [(row[0], row[4]) for row in rows] == [(f"u{i}", float(i)) for i in range(997)]
    assert store.read("SELECT count(*) FROM transcripts") == [(997,)]
    dropped = made("t0", 1)
    assert store.finish(RUN.id, [dropped]) == [dropped]


def test_an_attempt_is_claimed_by_one_only(store: Store, store_place: str) -> None:
    with open_store(store_place) as other:
        assert store.claim(RUN.id, ALL[:5]) == ALL[:5]
        assert other.claim(RUN.id, ALL) == ALL[5:]
        assert store.claim(RUN.id, ALL[5:]) == []
        assert other.runs()[0].status == "in progress"


def test_what_is_finished_is_found_again_as_it_was(store: Store) -> None:
    talk = [{"role": "user", "text": "hello\x00 ünï"}, {"role": "agent", "text": "x" * 1000}]
    first = made(
        *("t1", 2, Verdict.FAILED),
        seed=2**32 - 1,
        seconds=0.1,
        steps=3,
        cost=1e-7,
        retries=2,
        answer_hash="abc",
        leak="t0#1",
        transcript=talk,
    )
    store.claim(RUN.id, [("t1", 2), ("t0", 1)])
    store.finish(RUN.id, [first, made("t0", 1)])
    (block,) = store.rows(RUN.id)
    assert block == [
        ("t0", 1, 1, "", None, None, None, None, None, "", None, '{"kind": "even"}'),
        ("t1", 2, 0, "timeout", 0.1, 3.0, None, 1e-7, 2**32 - 1, "abc", None, '{"kind": "odd"}'),
    ]
    ended = store.attempt(RUN.id, "t1", 2)
    assert ended is not None
    assert (ended.verdict, ended.why, ended.detail) == (Verdict.FAILED, "timeout", "detail")
    assert list(ended.transcript) == talk
    assert store.attempt(RUN.id, "t1", 1) is None
    assert store.leaks(RUN.id) == [("t1", 2, "t0#1")]
    assert list(store.verdicts(RUN.id)) == [("t0", 1, Verdict.PASSED), ("t1", 2, Verdict.FAILED)]


def test_a_zero_byte_in_a_text_does_not_break_the_store(store: Store) -> None:
    store.claim(RUN.id, [("t0", 1)])
    record = AttemptRecord("t0", 1, Judgement(Verdict.FAILED, "exception", "a\x00b"))
    store.finish(RUN.id, [record])
    ended = store.attempt(RUN.id, "t0", 1)
    assert ended is not None
    assert ended.detail.startswith("a")


def test_the_first_result_of_an_attempt_stays(store: Store) -> None:
    store.claim(RUN.id, [("t0", 1)])
    store.finish(RUN.id, [made("t0", 1)])
    store.finish(RUN.id, [made("t0", 1, Verdict.FAILED)])
    assert list(store.verdicts(RUN.id)) == [("t0", 1, Verdict.PASSED)]


def test_made_knows_gaps(store: Store) -> None:
    store.claim(RUN.id, [("t0", 1), ("t0", 2), ("t1", 1), ("t1", 3), ("t2", 2)])
    found = store.load_attempts(RUN.id)
    assert [(task, number) for task, number in ALL if (task, number) in found] == [
        one for one in ALL if one in [("t0", 1), ("t0", 2), ("t1", 1), ("t1", 3), ("t2", 2)]
    ]
    assert len(found) == 5
    assert found.left(["t0", "t1", "t2", "t3"], PlannedAttempts(3)) == 12 - 5
    planned = PlannedAttempts(3, {"t0": 1, "t1": 3, "t2": 2, "t3": 1})
    assert found.left(["t3"], planned) == 1


def test_the_database_counts_what_the_rows_say(store: Store) -> None:
    store.claim(RUN.id, ALL)
    verdicts = [Verdict.PASSED, Verdict.FAILED, Verdict.MISSING, Verdict.PASSED] * 3
    store.finish(
        RUN.id, [made(*one, verdict) for one, verdict in zip(ALL[:11], verdicts[:11], strict=True)]
    )
    found = store.counts(RUN.id)
    assert list(found.tasks) == ["t0", "t1", "t2", "t3"]
    counted = [list(found.n), list(found.c), list(found.m)]
    assert counted == [
        [2, 3, 2, 1],
        [1, 2, 2, 0],
        [1, 0, 1, 1],
    ]
    assert found.reasons == {
        Verdict.FAILED: {"timeout": 3},
        Verdict.MISSING: {"judge_error": 3},
    }
    (run,) = store.runs()
    assert (run.attempts, run.missing, run.passed) == (11, 3, 5)


def test_claims_are_released_and_attempts_without_a_verdict_when_asked(store: Store) -> None:
    store.claim(RUN.id, ALL[:2])
    store.finish(RUN.id, [made(*ALL[0], Verdict.MISSING)])
    assert store.release(RUN.id) == 1
    assert ("t0", 1) in store.load_attempts(RUN.id)
    assert len(store.load_attempts(RUN.id)) == 1
    assert store.release(RUN.id, missing=True) == 1
    assert len(store.load_attempts(RUN.id)) == 0
    assert store.release("unknown") == 0


def test_a_run_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    second = replace(RUN, agent="another")
    store.begin(second, 1)
    assert store.find(RUN.id[:6]).id == RUN.id
    with pytest.raises(InvalidValue, match="2 runs start with"):
        store.find("")
    with pytest.raises(InvalidValue, match="there is no run"):
        store.find("zzz")
    store.remove(RUN.id)
    assert [run.id for run in store.runs()] == [second.id]
    with pytest.raises(InvalidValue, match="there is no run"):
        store.claim(RUN.id, ALL)


def test_a_run_is_found_by_its_name(store: Store) -> None:
    fixed = replace(RUN, name="fixed")
    store.begin(fixed, 1)
    assert store.find("fixed").id == fixed.id
    store.begin(replace(RUN, agent="another", name="fixed"), 1)
    with pytest.raises(InvalidValue, match="2 runs are named 'fixed'"):
        store.find("fixed")
    assert store.find(fixed.id).id == fixed.id


def test_a_write_that_breaks_leaves_nothing_behind(store: Store) -> None:
    store.claim(RUN.id, ALL)
    with pytest.raises(KeyError):
        store.finish(RUN.id, [made("t0", 1), made("no such task", 1)])
    assert list(store.verdicts(RUN.id)) == []
    store.finish(RUN.id, [made("t0", 1)])
    assert len(list(store.verdicts(RUN.id))) == 1


def test_a_store_that_is_not_there_is_refused_where_it_must_be(
    store_place: str,
) -> None:
    with pytest.raises(ReadError, match="there is no store"):
        open_store(store_place, must_exist=True)
    open_store(store_place).close()
    open_store(store_place, must_exist=True).close()


def test_whoever_waits_for_changes_hears_of_them(store: Store, store_place: str) -> None:
    store.claim(RUN.id, ALL)
    store._heart.stop()  # in a file, every renewal of a lease is a change
    heard: list[bool] = []
    waiting = threading.Event()

    def watch() -> None:
        with open_store(store_place) as watcher:
            watcher.changes(0)  # from now on
            assert watcher.changes(0) is False
            waiting.set()
            heard.append(watcher.changes(60))

    thread = threading.Thread(target=watch)
    thread.start()
    assert waiting.wait(60)
    store.finish(RUN.id, [made("t0", 1)])
    thread.join()
    assert heard == [True]


def test_many_may_open_a_new_store_at_once(store_place: str) -> None:
    together = threading.Barrier(6)
    went_wrong: list[Exception] = []

    def open_it() -> None:
        together.wait()
        try:
            open_store(store_place).close()
        except Exception as error:
            went_wrong.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert went_wrong == []
    open_store(store_place, must_exist=True).close()


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["BUSY", "BUSY_RECOVERY", "BUSY_SNAPSHOT", "PROTOCOL", "CORRUPT"])
def test_a_lock_is_waited_for_however_precisely_it_is_named(store: Store, name: str) -> None:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
    assert isinstance(store, SqliteStore)
    told = store._db.translate_error(error)
    assert isinstance(told, StoreUnavailable) == (name != "CORRUPT")


def test_a_store_says_whether_it_is_sound_and_how_large_it_is(store: Store) -> None:
    assert store.is_sound()
    assert store.size() > 0
    store.vacuum()


def test_many_rows_come_in_blocks_while_other_questions_are_asked(store: Store) -> None:
    store.claim(RUN.id, ALL)
    store.finish(RUN.id, [made(*one) for one in ALL])
    sizes = []
    for block in store.rows(RUN.id, size=5):
        sizes.append(len(block))
        assert store.find(RUN.id).attempts == 12
    assert sizes == [5, 5, 2]


@pytest.mark.usefixtures("store")
def test_eight_runners_share_the_work_without_overlap(store_place: str) -> None:
    wanted = [(task.id, number) for number in range(1, 51) for task in TASKS]
    got: list[list[tuple[str, int]]] = []

    def runner() -> None:
        with open_store(store_place) as mine:
            got.extend(
                mine.claim(RUN.id, wanted[start : start + 20])
                for start in range(0, len(wanted), 20)
            )

    threads = [threading.Thread(target=runner) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one for block in got for one in block) == sorted(wanted)


@pytest.mark.parametrize(
    ("code", "message", "is_damaged"),
    [
        (sqlite3.SQLITE_CORRUPT, "database disk image is malformed", True),
        (sqlite3.SQLITE_CORRUPT | 1 << 8, "malformed", True),
        (sqlite3.SQLITE_ERROR, "cannot decode a row", True),
        (sqlite3.SQLITE_ERROR, "no such table", False),
    ],
)
def test_a_damaged_file_is_named_as_such(
    tmp_path: Path, code: int, message: str, is_damaged: bool
) -> None:
    path = str(tmp_path / "store.db")
    with open_store(path):
        connection = sqlite3.connect(path, factory=SqliteConnection)
        error = sqlite3.DatabaseError(message)
        error.sqlite_errorcode = code
        told = connection.translate_error(error)
        connection.close()
    assert ("The file is damaged" in str(told.hint)) == is_damaged
