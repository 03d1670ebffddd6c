"""Axes and labels of line charts: ticks inside the axis, no two labels alike or on each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passhat.reporting.figures.drawing import round_ticks
from passhat.reporting.figures.lines import (
    Panel,
    Scale,
    decade_scale,
    k_scale,
    panel,
    spread_labels,
)
from passhat.reporting.figures.vega_lite import constant, field, layer, marks, stack

ENDS = st.floats(-1e6, 1e6)


@given(low=ENDS, width=st.floats(1e-6, 1e6))
@example(low=1.0, width=140_141.0)
def test_ticks_are_round_inside_and_distinct(low: float, width: float) -> None:
    high = low + width
    ticks, digits = round_ticks(low, high)
    assert 2 <= len(ticks) <= 9
    slack = width * 1e-6 + abs(low) * 1e-12
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    labels = [f"{tick:.{digits}f}" for tick in ticks]
    assert len(set(labels)) == len(labels)
    step = ticks[1] - ticks[0]
    # A step is 1, 2 or 5 times a power of ten.
    leading = step / 10.0 ** math.floor(math.log10(step) + 1e-6)
    assert min(abs(leading - factor) for factor in (1, 2, 5, 10)) < 1e-3


def test_ticks_of_the_whole_unit() -> None:
    assert round_ticks(0, 1) == ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 1)
    assert round_ticks(-0.5, 0.5) == ((-0.4, -0.2, 0.0, 0.2, 0.4), 1)
    assert round_ticks(0, 700) == (tuple(float(x) for x in range(0, 701, 100)), 0)


@pytest.mark.parametrize("last", [1, 2, 8, 9, 10, 16, 17, 64, 100, 1024, 10_000])
@pytest.mark.parametrize("first", [1, 2])
def test_the_axis_of_k_holds_every_k(first: int, last: int) -> None:
    if last < first:
        return
    scale = k_scale(range(first, last + 1))
    assert scale.low < first
    assert scale.high > last
    assert scale.log == (last > 16)
    assert 1 <= len(scale.ticks) <= 9
    assert all(first <= tick <= last and tick == int(tick) for tick in scale.ticks)
    assert list(scale.ticks) == sorted(set(scale.ticks))


def test_ticks_of_small_k_are_every_k_or_every_other() -> None:
    assert k_scale([1, 2, 4, 8]).ticks == tuple(map(float, range(1, 9)))
    assert k_scale([1, 16]).ticks == tuple(map(float, range(1, 17, 2)))
    assert k_scale([1, 100]).ticks == (1, 2, 4, 8, 16, 32, 64)
    assert k_scale([3]).ticks == (3,)


def test_a_scale_of_decades() -> None:
    scale = decade_scale("tokens", [2, 50, 3_000])
    assert scale.ticks == (10, 100, 1000)
    assert scale.low < 2
    assert scale.high > 3_000
    # Within a decade the ends of the numbers are the ticks.
    assert decade_scale("cost", [0.2, 0.5]).ticks == (0.2, 0.5)


@given(
    places=st.lists(st.floats(0, 1), max_size=8),
    gap=st.floats(0.001, 0.1),
)
def test_labels_are_moved_apart_in_their_order(places: list[float], gap: float) -> None:
    spread = spread_labels(places, gap, 0, 1)
    assert len(spread) == len(places)
    assert all(-1e-5 <= place <= 1 + 1e-5 for place in spread)
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [spread[i] for i in order]
    assert moved == sorted(moved)


def test_labels_far_apart_stay_where_they_are() -> None:
    assert spread_labels([0.9, 0.1, 0.5], 0.1, 0, 1) == [0.9, 0.1, 0.5]
    assert spread_labels([], 0.1, 0, 1) == []
    assert spread_labels([2.0], 0.1, 0, 1) == [1.0]
    first, second = spread_labels([1.0, 1.0], 0.1, 0, 1)
    assert second == 1.0
    assert first == pytest.approx(0.9, abs=1e-3)


def _panel(**more: object) -> dict[str, object]:
    rows = [
        {"x": k, "series": name, "value": value, "low": value - 0.1, "high": value + 0.1}
        for name, value in (("b", 0.5), ("a", 0.5))
        for k in (1, 2)
    ]
    share = Scale("share", 0, 1, form=".0%")
    given = {"rows": rows, "series": ["b", "a"], "x": k_scale([1, 2]), "y": share, **more}
    return panel(Panel(**given))  # type: ignore[arg-type]


def _layer(spec: dict[str, object], kind: str) -> dict[str, object]:
    layers = spec["layer"]
    assert isinstance(layers, list)
    (found,) = [one_layer for one_layer in layers if one_layer["mark"]["type"] == kind]
    assert isinstance(found, dict)
    return found


def test_every_series_has_one_label_at_its_last_point() -> None:
    labels = {"b": "<b>&"}
    text = _layer(_panel(labels=labels), "text")["data"]["values"]  # type: ignore[index]
    assert [(row["series"], row["label"], row["x"]) for row in text] == [
        ("b", "<b>&", 2.0),
        ("a", "a", 2.0),
    ]
    places = sorted(row["value"] for row in text)
    assert places[1] - places[0] > 0.02  # both lines end at 0.5
    assert sum(places) / 2 == pytest.approx(0.5)


def test_a_row_without_an_interval_has_no_band_and_one_without_a_value_no_point() -> None:
    rows = [
        {"x": 1, "series": "a", "value": 0.5, "tip": "half"},
        {"x": 2, "series": "a", "low": 0.2, "high": 0.4},
    ]
    spec = _panel(rows=rows, series=["a"])
    assert _layer(spec, "area")["data"] == {"values": rows[1:]}
    assert _layer(spec, "line")["data"] == {"values": rows[:1]}
    (end,) = _layer(spec, "text")["data"]["values"]  # type: ignore[index]
    assert (end["x"], end["value"]) == (2.0, pytest.approx(0.3))  # the middle of the band


def test_labels_of_a_signed_axis_have_a_sign() -> None:
    axis = Scale("lift", -1, 1, form="+").channel("value")["axis"]
    assert axis["labelExpr"].startswith("datum.value > 0 ? '+'")
    assert axis["values"] == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert Scale("share", 0, 0.013, form=".0%").channel("v")["axis"]["format"] == ".1%"


def test_parts_of_a_chart() -> None:
    assert field("a:b:Q") == {"field": "a:b", "type": "quantitative"}
    one_layer = marks([{"v": 1}], "bar", {"opacity": 1}, y="v:Q", y2="w:Q", color=constant("red"))
    assert one_layer["encoding"] == {
        "y": {"field": "v", "type": "quantitative"},
        "y2": {"field": "w"},  # Vega-Lite takes the type of the first end
        "color": {"value": "red"},
    }
    with pytest.raises(KeyError):
        field("no type")
    assert "title" not in layer([one_layer], width=1, height=2)
    assert stack([one_layer]) is one_layer
    assert stack([one_layer, one_layer])["vconcat"] == [one_layer, one_layer]
