"""One level for several intervals at once.

Several metrics, several k or several pairs of agents are looked at together. Each interval then
gets a smaller tail, so that with the wanted confidence *all* of them hold. How much smaller
depends on how the differences go together: pass^3 and pass^4 tell almost the same story, two
slices tell two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.lift import Spread, tail_of
from passhat.stats.compare.significance import SEED

__all__ = ["METHOD", "ROWS", "simultaneous_tail"]

METHOD = "max-|t| with Gaussian multipliers"

_DRAWS = 20_000
_BLOCK = 2_000
ROWS = 65_536
"""Tasks looked at in one go."""


def simultaneous_tail(
    differences: FloatArray | Iterable[FloatArray],
    level: float,
    alternative: Alternative,
    *,
    seed: int = SEED,
) -> float:
    """The tail for each interval with which all of them hold together at ``level``.

    Parameters
    ----------
    differences : array, tasks x intervals
        One column for each interval; a task that it does not look at has difference 0. Of many
        tasks, such arrays one after the other: they need not be there together.

    Notes
    -----
    The Gaussian multiplier bootstrap of the largest t-value: normal vectors with the correlation
    of the columns are drawn, and the tail is that of the quantile of their largest entry. The
    pseudo-tasks of different columns are taken to be unrelated, which can only widen the
    intervals. The result lies between the tail of one interval and that of Bonferroni.
    """
    alone = tail_of(level, alternative)
    blocks = _blocks(differences) if isinstance(differences, np.ndarray) else differences
    correlation = _correlation(blocks)
    if len(correlation) == 1:
        return alone
    largest = _largest(_root(correlation), alternative, seed)
    from scipy.special import ndtr

    together = float(ndtr(-np.quantile(largest, level)))
    return float(np.clip(together, alone / len(correlation), alone))


def _blocks(differences: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, len(differences), ROWS):
        yield differences[start : start + ROWS]


def _correlation(blocks: Iterable[FloatArray]) -> FloatArray:
    """How the columns go together, pseudo-tasks included."""
    rest = iter(blocks)
    first = next(rest)
    near = first.mean(axis=0)  # centred there, squares stay small, and one pass is enough
    sums, products = np.zeros(len(near)), np.zeros((len(near), len(near)))
    graded = np.zeros(len(near), np.bool_)
    tasks = 0
    for block in chain([first], rest):
        centred = block - near
        sums += centred.sum(axis=0)
        products += centred.T @ centred
        graded |= np.array([Spread.of(column).graded for column in block.T])
        tasks += len(block)
    mean = sums / tasks
    own = np.array([2 * Spread(tasks, 0, 0, bool(one)).pseudo for one in graded])
    covariance = products / tasks - np.outer(mean, mean) + np.diag(own / tasks)
    spread = np.sqrt(np.diag(covariance))
    correlation: FloatArray = covariance / np.outer(spread, spread)
    return correlation


def _root(correlation: FloatArray) -> FloatArray:
    """A matrix whose product with its transpose is the correlation."""
    values, vectors = np.linalg.eigh(correlation)
    root: FloatArray = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root


def _largest(root: FloatArray, alternative: Alternative, seed: int) -> FloatArray:
    """The largest entry of each drawn vector; in absolute value when both sides count."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(_DRAWS // _BLOCK):
        drawn = rng.standard_normal((_BLOCK, len(root))) @ root.T
        found.append((np.abs(drawn) if alternative == "two-sided" else drawn).max(axis=1))
    return np.concatenate(found)
