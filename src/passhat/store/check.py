"""Integrity check of a store: the database's own check, and the consistency of our tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from passhat.errors import ReadError, StoreUnavailable
from passhat.store.base import Store
from passhat.store.database import Database, LogProblem
from passhat.store.rows import protocol_from, unpack_transcript
from passhat.store.schema import PER_ATTEMPT, VERSION

_AT_ONCE = 20_000
"""Transcripts that are looked at in one transaction, and those of the last task among them."""
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1

_COUNTS = {
    "runs": "SELECT count(*) FROM runs",
    "tasks": "SELECT count(*) FROM tasks",
    "attempts": "SELECT count(*) FROM attempts WHERE verdict IS NOT NULL",
    "transcripts": "SELECT count(*) FROM transcripts",
    "open_claims": "SELECT count(*) FROM attempts WHERE finished IS NULL",
    # One look-up per task, not per attempt.
    "attempts_without_task": "SELECT coalesce(sum(a.made), 0) FROM (SELECT run, task, count(*) AS "
    "made FROM attempts GROUP BY run, task) a WHERE NOT EXISTS "
    "(SELECT 1 FROM tasks t WHERE t.key = a.task AND t.run = a.run)",
    "transcripts_without_attempt": "SELECT count(*) FROM transcripts x WHERE NOT EXISTS "
    "(SELECT 1 FROM attempts a WHERE a.run = x.run AND a.task = x.task AND a.number = x.number)",
    "judgements_without_attempt": "SELECT count(*) FROM judgements j WHERE NOT EXISTS (SELECT 1 "
    "FROM attempts a WHERE a.run = j.run AND a.task = j.task AND a.number = j.number "
    "AND a.verdict IS NOT NULL)",
    "half_finished": "SELECT count(*) FROM attempts WHERE (verdict IS NULL) <> (finished IS NULL)",
    "unknown_verdicts": "SELECT count(*) FROM attempts WHERE verdict NOT IN (-1, 0, 1)",
    "attempts_beyond_plan": "SELECT count(*) FROM attempts a JOIN runs r ON r.key = a.run "
    "WHERE a.number > r.planned OR a.number < 1",
}


DAMAGES = (
    *("attempts_without_task", "attempts_beyond_plan", "judgements_without_attempt"),
    *("half_finished", "unknown_verdicts", "unreadable_transcripts", "unreadable_runs"),
)
"""Counts that must be 0 in a store that is whole."""


@dataclass(frozen=True, slots=True)
class Health:
    """Result of a check of a store."""

    version: int
    sound: bool
    size: int
    runs: int
    tasks: int
    attempts: int
    transcripts: int
    open_claims: int
    abandoned_claims: int
    """Claims of runners that are gone; the same ``passhat run`` takes them up again."""
    attempts_without_task: int
    transcripts_without_attempt: int
    judgements_without_attempt: int
    half_finished: int
    """Attempts with a verdict and no end, or an end and no verdict."""
    unknown_verdicts: int
    attempts_beyond_plan: int
    unreadable_transcripts: int = 0
    unreadable_runs: int = 0
    """Runs whose protocol or labels cannot be read."""
    log_problem: LogProblem | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged, and no row points nowhere."""
        is_damaged = any(getattr(self, name) for name in DAMAGES)
        return self.sound and not is_damaged and self.log_problem is None


def check(store: Store, tell: Callable[[str], None] = lambda _what: None) -> Health:
    """Check everything once; ``tell`` is called with the name of each step."""
    tell("whether the database is sound")
    sound = store.is_sound()
    log = store.log_problem(sound=sound)
    if not sound:
        # The other counts of a damaged database would be unreliable.
        none = dict.fromkeys(_COUNTS, 0)
        return Health(VERSION, False, store.size(), abandoned_claims=0, **none, log_problem=log)
    counts = {}
    for name, sql in _COUNTS.items():
        tell(name.replace("_", " "))
        counts[name] = int(store._db.execute(sql).fetchone()[0])
    abandoned_count = 0
    for (run,) in store._db.execute("SELECT id FROM runs").fetchall():
        abandoned_count += sum(claims.claims for claims in store.list_claims(run) if claims.expired)
    tell("whether transcripts can be read")
    counts["unreadable_transcripts"] = _unreadable_transcripts(store)
    counts["unreadable_runs"] = _unreadable_runs(store)
    return Health(
        VERSION, True, store.size(), abandoned_claims=abandoned_count, **counts, log_problem=log
    )


def _unreadable_transcripts(store: Store) -> int:
    count = 0
    for block in store._stream("SELECT body FROM transcripts", (), 200):
        for (body,) in block:
            try:
                unpack_transcript(bytes(body))
            except ReadError:
                count += 1
    return count


def _unreadable_runs(store: Store) -> int:
    """Number of runs whose protocol or labels are damaged."""
    damaged_runs = set()
    for key, protocol in store._db.execute("SELECT key, protocol FROM runs").fetchall():
        try:
            protocol_from(json.loads(protocol))
        except (ValueError, TypeError):
            damaged_runs.add(key)
    for run, labels in store._db.execute("SELECT DISTINCT run, labels FROM tasks").fetchall():
        try:
            json.loads(labels)
        except (ValueError, TypeError):
            damaged_runs.add(run)
    return len(damaged_runs)


def forget_transcripts(
    store: Store, older_than: timedelta, tell: Callable[[int], None] = lambda _count: None
) -> int:
    """Delete transcripts of attempts that ended long ago; their verdicts stay.

    Some tasks at a time, each time for good: when it is broken off, the next call goes on, and
    other writers wait only briefly for the lock. ``tell`` is called with the count so far.
    """
    before = (datetime.now(UTC) - older_than).isoformat(timespec="milliseconds")
    return _forget(store, "EXISTS", " AND a.finished < ?", (before,), tell)


def forget_orphans(store: Store, tell: Callable[[int], None] = lambda _count: None) -> int:
    """Delete transcripts of attempts that are not there any more."""
    return _forget(store, "NOT EXISTS", "", (), tell)


def _forget(
    store: Store, sign: str, more: str, values: tuple[str, ...], tell: Callable[[int], None]
) -> int:
    """Delete transcripts and calls; returns how many transcripts."""
    forgotten = 0
    for table in ("calls", "transcripts"):
        for (run,) in store._db.execute(f"SELECT DISTINCT run FROM {table}").fetchall():
            for low, high in _stretches(store, table, run):
                with store._transaction():
                    count = store._db.execute(
                        f"DELETE FROM {table} WHERE run = ? AND task >= ? AND task < ? AND "
                        f"{sign} (SELECT 1 FROM attempts a WHERE a.run = {table}.run "
                        f"AND a.task = {table}.task AND a.number = {table}.number{more})",
                        (run, low, high, *values),
                    ).rowcount
                if table == "transcripts":
                    forgotten += count
                    tell(forgotten)
    return forgotten


def _stretches(store: Store, table: str, run: int) -> Iterator[tuple[int, int]]:
    """From one key of a task up to another, so that all there can be are in one of them."""
    low = _LOWEST
    while True:
        row = store._db.execute(
            f"SELECT task FROM {table} WHERE run = ? AND task >= ? "
            f"ORDER BY task, number LIMIT 1 OFFSET {_AT_ONCE}",
            (run, low),
        ).fetchone()
        if row is None:
            yield low, _HIGHEST
            return
        yield low, int(row[0]) + 1
        low = int(row[0]) + 1


def postgres_is_sound(database: Database) -> bool:
    """Read every row of our tables once; PostgreSQL refuses to read a damaged page."""
    try:
        for table in ("runs", "tasks", *PER_ATTEMPT):
            database.execute(f"SELECT count(hashtext(x::text)) FROM {table} x").fetchone()
    except StoreUnavailable:
        raise
    except ReadError:
        return False
    return True
