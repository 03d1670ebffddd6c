"""The two figures of the article on pass^k: suites with one average and different shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from passhat._display import number
from passhat.errors import InvalidValue
from passhat.reporting.figures.base import MOST_RUNS, Figure
from passhat.reporting.figures.lines import Panel, Scale, k_scale, panel
from passhat.reporting.figures.vega_lite import Row
from passhat.stats.estimate import exact
from passhat.stats.estimate.metrics import PassAt, PassHat

Shapes = Mapping[str, Sequence[float]]
"""Suites by name, each as the success rates of its tasks."""

SHAPES_OF_DIFFICULTY: Shapes = MappingProxyType(
    {
        "homogeneous": (0.5,) * 6,
        "no skew": (0.2, 0.8) * 3,
        "negative skew": (0.07, 0.715, 0.715) * 2,
        "positive skew": (0.93, 0.285, 0.285) * 2,
    }
)
_KS = tuple(range(1, 9))
_SHARE = Scale("probability", 0, 1.02, ticks=(0, 0.2, 0.4, 0.6, 0.8, 1), form=".1f")
_K = "k (repeated runs)"
_MOST_TASKS = 1_000_000


def parse_shape(text: str) -> tuple[str, tuple[float, ...]]:
    """A suite from ``NAME:RATE*TASKS+RATE*TASKS...``; ``*TASKS`` is optional for one task.

    Examples
    --------
    >>> parse_shape("half easy:0.9*2+0.1")
    ('half easy', (0.9, 0.9, 0.1))
    """
    name, colon, terms = text.rpartition(":")
    rates: list[float] = []
    try:
        for term in terms.split("+"):
            rate, _, tasks = term.partition("*")
            count = int(tasks or 1)
            if not 0 <= float(rate) <= 1 or not 1 <= count <= _MOST_TASKS:
                raise ValueError
            rates += [float(rate)] * count
    except ValueError:
        colon = ""
    if not colon or not name.strip() or len(rates) > _MOST_TASKS:
        raise InvalidValue(
            f"{text!r} is not a shape.",
            hint="Write a name, a colon, then rates from 0 to 1 with numbers of tasks: "
            "--shape 'half easy:0.9*50+0.1*50'.",
        )
    return name.strip(), tuple(rates)


def article_sweep(shapes: Shapes = SHAPES_OF_DIFFICULTY) -> Figure:
    """pass@k (dashed) and pass^k (solid) of every shape over k, in one panel."""
    _check(shapes)
    rows = [*_rows("pass^", shapes, "solid"), *_rows("pass@", shapes, "dashed")]
    last = _KS[-1]
    at = {name: exact(rates, PassAt(last)) for name, rates in shapes.items()}
    hat = {name: exact(rates, PassHat(last)) for name, rates in shapes.items()}
    highest_at = max(at, key=lambda name: at[name])
    lowest_hat = min(hat, key=lambda name: hat[name])
    chart = Panel(
        rows,
        list(shapes),
        k_scale(_KS),
        _SHARE,
        title="pass@k (dashed) vs pass^k (solid)",
        points=False,
        height=300,
        width=400,
    )
    return Figure(
        "article-sweep",
        "pass@k (dashed) and pass^k (solid) over k",
        f"{_averages(shapes)} At k = {last}, {highest_at} has the highest pass@k "
        f"({at[highest_at]:.3f}), and {lowest_hat} the lowest pass^k "
        f"({hat[lowest_hat]:.3f}).",
        f"Lines over k from 1 to {last}, in one color for each suite: {', '.join(shapes)}. Dashed "
        "lines, pass@k, rise; solid lines, pass^k, fall. The suites are not in the same order "
        "above and below.",
        _add_axis_title(panel(chart)),
        ("suite", "metric", "value"),
        _table(rows),
    )


def article_delta(shapes: Shapes = SHAPES_OF_DIFFICULTY) -> Figure:
    """delta^k over k of every shape that is not homogeneous."""
    _check(shapes)
    uneven = {name: rates for name, rates in shapes.items() if len(set(rates)) > 1}
    if not uneven:
        raise InvalidValue(
            "delta^k is 0 at every k where all tasks are alike.",
            hint="Give a shape with different rates, such as --shape 'mixed:0.9*50+0.1*50'.",
        )
    rows = _rows("delta^", uneven, "solid")
    peaks = {
        name: max(
            (row for row in rows if row["series"] == name), key=lambda row: float(str(row["value"]))
        )
        for name in uneven
    }
    y = Scale("delta^k", 0, max(float(str(row["value"])) for row in rows) * 1.1, form=".2~f")
    # The homogeneous suite keeps its color, so that both figures show the same ones.
    title = "delta^k = pass^k - (pass^1)^k"
    chart = Panel(rows, list(shapes), k_scale(_KS), y, title=title, height=260, width=400)
    return Figure(
        "article-delta",
        "delta^k = pass^k - (pass^1)^k over k",
        "What uneven difficulty adds to pass^k is largest at "
        + ", ".join(f"k = {row['x']} for {name}" for name, row in peaks.items())
        + ".",
        f"Lines of delta^k, pass^k minus the k-th power of pass^1, over k from 1 to {_KS[-1]} for "
        f"{', '.join(uneven)}.",
        _add_axis_title(panel(chart)),
        ("suite", "metric", "value"),
        _table(rows),
    )


def _check(shapes: Shapes) -> None:
    if len(shapes) > MOST_RUNS:
        raise InvalidValue(
            f"{len(shapes)} shapes cannot be told apart in one figure.",
            hint=f"Give at most {MOST_RUNS}.",
        )


def _averages(shapes: Shapes) -> str:
    means = {f"{sum(rates) / len(rates):.3f}" for rates in shapes.values()}
    if len(means) == 1:
        return f"All suites pass {float(means.pop()):.0%} of single attempts."
    return "The suites differ in how often a single attempt passes."


def _add_axis_title(chart: dict[str, object]) -> dict[str, object]:
    """The chart with the article's title of the k axis."""
    layers = chart["layer"]
    if isinstance(layers, list):
        for layer in layers:
            x = layer["encoding"].get("x")
            if x is not None and x.get("title") == "k":
                x["title"] = _K
    return chart


def _table(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (str(row["series"]), str(row["metric"]), number(float(str(row["value"])), 4))
        for row in rows
    )


def _rows(family: str, shapes: Shapes, style: str) -> list[Row]:
    rows: list[Row] = []
    for name, rates in shapes.items():
        for k in _KS:
            # delta^1 is 0 by definition, and no metric of the grammar.
            value = 0.0 if (family, k) == ("delta^", 1) else exact(rates, f"{family}{k}")
            rows.append(
                {
                    "x": k,
                    "series": name,
                    "style": style,
                    "metric": f"{family}{k}",
                    "value": value,
                    "tip": f"{name}: {family}{k} = {number(value, 4)}",
                }
            )
    return rows
