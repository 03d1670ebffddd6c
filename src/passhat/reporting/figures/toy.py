"""The figures of the toy study of temperature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from passhat._display import number
from passhat.reporting.figures.base import MOST_RUNS, Figure
from passhat.reporting.figures.lines import Panel, Scale, decade_scale, panel
from passhat.reporting.figures.vega_lite import Row, Spec
from passhat.stats.temperature import (
    Point,
    Study,
    TaskSet,
    best_temperatures,
    expected_pass_at_k,
    family,
)

_SINGLE = (1, 2, 4, 8, 16)
_OVERLAID = (
    ("Gaussian", "gaussian", 2.0),
    ("exponential", "exponential", 2.0),
    ("power law", "power", 2.0),
)
_OVERLAID_KS = tuple(1 << i for i in range(17))
_TEMPERATURE = "best temperature T*"


def toy_figures(study: Study) -> Iterator[Figure]:
    """Every figure of the study."""
    yield _single_task()
    names = _thin(list(dict.fromkeys(point.tasks for point in study.points)))
    points = [p for p in study.points if p.tasks in names and p.temperature > 0]
    labels = {point.tasks: point.parameter for point in study.points if point.tasks in names}
    yield _over_k(study, points, labels)
    yield _over_spread(study)
    yield _log_logit(study, points, labels)
    yield from _overlaid_figures()


def _thin(names: Sequence[str]) -> list[str]:
    """At most six, evenly spread: more lines cannot be distinguished."""
    return list(names[:: -(-len(names) // MOST_RUNS)])


def _row(x: float, series: str, value: float, tip: str, *, hollow: bool = False) -> Row:
    return {"x": x, "series": series, "value": value, "tip": tip, "hollow": hollow}


def _chart(rows: Sequence[Row], x: str, y: str | Scale, series: Sequence[str]) -> Spec:
    """Lines over a logarithmic x; y is logarithmic too unless a scale is given."""
    along = decade_scale(x, [float(str(row["x"])) for row in rows])
    values = [float(str(row["value"])) for row in rows]
    up = decade_scale(y, values) if isinstance(y, str) else y
    return panel(Panel(rows, series, along, up))


def _table(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    return tuple((str(row["series"]), f"{row['x']:g}", f"{row['value']:.4g}") for row in rows)


def _single_task() -> Figure:
    temperatures = np.geomspace(0.1, 1000, 120)
    rows: list[Row] = []
    for c in _SINGLE:
        values = np.asarray(expected_pass_at_k(TaskSet.of(np.array([c])), 1, temperatures))
        pairs = zip(temperatures.tolist(), values.tolist(), strict=True)
        rows += [_row(t, f"c = {c}", value, "") for t, value in pairs]
    series = [f"c = {c}" for c in _SINGLE]
    x = decade_scale("temperature T", temperatures.tolist())
    top = max(float(str(row["value"])) for row in rows)
    y = Scale("pass@1", 0, 1.08 * top, form=".0%")
    places = {f"c = {c}": float(c * c) for c in _SINGLE}
    return Figure(
        "toy-single-task",
        "One task: pass@1 against temperature",
        "Each task has a best temperature of its own, T* = c² (dotted), the same for every k.",
        "Lines of pass@1 over temperature for the tasks 1, 2, 4, 8 and 16. Each rises to a single "
        "top at the square of the task and falls again; harder tasks have lower tops, further "
        "right.",
        panel(Panel(rows, series, x, y, points=False, marks_at=places)),
    )


def _over_k(study: Study, shown: Sequence[Point], labels: dict[str, str]) -> Figure:
    rows = [
        _row(
            p.k,
            labels[p.tasks],
            p.temperature,
            f"{labels[p.tasks]}, k = {p.k:,}: T* = {p.temperature:.4g}, pass@k {number(p.value)}",
            hollow=not p.in_regime,
        )
        for p in shown
    ]
    return Figure(
        "toy-over-k",
        "A set of tasks: T* against k",
        "More attempts pay for more heat. Filled points are in the scaling regime "
        f"(0.03 < pass@k < 0.98), where T* grows as k^{study.law.k_exponent:.2f}.",
        "Lines of the best temperature over k, both logarithmic, one for each spread of the tasks. "
        "All rise; in the scaling regime they are close to straight and parallel, and at large k "
        "they bend towards the square of the hardest task.",
        _chart(rows, "k", _TEMPERATURE, list(labels.values())),
        ("tasks", "k", "T*"),
        _table(rows),
    )


def _over_spread(study: Study) -> Figure:
    points = [p for p in study.points if p.in_regime and p.temperature > 0 and p.k > 1]
    by_k = {k: [p for p in points if p.k == k] for k in dict.fromkeys(p.k for p in points)}
    # Powers of two only: neighbors such as 14 and 15 would lie on top of each other.
    long_enough = [k for k, group in by_k.items() if len(group) >= 2 and k & (k - 1) == 0]
    ks = [int(k) for k in _thin([str(k) for k in long_enough])]
    rows = [
        _row(p.spread, f"k = {k}", p.temperature, f"s = {p.spread:g}: T* = {p.temperature:.4g}")
        for k in ks
        for p in by_k[k]
    ]
    x = "spread of the tasks s (standard deviation)"
    return Figure(
        "toy-over-spread",
        "T* against the spread of the tasks",
        f"At a given k, T* grows as s^{study.law.spread_exponent:.2f} in the scaling regime.",
        "Lines of the best temperature over the standard deviation of the tasks, both logarithmic, "
        "one for each of a few k; they rise and are close to straight.",
        _chart(rows, x, _TEMPERATURE, [f"k = {k}" for k in ks]),
        ("k", "s", "T*"),
        _table(rows),
    )


def _log_logit(study: Study, shown: Sequence[Point], labels: dict[str, str]) -> Figure:
    rows = [
        _row(
            p.k,
            labels[p.tasks],
            float(np.log(p.value) - np.log1p(-p.value)),
            f"{labels[p.tasks]}, k = {p.k:,}: pass@k {number(p.value)}",
        )
        for p in shown
        if p.in_regime
    ]
    values = [float(str(row["value"])) for row in rows]
    y = Scale("logit of pass@k at T*", min(values) - 0.3, max(values) + 0.3, form="~g")
    series = [label for label in labels.values() if any(row["series"] == label for row in rows)]
    return Figure(
        "toy-log-logit",
        "How large a k? log k against logit pass@k",
        f"Nearly straight (median R² {study.median_r_squared:.3f}), but bent: good for planning k, "
        "not for stating pass@k beyond what was measured.",
        "Lines of the logit of pass@k over the logarithm of k, one for each spread of the tasks, "
        "nearly straight and slightly bent upwards.",
        _chart(rows, "k", y, series),
        ("tasks", "k", "logit pass@k"),
        _table(rows),
    )


def _overlaid_figures() -> Iterator[Figure]:
    optima = [
        (label, best)
        for label, name, parameter in _OVERLAID
        for best in best_temperatures(family(name, parameter), _OVERLAID_KS)
        if best.temperature > 0
    ]
    series = [label for label, _, _ in _OVERLAID]
    rows = [
        _row(b.k, label, b.temperature, f"{label}, k = {b.k:,}: T* = {b.temperature:.4g}")
        for label, b in optima
    ]
    yield Figure(
        "toy-families",
        "Three families: T* against k",
        "Gaussian and exponential with spread 2, power law with exponent 2: alike at small k, far "
        "apart at large k.",
        "Lines of the best temperature over k for three families. At k = 65,536 it is about 300 "
        "for the Gaussian, 3,000 for the exponential and 5 million for the power law.",
        _chart(rows, "k", _TEMPERATURE, series),
        ("tasks", "k", "T*"),
        _table(rows),
    )
    rows = [
        _row(b.k, label, b.value, f"{label}, k = {b.k:,}: pass@k = {number(b.value)}")
        for label, b in optima
    ]
    yield Figure(
        "toy-families-value",
        "Three families: pass@k at T*",
        "The Gaussian and the exponential set are solved at k of about 100; the power law is at "
        "0.95 there and reaches 0.99 only at about 600.",
        "Lines of pass@k over k at the best temperature. All start between 0.2 and 0.4 at k = 2; "
        "the Gaussian and the exponential reach 1 at about k = 100, the power law lags behind.",
        _chart(rows, "k", Scale("pass@k", 0, 1.04, form=".0%"), series),
        ("tasks", "k", "pass@k"),
        _table(rows),
    )
