"""What pages ask, of a PostgreSQL database, in a session that cannot write."""

from __future__ import annotations

import threading
from typing import ClassVar

from passhat.errors import StoreUnavailable
from passhat.store.judgements import JUDGED_BY_JOIN
from passhat.store.listening import Listening
from passhat.store.postgres_connection import PostgresConnection
from passhat.store.queries import Reading, Row
from passhat.store.schema import refuse_unless_there

__all__ = ["PostgresReading"]


class PostgresReading(Reading):
    """A database as pages see it; comes back when its server does."""

    _JUDGED: ClassVar[str] = JUDGED_BY_JOIN

    def __init__(self, address: str) -> None:
        self._lock = threading.Lock()
        self._db = PostgresConnection(address, read_only=True)
        self._listening = Listening(address)
        self.path = self._db.name
        try:
            refuse_unless_there(self._db, self.path)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._listening.close()
        with self._lock:
            self._db.close()

    def change(self) -> object:
        # Which transactions are seen: the same ones show the same rows.
        return self._all("SELECT pg_current_snapshot()::text")[0][0]

    def wait(self, seconds: float) -> bool:
        return self._listening.wait(seconds)

    def _all(self, statement: str, *values: object) -> list[Row]:
        with self._lock:
            was_open = self._db.is_open
            try:
                return self._db.execute(statement, values).fetchall()
            except StoreUnavailable as error:
                if not was_open:
                    raise _for_pages(error) from None
            # The connection was of a server that has restarted since; a question may be repeated.
            try:
                return self._db.execute(statement, values).fetchall()
            except StoreUnavailable as error:
                raise _for_pages(error) from None


def _for_pages(error: StoreUnavailable) -> StoreUnavailable:
    error.hint = "The page looks again by itself."
    return error
