"""The PostgreSQL store: one database for a team, with many runners and dashboards at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from passhat.errors import PasshatError
from passhat.store.base import FINISHED_COLUMNS, Store
from passhat.store.heartbeats import GONE_SECONDS, Heartbeat, silent_owners
from passhat.store.listening import CHANNEL, Listening
from passhat.store.owners import is_gone, this_owner
from passhat.store.postgres_connection import PostgresConnection
from passhat.store.schema import migrate_postgres

__all__ = ["PostgresStore"]

_CLAIM = (
    "INSERT INTO attempts (run, task, number, owner) "
    "SELECT ?, u.task, u.number, ? FROM unnest(?::bigint[], ?::integer[]) AS u(task, number) "
    # Claimed by us before, when the answer was lost with the connection: still ours.
    "ON CONFLICT (run, task, number) DO UPDATE SET owner = excluded.owner "
    "WHERE attempts.owner = excluded.owner AND attempts.verdict IS NULL "
    "RETURNING task, number"
)

_TYPES = (
    *("smallint", "text", "text", "bigint", *["double precision"] * 4),
    *("integer", "text", "text", "text", "integer", "bigint", "integer"),
)
_COLUMNS = (*FINISHED_COLUMNS, "run", "task", "number")
# One statement for a whole group. A claim that others took to be abandoned, because we were not
# seen for long, is no reason to lose what was made: the row is made again.
_FINISH = (
    f"INSERT INTO attempts ({', '.join(_COLUMNS)}) "
    f"SELECT * FROM unnest({', '.join(f'?::{kind}[]' for kind in _TYPES)}) "
    "ON CONFLICT (run, task, number) DO UPDATE SET owner = NULL, "
    + ", ".join(f"{name} = excluded.{name}" for name in FINISHED_COLUMNS)
    + " WHERE attempts.verdict IS NULL"
)
_TALK = (
    "INSERT INTO transcripts (run, task, number, body) "
    "SELECT * FROM unnest(?::integer[], ?::bigint[], ?::integer[], ?::bytea[]) "
    "ON CONFLICT (run, task, number) DO UPDATE SET body = excluded.body"
)


class PostgresStore(Store):
    """Runs and their attempts in a database.

    Parameters
    ----------
    address : str
        ``postgresql://user@host/database``. The tables are made if they are not there, unless
        ``must_exist``.
    gone_after : float
        Seconds after which an owner on another machine that gave no sign is taken to be gone.
    """

    _db: PostgresConnection

    def __init__(
        self,
        address: str,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        gone_after: float = GONE_SECONDS,
    ) -> None:
        super().__init__()
        self._db = PostgresConnection(address, read_only=read_only)
        self.path = self._db.name
        self._gone_after = gone_after
        # Two stores of one process are two owners.
        self._owner = f"{this_owner()}/{secrets.token_hex(4)}"
        self._heart = Heartbeat(address, self._owner)
        self._listening = Listening(address)
        self._going: set[str] = set()
        try:
            migrate_postgres(self._db, self.path, must_exist=must_exist)
        except PasshatError:
            self._db.close()
            raise

    def close(self) -> None:
        self._heart.stop()
        self._listening.close()
        super().close()

    def wait_at_most(self, seconds: float) -> None:
        """Locks here are held for one statement of somebody else; they are simply waited for."""

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        self._heart.start()
        key, tasks = self._key(run), self._tasks(run)
        wanted = [tasks[task] for task, _ in attempts], [number for _, number in attempts]
        got = set(self._db.execute(_CLAIM, (key, self._owner, *wanted)).fetchall())
        if run not in self._going:
            # Whoever watches sees that the run goes on; from now on results tell.
            self._tell(run)
            self._going.add(run)
        return [one for one in attempts if (tasks[one[0]], one[1]) in got]

    def changes(self, seconds: float) -> bool:
        return self._listening.wait(seconds)

    def is_sound(self) -> bool:
        """Whether every row of every table can be read, and every index agrees with its table."""
        from passhat.store.check import postgres_is_sound

        return postgres_is_sound(self._db)

    def vacuum(self) -> None:
        for table in ("attempts", "transcripts"):
            self._db.execute(f"VACUUM (ANALYZE) {table}")

    def size(self) -> int:
        ((size,),) = self._db.execute(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
        )
        return int(size)

    def _write_results(self, rows: Iterable[Sequence[Any]]) -> None:
        self._write_group(_FINISH, rows, keyed_by=slice(-3, None))

    def _write_transcripts(self, rows: Iterable[Sequence[Any]]) -> None:
        self._write_group(_TALK, rows, keyed_by=slice(0, 3))

    def _write_group(self, sql: str, rows: Iterable[Sequence[Any]], keyed_by: slice) -> None:
        """Columns as arrays; one statement may meet a row only once, so the first one stays."""
        once: dict[Any, Sequence[Any]] = {}
        for row in rows:
            once.setdefault(row[keyed_by], row)
        if once:
            self._db.execute(sql, [list(column) for column in zip(*once.values(), strict=True)])

    def _tell(self, run: str) -> None:
        self._db.execute("SELECT pg_notify(?, ?)", (CHANNEL, run))

    def _gone_owners(self, run: int) -> list[str]:
        return [
            owner
            for owner, silent in silent_owners(self._db, run, self._gone_after).items()
            if silent or owner == self._owner or is_gone(owner)
        ]

    def _stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        return self._db.stream(sql, parameters, size)

    def _trouble(self, error: BaseException) -> PasshatError | None:
        return error if isinstance(error, PasshatError) else None
