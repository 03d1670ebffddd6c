"""passhat temperature"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]

TABLE = "model,task,temperature,n,c\n" + "".join(
    f"{model},t{i},{t},4,{c}\n"
    for model, passes in (("a", {0.2: (4, 0), 0.8: (3, 1)}), ("b", {0.2: (2, 1), 0.8: (2, 2)}))
    for t, both in passes.items()
    for i in range(60)
    for c in (both[i % 2],)
)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        ("gaussian", "T* = 0.2639 k^0.728 s^1.283, R² 0.9996, 158 points"),
        ("exponential", "T* = 0.1176 k^1.053 s^0.957, R² 0.9992, 170 points"),
        ("power", "T* = 0.01283 k^1.708 s^0.155, R² 0.9981, 20 points, k >= 20"),
    ],
)
def test_toy_prints_the_law(passhat: Passhat, family: str, law: str) -> None:
    ended = passhat("temperature", "toy", "--family", family)
    assert ended.code == 0
    assert law in ended.out
    assert "not the temperature of tokens" in ended.out


def test_toy_as_json(passhat: Passhat) -> None:
    data = json.loads(passhat("temperature", "toy", "--json").out)
    assert data["schema"] == "passhat.temperature-toy/1"
    assert data["law"]["k_exponent"] == pytest.approx(0.727799, abs=1e-5)
    assert len(data["points"]) == 290


def test_toy_writes_figures_that_need_nothing_from_elsewhere(
    passhat: Passhat, tmp_path: Path
) -> None:
    page = tmp_path / "toy.html"
    assert passhat("temperature", "toy", "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == text.count("<desc") == 6
    assert len(set(re.findall(r'<title id="([^"]+)"', text))) == 6
    assert "var(--ink)" in text
    assert "prefers-color-scheme: dark" in text
    assert set(re.findall(r"https?://[^\"' <]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "<script src" not in text
    assert 'data-file="toy.json"' in text


def test_fit(passhat: Passhat, table: Callable[[str], Path]) -> None:
    ended = passhat("temperature", "fit", table(TABLE), "-k", "1,4", "--full")
    assert ended.code == 0
    assert "Raise T from 0.2 to 0.8 for k >= 4: +50.0 points" in ended.out
    assert "do not carry over to token temperature" in re.sub(r"\s+", " ", ended.out)
    assert "A a   B b" in ended.out
    assert "the ranking depends on k and T" in ended.out


@pytest.mark.parametrize("source", ["example:smollm2", "table"])
def test_the_summary_fits_a_screen(
    passhat: Passhat,
    table: Callable[[str], Path],
    source: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = passhat(
        "temperature", "fit", table(TABLE) if source == "table" else source, "-k", "1,2,4"
    )
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    assert "--full" in ended.out


def test_fit_as_json(passhat: Passhat, table: Callable[[str], Path]) -> None:
    data = json.loads(passhat("temperature", "fit", table(TABLE), "--json").out)
    assert data["schema"] == "passhat.temperature/1"
    assert [agent["agent"] for agent in data["agents"]] == ["a", "b"]
    assert data["agents"][0]["ks"] == [1, 2, 4]
    assert {cell["temperature"] for cell in data["agents"][0]["cells"]} == {0.2, 0.8}
    assert data["ranking_flips"][0]["a"] == "a"


def test_fit_as_a_page_that_needs_nothing_from_elsewhere(
    passhat: Passhat, table: Callable[[str], Path], tmp_path: Path
) -> None:
    curve = "".join(f"b,t{i},{t},4,{i % 3}\n" for t in (0.4, 1.6) for i in range(60))
    hostile = TABLE.replace("\na,", "\n<b>a</b>,")
    page = tmp_path / "fit.html"
    ended = passhat("temperature", "fit", table(hostile + curve), "-k", "1,2,4", "-o", page)
    assert ended.code == 0
    assert f"wrote {page}" in ended.err
    text = page.read_text(encoding="utf-8")
    assert "<b>a</b>" not in text
    # Lines of both agents over T, T* of the one with four temperatures, both heat maps.
    assert text.count("<svg") == text.count("<desc") == 5
    for words in (
        "raise T from 0.2 to 0.8 for k &gt;= 2: +50.0 points",
        "The best temperature over k",
        "Where the ranking flips",
        "1 - C(n-c, k) / C(n, k)",
        "slope of ln T* over ln k",
        "missing policy",
        "do not carry over to token temperature",
    ):
        assert words in text, words
    found = re.search(r'id="fit-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    told = json.loads(passhat("temperature", "fit", table(hostile + curve), "--json").out)
    assert json.loads(found[1]) == told
    assert set(re.findall(r"https?://[^\"' <]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_fit_without_temperatures_says_what_helps(
    passhat: Passhat, table: Callable[[str], Path]
) -> None:
    ended = passhat("temperature", "fit", table("model,task,n,c\na,t,4,1\n"))
    assert ended.code == 2
    assert "--map temperature=COLUMN" in ended.err


def test_a_curve_with_many_k_fits_a_terminal(passhat: Passhat, shared_data: Path) -> None:
    source = shared_data / "cruxeval_output_small.csv"
    ended = passhat("temperature", "fit", source, "-k", "1-10", "--full")
    assert ended.code == 0
    assert "pass@10" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 100
