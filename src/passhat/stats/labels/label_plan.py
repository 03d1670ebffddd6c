"""How many more labels or attempts narrow a corrected interval, and by how much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.labels.correction import (
    Corrected,
    Correction,
    correct,
    error_parts,
    whole_sample,
)
from passhat.stats.labels.error_rates import estimate_errors, join_ends
from passhat.stats.labels.judge_error import Strata
from passhat.stats.outcomes import LabelCounts, Outcomes
from passhat.stats.terms import Terms

_MORE_LABELS = (100, 200, 400)
_MOST_TASKS = 100_000


@dataclass(frozen=True, slots=True)
class LabelStep(Plain):
    """More labels or attempts, and the half-width that they would give."""

    more_labels: int
    more_attempts: int
    half_width: float


@dataclass(frozen=True, slots=True)
class LabelPlan(Plain):
    """The half-width of a corrected interval today, and after more labels or attempts."""

    metric: Metric
    correction: Correction
    """Whole tasks, or error rates."""
    half_width: float
    """Of today's corrected interval about new tasks."""
    judged_half_width: float
    """Of the interval by the judge alone, which does not know of its errors."""
    labels: int
    labeled_tasks: int
    tasks: int
    """``labels``, ``labeled_tasks``, ``tasks``: labels (of whole tasks, where those correct), whole
    tasks, and all tasks.
    """
    attempts_per_task: float
    label_share: float
    """The share of today's half-width that would go if every attempt were labeled; by error rates,
    if the rates were known.
    """
    steps: tuple[LabelStep, ...]
    """What more labels, and more attempts at new tasks without labels, would give."""
    goal: float | None = None
    """The half-width that was asked for."""
    goal_labels: int | None = None
    """Further labels of these tasks that reach it; ``None`` where even all of them do not."""
    goal_tasks: int | None = None
    """Tasks, all labeled whole, that reach it where labels of these tasks do not."""


@dataclass(frozen=True, slots=True)
class _Widths:
    """The half-width as a function of labeled tasks and tasks.

    The variance is that of the estimate at its weight; the rest of today's half-width, which is
    that of a kind of task not seen among the labeled ones, falls with their number.
    """

    true: float
    judged: float
    product: float
    deviate: float
    unseen: float

    def at(self, labeled: float, tasks: float) -> float:
        others = max(tasks - labeled, 0.0)
        slope = min(max(self.product / self.judged, 0.0), 1.0) if self.judged else 0.0
        weight = slope * others / tasks
        variance = (self.true - 2 * weight * self.product + weight**2 * self.judged) / labeled
        if others:
            variance += weight**2 * self.judged / others
        return self.deviate * sqrt(max(variance, 0.0)) + self.unseen / labeled


def plan_labels(
    outcomes: Outcomes,
    labels: LabelCounts,
    metric: str | Metric,
    terms: Terms | None = None,
    half_width: float | None = None,
    correction: str = "whole tasks",
) -> LabelPlan:
    """Plan labels for a corrected interval: of whole tasks, or of attempts for error rates.

    Without a ``half_width`` to reach, only further steps are listed.
    """
    terms, parsed = terms or Terms(), parse(metric)
    if not isinstance(parsed, CountMetric):
        raise InvalidValue(
            f"labels are not planned for {parsed}.", hint="Plan them for pass^k, pass@k or rate."
        )
    if half_width is not None and not 0 < half_width < 0.5:
        raise InvalidValue(f"a half-width lies between 0 and 0.5, not {half_width:g}.")
    found = correct(outcomes, labels, parsed, terms, correction=correction)
    plan = _plan_errors if found.correction is Correction.ERRORS else _plan_whole_tasks
    return plan(outcomes, labels, parsed, terms, found, half_width)


def _plan_whole_tasks(
    outcomes: Outcomes,
    labels: LabelCounts,
    parsed: CountMetric,
    terms: Terms,
    found: Corrected,
    half_width: float | None,
) -> LabelPlan:
    sample = whole_sample(outcomes, labels, parsed, terms)
    today = _half(found.estimate.low, found.estimate.high)
    u, v = sample.true[0], sample.judged[0]
    spread = np.cov(np.stack([u, v]))
    deviate = NormalDist().inv_cdf((1 + terms.level) / 2)
    labeled, tasks = sample.true.shape[1], sample.tasks
    parts = float(spread[0, 0]), float(spread[1, 1]), float(spread[0, 1]), deviate
    rest = max(today - _Widths(*parts, 0.0).at(labeled, tasks), 0.0) * labeled
    widths = _Widths(*parts, rest)
    per_task = (found.labels + found.skipped) / labeled
    attempts = int(outcomes.n.sum())

    def step(more_tasks: int, further: int) -> LabelStep:
        width = widths.at(labeled + more_tasks, tasks + further)
        return LabelStep(
            round(more_tasks * per_task), round(further * attempts / tasks), round(width, 4)
        )

    more = [round(count / per_task) for count in _MORE_LABELS]
    more = [count for count in more if 0 < count < tasks - labeled]
    steps = [step(count, 0) for count in more]
    if tasks > labeled:
        steps.append(step(tasks - labeled, 0))
    steps.append(step(0, tasks))
    goal_labels = goal_tasks = None
    if half_width is not None:
        counts = range(labeled, tasks + 1)
        enough = next((n for n in counts if widths.at(n, tasks) <= half_width), None)
        if enough is not None:
            goal_labels = ceil((enough - labeled) * per_task)
        else:
            goal_tasks = _search(
                lambda count: widths.at(count, count), half_width, tasks, _MOST_TASKS
            )
    all_labeled = widths.at(tasks, tasks)
    return LabelPlan(
        parsed,
        found.correction,
        round(today, 4),
        round(_half(found.judged.low, found.judged.high), 4),
        found.labels,
        labeled,
        tasks,
        round(attempts / tasks, 2),
        round(max(1 - all_labeled / today, 0.0), 4) if today else 0.0,
        tuple(steps),
        half_width,
        goal_labels,
        goal_tasks,
    )


def _half(low: float | None, high: float | None) -> float:
    assert low is not None
    assert high is not None
    return (high - low) / 2


def _search(width_at: Callable[[int], float], goal: float, low: int, high: int) -> int | None:
    """The smallest number above ``low`` that reaches the goal; ``None`` where ``high`` does not."""
    if width_at(high) > goal:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if width_at(middle) <= goal:
            high = middle
        else:
            low = middle
    return high


def _plan_errors(
    outcomes: Outcomes,
    labels: LabelCounts,
    parsed: CountMetric,
    terms: Terms,
    found: Corrected,
    half_width: float | None,
) -> LabelPlan:
    """Plan by the parts of the interval: the attempts' falls with tasks, the rates' with labels."""
    completion = terms.missing.completion
    view = FilledOutcomes(outcomes, completion).supporting(parsed, drop_short=terms.drop_short)
    strata = Strata.of(outcomes, labels)
    tasks, attempts = len(view.outcomes), int(view.outcomes.n.sum())
    total = int(outcomes.n.sum())

    def width(label_count: float, task_count: float) -> float:
        """The half-width with so many labels of the same kinds, and so many such tasks."""
        more = label_count / labels.attempts
        rates = estimate_errors(*_scale(strata, labels, more), terms.level)
        value, by_attempts, *by_rates = error_parts(view, parsed, rates, terms)
        shrink = sqrt(tasks / task_count)
        narrow = (
            value + shrink * (by_attempts[0] - value),
            value + shrink * (by_attempts[1] - value),
        )
        return _half(*_clip(join_ends(value, (narrow, *by_rates)), parsed))

    today = _half(found.estimate.low, found.estimate.high)
    labeled = labels.attempts
    # What is not in the parts, such as missing attempts in both readings, stays as a factor.
    factor = today / width(labeled, tasks)
    assert found.errors is not None
    _, by_attempts, *_ = error_parts(view, parsed, found.errors, terms)
    attempts_half = _half(*_clip(by_attempts, parsed))

    def step(more_labels: int, more_tasks: int) -> LabelStep:
        half = factor * width(labeled + more_labels, tasks + more_tasks)
        return LabelStep(more_labels, round(more_tasks * attempts / tasks), round(half, 4))

    more = [count for count in _MORE_LABELS if labeled + count < total]
    steps = [step(count, 0) for count in more]
    if labeled < total:
        steps.append(step(total - labeled, 0))
    steps.append(step(0, tasks))
    goal_labels = goal_tasks = None
    if half_width is not None:
        if today <= half_width:
            goal_labels = 0
        else:
            enough = _search(lambda count: factor * width(count, tasks), half_width, labeled, total)
            goal_labels = None if enough is None else enough - labeled
        if goal_labels is None:
            goal_tasks = _search(
                lambda count: factor * width(count * total / tasks, count),
                *(half_width, tasks, _MOST_TASKS),
            )
    return LabelPlan(
        parsed,
        found.correction,
        round(today, 4),
        round(_half(found.judged.low, found.judged.high), 4),
        found.labels,
        0,
        tasks,
        round(attempts / tasks, 2),
        round(max(1 - factor * attempts_half / today, 0.0), 4) if today else 0.0,
        tuple(steps),
        half_width,
        goal_labels,
        goal_tasks,
    )


def _scale(strata: Strata, labels: LabelCounts, factor: float) -> tuple[Strata, LabelCounts]:
    """Labels and their strata with every count times a factor."""
    totals = (
        *(labels.right_passed_total, labels.right_failed_total),
        *(labels.wrong_passed_total, labels.wrong_failed_total),
    )
    right_passed, right_failed, wrong_passed, wrong_failed, skipped = (
        np.array([round(factor * total)]) for total in (*totals, 0)
    )
    scaled = LabelCounts(("all",), right_passed, right_failed, wrong_passed, wrong_failed, skipped)
    passed = scaled.right_passed_total + scaled.wrong_passed_total
    return Strata(strata.passed, strata.failed, passed, scaled.attempts - passed), scaled


def _clip(ends: tuple[float, float], metric: CountMetric) -> tuple[float, float]:
    return max(ends[0], metric.lowest), min(ends[1], metric.highest)
