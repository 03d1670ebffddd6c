"""Drawings of charts: everything stays inside the picture, and nothing is left out silently."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.reporting.figures.drawing import draw, text_width
from passhat.reporting.figures.lines import Panel, Scale, k_scale, panel
from passhat.reporting.figures.vega_lite import constant, field, layer, marks, stack

Passhat = Callable[..., Any]
NAMES = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), max_codepoint=0x2FFF), min_size=1, max_size=30
)
SHARE = Scale("share of tasks", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".0%")


def line_chart(values: dict[str, list[float]]) -> dict[str, Any]:
    rows: list[dict[str, object]] = [
        {"x": k, "series": name, "value": value, "low": value / 2, "high": value, "tip": name}
        for name, shares in values.items()
        for k, value in enumerate(shares, 1)
    ]
    longest = max(len(shares) for shares in values.values())
    return panel(Panel(rows, list(values), k_scale(range(1, longest + 1)), SHARE, title="<&>"))


def parse(chart: dict[str, Any]) -> tuple[ElementTree.Element, float, float]:
    drawn, width, height = draw(chart, "c")
    return ElementTree.fromstring(f"<svg>{drawn}</svg>"), width, height


@given(
    st.dictionaries(
        NAMES, st.lists(st.floats(0, 1), min_size=2, max_size=40), min_size=1, max_size=6
    )
)
def test_a_line_for_every_series_with_its_name_inside_the_picture(
    values: dict[str, list[float]],
) -> None:
    root, width, _ = parse(line_chart(values))
    left = float(root[0].attrib["transform"].removeprefix("translate(").split(",")[0])
    texts = {text.text: text for text in root.iter("text")}
    for name in values:
        assert left + float(texts[name].attrib["x"]) + text_width(name) <= width
    marked = [mark.attrib["data-tip"] for mark in root.iter("path") if "data-tip" in mark.attrib]
    assert sorted(marked) == sorted(name for name, shares in values.items() for _ in shares)


@given(st.lists(NAMES, min_size=1, max_size=12, unique=True), st.floats(1e-6, 1e9))
def test_bars_are_as_long_as_their_numbers(names: list[str], most: float) -> None:
    rows: list[dict[str, object]] = [
        {"name": name, "share": most * i / len(names)} for i, name in enumerate(names, 1)
    ]
    bars = marks(
        rows,
        "bar",
        {},
        x=field("share:Q", title=None, axis={"format": "~s"}),
        y=field("name:N", sort=names, title=None),
        color=constant("red"),
    )
    root, _, _ = parse({**bars, "width": 300, "height": 20 * len(names)})
    widths = [float(bar.attrib["width"]) for bar in root.iter("rect")]
    expected = [300 * i / len(names) for i in range(1, len(names) + 1)]
    assert widths == pytest.approx(expected, abs=0.051)


def test_ticks_are_apart_and_panels_stand_below_each_other() -> None:
    wide = line_chart({"a": [0.5] * 16})
    root, _, height = parse(stack([wide, wide]))
    places = [
        float(text.attrib["x"])
        for text in root[0].iter("text")
        if text.attrib["text-anchor"] == "middle" and (text.text or "").isdigit()
    ]
    assert places == sorted(set(places))
    tops = [float(part.attrib["transform"].rstrip(")").split(",")[1]) for part in root]
    assert tops[0] + wide["height"] < tops[1] < height - wide["height"]


def test_words_that_are_not_drawn_are_refused() -> None:
    rows = [{"x": 1, "y": 2}]
    at = {"x": field("x:Q", title=None), "y": field("y:Q", title=None)}
    drawn = layer([marks(rows, "point", {"filled": True}, **at)], width=9, height=9)
    assert draw(drawn, "c")
    unknown = layer([marks(rows, "point", {"angle": 3}, **at)], width=9, height=9)
    with pytest.raises(ValueError, match="angle"):
        draw(unknown, "c")
    odd = {"condition": {"test": "datum.x < 1", "value": "red"}, "value": "blue"}
    with pytest.raises(ValueError, match=r"datum.x < 1"):
        draw(layer([marks(rows, "text", {}, **at, text="x:N", color=odd)], width=9, height=9), "c")


def test_png_without_the_extra_names_it_and_svg_needs_nothing(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    ended = passhat("figure", "article-sweep", "-o", tmp_path / "sweep.png")
    assert ended.code == 2
    assert "pip install 'passhat[figures]'" in ended.err
    assert "(not as SVG)" in ended.err
    assert passhat("figure", "article-sweep", "-o", tmp_path / "sweep.svg").code == 0
    assert (tmp_path / "sweep.svg").read_text().startswith("<svg")
