"""Success rates that fit the counts of a run: their distribution, and draws for each task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.outcomes import Completion, Outcomes

__all__ = ["FittedRates", "cell_likelihood", "fit_weights", "rate_grid"]

_POINTS = 200
_ROUNDS = 400
_IMAGINARY_TASKS = 1.0
"""One task of unknown difficulty is added to a pilot: a pilot in which all attempts passed does not
prove that every attempt always will, and must not give a plan of zero tasks."""


@lru_cache(maxsize=1)
def rate_grid() -> FloatArray:
    """Rates from 0 to 1, denser near the ends, where agents live."""
    return np.sin(np.linspace(0, np.pi / 2, _POINTS + 1)) ** 2


def cell_likelihood(n: IntArray, c: IntArray, rates: FloatArray) -> FloatArray:
    """Chance of c passes in n, up to a factor per row, for every cell and rate."""
    from scipy.special import xlog1py, xlogy

    logs = xlogy(c[:, None], rates) + xlog1py((n - c)[:, None], -rates)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)), np.float64)


def fit_weights(n: IntArray, c: IntArray, tasks: IntArray) -> FloatArray:
    """The weights of the grid's rates under which the counts are most likely.

    No shape is assumed. They are found by expectation and maximisation (Laird 1978,
    "Nonparametric maximum likelihood estimation of a mixing distribution").
    """
    return _fit_weights(*(tuple(side.tolist()) for side in (n, c, tasks)))


@lru_cache(maxsize=32)
def _fit_weights(n: tuple[int, ...], c: tuple[int, ...], tasks: tuple[int, ...]) -> FloatArray:
    rates, count = rate_grid(), np.array(tasks)
    likelihood = cell_likelihood(np.array(n), np.array(c), rates)
    spread = np.diff(rates, prepend=0) + np.diff(rates, append=1)
    imaginary = _IMAGINARY_TASKS * spread / spread.sum()
    weights = np.full(len(rates), 1 / len(rates))
    for _ in range(_ROUNDS):
        joint = likelihood * weights
        share = count @ (joint / joint.sum(axis=1, keepdims=True))
        weights = (share + imaginary) / (count.sum() + _IMAGINARY_TASKS)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class FittedRates:
    """For each task the rates that its own counts and those of all tasks leave possible.

    Attributes
    ----------
    cumulated : array, cells x rates
        The cumulated posterior of the grid's rates, one row for each (n, c) that occurs.
    cell : array
        The row of each task.
    """

    cumulated: FloatArray
    cell: IntArray

    @classmethod
    def of(cls, outcomes: Outcomes) -> FittedRates:
        """Fit the scored attempts of a run.

        With at most one attempt per task nothing tells tasks apart; then the prior is that of
        Jeffreys, which weighs the points of the grid alike.
        """
        n, c = outcomes.counts(Completion.DROPPED)
        cells, cell, tasks = np.unique(
            np.stack((n, c)), axis=1, return_inverse=True, return_counts=True
        )
        weights = np.ones(len(rate_grid()))
        if int(n.max(initial=0)) > 1:
            scored = cells[0] > 0
            weights = fit_weights(cells[0][scored], cells[1][scored], tasks[scored])
        posterior = cell_likelihood(cells[0], cells[1], rate_grid()) * weights
        cumulated = posterior.cumsum(axis=1)
        return cls(cumulated / cumulated[:, -1:], cell.ravel())

    def draw(self, rng: np.random.Generator, draws: int) -> FloatArray:
        """Rates of all tasks, one row for each draw."""
        chances = rng.random((draws, len(self.cell)))
        rates = np.empty_like(chances)
        for row in range(len(self.cumulated)):
            here = self.cell == row
            places = np.searchsorted(self.cumulated[row], chances[:, here])
            rates[:, here] = rate_grid()[np.minimum(places, _POINTS)]
        return rates
