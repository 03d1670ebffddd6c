"""Success rates at which a distribution of difficulty may have its mass.

The grid holds 0 and 1 themselves. Near them it is even in the logit of p, where the chances of
k attempts change by the decade; in between it is even in the arcsine of sqrt(p), where the
likelihood of n attempts has the same width everywhere, 1 / (2 sqrt(n)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import expit, logit

from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics import CountMetric, GPass, PassAt, PassHat

__all__ = ["rate_grid"]

_TAIL_STEP = 0.1
_BULK_STEP = 0.1  # in units of the likelihood's width times two
_FINEST_BULK = 0.0015  # about a thousand points, whatever n
_SMALLEST_TAIL = 1e-13  # nearer to 1 a double has no digits left
_STEEP = np.linspace(-4.0, 4.0, 65)  # widths around the step of gpass@k:t


def rate_grid(n: int, metrics: Iterable[CountMetric], *, finer: int = 1) -> FloatArray:
    """The grid for up to n attempts per task and these metrics; ``finer`` divides its steps.

    Below the first point after 0 every function of interest is a straight line to within a
    hundredth of its change, so that nothing is lost between the two; likewise before 1.
    """
    metrics = list(metrics)
    reach = [
        max((metric.k for metric in metrics if _matters(metric, side)), default=0) for side in "01"
    ]
    first, last = (max(0.02 / max(k, n) if k > n else 0.05 / n, _SMALLEST_TAIL) for k in reach)
    bulk_step = max(_BULK_STEP / math.sqrt(n), _FINEST_BULK)
    # Where both spacings are equally dense: sin(2 phi) = 4 bulk_step / tail_step.
    ratio = min(1.0, 4 * bulk_step / _TAIL_STEP)
    turn = math.asin(ratio) / 2
    bulk = np.sin(_steps(turn, math.pi / 2 - turn, bulk_step / finer)) ** 2
    joint = float(logit(math.sin(turn) ** 2))
    near_zero = expit(_steps(float(logit(first)), joint, _TAIL_STEP / finer))
    near_one = 1 - expit(_steps(float(logit(last)), joint, _TAIL_STEP / finer))
    steep = [_around_step(metric, finer) for metric in metrics if isinstance(metric, GPass)]
    points = np.unique(np.concatenate([[0.0, 1.0], near_zero, near_one, bulk, *steep]))
    apart = np.diff(points, prepend=-1.0) > 1e-15
    return np.asarray(points[apart], np.float64)


def _matters(metric: CountMetric, side: str) -> bool:
    """Whether k attempts tell rates apart that n attempts cannot: near 0 or near 1."""
    if isinstance(metric, PassAt):
        return side == "0"
    return side == "1" if isinstance(metric, PassHat) else True


def _steps(start: float, stop: float, step: float) -> FloatArray:
    """Even steps from start to stop, both included; empty when there is no way to go."""
    if stop < start:
        return np.empty(0)
    return np.linspace(start, stop, max(2, math.ceil((stop - start) / step) + 1))


def _around_step(metric: GPass, finer: int) -> FloatArray:
    """Points where the chance of at least m of k passes climbs from 0 to 1."""
    middle = math.asin(math.sqrt((metric.needed - 0.5) / metric.k))
    offsets = np.linspace(_STEEP[0], _STEEP[-1], (len(_STEEP) - 1) * finer + 1)
    angles = np.clip(middle + offsets / (2 * math.sqrt(metric.k)), 0, math.pi / 2)
    return np.asarray(np.sin(angles) ** 2, np.float64)
