"""The lift of one run over another on the same tasks, with bounds."""

from __future__ import annotations

import math

import numpy as np

from passhat._arrays import IntArray
from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.estimates.metrics import CountMetric, Metric
from passhat.estimates.per_task import per_task
from passhat.outcomes import Completion, Outcomes

__all__ = ["filled_in", "lift_bounds", "paired"]


def paired(a: Outcomes, b: Outcomes) -> tuple[Outcomes, Outcomes, tuple[str, ...]]:
    """The tasks that both runs attempted, in the same order, and a note on the others."""
    where = {task: index for index, task in enumerate(b.tasks)}
    mine = [index for index, task in enumerate(a.tasks) if task in where]
    if not mine:
        raise InvalidValue(
            "the two runs have no task in common, so they cannot be compared task by task.",
            hint="Compare runs of the same suite, or map the column of task ids with --map.",
        )
    theirs = [where[a.tasks[index]] for index in mine]
    alone_a, alone_b = len(a) - len(mine), len(b) - len(mine)
    note = (
        f"{counted(len(mine), 'task')} in both runs; left out: {alone_a:,} only in the run, "
        f"{alone_b:,} only in base"
    )
    left_out = (note,) if alone_a or alone_b else ()
    return a.take(_indices(mine)), b.take(_indices(theirs)), left_out


def _indices(rows: list[int]) -> IntArray:
    return np.array(rows, dtype=np.int64)


def filled_in(outcomes: Outcomes, metric: Metric, completion: Completion) -> Outcomes:
    """Outcomes in which nothing is missing any more."""
    if outcomes.m is None:
        return outcomes
    if not isinstance(metric, CountMetric):
        raise InvalidValue(
            f"{metric} depends on the order of attempts, and some are missing: a lift is not "
            "computed from that.",
            hint=f"Ask for pass^{metric.k} or pass@{metric.k}.",
        )
    n, c = outcomes.counts(completion)
    return Outcomes.from_counts(n, c, outcomes.tasks, labels=outcomes.labels)


def lift_bounds(
    a: Outcomes, b: Outcomes, metric: Metric, level: float
) -> tuple[float, float, float]:
    """Lower bound, value and upper bound of the lift of ``a`` over ``b``, tasks paired in order.

    The interval of imaginary tasks ("pseudo-tasks"): half a task (one, for 0/1 values) that a won
    and as much that it lost are added before the usual formula, so that flips nobody has seen yet
    still count (Bonett and Price 2012 for 0/1 values).
    """
    from scipy.special import ndtri, stdtrit

    d = per_task(a, metric) - per_task(b, metric)
    tail = (1 + level) / 2
    if np.isin(d, (-1.0, 0.0, 1.0)).all():
        extra, q = 1.0, float(ndtri(tail))
    else:
        extra, q = 0.5, float(stdtrit(max(len(d) - 1, 1), tail))
    size = len(d) + 2 * extra
    middle = float(d.sum()) / size
    variance = (float(d @ d) + 2 * extra) / size - middle**2
    half = q * math.sqrt(variance / size)
    return max(-1.0, middle - half), float(d.mean()), min(1.0, middle + half)
