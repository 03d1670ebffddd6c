"""The figures of the toy study as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from passhat.report.charts import Axis, Figure, line_chart, page
from passhat.report.figures.vega_lite import Row
from passhat.stats.temperature import (
    Point,
    Study,
    TaskSet,
    best_temperatures,
    expected_pass_at_k,
    family,
)
from passhat.stats.temperature.laws import POWER_FROM_K

__all__ = ["toy_page"]

_SINGLE = (1, 2, 4, 8, 16)
_OVERLAID = (
    ("Gaussian", "gaussian", 2.0),
    ("exponential", "exponential", 2.0),
    ("power law", "power", 2.0),
)
_OVERLAID_KS = tuple(1 << i for i in range(17))
_MOST_LINES = 6


def toy_page(study: Study) -> str:
    """Every figure of the study, each with a sentence before it."""
    law = study.law
    lead = [
        "A toy: the model answers with an integer, c with probability proportional to "
        "exp(-c²/2T); a task is the integer it asks for. T is the spread of whole answers here, "
        "and none of these exponents carries over to the temperature of tokens.",
        f"The fit{_from_k(study)}: {law}. The two exponents sum to {law.exponent_sum:.3f}; where "
        "only k/s and T/s² count they sum to 2.",
    ]
    foot = "T* is the temperature that is best for pass@k. Made by passhat temperature toy."
    figures = (*_own_figures(study), *_overlaid_figures())
    return page(f"Temperature and pass@k: {_title(study)} task sets", lead, figures, foot)


def _title(study: Study) -> str:
    return {"gaussian": "Gaussian", "exponential": "exponential", "power": "power-law"}[
        study.family
    ]


def _from_k(study: Study) -> str:
    return f" for k >= {POWER_FROM_K}" if study.family == "power" else ""


def _own_figures(study: Study) -> Iterator[Figure]:
    yield _single_task()
    names = _some(list(dict.fromkeys(point.tasks for point in study.points)))
    shown = [p for p in study.points if p.tasks in names and p.temperature > 0]
    labels = {name: name.split(", ")[1] for name in names}
    yield _over_k(study, shown, labels)
    yield _over_spread(study)
    yield _log_logit(study, shown, labels)


def _some(names: Sequence[str]) -> list[str]:
    """At most six of them, evenly spread: more lines than that cannot be told apart."""
    return list(names[:: -(-len(names) // _MOST_LINES)])


def _single_task() -> Figure:
    heats = np.geomspace(0.1, 1000, 120)
    rows: list[Row] = [
        {"T": float(heat), "value": float(value), "task": f"c = {c}"}
        for c in _SINGLE
        for heat, value in zip(
            heats, np.asarray(expected_pass_at_k(TaskSet.of(np.array([c])), 1, heats)), strict=True
        )
    ]
    chart = line_chart(
        rows,
        Axis("T", "temperature T", log=True),
        Axis("value", "pass@1"),
        "task",
        order=[f"c = {c}" for c in _SINGLE],
        points=False,
        rules=[{"T": float(c * c), "task": f"c = {c}"} for c in _SINGLE],
    )
    return Figure(
        "One task: pass@1 against temperature",
        "Each task has a temperature of its own, T* = c² (dotted), and it is the same for every k.",
        "Lines of pass@1 over temperature for the tasks 1, 2, 4, 8 and 16. Each rises to a single "
        "top at the square of the task and falls again; harder tasks have lower tops, further "
        "right.",
        chart,
    )


def _over_k(study: Study, shown: Sequence[Point], labels: dict[str, str]) -> Figure:
    rows: list[Row] = [
        {"k": p.k, "T": p.temperature, "tasks": labels[p.tasks], "regime": p.in_regime}
        for p in shown
    ]
    chart = line_chart(
        rows,
        Axis("k", "k", log=True),
        Axis("T", "best temperature T*", log=True),
        "tasks",
        order=list(labels.values()),
        filled="regime",
    )
    return Figure(
        "A set of tasks: T* against k",
        "More attempts pay for more heat. Filled points are in the scaling regime "
        f"(0.03 < pass@k < 0.98), where T* grows as k^{study.law.k_exponent:.2f}.",
        "Lines of the best temperature over k, both logarithmic, one for each spread of the tasks. "
        "All rise; in the scaling regime they are close to straight and parallel, and at large k "
        "they bend towards the square of the hardest task.",
        chart,
    )


def _over_spread(study: Study) -> Figure:
    used = [p for p in study.points if p.in_regime and p.temperature > 0 and p.k > 1]
    by_k = {k: [p for p in used if p.k == k] for k in dict.fromkeys(p.k for p in used)}
    # Powers of two only: neighbours such as 14 and 15 would lie on top of each other.
    long_enough = [k for k, own in by_k.items() if len(own) >= 2 and k & (k - 1) == 0]
    ks = [int(k) for k in _some([str(k) for k in long_enough])]
    rows: list[Row] = [
        {"s": p.spread, "T": p.temperature, "k": f"k = {p.k}"} for k in ks for p in by_k[k]
    ]
    chart = line_chart(
        rows,
        Axis("s", "spread of the tasks s (standard deviation)", log=True),
        Axis("T", "best temperature T*", log=True),
        "k",
        order=[f"k = {k}" for k in ks],
    )
    return Figure(
        "T* against the spread of the tasks",
        f"At a given k, T* grows as s^{study.law.spread_exponent:.2f} in the scaling regime.",
        "Lines of the best temperature over the standard deviation of the tasks, both logarithmic, "
        "one for each of a few k; they rise and are close to straight.",
        chart,
    )


def _log_logit(study: Study, shown: Sequence[Point], labels: dict[str, str]) -> Figure:
    rows: list[Row] = [
        {
            "k": p.k,
            "logit": float(np.log(p.value) - np.log1p(-p.value)),
            "tasks": labels[p.tasks],
        }
        for p in shown
        if p.in_regime
    ]
    chart = line_chart(
        rows,
        Axis("k", "k", log=True),
        Axis("logit", "logit of pass@k at T*"),
        "tasks",
        order=[label for label in labels.values() if any(row["tasks"] == label for row in rows)],
    )
    return Figure(
        "How large a k? log k against logit pass@k",
        f"Nearly straight (median R² {study.median_r_squared:.3f}), but bent: good for planning k, "
        "not for stating pass@k beyond what was measured.",
        "Lines of the logit of pass@k over the logarithm of k, one for each spread of the tasks, "
        "nearly straight and slightly bent upwards.",
        chart,
    )


def _overlaid_figures() -> Iterator[Figure]:
    found = [
        (label, best)
        for label, name, parameter in _OVERLAID
        for best in best_temperatures(family(name, parameter), _OVERLAID_KS)
        if best.temperature > 0
    ]
    rows: list[Row] = [
        {"k": best.k, "T": best.temperature, "value": best.value, "tasks": label}
        for label, best in found
    ]
    order = [label for label, _, _ in _OVERLAID]
    k = Axis("k", "k", log=True)
    yield Figure(
        "Three families: T* against k",
        "Gaussian and exponential with spread 2, power law with exponent 2: alike at small k, far "
        "apart at large k.",
        "Lines of the best temperature over k for three families. At k = 65,536 it is about 300 "
        "for the Gaussian, 3,000 for the exponential and 5 million for the power law.",
        line_chart(rows, k, Axis("T", "best temperature T*", log=True), "tasks", order=order),
    )
    yield Figure(
        "Three families: pass@k at T*",
        "The Gaussian and the exponential set are solved at k of about 100; the power law is at "
        "0.95 there and reaches 0.99 only at about 600.",
        "Lines of pass@k over k at the best temperature. All start between 0.2 and 0.4 at k = 2; "
        "the Gaussian and the exponential reach 1 at about k = 100, the power law lags behind.",
        line_chart(rows, k, Axis("value", "pass@k", low=0, high=1.04), "tasks", order=order),
    )
