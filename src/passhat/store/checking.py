"""Whether a store is whole: what the database says, and what we know of our own tables."""

from __future__ import annotations

from passhat.errors import ReadError, StoreUnavailable
from passhat.store.database import Database

__all__ = ["postgres_is_sound"]


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
