"""Metrics of known success rates: no sample, no error, no interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from passhat.errors import InvalidValue
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import Metric

__all__ = ["exact"]


def exact(p: npt.ArrayLike, metric: str | Metric) -> float:
    """The value of a metric when every task's success rate is known.

    Parameters
    ----------
    p : array of float
        The success rate of each task.
    metric : str
        A word such as ``pass^4``. ``window^w`` has no answer here, since it depends on n.

    Examples
    --------
    >>> exact([0.5], "pass^10") == 1 / 1024
    True
    >>> exact([0.0, 1.0], "pass^10")
    0.5
    """
    rates = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if rates.size == 0:
        raise InvalidValue("at least one success rate is needed.")
    outside = ~((rates >= 0) & (rates <= 1))
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        raise InvalidValue(f"p[{index}] = {rates[index]:g} is not a probability.")
    return float(np.mean(parse(metric).known(rates)))
