"""What a PostgreSQL store asks its server for, and what it makes of every answer and error.

The server is a stand-in, so that ``postgres.json`` has every statement; ``test_postgres.py`` says
with a real one that they do what they should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kept_results import check_results
from passhat.errors import PasshatError
from passhat.protocol import Protocol
from passhat.store import AttemptRecord, RunRecord
from passhat.store.schema import VERSION
from passhat.suites.base import Judgement, Task

psycopg = pytest.importorskip("psycopg")

ADDRESS = "postgresql://me:secret@host/db?connect_timeout=3"
RUN = RunRecord("agent", Protocol(suite="s"), [Task("a", "?"), Task("b", "?")])
Answer = Callable[[str], list[Any]]


class _Cursor:
    def __init__(self, log: list[str], rows: list[Any], name: str = "") -> None:
        self.log, self.rows, self.name, self.rowcount = log, rows, name, len(rows)

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def fetchone(self) -> Any:
        return self.rows[0] if self.rows else None

    def fetchall(self) -> list[Any]:
        rows, self.rows = self.rows, []
        return rows

    def fetchmany(self, size: int) -> list[Any]:
        rows, self.rows = self.rows[:size], self.rows[size:]
        return rows

    def execute(self, sql: str, parameters: object) -> None:
        self.log.append(f"{self.name}: {sql} {parameters}")

    def executemany(self, sql: str, parameters: Sequence[object]) -> None:
        self.log.append(f"many: {sql} {list(parameters)}")

    def close(self) -> None:
        self.log.append(f"{self.name} closed")


class _Connection:
    """A connection whose server answers as it is told."""

    closed = broken = False

    def __init__(self, log: list[str], answer: Answer) -> None:
        self.log, self.answer = log, answer
        self.info = SimpleNamespace(transaction_status=psycopg.pq.TransactionStatus.IDLE)
        dumper: Callable[..., None] = lambda kind, _: log.append(f"dumper of {kind}")  # noqa: E731
        self.adapters = SimpleNamespace(register_dumper=dumper)

    def execute(self, sql: str, parameters: object = None) -> _Cursor:
        self.log.append(sql if parameters is None else f"{sql} {parameters}")
        status = psycopg.pq.TransactionStatus
        if sql.startswith("BEGIN"):
            self.info.transaction_status = status.INTRANS
        elif sql.startswith(("COMMIT", "ROLLBACK")):
            self.info.transaction_status = status.IDLE
        return _Cursor(self.log, self.answer(sql))

    def cursor(self, name: str = "") -> _Cursor:
        return _Cursor(self.log, [(number,) for number in range(5)] if name else [], name)

    def notifies(self, **options: object) -> Iterator[object]:
        self.log.append(f"notifies {options}")
        return iter([1, 2] if "stop_after" in options else [3])

    def close(self) -> None:
        self.log.append("closed")
        self.closed = True


def _server(log: list[str], answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(address: str, **settings: object) -> _Connection:
        assert address == ADDRESS
        log.append(f"connect {settings}")
        return _Connection(log, answer)

    monkeypatch.setattr(psycopg, "connect", connect)


def _answers(version: int | None, more: dict[str, list[Any]]) -> Answer:
    def answer(sql: str) -> list[Any]:
        if "to_regclass('passhat_store')" in sql:
            return [(version is not None, version is not None)]
        if sql.startswith("SELECT version"):
            return [(version,)]
        return next((list(rows) for words, rows in more.items() if words in sql), [])

    return answer


def _migrations(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    from passhat.store.postgres import PostgresStore

    found: dict[str, object] = {}
    for version in (None, 0, 3, VERSION - 1, VERSION, VERSION + 1):
        for options in ({}, {"must_exist": True}, {"read_only": True}):
            log: list[str] = []
            _server(log, _answers(version, {}), monkeypatch)
            try:
                PostgresStore(ADDRESS, **options).close()
            except PasshatError as error:
                log.append(f"{type(error).__name__}: {error}")
            if options and version in (0, 3):
                log = [line.strip()[:60] for line in log]
            found[f"version {version}, {', '.join(options) or 'open'}"] = log
    return found


def _course(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The statements of claims, results, streams and notices."""
    from passhat.store.postgres import PostgresStore

    log: list[str] = []
    answers: dict[str, list[Any]] = {
        "SELECT key, generation": [(7, "g")],
        "SELECT key FROM runs": [(7,)],
        "SELECT task, key": [("a", 1), ("b", 2)],
        "WITH lease": [(1, 1), (2, 1)],
        "max(l.beats)": [("other", 3, 9, 1.5), ("old", 1, None, None), ("late", 2, 4, -1.0)],
        "WITH v AS": [(1, 1)],
        "SELECT a.task, a.number FROM attempts": [(1, 2)],
        "pg_current_snapshot": [("1:2:",)],
        "pg_total_relation_size": [(4096,)],
    }
    _server(log, _answers(VERSION, answers), monkeypatch)
    store = PostgresStore(ADDRESS, lease_seconds=12.0)
    monkeypatch.setattr(store, "_token", "TOKEN")
    monkeypatch.setattr("passhat.store.base.new_token", lambda: "NEW")
    monkeypatch.setattr(store._heart, "start", lambda: log.append("heart starts"))
    course: dict[str, object] = {}

    def note(name: str, result: object) -> None:
        course[name] = [result, [line for line in log if not line.startswith("INSERT INTO runs")]]
        log.clear()

    def judged(*places: tuple[str, int]) -> list[AttemptRecord]:
        return [AttemptRecord(*place, Judgement.passed()) for place in places]

    def lost(*places: tuple[str, int]) -> list[str]:
        monkeypatch.setattr("passhat.store.base.finished_cells", _cells)
        return [f"{one.task}#{one.number}" for one in store.finish(RUN.id, judged(*places))]

    note("begin", store.begin(RUN, 2))
    note("claim", store.claim(RUN.id, [("a", 1), ("b", 1), ("b", 2)]))
    note("claim again", store.claim(RUN.id, [("a", 1)]))
    note("held", [[one.token, one.claims, one.beats, one.left] for one in store.list_claims("x")])
    note("finish", lost(("a", 1)))
    note("finish a lost one", lost(("a", 1), ("a", 2), ("b", 2), ("a", 1)))
    note("finish nothing", lost())
    store._beat()
    note("beat", None)
    note("version", store.data_version())
    note("size", store.size())
    note("sound", store.is_sound())
    store.vacuum()
    note("vacuum", None)
    store.remove(RUN.id, force=True)
    note("remove", None)
    note("changes", [store.changes(0.5), store.changes(0.5)])
    note("stream", list(store._stream("SELECT 1 WHERE a = ? AND b LIKE '%'", (3,), 2)))
    stream = store._stream("SELECT 2", (), 2)
    first = next(stream)
    store._db.execute("BEGIN")
    note("a stream that is interrupted", [first, *stream])
    note("end", store._db.execute("COMMIT").rowcount)
    with store.snapshot():
        note("snapshot", store._db.in_transaction)
    store.close()
    note("close", None)
    store._end_lease(True)
    note("end of a lease", None)
    reading = PostgresStore(ADDRESS, read_only=True)
    for sql in ("SELECT 1", "INSERT INTO x", "  WITH a AS (SELECT 1) SELECT 2", "SELECTED"):
        try:
            note(f"read only: {sql}", reading._db.execute(sql).rowcount)
        except PasshatError as error:
            note(f"read only: {sql}", str(error))
    return course


def _cells(record: AttemptRecord, _now: str, run: int, task: int) -> tuple[object, ...]:
    return (*("cell",) * 13, run, task, record.number, None)


def _errors(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    from passhat.store.postgres_connection import PostgresConnection

    found: dict[str, object] = {}
    messages = (
        "boom\nmore",
        "FATAL: database x does not exist",
        "too many connections",
        "read-only",
    )
    for kind in ("OperationalError", "InterfaceError", "DataError"):
        for state in (None, "25006", "40001", "53300", "57P03", "28000", "3D000", "42P01", "XX000"):
            for message in messages if state is None else messages[:1]:
                log: list[str] = []
                error = getattr(psycopg, kind)(message)
                error.sqlstate = state

                def fail(_sql: str, error: Exception = error) -> list[Any]:
                    raise error

                _server(log, fail, monkeypatch)
                connection = PostgresConnection(ADDRESS)
                with pytest.raises(PasshatError) as caught:
                    connection.execute("SELECT 1")
                words = [type(caught.value).__name__, str(caught.value), connection.is_open]
                found[f"{kind} {state} {message[:12]!r}"] = words
    return found


def test_every_statement_and_every_error(monkeypatch: pytest.MonkeyPatch) -> None:
    results = _migrations(monkeypatch) | _course(monkeypatch) | _errors(monkeypatch)
    check_results(Path(__file__).with_name("postgres.json"), results)
