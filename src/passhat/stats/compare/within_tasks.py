"""Did the mean change on these tasks? An exact test that deals the attempts of each task again.

If no task changed, the attempts of a task are alike under both agents: given its passes under both
together, those of B are hypergeometric. The sum over tasks of B's passes then has a known
distribution, whatever the rates are (the exact test of Mantel and Haenszel, with tasks as strata).

Where tasks did change and their rises and drops cancel, the test still holds. With n attempts on
each side and a change d of a task's rate, the variance it reckons with is on average the true one
plus n d^2 (1 + 1 / (2n - 1)) / 2 per task: never less. That needs the same n on both sides and at
all tasks, and a metric that is the share of passes; elsewhere there is no such test.

References
----------
N. Mantel and W. Haenszel (1959), Statistical aspects of the analysis of data from retrospective
    studies of disease, J. Natl. Cancer Inst. 22.
"""

from __future__ import annotations

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare.pairing import Pairing
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, MissingPolicy

__all__ = ["drop_p_value", "lift_deviation", "pair_drop_p_value", "pair_rise_p_value"]

_MOST_STEPS = 5_000
"""Beyond so many steps of the sum its variance is over 600, and the normal distribution will do."""


def drop_p_value(n: int, c_a: IntArray, c_b: IntArray) -> float:
    """The chance that B has so few passes in all, had no task changed; n attempts on each side.

    Examples
    --------
    >>> drop_p_value(1, np.array([1, 1, 1, 1, 0]), np.array([0, 0, 0, 0, 1]))
    0.1875
    """
    passes = c_a + c_b
    least = np.maximum(passes - n, 0)
    steps = np.minimum(passes, n) - least
    observed = int(c_b.sum() - least.sum())
    if int(steps.sum()) > _MOST_STEPS:
        from scipy.special import ndtr

        variance = float((passes * (2 * n - passes)).sum()) / (4 * (2 * n - 1))
        mean = float((passes / 2 - least).sum())
        return float(ndtr((observed + 0.5 - mean) / np.sqrt(variance)))
    chances = np.ones(1)
    for total in passes[steps > 0].tolist():
        chances = np.convolve(chances, _share_chances(n, total))
    return min(1.0, float(chances[: observed + 1].sum()))


def _share_chances(n: int, passes: int) -> FloatArray:
    """Chances of B's passes, from the fewest possible on, given those of both."""
    from scipy.special import gammaln

    x = np.arange(max(passes - n, 0), min(passes, n) + 1)
    y = passes - x
    logs = -(gammaln(x + 1) + gammaln(n - x + 1) + gammaln(y + 1) + gammaln(n - y + 1))
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum(), np.float64)


def pair_drop_p_value(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The p-value of a drop with missing attempts counted against it; ``None`` without a test."""
    return _p_value(pairing, metric, policy, drop=True)


def pair_rise_p_value(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The p-value of a rise, as :func:`pair_drop_p_value`."""
    return _p_value(pairing, metric, policy, drop=False)


def lift_deviation(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The standard deviation of the lift that the test reckons with; ``None`` without a test."""
    counts = _equal_counts(pairing, metric, policy, drop=True)
    if counts is None:
        return None
    n, c_a, c_b = counts
    passes = c_a + c_b
    variance = float((passes * (2 * n - passes)).sum()) / (4 * (2 * n - 1))
    return 2 * float(np.sqrt(variance)) / (n * len(pairing))


def _p_value(
    pairing: Pairing, metric: CountMetric, policy: MissingPolicy, *, drop: bool
) -> float | None:
    counts = _equal_counts(pairing, metric, policy, drop=drop)
    if counts is None:
        return None
    n, c_a, c_b = counts
    return drop_p_value(n, c_a, c_b) if drop else drop_p_value(n, n - c_a, n - c_b)


def _equal_counts(
    pairing: Pairing, metric: CountMetric, policy: MissingPolicy, *, drop: bool
) -> tuple[int, IntArray, IntArray] | None:
    """Attempts per task and the passes of both sides, missing ones counted against the change."""
    pessimist = optimist = policy.completion
    if policy is MissingPolicy.BOUND:
        pessimist, optimist = Completion.AS_FAILED, Completion.AS_PASSED
    n_a, c_a = pairing.a.counts(pessimist if drop else optimist)
    n_b, c_b = pairing.b.counts(optimist if drop else pessimist)
    n = int(n_a[0])
    if not (bool((n_a == n).all()) and bool((n_b == n).all())):
        return None
    counts = np.arange(n + 1)
    if n < metric.k or not np.allclose(metric.values(np.full(n + 1, n), counts), counts / n):
        return None
    return n, c_a, c_b
