"""Intervals about new tasks: Gaffke's bound on the histogram of per-task values.

"Would it hold on tasks like these?" The tasks are a sample, and the risk is a kind of task
that has not been seen. Gaffke's bound puts one unseen task at the worst end of the range and
weighs it together with the seen ones. On binary values it *is* the Clopper-Pearson interval; on
all-passed and all-failed suites it keeps its width, which the t interval and the bootstrap do not.

References
----------
N. Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable, Mathematical Methods of Statistics 14.
E. Learned-Miller and P. S. Thomas (2019), A new confidence interval for the mean of a bounded
    random variable, arXiv:1905.06208 (the same bound, by order statistics).
D. B. Rubin (1981), The Bayesian bootstrap, Ann. Statist. 9 (the Gamma weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import InvalidValue
from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.estimate.intervals.dirichlet_mean import lower_quantile

Sides = Literal["two", "lower", "upper"]

_MATERIAL = 1e-3  # an end moved by less than this share of the width needs no note


@dataclass(frozen=True, slots=True)
class Intervals:
    """Points and intervals of M metrics on the same tasks.

    `extended` marks intervals whose end was moved to contain the point.
    """

    points: FloatArray
    lows: FloatArray
    highs: FloatArray
    extended: BoolArray


def containing(points: FloatArray, lows: FloatArray, highs: FloatArray) -> Intervals:
    """Intervals extended to contain their points, marked where that moved an end."""
    excess = np.maximum(lows - points, points - highs)
    is_extended = excess > _MATERIAL * np.abs(highs - lows)
    return Intervals(points, np.minimum(lows, points), np.maximum(highs, points), is_extended)


def tail_probability(level: float, sides: Sides) -> float:
    """Error probability of an end: half of `1 - level`, all of it for a one-sided bound."""
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
    if sides not in ("two", "lower", "upper"):
        raise InvalidValue(f'sides must be "two", "lower" or "upper"; got {sides!r}')
    return (1 - level) / 2 if sides == "two" else 1 - level


def scale_values(values: ArrayLike, lowest: float, highest: float) -> FloatArray:
    """Values as (M, U) on the [0, 1] scale of the metric's range; or a clear refusal."""
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidValue(f"values must be (U,) or (M, U) with U >= 1; got shape {rows.shape}")
    if not ((rows >= lowest) & (rows <= highest)).all():
        raise InvalidValue(
            f"values must lie in [{lowest}, {highest}]; got {rows.min()} to {rows.max()}"
        )
    return (rows - lowest) / (highest - lowest)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Means of M metrics within each cluster, (M, G), how many tasks each has, and the unseen one.

    ``typical`` is the size a task finds its cluster to have on average.
    """

    means: FloatArray
    sizes: FloatArray
    typical: float


def group_by_cluster(tasks: FloatArray, labels: ArrayLike) -> Clusters:
    """Values per task, (M, T), gathered by their labels; the order of tasks leaves no trace."""
    names, member, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if member.shape != (tasks.shape[1],):
        raise InvalidValue(
            f"expected one label for each of {tasks.shape[1]} tasks; got {member.shape}"
        )
    sums = np.stack([np.bincount(member, weights=row, minlength=names.size) for row in tasks])
    # The last bit of a sum of floats depends on the order of the tasks; the interval must not.
    means = np.clip(np.round(sums / sizes, 12), 0.0, 1.0)
    size = sizes.astype(np.float64)
    order = np.lexsort(np.vstack([size[None], means]))
    return Clusters(means[:, order], size[order], float((size**2).sum() / size.sum()))


def drop_empty_cells(cells: FloatArray, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The cells that hold a task, and the number of tasks in each."""
    counts = np.asarray(weights, dtype=np.float64)
    if counts.shape != (cells.shape[1],):
        raise InvalidValue(
            f"expected one weight for each of {cells.shape[1]} cells; got {counts.shape}"
        )
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
        raise InvalidValue("weights must be finite, not negative, and count at least one task")
    return cells[:, counts > 0], counts[counts > 0]


UNSEEN = 1.0
"""One unseen task: Clopper-Pearson on binary values. Less is narrower and covers less."""


def gaffke(
    values: ArrayLike,
    weights: ArrayLike,
    *,
    level: float = 0.95,
    lowest: float = 0.0,
    highest: float = 1.0,
    sides: Sides = "two",
    unseen: float = UNSEEN,
) -> Intervals:
    r"""Interval for the mean of a bounded metric over tasks like these.

    With :math:`w_j \sim \Gamma(h_j)`, :math:`e \sim \Gamma(a)` and values scaled to [0, 1],

    .. math:: L = q_{\alpha/2}\!\left[\frac{\sum_j w_j u_j}{\sum_j w_j + e}\right], \qquad
              U = q_{1-\alpha/2}\!\left[\frac{\sum_j w_j u_j + e}{\sum_j w_j + e}\right].

    The quantiles are computed, not simulated (`dirichlet_mean`): no seed, no Monte Carlo error.

    Parameters
    ----------
    values
        The metric's value in each histogram cell, (U,) or (M, U) for M metrics on the same tasks.
    weights
        Number of tasks in each cell, (U,).
    level
        Requested coverage. A one-sided bound spends all of `1 - level` on its side.
    lowest, highest
        The metric's range.
    sides
        "two", or "lower" / "upper" for a one-sided bound (the other end is the range's end).
    unseen
        Gamma shape `a` of the unseen task.

    Returns
    -------
    Intervals
        One entry per metric.

    Examples
    --------
    >>> fifty_of_fifty = gaffke([0.0, 1.0], [0, 50])
    >>> [round(float(end[0]), 4) for end in (fifty_of_fifty.lows, fifty_of_fifty.highs)]
    [0.9289, 1.0]
    """
    cells, counts = drop_empty_cells(scale_values(values, lowest, highest), weights)
    points = cells @ counts / counts.sum()
    lows, highs = _ends(cells, counts, level, sides, unseen)
    return containing(*(lowest + (highest - lowest) * part for part in (points, lows, highs)))


def gaffke_clusters(
    values: ArrayLike,
    clusters: ArrayLike,
    *,
    level: float = 0.95,
    lowest: float = 0.0,
    highest: float = 1.0,
    sides: Sides = "two",
    unseen: float = UNSEEN,
) -> Intervals:
    r"""Interval for the mean over tasks when tasks of one cluster resemble each other.

    The independent draws are the clusters (templates, repositories, documents), so they carry the
    Gamma weights, while the estimand stays the mean over *tasks*: with :math:`S_g` the sum of
    values and :math:`m_g` the number of tasks of cluster g, the weighted mean is the ratio

    .. math:: \frac{\sum_g w_g S_g}{\sum_g w_g m_g + e\, m_0}, \qquad w_g \sim \Gamma(1),

    where the unseen cluster has the size a task finds its cluster to have on average,
    :math:`m_0 = \sum_g m_g^2 / \sum_g m_g`. With one task per cluster this is `gaffke`.

    ``values`` (T,) or (M, T) and ``clusters``, the cluster labels, are by task; the rest as in
    :func:`gaffke`.
    """
    tasks = scale_values(values, lowest, highest)
    interval = gaffke_groups(
        group_by_cluster(tasks, clusters), level=level, sides=sides, unseen=unseen
    )
    parts = interval.points, interval.lows, interval.highs
    return containing(*(lowest + (highest - lowest) * part for part in parts))


def gaffke_groups(
    groups: Clusters, *, level: float = 0.95, sides: Sides = "two", unseen: float = UNSEEN
) -> Intervals:
    """The same for values on [0, 1] that are grouped already; sizes may be weights."""
    means, size = groups.means, groups.sizes
    points = means @ size / size.sum()
    shapes = np.ones(size.size)
    lows, highs = _ends(means, shapes, level, sides, unseen, sizes=size, unseen_size=groups.typical)
    return containing(points, lows, highs)


def _ends(
    cells: FloatArray,
    shapes: FloatArray,
    level: float,
    sides: Sides,
    unseen: float,
    *,
    sizes: FloatArray | None = None,
    unseen_size: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Both ends on the [0, 1] scale, in one call: an upper end is a lower end seen in a mirror."""
    parts = {"two": (cells, 1 - cells), "lower": (cells,), "upper": (1 - cells,)}[sides]
    quantiles = lower_quantile(
        np.concatenate(parts),
        shapes,
        tail_probability(level, sides),
        unseen=unseen,
        sizes=sizes,
        unseen_size=unseen_size,
    )
    rows = len(cells)
    lows = np.zeros(rows) if sides == "upper" else quantiles[:rows]
    highs = np.ones(rows) if sides == "lower" else 1 - quantiles[-rows:]
    return lows, highs
