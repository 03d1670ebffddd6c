"""What all intervals share: the result, the sides, and how a histogram of tasks is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import InvalidValue
from passhat.stats.arrays import BoolArray, FloatArray

Sides = Literal["two", "lower", "upper"]

_MATERIAL = 1e-3  # an end moved by less than this share of the width is not worth a word


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
    """Intervals made to contain their points, with the word said where that moved an end."""
    moved = np.maximum(lows - points, points - highs)
    extended = moved > _MATERIAL * np.abs(highs - lows)
    return Intervals(points, np.minimum(lows, points), np.maximum(highs, points), extended)


def tail_probability(level: float, sides: Sides) -> float:
    """Return what one end may miss: half of `1 - level`, all of it for a one-sided bound."""
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
    if sides not in ("two", "lower", "upper"):
        raise InvalidValue(f'sides must be "two", "lower" or "upper"; got {sides!r}')
    return (1 - level) / 2 if sides == "two" else 1 - level


def scaled(values: ArrayLike, lowest: float, highest: float) -> FloatArray:
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


def clustered(tasks: FloatArray, labels: ArrayLike) -> Clusters:
    """Values per task, (M, T), gathered by their labels; the order of tasks leaves no trace."""
    names, member, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if member.shape != (tasks.shape[1],):
        raise InvalidValue(
            f"wanted one label for each of {tasks.shape[1]} tasks; got {member.shape}"
        )
    sums = np.stack([np.bincount(member, weights=row, minlength=names.size) for row in tasks])
    # The last bit of a sum of floats depends on the order of the tasks; the interval must not.
    means = np.clip(np.round(sums / sizes, 12), 0.0, 1.0)
    size = sizes.astype(np.float64)
    order = np.lexsort(np.vstack([size[None], means]))
    return Clusters(means[:, order], size[order], float((size**2).sum() / size.sum()))


def occupied(cells: FloatArray, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The cells that hold a task, and the number of tasks in each."""
    counts = np.asarray(weights, dtype=np.float64)
    if counts.shape != (cells.shape[1],):
        raise InvalidValue(
            f"wanted one weight for each of {cells.shape[1]} cells; got {counts.shape}"
        )
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
        raise InvalidValue("weights must be finite, not negative, and count at least one task")
    return cells[:, counts > 0], counts[counts > 0]
