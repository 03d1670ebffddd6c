"""A connection to PostgreSQL with the calls of a :class:`~passhat.store.database.Database`.

It is made when it is first needed, and again after it broke: a server that restarts costs the
statement under way, never the store. Every error is one of passhat's errors.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from passhat.errors import InvalidValue, MissingExtra, PasshatError, ReadError, StoreUnavailable
from passhat.store.database import is_well_formed, without_password

try:
    import psycopg
    from psycopg.types.string import StrDumper
except ImportError:
    raise MissingExtra("A PostgreSQL store", extra="postgres") from None


class TooManyConnections(StoreUnavailable):
    """The server, or the role, has no connection left."""


CHANNEL = "passhat"
"""Channel on which stores send notices; a notice is the id of the changed run."""


class Listening:
    """A connection that only listens for notices; reconnects after an error."""

    def __init__(self, address: str) -> None:
        self._connection = PostgresConnection(address)
        self._begun = False

    def wait(self, seconds: float) -> bool:
        """Whether there was a write; waits for it at most so long.

        The first call, and the first one after trouble, begins to listen and is ``True``: what was
        written before is unknown.
        """
        try:
            if not self._begun:
                self._connection.execute(f"LISTEN {CHANNEL}")
                self._begun = True
                return True
            return self._connection.notifies(seconds) > 0
        except PasshatError:
            self.close()
            raise

    def close(self) -> None:
        self._begun = False
        self._connection.close()


_CONNECT_SECONDS = 10
_TCP = {
    "tcp_user_timeout": 20_000,  # milliseconds that sent data may stay unacknowledged
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""Without these a peer that vanished (a cable, a firewall) is waited for up to hours."""
_HINT = "Finished attempts are kept; run the same command again when it can."


class _Text(StrDumper):
    """Text for PostgreSQL, with zero bytes replaced: it cannot store them."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\x00", "�") if "\x00" in obj else obj)


@lru_cache(maxsize=256)
def _with_percent(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


class _Stream:
    """A cursor on the server, or the rows that were left when it had to be closed."""

    def __init__(self, cursor: Any, owns_transaction: bool) -> None:
        self.cursor = cursor
        self.owns_transaction = owns_transaction
        self._rest: list[tuple[Any, ...]] | None = None

    def take(self, size: int) -> list[tuple[Any, ...]]:
        if self._rest is None:
            block: list[tuple[Any, ...]] = self.cursor.fetchmany(size)
            return block
        block, self._rest = self._rest[:size], self._rest[size:]
        return block

    def take_rest(self) -> None:
        self._rest = self.cursor.fetchall()


class PostgresConnection:
    """A connection that reconnects after it broke; with ``read_only`` the server refuses writes."""

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self._address = address
        self._read_only = read_only
        self.name = without_password(address)
        self._open: psycopg.Connection[Any] | None = None
        self._cursors = itertools.count()
        self._streams: dict[str, _Stream] = {}
        if not is_well_formed(address):
            raise InvalidValue(
                f"{self.name} is not the address of a database.",
                hint="It reads postgresql://USER@HOST:PORT/DATABASE; in a password, "
                "@ / ? # % are written as %40 %2F %3F %23 %25.",
            )
        try:
            # Settings in the address itself are left alone.
            names = ("connect_timeout", *_TCP)
            settings = psycopg.conninfo.conninfo_to_dict(address)
            self._given: dict[str, Any] = {k: v for k, v in settings.items() if k in names}
        except psycopg.Error as error:
            raise InvalidValue(
                f"{self.name} is not the address of a database ({_first_line(error)}).",
                hint="It reads postgresql://USER@HOST:PORT/DATABASE.",
            ) from None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._open is not None

    @property
    def in_transaction(self) -> bool:
        idle = psycopg.pq.TransactionStatus.IDLE
        return self._open is not None and self._open.info.transaction_status != idle

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        if self._read_only and not _READING.match(sql):
            raise ReadError("was opened read-only.", source=self.name)
        self._drain(sql)
        with self._translating_errors() as connection:
            # Without parameters several statements may be in one text, and % is itself.
            if not parameters:
                return connection.execute(sql)
            return connection.execute(_with_percent(sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        with self._translating_errors() as connection, connection.cursor() as cursor:
            cursor.executemany(_with_percent(sql), parameters)

    def stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows some at a time; the server keeps the others.

        A cursor lives in one transaction, also behind a pooler. A transaction that begins before
        all rows were read takes the rest of them first: see :meth:`_drain`.
        """
        owns_transaction = not self.in_transaction
        if owns_transaction:
            self.execute("BEGIN READ ONLY")
        with self._translating_errors() as connection:
            cursor = connection.cursor(name=f"passhat_{next(self._cursors)}")
            cursor.execute(_with_percent(sql), parameters)
        stream = self._streams[cursor.name] = _Stream(cursor, owns_transaction)
        try:
            while True:
                with self._translating_errors():
                    block = stream.take(size)
                if not block:
                    return
                yield block
        finally:
            self._end_stream(stream)

    def _drain(self, sql: str) -> None:
        """Before another transaction begins, read the rest of the rows that are being streamed."""
        if not self._streams or not sql.startswith("BEGIN"):
            return
        for stream in list(self._streams.values()):
            with self._translating_errors():
                stream.take_rest()
            self._end_stream(stream)

    def _end_stream(self, stream: _Stream) -> None:
        if self._streams.pop(stream.cursor.name, None) is None:
            return
        with suppress(psycopg.Error, PasshatError):
            stream.cursor.close()
            if stream.owns_transaction and not self._streams and self.in_transaction:
                self.execute("COMMIT")

    def notifies(self, seconds: float) -> int:
        """Number of notices; waits for the first at most so many seconds."""
        with self._translating_errors() as connection:
            count = sum(1 for _ in connection.notifies(timeout=seconds, stop_after=1))
            return count + sum(1 for _ in connection.notifies(timeout=0)) if count else 0

    def interrupt(self) -> None:
        """Cut the connection under a statement that another thread waits for; it then fails.

        The server may be out of reach, so nothing is asked of it. Closing the socket's descriptor
        would race with that thread; shutting it down wakes it up.
        """
        with suppress(psycopg.Error, OSError, AttributeError):
            duplicate = socket.socket(fileno=os.dup(self._open.pgconn.socket))  # type: ignore[union-attr]
            with duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._streams.clear()
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def _translating_errors(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            if self._open is None:
                self._open = psycopg.connect(
                    self._address,
                    # Transactions are begun by name: psycopg would begin one at the first SELECT,
                    # and hold back VACUUM until it ends.
                    autocommit=True,
                    # A transaction pooler (PgBouncer) gives each transaction another session, in
                    # which what was prepared before does not exist.
                    prepare_threshold=None,
                    **{"connect_timeout": _CONNECT_SECONDS, **_TCP, **self._given},
                )
                self._open.adapters.register_dumper(str, _Text)
            yield self._open
        except psycopg.Error as error:
            if self._open is None or self._open.broken or self._open.closed:
                self.close()
            raise self._translate_error(error) from None

    def _translate_error(self, error: psycopg.Error) -> PasshatError:
        if error.sqlstate == "25006":
            self.close()  # a read-only server: the next connection may find the main one
        passing = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if error.sqlstate not in _PASSING and (not passing or _never_works(error)):
            return ReadError(f"cannot be used as a store ({_first_line(error)}).", source=self.name)
        is_full = error.sqlstate == "53300" or "too many connections" in str(error)
        kind = TooManyConnections if is_full else StoreUnavailable
        what = "takes no writes" if "read-only" in str(error) else "cannot be reached"
        return kind(f"{what} ({_first_line(error)}).", source=self.name, hint=_HINT)


_READING = re.compile(r"\s*(?:SELECT|WITH|BEGIN|COMMIT|ROLLBACK|LISTEN)\b")
# Read-only, serialization failure, deadlock, too many connections, shutdown, crash, starting up.
_PASSING = ("25006", "40001", "40P01", "53300", "57P01", "57P02", "57P03")
"""Trouble that ends by itself: a standby that becomes the main server, a deadlock, a full or
restarting server."""
_FOR_GOOD = ("28", "3D", "42")
"""Classes of trouble that waiting does not end: who you are, which database, what you may do."""
_REFUSED = re.compile(
    r"FATAL:.*(?:authentication failed|does not exist|no password supplied|could not trans"
    r"|no pg_hba.conf entry)"
    # TLS that is asked for and cannot be had, or that shows another server.
    r"|certificate verify failed|root certificate file|does not match host name"
    r"|server does not support SSL"
)


def _never_works(error: psycopg.Error) -> bool:
    """Whether a retry is useless: a wrong password or name, rather than an absent server."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_FOR_GOOD)
    return _REFUSED.search(str(error)) is not None


def _first_line(error: psycopg.Error) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
