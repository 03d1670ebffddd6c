"""How many attempts or tasks would settle an open question, and in how many cases.

A bound comes closer to its value with the square root of the number of attempts (about these
tasks) or tasks (about new ones); but the value moves as well, and an extrapolation that holds it
still is right in two of three cases only. So the value is drawn again and again from rates that
fit the data, the bounds are put around it at their shorter reach, and the share of draws in which
the question is settled is the chance that is printed. Where no affordable number has a chance,
there is no advice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import BoolArray, FloatArray, IntArray, log_binomial, special
from passhat.stats.estimate.metrics import CountMetric, Metric, ScoreMetric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes
from passhat.stats.terms import Population

_DRAWS = 200
_MOST_CELLS = 1_000_000
"""Draws times tasks; more would take longer than the report they belong to."""
_GOOD = 0.8
_FAIR = 0.5
_STEPS = tuple(2 ** (step / 2) for step in range(1, 9))
"""The sizes tried, as multiples of today's: up to 16 times."""
_TIES = 0.25
_TYPICAL_LIFT = 0.1
"""Before the data one pair in four is taken for a tie, and other lifts for some 10 points."""
_FEWEST_TASKS = 3
"""One or two tasks say nothing about how tasks differ."""
_MOST_ATTEMPTS = 2_000
_SEED = 20_261_117


@dataclass(frozen=True, slots=True)
class Prospect(Plain):
    """A size at which a question is settled, with the chance of that in simulated cases."""

    WRITTEN = ("kind", "total", "now", "chance", "sentence")

    kind: Literal["attempts", "tasks"]
    total: int
    now: int
    chance: float

    @property
    def more(self) -> int:
        return self.total - self.now

    @property
    def cases(self) -> str:
        """``8 of 10 cases``; rounded down, so that no more is promised."""
        return f"{int(10 * self.chance + 1e-9)} of 10 cases"

    def text(self, where: str = "") -> str:
        """The size and its chance, as the rest of a sentence that begins with "with"."""
        what = "attempts per task" if self.kind == "attempts" else "tasks like these"
        return f"with {self.total:,} {what}{where} ({self.now:,} now) it is settled in {self.cases}"

    @property
    def sentence(self) -> str:
        text = self.text()
        return f"{text[0].upper()}{text[1:]}."


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the bounds lie from the value."""

    below: float
    above: float

    def shrink(self, growth: float) -> Reach:
        """The reach at ``growth`` times today's size."""
        return Reach(self.below / growth**0.5, self.above / growth**0.5)


Settles = Callable[[FloatArray, Reach], BoolArray]
"""Whether the question is settled at each of some values, with bounds at this reach."""


def foresee_attempts(
    sides: Sequence[Outcomes],
    metric: Metric,
    reach: Reach,
    settles: Settles,
    *,
    ceiling: float = 1.0,
) -> Prospect | None:
    """Attempts per task in all sides that settle a question about these tasks.

    The value is the metric of one run, or of the second run minus the first. ``ceiling`` is the
    chance that any number settles it at all.
    """
    now = int(min(side.counts(Completion.AS_FAILED)[0].min() for side in sides))
    # A metric of the first attempts, or of streaks, means something else with more of them.
    if now < metric.k or not isinstance(metric, CountMetric):
        return None
    rates = _draw_rates(sides)
    if rates is None:
        return None
    rng = np.random.default_rng(_SEED)

    def draw_values(growth: float) -> FloatArray:
        n = round(now * growth)
        worth = metric.values(np.full(n + 1, n), np.arange(n + 1))
        means = [worth[rng.binomial(n, side)].mean(axis=1) for side in rates]
        return np.asarray(means[-1] - means[0] if len(means) > 1 else means[0], np.float64)

    steps = [step for step in _STEPS if now < round(now * step) <= _MOST_ATTEMPTS]

    def chance(step: float) -> float:
        return float(settles(draw_values(step), reach.shrink(step)).mean())

    found = _smallest(steps, chance, ceiling)
    return found and Prospect("attempts", round(now * found[0]), now, found[1])


def foresee_tasks(
    sides: Sequence[Outcomes],
    metric: Metric,
    reach: Reach,
    settles: Settles,
    clusters: Sequence[str] | None = None,
    *,
    ceiling: float = 1.0,
) -> Prospect | None:
    """Tasks, with as many attempts at each as now, that settle a question about new tasks."""
    now = len(sides[0])
    population = _draw_population(sides, metric, clusters)
    if population is None:
        return None
    means, spread, scores = population

    def chance(step: float) -> float:
        drawn = np.clip(means + scores * spread / np.sqrt(step * now), -1.0, 1.0)
        return float(settles(drawn, reach.shrink(step)).mean())

    found = _smallest(_STEPS, chance, ceiling)
    return found and Prospect("tasks", int(np.ceil(now * found[0])), now, found[1])


def draw_estimates(
    sides: Sequence[Outcomes],
    metric: Metric,
    population: Population,
    clusters: Sequence[str] | None = None,
) -> FloatArray | None:
    """Values that runs of today's size would show, around the truth that fits the data best.

    About these tasks only the attempts are drawn again, about new tasks the tasks as well.
    """
    if population is Population.NEW_TASKS:
        parts = _draw_population(sides, metric, clusters)
        if parts is None:
            return None
        _, spread, scores = parts
        return np.asarray(scores * spread / np.sqrt(len(sides[0])), np.float64)
    attempts = int(min(side.counts(Completion.AS_FAILED)[0].min() for side in sides))
    twin = metric.as_count_metric(attempts) if attempts >= metric.k else None
    rates = None if twin is None else _draw_rates(sides)
    if twin is None or rates is None:
        return None
    noise = sum((_noise(twin, attempts, side) for side in rates), np.zeros_like(rates[0]))
    scores = np.random.default_rng(_SEED).standard_normal(len(noise))
    return np.asarray(scores * np.sqrt(noise.sum(axis=1)) / len(sides[0]), np.float64)


def _draw_population(
    sides: Sequence[Outcomes], metric: Metric, clusters: Sequence[str] | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Means over all tasks like these, the spread of one task, and a normal score, per draw."""
    attempts = int(min(side.counts(Completion.AS_FAILED)[0].min() for side in sides))
    groups = len(sides[0]) if clusters is None else len(set(clusters))
    if isinstance(metric, ScoreMetric):
        return None if groups < _FEWEST_TASKS else _draw_scored(sides, metric, clusters)
    twin = metric.as_count_metric(attempts) if attempts >= metric.k else None
    rates = None if twin is None or groups < _FEWEST_TASKS else _draw_rates(sides)
    if twin is None or rates is None:
        return None
    rng = np.random.default_rng(_SEED)
    worths = [twin.value_at_rate(side) for side in rates]
    values = worths[-1] - worths[0] if len(worths) > 1 else worths[0]
    noise = sum((_noise(twin, attempts, side) for side in rates), np.zeros_like(values))
    weights = _draw_weights(rng, len(values), len(sides[0]), clusters)
    means = (weights * values).sum(axis=1)
    spread = np.sqrt(np.maximum((weights * (values**2 + noise)).sum(axis=1) - means**2, 0.0))
    return means, spread, rng.standard_normal(len(means))


def _draw_scored(
    sides: Sequence[Outcomes], metric: ScoreMetric, clusters: Sequence[str] | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """The same for a metric of scores, from the values of the tasks as they are.

    They differ by chance as well as by task, so that the sizes are a little on the safe side.
    """
    draws = min(_DRAWS, _MOST_CELLS // max(len(sides[0]), 1))
    if draws < 20 or any(int(side.n.min()) < metric.k for side in sides):
        return None
    rng = np.random.default_rng(_SEED)
    worths = [values_by_task(side, metric) for side in sides]
    values = worths[-1] - worths[0] if len(worths) > 1 else worths[0]
    weights = _draw_weights(rng, draws, len(values), clusters)
    means = weights @ values
    spread = np.sqrt(np.maximum(weights @ values**2 - means**2, 0.0))
    return means, spread, rng.standard_normal(draws)


def _smallest(
    steps: Sequence[float], chance: Callable[[float], float], ceiling: float
) -> tuple[float, float] | None:
    """The first step with a good chance, else the last one; none where that is not fair."""
    if ceiling < _FAIR or not steps:
        return None
    for step in steps:
        share = chance(step)
        if share >= _GOOD:
            break
    return (step, share * ceiling) if share * ceiling >= _FAIR else None


def no_tie_chance(lift: float, deviation: float) -> float:
    """The chance that two runs differ at all, given their lift and its standard deviation.

    No number of attempts shows a tie to be a difference, and data that look like a tie often come
    from one. The ratio of the likelihoods of a tie and of a lift with a normal prior.
    """
    if deviation <= 0:
        return 0.0 if lift == 0 else 1.0
    spread = (_TYPICAL_LIFT / deviation) ** 2
    square = (lift / deviation) ** 2
    ratio = np.sqrt(1 + spread) * np.exp(-square / 2 * spread / (1 + spread))
    return float(1 / (1 + ratio * _TIES / (1 - _TIES)))


def _draw_rates(sides: Sequence[Outcomes]) -> list[FloatArray] | None:
    draws = min(_DRAWS, _MOST_CELLS // max(len(sides[0]), 1))
    if draws < 20 or any(not side.scored for side in sides):
        return None
    rng = np.random.default_rng(_SEED)
    return [FittedRates.of(side).draw(rng, draws) for side in sides]


def _draw_weights(
    rng: np.random.Generator, draws: int, tasks: int, clusters: Sequence[str] | None
) -> FloatArray:
    """Other tasks like these: how often each of them stands for one (Rubin's bootstrap)."""
    if clusters is None:
        return rng.dirichlet(np.ones(tasks), draws)
    names, member = np.unique(np.asarray(clusters), return_inverse=True)
    weights = rng.dirichlet(np.ones(len(names)), draws)[:, member]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)


def _noise(metric: CountMetric, n: int, rates: FloatArray) -> FloatArray:
    """The variance of a task's estimate from n attempts, for each rate."""
    counts = np.arange(n + 1)
    worth = metric.values(np.full(n + 1, n), counts)
    grid = np.linspace(0, 1, 101)
    chances = np.exp(log_binomial(n, counts, grid[:, None]))
    variance = chances @ worth**2 - (chances @ worth) ** 2
    return np.interp(rates, grid, np.maximum(variance, 0.0))


# -- success rates that fit the counts of a run ----------------------------------------------------

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
    logs = special.xlogy(c[:, None], rates) + special.xlog1py((n - c)[:, None], -rates)
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
    """For each task the rates that its own counts and those of all tasks leave possible."""

    cumulated: FloatArray
    """Cells x rates: the cumulated posterior of the grid's rates, one row for each (n, c) that
    occurs.
    """
    cell: IntArray
    """The row of each task."""

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
