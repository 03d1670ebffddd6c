"""passhat doctor says what is there, what is not, and what to do."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.runner.doctor import Finding, Level, examine

Passhat = Callable[..., Any]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checks(
    store: str = "x.db",
    agents: tuple[str, ...] = (),
    suites: tuple[str, ...] = (),
    **environment: str,
) -> list[Finding]:
    return list(examine(store, agents, suites, environment, sandbox=False))


def bad(found: list[Finding]) -> list[str]:
    return [f"{one.what}: {one.found}" for one in found if one.level is Level.PROBLEM]


def test_a_machine_that_is_fit(passhat: Passhat) -> None:
    ended = passhat("doctor", "-a", "demo:careful", "-s", "orderdesk/retail", "--json")
    assert ended.code == 0
    data = json.loads(ended.out)
    assert data["usable"] is True
    found = {one["what"] for one in data["checks"]}
    assert found == {
        *("python", "packages", "extras", "key", "store", "disk", "sandbox", "suite", "agent")
    }
    text = passhat("doctor").out
    assert "passhat is usable" in text
    assert not Path(".passhat").exists()


def test_a_problem_ends_with_1_and_says_what_to_do(passhat: Passhat) -> None:
    ended = passhat("doctor", "-a", "nonsense:x", "-s", "orderdesk/hotel")
    assert ended.code == 1
    assert "✗ problem" in ended.out
    assert "Fix the problems above first." in ended.out


def test_a_key_is_never_shown(passhat: Passhat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-correct-horse-battery")
    ended = passhat("doctor", "--json")
    assert "OPENAI_API_KEY is set" in ended.out
    assert "correct-horse" not in ended.out


def test_a_key_is_a_problem_only_for_who_needs_it() -> None:
    assert bad(checks()) == []
    found = [one for one in bad(checks(agents=("anthropic:model",))) if one.startswith("key")]
    assert found == ["key: ANTHROPIC_API_KEY is not set"]
    given = checks(agents=("anthropic:model",), ANTHROPIC_API_KEY="k")
    assert not [one for one in bad(given) if one.startswith("key")]


def test_a_store_that_is_not_ours_or_damaged(here: Path) -> None:
    (here / "text.db").write_text("this is no database, only text that is long enough" * 100)
    assert "store: text.db: cannot be used as a store" in bad(checks("text.db"))[0]
    with contextlib.closing(sqlite3.connect(here / "other.db")) as database:
        database.execute("CREATE TABLE mine (x)")
    assert "not one of passhat" in bad(checks("other.db"))[0]


def test_a_place_that_takes_no_file(here: Path) -> None:
    (here / "file").write_text("")
    assert "cannot be written to (Not a directory)" in bad(checks(str(here / "file" / "x.db")))[0]


def test_whether_somebody_listens_at_an_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = checks(agents=(f"nonsense:http://127.0.0.1:{port}/x",))
        assert [one.found for one in found if "answers" in one.found]
    with socket.socket() as silent:  # nobody else can listen there, and it does not either
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        found = checks(agents=(f"nonsense:http://127.0.0.1:{port}",))
    assert [one for one in bad(found) if "does not answer" in one]
    assert [one for one in bad(checks(agents=("x:http://h:nonsense",))) if "does not answer" in one]


def test_somebody_elses_module_may_raise_anything(here: Path) -> None:
    (here / "broken_module_of_mine.py").write_text("1 / 0\n")
    (found,) = bad(checks(agents=("python:broken_module_of_mine:f",)))
    assert "broken_module_of_mine" in found
