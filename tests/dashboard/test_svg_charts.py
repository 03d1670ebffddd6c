"""Charts: names for those who do not see them, and nothing outside the frame."""

from __future__ import annotations

import itertools
import re

from passhat.dashboard.svg_charts import Mark, Plot, Point, Series, draw


def test_a_chart_is_named_and_escaped() -> None:
    points = [Point(k, 1 / k, 0.5 / k, 1.0, f"k <{k}>", href="/runs/x?a=1&b=2") for k in (1, 2, 4)]
    drawn = draw(Plot("p", "A < B", "Words & more", [Series("<b>", points)], log=True))
    assert '<title id="p-title">A &lt; B</title>' in drawn
    assert '<desc id="p-desc">Words &amp; more</desc>' in drawn
    assert "<b>" not in drawn
    assert 'href="/runs/x?a=1&amp;b=2"' in drawn
    assert "style=" not in drawn


def test_names_do_not_overlap() -> None:
    lines = [
        Series(f"line {i}", [Point(1, 0.02, None, None, ""), Point(2, 0.02, None, None, "")], i)
        for i in (1, 2, 3, 4)
    ]
    drawn = draw(Plot("p", "t", "d", lines, marks=[Mark(1.5, "changed")]))
    places = sorted(float(y) for y in re.findall(r'class="name-\d" x="[\d.]+" y="([\d.]+)"', drawn))
    assert len(places) == 4
    assert all(b - a >= 14 for a, b in itertools.pairwise(places))
    assert places[-1] <= 300


def test_a_single_point_and_none() -> None:
    assert draw(Plot("p", "t", "d", [])) == ""
    drawn = draw(Plot("p", "t", "d", [Series("one", [Point(3, 0.5, 0.4, 0.6, "x")], bars=True)]))
    assert 'class="bar-1"' in drawn
    assert "nan" not in drawn
