"""How likely each cell of the histogram is at each success rate."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from passhat.stats.arrays import FloatArray
from passhat.stats.outcomes import Histogram

__all__ = ["scaled_likelihood"]


def scaled_likelihood(cells: Histogram, rates: FloatArray) -> FloatArray:
    """p^c (1-p)^(n-c) for every cell and rate, divided by its largest value over all p.

    The factor depends on the cell alone, so that it changes no difference of log-likelihoods;
    without it the rows of a hundred attempts would underflow.
    """
    n, c = cells.n[:, None].astype(float), cells.c[:, None].astype(float)
    logs = xlogy(c, rates) + xlog1py(n - c, -rates)
    largest = xlogy(c, c / n) + xlog1py(n - c, -c / n)
    return np.asarray(np.exp(logs - largest), np.float64)
