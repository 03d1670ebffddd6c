"""The PostgreSQL store: one database for a team, with many runners and dashboards at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from passhat.errors import PasshatError, StoreUnavailable
from passhat.store.base import FINISHED_COLUMNS, Row, Store
from passhat.store.leases import LEASE_SECONDS, Heartbeat, HeldClaims
from passhat.store.postgres_connection import (
    CHANNEL,
    Listening,
    PostgresConnection,
    TooManyConnections,
)
from passhat.store.queries import JUDGED_BY_JOIN
from passhat.store.schema import migrate_postgres

_NOW = "extract(epoch FROM clock_timestamp())"
"""The server's clock: those of the machines need not agree."""
# The first number of beats is drawn: see passhat.store.sqlite.
_RENEW = (
    "INSERT INTO leases (token, clock, seen, seconds, beats) "
    f"VALUES (?, '', {_NOW}, ?, floor(random() * 1000000000)::integer) "
    "ON CONFLICT (token) DO UPDATE SET seen = excluded.seen, beats = leases.beats + 1"
)
# The lease is renewed, and its row locked, by the statement that claims: no claim is without one.
_CLAIM = (
    f"WITH lease AS ({_RENEW} RETURNING token) "
    "INSERT INTO attempts (run, task, number, owner) "
    "SELECT ?, u.task, u.number, lease.token "
    "FROM lease, unnest(?::bigint[], ?::integer[]) AS u(task, number) "
    # Claimed by us before, when the answer was lost with the connection: still ours.
    "ON CONFLICT (run, task, number) DO UPDATE SET owner = excluded.owner "
    "WHERE attempts.owner = excluded.owner AND attempts.verdict IS NULL "
    "RETURNING task, number"
)
# While the server itself was down no lease could be renewed: time before its start is not counted.
_HELD = (
    "SELECT coalesce(a.owner, ''), count(*), max(l.beats), max(l.seconds - "
    f"({_NOW} - greatest(l.seen, extract(epoch FROM pg_postmaster_start_time())))) "
    "FROM attempts a LEFT JOIN leases l ON l.token = a.owner "
    "WHERE a.run = ? AND a.finished IS NULL AND coalesce(a.owner, '') <> ? "
    "GROUP BY coalesce(a.owner, '')"
)

_TYPES = (
    *("smallint", "text", "text", "bigint", *["double precision"] * 4),
    *("integer", "text", "text", "text", "double precision"),
    *("integer", "bigint", "integer", "bytea"),
)
_COLUMNS = (*FINISHED_COLUMNS, "run", "task", "number", "body")
# One statement writes result, cost and transcript, where the claim is still this lease's. All parts
# of a WITH see the tables as they were before it: only RETURNING tells the others what was written.
_FINISH = (
    f"WITH v AS (SELECT * FROM unnest({', '.join(f'?::{kind}[]' for kind in _TYPES)}) "
    f"AS v({', '.join(_COLUMNS)})), "
    f"done AS (UPDATE attempts a SET {', '.join(f'{n} = v.{n}' for n in FINISHED_COLUMNS)} FROM v "
    "WHERE a.run = v.run AND a.task = v.task AND a.number = v.number AND a.owner = ? "
    "AND a.verdict IS NULL RETURNING a.run, a.task, a.number), "
    "talk AS (INSERT INTO transcripts (run, task, number, body) "
    "SELECT v.run, v.task, v.number, v.body FROM v JOIN done USING (run, task, number) "
    "WHERE v.body IS NOT NULL "
    "ON CONFLICT (run, task, number) DO UPDATE SET body = excluded.body), "
    "silent AS (DELETE FROM transcripts t USING v JOIN done USING (run, task, number) "
    "WHERE v.body IS NULL AND t.run = v.run AND t.task = v.task AND t.number = v.number) "
    "SELECT task, number FROM done"
)
_OURS = (
    "SELECT a.task, a.number FROM attempts a "
    "JOIN unnest(?::bigint[], ?::integer[]) AS u(task, number) "
    "ON u.task = a.task AND u.number = a.number "
    "WHERE a.run = ? AND a.owner = ? AND a.verdict IS NOT NULL"
)


class PostgresStore(Store):
    """Runs and their attempts in a database; see :func:`passhat.store.open_store`."""

    judged_attempts = JUDGED_BY_JOIN
    _db: PostgresConnection
    # In READ COMMITTED every statement has a snapshot of its own: the counts of two may not agree.
    _SNAPSHOT: ClassVar[str] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # KEY SHARE keeps others from deleting the run, not from claiming, finishing or updating it.
    _KEEP_RUN, _LOCK_RUN = " FOR KEY SHARE", " FOR UPDATE"
    # In one order, so that two who lock the same leases do not wait for each other for ever.
    _LOCK_LEASES = (
        "SELECT 1 FROM leases WHERE token IN "
        "(SELECT owner FROM attempts WHERE run = ? AND finished IS NULL) ORDER BY token FOR UPDATE"
    )

    def __init__(
        self,
        address: str,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        super().__init__()
        self._db = PostgresConnection(address, read_only=read_only)
        self.path = self._db.name
        self._lease_seconds = lease_seconds
        self._beating = PostgresConnection(address)
        self._heart = Heartbeat(self._beat, self._end_lease, self._beating.interrupt, lease_seconds)
        self._listening = Listening(address)
        self._going: set[str] = set()
        try:
            migrate_postgres(self._db, self.path, must_exist=must_exist, read_only=read_only)
        except PasshatError:
            self._db.close()
            raise

    def close(self) -> None:
        self._listening.close()
        super().close()

    def interrupt(self) -> None:
        self._db.interrupt()

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        with self._transaction():
            key, tasks = self._own_key(run), self._tasks(run)
            rows = [tasks[task] for task, _ in attempts], [number for _, number in attempts]
            values = (self._token, self._lease_seconds, key, *rows)
            got = set(self._db.execute(_CLAIM, values).fetchall())
        self._heart.start()
        if run not in self._going:
            # Dashboards see that the run goes on; from now on results notify them.
            self._tell(run)
            self._going.add(run)
        return [attempt for attempt in attempts if (tasks[attempt[0]], attempt[1]) in got]

    def list_claims(self, run: str) -> list[HeldClaims]:
        rows = self._db.execute(_HELD, (self._find_key(run), self._token)).fetchall()
        # Claims of a version without leases have neither beats nor time left.
        return [
            HeldClaims(token, claims, beats, max(float(left or 0.0), 0.0))
            for token, claims, beats, left in rows
        ]

    def _beat(self) -> None:
        self._execute_apart(_RENEW, (self._token, self._lease_seconds))

    def _execute_apart(self, statement: str, values: Sequence[Any]) -> None:
        """Execute a statement about the lease, on the connection that no other statement holds."""
        try:
            self._beating.execute(statement, values)
        except TooManyConnections:
            # One connection is all there is: statements on it wait for each other.
            self._db.execute(statement, values)

    def _end_lease(self, begun: bool) -> None:
        try:
            if begun:
                self._execute_apart("DELETE FROM leases WHERE token = ?", (self._token,))
        finally:
            self._beating.close()

    def data_version(self) -> object:
        # Which transactions are seen: the same ones show the same rows.
        return self.read("SELECT pg_current_snapshot()::text")[0][0]

    def changes(self, seconds: float) -> bool:
        return self._listening.wait(seconds)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        may_repeat = self._db.is_open and not self._db.in_transaction
        try:
            return super().read(statement, values)
        except StoreUnavailable:
            if not may_repeat:
                raise
        # The connection was of a server that has restarted since; a query may be repeated.
        return super().read(statement, values)

    def is_sound(self) -> bool:
        """Whether every row of every table can be read, and every index agrees with its table."""
        from passhat.store.check import postgres_is_sound

        return postgres_is_sound(self._db)

    def vacuum(self) -> None:
        # One by one: VACUUM runs in no transaction, and several statements in one text are one.
        for table in ("attempts", "transcripts"):
            self._db.execute(f"VACUUM (ANALYZE) {table}")

    def size(self) -> int:
        ((size,),) = self._db.execute(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
        )
        return int(size)

    def _write(self, rows: Sequence[Row]) -> set[tuple[int, int]]:
        # One statement may meet a row only once, so the first one stays.
        once: dict[tuple[int, int], Row] = {}
        for row in rows:
            once.setdefault((row[-3], row[-2]), row)
        if not once:
            return set()
        columns = [list(column) for column in zip(*once.values(), strict=True)]
        stored_keys = set(self._db.execute(_FINISH, (*columns, self._token)).fetchall())
        rest = set(once) - stored_keys
        if not rest:
            return set()
        tasks, numbers = ([place[i] for place in rest] for i in (0, 1))
        run = rows[0][-4]
        own_keys = self._db.execute(_OURS, (tasks, numbers, run, self._token)).fetchall()
        return rest - set(own_keys)

    def _tell(self, run: str) -> None:
        # Delivered when the transaction commits, and not at all when it is rolled back.
        self._db.execute("SELECT pg_notify(?, ?)", (CHANNEL, run))

    def _stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        return self._db.stream(sql, parameters, size)
