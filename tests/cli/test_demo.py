"""passhat demo, and the lists of what there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]


def test_the_demo_compares_two_agents_and_says_where_the_rest_is(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Path(".passhat/demo.db")
    ended = passhat("demo")
    assert ended.code == 0
    assert "from 33% (hasty) to 72% (careful)" in ended.out
    assert "improved" in ended.out
    assert "192 made now" in ended.err
    report = Path(".passhat/demo.md").read_text(encoding="utf-8")
    assert "demo:careful" in report
    assert "band = hard" in report
    again = passhat("demo", "-n", "4", "--store", store)
    assert "all in the store already" in again.err
    runs = json.loads(passhat("runs", "--store", store, "--json").out)["runs"]
    assert [(run["attempts"], run["missing"]) for run in runs] == [(192, 0), (192, 0)]


def test_too_few_attempts_for_pass_4_are_refused(passhat: Passhat, tmp_path: Path) -> None:
    ended = passhat("demo", "-n", "3", "--store", tmp_path / "demo.db")
    assert ended.code == 2
    assert "at least 4" in ended.err


def test_the_lists(passhat: Passhat) -> None:
    assert "orderdesk/retail" in passhat("suites").out
    assert "demo:careful" in passhat("agents").out
    assert "airline/024" in passhat("tasks", "orderdesk/airline").out
    tasks = json.loads(passhat("tasks", "orderdesk", "--json").out)["tasks"]
    assert len(tasks) == 48
    assert tasks[0]["labels"] == {"band": "easy", "kind": "cancel"}
    assert passhat("tasks", "orderdesk/hotel").code == 2
