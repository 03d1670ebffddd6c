r"""Correct a metric by tasks whose attempts are all labeled; nothing is assumed about the errors.

Let v be a task's value by the judge and u its value by the labels. Tasks that were drawn at random
are labeled whole (L); of the others (U) only v is known. With a weight :math:`\lambda` on the
judge,

.. math:: \hat\theta = \frac1{|L|} \sum_L (u - \lambda v) + \lambda \frac1{|U|} \sum_U v ,

is unbiased whatever the judge does: his errors cancel in the mean. The weight of the smallest
variance is the slope of u on v times the share of tasks that are not labeled whole; a judge that
knows nothing gets the weight 0, and then only the labels count.

The interval about new tasks extends Gaffke's bound: Gamma weights for the tasks of both sums, and
in the first sum one unseen task that is at its worst, u = 0 with v = 1 or the other way round. The
second sum needs none: a kind of task that neither has shown is smaller still. Ends that only have
to hold together take the unseen task half of the time (the mid-p form); where each end has to hold
by itself, as in a gate, always.

References
----------
A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic (2023), Prediction-powered
    inference, Science 382.
A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), PPI++: efficient prediction-powered inference,
    arXiv:2311.01453 (the weight).
G. A. Barnard (1989), On alleged gains in power from lower P-values, Statistics in Medicine 8
    (mid-p).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.new_tasks_delta import SEED

_MOST_DRAWS, _MOST_WEIGHTS = 20_000, 20_000_000
Ends = tuple[float, float]


@dataclass(eq=False)
class WholeTasks:
    """Values of tasks that are labeled whole, and of the others."""

    true: FloatArray
    judged: FloatArray
    """``true``, ``judged`` (M, L): M metrics on the tasks that are labeled whole: by the labels,
    and by the judge.
    """
    others: FloatArray
    """(M, U): the same metrics by the judge on the other tasks."""
    clusters: tuple[Sequence[str], Sequence[str]] | None = None
    """The cluster of each task of both kinds: those of one cluster share their weight."""
    lowest: float = 0.0
    highest: float = 1.0
    """``lowest``, ``highest``: the range of a value."""

    @property
    def tasks(self) -> int:
        return int(self.true.shape[1] + self.others.shape[1])

    @cached_property
    def weights(self) -> FloatArray:
        """The weight on the judge, for each metric: (M,)."""
        share = self.others.shape[1] / self.tasks
        weights = np.zeros(len(self.true))
        for row, (u, v) in enumerate(zip(self.true, self.judged, strict=True)):
            spread = float(((v - v.mean()) ** 2).sum())
            if not share:
                continue
            # Judged values that are all the same say nothing about the slope, and cost nothing.
            slope = float(((u - u.mean()) * (v - v.mean())).sum()) / spread if spread else 1.0
            weights[row] = round(min(max(slope, 0.0), 1.0) * share, 12)
        return weights

    @property
    def points(self) -> FloatArray:
        """The corrected means, (M,); within the range."""
        differences = self.true - self.weights[:, None] * self.judged
        points: FloatArray = differences.mean(axis=1)
        if self.others.shape[1]:
            points = points + self.weights * self.others.mean(axis=1)
        return np.asarray(np.clip(points, self.lowest, self.highest), np.float64)

    def interval(self, level: float, *, equal_tails: bool = False) -> list[Ends]:
        """Both ends of every metric about new tasks."""
        seen, share, others = self._draws(equal_tails=equal_tails)
        tail, ends = (1 - level) / 2, []
        for row, weight in enumerate(self.weights.tolist()):
            middle = seen[row] + weight * others[row]
            worst = self.lowest - weight * self.highest, self.highest - weight * self.lowest
            low = float(np.quantile(middle + share * worst[0], tail))
            high = float(np.quantile(middle + share * worst[1], 1 - tail))
            ends.append((max(low, self.lowest), min(high, self.highest)))
        return ends

    def delta_interval(self, k: int, level: float, *, equal_tails: bool = False) -> Ends:
        """The ends of pass^k - (pass^1)^k; the two rows are pass^k and pass^1.

        As in `gaffke_delta` the unseen task is where it hurts most: its true and its judged pair of
        values are corners of the triangle of what a task can show, or for the upper end a point on
        the edge where both values are the same.
        """
        (power, rate), share, others = self._draws(equal_tails=equal_tails)
        weight_k, weight_1 = self.weights.tolist()
        power, rate = power + weight_k * others[0], rate + weight_1 * others[1]
        corners = ((0.0, 0.0), (0.0, (k - 1) / k), (1.0, 1.0))
        edge = [(t, t) for t in np.linspace(0, 1, 11).tolist()]

        def values(true: Sequence[Ends]) -> list[FloatArray]:
            return [
                power
                + share * (u_k - weight_k * v_k)
                - np.clip(rate + share * (u_1 - weight_1 * v_1), 0.0, 1.0) ** k
                for u_k, u_1 in true
                for v_k, v_1 in corners
            ]

        tail = (1 - level) / 2
        low = float(np.quantile(np.min(values(corners), axis=0), tail))
        high = float(np.quantile(np.max(values([*corners, *edge]), axis=0), 1 - tail))
        top = (k - 1) * k ** (-k / (k - 1))
        return min(max(low, 0.0), top), min(max(high, 0.0), top)

    def _draws(self, *, equal_tails: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw the seen part of the first sum (M, draws), the unseen share, and the second sum."""
        differences = self.true - self.weights[:, None] * self.judged
        rng = np.random.default_rng(SEED)
        cells = min(self.tasks, 4_000)
        draws = int(np.clip(_MOST_WEIGHTS // max(cells, 1), 2_000, _MOST_DRAWS))
        if self.clusters is None:
            # Tasks with the same values share a Gamma weight; sorted, their order leaves no trace.
            # The last bits of a difference depend on the processor, and must not split a cell.
            labeled, sizes = np.unique(np.round(differences, 12), axis=1, return_counts=True)
            weights = rng.standard_gamma(sizes, (draws, len(sizes)))
            unlabeled, sizes = np.unique(np.round(self.others, 12), axis=1, return_counts=True)
            weights_of_others = rng.standard_gamma(sizes, (draws, len(sizes)))
            unseen_size = 1.0
        else:
            names, member = np.unique(np.concatenate(self.clusters), return_inverse=True)
            gammas = rng.standard_gamma(1.0, (draws, len(names)))
            first = len(self.clusters[0])
            labeled, weights = differences, gammas[:, member[:first]]
            unlabeled, weights_of_others = self.others, gammas[:, member[first:]]
            _, sizes = np.unique(self.clusters[0], return_counts=True)
            unseen_size = float((sizes**2).sum() / sizes.sum())
        unseen = unseen_size * rng.standard_gamma(1.0, draws)
        if not equal_tails:
            unseen[rng.random(draws) < 0.5] = 0.0
        total = weights.sum(axis=1) + unseen
        others = np.zeros((len(self.true), draws))
        if unlabeled.shape[1]:
            others = unlabeled @ (weights_of_others / weights_of_others.sum(axis=1)[:, None]).T
        return labeled @ (weights / total[:, None]).T, unseen / total, others
