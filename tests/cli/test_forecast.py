"""passhat forecast"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]
Table = Callable[..., Path]


@pytest.fixture
def suite(table: Table) -> Path:
    rows = [
        f"{model},t{i},8,{(3 * i + shift) % 9}"
        for model, shift in (("A", 0), ("B", 1))
        for i in range(20)
    ]
    return table("model,task,n,c\n" + "\n".join(rows) + "\n")


def test_json(passhat: Passhat, suite: Path) -> None:
    data = json.loads(
        passhat("forecast", suite, "--run", "A", "--metric", "pass@1000", "--json").out
    )
    assert data["schema"] == "passhat.forecast/1"
    (result,) = data["results"]
    assert {"metric", "low", "high", "level", "lines", "method", "notes"} <= set(result)
    assert 0 <= result["low"] <= result["high"] <= 1
    assert "power law" in result["lines"]
    assert any(text.startswith("k = 1,000 is 125 times") for text in result["warnings"])


def test_terminal_with_a_curve(passhat: Passhat, suite: Path) -> None:
    ended = passhat("forecast", suite, "--run", "B", "--metric", "pass^100", "--curve", "--full")
    assert ended.code == 0
    for word in (
        "pass^1 ",
        "pass^64",
        "pass^100",
        "Warning",
        "Of 10,000 users",
        "p = 1 with chance z",
    ):
        assert word in ended.out
    assert "never see a failure" in ended.out


def test_the_summary_fits_a_screen(
    passhat: Passhat, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for more in ([], ["--curve", "--reach", "0.3", "--keep", "0.2"]):
        ended = passhat("forecast", suite, "--run", "A", *more)
        lines = ended.out.splitlines()
        assert len(lines) <= 15
        assert max(map(len, lines)) <= 80
        assert "95% band" in ended.out
        assert "--full" in ended.out


def test_targets(passhat: Passhat, suite: Path) -> None:
    asked = ["forecast", suite, "--run", "A", "--reach", "0.3", "--keep", "0.2"]
    ended = passhat(*asked)
    assert "pass@k reaches 0.3 surely from k = " in ended.out
    assert "pass^k stays at 0.2 or above" in ended.out
    assert "band for new tasks" not in ended.out
    data = json.loads(passhat(*asked, "--json").out)
    assert data["results"] == []
    assert [one["family"] for one in data["reach"]] == ["pass@", "pass^"]
    assert data["reach"][0]["possibly"] <= data["reach"][0]["surely"]


def test_without_a_metric_it_goes_as_far_as_is_worth_while(passhat: Passhat, suite: Path) -> None:
    data = json.loads(passhat("forecast", suite, "--run", "A", "--json", "--users", "50").out)
    assert [one["metric"] for one in data["results"]] == ["pass@80", "pass^32"]
    assert data["results"][0]["in_words"].startswith("of 50 users")


def test_mistakes(passhat: Passhat, suite: Path) -> None:
    for arguments, says in (
        (["--run", "A", "--metric", "delta^4"], "Forecast pass^4 instead."),
        (["--run", "A", "--metric", "pas@9"], "Did you mean pass@9?"),
        (["--run", "A", "--reach", "90"], "between 0 and 1, not 90"),
        (["--run", "A", "--level", "2"], "level must lie between 0 and 1"),
        ([], "--run: A, B"),
    ):
        ended = passhat("forecast", suite, *arguments)
        assert ended.code == 2
        assert says in ended.err
