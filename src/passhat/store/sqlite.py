"""The SQLite store: one file, write-ahead log, readers never block the writer."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from passhat.errors import PasshatError, ReadError, StoreUnavailable
from passhat.store.base import FINISHED_COLUMNS, Store
from passhat.store.owners import is_gone, this_owner
from passhat.store.schema import migrate

__all__ = ["DEFAULT_PATH", "SqliteStore"]

DEFAULT_PATH = ".passhat/passhat.db"
_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.1

_PASSING = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL),
    sqlite3.SQLITE_PROTOCOL,  # others were at the write-ahead log for seconds on end
)
"""Trouble that somebody else may end: a lock is given back, room is made on the disk."""

_FINISH = (
    f"UPDATE attempts SET owner = NULL, {', '.join(f'{name} = ?' for name in FINISHED_COLUMNS)} "
    "WHERE run = ? AND task = ? AND number = ? AND verdict IS NULL"
)
_TALK = "INSERT OR REPLACE INTO transcripts (run, task, number, body) VALUES (?, ?, ?, ?)"
_CLAIM = "INSERT OR IGNORE INTO attempts (run, task, number, owner) VALUES (?, ?, ?, ?)"


class SqliteStore(Store):
    """Runs and their attempts in one file.

    Parameters
    ----------
    path : str
        Made if it is not there, unless ``must_exist``.
    """

    _BEGIN: ClassVar[str] = "BEGIN IMMEDIATE"
    _db: sqlite3.Connection

    def __init__(
        self, path: str = DEFAULT_PATH, *, must_exist: bool = False, read_only: bool = False
    ) -> None:
        super().__init__()
        self.path = path
        if must_exist and not Path(path).is_file():
            raise ReadError(
                "there is no store.",
                source=path,
                hint="Make one with passhat run, or name it with --store PATH.",
            )
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
        try:
            _write_ahead(self._db)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            migrate(self._db, path)
            if read_only:
                self._db.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            self._db.close()
            raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
        except ReadError:
            self._db.close()
            raise
        self._owner = this_owner()
        self._seen: tuple[int, int] | None = None

    def wait_at_most(self, seconds: float) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        key, tasks = self._key(run), self._tasks(run)
        rows = [(key, tasks[task], number, self._owner) for task, number in attempts]
        before = self._db.total_changes
        with self._transaction():
            self._db.executemany(_CLAIM, rows)
            if self._db.total_changes - before == len(rows):
                return list(attempts)
            # Somebody else is here: take them back, and see which are still to be had.
            self._db.execute("ROLLBACK")
            self._db.execute("BEGIN IMMEDIATE")
            got = [self._db.execute(_CLAIM, row).rowcount for row in rows]
        return [one for one, mine in zip(attempts, got, strict=True) if mine]

    def changes(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while True:
            # The first number tells of others' commits only, the second of our own.
            version = self._db.execute("PRAGMA data_version").fetchone()[0]
            seen = (int(version), self._db.total_changes)
            if seen != self._seen:
                self._seen = seen
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(min(_LOOK_SECONDS, seconds))

    def is_sound(self) -> bool:
        try:
            return bool(self._db.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
        except sqlite3.DatabaseError:
            return False

    def vacuum(self) -> None:
        try:
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self._told(error) from None

    def size(self) -> int:
        pages, size = (
            int(self._db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "page_size")
        )
        return pages * size

    def _write_results(self, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(_FINISH, rows)

    def _write_transcripts(self, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(_TALK, rows)

    def _tell(self, run: str) -> None:
        """Others see it by the version of the data, which SQLite counts itself."""

    def _gone_owners(self, run: int) -> list[str]:
        rows = self._db.execute(
            "SELECT DISTINCT owner FROM attempts WHERE run = ? AND finished IS NULL", (run,)
        ).fetchall()
        return [owner for (owner,) in rows if owner == self._owner or is_gone(owner or "")]

    def _stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        found = self._db.execute(sql, parameters)
        while block := found.fetchmany(size):
            yield block

    def _trouble(self, error: BaseException) -> PasshatError | None:
        return self._told(error) if isinstance(error, sqlite3.Error) else None

    def _told(self, error: sqlite3.Error) -> PasshatError:
        return (StoreUnavailable if _is_passing(error) else ReadError)(
            f"cannot be written ({error}).",
            source=self.path,
            hint="Finished attempts are kept; run the same command again when it can.",
        )


def _is_passing(error: sqlite3.Error) -> bool:
    """SQLite may say more precisely what it is, beyond the first eight bits of the code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING


def _write_ahead(database: sqlite3.Connection) -> None:
    """Readers and a writer at once. SQLite does not wait for others here, so we do."""
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is_passing(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
