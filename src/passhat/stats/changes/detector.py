"""Changes in a series of runs that may be looked at every night.

At every run the attempts of the last 1, 2, 4, 8 and 16 runs are tested against all runs before them
since the last change. Both tests compare attempts at the same task only: one sums over tasks
(hypergeometric given what both sides passed; a drop spread thinly), one looks at each task alone
(a task that broke). A task that one side does not have says nothing, so that new and removed tasks
are no change of the agent, and runs may differ in how many attempts they have.

The error is shared out: .05 over 365 looks, and in a look over the windows, both directions, both
kinds of test and all tasks. The chance of any false alarm in a year of nightly runs is at most the
sum, whatever the looks have in common (Bonferroni). After a change the baseline begins anew.

These tests take attempts as independent. Nights may differ by themselves: a provider under load, a
rhythm of the week. So a sum must also stand out of the windows of its length before it: their
variance in units of the binomial one is estimated, one being worth :data:`_PRIOR_WINDOWS` windows
before the first is seen, and the sum's distance is compared with a t distribution of as many
degrees of freedom.

Where a change began is the posterior of :mod:`.posterior` over the runs of the series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, IntArray, special
from passhat.stats.changes.posterior import in_order, locate_change
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.significance import unequal_drop_p_value
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks, fisher_tests
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes

Direction = Literal["drop", "rise", "mixed"]
LOOKS_PER_YEAR = 365
_WINDOWS = (1, 2, 4, 8, 16)
_KINDS = 2
_LEAST_SCORE = 3.0
"""A sum closer to its mean, in standard deviations, is not tested exactly: it cannot be shown."""
_MOST_BEFORE = 120
"""Runs before a window that are compared with it."""
_LEVEL = 0.95
_PRIOR_WINDOWS = 45
"""What is known before the first night: that nights usually differ by chance alone."""


@dataclass(frozen=True, slots=True)
class Change(Plain):
    """A change of the agent that is shown."""

    direction: Direction
    """Whether tasks pass less or more often since; mixed where some broke, others improved, and the
    mean is not shown to have changed.
    """
    since: int
    """The run at which it began, by its place in the series."""
    earliest: int
    latest: int
    """``earliest``, ``latest``: the runs among which it began with a chance of 95%."""
    shown_at: int
    """The run at which it was shown first; it began then or before."""
    before: float
    after: float
    """``before``, ``after``: mean rate over the tasks of both sides, before and since."""
    tasks: tuple[TaskChange, ...]
    """Single tasks that are shown to have moved, Holm over all tasks."""
    shared: int
    """Tasks with attempts on both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Counts of runs in the order of time: passed, failed and missing attempts, runs x tasks.

    The tables hold sums over all runs before each, so that any window is one difference.
    """

    tasks: tuple[str, ...]
    passed: IntArray
    failed: IntArray
    missing: IntArray

    @classmethod
    def of(cls, runs: Sequence[Outcomes]) -> Series:
        """Line up runs by task id; a task that a run does not have has no attempts there."""
        tasks = tuple(dict.fromkeys(task for run in runs for task in run.tasks))
        place_of = {task: place for place, task in enumerate(tasks)}
        tables = np.zeros((3, len(runs) + 1, len(tasks)), np.int64)
        for row, run in enumerate(runs, 1):
            places = [place_of[task] for task in run.tasks]
            tables[:, row, places] = run.c, run.n - run.c, run.missing
        return cls(tasks, *tables.cumsum(axis=1))

    def window(self, first: int, end: int) -> tuple[IntArray, IntArray, IntArray]:
        """Passed, failed and missing attempts of the runs from ``first`` to before ``end``."""
        passed, failed, missing = (
            table[end] - table[first] for table in (self.passed, self.failed, self.missing)
        )
        return passed, failed, missing

    def pool(self, first: int, end: int) -> Outcomes:
        """Some runs together, at the tasks that have attempts there."""
        passed, failed, missing = self.window(first, end)
        tried = np.flatnonzero(passed + failed + missing)
        names = [self.tasks[place] for place in tried.tolist()]
        return Outcomes.from_counts(
            (passed + failed)[tried], passed[tried], names, missing=missing[tried]
        )

    def counts(self, completion: Completion, first: int, end: int) -> tuple[IntArray, IntArray]:
        """n and c of some runs together, with missing attempts counted in this way."""
        passed, failed, missing = self.window(first, end)
        if completion is Completion.AS_PASSED:
            passed = passed + missing
        elif completion is Completion.AS_FAILED:
            failed = failed + missing
        return passed + failed, passed


def find_changes(
    runs: Sequence[Outcomes],
    policy: MissingPolicy = MissingPolicy.BOUND,
    error: float = 0.05,
) -> tuple[Change, ...]:
    """Changes that are shown in a series of runs, in the order of time.

    ``runs`` has the oldest first. The policy ``bound`` counts attempts without a verdict against
    every change; ``error`` is the chance of a false alarm in a year of nightly runs.
    """
    series = Series.of(runs)
    alarms: list[_Alarm] = []
    start = 0
    for now in range(1, len(runs)):
        alarm = _look(series, policy, start, now, error / LOOKS_PER_YEAR)
        if alarm is not None:
            alarms.append(alarm)
            start = _describe(series, policy, alarm, now + 1).latest
    # Attempts that came later, up to the next change, tell more of where it began.
    changes: list[Change] = []
    end = len(runs)
    for alarm in reversed(alarms):
        changes.append(_describe(series, policy, alarm, max(end, alarm.now + 1)))
        end = changes[-1].since
    return tuple(reversed(changes))


@dataclass(frozen=True, slots=True)
class _Alarm:
    """A look that shows a change: its baseline from ``start``, its window from ``since`` on."""

    start: int
    since: int
    now: int
    direction: Direction


def _look(
    series: Series, policy: MissingPolicy, start: int, now: int, alpha: float
) -> _Alarm | None:
    """The alarm that the newest run gives, if any."""
    share = alpha / (len(_WINDOWS) * _KINDS * 2)
    for length in _WINDOWS:
        since = now - length + 1
        if since <= start:
            break
        first = max(start, since - _MOST_BEFORE)
        for direction, sides in _sides(series, policy, first, since, now + 1):
            if _is_shown(*sides, share, lambda: _find_spread(series, first, since, length)):  # noqa: B023
                return _Alarm(start, since, now, direction)
    return None


def _sides(
    series: Series, policy: MissingPolicy, first: int, since: int, end: int
) -> Iterator[tuple[Direction, tuple[IntArray, IntArray, IntArray, IntArray]]]:
    """n and c before and since, as a drop reads: a rise is a drop of failures.

    Missing attempts count against the change.
    """
    low = high = policy.completion
    if policy is MissingPolicy.BOUND:
        low, high = Completion.AS_FAILED, Completion.AS_PASSED
    for direction, (way_a, way_b) in {"drop": (low, high), "rise": (high, low)}.items():
        n_a, c_a = series.counts(way_a, first, since)
        n_b, c_b = series.counts(way_b, since, end)
        shared = (n_a > 0) & (n_b > 0)
        n_a, c_a, n_b, c_b = (table[shared] for table in (n_a, c_a, n_b, c_b))
        if direction == "drop":
            yield "drop", (n_a, c_a, n_b, c_b)
        else:
            yield "rise", (n_a, n_a - c_a, n_b, n_b - c_b)


def _is_shown(
    n_a: IntArray,
    c_a: IntArray,
    n_b: IntArray,
    c_b: IntArray,
    share: float,
    find_spread: Callable[[], tuple[float, int]],
) -> bool:
    if not len(n_a):
        return False
    score = _score(n_a, c_a, n_b, c_b)
    if score >= _LEAST_SCORE and unequal_drop_p_value(n_a, c_a, n_b, c_b) <= share:
        variance, freedom = find_spread()
        if special.stdtr(freedom, -score / np.sqrt(variance)) <= share:
            return True
    scores = _task_scores(n_a, c_a, n_b, c_b)
    suspects = np.flatnonzero(scores >= _LEAST_SCORE)
    if not len(suspects):
        return False
    p_less, _ = fisher_tests(
        n_a=n_a[suspects], c_a=c_a[suspects], c_b=c_b[suspects], n_b=n_b[suspects]
    )
    return bool(p_less.min() <= share / len(n_a))


def _find_spread(series: Series, first: int, end: int, length: int) -> tuple[float, int]:
    """How much windows of earlier runs differ: the variance of their sums in units of the binomial
    one, at least 1, and its degrees of freedom."""
    count = end - first
    if count <= length:
        return 1.0, _PRIOR_WINDOWS
    passed, failed, _ = series.window(first, end)
    total = passed + failed
    rate = passed / np.maximum(total, 1)
    tables = series.passed[first : end + 1], series.failed[first : end + 1]
    window_passed, window_failed = (table[length:] - table[:-length] for table in tables)
    n = window_passed + window_failed
    deviation = (window_passed - n * rate).sum(axis=1)
    variance = (n * rate * (1 - rate) * (1 - n / np.maximum(total, 1))).sum(axis=1)
    scores = deviation[variance > 0] ** 2 / variance[variance > 0]
    if not len(scores):
        return 1.0, _PRIOR_WINDOWS
    windows = count // length  # as many do not overlap
    mean = (_PRIOR_WINDOWS + windows * float(scores.mean())) / (_PRIOR_WINDOWS + windows)
    return max(1.0, mean), _PRIOR_WINDOWS + windows


def _moments(
    n_a: IntArray, c_a: IntArray, n_b: IntArray, c_b: IntArray
) -> tuple[FloatArray, FloatArray]:
    """How far passes since are below their mean given the passes of both sides, and variances."""
    total, passed = n_a + n_b, c_a + c_b
    share = passed / total
    deviation = n_b * share - c_b
    variance = n_b * share * (1 - share) * n_a / np.maximum(total - 1, 1)
    return np.asarray(deviation, np.float64), np.asarray(variance, np.float64)


def _score(n_a: IntArray, c_a: IntArray, n_b: IntArray, c_b: IntArray) -> float:
    deviation, variance = _moments(n_a, c_a, n_b, c_b)
    total = float(variance.sum())
    return float(deviation.sum() / np.sqrt(total)) if total > 0 else 0.0


def _task_scores(n_a: IntArray, c_a: IntArray, n_b: IntArray, c_b: IntArray) -> FloatArray:
    deviation, variance = _moments(n_a, c_a, n_b, c_b)
    scores: FloatArray = deviation / np.sqrt(np.where(variance > 0, variance, np.inf))
    return scores


def _describe(series: Series, policy: MissingPolicy, alarm: _Alarm, end: int) -> Change:
    """The change behind an alarm, from the runs before ``end``: its beginning, and its tasks."""
    first = max(alarm.start, alarm.now + 1 - _MOST_BEFORE)
    passed, failed = (
        np.diff(table[first : end + 1], axis=0) for table in (series.passed, series.failed)
    )
    # The posterior is about drops: a rise is a drop of failures.
    falling = passed if alarm.direction == "drop" else failed
    # It began at or before the run at which it was shown.
    candidates = in_order(end - first)[1 : alarm.now + 1 - first]
    posterior = locate_change(candidates, passed + failed, falling)
    left = posterior.smallest_set(_LEVEL)
    since, earliest, latest = (first + 1 + place for place in (posterior.best, left[0], left[-1]))
    earlier, later = series.pool(first, since), series.pool(since, end)
    if not set(earlier.tasks) & set(later.tasks):
        earlier, later = series.pool(first, alarm.since), series.pool(alarm.since, end)
    pairing = pair(earlier, later)
    before, after = (
        float((side.c / np.maximum(side.n, 1)).mean()) for side in (pairing.a, pairing.b)
    )
    task_changes = find_changed_tasks(pairing, policy, (1 - _LEVEL) / 2)
    return Change(
        *(
            _find_direction(alarm.direction, pairing, after - before, task_changes),
            since,
            earliest,
            latest,
            alarm.now,
            before,
            after,
            task_changes,
            len(pairing),
        )
    )


def _find_direction(
    direction: Direction, pairing: Pairing, difference: float, tasks: Sequence[TaskChange]
) -> Direction:
    """The direction of an alarm; that of the mean where tasks moved both ways."""
    is_against = difference > 0 if direction == "drop" else difference < 0
    if not is_against and len({task.change for task in tasks}) < 2:
        return direction
    (n_a, c_a), (n_b, c_b) = (side.counts(Completion.DROPPED) for side in (pairing.a, pairing.b))
    alpha = (1 - _LEVEL) / 2
    if unequal_drop_p_value(n_a, c_a, n_b, c_b) <= alpha:
        return "drop"
    return "rise" if unequal_drop_p_value(n_a, n_a - c_a, n_b, n_b - c_b) <= alpha else "mixed"
