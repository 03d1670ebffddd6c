"""Figures for papers: every name, every form, and numbers that are the estimates'."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from passhat import Outcomes, Protocol, Run, compare, exact, read
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.figures import FIGURES, Material, figure_bytes, make_figure, page_svg
from passhat.reporting.figures.article import SHAPES_OF_DIFFICULTY, parse_shape
from passhat.reporting.figures.drawing import round_ticks
from passhat.reporting.figures.lines import spread_labels
from passhat.reporting.task_changes import task_changes

pytestmark = pytest.mark.xdist_group("figures")  # their report is built once
Passhat = Callable[..., Any]


@pytest.fixture(scope="module")
def material() -> Material:
    runs = read("example:helpdesk")
    report = build_report(runs, ReportOptions(with_details=True))
    found = compare(runs[0], runs[1], ["pass^1"])
    return Material(report, found, task_changes(runs[0], runs[1], "pass^1"))


@pytest.fixture(scope="module")
def vega_lite() -> Any:
    """What the chart engine's language allows; the engine itself passes over a wrong word."""
    return Draft7Validator(altair.load_schema())


def test_a_misspelled_word_would_be_noticed(vega_lite: Any) -> None:
    good = {"mark": {"type": "bar", "aria": False}, "data": {"values": []}, "encoding": {}}
    assert vega_lite.is_valid(good)
    assert not vega_lite.is_valid(good | {"mark": {"type": "bar", "ariaa": False}})


OF_TEMPERATURES = ("temperature", "best-temperature", "heatmap")
OF_SCORES = ("scores", "thresholds")


@pytest.fixture(scope="module")
def graded() -> Material:
    outcomes = Outcomes.from_scores([[0.0, 0.5, 1.0], [1.0, 1.0, 0.25], [0.5, 0.5, 0.75]])
    return Material(build_report([Run("a", "a", outcomes)], ReportOptions(short=True)))


@pytest.fixture(scope="module")
def temperatures() -> Material:
    def run(t: float, passes: list[int]) -> Run:
        outcomes = Outcomes.from_counts(4, passes)
        return Run(f"a {t}", "a", outcomes, Protocol(decoding={"temperature": t}))

    runs = [run(0.2, [4, 0, 0] * 10), run(0.6, [3, 1, 2] * 10), run(1.0, [2, 1, 0] * 10)]
    return Material(build_report(runs, ReportOptions(with_details=True)))


@pytest.mark.parametrize("name", OF_TEMPERATURES)
def test_figures_of_a_temperature_fit(name: str, temperatures: Material, vega_lite: Any) -> None:
    figure = make_figure(name, temperatures)
    assert figure is not None
    assert vega_lite.is_valid(json.loads(json.dumps(figure.chart)))
    assert "data-tip=" in page_svg(figure)
    assert all(len(row) == len(figure.header) for row in figure.rows)


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in OF_TEMPERATURES])
def test_every_figure_has_words_numbers_and_a_named_picture(
    name: str, material: Material, graded: Material, vega_lite: Any
) -> None:
    figure = make_figure(name, graded if name in OF_SCORES else material)
    assert figure is not None
    assert vega_lite.is_valid(json.loads(json.dumps(figure.chart)))
    assert figure.sentence.endswith(".")
    assert figure.rows
    assert all(len(row) == len(figure.header) for row in figure.rows)
    drawn = page_svg(figure)
    assert f'aria-labelledby="{name}-title {name}-desc"' in drawn
    assert "data-tip=" in drawn
    assert "var(--c2)" in drawn or name == "lift"
    assert len(set(re.findall(r' id="([^"]+)"', drawn))) == drawn.count(' id="')
    assert all(own.startswith(name) for own in re.findall(r' id="([^"]+)"', drawn))
    assert "http" not in drawn.replace("http://www.w3.org", "")
    assert "var(" not in figure_bytes(figure, "svg").decode()


def test_one_run_alone() -> None:
    run = Run("mine", "mine", Outcomes.from_counts(6, [0, 2, 3, 6, 6]))
    material = Material(build_report([run], ReportOptions(with_details=True)))
    drawn = {name for name in FIGURES if make_figure(name, material) is not None}
    articles = {"article-sweep", "article-delta"}
    assert drawn == {"curves", "delta", "forecast", "forest", "width"} | articles
    curves = make_figure("curves", material)
    assert curves is not None
    hats = [found for found in material.runs[0].estimates if found.metric.name == "pass^4"]
    row = next(row for row in curves.rows if row[1] == "4")
    assert row[2:4] == (f"{hats[0].value:.3f}", hats[0].interval_text())


def test_a_heat_map_needs_temperatures() -> None:
    def run(heat: float, passes: list[int]) -> Run:
        outcomes = Outcomes.from_counts(4, passes)
        return Run(f"a {heat}", "a", outcomes, Protocol(decoding={"temperature": heat}))

    runs = [run(0.2, [4, 0] * 10), run(0.8, [3, 1] * 10)]
    figure = make_figure("heatmap", Material(build_report(runs, ReportOptions(with_details=True))))
    assert figure is not None
    assert ("a", "0.8", "4", "1.000") in {row[:4] for row in figure.rows}
    assert "T = 0.2" in page_svg(figure)


def test_the_articles_figures_show_the_exact_values() -> None:
    sweep, delta = make_figure("article-sweep", None), make_figure("article-delta", None)
    assert sweep is not None
    assert delta is not None
    for name, rates in SHAPES_OF_DIFFICULTY.items():
        for word in ("pass@8", "pass^8", "pass^2"):
            assert (name, word, f"{exact(rates, word):.4f}") in sweep.rows
    # The peaks of the reference values: k = 4 without skew, 3 negative, 5 positive.
    peaks = "k = 4 for no skew, k = 3 for negative skew, k = 5 for positive skew"
    assert peaks in delta.sentence
    assert ("no skew", "delta^1", "0.0000") in delta.rows


def test_suites_of_your_own(passhat: Passhat, tmp_path: Path) -> None:
    path = tmp_path / "own.svg"
    shape = ["--shape", "half easy:0.9*50+0.1*50"]
    ended = passhat("figure", "article-sweep", *shape, "--shape", "even:0.5", "-o", path)
    assert ended.code == 0
    assert "even has the highest pass@k (0.996)" in ended.out
    figure = make_figure("article-sweep", None, dict([parse_shape("half easy:0.9*50+0.1*50")]))
    assert figure is not None
    expected = (0.9**8 + 0.1**8) / 2
    assert ("half easy", "pass^8", f"{expected:.4f}") in figure.rows
    for name, words, says in (
        ("article-sweep", "half:1.2*3", "is not a shape"),
        ("article-sweep", "0.9*50", "is not a shape"),
        ("article-sweep", ":0.9", "is not a shape"),
        ("article-delta", "even:0.5*3", "0 at every k"),
        ("curves", "even:0.5*3", "no effect"),
    ):
        ended = passhat("figure", name, "example:helpdesk", "--shape", words, "-o", path)
        assert ended.code == 2
        assert says in ended.err


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_no_two_labels_of_an_axis_are_the_same(low: float, size: float) -> None:
    assume(low + size > low + size / 2 > low)
    ticks, digits = round_ticks(low, low + size)
    labels = [f"{tick:.{digits}f}" for tick in ticks]
    assert len(set(labels)) == len(labels) >= 3
    shares, digits = round_ticks(0.0, min(size, 1.0))
    labels = [f"{100 * share:.{max(digits - 2, 0)}f}%" for share in shares]
    assert len(set(labels)) == len(labels)


def test_labels_never_touch() -> None:
    for places in ([0.5, 0.5, 0.5, 0.5], [1.0, 1.0, 0.99], [0.0, 0.01, 0.02], [0.1, 0.9]):
        found = sorted(spread_labels(places, 0.06, 0.0, 1.02))
        assert all(b - a >= 0.0599 for a, b in pairwise(found))
        assert found[0] >= 0
        assert found[-1] <= 1.02


@pytest.mark.parametrize(
    ("ending", "magic"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_the_command_writes_every_form(
    passhat: Passhat, tmp_path: Path, ending: str, magic: bytes
) -> None:
    path = tmp_path / f"figure.{ending}"
    ended = passhat("figure", "failures", "example:helpdesk", "-o", path)
    assert (ended.code, path.read_bytes().startswith(magic)) == (0, True)
    assert "Why attempts fail" in ended.out


def test_what_cannot_be_drawn_is_explained(passhat: Passhat, tmp_path: Path) -> None:
    assert all(name in passhat("figure").out for name in FIGURES)
    path = tmp_path / "figure.svg"
    for arguments, words in (
        (["curves"], "a figure needs a file"),
        (["curves", "-o", path], "needs a SOURCE"),
        (["kurves", "example:helpdesk", "-o", path], "no figure is called"),
        (["curves", "example:helpdesk", "-o", tmp_path / "figure.gif"], ".svg, .png, .pdf"),
        (["heatmap", "example:helpdesk", "-o", path], "two temperatures"),
        (["flips", "example:helpdesk", "--run", "careful", "-o", path], "about two runs"),
        (["article-sweep", "-o", tmp_path / "no" / "f.svg"], "cannot be written"),
    ):
        ended = passhat("figure", *arguments)
        assert ended.code == 2
        assert words in ended.err
    assert not path.exists()
    assert passhat("figure", "article-delta", "-o", path).code == 0
    assert passhat("figure", "flips", "example:helpdesk", "-o", path).code == 0
