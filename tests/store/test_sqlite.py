"""The file of a store: connections, errors in our words, claims of others, and pauses."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, ReadError, StoreUnavailable
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, base, open_store, sqlite
from passhat.store.check import _stretches, postgres_is_sound
from passhat.store.counting import has_graded_scores
from passhat.store.leases import HeldClaims
from passhat.store.opening import is_same_place
from passhat.store.sqlite import SqliteConnection, SqliteStore
from passhat.suites.base import Judgement, Task


def _error(code: int | None, text: str = "so it is") -> sqlite3.Error:
    error: Any = sqlite3.OperationalError(text)
    if code is not None:
        error.sqlite_errorcode = code
    return error  # type: ignore[no-any-return]


DAMAGED = "The file is damaged. Run passhat store check for details, or restore a backup."


@pytest.mark.parametrize(
    ("error", "is_passing", "hint"),
    [
        (_error(sqlite3.SQLITE_BUSY), True, None),
        (_error(sqlite3.SQLITE_BUSY | 2 << 8), True, None),
        (_error(sqlite3.SQLITE_LOCKED), True, None),
        (_error(sqlite3.SQLITE_FULL), True, None),
        (_error(sqlite3.SQLITE_PROTOCOL), True, None),
        (_error(sqlite3.SQLITE_INTERRUPT), True, None),
        (_error(sqlite3.SQLITE_CORRUPT), False, DAMAGED),
        (_error(sqlite3.SQLITE_CORRUPT | 1 << 8), False, DAMAGED),
        (_error(sqlite3.SQLITE_ERROR, "Could not decode to UTF-8"), False, DAMAGED),
        (_error(sqlite3.SQLITE_READONLY), False, None),
        (_error(None), False, None),
    ],
)
def test_an_error_of_the_database_is_one_of_ours(
    error: sqlite3.Error, is_passing: bool, hint: str | None
) -> None:
    connection = sqlite3.connect(":memory:", factory=SqliteConnection)
    connection.name = "s.db"
    found = connection.translate_error(error)
    connection.close()
    words = "cannot be used just now" if is_passing else "cannot be used as a store"
    assert f"{words} ({error})." in str(found)
    assert isinstance(found, StoreUnavailable) is is_passing
    kept = "Finished attempts are kept; run the same command again when it can."
    assert found.hint == (kept if is_passing else hint)


def test_many_rows_are_written_in_as_few_statements_as_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite, "_MOST_VALUES", 7)
    connection = sqlite3.connect(":memory:", factory=SqliteConnection, isolation_level=None)
    statements: list[str] = []
    connection.execute("CREATE TABLE t (a, b)")
    connection.set_trace_callback(statements.append)
    rows = [(number, -number) for number in range(7)]
    connection.execute_rows("INSERT INTO t VALUES {rows}", [])
    assert statements == []
    connection.execute_rows("INSERT INTO t VALUES {rows}", rows)
    assert [statement.count("(") for statement in statements] == [3, 3, 1]
    assert connection.execute("SELECT * FROM t").fetchall() == rows
    connection.close()


def test_a_file_is_opened_to_read_to_write_or_without_its_log(tmp_path: Path) -> None:
    place = str(tmp_path / "a b?c.db")
    made = sqlite._connect(place, "name")
    made.execute("CREATE TABLE t (a)")
    made.execute("INSERT INTO t VALUES (1)")  # and is there at once
    assert (made.file, made.name, made.isolation_level) == (place, "name", None)
    for options in ({"read_only": True}, {"read_only": True, "without_log": True}):
        reading = sqlite._connect(place, "name", **options)
        assert reading.execute("SELECT a FROM t").fetchall() == [(1,)]
        with pytest.raises(ReadError, match="readonly"):
            reading.execute("INSERT INTO t VALUES (2)")
        reading.close()
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("INSERT INTO t VALUES (2)")
    alone = sqlite._connect(place, "name", read_only=True, without_log=True)
    assert alone.execute("SELECT a FROM t").fetchall() == [(1,)]
    alone.close()
    made.close()
    with pytest.raises(ReadError, match="cannot be used as a store"):
        sqlite._connect(str(tmp_path), "name").execute("SELECT 1 FROM t")


def test_a_log_is_begun_when_others_let_it_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: now.append(now.pop() + 10.0))
    monkeypatch.setattr(sqlite, "time", clock)
    for failures, is_done in ((4, True), (5, False)):
        now[:] = [0.0]
        left = [StoreUnavailable("busy", source="s")] * failures

        def execute(statement: str, left: list[StoreUnavailable] = left) -> None:
            assert statement == "PRAGMA journal_mode = WAL"
            if left:
                raise left.pop()

        database: Any = SimpleNamespace(execute=execute)
        if is_done:
            sqlite._write_ahead(database)
        else:
            with pytest.raises(StoreUnavailable):
                sqlite._write_ahead(database)
        assert left == []


def test_claims_of_others_last_as_long_as_their_clock_or_their_beats_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "clock_id", lambda: "mine")
    monkeypatch.setattr(sqlite, "clock_now", lambda: 100.0)
    now = [10.0]
    with open_store(str(tmp_path / "s.db")) as opened:
        store: Any = opened
        monkeypatch.setattr(sqlite, "time", SimpleNamespace(monotonic=lambda: now[0]))
        left = [store._as_claims("a", 2, "mine", seen, 30.0, 5).left for seen in (95.0, 70.0, 60.0)]
        assert left == [25.0, 0.0, 0.0]
        course = []
        for at, beats in ((10.0, 1), (15.0, 1), (20.0, 2), (45.0, 2), (60.0, 2)):
            now[0] = at
            course.append(store._as_claims("b", 2, "other", 0.0, 30.0, beats).left)
        assert course == [30.0, 25.0, 30.0, 5.0, 0.0]
        old = store._as_claims("c", 3, None, 0.0, 0.0, None)
        assert (old.token, old.claims, old.beats, old.left) == ("c", 3, None, 0.0)
        monkeypatch.undo()


def test_what_waits_is_interrupted_and_a_lease_that_was_not_begun_stays(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as opened:
        store: Any = opened
        interrupted: list[str] = []
        assert store._ending is False
        beating = SimpleNamespace(
            interrupt=lambda: interrupted.append("beat"), close=lambda: interrupted.append("closed")
        )
        store._interrupt_beat()
        store._beating = beating
        store._interrupt_beat()
        assert interrupted == ["beat"]
        real = store._db
        store._db = SimpleNamespace(interrupt=lambda: interrupted.append("own"))
        store._ending = True
        store._interrupt_beat()
        store.interrupt()
        assert interrupted == ["beat", "own", "own"]
        store._db, store._ending = real, False
        real.execute(
            "INSERT INTO leases (token, clock, seen, seconds, beats) VALUES (?, 'c', 0, 1, 1)",
            (store._token,),
        )
        store._end_lease(False)
        assert interrupted[-1] == "closed"
        assert store._ending
        assert real.execute("SELECT count(*) FROM leases").fetchone() == (1,)
        store._end_lease(True)
        assert real.execute("SELECT count(*) FROM leases").fetchone() == (0,)
        store._beating = None


@pytest.mark.parametrize("has_update_from", [True, False])
def test_results_whose_claim_is_gone_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_update_from: bool
) -> None:
    monkeypatch.setattr(sqlite, "_HAS_UPDATE_FROM", has_update_from)
    run = RunRecord("agent", Protocol(suite="s"), [Task("a", "?"), Task("b", "?")])
    records = [
        AttemptRecord(
            task, 1, Judgement(Verdict.PASSED), transcript=[{"role": "user", "text": task}]
        )
        for task in "ab"
    ]
    with open_store(str(tmp_path / "s.db")) as store:
        store.begin(run, 1)
        store.claim(run.id, [("a", 1), ("b", 1)])
        store._db.execute("UPDATE attempts SET owner = 'other' WHERE task = 1")
        assert store.finish(run.id, records) == records[:1]
        assert store.finish(run.id, records[1:]) == []  # it is there already, and ours
        rows = "SELECT task, owner = ?, verdict FROM attempts ORDER BY task"
        assert store.read(rows, (store._token,)) == [(1, 0, None), (2, 1, 1)]
        assert store.read("SELECT task FROM transcripts") == [(2,)]
        store._db.execute("UPDATE attempts SET owner = ? WHERE task = 1", (store._token,))
        assert store.finish(run.id, records[:1]) == []
        assert store.read("SELECT count(*) FROM transcripts") == [(2,)]


def test_a_store_is_closed_with_its_heart(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    log: list[str] = []
    ends = {"heart": store._heart.stop, "file": store._db.close}

    def end(name: str) -> None:
        log.append(name)
        ends[name]()

    opened: Any = store
    opened._heart = SimpleNamespace(stop=lambda: end("heart"))
    opened._db = SimpleNamespace(close=lambda: end("file"))
    with store as same:
        assert same is store
    assert log == ["heart", "file"]


# -- what all stores share -------------------------------------------------------------------------


def test_a_change_is_waited_for_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    versions = [1, *[1] * 3, 2, *[2] * 9]
    store: Any = SimpleNamespace(_seen_version=None, data_version=lambda: versions.pop(0))
    assert Store.changes(store, 5.0)  # the first call begins to watch
    assert slept == []
    assert Store.changes(store, 5.0)
    assert (slept, store._seen_version) == ([0.1] * 3, 2)
    slept.clear()
    assert not Store.changes(store, 0.05)
    assert slept == [0.05]
    assert not Store.changes(store, 0.0)
    assert slept == [0.05]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("s.db", "./s.db", True),
        ("s.db", "t.db", False),
        ("postgresql://me:a@h/d", "postgresql://me:b@h/d", True),
        ("postgresql://me@h/d", "postgresql://me@h/e", False),
        ("postgresql://me@h/d", "s.db", False),
        ("s.db", "postgresql://me@h/d", False),
    ],
)
def test_two_names_of_one_store(first: str, second: str, is_same: bool) -> None:
    assert is_same_place(first, second) is is_same


@pytest.mark.parametrize(
    ("scores", "is_graded"),
    [
        (None, False),
        ((0.0, 1.0, 1), True),
        ((0.0, 1.0, 0), False),
        ((-1e-6, 1 + 1e-6, 1), True),
        ((-2e-6, 1.0, 1), False),
        ((0.0, 1 + 2e-6, 1), False),
        ((0.5, 0.5, 1), True),
    ],
)
def test_scores_between_none_and_all_are_graded(
    scores: tuple[float, float, int] | None, is_graded: bool
) -> None:
    asked: list[object] = []

    def stream(statement: str, values: object, size: int) -> Any:
        asked.append((values, size))
        is_first = len(asked) == 1
        assert statement.startswith("SELECT 1 " if is_first else "SELECT min(score)")
        if scores is not None:
            yield [(1,)] if is_first else [scores]

    assert has_graded_scores(stream, 7) is is_graded
    assert asked == [((7,), 1)] * (1 if scores is None else 2)


def test_a_table_is_gone_through_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    from passhat.store import check

    monkeypatch.setattr(check, "_AT_ONCE", 3)
    found: list[tuple[int] | None] = [(5,), (9,), None]
    asked: list[tuple[int, int]] = []

    def execute(statement: str, values: tuple[int, int]) -> Any:
        assert statement.endswith("ORDER BY task, number LIMIT 1 OFFSET 3")
        asked.append(values)
        return SimpleNamespace(fetchone=lambda: found.pop(0))

    store: Any = SimpleNamespace(_db=SimpleNamespace(execute=execute))
    stretches = list(_stretches(store, "transcripts", 7))
    low, high = -(2**63), 2**63 - 1
    assert stretches == [(low, 6), (6, 10), (10, high)]
    assert asked == [(7, low), (7, 6), (7, 10)]


@pytest.mark.parametrize("at", [0, 2, 99])
def test_a_table_that_cannot_be_read_is_not_sound(at: int) -> None:
    tables: list[str] = []

    def execute(statement: str) -> Any:
        tables.append(statement.split()[-2])
        if len(tables) == at + 1:
            raise ReadError("invalid page", source="s")
        return SimpleNamespace(fetchone=lambda: (1,))

    database: Any = SimpleNamespace(execute=execute)
    assert postgres_is_sound(database) is (at == 99)
    assert tables[:2] == ["runs", "tasks"][: at + 1]
    assert len(tables) == (at + 1 if at < 99 else len(set(tables)))
    gone: Any = SimpleNamespace(execute=lambda _: (_ for _ in ()).throw(_unavailable()))
    with pytest.raises(StoreUnavailable):
        postgres_is_sound(gone)


def _unavailable() -> StoreUnavailable:
    return StoreUnavailable("away", source="s")


# -- opening, claiming and writing -----------------------------------------------------------------


def test_a_path_is_kept_whatever_the_working_folder_is_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore("s.db") as store:
        assert (store.path, store._file) == ("s.db", str(tmp_path / "s.db"))
    before = sorted(tmp_path.iterdir())
    with SqliteStore(":memory:") as store:
        assert (store.path, store._file) == (":memory:", ":memory:")
        assert store.runs() == []
    assert sorted(tmp_path.iterdir()) == before


def _three(store: Store) -> RunRecord:
    run = RunRecord("agent", Protocol(suite="s"), [Task(name, "?") for name in "abc"])
    store.begin(run, 2)
    return run


def test_a_task_that_is_added_to_a_run_can_be_claimed_at_once() -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        assert store.claim(run.id, [("a", 1)]) == [("a", 1)]
        store.begin(RunRecord(run.agent, run.protocol, [*run.tasks, Task("d", "?")]), 2)
        assert store.claim(run.id, [("d", 1)]) == [("d", 1)]


@pytest.mark.parametrize(
    ("taken", "asked", "claimed"),
    [
        ([], [("a", 1), ("b", 2)], [("a", 1), ("b", 2)]),
        ([("a", 1)], [("a", 1)], []),
        ([("a", 1)], [("b", 1), ("a", 1), ("a", 2)], [("b", 1), ("a", 2)]),
        ([("a", 1), ("b", 1)], [("b", 1), ("a", 1)], []),
    ],
)
def test_claims_of_another_runner_are_left_to_it(
    taken: list[tuple[str, int]], asked: list[tuple[str, int]], claimed: list[tuple[str, int]]
) -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        own_token = store._token
        store._token = "other"
        store.claim(run.id, taken)
        store._token = own_token
        assert store.claim(run.id, asked) == claimed
        assert store.claim(run.id, asked) == claimed  # ours already
        (held,) = store.list_claims(run.id) if taken else [SimpleNamespace(claims=0)]
        assert held.claims == len(taken)


def test_an_attempt_that_has_ended_is_not_claimed_again() -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        store.claim(run.id, [("a", 1), ("a", 2)])
        store.finish(run.id, [AttemptRecord("a", 1, Judgement(Verdict.PASSED))])
        assert store.claim(run.id, [("a", 1), ("a", 2)]) == [("a", 2)]


def test_a_lease_is_renewed_over_one_connection_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(str(tmp_path / "s.db")) as store:
        opened: list[str] = []
        connect = sqlite._connect

        def note(file: str, name: str) -> SqliteConnection:
            opened.append(file)
            return connect(file, name)

        monkeypatch.setattr(sqlite, "_connect", note)
        seen = []
        for _ in range(3):
            store._beat()
            ((beats,),) = store.read("SELECT beats FROM leases")
            seen.append(beats)
        assert seen == [seen[0], seen[0] + 1, seen[0] + 2]
        assert opened == [store._file]
        store._end_lease(True)
        store._beating = None


@pytest.mark.parametrize(
    ("size", "open_lease", "sound", "expected"),
    [
        (None, False, True, None),
        (None, True, True, "absent"),
        (None, True, False, None),
        (0, True, True, "absent"),
    ],
)
def test_a_log_is_absent_where_a_runner_was_at_work(
    tmp_path: Path, size: int | None, open_lease: bool, sound: bool, expected: str | None
) -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        if open_lease:
            store.claim(run.id, [("a", 1)])
        store._file = str(tmp_path / "s.db")
        if size is not None:
            (tmp_path / "s.db-wal").write_bytes(b"x" * size)
        assert store.log_problem(sound=sound) == expected
        store._file = ":memory:"


def test_the_size_of_a_store_is_that_of_its_pages() -> None:
    with SqliteStore(":memory:") as store:
        ((pages,),) = store.read("PRAGMA page_count")
        ((size,),) = store.read("PRAGMA page_size")
        assert store.size() == pages * size


def test_a_wait_is_in_seconds() -> None:
    with SqliteStore(":memory:") as store:
        store.wait_at_most(1.25)
        assert store.read("PRAGMA busy_timeout") == [(1250,)]


def test_what_another_connection_or_this_one_writes_is_another_version(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    with SqliteStore(place) as store, SqliteStore(place) as other:
        seen = [store.data_version()]
        assert store.data_version() == seen[0]
        run = _three(store)
        seen.append(store.data_version())
        other.claim(run.id, [("a", 1)])
        seen.append(store.data_version())
        assert len(set(seen)) == 3


def test_a_run_that_is_not_there_is_removed_without_a_trace() -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        store.remove("nothing")
        assert [one.id for one in store.runs()] == [run.id]
        store.remove(run.id)
        store.remove(run.id)
        assert store.runs() == []
        assert store.failure_messages(run.id) == {}


@pytest.mark.parametrize(
    ("left", "force", "is_refused"),
    [(1.0, False, True), (0.0, False, False), (1.0, True, False)],
)
def test_a_run_that_is_being_made_is_removed_by_force_alone(
    monkeypatch: pytest.MonkeyPatch, left: float, force: bool, is_refused: bool
) -> None:
    with SqliteStore(":memory:") as store:
        run = _three(store)
        claims = [HeldClaims("x", 2, 1, left), HeldClaims("y", 9, 1, -1.0)]
        monkeypatch.setattr(store, "list_claims", lambda _: claims)
        if is_refused:
            with pytest.raises(InvalidValue) as caught:
                store.remove(run.id, force=force)
            assert caught.value.message == (
                f"run {run.id} is being made: another runner has claimed 2 attempts."
            )
        else:
            store.remove(run.id, force=force)
        assert len(store.runs()) == int(is_refused)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("ok", True),
        ("row 3 missing from index", False),
        (ReadError("is damaged.", source="s"), False),
        (StoreUnavailable("is locked.", source="s"), None),
    ],
)
def test_a_file_is_sound_if_the_database_says_so(answer: object, expected: bool | None) -> None:
    def execute(_sql: str) -> object:
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(fetchone=lambda: (answer,))

    store: Any = object.__new__(SqliteStore)
    store._db = SimpleNamespace(execute=execute)
    if expected is None:
        with pytest.raises(StoreUnavailable):
            store.is_sound()
    else:
        assert store.is_sound() is expected
