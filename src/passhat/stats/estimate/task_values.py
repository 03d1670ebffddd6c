"""From outcomes to the values of a metric by task, with missing attempts filled in one way.

Unordered metrics are evaluated once per cell of the histogram, ordered ones once per task.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from passhat._display import counted, some
from passhat.errors import Hint, InvalidValue, OrderUnknown, TooFewAttempts, UnequalAttempts
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.metrics import CountMetric, Metric, OrderedMetric, ScoreMetric
from passhat.stats.outcomes import Completion, Histogram, Outcomes
from passhat.stats.outcomes.order import Scores, Sequences


@dataclass(frozen=True, slots=True, eq=False)
class TaskValues:
    """The different values a metric takes, and how many tasks have each."""

    values: FloatArray
    tasks: IntArray

    @property
    def mean(self) -> float:
        """The macro average: every task counts once, however many attempts it had."""
        # Not a matrix product: its last bits depend on the processor.
        return float((self.values * self.tasks).sum()) / float(self.tasks.sum())


_MANY = 1_000_000
"""Of more, readers keep only counts."""
_DIGITS = 12  # the last bits of a sum depend on the order of its terms


@dataclass(slots=True)
class FilledOutcomes:
    """Outcomes with missing attempts filled in; the histogram is counted only once."""

    outcomes: Outcomes
    completion: Completion
    _histogram: Histogram | None = field(default=None, init=False)
    _sequences: Sequences | None = field(default=None, init=False)
    _scores: Scores | None = field(default=None, init=False)

    @property
    def histogram(self) -> Histogram:
        if self._histogram is None:
            self._histogram = self.outcomes.histogram(self.completion)
        return self._histogram

    @property
    def attempts(self) -> int:
        """Attempts over all tasks."""
        return int(self.histogram.n @ self.histogram.tasks)

    @property
    def sequences(self) -> Sequences:
        if self._sequences is None:
            if self.outcomes.order is None:
                hint = (
                    "Give the attempts a whole number each in a column 'trial', or ask for "
                    "pass@k or pass^k, which need no order."
                )
                counted = Hint(
                    f"{hint} Of more than a million attempts in a store or Parquet file only "
                    "counts are kept, unless read with {one_by_one}.",
                    one_by_one=True,
                )
                raise OrderUnknown(
                    "the order of the attempts is not known, and this metric needs it.",
                    hint=counted if self.outcomes.unscored or self.attempts > _MANY else hint,
                )
            self._sequences = self.outcomes.order.completed(self.completion)
        return self._sequences

    @property
    def scores(self) -> Scores:
        """The scores of all attempts; refused where the source has scores that were not kept."""
        if self.outcomes.scores is None and self.outcomes.unscored:
            raise InvalidValue(
                f"the scores were not kept: {self.outcomes.unscored.reason}.",
                hint=self.outcomes.unscored.remedy.then(" Or ask for pass@k and pass^k."),
            )
        if self._scores is None:
            self._scores = self.outcomes.graded(self.completion)
        return self._scores

    def per_task(self, metric: Metric) -> FloatArray:
        """The value of a metric for every task, in the order of the tasks."""
        if isinstance(metric, ScoreMetric):
            return np.round(metric.values(self.scores), _DIGITS)
        if isinstance(metric, OrderedMetric):
            return metric.values(self.sequences)
        if not isinstance(metric, CountMetric):
            raise InvalidValue(
                f"{metric} has no value on a single task: it is made of two averages over all "
                "tasks.",
                hint=f"Ask for what it is made of: pass^{metric.k} and pass^1.",
            )
        cells = self.histogram
        places = cells.places(*self.outcomes.counts(self.completion))
        return metric.values(cells.n, cells.c)[places]

    def supporting(self, metric: Metric, *, drop_short: bool) -> FilledOutcomes:
        """The outcomes that support the metric: all tasks, or an error.

        With ``drop_short`` the tasks that have fewer than k attempts are left out instead.
        """
        if int(self.histogram.n[0]) >= metric.k:
            return self
        n, _ = self.outcomes.counts(self.completion)
        short = n < metric.k
        if drop_short and not short.all():
            return FilledOutcomes(self.outcomes.take(~short), self.completion)
        raise _too_few(self.outcomes, metric, n, self.completion)

    def of(self, metric: Metric) -> TaskValues:
        """The values of a metric that is an average over tasks."""
        if isinstance(metric, CountMetric):
            cells = self.histogram
            return TaskValues(metric.values(cells.n, cells.c), cells.tasks)
        if isinstance(metric, ScoreMetric):
            exact = metric.values(self.scores)
            _, first, tasks = np.unique(
                np.round(exact, _DIGITS), return_index=True, return_counts=True
            )
            return TaskValues(exact[first], tasks)
        if isinstance(metric, OrderedMetric):
            sequences = self.sequences
            if metric.needs_equal_n:
                _refuse_unequal(metric, sequences.lengths)
            values, tasks = np.unique(metric.values(sequences), return_counts=True)
            return TaskValues(values, tasks)
        raise InvalidValue(f"{metric} is not an average over tasks.")


def values_by_task(
    outcomes: Outcomes, metric: Metric, completion: Completion = Completion.AS_FAILED
) -> FloatArray:
    """An unbiased value per task, in order; refuses a task with too few attempts.

    For looking at tasks one by one, to pair them or to take them in a drawn order. Where an
    average is enough, :class:`FilledOutcomes` needs only the histogram.
    """
    return (
        FilledOutcomes(outcomes, completion).supporting(metric, drop_short=False).per_task(metric)
    )


def verdict_twin(metric: Metric, *sides: Outcomes) -> Metric:
    """The metric of verdicts that a metric of scores is, where every score is its verdict.

    Any other metric is itself. The twin has sharper intervals and tests, so that ``mean`` and
    ``pass^1`` of verdicts have to share them to be one number.
    """
    if isinstance(metric, ScoreMetric) and all(side.scores_are_verdicts for side in sides):
        return metric.verdict_metric
    return metric


def gap_notes(outcomes: Outcomes, metric: Metric) -> tuple[str, ...]:
    """Notes on gaps between the attempts that an ordered metric uses."""
    if outcomes.order is None or not isinstance(metric, OrderedMetric):
        return ()
    tasks = outcomes.order.gaps_before(None if metric.needs_equal_n else metric.k)
    if not tasks:
        return ()
    return (
        f"{counted(tasks, 'task')} with a gap in the numbers of the attempts: {metric} takes those "
        "that are there, in their order",
    )


def _too_few(
    outcomes: Outcomes, metric: Metric, n: IntArray, completion: Completion
) -> TooFewAttempts:
    short = np.flatnonzero(n < metric.k)
    examples = [f"{outcomes.tasks[i]} has {n[i]}" for i in short[:5].tolist()]
    rest_text = f" and {len(short) - 5:,} more" if len(short) > 5 else ""
    kind = "scored attempt" if completion is Completion.DROPPED else "attempt"
    largest = int(n.min())
    ways = []
    if largest >= 1:
        ways.append(f"ask for k up to {largest}")
    if len(short) < len(outcomes):
        ways.append("leave the short tasks out ({drop_short})")
    ways.append("make more attempts")
    if isinstance(metric, CountMetric):
        ways.append(f"forecast {metric}")
    return TooFewAttempts(
        f"{metric} needs {counted(metric.k, kind)} on every task; {counted(len(short), 'task')} of "
        f"{len(outcomes):,} {'has' if len(short) == 1 else 'have'} fewer: "
        f"{some(examples)}{rest_text}. What {counted(metric.k, 'attempt')} would do there was not "
        "observed.",
        k=metric.k,
        largest_k=largest,
        tasks=[outcomes.tasks[i] for i in short.tolist()],
        hint=Hint(f"You can {', or '.join(ways)}.", drop_short=True),
    )


def _refuse_unequal(metric: Metric, lengths: IntArray) -> None:
    low, high = int(lengths.min()), int(lengths.max())
    if low != high:
        raise UnequalAttempts(
            f"{metric} needs the same number of attempts on every task; here they go from {low} "
            f"to {high}, and more attempts mean more chances for a streak.",
            hint=f"Ask for first^{metric.k}, which looks at the first {metric.k} attempts only.",
        )
