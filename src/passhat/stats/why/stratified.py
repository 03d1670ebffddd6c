"""The exact conditional test of 2 x 2 tables in strata, and the odds ratio that they share.

Within a task the number of failures and the number of attempts with an event are held fixed; if
verdict and event have nothing to do with each other, the failures with the event are then
hypergeometric, and their sum over tasks is a sum of independent hypergeometric counts (Cochran
1954, Mantel and Haenszel 1959; exact: Mehta, Patel and Gray 1985). The test doubles the smaller
tail, so that p < 0.05 and a 95% interval without 1 are the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from passhat.stats.arrays import FloatArray, log_choose

_LARGEST_LOG_ODDS = 50.0
_TINY = 1e-300
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Stratum:
    """One task: attempts, failures, attempts with the event, and failures with the event."""

    attempts: int
    failed: int
    with_event: int
    failed_with_event: int

    @property
    def low(self) -> int:
        return max(0, self.failed + self.with_event - self.attempts)

    @property
    def high(self) -> int:
        return min(self.failed, self.with_event)

    def without_event(self) -> Stratum:
        """The same task, with the attempts without the event in the place of those with it."""
        return Stratum(
            self.attempts,
            self.failed,
            self.attempts - self.with_event,
            self.failed - self.failed_with_event,
        )

    @property
    def is_informative(self) -> bool:
        """Whether the counts leave anything open."""
        return self.low < self.high


@dataclass(frozen=True)
class Stratified:
    """The sum of failures with the event over strata, and its distribution given the margins."""

    strata: tuple[Stratum, ...]

    @property
    def low(self) -> int:
        return sum(stratum.low for stratum in self.strata)

    @property
    def total(self) -> int:
        return sum(stratum.failed_with_event for stratum in self.strata)

    @cached_property
    def _log_weights(self) -> FloatArray:
        weights = np.ones(1)
        for stratum in self.strata:
            weights = np.convolve(weights, np.exp(_log_hypergeometric(stratum)))
        return np.log(np.maximum(weights, _TINY))

    def _chances(self, log_odds: float) -> FloatArray:
        logs = self._log_weights + log_odds * np.arange(len(self._log_weights))
        weights = np.exp(logs - logs.max())
        chances: FloatArray = weights / weights.sum()
        return chances

    def _tails(self, log_odds: float = 0.0) -> tuple[float, float]:
        """The chance of at most, and of at least, as many failures with the event."""
        chances, place = self._chances(log_odds), self.total - self.low
        return float(chances[: place + 1].sum()), float(chances[place:].sum())

    @property
    def p_value(self) -> float:
        """Twice the smaller tail."""
        return min(1.0, 2 * min(self._tails()))

    @property
    def smallest_p_value(self) -> float:
        """The p-value of the most extreme tables with these margins."""
        chances = self._chances(0.0)
        return min(1.0, 2 * float(min(chances[0], chances[-1])))

    def chance_of(self, p_value: float) -> float:
        """The chance of a p-value up to this one where event and verdict are independent.

        A count has few values, so that it is often far below ``p_value`` itself.
        """
        chances = self._chances(0.0)
        tails = np.minimum(np.cumsum(chances), np.cumsum(chances[::-1])[::-1])
        return float(chances[2 * tails <= p_value * (1 + _ROUNDING)].sum())

    @property
    def odds_ratio(self) -> float | None:
        """The conditional maximum-likelihood estimate; ``None`` is beyond every number."""
        place, most = self.total - self.low, len(self._log_weights) - 1
        if place == 0:
            return 0.0
        if place == most:
            return None
        counts = np.arange(most + 1)
        return _solve(lambda log: float(self._chances(log) @ counts) - place)

    def interval(self, level: float) -> tuple[float, float | None]:
        """The exact interval of the odds ratio; an upper end of ``None`` is without bound."""
        place, most = self.total - self.low, len(self._log_weights) - 1
        tail = (1 - level) / 2
        low = 0.0 if place == 0 else _solve(lambda log: self._tails(log)[1] - tail)
        high = None if place == most else _solve(lambda log: tail - self._tails(log)[0])
        return low, high


def _log_hypergeometric(stratum: Stratum) -> FloatArray:
    n, failed, with_event = stratum.attempts, stratum.failed, stratum.with_event
    counts = np.arange(stratum.low, stratum.high + 1)
    ways = log_choose(failed, counts) + log_choose(n - failed, with_event - counts)
    return ways - log_choose(n, np.array([with_event]))


def _solve(rising: Callable[[float], float]) -> float:
    """The odds ratio at which an increasing function of its logarithm is zero."""
    if rising(-_LARGEST_LOG_ODDS) >= 0:
        return 0.0
    if rising(_LARGEST_LOG_ODDS) <= 0:
        return float(np.exp(_LARGEST_LOG_ODDS))
    return float(np.exp(brentq(rising, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS, xtol=1e-10)))


def correct_discrete(tests: Sequence[Stratified]) -> list[float]:
    """P-values corrected step by step as by Holm, for tests with few values.

    Where Holm multiplies the smallest p-value by the number of tests, the chances of each test to
    be as small are added: the same guarantee, whatever ties the tests together (Westfall and
    Wolfinger 1997), and never more than Holm's.
    """
    p_values = [test.p_value for test in tests]
    order = sorted(range(len(tests)), key=p_values.__getitem__)
    corrected_p = [1.0] * len(tests)
    largest = 0.0
    for step, place in enumerate(order):
        total = sum(tests[other].chance_of(p_values[place]) for other in order[step:])
        largest = max(largest, min(1.0, total))
        corrected_p[place] = largest
        if largest >= 1:
            break
    return corrected_p


def choose_testable(smallest: Sequence[float], alpha: float) -> list[int]:
    """Places of the tests that could be significant at all, by Tarone's rule (1990).

    An event that happened once cannot be shown to matter, whatever it does; testing it would only
    cost the others. The rule looks at the margins alone, which the tests hold fixed.

    Examples
    --------
    >>> choose_testable([0.001, 0.4, 0.01, 0.5], alpha=0.05)
    [0, 2]
    """
    for count in range(1, len(smallest) + 1):
        places = [place for place, p in enumerate(smallest) if p <= alpha / count]
        if len(places) <= count:
            return places
    return []
