"""The same task under both agents: pairs, and the difference of a metric on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import some
from passhat.errors import Hint, NotComparable, TooFewAttempts, UnequalAttempts
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.clusters import shared_labels
from passhat.stats.estimate.metrics import Metric, OrderedMetric
from passhat.stats.estimate.task_values import FilledOutcomes, values_by_task
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.outcomes.cells import same_names

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """The difference of a metric on each paired task, B minus A."""

    values: FloatArray
    """Under the missing policy; ``bound`` counts missing attempts as failed on both sides."""
    lowest: FloatArray
    highest: FloatArray
    """``lowest``, ``highest``: the extremes under ``bound``: A's missing attempts passed and B's
    failed, and the other way round. Equal to ``values`` when nothing is missing or the policy is
    another.
    """
    value_a: float
    value_b: float
    """``value_a``, ``value_b``: the metric of each side over the paired tasks."""
    open: int
    """Missing attempts on both sides that the extremes differ by."""
    equal_n: bool = True
    """Whether both sides have the same number of attempts at every task. If not, a difference is as
    likely to be +d as -d under no rate at all, and no sign-flip test holds.
    """
    clusters: tuple[str, ...] | None = None
    """The cluster of every task, where tasks are not independent."""
    highest_a: float | None = None
    highest_b: float | None = None
    """``highest_a``, ``highest_b``: the two values had the missing attempts of the side passed;
    ``None`` where none is missing.
    """

    @property
    def lift(self) -> float:
        """The mean difference."""
        return mean_lift(self.values)

    @property
    def fills(self) -> tuple[FloatArray, ...]:
        """The differences for every way to fill in missing attempts that matters."""
        return (self.values, self.lowest, self.highest) if self.open else (self.values,)


def mean_lift(differences: FloatArray) -> float:
    """The mean of differences per task; a rounding error around zero is zero.

    0.1 + 0.2 - 0.3 is 3e-17 in floats, and a lift of that size must not read as "above".
    """
    mean = float(differences.mean())
    return 0.0 if abs(mean) < _ROUNDING else mean


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """The tasks that two runs share, in one order, and those that only one of them has."""

    a: Outcomes
    b: Outcomes
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    names: tuple[str, str] = ("A", "B")
    clusters: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.a)

    def take(self, keep: IntArray) -> Pairing:
        """Some of the paired tasks."""
        clusters = None
        if self.clusters is not None:
            clusters = tuple(np.array(self.clusters, dtype=object)[keep].tolist())
        return replace(self, a=self.a.take(keep), b=self.b.take(keep), clusters=clusters)

    def with_clusters(self, column: str | None) -> Pairing:
        """The same pairs, with the clusters that a label names."""
        if column is None:
            return self
        return replace(self, clusters=shared_labels((self.a, self.b), column))

    def supporting(
        self, metrics: Sequence[Metric], policy: MissingPolicy, *, drop_short: bool
    ) -> Pairing:
        """The pairs that support every metric, or an error that names the short tasks."""
        largest = max(metrics, key=lambda word: word.k)
        if not drop_short:
            for name, side in zip(self.names, (self.a, self.b), strict=True):
                _refuse_short(name, side, largest, policy.completion)
            return self
        fewest = np.minimum(
            self.a.counts(policy.completion)[0], self.b.counts(policy.completion)[0]
        )
        keep = np.flatnonzero(fewest >= largest.k)
        if len(keep) == 0:
            raise NotComparable(
                f"no paired task has the {largest.k:,} attempts on both sides that {largest} "
                "needs.",
                hint=f"Ask for a smaller k: up to {int(fewest.max())} can be asked of some tasks.",
            )
        return self if len(keep) == len(self) else self.take(keep)

    def differences(self, metric: Metric, policy: MissingPolicy) -> Differences:
        """B minus A on every paired task."""
        if isinstance(metric, OrderedMetric) and metric.needs_equal_n:
            _refuse_unequal(metric, self, policy.completion)
        a = values_by_task(self.a, metric, policy.completion)
        b = values_by_task(self.b, metric, policy.completion)
        lowest = highest = b - a
        missing = self.a.total_missing + self.b.total_missing
        highest_a = highest_b = None
        if policy is MissingPolicy.BOUND and missing:
            best_a, best_b = (
                values_by_task(side, metric, Completion.AS_PASSED) for side in (self.a, self.b)
            )
            lowest, highest = b - best_a, best_b - a
            highest_a = float(best_a.mean()) if self.a.total_missing else None
            highest_b = float(best_b.mean()) if self.b.total_missing else None
        return Differences(
            b - a,
            lowest,
            highest,
            float(a.mean()),
            float(b.mean()),
            missing if policy is MissingPolicy.BOUND else 0,
            self.equal_attempts(policy.completion),
            self.clusters,
            highest_a,
            highest_b,
        )

    @property
    def unjudged(self) -> tuple[str, ...]:
        """The names of the runs without a single verdict on the paired tasks."""
        sides = zip(self.names, (self.a, self.b), strict=True)
        return tuple(name for name, side in sides if not int(side.n.sum()))

    def equal_attempts(self, completion: Completion = Completion.AS_FAILED) -> bool:
        """Whether both sides made the same number of attempts at every paired task."""
        a, b = (side.counts(completion)[0] for side in (self.a, self.b))
        return bool((a == b).all())


def pair(a: Outcomes, b: Outcomes, names: tuple[str, str] = ("A", "B")) -> Pairing:
    """Pair two runs by task id; refuse when they share none."""
    if same_names(a.tasks, b.tasks):
        return Pairing(a, b, (), (), names)
    shared = common_tasks((a, b), names)
    in_a, in_b = set(a.tasks), set(b.tasks)
    return Pairing(
        restrict(a, shared),
        restrict(b, shared),
        tuple(task for task in a.tasks if task not in in_b),
        tuple(task for task in b.tasks if task not in in_a),
        names,
    )


def common_tasks(sides: Sequence[Outcomes], names: Sequence[str]) -> tuple[str, ...]:
    """The tasks that all of them have, in the order of the first; refuse when there are none."""
    others = [set(side.tasks) for side in sides[1:]]
    shared = tuple(task for task in sides[0].tasks if all(task in other for other in others))
    if not shared:
        task_counts = "; ".join(
            f"{name} has {some(list(side.tasks[:3]), 3)}"
            for name, side in zip(names, sides, strict=True)
        )
        raise NotComparable(
            f"no task is in {'both' if len(sides) == 2 else 'all of the'} runs, so nothing can be "
            f"compared: {task_counts}.",
            hint=Hint(
                "Task ids must be written alike. If a column was taken for the wrong thing, say "
                "which one holds them: {columns}. If they are different tasks of one pool, compare "
                "them without pairs: {unpaired}",
                columns={"task": "COLUMN"},
                unpaired=True,
            ),
        )
    return shared


def restrict(outcomes: Outcomes, tasks: Sequence[str]) -> Outcomes:
    """The outcomes of these tasks, in this order."""
    place = {task: index for index, task in enumerate(outcomes.tasks)}
    return outcomes.take(np.array([place[task] for task in tasks], np.int64))


def _refuse_short(name: str, side: Outcomes, metric: Metric, completion: Completion) -> None:
    try:
        FilledOutcomes(side, completion).supporting(metric, drop_short=False)
    except TooFewAttempts as error:
        raise TooFewAttempts(
            f"{name}: {error.message}",
            k=error.k,
            largest_k=error.largest_k,
            tasks=error.tasks,
            hint=error.hint or "",
        ) from None


def _refuse_unequal(metric: Metric, pairing: Pairing, completion: Completion) -> None:
    sizes = {int(n) for side in (pairing.a, pairing.b) for n in side.counts(completion)[0]}
    if len(sizes) > 1:
        raise UnequalAttempts(
            f"{metric} needs the same number of attempts on every task of both runs; here they go "
            f"from {min(sizes)} to {max(sizes)}, and more attempts mean more chances for a streak.",
            hint=f"Ask for first^{metric.k}, which looks at the first {metric.k} attempts only.",
        )
