"""Later words stand beside the first one; the newest counts."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.readers.store import run_from_store
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import (
    AttemptRecord,
    JudgementSource,
    RunRecord,
    Store,
    StoredJudgement,
    open_store,
)
from passhat.store.copy import copy_runs
from passhat.store.queries import JUDGED_BY_JOIN
from passhat.store.schema import VERSION
from passhat.suites.base import Judgement, Task

RUN = RunRecord("agent", Protocol(suite="s"), [Task("a", ""), Task("b", "")])
FAILED = Judgement.failed(FailureCategory.WRONG_ANSWER, "said no")


@pytest.fixture
def store(store_place: str) -> Iterator[Store]:
    with open_store(store_place) as made:
        fill(made)
        yield made


def fill(store: Store) -> None:
    store.begin(RUN, 1)
    store.claim(RUN.id, [("a", 1), ("b", 1)])
    lost = Judgement.missing(MissingReason.JUDGE_ERROR)
    store.finish(
        RUN.id, [AttemptRecord("a", 1, FAILED, seed=5), AttemptRecord("b", 1, lost, seconds=2.0)]
    )


def human(verdict: Verdict) -> StoredJudgement:
    return StoredJudgement(verdict, "", "I looked", JudgementSource.HUMAN)


def test_the_first_word_stays_and_the_newest_counts(store: Store) -> None:
    store.add_judgement(RUN.id, "a", 1, human(Verdict.PASSED))
    first, second = store.judgements(RUN.id, "a", 1)
    assert (first.verdict, first.why, first.detail) == (Verdict.FAILED, "wrong_answer", "said no")
    assert (second.verdict, second.source) == (Verdict.PASSED, JudgementSource.HUMAN)
    assert first.at
    assert second.at  # perhaps within the same millisecond
    ended = store.attempt(RUN.id, "a", 1)
    assert ended is not None
    assert (ended.verdict, ended.detail, ended.seed) == (Verdict.PASSED, "I looked", 5)
    assert len(ended.said) == 2
    (run,) = store.runs()
    assert (run.passed, run.missing) == (1, 1)
    counted = store.counts(RUN.id)
    assert (list(counted.c), list(counted.m)) == ([1, 0], [0, 1])
    assert run_from_store(store, run).outcomes.passes == 1


def test_both_ways_to_the_newest_word_show_the_same(store: Store) -> None:
    store.claim(RUN.id, [("b", 2)])
    for verdict in (Verdict.PASSED, Verdict.FAILED, Verdict.PASSED):
        store.add_judgement(RUN.id, "a", 1, human(verdict))
    columns = (
        "run, task, number, verdict, why, detail, seed, seconds, steps, tokens, cost, finished"
    )
    by_view, by_join = (
        store._db.execute(f"SELECT {columns} FROM {where} x ORDER BY task, number").fetchall()
        for where in ("judged", JUDGED_BY_JOIN)
    )
    assert by_view == by_join
    assert [row[3] for row in by_join] == [1, -1, None]


def test_what_was_settled_later_is_not_made_again(store: Store) -> None:
    store.add_judgement(RUN.id, "b", 1, human(Verdict.FAILED))
    assert store.release(RUN.id, missing=True) == 0
    assert ("a", 1) in store.load_attempts(RUN.id)
    assert ("b", 1) in store.load_attempts(RUN.id)


def test_a_missing_attempt_nobody_settled_is_made_again(store: Store) -> None:
    assert store.release(RUN.id, missing=True) == 1
    assert ("a", 1) in store.load_attempts(RUN.id)
    assert ("b", 1) not in store.load_attempts(RUN.id)


def test_there_must_be_an_attempt_and_a_verdict(store: Store) -> None:
    with pytest.raises(InvalidValue, match="no finished attempt a#2"):
        store.add_judgement(RUN.id, "a", 2, human(Verdict.PASSED))
    with pytest.raises(InvalidValue, match="passed or failed"):
        store.add_judgement(RUN.id, "a", 1, human(Verdict.MISSING))
    assert store.judgements(RUN.id, "zzz", 1) == ()


def test_judgements_go_with_their_run(store: Store) -> None:
    store.add_judgement(RUN.id, "a", 1, human(Verdict.PASSED))
    store.remove(RUN.id)
    assert store._db.execute("SELECT count(*) FROM judgements").fetchone()[0] == 0


def test_an_older_store_is_brought_up_to_date(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    with open_store(path) as store:
        fill(store)
    with contextlib.closing(sqlite3.connect(path)) as database:
        # Take the file back to what the version before wrote.
        database.executescript(
            "DROP INDEX attempts_finished; DROP INDEX attempts_open; "
            "DROP INDEX attempts_ended; DROP INDEX attempts_leaks; DROP INDEX tasks_of; "
            "DROP VIEW judged; DROP TABLE judgements; DROP TABLE leases; DROP TABLE calls; "
            "DROP TABLE origins; DROP TABLE labels; DROP TABLE label_draws; "
            "DROP TABLE anchors; "
            "ALTER TABLE runs DROP COLUMN total; "
            "ALTER TABLE runs DROP COLUMN allocation; ALTER TABLE runs DROP COLUMN revision; "
            "ALTER TABLE runs DROP COLUMN generation; ALTER TABLE attempts DROP COLUMN score; "
            "PRAGMA user_version = 2;"
        )
    with open_store(path) as store:
        store.add_judgement(RUN.id, "a", 1, human(Verdict.PASSED))
        assert store.runs()[0].passed == 1
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_measures_of_earlier_attempts_leave_out_what_is_missing(store: Store) -> None:
    assert store.measures("agent", "s") == [(None, None, None)]
    assert store.measures("another", "s") == []


def test_later_words_go_along_when_a_run_is_copied(store: Store, tmp_path: Path) -> None:
    store.add_judgement(RUN.id, "a", 1, human(Verdict.PASSED))
    with open_store(str(tmp_path / "copy.db")) as other:
        for _ in range(2):  # the second time there is nothing left to do
            (copied,) = copy_runs(store, other, [RUN.id])
            assert copied.source == copied.target
        assert other.judgements(RUN.id, "a", 1) == store.judgements(RUN.id, "a", 1)
        assert other.runs()[0].passed == 1
