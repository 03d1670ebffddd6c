"""The connection to a server, step by step: streams, notices, errors, and when it is made again.

The server is a stand-in; ``test_postgres.py`` has a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, ReadError, StoreUnavailable

psycopg = pytest.importorskip("psycopg")

from passhat.store import postgres_connection as module  # noqa: E402
from passhat.store.postgres_connection import (  # noqa: E402
    Listening,
    PostgresConnection,
    TooManyConnections,
    _Stream,
)

ADDRESS = "postgresql://me:secret@host/db"
STATUS = psycopg.pq.TransactionStatus


class _Server:
    """A connection that notes what it is asked, with a cursor of five rows."""

    closed = broken = False

    def __init__(self, log: list[str], settings: dict[str, Any]) -> None:
        self.log, self.settings = log, settings
        self.info = SimpleNamespace(transaction_status=STATUS.IDLE)
        self.adapters = SimpleNamespace(register_dumper=lambda *_: None)
        self.notices = [0, 0]
        self.fault: Exception | None = None

    def execute(self, sql: str, parameters: object = None) -> object:
        self.log.append(sql if parameters is None else f"{sql} {parameters}")
        if self.fault is not None:
            raise self.fault
        if sql.startswith("BEGIN"):
            self.info.transaction_status = STATUS.INTRANS
        if sql.startswith("COMMIT"):
            self.info.transaction_status = STATUS.IDLE
        return sql

    def cursor(self, name: str) -> object:
        rows = [(number,) for number in range(5)]

        def take(count: int = 9) -> list[Any]:
            block, rows[:] = rows[:count], rows[count:]
            return block

        return SimpleNamespace(
            name=name,
            execute=lambda sql, _: self.log.append(f"{name}: {sql}"),
            fetchmany=take,
            fetchall=take,
            close=lambda: self.log.append(f"{name} closed"),
        )

    def notifies(self, **options: Any) -> Iterator[object]:
        self.log.append(f"notifies {options}")
        return iter(range(self.notices[0 if "stop_after" in options else 1]))

    def close(self) -> None:
        self.log.append("closed")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []

    def connect(_address: str, **settings: Any) -> _Server:
        lines.append("connect")
        return _Server(lines, settings)

    monkeypatch.setattr(psycopg, "connect", connect)
    return lines


def _connection(**options: Any) -> Any:
    return PostgresConnection(options.pop("address", ADDRESS), **options)


def test_a_connection_is_made_when_it_is_needed_and_kept(log: list[str]) -> None:
    connection = _connection()
    assert (connection.is_open, connection.in_transaction, log) == (False, False, [])
    connection.close()
    connection.interrupt()
    assert log == []
    connection.execute("SELECT 1")
    connection.execute("SELECT 2")
    assert log == ["connect", "SELECT 1", "SELECT 2"]
    assert (connection.is_open, connection.in_transaction) == (True, False)
    connection.execute("BEGIN")
    assert connection.in_transaction
    connection.close()
    assert (connection.is_open, connection.in_transaction, log[-1]) == (False, False, "closed")
    connection.execute("SELECT 3")
    assert log[-2:] == ["connect", "SELECT 3"]


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("", {}),
        ("?connect_timeout=3", {"connect_timeout": "3"}),
        ("?keepalives_idle=7&sslmode=require", {"keepalives_idle": "7"}),
    ],
)
def test_settings_of_the_address_are_left_alone(
    log: list[str], query: str, given: dict[str, str]
) -> None:
    connection = _connection(address=ADDRESS + query)
    connection.execute("SELECT 1")
    usual = {"connect_timeout": 10, **module._TCP, "autocommit": True, "prepare_threshold": None}
    assert connection._open.settings == usual | given
    assert log[0] == "connect"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://me:a@b@host/db", "is not the address of a database."),
        ("postgresql://host/db?nonsense=1", "is not the address of a database (invalid"),
    ],
)
def test_what_is_no_address_is_refused(address: str, words: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        PostgresConnection(address)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("sql", "parameters", "sent"),
    [
        ("SELECT '%'", (), "SELECT '%'"),
        ("SELECT ? WHERE a LIKE '%'", (1,), "SELECT %s WHERE a LIKE '%%' (1,)"),
    ],
)
def test_parameters_are_marked_as_the_driver_wants(
    log: list[str], sql: str, parameters: tuple[int, ...], sent: str
) -> None:
    _connection().execute(sql, parameters)
    assert log == ["connect", sent]


@pytest.mark.parametrize(
    ("sql", "is_read"),
    [
        ("SELECT 1", True),
        ("  WITH a AS (SELECT 1) SELECT 2", True),
        *((word, True) for word in ("BEGIN", "COMMIT", "ROLLBACK", "LISTEN x")),
        ("SELECTED", False),
        ("INSERT INTO a", False),
        ("DELETE FROM a WHERE SELECT", False),
    ],
)
def test_only_a_connection_to_read_refuses_to_write(
    log: list[str], sql: str, is_read: bool
) -> None:
    _connection().execute(sql)
    reading = _connection(read_only=True)
    if is_read:
        reading.execute(sql)
    else:
        with pytest.raises(ReadError, match="was opened read-only"):
            reading.execute(sql)
    assert log.count(sql) == 1 + is_read


def test_a_zero_byte_in_text_is_replaced() -> None:
    dumper = module._Text(str)
    assert bytes(dumper.dump("a\x00b")).decode() == "a�b"
    assert bytes(dumper.dump("ab")) == b"ab"


# -- streams ---------------------------------------------------------------------------------------


def test_a_stream_has_a_transaction_of_its_own_unless_one_is_open(log: list[str]) -> None:
    connection = _connection()
    assert list(connection.stream("SELECT ?", (1,), 2)) == [[(0,), (1,)], [(2,), (3,)], [(4,)]]
    assert log == [
        *("connect", "BEGIN READ ONLY", "passhat_0: SELECT %s", "passhat_0 closed", "COMMIT"),
    ]
    assert not connection._streams
    connection.execute("BEGIN")
    log.clear()
    assert len(list(connection.stream("SELECT 1", (), 9))) == 1
    assert log == ["passhat_1: SELECT 1", "passhat_1 closed"]
    assert connection.in_transaction


def test_two_streams_share_a_transaction_that_ends_with_the_last(log: list[str]) -> None:
    connection = _connection()
    first = connection.stream("SELECT 1", (), 2)
    next(first)
    second = connection.stream("SELECT 2", (), 2)
    next(second)
    log.clear()
    first.close()
    assert log == ["passhat_0 closed"]
    second.close()
    assert log == ["passhat_0 closed", "passhat_1 closed"]


def test_another_transaction_reads_the_rest_first_and_a_query_does_not(log: list[str]) -> None:
    connection = _connection()
    stream = connection.stream("SELECT 1", (), 2)
    assert next(stream) == [(0,), (1,)]
    connection.execute("SELECT 2")
    assert len(connection._streams) == 1
    log.clear()
    connection.execute("BEGIN")
    assert log == ["passhat_0 closed", "COMMIT", "BEGIN"]
    assert connection._streams == {}
    assert [*stream] == [[(2,), (3,)], [(4,)]]
    assert log == ["passhat_0 closed", "COMMIT", "BEGIN"]


def test_streams_end_with_the_connection(log: list[str]) -> None:
    connection = _connection()
    stream = connection.stream("SELECT 1", (), 2)
    next(stream)
    connection.close()
    assert connection._streams == {}
    log.clear()
    stream.close()
    assert log == []


@pytest.mark.parametrize("is_read", [True, False])
def test_rows_are_taken_from_the_server_or_from_what_is_left(is_read: bool) -> None:
    rows: list[Any] = [1, 2, 3]

    def take(count: int = 3) -> list[Any]:
        block, rows[:] = rows[:count], rows[count:]
        return block

    cursor = SimpleNamespace(fetchmany=take, fetchall=take)
    stream = _Stream(cursor, owns_transaction=True)
    if is_read:
        stream.take_rest()
        assert rows == []
    taken: list[Any] = [stream.take(2), stream.take(2), stream.take(2)]
    assert taken == [[1, 2], [3], []]


# -- notices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notices", "expected", "looks"), [((0, 9), 0, 1), ((1, 0), 1, 2), ((1, 3), 4, 2)]
)
def test_notices_are_counted(
    log: list[str], notices: tuple[int, int], expected: int, looks: int
) -> None:
    connection = _connection()
    connection.execute("SELECT 1")
    connection._open.notices = list(notices)
    log.clear()
    assert connection.notifies(2.5) == expected
    waits = ["notifies {'timeout': 2.5, 'stop_after': 1}", "notifies {'timeout': 0}"]
    assert log == waits[:looks]


def test_who_listens_begins_again_after_trouble(log: list[str]) -> None:
    listening = Listening(ADDRESS)
    assert listening.wait(5.0) is True  # what was written before is unknown
    assert log == ["connect", "LISTEN passhat"]
    assert listening.wait(0.5) is False
    server: Any = listening._connection._open
    server.notices = [1, 0]
    assert listening.wait(0.5) is True
    assert log.count("LISTEN passhat") == 1

    def fail(**_: object) -> Any:
        raise psycopg.OperationalError("gone")

    server.notifies = fail
    with pytest.raises(StoreUnavailable):
        listening.wait(0.5)
    assert not listening._connection.is_open
    assert listening.wait(0.5) is True
    assert log.count("LISTEN passhat") == 2
    listening.close()
    assert listening.wait(0.5) is True
    assert log.count("LISTEN passhat") == 3


# -- errors ----------------------------------------------------------------------------------------


def _error(kind: str, message: str, state: str | None) -> Any:
    error = getattr(psycopg, kind)(message)
    error.sqlstate = state
    return error


AWAY = "cannot be reached"
NO_STORE = "cannot be used as a store"


@pytest.mark.parametrize(
    ("kind", "message", "state", "expected", "words"),
    [
        ("OperationalError", "gone\nmore", None, StoreUnavailable, f"{AWAY} (gone)."),
        ("InterfaceError", "", None, StoreUnavailable, f"{AWAY} (InterfaceError)."),
        ("OperationalError", "x", "57P01", StoreUnavailable, f"{AWAY} (x)."),
        ("DataError", "x", "40001", StoreUnavailable, f"{AWAY} (x)."),
        ("DataError", "x", "40P01", StoreUnavailable, f"{AWAY} (x)."),
        ("DataError", "x", None, ReadError, f"{NO_STORE} (x)."),
        ("OperationalError", "x", "28P01", ReadError, f"{NO_STORE} (x)."),
        ("OperationalError", "x", "3D000", ReadError, f"{NO_STORE} (x)."),
        ("OperationalError", "x", "42501", ReadError, f"{NO_STORE} (x)."),
        ("OperationalError", "x", "08006", StoreUnavailable, f"{AWAY} (x)."),
        (
            *("OperationalError", "FATAL: password authentication failed", None, ReadError),
            f"{NO_STORE} (FATAL: password authentication failed).",
        ),
        (
            *("OperationalError", "server does not support SSL", None, ReadError),
            f"{NO_STORE} (server does not support SSL).",
        ),
        ("OperationalError", "x", "53300", TooManyConnections, f"{AWAY} (x)."),
        (
            *("OperationalError", "FATAL: too many connections", None, TooManyConnections),
            f"{AWAY} (FATAL: too many connections).",
        ),
        ("DataError", "read-only", "25006", StoreUnavailable, "takes no writes (read-only)."),
    ],
)
def test_every_error_is_one_of_ours(
    log: list[str],
    kind: str,
    message: str,
    state: str | None,
    expected: type[Exception],
    words: str,
) -> None:
    connection = _connection()
    connection.execute("SELECT 1")
    connection._open.fault = _error(kind, message, state)
    with pytest.raises(ReadError) as caught:
        connection.execute("SELECT 2")
    assert type(caught.value) is expected
    assert caught.value.message == f"postgresql://me@host/db: {words}"
    is_passing = issubclass(expected, StoreUnavailable)
    assert caught.value.hint == (module._HINT if is_passing else None)
    # A read-only server is left: the next connection may find the main one.
    assert connection.is_open is (state != "25006")
    assert ("closed" in log) is (state == "25006")


@pytest.mark.parametrize("name", ["closed", "broken"])
def test_a_connection_that_broke_is_made_again(log: list[str], name: str) -> None:
    connection = _connection()
    connection.execute("SELECT 1")
    connection._open.fault = _error("OperationalError", "gone", None)
    setattr(connection._open, name, True)
    with pytest.raises(StoreUnavailable):
        connection.execute("SELECT 2")
    assert not connection.is_open
    connection.execute("SELECT 3")
    assert log[-2:] == ["connect", "SELECT 3"]


# -- a store on it ---------------------------------------------------------------------------------


def _store(log: list[str], **parts: Any) -> Any:
    from passhat.store.postgres import PostgresStore

    store: Any = object.__new__(PostgresStore)
    calls = {
        name: lambda *_, name=name: log.append(name) for name in ("interrupt", "close", "execute")
    }
    store._db = SimpleNamespace(**{**calls, "is_open": True, "in_transaction": False})
    store._beating = SimpleNamespace(
        execute=lambda *_: log.append("beat"), close=lambda: log.append("closed")
    )
    store._token = "TOKEN"
    vars(store).update(parts)
    return store


def test_a_statement_of_a_store_is_interrupted() -> None:
    log: list[str] = []
    _store(log).interrupt()
    assert log == ["interrupt"]


@pytest.mark.parametrize("is_full", [True, False])
def test_a_lease_is_ended_over_the_one_connection_that_there_is(is_full: bool) -> None:
    log: list[str] = []
    store = _store(log)
    if is_full:

        def fail(*_: object) -> None:
            raise TooManyConnections("is full.", source="s")

        store._beating.execute = fail
    store._end_lease(True)
    assert log == ["execute" if is_full else "beat", "closed"]
    log.clear()
    store._end_lease(False)
    assert log == ["closed"]


@pytest.mark.parametrize(
    ("is_open", "in_transaction", "calls"),
    [(True, False, 2), (True, True, 1), (False, False, 1), (False, True, 1)],
)
def test_a_query_is_repeated_over_a_new_connection(
    monkeypatch: pytest.MonkeyPatch, is_open: bool, in_transaction: bool, calls: int
) -> None:
    asked: list[str] = []

    def read(_store: object, statement: str, _values: object = ()) -> list[object]:
        asked.append(statement)
        if len(asked) == 1:
            raise StoreUnavailable("is away.", source="s")
        return [(1,)]

    monkeypatch.setattr("passhat.store.base.Store.read", read)
    store = _store([])
    store._db.is_open, store._db.in_transaction = is_open, in_transaction
    if calls == 2:
        assert store.read("SELECT 1") == [(1,)]
    else:
        with pytest.raises(StoreUnavailable):
            store.read("SELECT 1")
    assert len(asked) == calls
