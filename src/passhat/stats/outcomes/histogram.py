"""How many tasks share the same (n, c): all that an unordered metric can see.

A suite of a million tasks with 200 attempts each has at most 201 different cells, so a metric is
evaluated 201 times and not a million times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import IntArray

_FEW_TASKS = 30
"""Up to here the filling of a single task moves an interval by half a point or more."""
_DENSE_CELLS = 4_000_000
"""Up to here counting into a dense table beats sorting, at 32 MB for the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Plain):
    """Unique pairs (n, c), sorted, and the number of tasks at each."""

    n: IntArray
    c: IntArray
    tasks: IntArray

    @property
    def size(self) -> int:
        """How many tasks there are in all."""
        return int(self.tasks.sum())

    def places(self, n: IntArray, c: IntArray) -> IntArray:
        """Which cell each task is in, for the tasks that were counted."""
        low, high, width = int(self.n[0]), int(self.n[-1]), int(self.c.max()) + 1
        if not _is_dense(low, high, width, len(n)):
            return np.unique(np.stack((n, c), axis=1), axis=0, return_inverse=True)[1].ravel()
        table = np.zeros((high - low + 1) * width, np.int64)
        table[(self.n - low) * width + self.c] = np.arange(len(self.n))
        places: IntArray = table[(n - low) * width + c]
        return places


def cells_of(n: IntArray, c: IntArray) -> Histogram:
    """Count tasks per (n, c); both one-dimensional and equally long. ValueError if c < 0."""
    low, high, width = int(n.min()), int(n.max()), int(c.max()) + 1
    if not _is_dense(low, high, width, len(n)):
        return _sort_cells(n, c)
    if low == high:
        counts = np.bincount(c)  # refuses c < 0 by itself
        cells = np.flatnonzero(counts)
        return Histogram(np.full(len(cells), low, np.int64), cells, counts[cells])
    if c.min() < 0:
        raise ValueError("c < 0")
    counts = np.bincount((n - low) * width + c)
    cells = np.flatnonzero(counts)
    return Histogram(cells // width + low, cells % width, counts[cells])


def fillings_between(n: IntArray, c: IntArray, missing: IntArray) -> list[Histogram]:
    """Ways to fill in missing attempts between all failed and all passed.

    Methods that use likelihoods have ends that are not monotone in the passes: a task with 1 pass
    of 2 makes low rates of the others more likely than one with none. Near the two extremes, with
    one attempt at all tasks or at one filled in the other way, they reach furthest out; with half
    of the tasks filled in, tasks are the least alike.
    """
    order = np.lexsort((missing, c, n))  # the order of tasks leaves no trace
    n, c, missing = n[order], c[order], missing[order]
    places = np.flatnonzero(missing)
    half, ways = np.zeros_like(missing), [np.minimum(missing, 1), np.maximum(missing - 1, 0)]
    half[places[::2]] = missing[places[::2]]
    ways.append(half)
    if len(n) <= _FEW_TASKS:
        for place in {places[c[places].argmax()], places[c[places].argmin()]}:
            single = np.zeros_like(missing)
            single[place] = 1
            ways += [single, missing - single]
    between = {tuple(way.tolist()): way for way in ways}
    for extreme in (np.zeros_like(missing), missing):
        between.pop(tuple(extreme.tolist()), None)
    return [cells_of(n, c + way) for way in between.values()]


def _is_dense(low: int, high: int, width: int, tasks: int) -> bool:
    """Whether a table of all cells there could be is small; Python's numbers never overflow."""
    return (high - low + 1) * width <= max(_DENSE_CELLS, tasks)


def _sort_cells(n: IntArray, c: IntArray) -> Histogram:
    """The same by sorting, for numbers too large to count into a table."""
    if c.min() < 0:
        raise ValueError("c < 0")
    pairs, tasks = np.unique(np.stack((n, c), axis=1), axis=0, return_counts=True)
    return Histogram(pairs[:, 0], pairs[:, 1], tasks)
