"""Can a PostgreSQL store be used from here? Nothing of the check stays in the database."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from passhat._display import counted
from passhat.errors import PasshatError, StoreUnavailable
from passhat.runner.findings import Finding, Level
from passhat.store.schema import PER_ATTEMPT, VERSION, postgres_version

if TYPE_CHECKING:
    from passhat.store.postgres_connection import PostgresConnection

__all__ = ["examine_postgres"]

_WHAT = "store"
_OLDEST, _OLDEST_NUMBER = "13", 130_000
_TABLES = ("runs", "tasks", "leases", *PER_ATTEMPT)
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_HEAR_SECONDS = 5.0
_ADVICE = (
    (r"password", "Put the password into ~/.pgpass or PGPASSWORD, or fix the name of the user."),
    (r"role .* does not exist", "Fix the name of the user, or make it: createuser NAME"),
    (r"database .* does not exist", "Make it: createdb NAME"),
    (r"pg_hba", "Have the server's pg_hba.conf let this machine and user in."),
    (r"too many", "Close other programs that use the server, or raise its max_connections."),
)
_AWAY = "Start the server, or mend host and port; pg_isready -d ADDRESS says whether it answers."


def examine_postgres(address: str) -> Iterator[Finding]:
    """Reachable, of a version we know, writable, and whether news are heard."""
    try:
        from passhat.store.postgres_connection import PostgresConnection

        connection = PostgresConnection(address)
    except PasshatError as error:  # the extra is not installed, or it is no address
        yield Finding(_WHAT, Level.PROBLEM, error.message, error.hint or "")
        return
    with closing(connection), closing(PostgresConnection(address)) as other:
        try:
            yield from _server(connection)
            yield from _tables(connection)
            yield _hearing(connection, other)
        except PasshatError as error:
            yield Finding(_WHAT, Level.PROBLEM, error.message, _advice(error))


def _advice(error: PasshatError) -> str:
    for words, advice in _ADVICE:
        if re.search(words, error.message):
            return advice
    return _AWAY if isinstance(error, StoreUnavailable) else error.hint or ""


def _server(connection: PostgresConnection) -> Iterator[Finding]:
    shown, number = connection.execute(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::integer"
    ).fetchone() or ("", 0)
    new = number >= _OLDEST_NUMBER
    yield Finding(
        _WHAT,
        Level.OK if new else Level.PROBLEM,
        f"{connection.name} answers, PostgreSQL {shown}",
        "" if new else f"passhat needs PostgreSQL {_OLDEST} or newer.",
    )


def _tables(connection: PostgresConnection) -> Iterator[Finding]:
    version = postgres_version(connection, connection.name)
    if version is None:
        yield _room_for_tables(connection)
        return
    runs = int((connection.execute("SELECT count(*) FROM runs").fetchone() or (0,))[0])
    if version < VERSION:
        yield Finding(
            _WHAT,
            Level.WARNING,
            f"tables of version {version}, {counted(runs, 'run')}; this passhat has {VERSION}",
            "The next command that writes brings them up to date, and older passhats then refuse.",
        )
    else:
        yield Finding(_WHAT, Level.OK, f"tables of version {version}, {counted(runs, 'run')}")
        yield _writing(connection)


def _room_for_tables(connection: PostgresConnection) -> Finding:
    user, schema, may = connection.execute(
        "SELECT current_user, current_schema(), "
        "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
    ).fetchone() or ("", None, False)
    if not may:
        advice = f"As the owner of the database: GRANT CREATE ON SCHEMA {schema or 'public'} TO "
        found = f"there are no tables yet, and {user} may not make any"
        return Finding(_WHAT, Level.PROBLEM, found, f'{advice}"{user}"')
    return Finding(_WHAT, Level.OK, "there are no tables yet; the first run makes them")


def _writing(connection: PostgresConnection) -> Finding:
    """Every right is asked for, and one row really written; then it is taken back."""
    rights = " AND ".join(f"has_table_privilege(name, '{right}')" for right in _RIGHTS)
    user, read_only, lacking = connection.execute(
        "SELECT current_user, current_setting('transaction_read_only')::boolean, "
        # A store of an older version has no leases yet; CASE keeps the order of evaluation.
        "(SELECT string_agg(name, ', ') FROM unnest(?::text[]) AS name "
        f"WHERE CASE WHEN to_regclass(name) IS NULL THEN false ELSE NOT ({rights}) END)",
        (list(_TABLES),),
    ).fetchone() or ("", True, None)
    if read_only:
        advice = "Name the main server, not a copy that follows it, or lift the read-only setting."
        return Finding(_WHAT, Level.PROBLEM, "takes nothing: sessions are read-only", advice)
    if lacking:
        grant = f'GRANT {", ".join(_RIGHTS)} ON {lacking} TO "{user}"'
        found = f"{user} may not write to {lacking}; reports and passhat view work"
        return Finding(_WHAT, Level.PROBLEM, found, f"As the owner of the tables: {grant}")
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO runs (id, agent, suite, name, protocol, planned, started) "
        "VALUES (?, '', '', '', '{}', 0, '')",
        (f"doctor/{secrets.token_hex(6)}",),
    )
    connection.execute("ROLLBACK")
    return Finding(_WHAT, Level.OK, f"{user} may write")


def _hearing(connection: PostgresConnection, other: PostgresConnection) -> Finding:
    """Whether a notice of one connection arrives at another; a pooler may stand between."""
    channel = f"passhat_doctor_{secrets.token_hex(6)}"
    other.execute(f"LISTEN {channel}")
    connection.execute("SELECT pg_notify(?, '')", (channel,))
    if other.notifies(_HEAR_SECONDS):
        return Finding(_WHAT, Level.OK, "news are heard at once (LISTEN)")
    return Finding(
        _WHAT,
        Level.WARNING,
        "news are not heard (LISTEN); a live page looks only now and then",
        "Name the server itself, not a pooler in transaction mode.",
    )
