"""Open a store by its name: a path is SQLite, an address is PostgreSQL."""

from __future__ import annotations

import threading
import time
from typing import Any

from passhat.errors import InvalidValue
from passhat.store.base import Store
from passhat.store.database import is_address
from passhat.store.leases import LEASE_SECONDS
from passhat.store.queries import Reading, Row
from passhat.store.schema import INDEXED_VERSION
from passhat.store.sqlite import DEFAULT_PATH, SqliteStore, open_for_reading, refuse_absent

__all__ = ["SqliteReading", "open_reading", "open_store"]


_LOOK_SECONDS = 0.2


class SqliteReading(Reading):
    """A file opened for pages; never blocks writers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: object = None
        refuse_absent(path)
        self._db, version = open_for_reading(path)
        # Left to itself SQLite takes the other index over (run, ...), and reads every attempt.
        if version >= INDEXED_VERSION:
            self._OPEN_ATTEMPTS = "attempts a INDEXED BY attempts_open"

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def change(self) -> object:
        return self._all("PRAGMA data_version")[0][0]

    def wait(self, seconds: float) -> bool:
        """SQLite sends no notifications: its data version is polled a few times a second."""
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


def open_store(
    place: str = DEFAULT_PATH,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    lease_seconds: float = LEASE_SECONDS,
) -> Store:
    """The store at a path or an address.

    Parameters
    ----------
    place : str
        A path, or ``postgresql://user@host/database``.
    must_exist : bool
        Refuse a store that is not there, rather than make it.
    read_only : bool
        Refuse every write; an older store is read as it is.
    lease_seconds : float
        How long claims of this store are kept when it gives no sign of life.
    """
    options: dict[str, Any] = {
        "must_exist": must_exist,
        "read_only": read_only,
        "lease_seconds": lease_seconds,
    }
    if not is_address(place):
        _refuse_other_addresses(place)
        return SqliteStore(place, **options)
    from passhat.store.postgres import PostgresStore

    return PostgresStore(place, **options)


def open_reading(place: str = DEFAULT_PATH) -> Reading:
    """A store that is there, as pages see it: nothing can be written through it."""
    if not is_address(place):
        _refuse_other_addresses(place)
        return SqliteReading(place)
    # Imported here, as in open_store: without the extra [postgres] it cannot be.
    from passhat.store.postgres import PostgresReading

    return PostgresReading(place)


def _refuse_other_addresses(place: str) -> None:
    """A folder by the name of an address, with its password, is never wanted."""
    scheme, sign, _ = place.partition("://")
    if sign:
        raise InvalidValue(
            f"a store cannot be at {scheme}://...",
            hint="It is a file, or postgresql://USER@HOST/DATABASE.",
        )
