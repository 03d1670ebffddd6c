"""Stopping early without fooling yourself: bounds that hold at every look.

An ordinary interval is right once, at a sample size fixed beforehand. Looking after every task and
stopping when it clears the threshold makes it wrong far more often than it says. A confidence
sequence is right at all looks together: with chance ``level`` its interval contains the truth
after the first task, the second, and so on to the last.

It is built by betting (Waudby-Smith and Ramdas 2023, "Estimating means of bounded random variables
by betting", JRSS B, arXiv:2010.09686). For a candidate mean m imagine a player with capital 1 who
bets, before each task, that its value x will be above m. If the mean is m the game is fair, and a
fair game multiplies the capital by 20 at any time with chance at most 1/20. So a candidate at which
the player gets rich is refuted, and the player never has to say when he will look.

The player here splits his capital over some fixed fractions f: he stakes f of what he has on every
task, so the capital is

    K(m) = sum over f of weight(f) * product over tasks of (1 - f + f * x / m)

and the mirrored game with 1 - x and 1 - m bets on values below m. K(m) only falls when m rises, so
the refuted candidates are an interval that ends at a grid point, and nothing is lost between grid
points: the bound is the last point that is refuted.

With a fixed suite of N tasks drawn without replacement, m is replaced before each task by what the
mean of the tasks *not yet seen* would have to be, (N m - sum so far) / (N - tasks so far). The game
stays fair, the last tasks become predictable, and the interval shrinks to the exact mean.

Where every value is 0 or 1 and the suite is fixed, the number of passes K in the suite says
everything, and the likelihood of what was seen is known exactly. Against each candidate K the
capital is then a likelihood ratio: a mixture over all K' > K, weighted by a Beta-binomial prior,
over the probability under K. It is a fair game under K, too (Robbins 1970; for drawing without
replacement Waudby-Smith and Ramdas 2020, arXiv:2006.04347), and needs 2 to 24% fewer tasks than
the fixed stakes (docs/benchmarks/sequential.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray, log_choose, special

Sides = Literal["two-sided", "lower", "upper"]
Decision = Literal["shown", "refuted", "open"]

_FRACTIONS = np.array([0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.3, 0.42, 0.56, 0.72, 0.9])
"""The player's stakes: small ones for differences of a point or two in thousands of tasks,
large ones for a suite that passes or fails almost everywhere."""

_PRIOR = 1.0
"""Beta(1, 1): every number of passes above the candidate is as likely as any other."""

_RICH = 1e200
"""Capital is cut off here. Cutting off only makes the player poorer, so the bounds stay right."""

_ROUNDING = 1e-9
"""Sums of values such as 1/3 miss the threshold by rounding; they must not miss the verdict."""


_BESIDE = 1e-6


@dataclass(frozen=True, slots=True)
class Bounds(Plain):
    """The interval after some tasks; it never widens as tasks come in."""

    low: float
    high: float
    """``low``, ``high``: the ends; 0 or 1 on a side that is not watched."""
    level: float
    """The chance that the truth is inside at *every* look."""
    count: int
    """Tasks seen."""
    mean: float | None
    """Their average; ``None`` before the first."""
    crossed: bool = False
    """Whether a later look would have put the lower end above the upper one. With chance ``level``
    that never happens when values come in a drawn order, so a sequence that crossed points at an
    order that was not. The interval stays what it was before.
    """

    def __str__(self) -> str:
        mean_text = "no task yet" if self.mean is None else f"mean {self.mean:.3f}"
        return (
            f"[{self.low:.3f}, {self.high:.3f}] ({100 * self.level:g}% at every look; {mean_text}, "
            f"{self.count:,} seen{', the ends crossed' if self.crossed else ''})"
        )


class ConfidenceSequence:
    """An anytime-valid interval for the mean of values in [0, 1].

    It holds at every look with chance ``level``; a two-sided one spends half of the error on each
    side. ``total`` is the size of the suite, when the question is what *this* suite would read if
    all its tasks were run; without it the question is about new tasks, and the values are
    independent. ``thresholds`` to decide about become points of the grid of ``points`` candidate
    means, so that the decision there is as sharp as it can be. Whether every value is 0 or 1
    (``binary``) must be known beforehand; with ``total`` it gives the sharper bound for a number of
    passes.

    Values must come in an order that was drawn before any result was known, see
    :func:`consumption_order`.

    Examples
    --------
    >>> sequence = ConfidenceSequence(0.95, thresholds=[0.5])
    >>> sequence.decide(0.5)
    'open'
    >>> _ = sequence.update_many([1.0] * 12)
    >>> sequence.decide(0.5)
    'shown'
    """

    def __init__(
        self,
        level: float = 0.95,
        *,
        sides: Sides = "two-sided",
        total: int | None = None,
        thresholds: Iterable[float] = (),
        points: int = 400,
        binary: bool = False,
    ) -> None:
        if not 0 < level < 1:
            raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
        if sides not in ("two-sided", "lower", "upper"):
            raise InvalidValue(f"sides must be two-sided, lower or upper, not {sides!r}.")
        if total is not None and total < 1:
            raise InvalidValue(f"total must be at least 1 task, not {total}.")
        self.level = level
        self.sides = sides
        self.total = total
        self._grid = np.unique([*np.linspace(0, 1, points + 1), *_neighbors(thresholds)])
        self._binary = binary
        threshold = (2 if sides == "two-sided" else 1) / (1 - level)

        def player(candidates: FloatArray) -> _Game | _Urn:
            return _Urn(total, threshold) if binary and total else _Game(candidates, threshold)

        self._above = None if sides == "upper" else player(self._grid)
        self._below = None if sides == "lower" else player(1 - self._grid)
        self._count = 0
        self._sum = 0.0
        self._low, self._high = 0.0, 1.0
        self._crossed = False

    @property
    def bounds(self) -> Bounds:
        """The interval so far."""
        mean = self._sum / self._count if self._count else None
        return Bounds(self._low, self._high, self.level, self._count, mean, self._crossed)

    def update(self, value: float) -> Bounds:
        """Take the value of the next task and return the interval."""
        self._take(self._checked(value))
        return self.bounds

    def update_many(self, values: Iterable[float]) -> Bounds:
        """Take several values, one after the other, and return the interval after the last."""
        for value in values:
            self._take(self._checked(value))
        return self.bounds

    def update_round(self, values: Iterable[float]) -> Bounds:
        """Take one value of each of the same tasks and return the interval after the last.

        For tasks that stay the same and differ in their means, which is a question without
        ``total``. The factors of a round are independent, so the expected product is the product of
        1 - f + f mean_i / m, and that is at most 1 when the average of the means is m (geometric
        against arithmetic mean). Inside a round it can be larger: the tasks still to come may be
        the difficult ones.
        """
        if self.total is not None:
            raise InvalidValue(
                "rounds are for tasks that are attempted again; a total is for tasks that are "
                "drawn once."
            )
        for value in values:  # only the ends after the whole round count
            ends = self._play(self._checked(value))
        self._narrow(*ends)
        return self.bounds

    def decide(self, threshold: float, *, strict: bool = False) -> Decision:
        """Whether the mean is at least the threshold: shown, refuted, or open.

        With ``strict`` the question is whether it is above the threshold.
        """
        if strict:
            is_shown = self._low > threshold + _ROUNDING
            is_refuted = self._high <= threshold + _ROUNDING
        else:
            is_shown = self._low >= threshold - _ROUNDING
            is_refuted = self._high < threshold - _ROUNDING
        return "shown" if is_shown else "refuted" if is_refuted else "open"

    def _checked(self, value: float) -> float:
        if not 0 <= value <= 1:
            raise InvalidValue(
                f"value {self._count + 1} is {value:g}; a task's value lies between 0 and 1.",
                hint="Scale a difference d of two agents to (d + 1) / 2.",
            )
        if self._binary and value not in (0, 1):
            raise InvalidValue(
                f"value {self._count + 1} is {value:g}; a binary sequence takes 0 and 1.",
                hint="Leave binary=True out where a task can be solved in part.",
            )
        if self._count == self.total:
            raise InvalidValue(
                f"all {self.total:,} tasks of the suite are already in.",
                hint="Leave total out when the question is about new tasks.",
            )
        return float(value)

    def _take(self, value: float) -> None:
        self._narrow(*self._play(value))

    def _play(self, value: float) -> tuple[float, float]:
        """Bet on a value; returns the ends of what is not refuted after it."""
        mean = self._unseen_mean()
        low = 0.0 if self._above is None else self._above.play(value, mean)
        high = 1.0 if self._below is None else 1 - self._below.play(1 - value, 1 - mean)
        self._sum += value
        self._count += 1
        return low, high

    def _narrow(self, low: float, high: float) -> None:
        """Narrow the interval to these ends, unless nothing would be left of it."""
        # Capital may fall again, but what it once refuted stays refuted: all looks count.
        low, high = max(self._low, low), min(self._high, high)
        certain_low, certain_high = self._certain()
        if self._count == self.total:
            low, high = certain_low, certain_high
        low, high = max(low, certain_low), min(high, certain_high)
        if low > high + _ROUNDING:
            self._crossed = True
        else:
            self._low, self._high = low, high

    def _unseen_mean(self) -> FloatArray:
        """The mean of the unseen tasks, were the mean m: m itself for new tasks."""
        if self.total is None:
            return self._grid
        return (self.total * self._grid - self._sum) / (self.total - self._count)

    def _certain(self) -> tuple[float, float]:
        """Certain bounds for a fixed suite: unseen tasks lie between 0 and 1."""
        if self.total is None:
            return 0.0, 1.0
        lowest = self._sum / self.total
        highest = lowest + (self.total - self._count) / self.total
        return (
            0.0 if self._above is None else lowest,
            1.0 if self._below is None else highest,
        )


class _Game:
    """A player that bets that values are above each candidate mean."""

    def __init__(self, candidates: FloatArray, enough: float) -> None:
        self._candidates = candidates
        self._enough = enough
        self._keep = (1 - _FRACTIONS)[:, None]
        self._stake = _FRACTIONS[:, None]
        self._capital = np.full((len(_FRACTIONS), len(candidates)), 1 / len(_FRACTIONS))

    def play(self, value: float, mean: FloatArray) -> float:
        """Bet on one value and return the largest candidate that is refuted, or 0."""
        # A mean of 0 is beaten by any value above it, and met by 0. A negative one cannot be.
        ratio = np.full(len(mean), _RICH if value > 0 else 1.0)
        np.divide(value, mean, out=ratio, where=mean > 0)
        ratio[mean < -_ROUNDING] = _RICH
        with np.errstate(over="ignore"):
            self._capital *= self._keep + self._stake * ratio
        np.minimum(self._capital, _RICH, out=self._capital)
        is_refuted = self._capital.sum(axis=0) >= self._enough
        return float(self._candidates[is_refuted].max(initial=0.0))


class _Urn:
    """A player that bets that a suite of N tasks holds more than K passes, for every K.

    Only for values 0 and 1. The bound is the smallest K that is not refuted, as a share of N.
    """

    def __init__(self, total: int, enough: float) -> None:
        self._total = total
        self._enough = float(np.log(enough))
        self._candidates = np.arange(total)  # a suite of N passes has none above it to bet on
        every = np.arange(total + 1)
        self._prior_start = float(special.betaln(_PRIOR, _PRIOR))
        self._prior_tail = _log_tail(_log_beta_binomial(every, total, _PRIOR, _PRIOR))[1:]
        self._seen = self._passed = 0
        self._refuted = 0

    def play(self, value: float, _mean: FloatArray) -> float:
        """Take one value and return the smallest share of passes that is not refuted."""
        self._seen += 1
        self._passed += int(value)
        seen, passed, total = self._seen, self._passed, self._total
        failed = seen - passed
        # Probability of the observed values, in their order, under K passes in the suite.
        k = np.arange(max(self._refuted, passed), min(total, total - failed + 1))
        if len(k) == 0 or seen == total:
            return passed / total if seen == total else self._refuted / total
        # In logs: factorials overflow from 171 on.
        under = (
            special.gammaln(k + 1)
            - special.gammaln(k - passed + 1)
            + special.gammaln(total - k + 1)
            - special.gammaln(total - k - failed + 1)
            - special.gammaln(total + 1)
            + special.gammaln(total - seen + 1)
        )
        # Under the prior given K' > K: its share of the mixture, before and after.
        rest = np.arange(total - seen + 1)
        a, b = _PRIOR + passed, _PRIOR + failed
        after = _log_tail(_log_beta_binomial(rest, total - seen, a, b))
        mixture = float(special.betaln(a, b)) - self._prior_start
        above = np.full(len(k), -np.inf)
        is_inner = k - passed + 1 < len(after)
        above[is_inner] = after[k[is_inner] - passed + 1]
        wealth = mixture + above - self._prior_tail[k] - under
        survivors = np.flatnonzero(wealth < self._enough)
        first = int(k[survivors[0]]) if len(survivors) else int(k[-1]) + 1
        # Fewer passes than were seen are impossible; that is not a bet.
        self._refuted = max(self._refuted, first if first > passed else 0)
        return self._refuted / total


def _log_beta_binomial(k: IntArray, n: int, a: float, b: float) -> FloatArray:
    """Log chance of k passes in n tasks whose common rate follows Beta(a, b)."""
    return np.asarray(
        log_choose(n, k) + special.betaln(k + a, n - k + b) - special.betaln(a, b), np.float64
    )


def _log_tail(log_chances: FloatArray) -> FloatArray:
    """Log of the sums from each entry to the last."""
    tail: FloatArray = np.logaddexp.accumulate(log_chances[::-1])[::-1]
    return tail


def _neighbors(thresholds: Iterable[float]) -> list[float]:
    """The thresholds and points next to them: "above" and "at least" differ by a point."""
    points = (float(value) + step for value in thresholds for step in (-_BESIDE, 0.0, _BESIDE))
    return [point for point in points if 0 <= point <= 1]


def consumption_order(tasks: Iterable[str], seed: int | str) -> tuple[str, ...]:
    """The order in which tasks are used, drawn before any of them has run.

    Tasks must not be used in the order in which they finish. Tasks that finish first are not like
    the rest: an agent that gives up slowly and succeeds fast makes a suite of .50 read .68 early
    on. A task that is next in this order and still running is waited for.

    The order depends on the ids and the seed alone, not on the order in which the ids are given.
    Each run needs a seed of its own, such as its id: a fixed one repeats the same unlucky beginning
    in every build.

    Examples
    --------
    >>> consumption_order(["a", "b", "c"], seed=1) == consumption_order(["c", "b", "a"], seed=1)
    True
    """

    def sort_key(task: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{task}".encode()).digest()

    ids = list(tasks)
    if len(set(ids)) != len(ids):
        raise InvalidValue("task ids must be unique to be put in an order.")
    return tuple(sorted(ids, key=sort_key))
