"""Intervals of a binomial success rate: Clopper and Pearson's, and Blaker's, which lies inside it.

Clopper-Pearson misses at most (1 - level) / 2 at *each* end. Blaker's interval misses at most
1 - level in all and is never wider; its ends by themselves are no one-sided bounds. So a gate,
which uses the ends one by one, takes the first and a two-sided interval the second.

References
----------
H. Blaker (2000), Confidence curves and improved exact confidence intervals for discrete
    distributions, Canad. J. Statist. 28.
C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the
    case of the binomial, Biometrika 26.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy.special import bdtr, bdtrc, betaincinv

from passhat.stats.terms import Terms

__all__ = ["Ends", "binomial_interval", "blaker", "clopper_pearson"]

Ends = tuple[float, float]

_HALVINGS = 60


def binomial_interval(c: int, n: int, terms: Terms) -> Ends:
    """The interval of the success rate after c passes in n attempts, by what the terms ask."""
    exact = clopper_pearson if terms.equal_tails else blaker
    return exact(c, n, terms.level)


def clopper_pearson(c: int, n: int, level: float) -> Ends:
    """The rates at which c is inside both tails.

    Examples
    --------
    >>> [round(end, 4) for end in clopper_pearson(0, 50, 0.95)]
    [0.0, 0.0711]
    """
    tail = (1 - level) / 2
    low = 0.0 if c == 0 else float(betaincinv(c, n - c + 1, tail))
    high = 1.0 if c == n else float(1 - betaincinv(n - c, c + 1, tail))
    return low, high


def blaker(c: int, n: int, level: float) -> Ends:
    """The rates whose acceptability at c is above 1 - level.

    Examples
    --------
    >>> [round(end, 4) for end in blaker(3, 10, 0.95)]
    [0.0873, 0.6194]
    """
    return _lower(c, n, 1 - level), 1 - _lower(n - c, n, 1 - level)


def _lower(c: int, n: int, alpha: float) -> float:
    """The smallest rate p with P(X >= c) + P(X <= y) > alpha.

    y = y(p) is the largest number whose lower tail is not above P(X >= c); it grows with p. At the
    Clopper-Pearson end P(X >= c) is alpha / 2. Where y steps up, the two tails are equal and
    their sum is above alpha, so that the answer lies at the first step or before it.
    """
    if c == 0:
        return 0.0
    start = float(betaincinv(c, n - c + 1, alpha / 2))
    y = _largest_below(lambda y: float(bdtr(y, n, start)), alpha / 2, c)
    if y + 1 >= c:
        return start
    step = _crossing(lambda p: float(bdtrc(c - 1, n, p)) >= float(bdtr(y + 1, n, p)), start, c / n)

    def accepted(p: float) -> bool:
        other = float(bdtr(y, n, p)) if y >= 0 else 0.0
        return float(bdtrc(c - 1, n, p)) + other > alpha

    return _crossing(accepted, start, step) if accepted(step) else step


def _largest_below(tail: Callable[[int], float], limit: float, above: int) -> int:
    """The largest y < ``above`` with tail(y) <= limit, or -1."""
    low, high = -1, above
    while high - low > 1:
        middle = (low + high) // 2
        if tail(middle) <= limit:
            low = middle
        else:
            high = middle
    return low


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that fails at ``low`` begins to hold, or a little below."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return low
