"""How many more labels or attempts narrow a corrected interval, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.labels.correction import correct, whole_sample
from passhat.stats.outcomes import LabelCounts, Outcomes
from passhat.stats.terms import Terms

__all__ = ["LabelPlan", "LabelStep", "plan_labels"]

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
    """The half-width of a corrected interval today, and after more labels or attempts.

    Attributes
    ----------
    metric : Metric
    half_width : float
        Of today's corrected interval about new tasks.
    judged_half_width : float
        Of the interval by the judge alone, which does not know of its errors.
    labels, labeled_tasks, tasks : int
        Labels of whole tasks, those tasks, and all tasks.
    attempts_per_task : float
    label_share : float
        The share of today's half-width that would go if every attempt were labeled.
    steps : tuple of LabelStep
        What more labels, and more attempts at new tasks without labels, would give.
    goal : float or None
        The half-width that was asked for.
    goal_labels : int or None
        Further labels of these tasks that reach it; ``None`` where even all of them do not.
    goal_tasks : int or None
        Tasks, all labeled whole, that reach it where labels of these tasks do not.
    """

    metric: Metric
    half_width: float
    judged_half_width: float
    labels: int
    labeled_tasks: int
    tasks: int
    attempts_per_task: float
    label_share: float
    steps: tuple[LabelStep, ...]
    goal: float | None = None
    goal_labels: int | None = None
    goal_tasks: int | None = None


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
) -> LabelPlan:
    """Plan labels of whole tasks for a corrected interval about new tasks.

    Parameters
    ----------
    half_width : float, optional
        The half-width to reach; without one, only further steps are listed.
    """
    terms, parsed = terms or Terms(), parse(metric)
    if not isinstance(parsed, CountMetric):
        raise InvalidValue(
            f"labels are not planned for {parsed}.", hint="Plan them for pass^k, pass@k or rate."
        )
    if half_width is not None and not 0 < half_width < 0.5:
        raise InvalidValue(f"a half-width lies between 0 and 0.5, not {half_width:g}.")
    found = correct(outcomes, labels, parsed, terms)
    sample = whole_sample(outcomes, labels, parsed, terms)
    today = _half(found.estimate.low, found.estimate.high)
    u, v = sample.true[0], sample.judged[0]
    spread = np.cov(np.stack([u, v]))
    deviate = NormalDist().inv_cdf((1 + terms.level) / 2)
    labeled, tasks = sample.true.shape[1], sample.tasks
    parts = float(spread[0, 0]), float(spread[1, 1]), float(spread[0, 1]), deviate
    rest = max(today - _Widths(*parts, 0.0).at(labeled, tasks), 0.0) * labeled
    widths = _Widths(*parts, rest)
    per_task = found.labels / labeled
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
        enough = [count for count in range(labeled, tasks + 1)
                  if widths.at(count, tasks) <= half_width]  # fmt: skip
        if enough:
            goal_labels = ceil((enough[0] - labeled) * per_task)
        else:
            goal_tasks = _search(widths, half_width, tasks)
    all_labeled = widths.at(tasks, tasks)
    return LabelPlan(
        parsed,
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


def _search(widths: _Widths, goal: float, tasks: int) -> int | None:
    """Tasks, all labeled whole, that reach the goal; ``None`` beyond any suite."""
    low, high = tasks, _MOST_TASKS
    if widths.at(high, high) > goal:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if widths.at(middle, middle) <= goal:
            high = middle
        else:
            low = middle
    return high
