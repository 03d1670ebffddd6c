"""The interval of the lift on new tasks: how much better B is than A over tasks like these.

The risk for a lift on new tasks is a kind of task that was not seen: "slightly better
everywhere, broken on a few". With no break among T tasks, up to 3/T of all tasks may break, and an
interval made of the spread that was seen leaves no room for them. **Gaffke's bound on [-1, 1]**
does: every task gets a Gamma weight, one unseen task at the worst end of the range gets another,
and the bound is a quantile of the weighted mean. It is the interval that estimates use
(:mod:`passhat.stats.estimate.intervals.new_tasks`), moves continuously with the data, has width
even when no task differs, needs no random numbers, and takes clusters of tasks with their sizes.

Several metrics, several k or several pairs of agents are looked at together. Each interval then
gets a smaller tail (:func:`simultaneous_tail`), so that with the wanted confidence *all* of them
hold. How much smaller depends on the correlation: pass^3 and pass^4 are almost the same, two
slices are independent.

Measured (docs/benchmarks/lift.md): of 429 cells, with up to half of the tasks broken, the worst
misses one side in .033 at 2.5% (Monte Carlo error .009). Adding 1.66 pseudo-tasks on either side is
9% narrower and misses up to .058; the pseudo-tasks of version 0.1.0 missed up to .080, the paired t
interval .57.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from passhat._display import number
from passhat.errors import InvalidValue
from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray, round_outward, special
from passhat.stats.estimate.intervals.dirichlet_mean import lower_quantile

METHOD = "Gaffke's bound on [-1, 1]"
TOGETHER = "max-|t| with Gaussian multipliers"
ROWS = 65_536
"""Tasks of a large suite that are held in memory at once."""

_SEED = 20240712
_DRAWS = 20_000
_BLOCK = 2_000
_MOST_TASKS = 10**9
"""Beyond this, "more tasks" is no advice."""
_DIGITS = 12
"""The last bits of a difference depend on the processor, and must not split a cell."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends of a range of lifts."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{number(self.low)}, {number(self.high)}]"


@dataclass(frozen=True, slots=True, eq=False)
class LiftSample:
    """The differences per task, or per cluster of tasks, as the interval needs them."""

    values: FloatArray
    """The different differences; of a cluster the mean of its tasks."""
    counts: FloatArray
    """How many tasks (or clusters) have each."""
    sizes: FloatArray
    """Tasks in a cluster; 1 for tasks that are independent."""

    @classmethod
    def of(cls, differences: FloatArray, clusters: Sequence[str] | None = None) -> LiftSample:
        """Summarize differences that lie in [-1, 1]; at least one is needed."""
        d = np.asarray(differences, np.float64)
        if d.ndim != 1 or len(d) == 0:
            raise InvalidValue("one difference per task is needed, and at least one task.")
        if not bool((np.abs(d) <= 1).all()):
            raise InvalidValue("a difference of two shares lies between -1 and 1.")
        if clusters is None:
            values, counts = np.unique(np.round(d, _DIGITS), return_counts=True)
            return cls(values, counts.astype(np.float64), np.ones(len(values)))
        _, member, sizes = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
        means = np.round(np.bincount(member, weights=d) / sizes, _DIGITS)
        cells, counts = np.unique(np.stack([means, sizes]), axis=1, return_counts=True)
        return cls(cells[0], counts.astype(np.float64), cells[1])

    @property
    def tasks(self) -> float:
        return float(self.counts @ self.sizes)

    @property
    def mean(self) -> float:
        """The lift."""
        return float((self.counts * self.sizes * self.values).sum()) / self.tasks

    def interval(self, tail: float, alternative: Alternative = "two-sided") -> Interval:
        """The interval that leaves ``tail`` beyond each end it has.

        A one-sided alternative has one bound; the other end is that of the range.
        """
        low = -1.0 if alternative == "less" else self._bound(tail, 1.0)
        high = 1.0 if alternative == "greater" else -self._bound(tail, -1.0)
        return Interval(min(low, self.mean), max(high, self.mean))

    @property
    def typical_size(self) -> float:
        """The size that a task finds its cluster to have on average."""
        return float(self.counts @ self.sizes**2) / self.tasks

    def _bound(self, tail: float, sign: float) -> float:
        """The lower bound of the mean of ``sign`` times the differences."""
        share = (1 + sign * self.values[None]) / 2
        quantile = lower_quantile(
            share,
            self.counts[None],
            min(tail, 0.5),
            sizes=self.sizes[None],
            unseen_size=self.typical_size,
        )
        return 2 * float(quantile[0]) - 1


def expected_bound(tasks: float, lift: float, variance: float, tail: float) -> float:
    """The lower bound that tasks with this lift and variance give on average.

    Mean, variance and skewness of the weighted mean, the unseen task included, put into the
    Cornish-Fisher expansion of its quantile; for planning, where there are no data yet.
    """
    size = tasks + 1
    mean = (tasks * lift - 1) / size  # the unseen task lies at -1, the worst end
    unseen = 1 + mean
    square = tasks * (variance + (lift - mean) ** 2) + unseen**2
    cube = -(unseen**3)
    q = -float(special.ndtri(tail))
    return float(mean - q * np.sqrt(square) / size + (q**2 - 1) / 3 * cube / square / size)


def tail_of(level: float, alternative: Alternative) -> float:
    """The error beyond each end of the interval: half of it when there are two ends."""
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
    return (1 - level) / 2 if alternative == "two-sided" else 1 - level


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval at five decimals that holds all of these."""
    parts = list(intervals)
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return Interval(*round_outward(low, high, -1.0))


def cluster_rows(columns: FloatArray, clusters: Sequence[str] | None) -> FloatArray:
    """Differences per task, or their deviations summed per cluster: independent rows."""
    if clusters is None:
        return columns
    _, member = np.unique(np.asarray(clusters), return_inverse=True)
    deviations = columns - columns.mean(axis=0)
    return np.stack([np.bincount(member, weights=column) for column in deviations.T], axis=1)


def simultaneous_tail(
    differences: FloatArray | Iterable[FloatArray],
    level: float,
    alternative: Alternative,
    *,
    seed: int = _SEED,
) -> float:
    """The tail for each interval with which all of them hold together at ``level``.

    ``differences`` (tasks x intervals) has one column for each interval; a task that it does not
    look at has difference 0. An iterable of such arrays keeps a suite of millions of tasks out of
    memory. With clusters, one row per cluster (see :func:`cluster_rows`).

    Notes
    -----
    The Gaussian multiplier bootstrap of the largest t-value: normal vectors with the correlation
    of the columns are drawn, and the tail is that of the quantile of their largest entry. The
    unseen tasks of different columns are taken to be unrelated, which can only widen the
    intervals. The result lies between the tail of one interval and that of Bonferroni.
    """
    alone = tail_of(level, alternative)
    blocks = _blocks(differences) if isinstance(differences, np.ndarray) else differences
    correlation = _correlation(blocks)
    if len(correlation) == 1:
        return alone
    largest = _largest(_root(correlation), alternative, seed)
    together = float(special.ndtr(-np.quantile(largest, level)))
    # A drawn quantile may miss by its Monte Carlo error; the truth lies between these two.
    return float(np.clip(together, alone / len(correlation), alone))


def _blocks(differences: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, len(differences), ROWS):
        yield differences[start : start + ROWS]


def _correlation(blocks: Iterable[FloatArray]) -> FloatArray:
    """How the columns go together, the unseen task included."""
    rest = iter(blocks)
    first = next(rest)
    near = first.mean(axis=0)  # centered there, squares stay small, and one pass is enough
    sums, products = np.zeros(len(near)), np.zeros((len(near), len(near)))
    tasks = 0
    for block in chain([first], rest):
        deviations = block - near
        sums += deviations.sum(axis=0)
        products += deviations.T @ deviations
        tasks += len(block)
    mean = sums / tasks
    # One unseen task for each column, as far out as can be, and unrelated to the others.
    unseen = np.eye(len(mean)) / tasks
    covariance = products / tasks - np.outer(mean, mean) + unseen
    spread = np.sqrt(np.diag(covariance))
    correlation: FloatArray = covariance / np.outer(spread, spread)
    return correlation


def _root(correlation: FloatArray) -> FloatArray:
    """A matrix whose product with its transpose is the correlation.

    The symmetric one, which is unique: eigenvectors of equal eigenvalues differ between
    processors, and the draws would with them.
    """
    values, vectors = np.linalg.eigh(correlation)
    root: FloatArray = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    return root


def _largest(root: FloatArray, alternative: Alternative, seed: int) -> FloatArray:
    """The largest entry of each drawn vector; in absolute value when both sides count."""
    rng = np.random.default_rng(seed)
    largest = []
    for _ in range(_DRAWS // _BLOCK):
        draws = rng.standard_normal((_BLOCK, len(root))) @ root.T
        largest.append((np.abs(draws) if alternative == "two-sided" else draws).max(axis=1))
    return np.concatenate(largest)
