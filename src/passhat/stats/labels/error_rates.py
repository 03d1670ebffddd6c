r"""Correct a metric by the judge's error rates, where errors strike attempts of all tasks alike.

With a = P(judge passes | wrong) and b = P(judge fails | right), the same for all tasks, a task of
true rate p is judged at the rate q = a + (1 - a - b) p. So p = A + B q with A = -a / (1 - a - b)
and B = 1 / (1 - a - b), and

.. math:: \text{pass}^k = \sum_j \binom kj A^{k-j} B^j \, \text{pass}^j(\text{judged}) ,

an unbiased combination of what is computed from the judge's verdicts anyway. Likewise 1 - pass@k
with A' = 1 - A - B and the chance that all of j attempts are judged failed.

a and b come from labeled attempts, drawn at random from those that the judge passed and from those
that it failed, each kind in a share of its own. The ends join three parts by their squares (the
method of variance estimates recovery): what the attempts leave open at the estimated a and b, and
what each end of a and of b moves the estimate by.

References
----------
W. J. Rogan and B. Gladen (1978), Estimating prevalence from the results of a screening test,
    American Journal of Epidemiology 107 (the correction of a mean).
G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures: a general
    approach, Statistics in Medicine 27.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from passhat._display import counted, percent
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.counting import all_of_k
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat, Rate
from passhat.stats.labels.judge_error import Strata
from passhat.stats.outcomes.labels import LabelCounts

MOST_ERROR = 0.5
"""Where a and b together may reach this, the judge tells right from wrong too badly."""
FEWEST_LABELS = 8
"""Labeled attempts of each kind, right and wrong, below which a rate is a guess: where a correction
was not refused for its width, those that were left covered .89 with 50 labels."""
_SEED, _DRAWS = 20_251_119, 8_000


@dataclass(frozen=True, slots=True)
class ErrorPair:
    """The chances a of a false pass and b of a false failure."""

    a: float
    b: float

    @property
    def line(self) -> tuple[float, float]:
        """A and B of p = A + B q."""
        return -self.a / (1 - self.a - self.b), 1 / (1 - self.a - self.b)


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Estimated error rates with the ends of their intervals."""

    best: ErrorPair
    low: ErrorPair
    high: ErrorPair


def estimate_errors(strata: Strata, labels: LabelCounts, level: float) -> ErrorRates:
    """a and b from labels of both kinds; refuses labels that do not tell them."""
    for kind, there, labeled in (
        ("passed", strata.passed, strata.labeled_passed),
        ("failed", strata.failed, strata.labeled_failed),
    ):
        if there and not labeled:
            raise InvalidValue(
                f"no attempt that the judge {kind} is labeled, so its error there is unknown.",
                hint="Label some of them, or whole tasks.",
            )
    passed_weight, failed_weight = strata.weights
    wrong_passed = _Part(labels.wrong_passed_total, strata.labeled_passed, passed_weight)
    right_passed = _Part(labels.right_passed_total, strata.labeled_passed, passed_weight)
    wrong_failed = _Part(labels.wrong_failed_total, strata.labeled_failed, failed_weight)
    right_failed = _Part(labels.right_failed_total, strata.labeled_failed, failed_weight)
    a = _bound_share(wrong_passed, wrong_failed, (1 - level) / 2)
    b = _bound_share(right_failed, right_passed, (1 - level) / 2)
    return ErrorRates(*(ErrorPair(x, y) for x, y in zip(a, b, strict=True)))


@dataclass(frozen=True, slots=True)
class _Part:
    """Labeled attempts of one kind among those of one verdict, and what each stands for."""

    count: int
    size: int
    weight: float

    @property
    def total(self) -> float:
        return self.weight * self.count

    def draw(self, rng: np.random.Generator, *, up: bool) -> FloatArray:
        """Totals whose quantiles are Clopper and Pearson's upper or lower ends."""
        a, b = self.count + up, self.size - self.count + (not up)
        if not a or not b:
            return np.full(_DRAWS, float(bool(a)) * self.weight * self.size)
        return self.weight * self.size * rng.beta(a, b, _DRAWS)


def _bound_share(errors: _Part, others: _Part, tail: float) -> tuple[float, float, float]:
    """The share of errors, with ends from draws of both parts at their worst."""
    rng = np.random.default_rng(_SEED)
    total = errors.total + others.total
    share = errors.total / total if total else 0.0

    def quantile(tail: float, *, up: bool) -> float:
        first, second = errors.draw(rng, up=up), others.draw(rng, up=not up)
        total = first + second
        # Nothing of the kind is labeled: the share can be anything.
        shares = np.divide(first, total, out=np.full(_DRAWS, float(up)), where=total > 0)
        return float(np.quantile(shares, tail))

    return share, min(quantile(tail, up=False), share), max(quantile(1 - tail, up=True), share)


def refuse_poor_judge(rates: ErrorRates, labels: LabelCounts) -> None:
    """Refuse to correct where a and b together may be too large, and say which labels are few."""
    right, wrong = int(labels.right.sum()), int(labels.wrong.sum())
    few, count = ("wrong", wrong) if wrong <= right else ("right", right)
    if count < FEWEST_LABELS:
        raise InvalidValue(
            f"{counted(count, f'{few} attempt')} {'is' if count == 1 else 'are'} labeled, and at "
            f"least {FEWEST_LABELS} right and {FEWEST_LABELS} wrong ones are needed to know how "
            "often the judge errs at each.",
            hint="Label more of the attempts that the judge failed, or label whole tasks, which "
            "needs no such number.",
        )
    if rates.high.a + rates.high.b < MOST_ERROR:
        return
    raise InvalidValue(
        f"the judge may pass {percent(rates.high.a, 0)} of wrong attempts and fail "
        f"{percent(rates.high.b, 0)} of right ones: together {MOST_ERROR:.0%} or more, too near to "
        "a coin to be corrected by its error rates.",
        hint=f"Only {counted(count, f'{few} attempt')} {'is' if count == 1 else 'are'} labeled: "
        "label more of them, or label whole tasks, which assumes nothing about the errors.",
    )


def corrected_values(metric: CountMetric, n: IntArray, c: IntArray, pair: ErrorPair) -> FloatArray:
    """The corrected value of the metric at c judged passes in n attempts; unbiased."""
    shift, slope = pair.line
    if isinstance(metric, PassAt):
        return 1 - _powers(n, n - c, metric.k, 1 - shift - slope, slope)
    return _powers(n, c, metric.k, shift, slope)


def _powers(n: IntArray, c: IntArray, k: int, shift: float, slope: float) -> FloatArray:
    """The unbiased value of (shift + slope q)^k; q^j is C(c, j) / C(n, j)."""
    total = np.full(len(c), shift**k)
    for j in range(1, k + 1):
        total += comb(k, j) * shift ** (k - j) * slope**j * all_of_k(n, c, j)
    return total


def target_of(metric: CountMetric, pair: ErrorPair) -> Callable[[FloatArray], FloatArray]:
    """The metric at the true rate that belongs to a judged rate."""
    shift, slope = pair.line
    k = metric.k
    if isinstance(metric, PassAt):
        return lambda q: 1 - (1 - shift - slope * q) ** k
    return lambda q: (shift + slope * q) ** k


def refuse_unsupported(metric: CountMetric) -> None:
    """Refuse a metric for which the formula is not known."""
    if not isinstance(metric, PassAt | PassHat | Rate):
        raise InvalidValue(
            f"{metric} cannot be corrected by error rates.",
            hint="Ask for pass^k, pass@k or rate, or label whole tasks.",
        )


def join_ends(value: float, parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The ends of a value whose parts move it to these ends, each alone, by their squares."""
    down = up = 0.0
    for low, high in parts:
        down += max(value - low, 0.0) ** 2
        up += max(high - value, 0.0) ** 2
    return value - sqrt(down), value + sqrt(up)
