"""What pages ask, of a SQLite file that is opened for reading only."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from passhat.errors import ReadError
from passhat.store.queries import Reading, Row

__all__ = ["SqliteReading"]

_LOCK_SECONDS = 5.0
_LOOK_SECONDS = 0.2


class SqliteReading(Reading):
    """A file as pages see it; writers are never kept waiting."""

    # Left to itself SQLite takes the other index over (run, ...), and reads every attempt.
    _OPEN_ATTEMPTS: ClassVar[str] = "attempts a INDEXED BY attempts_open"

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: object = None
        if not Path(path).is_file():
            raise ReadError(
                "there is no store.",
                source=path,
                hint="Make one with passhat run, or name it with --store PATH.",
            )
        address = f"file:{quote(str(Path(path).resolve()))}?mode=ro"
        try:
            self._db = sqlite3.connect(
                address,
                uri=True,
                timeout=_LOCK_SECONDS,
                check_same_thread=False,
                isolation_level=None,
            )
        except sqlite3.Error as error:
            raise ReadError(f"cannot be read as a store ({error}).", source=path) from None
        try:
            views = self._all("SELECT name FROM sqlite_master WHERE type = 'view'")
        except ReadError:
            self._db.close()
            raise
        # A file of an older version, which nobody has opened for writing since.
        self._judged = ("judged",) in views

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def change(self) -> object:
        return self._all("PRAGMA data_version")[0][0]

    def wait(self, seconds: float) -> bool:
        """SQLite tells nobody: the number of its version is looked at a few times a second."""
        end = time.monotonic() + seconds
        while (now := self.change()) == self._seen:
            if time.monotonic() >= end:
                return False
            time.sleep(min(_LOOK_SECONDS, seconds))
        self._seen = now
        return True

    def _all(self, statement: str, *values: object) -> list[Row]:
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise ReadError(f"cannot be read ({error}).", source=self.path) from None
