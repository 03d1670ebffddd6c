"""What is found on a machine, finding by finding; nothing outside of it is asked."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, PasshatError, StoreUnavailable
from passhat.runner import doctor
from passhat.runner.doctor import Finding, Level
from passhat.store import open_store
from passhat.store.schema import VERSION

OK, WARNING, PROBLEM = Level.OK, Level.WARNING, Level.PROBLEM


def _parts(findings: Iterable[Finding]) -> list[tuple[object, ...]]:
    return [(found.what, found.level, found.found, found.advice) for found in findings]


@pytest.mark.parametrize(
    ("version", "level", "advice"),
    [
        ((3, 10, 9), PROBLEM, "passhat needs Python 3.11 or newer."),
        ((3, 11, 0), OK, ""),
        ((4, 0, 0), OK, ""),
    ],
)
def test_the_python_and_the_packages(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], level: Level, advice: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(doctor, "_version", lambda name: f"1.{len(name)}")
    python, packages = _parts(doctor._python())
    assert python == ("python", level, ".".join(map(str, version)), advice)
    words = ", ".join(f"{name} 1.{len(name)}" for name in ("passhat", *doctor._CORE))
    assert packages == ("packages", OK, words, "")


def test_packages_that_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = list(doctor._CORE)[:2]
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in absent else "1")
    _, packages = _parts(doctor._python())
    advice = "Install again: pip install --force-reinstall passhat"
    assert packages == ("packages", PROBLEM, f"absent: {', '.join(absent)}", advice)


@pytest.mark.parametrize("present", [(), "one", "all"])
def test_extras_that_are_installed(monkeypatch: pytest.MonkeyPatch, present: object) -> None:
    extras = list(doctor._EXTRAS)
    here = {"one": extras[1:2], "all": extras}.get(str(present), [])
    packages = {doctor._EXTRAS[extra] for extra in here}
    monkeypatch.setattr(doctor, "_version", lambda name: "2.0" if name in packages else None)
    ((what, level, found, advice),) = _parts(doctor._extras())
    absent = [extra for extra in extras if extra not in here]
    installed = ", ".join(f"{extra} 2.0" for extra in here) or "none"
    assert (what, level) == ("extras", OK)
    assert found == f"installed: {installed}; not installed: {', '.join(absent) or 'none'}"
    expected = f"Only if you need one: pip install 'passhat[{absent[0]}]'" if absent else ""
    assert advice == expected


def test_a_key_is_needed_by_agents_of_its_provider() -> None:
    (name, prefix), *others = doctor._KEYS.items()
    environment = {others[0][0]: "secret"}
    for agents, is_needed in (
        ([f"{prefix}m"], True),
        ([f"{prefix}m@http://localhost"], False),
        ([], False),
    ):
        first, second, *_ = _parts(doctor._keys(environment, agents))
        advice = f"Set it before you run {prefix}MODEL: export {name}=..." if is_needed else ""
        level = PROBLEM if is_needed else OK
        assert first == ("key", level, f"{name} is not set", advice)
        assert second == ("key", OK, f"{others[0][0]} is set", "")
    assert _parts(doctor._keys({name: " "}, []))[0][2] == f"{name} is not set"


def test_a_store_that_is_there_and_one_that_is_not(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    first, *_ = _parts(doctor._store(str(place)))
    assert first == ("store", OK, f"{place}: not there yet; the first run makes it", "")
    with open_store(str(place)):
        pass
    first, disk = _parts(doctor._store(str(place)))
    from passhat.store.schema import VERSION

    assert first == ("store", OK, f"{place}: version {VERSION}, whole, 0 runs", "")
    assert disk[0] == "disk"
    place.write_text("no store")
    (what, level, found, advice) = next(iter(_parts(doctor._store(str(place)))))
    assert (what, level) == ("store", PROBLEM)
    assert "cannot be used as a store" in str(found)
    assert advice == "Name another one with --store PATH."
    assert _parts(doctor._store("mysql://me:secret@here/x")) == [
        (
            *("store", PROBLEM, "mysql://... is none"),
            "A store is a file, or postgresql://USER@HOST/DATABASE.",
        )
    ]


def test_a_damaged_store_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s.db"
    with open_store(str(place)):
        pass
    monkeypatch.setattr("passhat.store.sqlite.SqliteStore.is_sound", lambda _: False)
    found = next(iter(_parts(doctor._store(str(place)))))
    advice = "Copy the file away, then: sqlite3 FILE .recover | sqlite3 NEW"
    assert found == ("store", PROBLEM, f"{place} is damaged", advice)


@pytest.mark.parametrize(("free", "level"), [(-1, WARNING), (0, OK)])
def test_the_space_for_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: Level
) -> None:
    asked: list[Path] = []
    space = SimpleNamespace(free=doctor._LITTLE_SPACE + free)

    def look(folder: Path) -> object:
        asked.append(folder)
        return space

    monkeypatch.setattr(doctor, "shutil", SimpleNamespace(disk_usage=look))
    advice = "A store needs about 1 kB per attempt and its conversations; make room."
    words = f"{space.free / 2**30:,.1f} GB free for the store"
    found = _parts(doctor._disk(tmp_path / "absent" / "deep" / "s.db"))
    assert found == [("disk", level, words, advice if level is WARNING else "")]
    assert asked == [tmp_path]
    assert not (tmp_path / "absent").exists()


def test_a_store_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    place = tmp_path / "folder"
    place.mkdir()  # it cannot be opened as a file
    ((what, level, found, advice),) = _parts(doctor._disk(place))
    assert (what, level) == ("store", PROBLEM)
    assert found == f"{tmp_path} cannot be written to (Is a directory)"
    assert advice == "Name a place you may write to with --store PATH."


def test_what_cannot_be_loaded_is_named_with_its_cause() -> None:
    def load(word: str) -> str:
        if word == "broken":
            raise ZeroDivisionError("no")
        if word == "wrong":
            raise InvalidValue("it is wrong.", hint="Make it right.")
        if word == "bare":
            raise InvalidValue("it is wrong.")
        return f"{word} loads"

    assert _parts(doctor._try_loading("suite", ["fine", "wrong", "bare", "broken"], load)) == [
        ("suite", OK, "fine loads", ""),
        ("suite", PROBLEM, "wrong: it is wrong.", "Make it right."),
        ("suite", PROBLEM, "bare: it is wrong.", ""),
        (
            *("suite", PROBLEM, "broken: ZeroDivisionError: no"),
            "Import it in Python and fix what it reports.",
        ),
    ]


@pytest.mark.parametrize(
    ("word", "asked"),
    [
        ("a2a:http://host:81/x", ("host", 81)),
        ("a2a:http://host", ("host", 80)),
        ("openai:m@https://host/v1", ("host", 443)),
        ("python:http:answer", None),
        ("openai:m", None),
        ("http://", None),
    ],
)
@pytest.mark.parametrize("answers", [True, False])
def test_whether_a_server_listens_at_an_address(
    monkeypatch: pytest.MonkeyPatch, word: str, asked: tuple[str, int] | None, answers: bool
) -> None:
    seen: list[tuple[tuple[str, int], float]] = []

    def connect(address: tuple[str, int], seconds: float) -> object:
        seen.append((address, seconds))
        if not answers:
            raise ConnectionRefusedError("refused")
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(socket, "create_connection", connect)
    found = _parts(doctor._check_reachable(word))
    if asked is None:
        assert found == seen == []
        return
    assert seen == [(asked, doctor._REACH_SECONDS)]
    gone = ("agent", PROBLEM, f"{asked[0]} does not answer (refused)")
    here = ("agent", OK, f"{asked[0]}:{asked[1]} answers", "")
    assert found == [here if answers else (*gone, "Start the agent, or fix its URL.")]


def test_a_port_that_is_none_does_not_answer() -> None:
    ((_, level, found, _),) = _parts(doctor._check_reachable("a2a:http://host:99999999/"))
    assert level is PROBLEM
    assert str(found).startswith("host does not answer (Port")


# -- a server, by its answers ----------------------------------------------------------------------


class _Server:
    """A connection whose server answers one row, or none, to each statement."""

    name = "postgresql://host/db"

    def __init__(self, *rows: tuple[object, ...] | None) -> None:
        self.rows = list(rows)
        self.asked: list[str] = []

    def execute(self, sql: str, _parameters: object = ()) -> object:
        self.asked.append(sql.split()[0])
        row = self.rows.pop(0) if self.rows else None
        return SimpleNamespace(fetchone=lambda: row)

    def notifies(self, seconds: float) -> int:
        self.asked.append(f"waits {seconds:g}")
        return self.rows.pop(0)[0]  # type: ignore[index, return-value]


@pytest.mark.parametrize(
    ("row", "level", "found"),
    [
        (("13.0", 130_000), OK, "answers, PostgreSQL 13.0"),
        (("16.2", 160_002), OK, "answers, PostgreSQL 16.2"),
        (("12.9", 129_999), PROBLEM, "answers, PostgreSQL 12.9"),
        (None, PROBLEM, "answers, PostgreSQL "),
    ],
)
def test_an_old_server_is_a_problem(row: tuple[str, int] | None, level: Level, found: str) -> None:
    server: Any = _Server(row)
    advice = "" if level is OK else "passhat needs PostgreSQL 13 or newer."
    assert _parts(doctor._server(server)) == [("store", level, f"{server.name} {found}", advice)]


OLDER = "The next command that writes brings them up to date, and older passhats then refuse."


@pytest.mark.parametrize(
    ("version", "row", "words"),
    [(VERSION, (3,), "3 runs"), (VERSION, (1,), "1 run"), (VERSION, None, "0 runs")],
)
def test_tables_of_this_version_are_counted(
    monkeypatch: pytest.MonkeyPatch, version: int, row: tuple[int] | None, words: str
) -> None:
    monkeypatch.setattr(doctor, "postgres_version", lambda *_: version)
    server: Any = _Server(row, ("me", False, None))
    assert _parts(doctor._tables(server)) == [
        ("store", OK, f"tables of version {version}, {words}", ""),
        ("store", OK, "me may write", ""),
    ]
    assert server.asked == ["SELECT", "SELECT", "BEGIN", "INSERT", "ROLLBACK"]


def test_older_tables_are_a_warning_and_none_are_made_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "postgres_version", lambda *_: VERSION - 1)
    server: Any = _Server((2,))
    found = f"tables of version {VERSION - 1}, 2 runs; this passhat has {VERSION}"
    assert _parts(doctor._tables(server)) == [("store", WARNING, found, OLDER)]
    monkeypatch.setattr(doctor, "postgres_version", lambda *_: None)
    server = _Server(("me", "team", True))
    found = "there are no tables yet; the first run makes them"
    assert _parts(doctor._tables(server)) == [("store", OK, found, "")]


@pytest.mark.parametrize(
    ("row", "user", "schema"),
    [
        (("me", "team", False), "me", "team"),
        (("me", None, False), "me", "public"),
        (None, "", "public"),
    ],
)
def test_who_may_not_make_tables_is_named(
    row: tuple[object, ...] | None, user: str, schema: str
) -> None:
    server: Any = _Server(row)
    assert _parts([doctor._check_tables_rights(server)]) == [
        (
            *("store", PROBLEM, f"there are no tables yet, and {user} may not make any"),
            f'As the owner of the database: GRANT CREATE ON SCHEMA {schema} TO "{user}"',
        )
    ]


READ_ONLY = "Name the main server, not a copy that follows it, or lift the read-only setting."
GRANT = 'As the owner of the tables: GRANT SELECT, INSERT, UPDATE, DELETE ON runs, tasks TO "me"'


@pytest.mark.parametrize(
    ("row", "found", "advice"),
    [
        (None, "takes nothing: sessions are read-only", READ_ONLY),
        (("me", True, "runs, tasks"), "takes nothing: sessions are read-only", READ_ONLY),
        (
            ("me", False, "runs, tasks"),
            "me may not write to runs, tasks; reports and passhat view work",
            GRANT,
        ),
    ],
)
def test_who_may_not_write_is_told_how(
    row: tuple[object, ...] | None, found: str, advice: str
) -> None:
    server: Any = _Server(row)
    assert _parts([doctor._check_writing(server)]) == [("store", PROBLEM, found, advice)]
    assert server.asked == ["SELECT"]


@pytest.mark.parametrize(("count", "level"), [(0, WARNING), (1, OK)])
def test_whether_notices_arrive(count: int, level: Level) -> None:
    server: Any = _Server()
    other: Any = _Server(None, (count,))
    ((what, found_level, found, advice),) = _parts([doctor._check_notices(server, other)])
    assert (what, found_level) == ("store", level)
    assert str(found).startswith("notices arrive" if count else "notices do not arrive")
    assert bool(advice) is (level is WARNING)
    assert (server.asked, other.asked) == (["SELECT"], ["LISTEN", "waits 5"])


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (InvalidValue("password missing"), doctor._ADVICE[0][1]),
        (InvalidValue('role "x" does not exist'), doctor._ADVICE[1][1]),
        (InvalidValue('database "x" does not exist'), doctor._ADVICE[2][1]),
        (InvalidValue("no pg_hba.conf entry"), doctor._ADVICE[3][1]),
        (InvalidValue("too many connections"), doctor._ADVICE[4][1]),
        (StoreUnavailable("is away.", source="s", hint="Wait."), doctor._AWAY),
        (InvalidValue("is odd.", hint="Fix it."), "Fix it."),
        (InvalidValue("is odd."), ""),
    ],
)
def test_what_to_do_about_an_error_of_a_server(error: PasshatError, advice: str) -> None:
    assert doctor._advice(error) == advice


def test_a_finding_as_data_has_no_empty_advice() -> None:
    assert Finding("a", OK, "b")._as_dict() == {
        "what": "a",
        "level": "ok",
        "found": "b",
        "advice": None,
    }
    assert Finding("a", PROBLEM, "b", "c")._as_dict()["advice"] == "c"


def test_everything_is_examined_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "_sandbox", lambda: Finding("sandbox", OK, "holds"))
    monkeypatch.setattr(doctor, "_suite", lambda word: f"{word} loads")
    monkeypatch.setattr(doctor, "_agent", lambda word: f"{word} loads")
    place = str(tmp_path / "s.db")
    for sandbox in (True, False):
        found = doctor.examine(place, ["demo:a"], ["x", "y"], {}, sandbox=sandbox)
        named = [one.what for one in found]
        assert named == [
            *("python", "packages", "extras", "key", "key", "store", "disk"),
            *(["sandbox"] if sandbox else []),
            *("suite", "suite", "agent"),
        ]
