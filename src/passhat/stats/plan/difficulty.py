"""How tasks differ: the distribution of success rates behind a pilot.

Two things make the average over a suite uncertain. *Between tasks*: other tasks would have been
easier or harder, and only more tasks help. *Within tasks*: the same tasks would have come out
differently, and more attempts help as well. With p the success rate of a task, g(p) what the metric
is worth there and u(n, C) its estimate from C passes in n attempts,

    between   = Var over tasks of g(p)
    within(n) = average over tasks of Var(u(n, C) given p)

and the average over T tasks has the variance (between + within(n)) / T. Both follow for any n once
the distribution of p is known, which is the purpose of a pilot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from passhat._display import counted, percent
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray, IntArray, log_binomial, special
from passhat.stats.clusters import task_clusters
from passhat.stats.compare.pairing import common_tasks, restrict
from passhat.stats.compare.prospects import fit_weights, rate_grid
from passhat.stats.estimate.estimator import missing_effect
from passhat.stats.estimate.metrics import CountMetric, PassHat, ScoreMetric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes, Scores

_POINTS = 200
_MOST_ATTEMPTS = 2_000
_ALIKE = 1e-6
"""An ICC this near to 0 or 1 is one: the Beta distribution there is too narrow to invert."""

_MOST_DRAWN = 32
_TASK_DRAWS = 200
_MOST_TASKS_DRAWN = 60
"""Attempts, draws and tasks with which the variance within tasks of scores is found."""

_REDRAWS = 400
_MOST_WEIGHTS = 5_000_000
_FEWEST_REDRAWN = 3
"""Tasks of a pilot that are redrawn; one or two say nothing about their spread."""
_SEED = 20240712


@dataclass(frozen=True, slots=True)
class Components:
    """The two parts of the variance of one task's value."""

    between: float
    within: float

    @property
    def total(self) -> float:
        return self.between + self.within


PlannedMetric = CountMetric | ScoreMetric
"""What a plan can be made for."""


class TaskSpread(ABC):
    """How far the values of tasks differ, and those of attempts at one task."""

    __slots__ = ()

    @abstractmethod
    def mean(self, metric: PlannedMetric) -> float:
        """The metric's mean over tasks like these."""

    @abstractmethod
    def components(self, metric: PlannedMetric, n: int) -> Components:
        """The variance of one task's value from n attempts, in its two parts."""

    def lift_variance(
        self, pilot: Outcomes, other: TaskSpread, against: Outcomes, metric: PlannedMetric
    ) -> float:
        """How far the lift truly differs from task to task.

        The attempts of the two agents are independent, so their noise does not enter the
        covariance of their values: Var(a) + Var(b) - 2 Cov(a, b) of the true values.
        """
        places = {task: i for i, task in enumerate(against.tasks)}
        pairs = [(i, places[task]) for i, task in enumerate(pilot.tasks) if task in places]
        if len(pairs) < _FEWEST_REDRAWN:
            raise InvalidValue(
                f"the two pilots share {counted(len(pairs), 'task')}; at least 3 are needed."
            )
        rows, other_rows = (np.array(side) for side in zip(*pairs, strict=True))
        x = values_by_task(pilot.take(rows), metric, Completion.AS_FAILED)
        y = values_by_task(against.take(other_rows), metric, Completion.AS_FAILED)
        covariance = float(np.cov(x, y)[0, 1])
        k = metric.k
        spread = self.components(metric, k).between + other.components(metric, k).between
        return max(spread - 2 * covariance, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Difficulty(TaskSpread):
    """Success rates and how often each occurs among tasks."""

    rates: FloatArray
    weights: FloatArray

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> Difficulty:
        """The distribution of success rates under which the pilot is most likely.

        No shape is assumed (:func:`~passhat.stats.compare.prospects.fit_weights`). Attempts
        without a verdict say nothing about difficulty and are left out.
        """
        cells = outcomes.histogram(Completion.DROPPED)
        is_scored = cells.n > 0
        n, c, tasks = cells.n[is_scored], cells.c[is_scored], cells.tasks[is_scored]
        if len(n) == 0 or int(n.max()) < 2:
            raise InvalidValue(
                "the pilot has at most one scored attempt per task, so what differs between tasks "
                "and what differs between attempts cannot be told apart.",
                hint=Hint(
                    "Make two or more attempts per task, or plan without a pilot, as with {mean} "
                    "{icc}.",
                    mean=0.7,
                    icc=0.4,
                ),
            )
        return cls(rate_grid(), fit_weights(n, c, tasks))

    @classmethod
    def from_mean(cls, mean: float, icc: float) -> Difficulty:
        """A Beta distribution with this mean, and this share of the variance between tasks.

        ``icc`` is ICC(1) of 0/1 attempts: 0 when all tasks are equally hard, 1 when each task
        either always passes or always fails. Beta(a, b) has ICC 1 / (a + b + 1).
        """
        if not 0 < mean < 1:
            raise InvalidValue(f"mean must lie between 0 and 1, not {mean:g}.")
        if not 0 <= icc <= 1:
            raise InvalidValue(f"icc must lie from 0 to 1, not {icc:g}.")
        if icc < _ALIKE:
            return cls(np.array([mean]), np.array([1.0]))
        if icc > 1 - _ALIKE:
            return cls(np.array([0.0, 1.0]), np.array([1 - mean, mean]))
        size = 1 / icc - 1
        middles = (np.arange(_POINTS) + 0.5) / _POINTS
        rates = special.betaincinv(mean * size, (1 - mean) * size, middles)
        return cls(np.asarray(rates, np.float64), np.full(_POINTS, 1 / _POINTS))

    def mean(self, metric: PlannedMetric) -> float:
        return float(self.weights @ metric.value_at_rate(self.rates))

    def components(self, metric: PlannedMetric, n: int) -> Components:
        metric = metric.verdict_metric if isinstance(metric, ScoreMetric) else metric
        if n < metric.k:
            need_text = counted(metric.k, "attempt")
            raise InvalidValue(f"{metric} needs at least {need_text} per task, not {n}.")
        values = metric.value_at_rate(self.rates)
        mean = float(self.weights @ values)
        between = float(self.weights @ (values - mean) ** 2)
        # Many more attempts divide the variance within tasks, and need no table of all counts.
        size = min(n, max(_MOST_ATTEMPTS, 8 * metric.k))
        value = metric.values(np.full(size + 1, size), np.arange(size + 1))
        chance = binomial_chances(size, self.rates)
        within = float(self.weights @ np.maximum(chance @ value**2 - (chance @ value) ** 2, 0))
        return Components(between, within * size / n)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSpread(TaskSpread):
    """The scores of a pilot, task by task."""

    scores: Scores
    _variances: dict[tuple[ScoreMetric, int], float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> ScoreSpread:
        """The scores of all attempts that have one; two or more at every task."""
        if int(outcomes.n.min()) < 2:
            raise InvalidValue(
                "the pilot has a task with fewer than two scored attempts, so what differs between "
                "tasks and what differs between attempts cannot be told apart.",
                hint="Make two or more attempts per task.",
            )
        return cls(outcomes.graded(Completion.DROPPED))

    def mean(self, metric: PlannedMetric) -> float:
        return float(self._values(metric).mean())

    def _values(self, metric: PlannedMetric) -> FloatArray:
        assert isinstance(metric, ScoreMetric)
        fewest = int(np.diff(self.scores.starts).min())
        if fewest < metric.k:
            raise InvalidValue(
                f"{metric} needs a pilot with {counted(metric.k, 'attempt')} at every task; one "
                f"has {fewest}.",
                hint=f"Plan for {metric.with_k(fewest)}, or make more attempts.",
            )
        return metric.values(self.scores)

    def components(self, metric: PlannedMetric, n: int) -> Components:
        """The variance of a task's value from n attempts; attempts are drawn from those it has.

        One imaginary task of unknown value is added, as for verdicts: a pilot whose tasks are all
        alike does not prove that others are.
        """
        values = self._values(metric)
        tasks, mean = len(values), float(values.mean())
        sizes = np.diff(self.scores.starts)
        distinct, counts = np.unique(sizes, return_counts=True)
        noises = [self._within(metric, size) for size in distinct.tolist()]
        noise = float(np.average(noises, weights=counts))
        spread = max(float(values.var()) * tasks / max(tasks - 1, 1) - noise, 0.0)
        between = (tasks * spread + 1 / 12 + (mean - 0.5) ** 2) / (tasks + 1)
        return Components(between, self._within(metric, n))

    def _within(self, metric: PlannedMetric, n: int) -> float:
        """The mean variance of a task's value from n attempts, by drawing them."""
        assert isinstance(metric, ScoreMetric)
        size = min(n, max(8 * metric.k, _MOST_DRAWN))
        if (metric, size) not in self._variances:
            self._variances[metric, size] = self._draw_variance(metric, size)
        return self._variances[metric, size] * size / n

    def _draw_variance(self, metric: ScoreMetric, size: int) -> float:
        rng = np.random.default_rng(_SEED)
        places = np.linspace(0, len(self.scores.starts) - 2, _MOST_TASKS_DRAWN).round()
        variances = []
        for place in np.unique(places.astype(np.int64)).tolist():
            row = self.scores.of(place)
            rows = rng.choice(row, (_TASK_DRAWS, size))
            starts = np.arange(0, rows.size + 1, size)
            drawn = metric.values(Scores(rows.reshape(-1), starts))
            # Draws from m attempts have (m - 1) / m of the variance of the attempts.
            variances.append(float(drawn.var()) * len(row) / (len(row) - 1))
        return float(np.mean(variances))


def pilot_basis(outcomes: Outcomes, metric: PlannedMetric) -> tuple[str, ...]:
    """The assumptions that a plan from a pilot rests on."""
    return (
        *missing_note(outcomes, metric),
        f"difficulty as in the pilot ({outcomes}), plus one imaginary task of unknown difficulty",
    )


def find_spread(
    outcomes: Outcomes | None,
    metric: PlannedMetric,
    mean: float | None = None,
    icc: float | None = None,
) -> tuple[TaskSpread, tuple[str, ...]]:
    """How tasks differ, from a pilot or from what is stated, and the assumptions behind it."""
    if outcomes is not None:
        if mean is not None or icc is not None:
            raise InvalidValue(
                "mean and icc are assumptions for when there is no pilot; here there is one."
            )
        if isinstance(metric, ScoreMetric) and outcomes.scores is not None:
            return ScoreSpread.from_outcomes(outcomes), pilot_basis(outcomes, metric)
        return Difficulty.from_outcomes(outcomes), pilot_basis(outcomes, metric)
    if mean is None or icc is None:
        raise InvalidValue(
            "without a pilot the plan needs the mean and the ICC you expect.",
            hint=Hint(
                "For example {mean} {icc}: 70% of attempts pass, and 40% of the variance "
                "between attempts is the task's.",
                mean=0.7,
                icc=0.4,
            ),
        )
    basis = f"no pilot: {percent(mean, 0)} of attempts pass, ICC {icc:g}"
    return Difficulty.from_mean(mean, icc), (f"{basis}, success rates follow a Beta",)


def _redraw_means(values: FloatArray) -> FloatArray:
    """Means with Dirichlet weights, in blocks: all weights of 125,000 tasks would take 400 MB."""
    rng = np.random.default_rng(_SEED)
    block = min(_REDRAWS, max(1, _MOST_WEIGHTS // len(values)))
    starts = range(0, _REDRAWS, block)
    sizes = [min(block, _REDRAWS - start) for start in starts]
    return np.concatenate([rng.dirichlet(np.ones(len(values)), size) @ values for size in sizes])


VarianceByAttempts = Callable[[int], Components]
"""The variance of one task's value (or difference) as a function of attempts per task."""


@dataclass(frozen=True, slots=True)
class PilotVariance:
    """The basis of a plan: the variance between tasks, and its uncertainty.

    ``factors`` are those on the variance, one for each redraw of the pilot's tasks; ``design`` is
    the factor that clusters of tasks add to the variance of an average over tasks.
    """

    variance: VarianceByAttempts
    factors: FloatArray = field(default_factory=lambda: np.ones(1))
    design: float = 1.0

    @classmethod
    def redraw(
        cls,
        variance: VarianceByAttempts,
        pilot: Outcomes | None,
        against: Outcomes | None,
        metric: PlannedMetric,
        cluster: str | None,
    ) -> PilotVariance:
        """Draw the pilot's tasks, or clusters of them, again with Dirichlet weights."""
        if pilot is None:
            return cls(variance)
        values, labels = pilot_values(pilot, against, metric, cluster)
        deviations = values - values.mean()
        member: IntArray = np.arange(len(values))
        if labels is not None:
            _, member = np.unique(np.asarray(labels), return_inverse=True)
            if int(member.max()) == 0:
                raise InvalidValue(
                    f"all tasks share one {cluster}, so nothing is known about others.",
                    hint=Hint(
                        "Leave {cluster} out to plan for tasks of this one cluster.", cluster=None
                    ),
                )
        sums = np.bincount(member, weights=deviations)
        if np.ptp(values) == 0:
            # Nothing is known of how alike the tasks of a cluster are: take them for copies.
            sizes = np.bincount(member)
            return cls(variance, design=float(sizes @ sizes) / len(values))
        design = max(1.0, float(sums @ sums) / float(deviations @ deviations))
        mean_square = float((sums**2).mean())
        if len(values) < _FEWEST_REDRAWN or mean_square == 0:  # 0: clusters that are all alike
            return cls(variance, design=design)
        # One unseen task (or cluster) as far from the mean as any that was seen, and T / (T - 1).
        squares = np.append(sums**2, float((sums**2).max()))
        variances = _redraw_means(squares) * len(sums) / max(len(sums) - 1, 1)
        return cls(variance, np.asarray(variances / mean_square, np.float64), design)

    @property
    def has_redraws(self) -> bool:
        """Whether the pilot's tasks say how uncertain the variance is."""
        return len(self.factors) > 1

    def total(self, n: int, quantile: float | None = None) -> float:
        """The variance of one task's value from n attempts, at a quantile of the redraws."""
        factor = 1.0 if quantile is None else max(float(np.quantile(self.factors, quantile)), 0.0)
        return factor * self.design * self.variance(n).total


def median_attempts(outcomes: Outcomes) -> int:
    """Scored attempts per task: the median."""
    return int(np.median(outcomes.n))


def missing_note(pilot: Outcomes, metric: PlannedMetric) -> Iterator[str]:
    """Yield the cost of missing attempts: bounds that more attempts do not bring together."""
    ends = missing_effect(pilot, metric)
    low, high = ends["as failed"], ends["as passed"]
    if pilot.total_missing == 0 or low is None or high is None or pilot.attempts == 0:
        return
    share = f"{pilot.total_missing:,} of {counted(pilot.attempts, 'attempt')}"
    yield (
        f"{share} of the pilot are missing, and the plan takes none to be: if as large a share "
        f"goes missing again, the ends of {metric} lie {100 * (high - low):.1f} points further "
        "apart, however many attempts are made"
    )


def pilot_values(
    pilot: Outcomes, against: Outcomes | None, metric: PlannedMetric, cluster: str | None
) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Values task by task, or differences of two pilots, and the clusters of these tasks.

    Of the tasks with k attempts; where they are too few, the pass rate represents the metric.
    """
    sides = [pilot]
    if against is not None:
        shared = common_tasks((pilot, against), ("the pilot", "the other pilot"))
        sides = [restrict(side, shared) for side in (pilot, against)]
    attempts = np.min([side.counts(Completion.AS_FAILED)[0] for side in sides], axis=0)
    if int((attempts >= metric.k).sum()) < _FEWEST_REDRAWN:
        metric = PassHat(1)
    sides = [side.take(attempts >= metric.k) for side in sides]
    clusters = task_clusters(sides[0], cluster)
    first, *second = (values_by_task(side, metric, Completion.AS_FAILED) for side in sides)
    return second[0] - first if second else first, None if clusters is None else clusters.labels


def binomial_chances(n: int, rates: FloatArray) -> FloatArray:
    """Chance of 0 to n passes in n attempts, one row per rate."""
    c = np.arange(n + 1)
    return np.asarray(np.exp(log_binomial(n, c, rates[:, None])), np.float64)
