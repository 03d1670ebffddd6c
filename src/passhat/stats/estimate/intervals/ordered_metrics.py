"""``window^w`` as a function of a task's success rate: some w of n attempts in a row pass.

Where attempts are independent given the task, the chance of it is a polynomial in p,

.. math:: g(p) = \\sum_j N_j \\, p^j (1-p)^{n-j},

with :math:`N_j` the number of sequences of n attempts with j passes and w of them in a row. Its
moments under a Beta distribution are sums of Beta functions, all terms positive.

References
----------
W. Feller (1968), An Introduction to Probability Theory and Its Applications, vol. 1, 3rd ed.,
    chapter XIII.7 (success runs).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

import numpy as np
from scipy.special import betaln

from passhat.stats.arrays import FloatArray, IntArray

__all__ = ["MOST_ATTEMPTS", "InARow", "in_a_row"]

MOST_ATTEMPTS = 128
"""Beyond that an interval would take seconds."""


@dataclass(frozen=True, slots=True)
class InARow:
    """The metric "some w of n attempts in a row pass", for n up to ``MOST_ATTEMPTS``."""

    w: int
    n: int

    @property
    def highest(self) -> float:
        return 1.0

    def ways(self) -> list[int]:
        """How many of the sequences with j = 0..n passes have w of them in a row.

        Without such a run, the j passes fall into the n - j + 1 places around the failures, fewer
        than w into each; those are counted by inclusion and exclusion, in whole numbers.

        Examples
        --------
        >>> InARow(2, 3).ways()
        [0, 0, 2, 1]
        """
        found = []
        for j in range(self.n + 1):
            failures = self.n - j
            without = sum(
                (-1) ** i * comb(failures + 1, i) * comb(self.n - i * self.w, failures)
                for i in range(min(failures + 1, j // self.w) + 1)
            )
            found.append(comb(self.n, j) - without)
        return found

    def value(self, p: FloatArray) -> FloatArray:
        """The chance of it at success rates p."""
        j = np.arange(self.n + 1)
        rates = np.asarray(p, np.float64)[..., None]
        return np.asarray((rates**j * (1 - rates) ** (self.n - j)) @ np.array(self.ways(), float))


def in_a_row(
    a: FloatArray, b: FloatArray, c: IntArray, form: InARow
) -> tuple[FloatArray, FloatArray]:
    """`E g(p)` and `E g(p)^2` where p ~ Beta(a + c, b + n - c).

    Parameters
    ----------
    a, b : array
        Beta priors, (G,).
    c : array
        Passes out of n, (C,).
    form : InARow
        The metric; its n is that of the tasks.

    Returns
    -------
    tuple of array
        Both moments, (G, C).
    """
    ways = form.ways()
    return _expected(a, b, c, ways, form.n), _expected(a, b, c, _squared(ways), form.n)


def _squared(ways: list[int]) -> list[int]:
    """The coefficients of g(p)^2; as whole numbers they neither overflow nor cancel."""
    found = [0] * (2 * len(ways) - 1)
    for i, one in enumerate(ways):
        for j, other in enumerate(ways):
            found[i + j] += one * other
    return found


def _expected(a: FloatArray, b: FloatArray, c: IntArray, ways: list[int], n: int) -> FloatArray:
    degree = len(ways) - 1
    asked = np.flatnonzero(np.array(ways, dtype=bool))
    log_ways = np.array([log(ways[j]) for j in asked])
    # A Beta function depends on the passes seen and asked for together only.
    together = np.arange(n + degree + 1)
    logs = betaln(a[:, None] + together, b[:, None] + (n + degree - together))
    found = np.empty((len(a), len(c)))
    for column, passes in enumerate(c):
        base = betaln(a + passes, b + (n - passes))
        found[:, column] = np.exp(logs[:, asked + passes] + log_ways - base[:, None]).sum(axis=1)
    return found
