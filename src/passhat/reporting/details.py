"""Details of a run for charts and pages, besides its estimates; computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.errors import PasshatError
from passhat.reporting.measures import Measure, measures_of
from passhat.stats.estimate import Estimate, estimate, metric
from passhat.stats.estimate.metrics import CountMetric, Delta, PassAt, PassHat
from passhat.stats.forecast import Forecast, forecast_curve
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.plan import Plan, plan_tasks
from passhat.stats.plan.planner import half_widths
from passhat.stats.terms import Terms

_FAR_AT, _FAR_HAT = 10, 4
"""How many times n a forecast reaches: what one good attempt needs, what a streak allows."""


@dataclass(frozen=True, slots=True)
class Curves(Plain):
    """Data of the charts over k: estimates at every k, and bands beyond n."""

    pass_hat: tuple[Estimate, ...] = ()
    pass_at: tuple[Estimate, ...] = ()
    delta: tuple[Estimate, ...] = ()
    """``pass_hat``, ``pass_at``, ``delta``: at every k that is drawn, about new tasks; ``delta``
    starts at k = 2.
    """
    forecast_at: tuple[Forecast, ...] = ()
    forecast_hat: tuple[Forecast, ...] = ()
    """``forecast_at``, ``forecast_hat``: pass@k up to ten times n, pass^k up to four times n."""

    def _as_dict(self) -> dict[str, object]:
        return {
            "pass^k": list(map(_point, self.pass_hat)),
            "pass@k": list(map(_point, self.pass_at)),
            "delta^k": list(map(_point, self.delta)),
            "forecast pass@k": list(map(_band, self.forecast_at)),
            "forecast pass^k": list(map(_band, self.forecast_hat)),
        }


_FAMILIES = (("pass^", 1), ("pass@", 1), ("delta^", 2))


def curve_words(ks: Sequence[int]) -> list[str]:
    """The metrics that the curves over these k are made of."""
    return [f"{family}{k}" for family, first in _FAMILIES for k in ks if k >= first]


def build_curves(
    outcomes: Outcomes,
    ks: Sequence[int],
    known: Mapping[str, Estimate],
    terms: Terms,
    *,
    with_forecasts: bool = True,
) -> Curves:
    """Every curve over these k; without two of them there is only the forecast.

    ``known`` holds the estimates of `curve_words` about new tasks.
    """
    hats, ats, deltas = (
        tuple(known[f"{family}{k}"] for k in ks if k >= first) for family, first in _FAMILIES
    )
    if not with_forecasts:
        return Curves(hats, ats, deltas)
    n = max(1, int(outcomes.n.max()))
    far = (PassAt(_FAR_AT * n), PassHat(_FAR_HAT * n))
    return Curves(hats, ats, deltas, *(_forecast(outcomes, word, terms) for word in far))


def _forecast(outcomes: Outcomes, word: CountMetric, terms: Terms) -> tuple[Forecast, ...]:
    try:
        return forecast_curve(
            outcomes, word, level=terms.level, missing=terms.missing, cluster=terms.cluster
        )
    except PasshatError:  # nothing has a verdict, so there is no forecast beyond n either
        return ()


def _point(point: Estimate) -> dict[str, object]:
    data: dict[str, object] = {
        "k": point.metric.k,
        "value": point.value,
        "value_if_passed": point.value_if_passed,
        "low": point.low,
        "high": point.high,
    }
    if isinstance(point.metric, Delta):
        ends = {"bounds": point.bounds, "value_range": point.value_range}
        data |= {name: list(pair) for name, pair in ends.items() if pair is not None}
    return data


def _band(point: Forecast) -> Mapping[str, object]:
    return {
        "k": point.metric.k,
        "low": point.low,
        "high": point.high,
        "observed": point.observed,
        "lines": dict(point.lines),
    }


HALF_WIDTH = 0.05
"""The precision a plan is made for unless another is asked for: five points either way."""
POLICIES = ("bound", "fail", "exclude")
_TASK_STEPS = (0.5, 1, 2, 4, 8)
_ATTEMPT_STEPS = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Width:
    """How wide the interval of a metric would be with this many tasks and attempts each."""

    tasks: int
    attempts: int
    width: float


@dataclass(frozen=True, slots=True)
class Details(Plain):
    """Curves, measures, policies, and the gain from more data."""

    WRITTEN = ("curves", "measures", ("missing_policies", "policies"), "plan", "widths")

    curves: Curves
    measures: tuple[Measure, ...]
    policies: Mapping[str, Mapping[str, Estimate | None]]
    """For every headline metric and policy for missing attempts the estimate, or ``None`` where the
    policy leaves too few attempts; empty when nothing is missing.
    """
    plan: Plan | None
    """Tasks and attempts that would give the most demanding metric within five points."""
    widths: tuple[Width, ...]
    """The interval of that metric against tasks and attempts, by normal theory."""

    def measure(self, name: str) -> Measure | None:
        return next((measure for measure in self.measures if measure.name == name), None)

    def _as_dict(self) -> dict[str, object]:
        measures = {measure.name: measure for measure in self.measures}
        return {**Plain._as_dict(self), "measures": measures}


def build_details(
    run: Run,
    words: Sequence[str],
    ks: Sequence[int],
    known: Mapping[str, Estimate],
    terms: Terms,
    *,
    with_forecasts: bool = True,
) -> Details:
    """Everything above for one run; ``words`` are the metrics its report is about.

    ``known`` holds the estimates about new tasks, those of the curves over ``ks`` among them.
    """
    demanding = _demanding(words)
    return Details(
        build_curves(run.outcomes, ks, known, terms, with_forecasts=with_forecasts),
        measures_of(run.measure_columns, terms.level),
        _policies(run.outcomes, words, terms),
        _plan(run, demanding, terms.level),
        _widths(run.outcomes, demanding, terms.level),
    )


def _demanding(words: Sequence[str]) -> str:
    """The pass^k with the largest k, the hardest to estimate."""
    return max(
        (w for w in words if isinstance(metric(w), PassHat)), key=lambda w: metric(w).k, default=""
    )


def _policies(
    outcomes: Outcomes, words: Sequence[str], terms: Terms
) -> dict[str, dict[str, Estimate | None]]:
    if outcomes.total_missing == 0:
        return {}
    largest = [
        max(same, key=lambda word: metric(word).k)
        for kind in (PassHat, PassAt)
        if (same := [word for word in words if isinstance(metric(word), kind)])
    ]
    metrics = dict.fromkeys([words[0], *largest])
    return {word: {way: _under(outcomes, word, way, terms) for way in POLICIES} for word in metrics}


def _under(outcomes: Outcomes, word: str, policy: str, terms: Terms) -> Estimate | None:
    try:
        return estimate(outcomes, word, terms, missing=policy)
    except PasshatError:  # with the missing left out some task has fewer than k attempts
        return None


def _plan(run: Run, word: str, level: float) -> Plan | None:
    try:
        return plan_tasks(run, metric=word, half_width=HALF_WIDTH, level=level) if word else None
    except PasshatError:  # one attempt per task cannot separate tasks from chance
        return None


def _widths(outcomes: Outcomes, word: str, level: float) -> tuple[Width, ...]:
    goal = metric(word) if word else None
    if not isinstance(goal, CountMetric):
        return ()
    attempts = max(goal.k, int(np.median(outcomes.n)))
    sizes = [
        (tasks, n)
        for n in dict.fromkeys([goal.k, *(attempts * step for step in _ATTEMPT_STEPS)])
        for tasks in dict.fromkeys(max(4, round(len(outcomes) * step)) for step in _TASK_STEPS)
    ]
    try:
        widths = half_widths(outcomes, goal, sizes, level)
    except PasshatError:  # one attempt per task cannot separate tasks from chance
        return ()
    return tuple(Width(*size, min(1.0, 2 * half)) for size, half in zip(sizes, widths, strict=True))
