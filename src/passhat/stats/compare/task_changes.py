"""Single tasks that broke or were fixed: an exact test for each, corrected for how many there are.

The mean is a blunt tool for a few broken tasks. Fisher's exact test of c_A of n_A against c_B of
n_B passes needs no assumption on the rate of a task, and Holm's correction keeps the chance of any
false alarm among all tasks below its share of the error: 8 of 8 against 0 of 8 has p = .00016, so
one broken task of 30 is found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray, IntArray, log_choose
from passhat.stats.compare.pairing import Pairing
from passhat.stats.compare.significance import holm
from passhat.stats.outcomes import Completion, MissingPolicy


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A task that is shown to pass less or more often under B than under A."""

    task: str
    change: Literal["broke", "improved"]
    passed_a: int
    attempts_a: int
    passed_b: int
    attempts_b: int
    p_value: float
    p_holm: float

    def __str__(self) -> str:
        return (
            f"{self.task} ({self.passed_a} of {self.attempts_a} passed, now {self.passed_b} of "
            f"{self.attempts_b})"
        )


def fisher_tests(
    c_a: IntArray, n_a: IntArray, c_b: IntArray, n_b: IntArray
) -> tuple[FloatArray, FloatArray]:
    """One-sided p-values of Fisher's exact test: B passes less often, B passes more often.

    Examples
    --------
    >>> less, _ = fisher_tests(*(np.array([x]) for x in (8, 8, 0, 8)))
    >>> round(2 * float(less[0]), 5)
    0.00016
    """
    cells = np.stack([c_a, n_a, c_b, n_b])
    distinct, where = np.unique(cells, axis=1, return_inverse=True)
    both = np.array([_fisher(*column) for column in distinct.T.tolist()]).reshape(-1, 2)
    return both[where.ravel(), 0], both[where.ravel(), 1]


def _fisher(c_a: int, n_a: int, c_b: int, n_b: int) -> tuple[float, float]:
    """P(B has at most c_b passes) and P(at least c_b), given all passes of the task."""
    passed, total = c_a + c_b, n_a + n_b
    least, most = max(0, passed - n_a), min(n_b, passed)
    # Of very many attempts only the numbers that have a chance above the smallest double: 40
    # standard deviations, and as many more as a rare event can take.
    mean = n_b * passed / total
    reach = 1_000 + 40 * math.sqrt(mean * (1 - passed / total) * n_a / total)
    least, most = max(least, math.floor(mean - reach)), min(most, math.ceil(mean + reach))
    if not least <= c_b <= most:
        return (0.0, 1.0) if c_b < least else (1.0, 0.0)
    x = np.arange(least, most + 1)

    logs = log_choose(n_b, x) + log_choose(n_a, passed - x)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    at = c_b - least
    return min(1.0, float(chances[: at + 1].sum())), min(1.0, float(chances[at:].sum()))


def find_changed_tasks(
    pairing: Pairing, policy: MissingPolicy, alpha: float, alternative: Alternative = "two-sided"
) -> tuple[TaskChange, ...]:
    """The tasks that are shown to have changed; in each direction a false one at most ``alpha``.

    Directions have an error each, so that a one-sided gate names the same broken tasks as a
    two-sided comparison. Missing attempts count against the change: under ``bound`` a task broke
    only if it did with A's missing attempts failed and B's passed.
    """
    if policy is MissingPolicy.BOUND:
        pessimist, optimist = Completion.AS_FAILED, Completion.AS_PASSED
    else:
        pessimist = optimist = policy.completion
    (n_a, a_low), (_, a_high) = (pairing.a.counts(way) for way in (pessimist, optimist))
    (n_b, b_low), (_, b_high) = (pairing.b.counts(way) for way in (pessimist, optimist))
    less, p_more = fisher_tests(a_low, n_a, b_high, n_b)
    if not (np.array_equal(a_low, a_high) and np.array_equal(b_low, b_high)):
        _, p_more = fisher_tests(a_high, n_a, b_low, n_b)
    directions: list[tuple[Literal["broke", "improved"], FloatArray]] = []
    if alternative != "greater":
        directions.append(("broke", less))
    if alternative != "less":
        directions.append(("improved", p_more))
    changes = []
    for change, p in directions:
        p_holm = holm(p)
        for i in np.flatnonzero(p_holm <= alpha).tolist():
            sides = int(a_low[i]), int(n_a[i]), int(b_low[i]), int(n_b[i])
            test = float(p[i]), float(p_holm[i])
            changes.append(TaskChange(pairing.a.tasks[i], change, *sides, *test))
    return tuple(sorted(changes, key=lambda change: change.p_value))
