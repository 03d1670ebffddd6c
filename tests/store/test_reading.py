"""Questions that pages ask, answered by the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import (
    AttemptRecord,
    JudgementSource,
    RunRecord,
    StoredJudgement,
    open_reading,
    open_store,
)
from passhat.store.queries import AttemptFilter, Reading
from passhat.suites.base import Judgement, Task


@pytest.fixture
def place(store_place: str) -> str:
    """Three tasks with three attempts each; one attempt is still being made."""
    with open_store(store_place) as store:
        tasks = [Task(name, "?", {"band": "x"}) for name in ("b", "a", "c")]
        record = RunRecord("agent", Protocol(suite="suite"), tasks)
        store.begin(record, 3)
        store.claim(record.id, [(task.id, number) for task in tasks for number in (1, 2, 3)])
        passed, failed = Judgement(Verdict.PASSED), Judgement(Verdict.FAILED, "timeout", "late")
        missing = Judgement(Verdict.MISSING, "budget")
        for task, number, judgement in (
            *(("b", 1, passed), ("a", 1, failed), ("c", 1, missing), ("b", 2, passed)),
            *(("a", 2, passed), ("c", 2, failed), ("b", 3, failed), ("a", 3, failed)),
        ):
            store.finish(
                record.id, [AttemptRecord(task, number, judgement, seconds=2.0, steps=number)]
            )
    return store_place


@pytest.fixture
def reading(place: str) -> Iterator[Reading]:
    with open_reading(place) as found:
        yield found


def test_counts_are_those_of_the_store(reading: Reading, place: str) -> None:
    (head,) = reading.heads()
    assert head.open
    assert head.last
    counts = reading.counts()[head.key]
    with open_store(place) as store:
        (run,) = store.runs()
    assert (counts.tasks, counts.attempts, counts.passed, counts.missing) == (
        *(run.tasks, run.attempts, run.passed, run.missing),
    )
    assert reading.counts(head.key) == reading.counts()
    rows = [(one.task, one.n, one.c, one.missing) for one in reading.task_counts(head.key)]
    assert rows == [("b", 3, 2, 0), ("a", 3, 1, 0), ("c", 1, 0, 1)]
    groups = {(one.verdict, one.why): one for one in reading.groups(head.key)}
    assert groups[Verdict.FAILED, "timeout"].attempts == 4
    assert groups[Verdict.FAILED, "timeout"].seconds == 8.0
    assert groups[Verdict.PASSED, ""].cost is None


def test_lines_from_a_place_on(reading: Reading) -> None:
    key = reading.heads()[0].key
    whole = reading.lines(key, AttemptFilter(), 100, None)
    assert " ".join(f"{one.task}{one.number}" for one in whole) == "b1 b2 b3 a1 a2 a3 c1 c2"
    assert reading.lines(key, AttemptFilter(), 2, whole[2].place) == whole[3:5]
    assert reading.neighbor(key, AttemptFilter(), whole[3].place, before=True) == whole[2]
    assert reading.neighbor(key, AttemptFilter(), whole[3].place, before=False) == whole[4]
    assert reading.neighbor(key, AttemptFilter(), whole[-1].place, before=False) is None
    failed = reading.neighbor(key, AttemptFilter(Verdict.FAILED), whole[0].place, before=False)
    assert failed == whole[2]
    newest = reading.newest(key, AttemptFilter(), 100)
    stamps = [one.finished for one in newest]
    assert stamps == sorted(stamps, reverse=True)
    last = newest[3]
    assert reading.newest(key, AttemptFilter(), 3, (last.finished, *last.place)) == newest[4:7]
    assert [one.why for one in reading.newest(key, AttemptFilter(why="budget"), 9)] == ["budget"]
    assert reading.marks(key, [whole[0].place[0]]) == {
        whole[0].place[0]: [(1, Verdict.PASSED), (2, Verdict.PASSED), (3, Verdict.FAILED)]
    }


def test_later_judgements_count(reading: Reading, place: str) -> None:
    (head,) = reading.heads()
    key = head.key
    assert reading.newest_judgements(0) == {}
    assert reading.counts()[key].passed == 3
    with open_store(place) as store:
        later = StoredJudgement(Verdict.PASSED, "", "after all", JudgementSource.HUMAN)
        store.add_judgement(head.id, "b", 3, later)
    assert reading.newest_judgements(0) == {key: 1}
    assert reading.newest_judgements(1) == {}
    assert reading.counts()[key].passed == reading.counts(key)[key].passed == 4
    third = (reading.task_keys(key, ["b"])["b"], 3)
    line = reading.line(key, third)
    assert line is not None
    assert (line.verdict, line.detail) == (Verdict.PASSED, "after all")
    assert reading.task_counts(key)[0].c == 3
    assert [(word.source, word.verdict) for word in reading.judgements(key, third)] == [
        ("judge", Verdict.FAILED),
        ("human", Verdict.PASSED),
    ]


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_the_look_at_all_runs_reads_no_attempt(place: str) -> None:
    """Both look-ups are answered by the index; a scan would take seconds on large stores."""
    with sqlite3.connect(place) as db:
        for question, index in (
            (
                "SELECT max(finished) FROM attempts WHERE run = 1 AND finished IS NOT NULL",
                "attempts_finished",
            ),
            (
                "SELECT 1 FROM attempts INDEXED BY attempts_open "
                "WHERE run = 1 AND finished IS NULL",
                "attempts_open",
            ),
            (
                "SELECT * FROM attempts WHERE run = 1 AND finished IS NOT NULL "
                "ORDER BY finished DESC, task DESC, number DESC",
                "attempts_finished",
            ),
        ):
            plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {question}"))
            assert index in plan
            assert "TEMP B-TREE" not in plan
    db.close()


def test_nothing_is_written(reading: Reading, place: str) -> None:
    with pytest.raises(ReadError, match=r"read-?only"):
        reading._all("DELETE FROM runs")
    with (
        open_store(place, read_only=True) as store,
        pytest.raises(ReadError, match=r"read-?only"),
    ):
        store.remove(store.runs()[0].id)
    before = reading.change()
    with open_store(place) as store:
        store.remove(store.runs()[0].id)
    assert reading.change() != before
    assert reading.heads() == []
    assert reading.task_keys(1, []) == {}
    assert reading.marks(1, []) == {}


def test_whoever_waits_hears_of_every_move_of_a_run(reading: Reading, place: str) -> None:
    """Once and no more: a new run, the first claim, results, judgements, and that it is gone."""
    assert reading.wait(0)  # from now on
    assert not reading.wait(0)
    record = RunRecord("another", Protocol(suite="suite"), [Task("a", "?")])
    passed = StoredJudgement(Verdict.PASSED, "", "after all", JudgementSource.HUMAN)
    # In a file, every renewal of a lease is a change: within so long a lease there is none.
    with open_store(place, lease_seconds=36_000.0) as store:
        for move in (
            lambda: store.begin(record, 2),
            lambda: store.claim(record.id, [("a", 1)]),
            lambda: store.finish(
                record.id, [AttemptRecord("a", 1, Judgement(Verdict.MISSING, "budget"))]
            ),
            lambda: store.add_judgement(record.id, "a", 1, passed),
            lambda: store.claim(record.id, [("a", 2)]) and store.release(record.id),
            lambda: store.remove(record.id),
        ):
            move()
            assert reading.wait(60)
            assert not reading.wait(0)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="there is no store"):
        open_reading(str(tmp_path / "none.db"))
    (tmp_path / "text").write_text("no database, but long enough to be read as a header" * 9)
    with pytest.raises(ReadError, match="file is not a database") as caught:
        open_reading(str(tmp_path / "text"))
    if (mine := Path("/proc/self/fd")).is_dir():  # closed, although the error still knows of it
        assert caught.traceback
        assert str(tmp_path / "text") not in {str(one.resolve()) for one in mine.iterdir()}


def test_a_database_without_a_store_is_refused_and_left_empty(postgres_address: str) -> None:
    with pytest.raises(ReadError, match="there is no store in this database"):
        open_reading(postgres_address)
    with pytest.raises(ReadError, match="there is no store in this database"):
        open_store(postgres_address, must_exist=True)
