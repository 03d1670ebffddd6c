"""How many tasks share the same (n, c): all that an unordered metric can see.

A suite of a million tasks with 200 attempts each has at most 201 different cells, so a metric is
evaluated 201 times and not a million times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._arrays import IntArray

__all__ = ["Histogram", "cells_of"]

_DENSE_CELLS = 4_000_000
"""Up to here counting into a dense table beats sorting, at 32 MB for the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Unique pairs (n, c), sorted, and the number of tasks at each."""

    n: IntArray
    c: IntArray
    tasks: IntArray

    @property
    def size(self) -> int:
        """How many tasks there are in all."""
        return int(self.tasks.sum())

    def to_dict(self) -> dict[str, list[int]]:
        return {"n": self.n.tolist(), "c": self.c.tolist(), "tasks": self.tasks.tolist()}


def cells_of(n: IntArray, c: IntArray) -> Histogram:
    """Count tasks per (n, c). Expects 0 <= c, 0 <= n; both one-dimensional and equally long."""
    low, high = int(n.min()), int(n.max())
    if low == high:
        counts = np.bincount(c)
        found = np.flatnonzero(counts)
        return Histogram(np.full(len(found), low, np.int64), found, counts[found])
    width = int(c.max()) + 1
    key = (n - low) * width + c
    if (high - low + 1) * width <= max(_DENSE_CELLS, len(n)):
        counts = np.bincount(key)
        found = np.flatnonzero(counts)
        tasks = counts[found]
    else:
        found, tasks = np.unique(key, return_counts=True)
    return Histogram(found // width + low, found % width, tasks)
