"""Whether a store is whole: what the database says, and what we know of our own tables."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from passhat.errors import ReadError, StoreUnavailable
from passhat.store.base import Store
from passhat.store.database import Database
from passhat.store.schema import VERSION

__all__ = ["Health", "check", "forget_orphans", "forget_transcripts", "postgres_is_sound"]

_COUNTS = {
    "runs": "SELECT count(*) FROM runs",
    "tasks": "SELECT count(*) FROM tasks",
    "attempts": "SELECT count(*) FROM attempts WHERE verdict IS NOT NULL",
    "transcripts": "SELECT count(*) FROM transcripts",
    "open_claims": "SELECT count(*) FROM attempts WHERE finished IS NULL",
    "attempts_without_task": "SELECT count(*) FROM attempts a WHERE NOT EXISTS "
    "(SELECT 1 FROM tasks t WHERE t.key = a.task AND t.run = a.run)",
    "transcripts_without_attempt": "SELECT count(*) FROM transcripts x WHERE NOT EXISTS "
    "(SELECT 1 FROM attempts a WHERE a.run = x.run AND a.task = x.task AND a.number = x.number)",
    "attempts_beyond_plan": "SELECT count(*) FROM attempts a JOIN runs r ON r.key = a.run "
    "WHERE a.number > r.planned OR a.number < 1",
}


@dataclass(frozen=True, slots=True)
class Health:
    """What was found in a store."""

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
    attempts_beyond_plan: int

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged, and no row points nowhere."""
        return self.sound and not (self.attempts_without_task or self.attempts_beyond_plan)

    def to_dict(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check(store: Store) -> Health:
    """Look at everything once."""
    if not store.is_sound():
        # What else would be counted is not worth the name.
        return Health(VERSION, False, store.size(), abandoned_claims=0, **dict.fromkeys(_COUNTS, 0))
    counts = {name: int(store._db.execute(sql).fetchone()[0]) for name, sql in _COUNTS.items()}
    abandoned = 0
    for (run,) in store._db.execute("SELECT key FROM runs").fetchall():
        for owner in set(store._gone_owners(run)) - {store._owner}:
            (count,) = store._db.execute(
                "SELECT count(*) FROM attempts WHERE run = ? AND finished IS NULL AND owner = ?",
                (run, owner),
            ).fetchone()
            abandoned += int(count)
    return Health(VERSION, True, store.size(), abandoned_claims=abandoned, **counts)


def forget_transcripts(store: Store, older_than: timedelta) -> int:
    """Delete what was said in attempts that are over for so long; their verdicts stay."""
    before = (datetime.now(UTC) - older_than).isoformat(timespec="milliseconds")
    with store._transaction():
        return store._db.execute(
            "DELETE FROM transcripts WHERE EXISTS (SELECT 1 FROM attempts a "
            "WHERE a.run = transcripts.run AND a.task = transcripts.task "
            "AND a.number = transcripts.number AND a.finished < ?)",
            (before,),
        ).rowcount


def forget_orphans(store: Store) -> int:
    """Delete transcripts of attempts that are not there any more."""
    with store._transaction():
        return store._db.execute(
            "DELETE FROM transcripts WHERE NOT EXISTS (SELECT 1 FROM attempts a "
            "WHERE a.run = transcripts.run AND a.task = transcripts.task "
            "AND a.number = transcripts.number)"
        ).rowcount


def postgres_is_sound(database: Database) -> bool:
    """Read every row of every table of ours once; a damaged page makes PostgreSQL refuse."""
    try:
        for table in ("runs", "tasks", "attempts", "transcripts"):
            database.execute(f"SELECT count(hashtext(x::text)) FROM {table} x").fetchone()
    except StoreUnavailable:
        raise
    except ReadError:
        return False
    return True
