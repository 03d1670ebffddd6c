"""Estimates of the remaining time and cost of a run, as ranges.

The mean of what is left lies around the mean of what was seen, by as much as attempts differ among
themselves. The ranges are wide on purpose where little was seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_DEVIATIONS = 2.0
_WIDEST = 100.0
"""On the log scale. One attempt with a cost among 200,000 without would exceed the largest number.
"""
_AS_IF_SEEN = 2
"""A few attempts say little about how much attempts differ: as if so many more had been seen, whose
deviation is their mean."""


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high``; both are estimates."""

    low: float
    high: float


@dataclass(slots=True)
class Spread:
    """Mean and deviation of a measure, kept up to date one attempt at a time."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float | None) -> None:
        """Count one attempt; one for which nothing is recorded does not count as zero."""
        if value is not None:
            self.count += 1
            self.total += value
            self.squares += value * value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation over attempts, with a floor while few were seen."""
        squares = max(0.0, self.squares - self.total * self.mean)
        prior_squares = _AS_IF_SEEN * self.mean**2
        return math.sqrt((squares + prior_squares) / max(1, self.count - 1 + _AS_IF_SEEN))


def sum_of(more: int, seen: Spread) -> Range | None:
    """Estimated total of further attempts; ``None`` when none were seen."""
    if not seen.count:
        return None
    if more <= 0:
        return Range(0.0, 0.0)
    middle = more * seen.mean
    if middle <= 0:
        return Range(0.0, 0.0)
    # The sum varies by itself, and its mean is only estimated from the attempts seen.
    # By factors rather than by differences: a few attempts take far longer than all the others.
    share = seen.deviation / seen.mean * math.sqrt(1 / more + 1 / seen.count)
    factor = math.exp(min(_DEVIATIONS * share, _WIDEST))
    return Range(middle / factor, middle * factor)


def time_left(left: int, jobs: int, seconds: Spread, elapsed: float = 0.0) -> Range | None:
    """Seconds until so many attempts are done, with ``jobs`` at a time.

    Two ways to reckon: from how long one attempt takes, and, once ``elapsed`` is given, from how
    fast they came so far. The range holds both.
    """
    work = sum_of(left, seconds)
    if work is None:
        return None
    if left <= 0:
        return work
    at_once = max(1, min(jobs, left))
    low, high = work.low / at_once, work.high / at_once
    if elapsed > 0:
        pace = elapsed / seconds.count * left
        low, high = min(low, pace), max(high, pace)
    # The last ones run with idle neighbours, and no run is shorter than one attempt.
    return Range(low, high + (seconds.mean + _DEVIATIONS * seconds.deviation) * (at_once > 1))


@dataclass(frozen=True, slots=True)
class RunPreview:
    """Expected time, calls and cost of a run before it starts.

    ``pilot`` is how many stored attempts of the same agent at the same suite this rests on; 0 when
    it rests on limits and prices alone. ``by_price`` is set when the cost was not seen, but comes
    from the price of a call.
    """

    attempts: int
    pilot: int
    seconds: Range | None
    calls: Range
    cost: Range | None
    by_price: bool = False


def preview_run(
    attempts: int,
    jobs: int,
    max_steps: int,
    pilot: Iterable[tuple[float | None, float | None, float | None]] = (),
    price_per_call: Range | None = None,
) -> RunPreview:
    """Expected time, calls and cost of a number of attempts.

    Parameters
    ----------
    attempts, jobs, max_steps
        How many are to be made, how many at a time, turns of the agent at most.
    pilot
        (seconds, steps, cost) of earlier attempts; ``None`` is "not recorded".
    price_per_call
        The cost of one call of the agent, from the price table; used where no cost is stored.
    """
    seconds, steps, cost = Spread(), Spread(), Spread()
    for attempt in pilot:
        for spread, value in zip((seconds, steps, cost), attempt, strict=True):
            spread.add(value)
    calls = sum_of(attempts, steps) or Range(float(attempts), float(attempts * max_steps))
    money = sum_of(attempts, cost)
    by_price = money is None and price_per_call is not None
    if by_price and price_per_call is not None:
        money = Range(calls.low * price_per_call.low, calls.high * price_per_call.high)
    pilot_count = max(seconds.count, steps.count, cost.count)
    return RunPreview(
        attempts, pilot_count, time_left(attempts, jobs, seconds), calls, money, by_price
    )
