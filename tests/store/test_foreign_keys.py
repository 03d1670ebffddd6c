"""An attempt belongs to a task that exists, by the database's own rule."""

from __future__ import annotations

import pytest

from passhat.errors import ReadError
from passhat.store import open_store, schema

RUN = (
    "INSERT INTO runs (key, id, agent, suite, name, protocol, planned, started) "
    "VALUES (1, 'r', 'a', 's', '', '{}', 2, '2026')"
)
TASK = "INSERT INTO tasks (key, run, position, task, labels) VALUES (7, 1, 0, 't', '{}')"
ATTEMPT = "INSERT INTO attempts (run, task, number, verdict, finished) VALUES (1, ?, 1, 1, '2026')"


def test_an_older_store_loses_what_belongs_to_no_task_and_takes_no_more_of_it(
    store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(schema, "_MIGRATIONS", schema._MIGRATIONS[:12])
        older.setattr(schema, "VERSION", 12)
        with open_store(store_place) as store:
            for statement in (RUN, TASK):
                store._db.execute(statement)
            for task in (7, 8):
                store._db.execute(ATTEMPT, (task,))
    with open_store(store_place) as store:
        assert store.read("SELECT task FROM attempts") == [(7,)]
        assert [(run.attempts, run.passed) for run in store.runs()] == [(1, 1)]
        with pytest.raises(ReadError, match=r"(?i)foreign key"):
            store._db.execute(ATTEMPT, (9,))
        store._db.execute("DELETE FROM tasks")
        assert store.read("SELECT count(*) FROM attempts") == [(0,)]
