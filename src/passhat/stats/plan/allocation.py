r"""Allocation of attempts: n per task, fixed before a run by an earlier run of the same tasks.

With u(n, C) the estimate of a metric from C passes in n attempts at a task, the mean over T tasks
has the standard error :math:`\sqrt{\sum_i Var(u(n_i, C) \mid p_i)} / T`. Tasks that always or never
pass have no variance; attempts at them are spent for nothing.

The rates p_i are not known. Each task has the posterior that its passes in the earlier run leave of
the difficulty distribution of all tasks (:class:`Difficulty`: the most likely one, plus one
imaginary task of any rate), so that 8 of 8 is pulled to what tasks with 8 of 8 usually are, and
what is minimized is the expected variance. u is a U-statistic, whose variance is a sum of terms
1 / C(n, j) (Hoeffding 1948): convex in n, so that giving attempts to the largest decrease per
attempt, one step after the other, is optimal.

n comes from *other* data, so every estimate stays unbiased. A task's n says something about its
rate, though, and intervals about these tasks treat tasks with different n apart.

References
----------
J. Neyman (1934), On the two different aspects of the representative method, J. R. Statist. Soc. 97.
W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, Ann. Math.
    Statist. 19.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare.prospects import cell_likelihood
from passhat.stats.compare.these_tasks import lift_on_these_tasks
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Histogram, Outcomes, Run
from passhat.stats.outcomes.cells import cells_of
from passhat.stats.plan.difficulty import (
    Difficulty,
    binomial_chances,
    median_attempts,
)
from passhat.stats.terms import Terms

_LADDER = (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of attempts, in multiples of the smallest. Few different n keep intervals narrow, since
each has rates of its own. Against every whole number they cost 1 to 3% of the saving."""
_FLOORS = (1, 1.5)
"""Smallest n that are tried, in the same multiples: tasks that look settled need attempts, too,
before an interval can say so."""
_MOST_TIMES = 8
"""By default no task gets more than so many times the uniform number."""
_DRAWS = 2
_SEED = 20240712
_WORTH = 0.03
"""Less than 3% of the variance is not worth unequal n."""
_FEW_EARLIER = 4
_WORTH_OFFERING = 0.2
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The run that n per task was taken from."""

    name: str = ""
    """The name in reports."""
    id: str = ""
    started: str = ""
    """``id``, ``started``: the run in its store, and when it began; empty for a file."""
    suite: str | None = None
    suite_fingerprint: str | None = None
    """``suite``, ``suite_fingerprint``: its suite, as recorded in its protocol."""
    digest: str = ""
    """A fingerprint of its tasks and counts."""
    attempts: int = 0
    """The median of scored attempts per task."""

    @classmethod
    def of(cls, source: Run | Outcomes) -> EarlierRun:
        """The recorded facts of a run."""
        outcomes = source.outcomes if isinstance(source, Run) else source
        digest, attempts = counts_digest(outcomes), median_attempts(outcomes)
        if not isinstance(source, Run):
            return cls(digest=digest, attempts=attempts)
        return cls(
            digest=digest,
            attempts=attempts,
            name=source.name,
            id=source.id,
            started=source.started,
            suite=source.protocol.suite,
            suite_fingerprint=source.protocol.suite_fingerprint,
        )

    def __str__(self) -> str:
        return f"run {self.id}" if self.id else self.name or "an earlier run"


def counts_digest(outcomes: Outcomes) -> str:
    """A fingerprint of tasks with their counts, independent of their order."""
    rows = zip(
        outcomes.tasks,
        outcomes.n.tolist(),
        outcomes.c.tolist(),
        outcomes.missing.tolist(),
        strict=True,
    )
    return hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Level(Plain):
    """The tasks that get the same number of attempts."""

    WRITTEN = ("attempts", "tasks", ("total_attempts", "total"), "passed_before")

    attempts: int
    tasks: int
    passed_before: tuple[float, float]
    """The lowest and the highest share of attempts that passed in the earlier run."""

    @property
    def total(self) -> int:
        return self.attempts * self.tasks


@dataclass(frozen=True, slots=True)
class Allocation(Plain):
    """Attempts per task, fixed before the run by an earlier run."""

    WRITTEN = (
        *("metric", ("total_attempts", "total"), ("uniform_total_attempts", "uniform_total")),
        *("saving", "level", "half_width", "uniform_half_width", "compared_total", "others"),
        *("earlier", "table", "notes", ("attempts", "by_task")),
    )

    metric: str
    """The metric it was made for."""
    tasks: tuple[str, ...]
    attempts: tuple[int, ...]
    """``tasks``, ``attempts``: the tasks of the earlier run, and the attempts at each."""
    others: int
    """Attempts at tasks that the earlier run does not have: the uniform number."""
    earlier: EarlierRun
    """Where the rates come from."""
    level: float
    """Confidence of the half-widths."""
    half_width: float
    uniform_half_width: float
    """``half_width``, ``uniform_half_width``: expected half-width of the interval about these
    tasks, of this design and of ``compared_total`` attempts spread evenly: the mean over runs drawn
    from the posterior.
    """
    uniform_total: int
    """Attempts that equal n would need for the same standard error."""
    compared_total: int = 0
    """The attempts of the uniform design that it is compared with."""
    table: tuple[Level, ...] = ()
    """Where the attempts go."""
    notes: tuple[str, ...] = ()
    """Further remarks."""

    @property
    def total(self) -> int:
        """Attempts over all tasks."""
        return sum(self.attempts)

    @property
    def is_uniform(self) -> bool:
        """Whether all tasks get about the same: unequal n would gain nothing."""
        return max(self.attempts) - min(self.attempts) <= 1

    @property
    def saving(self) -> float:
        """The share of the uniform design's attempts that are saved at the same standard error."""
        return 0.0 if self.is_uniform else max(0.0, 1 - self.total / self.uniform_total)

    @property
    def by_task(self) -> dict[str, int]:
        return dict(zip(self.tasks, self.attempts, strict=True))

    @property
    def range_text(self) -> str:
        """Such as ``4 to 24``."""
        low, high = min(self.attempts), max(self.attempts)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    @property
    def sentence(self) -> str:
        """The design in one sentence."""
        tasks = counted(len(self.tasks), "task")
        if self.is_uniform:
            return f"{self.total:,} attempts at {tasks}: {self.range_text} each."
        return (
            f"{self.total:,} attempts at {tasks}, {self.range_text} each: as certain about "
            f"{self.metric} on these tasks as {self.uniform_total:,} spread evenly "
            f"({percent(self.saving, 0)} saved)."
        )

    def remarks(self) -> Iterator[str]:
        """Yield what goes with the design: its gain, tasks that are new, notes."""
        if not self.is_uniform:
            yield (
                f"expected half-width of {self.metric} at {100 * self.level:g}%: "
                f"{self.half_width:.3f}; {self.compared_total:,} attempts spread evenly: "
                f"{self.uniform_half_width:.3f}"
            )
        yield f"tasks that {self.earlier} does not have: {counted(self.others, 'attempt')} each"
        yield from self.notes

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Allocation:
        """The part of a plan's JSON that a run needs; the table is not read back.

        Raises
        ------
        InvalidValue
            Something is not as ``to_dict`` writes it.
        """
        attempts, others, earlier = data.get("attempts"), data.get("others"), data.get("earlier")
        if not isinstance(attempts, dict) or not attempts:
            raise InvalidValue("the plan names no task: 'attempts' must map task ids to numbers.")
        for task, n in [*attempts.items(), ("others", others)]:
            if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 10**6:
                raise InvalidValue(
                    f"the plan gives {task!r} {n!r} attempts; a whole number from 1 is needed."
                )
        if not isinstance(earlier, dict):
            raise InvalidValue("the plan does not say which run it was made from ('earlier').")
        entries = {
            name: earlier[name] for name in EarlierRun.__slots__ if earlier.get(name) is not None
        }
        return cls(
            metric=str(data.get("metric", "")),
            tasks=tuple(attempts),
            attempts=tuple(attempts.values()),
            others=others if isinstance(others, int) else 1,
            earlier=EarlierRun(**entries),
            level=_number(data.get("level"), 0.95),
            half_width=_number(data.get("half_width"), math.nan),
            uniform_half_width=_number(data.get("uniform_half_width"), math.nan),
            uniform_total=int(_number(data.get("uniform_total_attempts"), sum(attempts.values()))),
        )


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def share_of_settled(outcomes: Outcomes) -> float:
    """The share of scored attempts at tasks that passed always or never (two or more attempts)."""
    is_settled = ((outcomes.c == 0) | (outcomes.c == outcomes.n)) & (outcomes.n > 1)
    return float(outcomes.n[is_settled].sum() / max(int(outcomes.n.sum()), 1))


@dataclass(frozen=True, slots=True)
class Offer:
    """The saving that a baseline's own attempts suggest."""

    settled: float
    """The share of them at tasks that passed always or never."""
    needed: float
    """The share of them that gives the same standard error where they decide."""

    @classmethod
    def of(cls, baseline: Run | Outcomes, metric: CountMetric) -> Offer | None:
        """The offer; ``None`` where the baseline is too small, or little would be gained."""
        outcomes = baseline.outcomes if isinstance(baseline, Run) else baseline
        if int(outcomes.n.min()) < max(metric.k, _FEW_EARLIER):
            return None
        share = share_of_settled(outcomes)
        if share < _WORTH_OFFERING:
            return None
        saving = Allocator(outcomes, metric).best_saving(int(outcomes.n.sum()))
        return None if saving < _WORTH_OFFERING else cls(share, 1 - saving)

    def __str__(self) -> str:
        return (
            f"{percent(self.settled, 0)} of the baseline's attempts are at settled tasks, which "
            "passed always or never: the same standard error for about "
            f"{percent(self.needed, 0)} of the attempts"
        )


class Allocator:
    """Designs for the tasks of an earlier run, and their expected precision.

    Attempts of the earlier run without a verdict say nothing about a rate and are left out.
    ``most`` is the most attempts at one task; 8 times the uniform number by default.
    """

    def __init__(
        self,
        source: Run | Outcomes,
        metric: CountMetric,
        level: float = 0.95,
        most: int | None = None,
        difficulty: Difficulty | None = None,
    ) -> None:
        self.outcomes = source.outcomes if isinstance(source, Run) else source
        self.earlier = EarlierRun.of(source)
        self.metric = metric
        self.level = level
        self.least = max(metric.k, 2)
        if most is not None and most < self.least:
            raise InvalidValue(
                f"{metric} needs at least {self.least} attempts per task, and most is {most}.",
                hint=Hint("Give {most} or more, or leave it out.", most=self.least),
            )
        self._most = most
        difficulty = difficulty or Difficulty.from_outcomes(self.outcomes)
        n, c = self.outcomes.counts(Completion.DROPPED)
        self._cells = cells_of(n, c)
        self._member = self._cells.places(n, c)
        joint = cell_likelihood(self._cells.n, self._cells.c, difficulty.rates) * difficulty.weights
        self._posterior = joint / joint.sum(axis=1, keepdims=True)
        self._rates = difficulty.rates
        self._variances: dict[int, FloatArray] = {}

    @property
    def count(self) -> int:
        return len(self.outcomes)

    # -- variance --------------------------------------------------------------------------------

    def variance(self, n: int) -> FloatArray:
        """Expected variance of the estimate from n attempts, for every cell of the earlier run."""
        if n not in self._variances:
            u = self.metric.values(np.full(n + 1, n), np.arange(n + 1))
            chance = binomial_chances(n, self._rates)
            spread = np.maximum(chance @ u**2 - (chance @ u) ** 2, 0.0)
            self._variances[n] = self._posterior @ spread
        return self._variances[n]

    def noise(self, attempts: IntArray) -> float:
        """The expected standard error of a design."""
        table = {n: self.variance(n) for n in np.unique(attempts).tolist()}
        total = sum(float(v[self._member[attempts == n]].sum()) for n, v in table.items())
        return math.sqrt(total) / self.count

    def uniform(self, total: int) -> IntArray:
        """The same attempts at every task; a remainder goes to the first tasks."""
        share, remainder = divmod(total, self.count)
        return np.where(np.arange(self.count) < remainder, share + 1, share).astype(np.int64)

    def uniform_total(self, noise: float) -> int:
        """Attempts at which equal n has this standard error, between whole n in proportion."""
        target = (noise * self.count) ** 2

        def spread(n: int) -> float:
            return float(self.variance(n) @ self._cells.tasks)

        low, high = self.least, 2 * self.least
        if spread(low) <= target:
            return low * self.count
        while spread(high) > target and high < _LARGEST:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if spread(middle) <= target else (middle, high)
        drop = spread(low) - spread(high)
        part = min((spread(low) - target) / drop, 1.0) if drop > 0 else 1.0
        return round((low + part) * self.count)

    # -- designs ---------------------------------------------------------------------------------

    def allocate(self, total: int, floor: int) -> IntArray:
        """At most ``total`` attempts by the largest decrease of variance per attempt."""
        levels = [n for n in self._ladder(self._limit(total)) if n >= floor] or [floor]
        attempts = np.full(self.count, levels[0], np.int64)
        left = total - levels[0] * self.count
        if len(levels) == 1 or left <= 0:
            return attempts
        values = np.stack([self.variance(n) for n in levels], axis=1)
        steps = np.diff(levels)
        # Convex up to rounding: a step never gains more per attempt than the one before it.
        gains = np.minimum.accumulate(-np.diff(values, axis=1) / steps, axis=1)
        members = [np.flatnonzero(self._member == cell) for cell in range(len(values))]
        is_full = np.zeros(len(values), bool)
        for place in np.argsort(-gains, axis=None, kind="stable").tolist():
            cell, step = divmod(place, len(steps))
            if gains[cell, step] <= 0 or left <= 0:
                break
            if is_full[cell]:
                continue
            tasks = members[cell][: left // int(steps[step])]
            attempts[tasks] = levels[step + 1]
            left -= len(tasks) * int(steps[step])
            is_full[cell] = len(tasks) < len(members[cell])
        return attempts

    def _ladder(self, most: int) -> list[int]:
        rungs = {math.ceil(self.least * step) for step in _LADDER}
        return sorted({n for n in rungs if n < most} | {most})

    def _limit(self, total: int) -> int:
        """The most attempts at one task."""
        uniform = max(self.least, total // self.count)
        return self._most if self._most is not None else _MOST_TIMES * uniform

    def half_width(self, attempts: IntArray) -> float:
        """The mean half-width of the interval about these tasks, over runs from the posterior."""
        rng = np.random.default_rng(_SEED)
        terms = Terms(level=self.level)
        widths = []
        for _ in range(_DRAWS):
            counts = self._draw_counts(attempts, rng)
            low, high = TheseTasks(counts, terms).interval(self.metric) or (0.0, 1.0)
            widths.append((high - low) / 2)
        return float(np.mean(widths))

    def lift_half_width(self, attempts: IntArray, tail: float) -> float:
        """The same of the lift on these tasks between two runs of this design by one agent."""
        rng = np.random.default_rng(_SEED)
        widths = []
        for _ in range(_DRAWS):
            a, b = (self._draw_counts(attempts, rng) for _ in range(2))
            ends = lift_on_these_tasks(a, b, self.metric, tail)
            widths.append((ends.high - ends.low) / 2)
        return float(np.mean(widths))

    def _draw_counts(self, attempts: IntArray, rng: np.random.Generator) -> Histogram:
        """The counts of one run with this design, rates and attempts drawn."""
        passes = np.zeros(self.count, np.int64)
        for cell, posterior in enumerate(self._posterior):
            tasks = np.flatnonzero(self._member == cell)
            rates = rng.choice(self._rates, len(tasks), p=posterior / posterior.sum())
            passes[tasks] = rng.binomial(attempts[tasks], rates)
        return cells_of(attempts, passes)

    def floors(self, total: int) -> list[int]:
        """Smallest n whose designs have a standard error below that of equal n."""
        fewest = self.least * self.count
        if total < fewest:
            raise InvalidValue(
                f"{self.metric} needs at least {self.least} attempts at each of "
                f"{counted(self.count, 'task')}, {fewest:,} in all; the budget is {total:,}.",
                hint=f"Give a budget of {fewest} or more, or ask for a smaller k.",
            )
        worth = (1 - _WORTH) * self.noise(self.uniform(total)) ** 2
        floors = [math.ceil(self.least * step) for step in _FLOORS]
        return [
            n
            for n in floors
            if n * self.count < total and self.noise(self.allocate(total, n)) ** 2 < worth
        ]

    def best_saving(self, total: int) -> float:
        """The share of attempts saved at the same standard error; 0 where nothing is gained."""
        noises = [self.noise(self.allocate(total, floor)) for floor in self.floors(total)]
        return max(0.0, 1 - total / self.uniform_total(min(noises))) if noises else 0.0

    def allocation(self, total: int) -> Allocation:
        """The best design for a number of attempts; equal n where unequal n would gain nothing."""
        designs = [self.allocate(total, floor) for floor in self.floors(total)]
        best = min(designs, key=self.half_width, default=self.uniform(total))
        return self.summarize(best, total)

    def summarize(self, attempts: IntArray, total: int) -> Allocation:
        """A design with its expected precision, next to ``total`` attempts spread evenly."""
        allocation = Allocation(
            metric=self.metric.name,
            tasks=tuple(self.outcomes.tasks),
            attempts=tuple(attempts.tolist()),
            others=max(self.least, round(int(attempts.sum()) / self.count)),
            earlier=self.earlier,
            level=self.level,
            half_width=self.half_width(attempts),
            uniform_half_width=self.half_width(self.uniform(max(total, self.least * self.count))),
            compared_total=total,
            uniform_total=max(self.uniform_total(self.noise(attempts)), int(attempts.sum())),
            table=self._levels(attempts),
        )
        return replace(allocation, notes=tuple(self._notes(allocation)))

    def _levels(self, attempts: IntArray) -> tuple[Level, ...]:
        share = self.outcomes.c / np.maximum(self.outcomes.n, 1)
        levels = []
        for n in np.unique(attempts).tolist():
            shares = share[attempts == n]
            levels.append(Level(n, len(shares), (float(shares.min()), float(shares.max()))))
        return tuple(levels)

    def _notes(self, allocation: Allocation) -> Iterator[str]:
        if allocation.is_uniform:
            yield "equal attempts: unequal ones would save less than 3% of the variance"
        elif (
            allocation.half_width > allocation.uniform_half_width
            and allocation.total > 0.95 * allocation.compared_total
        ):
            yield (
                "the estimate varies less, but with so few tasks its interval is not narrower: "
                "few attempts cannot prove that a task is settled"
            )
        if self.earlier.attempts < _FEW_EARLIER:
            yield (
                f"the earlier run has {counted(self.earlier.attempts, 'attempt')} per task, which "
                f"tell little about single tasks: the gain is small; {_FEW_EARLIER} or more are "
                "better"
            )
        yield (
            "rates are the earlier run's, shrunk to the difficulty of all its tasks; if the agent "
            "changed since, intervals hold all the same and are only wider"
        )
