"""T* from a few temperatures: a parabola in ln T around the best one."""

from __future__ import annotations

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray

__all__ = ["vertices"]

REACH = 2.0
"""The parabola is fitted to the temperatures within this factor of the best, three at least."""


def vertices(
    log_t: FloatArray, values: FloatArray, *, reach: float = REACH
) -> tuple[FloatArray, BoolArray]:
    """ln T* for many curves at once, and whether it lies at an edge of the temperatures tried.

    Parameters
    ----------
    log_t : array
        ln T, ascending; at least three.
    values : array
        The value at each temperature along the last axis.
    reach : float
        The factor up to which other temperatures take part; 1 takes the two neighbours only.

    Notes
    -----
    Least squares over a window around the best temperature. The top of the parabola is kept
    within that window; a parabola that opens upwards gives the best temperature itself.
    """
    best = values.argmax(axis=-1)
    found = np.empty(best.shape)
    for rung in np.unique(best):
        here = best == rung
        window = _window(log_t, int(rung), reach)
        x = log_t[window]
        curve = np.linalg.pinv(np.vander(x - log_t[rung], 3)) @ values[here][:, window].T
        bend, tilt = curve[0], curve[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.where(bend < 0, -tilt / (2 * bend), 0.0)
        found[here] = np.clip(log_t[rung] + top, x[0], x[-1])
    edge: BoolArray = (found <= log_t[0]) | (found >= log_t[-1])
    return found, edge


def _window(log_t: FloatArray, rung: int, reach: float) -> slice:
    """The rungs within reach of one, and at least its neighbours; three at an end."""
    near = np.flatnonzero(np.abs(log_t - log_t[rung]) <= np.log(reach) + 1e-9)
    first, last = min(int(near[0]), rung - 1), max(int(near[-1]), rung + 1)
    first, last = max(first, 0), min(last, len(log_t) - 1)
    if last - first < 2:
        first, last = (0, 2) if first == 0 else (last - 2, last)
    return slice(first, last + 1)
