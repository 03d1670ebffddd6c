"""T* from a few temperatures: a parabola in ln T around the best one."""

from __future__ import annotations

import numpy as np

from passhat._arrays import BoolArray, FloatArray

__all__ = ["vertices"]

_WINDOW = 5
"""Temperatures that the parabola is fitted to: the best, and two on either side."""


def vertices(log_t: FloatArray, values: FloatArray) -> tuple[FloatArray, BoolArray]:
    """ln T* for many curves at once, and whether it lies at an edge of the temperatures tried.

    Parameters
    ----------
    log_t : array
        ln T, ascending; at least three.
    values : array
        The value at each temperature along the last axis.

    Notes
    -----
    Least squares over a window around the best temperature. The top of the parabola is kept
    within that window; a parabola that opens upwards gives the best temperature itself.
    """
    count = len(log_t)
    size = min(_WINDOW, count)
    best = values.argmax(axis=-1)
    start = np.clip(best - size // 2, 0, count - size)
    found = np.empty(best.shape)
    for first in np.unique(start):
        here = start == first
        x = log_t[first : first + size]
        centre = x.mean()
        curve = np.linalg.pinv(np.vander(x - centre, 3)) @ values[here][:, first : first + size].T
        bend, tilt = curve[0], curve[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.where(bend < 0, centre - tilt / (2 * bend), log_t[best[here]])
        found[here] = np.clip(top, x[0], x[-1])
    edge: BoolArray = (found <= log_t[0]) | (found >= log_t[-1])
    return found, edge
