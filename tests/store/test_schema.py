"""Tables of every version: migrated when they are written, read as they are, refused when newer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import ReadError
from passhat.store import schema
from passhat.store.schema import (
    APPLICATION_ID,
    VERSION,
    for_postgres,
    migrate,
    postgres_version,
    prepare_to_read,
)

NEWER = f"was written by a newer passhat (store version {VERSION + 1}; supported: {VERSION})."


def _database(version: int) -> sqlite3.Connection:
    """A database as a passhat of that version left it, with a run, a task and an attempt."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for script in schema._MIGRATIONS[:version]:
        connection.executescript(script)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(
        "INSERT INTO runs (id, agent, suite, name, protocol, planned, started) "
        "VALUES ('r', 'a', 's', 'n', '{}', 2, '')"
    )
    connection.execute("INSERT INTO tasks (run, position, task, labels) VALUES (1, 0, 't', '{}')")
    connection.execute(
        "INSERT INTO attempts (run, task, number, verdict, why) VALUES (1, 1, 1, 0, 'w')"
    )
    return connection


@pytest.fixture(params=range(1, VERSION + 1))
def old(request: pytest.FixtureRequest) -> Iterator[tuple[int, Any]]:
    connection = _database(request.param)
    yield request.param, connection
    connection.close()


def _columns(connection: Any, table: str) -> set[str]:
    return {name for name, *_ in connection.execute(f"SELECT * FROM {table}").description}


def _all_columns(connection: Any) -> dict[str, set[str]]:
    tables = ("tasks", "judged", "leases", *schema.PER_ATTEMPT)
    return {table: _columns(connection, table) for table in tables}


def test_a_file_of_any_version_is_read_with_the_columns_of_this_one(old: tuple[int, Any]) -> None:
    version, connection = old
    before = connection.execute("SELECT name, sql FROM main.sqlite_master").fetchall()
    assert prepare_to_read(connection, "old.db") == version
    with sqlite3.connect(":memory:", isolation_level=None) as new:
        migrate(new, "new.db")
        expected = _all_columns(new)
        expected["attempts"] -= {"score"}  # a view over it would hide its indexes
        found = _all_columns(connection)
        found["attempts"] -= {"score"}
    new.close()
    assert found == expected
    assert {"total", "allocation", "revision"} <= _columns(connection, "runs")
    assert connection.execute("SELECT verdict, why, score FROM judged").fetchall() == [
        (0, "w", None)
    ]
    assert connection.execute("SELECT id, total, revision FROM runs").fetchall() == [
        ("r", None, None)
    ]
    assert connection.execute("SELECT name, sql FROM main.sqlite_master").fetchall() == before


def test_a_file_of_any_version_is_migrated_once(old: tuple[int, Any]) -> None:
    _, connection = old
    migrate(connection, "old.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert not connection.in_transaction
    assert connection.execute("SELECT id, planned, revision FROM runs").fetchall() == [
        ("r", 2, None)
    ]
    assert connection.execute("SELECT number, verdict, score FROM judged").fetchall() == [
        (1, 0, None)
    ]
    tables = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    with sqlite3.connect(":memory:", isolation_level=None) as new:
        migrate(new, "new.db")
        names = [name for name, _ in tables]
        assert new.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == [
            (name,) for name in names
        ]
        assert new.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    new.close()
    migrate(connection, "old.db")
    assert (
        tables == connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    )


def test_a_migration_that_fails_leaves_the_file_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*schema._MIGRATIONS[:-1], "CREATE TABLE extra (a TEXT); CREATE TABLE runs (a TEXT);")
    monkeypatch.setattr(schema, "_MIGRATIONS", broken)
    connection = _database(3)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "old.db")
    assert not connection.in_transaction
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchall()
    connection.close()


@pytest.mark.parametrize("use", [migrate, prepare_to_read])
def test_other_databases_and_newer_files_are_refused(use: Any) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE other (a TEXT)")
    with pytest.raises(ReadError) as caught:
        use(connection, "x.db")
    assert caught.value.message == "x.db: is a database, but not one of passhat."
    connection.close()
    connection = _database(VERSION)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(ReadError) as caught:
        use(connection, "x.db")
    assert caught.value.message == f"x.db: {NEWER}"
    connection.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is an empty file, not a store."),
        (b"", "is an empty file, not a store."),
        (b"x", "has no tables: its write-ahead log is absent."),
    ],
)
def test_a_file_without_tables_is_not_read(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "s.db"
    if content is not None:
        path.write_bytes(content)
    connection = sqlite3.connect(":memory:")
    with pytest.raises(ReadError) as caught:
        prepare_to_read(connection, str(path))
    assert caught.value.message == f"{path}: {message}"
    connection.close()


def test_statements_of_a_script_are_taken_one_by_one() -> None:
    script = "CREATE TABLE a (x TEXT); INSERT INTO a VALUES (';');\n"
    assert [one.strip() for one in schema._statements(script)] == [
        "CREATE TABLE a (x TEXT);",
        "INSERT INTO a VALUES (';');",
    ]


# -- PostgreSQL, with a stand-in for the server ----------------------------------------------------


@pytest.mark.parametrize(
    ("own", "others", "version", "expected"),
    [
        (False, False, 0, None),
        (True, False, 3, 3),
        (True, True, VERSION, VERSION),
        (
            *(False, True, 0),
            "is a database with a table 'attempts' that is not one of passhat.",
        ),
        (True, True, VERSION + 1, NEWER),
    ],
)
def test_the_version_of_a_server_is_in_a_table(
    own: bool, others: bool, version: int, expected: object
) -> None:
    def execute(sql: str) -> Any:
        row = (version,) if "passhat_store" in sql.partition("FROM")[2] else (own, others)
        return SimpleNamespace(fetchone=lambda: row)

    database: Any = SimpleNamespace(execute=execute)
    if isinstance(expected, str):
        with pytest.raises(ReadError) as caught:
            postgres_version(database, "name")
        assert caught.value.message == f"name: {expected}"
    else:
        assert postgres_version(database, "name") == expected


def test_types_are_those_of_the_server() -> None:
    ours = "(key INTEGER PRIMARY KEY, a REAL, b BLOB, c INTEGER) WITHOUT ROWID;"
    key = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
    assert for_postgres(ours) == f"(key {key}, a DOUBLE PRECISION, b BYTEA, c INTEGER) ;"


def test_a_file_of_this_version_is_opened_without_a_lock() -> None:
    connection = _database(VERSION)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    migrate(connection, "s.db")
    connection.set_trace_callback(None)
    assert not [sql for sql in asked if sql.startswith("BEGIN")]
    connection.close()


class _Server:
    """Answers what the version of its tables is, and notes what else it is told."""

    def __init__(self, version: int | None, fault: str = "") -> None:
        self.version, self.fault = version, fault
        self.log: list[str] = []

    def execute(self, sql: str) -> Any:
        self.log.append(sql)
        if self.fault and self.fault in sql:
            raise ReadError("it broke.", source="name")
        is_there = self.version is not None
        row = (self.version,) if sql.startswith("SELECT version") else (is_there, is_there)
        return SimpleNamespace(fetchone=lambda: row)

    def close(self) -> None:
        self.log.append("closed")


def _migrate_server(server: Any, **options: bool) -> str:
    """The error, or nothing."""
    try:
        schema.migrate_postgres(server, "name", **{"must_exist": False, **options})
    except ReadError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        (VERSION, {}, ""),
        (VERSION, {"read_only": True}, ""),
        (VERSION, {"must_exist": True}, ""),
        (None, {"read_only": True}, "name: there is no store in this database."),
        (None, {"must_exist": True}, "name: there is no store in this database."),
        (
            *(VERSION - 1, {"read_only": True}),
            f"name: has store version {VERSION - 1}, and this passhat reads version {VERSION}.",
        ),
    ],
)
def test_a_server_whose_tables_are_not_to_be_changed_is_only_asked(
    version: int | None, options: dict[str, bool], message: str
) -> None:
    server = _Server(version)
    assert _migrate_server(server, **options) == message
    assert all(sql.startswith("SELECT") for sql in server.log)


@pytest.mark.parametrize("version", [None, 0, 3, VERSION - 1])
def test_a_server_is_brought_up_to_date_in_one_transaction(version: int | None) -> None:
    server = _Server(version)
    assert _migrate_server(server) == ""
    begin = server.log.index("BEGIN")
    assert server.log[begin + 1 : begin + 3] == [
        f"SELECT pg_advisory_xact_lock({schema._LOCK})",
        "SELECT 1 FROM pg_class LIMIT 1",
    ]
    made = [sql for sql in server.log if "passhat_store (" in sql or "INTO passhat_store" in sql]
    assert len(made) == (2 if version is None else 0)
    scripts = [sql for sql in server.log if sql.startswith("\n")]
    assert len(scripts) == VERSION - (version or 0)
    assert server.log[-2:] == [f"UPDATE passhat_store SET version = {VERSION}", "COMMIT"]


def test_a_server_on_which_it_fails_is_left_at_once() -> None:
    server = _Server(VERSION - 1, fault="UPDATE passhat_store")
    assert _migrate_server(server) == "name: it broke."
    assert server.log[-1] == "closed"
    assert "COMMIT" not in server.log
