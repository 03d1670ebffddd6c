"""The SQLite store: one file, write-ahead log, readers never block the writer."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from passhat.errors import PasshatError, ReadError, StoreUnavailable
from passhat.store.base import FINISHED_COLUMNS, Row, Store
from passhat.store.database import LogProblem, private_file, private_folder
from passhat.store.leases import LEASE_SECONDS, Heartbeat, HeldClaims, clock_id, clock_now
from passhat.store.schema import INDEXED_VERSION, migrate, prepare_to_read

DEFAULT_PATH = ".passhat/passhat.db"
_WAIT_SECONDS = 30.0
_BEAT_WAIT_SECONDS = 1.0

_PASSING = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL),
    sqlite3.SQLITE_PROTOCOL,  # others were at the write-ahead log for seconds on end
    sqlite3.SQLITE_INTERRUPT,
)
"""Trouble that may end by itself: a lock is given back, room is made on the disk."""

_FINISH = (
    f"UPDATE attempts SET {', '.join(f'{name} = ?' for name in FINISHED_COLUMNS)} "
    "WHERE run = ? AND task = ? AND number = ? AND owner = ? AND verdict IS NULL"
)
_OURS = (
    "SELECT 1 FROM attempts WHERE run = ? AND task = ? AND number = ? AND owner = ? "
    "AND verdict IS NOT NULL"
)
_EQUALITIES = [
    f"{name} = v.column{number}"
    for number, name in enumerate((*FINISHED_COLUMNS, "run", "task", "number", "owner"), 1)
]
_FINISH_MANY = (
    f"UPDATE attempts SET {', '.join(_EQUALITIES[:-4])} FROM (VALUES {{rows}}) AS v "
    f"WHERE {' AND '.join(_EQUALITIES[-4:])} AND verdict IS NULL"
)
_HAS_UPDATE_FROM = sqlite3.sqlite_version_info >= (3, 33)
_TALK = "INSERT OR REPLACE INTO transcripts (run, task, number, body) VALUES {rows}"
_NO_TALK = "DELETE FROM transcripts WHERE run = ? AND task = ? AND number = ?"
_CLAIM = "INSERT OR IGNORE INTO attempts (run, task, number, owner) VALUES {rows}"
_MOST_VALUES = 900
"""Values in one statement: versions of SQLite before 3.32 take 999."""
# The first number of beats is drawn: a lease that was deleted as expired, and is begun again, must
# not count up to the number that another runner remembers.
_RENEW = (
    "INSERT INTO leases (token, clock, seen, seconds, beats) "
    "VALUES (?, ?, ?, ?, abs(random() % 1000000000)) "
    "ON CONFLICT (token) DO UPDATE SET seen = excluded.seen, beats = leases.beats + 1"
)


class SqliteStore(Store):
    """Runs and their attempts in one file; see :func:`passhat.store.open_store`."""

    _BEGIN: ClassVar[str] = "BEGIN IMMEDIATE"
    _db: SqliteConnection

    def __init__(
        self,
        path: str = DEFAULT_PATH,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        super().__init__()
        self.path = path
        # An agent in this process may change the working directory at any time.
        self._file = file = path if path == ":memory:" else str(Path(path).absolute())
        if must_exist or read_only:
            _refuse_absent(path, file)
        if read_only:
            self._db = _connect(file, path, read_only=True)
        else:
            try:
                private_folder(Path(file).parent)
                if path != ":memory:" and not Path(file).exists():
                    # SQLite gives its write-ahead log the mode of the file.
                    os.close(private_file(file))
            except OSError as error:
                raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
            self._db = _connect(file, path)
        try:
            self._prepare(read_only=read_only)
        except PasshatError:
            self._db.close()
            raise
        self._db.file_id = _file_id(file)
        self._lease_seconds = lease_seconds
        self._beating: SqliteConnection | None = None
        self._ending = False
        self._heart = Heartbeat(self._beat, self._end_lease, self._interrupt_beat, lease_seconds)
        self._observed: dict[str, tuple[int, float]] = {}

    def _prepare(self, *, read_only: bool) -> None:
        """Check the tables; when opened for writing, create or update them."""
        if read_only:
            version = prepare_to_read(self._db, self.path)
            # Left to itself SQLite takes the other index over (run, ...), and reads every attempt.
            if version >= INDEXED_VERSION:
                self.open_attempts = "attempts a INDEXED BY attempts_open"
            return
        _write_ahead(self._db)
        # A result that was reported as done survives a power cut; NORMAL may lose the last
        # commits. The cost is one fsync per group of attempts (docs/reliability.md).
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        migrate(self._db, self.path)

    def wait_at_most(self, seconds: float) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def interrupt(self) -> None:
        self._db.interrupt()

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        with self._transaction():
            # Inside the transaction: the run cannot be removed and begun anew in between.
            key, tasks = self._own_key(run), self._tasks(run)
            rows = [(key, tasks[task], number, self._token) for task, number in attempts]
            self._renew(self._db)
            before = self._db.total_changes
            self._db.execute_rows(_CLAIM, sorted(rows))  # in the order of the table
            if self._db.total_changes - before == len(rows):
                ours = [True] * len(rows)
            else:  # another runner is here
                ours = [self._is_ours(row) for row in rows]
        self._heart.start()
        return [attempt for attempt, is_ours in zip(attempts, ours, strict=True) if is_ours]

    def _is_ours(self, row: Row) -> bool:
        """Whether we claimed it, now or before, and still hold it."""
        statement = _OURS.replace("IS NOT NULL", "IS NULL")
        return self._db.execute(statement, row).fetchone() is not None

    def list_claims(self, run: str) -> list[HeldClaims]:
        key = self._find_key(run)
        rows = self._db.execute(
            "SELECT coalesce(a.owner, ''), count(*), l.clock, l.seen, l.seconds, l.beats "
            "FROM attempts a LEFT JOIN leases l ON l.token = a.owner "
            "WHERE a.run = ? AND a.finished IS NULL AND coalesce(a.owner, '') != ? "
            "GROUP BY coalesce(a.owner, '')",
            (key, self._token),
        ).fetchall()
        return [self._as_claims(*row) for row in rows]

    def _as_claims(
        self,
        token: str,
        claims: int,
        clock: str | None,
        seen: float,
        seconds: float,
        beats: int | None,
    ) -> HeldClaims:
        if beats is None:  # claimed by a version without leases
            return HeldClaims(token, claims, None, 0.0)
        if clock == clock_id():
            left = seconds - (clock_now() - seen)
        else:
            # Another machine's clock is not comparable: watch whether its heartbeats go on.
            now = time.monotonic()
            last_beats, since = self._observed.get(token, (None, now))
            if last_beats != beats:
                since = now
            self._observed[token] = (beats, since)
            left = seconds - (now - since)
        return HeldClaims(token, claims, beats, max(left, 0.0))

    def _renew(self, connection: SqliteConnection) -> None:
        values = (self._token, clock_id(), clock_now(), self._lease_seconds)
        connection.execute(_RENEW, values)

    def _beat(self) -> None:
        # Opening the file of a store that was deleted would make a new, empty one.
        self._db.refuse_replaced()
        if self._beating is None:
            self._beating = _connect(self._file, self.path)
            self._beating.execute(f"PRAGMA busy_timeout = {int(1000 * _BEAT_WAIT_SECONDS)}")
        self._renew(self._beating)

    def _interrupt_beat(self) -> None:
        waiting = self._db if self._ending else self._beating
        with suppress(sqlite3.ProgrammingError):  # it was closed a moment ago
            if waiting is not None:
                waiting.interrupt()

    def _end_lease(self, begun: bool) -> None:
        self._ending = True
        if self._beating is not None:
            self._beating.close()
        if begun:
            self._db.execute("DELETE FROM leases WHERE token = ?", (self._token,))

    def data_version(self) -> object:
        # The first number counts others' commits only, the second our own.
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        return int(version), self._db.total_changes

    def is_sound(self) -> bool:
        try:
            return bool(self._db.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
        except StoreUnavailable:
            raise
        except ReadError:
            return False

    def log_problem(self, *, sound: bool) -> LogProblem | None:
        log = Path(f"{self._file}-wal")
        if not log.exists() or not log.stat().st_size:
            # A log is removed by the last process that closes the file, which ends its lease first.
            if not sound:
                return None
            open_leases = self._db.execute(
                "SELECT count(*) FROM leases l WHERE EXISTS (SELECT 1 FROM attempts a "
                "WHERE a.owner = l.token AND a.finished IS NULL)"
            ).fetchone()[0]
            return LogProblem.ABSENT if open_leases else None
        try:
            alone = _connect(self._file, self.path, read_only=True, without_log=True)
        except ReadError:
            return None
        with closing(alone):
            try:
                if not sound:
                    whole = alone.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                    return LogProblem.FOREIGN if whole else None
                before = dict(alone.execute("SELECT key, id FROM runs").fetchall())
            except ReadError:  # the file itself is damaged, or empty so far
                return None
            now = dict(self._db.execute("SELECT key, id FROM runs").fetchall())
        other = any(now.get(key, run) != run for key, run in before.items())
        return LogProblem.FOREIGN if other else None

    def vacuum(self) -> None:
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> int:
        pages, size = (
            int(self._db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "page_size")
        )
        return pages * size

    def _write(self, rows: Sequence[Row]) -> set[tuple[int, int]]:
        self._db.refuse_replaced()
        self._db.execute("SAVEPOINT one_by_one")
        before = self._db.total_changes
        finished_rows = [(*row[:-1], self._token) for row in rows]
        if _HAS_UPDATE_FROM:
            self._db.execute_rows(_FINISH_MANY, finished_rows)
        else:
            self._db.executemany(_FINISH, finished_rows)
        write_count = self._db.total_changes - before
        lost_keys: set[tuple[int, int]] = set()
        if write_count != len(rows):
            # Some claims are gone. Undo, and write one by one those that are ours.
            self._db.execute("ROLLBACK TO one_by_one")
            own_rows = []
            for row in rows:
                place = (*row[-4:-1], self._token)
                if self._db.execute(_FINISH, (*row[:-1], self._token)).rowcount:
                    own_rows.append(row)
                elif self._db.execute(_OURS, place).fetchone() is None:
                    lost_keys.add((row[-3], row[-2]))
            rows = own_rows
        self._db.execute_rows(_TALK, [row[-4:] for row in rows if row[-1] is not None])
        # Stores of earlier versions may have kept the transcript of an attempt that is made again.
        self._db.executemany(_NO_TALK, [row[-4:-1] for row in rows if row[-1] is None])
        return lost_keys

    def _stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._db.execute(sql, parameters)
        while block := cursor.fetchmany(size):
            yield block


_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes damaged text in its messages, which Python then cannot decode."""


class _Cursor(sqlite3.Cursor):
    """A cursor whose errors are passhat's: a damaged page is met while rows are fetched, too."""

    connection: SqliteConnection

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except _ERRORS as error:
            raise self.connection.translate_error(error) from None

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except _ERRORS as error:
            raise self.connection.translate_error(error) from None

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        try:
            return super().fetchmany(size)
        except _ERRORS as error:
            raise self.connection.translate_error(error) from None

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except _ERRORS as error:
            raise self.connection.translate_error(error) from None


class SqliteConnection(sqlite3.Connection):
    """A connection whose errors are passhat's, and that notices when its file is replaced."""

    file: str = ""
    name: str = ""
    """The file as the user named it."""
    file_id: tuple[int, int] | None = None
    """Device and inode of the file that was opened, once it is known to be a store."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return self.cursor(_Cursor).execute(sql, parameters)
        except _ERRORS as error:
            raise self.translate_error(error) from None

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        try:
            return self.cursor(_Cursor).executemany(sql, parameters)
        except _ERRORS as error:
            raise self.translate_error(error) from None

    def execute_rows(self, sql: str, rows: Sequence[Row]) -> None:
        """Execute a statement for many rows at once, in place of its ``{rows}``.

        ``executemany`` gives up the interpreter's lock for every row, and gets it back from a busy
        event loop after 5 ms.
        """
        if not rows:
            return
        width = len(rows[0])
        row_marks, most = f"({', '.join('?' * width)})", _MOST_VALUES // width
        for start in range(0, len(rows), most):
            block = rows[start : start + most]
            marks = ", ".join([row_marks] * len(block))
            self.execute(sql.format(rows=marks), list(chain.from_iterable(block)))

    def refuse_replaced(self) -> None:
        """A file that was deleted or replaced takes writes that are never seen again."""
        if self.file_id is not None and self.file_id != _file_id(self.file):
            raise ReadError(
                "was deleted or replaced while it was in use.",
                source=self.name,
                hint="Attempts finished since then are not stored. Put the file back, or run the "
                "same command again to begin a new store.",
            )

    def translate_error(self, error: sqlite3.Error | UnicodeDecodeError) -> PasshatError:
        """The error shown to the user for an error of the database."""
        try:
            self.refuse_replaced()
        except ReadError as replaced:
            return replaced
        # SQLite may give a more precise code, beyond its first eight bits.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _PASSING:
            return StoreUnavailable(
                f"cannot be used just now ({error}).",
                source=self.name,
                hint="Finished attempts are kept; run the same command again when it can.",
            )
        hint = None
        if code == sqlite3.SQLITE_CORRUPT or "decode" in str(error):
            hint = "The file is damaged. Run passhat store check for details, or restore a backup."
        return ReadError(f"cannot be used as a store ({error}).", source=self.name, hint=hint)


def _connect(
    file: str, name: str, *, read_only: bool = False, without_log: bool = False
) -> SqliteConnection:
    """Open a file. Statements run one after the other, in whichever thread the runner has them."""
    place = f"file:{quote(file)}?mode=ro" if read_only else file
    if without_log:
        place += "&immutable=1"  # SQLite then does not look for a write-ahead log
    try:
        connection = sqlite3.connect(
            place,
            uri=read_only,
            timeout=_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=SqliteConnection,
        )
    except sqlite3.Error as error:
        raise ReadError(f"cannot be used as a store ({error}).", source=name) from None
    connection.file, connection.name = file, name
    return connection


def _refuse_absent(path: str, file: str) -> None:
    if path != ":memory:" and not Path(file).is_file():
        raise ReadError(
            "there is no store.",
            source=path,
            hint="Make one with passhat run, or name it with --store PATH.",
        )


def _file_id(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _write_ahead(database: SqliteConnection) -> None:
    """Readers and a writer at once. SQLite does not wait for others here, so we do."""
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except StoreUnavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
