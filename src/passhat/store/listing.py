"""Runs with how many of their attempts ended how, counted without looking at one twice."""

from __future__ import annotations

from passhat.store.database import Database
from passhat.store.judgements import NEWEST
from passhat.store.rows import StoredRun

__all__ = ["stored_runs"]

_HEADS = (
    "SELECT r.key, r.id, r.agent, r.suite, r.planned, r.started, r.name, "
    "(SELECT count(*) FROM tasks t WHERE t.run = r.key), "
    "(SELECT count(*) FROM attempts a WHERE a.run = r.key AND a.finished IS NULL) "
    "FROM runs r {where} ORDER BY r.started, r.key"
)
_ENDED = (
    "SELECT run, count(*), count(*) FILTER (WHERE verdict = -1), "
    "count(*) FILTER (WHERE verdict = 1) "
    "FROM attempts WHERE verdict IS NOT NULL {where} GROUP BY run"
)
_CHANGED = (
    f"SELECT j.run, a.verdict, j.verdict, count(*) {NEWEST} GROUP BY j.run, a.verdict, j.verdict"
)


def stored_runs(database: Database, run: int | None = None) -> list[StoredRun]:
    """Every run, the oldest first, or one of them."""
    chosen = () if run is None else (run,)
    ended = {
        key: [made, missing, passed]
        for key, made, missing, passed in database.execute(
            _ENDED.format(where="" if run is None else "AND run = ?"), chosen
        )
    }
    # Judgements that came later are few: what they changed is added, rather than looked up for
    # every attempt there is.
    for key, first, newest, count in database.execute(
        _CHANGED.format(where="" if run is None else "AND j.run = ?"), chosen
    ):
        found = ended.setdefault(key, [0, 0, 0])
        for verdict, more in ((first, -count), (newest, count)):
            if verdict is not None:
                found[0] += more
                found[1] += more * (verdict == -1)
                found[2] += more * (verdict == 1)
    heads = database.execute(
        _HEADS.format(where="" if run is None else "WHERE r.key = ?"), chosen
    ).fetchall()
    return [_stored(head, *ended.get(head[0], (0, 0, 0))) for head in heads]


def _stored(
    head: tuple[int, str, str, str, int, str, str, int, int], made: int, missing: int, passed: int
) -> StoredRun:
    _, run, agent, suite, planned, started, name, tasks, open_ = head
    status = "complete" if made >= planned * tasks else "in progress" if open_ else "stopped"
    if status == "complete" and made and missing == made:
        status = "stopped"  # every attempt is missing: there is nothing to show yet
    return StoredRun(
        run, agent, suite, tasks, planned, made, missing, passed, started, status, name
    )
