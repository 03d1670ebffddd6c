"""What pages ask, of a SQLite file that is opened for reading only."""

from __future__ import annotations

import threading
import time

from passhat.store.queries import Reading, Row
from passhat.store.schema import INDEXED_VERSION
from passhat.store.sqlite import opened_to_read, refuse_absent

__all__ = ["SqliteReading"]

_LOOK_SECONDS = 0.2


class SqliteReading(Reading):
    """A file as pages see it; writers are never kept waiting."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: object = None
        refuse_absent(path)
        self._db, version = opened_to_read(path)
        # Left to itself SQLite takes the other index over (run, ...), and reads every attempt.
        if version >= INDEXED_VERSION:
            self._OPEN_ATTEMPTS = "attempts a INDEXED BY attempts_open"

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
        with self._lock:
            return self._db.execute(statement, values).fetchall()
