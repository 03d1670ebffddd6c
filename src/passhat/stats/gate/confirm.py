"""Confirm the suspects: fresh attempts at the few tasks whose drop looks worst.

A mean is blind to one task of 60 that went from always to never. The tasks with the smallest
p-values are attempted again, on both sides where the baseline's agent can still be run. Three exact
tests share the error, a third each:

- the first attempts, Holm over all tasks: a task that they show to be broken stays shown;
- the fresh attempts alone: what chose the suspects does not convict them, so that the correction is
  Holm's over the suspects;
- all attempts together, Holm over *all* tasks. That is valid: every task could have been a suspect,
  and one that was not is treated as if its p-value were 1.

Where only the baseline's first attempts are left, the second test is none and its share goes to the
third. One task of 20 from .9 to 0 with 8 attempts, 400 pairs: named in 1.00 (.81 by the fresh
attempts alone with all of the error); without a change a task is named in .003.

**The mean.** A drop that is spread over all tasks has no suspects to convict. Where the first
attempts leave it open (p-value between the mean's first share and .2), the new agent attempts all
tasks again, as often as in its run, and the exact test (:mod:`.significance`) is repeated with all
of its attempts against the baseline's. It is a second look at a test that grows: both looks share
the mean's error, with their correlation reckoned in, which the numbers of attempts fix beforehand.
30 tasks x 8, a drop of 10 points: red in .86 of pairs instead of .72; without a change in .03.

References
----------
S. J. Pocock (1977), Group sequential methods in the design and analysis of clinical trials,
    Biometrika 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted, money, percent, some
from passhat._serialize import Plain
from passhat.stats.arrays import special
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.significance import holm, longer_drop_p_value, pair_drop_p_value
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks, fisher_tests
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.outcomes import MissingPolicy, Outcomes

MOST_SUSPECTS = 5
FRESH_ATTEMPTS = 8
_MOST_FRESH_ATTEMPTS = 32
CONFIRMED_MEAN_SHARE = 0.7
"""The share of a gate's error for the mean where suspects are confirmed: a task that went from
always to never needs far less than the rest, a drop spread over all tasks needs all it can get."""
_OPEN_MEAN = 0.2
"""Beyond this p-value of the first attempts more of them rarely show a drop."""
_TESTS = 3
"""Tests that share the error of the tasks."""
_DRIFT = 0.001
"""Suspects passed more often than usual in the baseline; so small a p-value is no such luck."""


@dataclass(frozen=True, slots=True)
class FreshRun(Plain):
    """A run of fresh attempts that a gate made: its id in the store, attempts and cost."""

    WRITTEN = ("id", "side", "attempts", "missing", "cost")

    id: str
    side: str
    outcomes: Outcomes
    cost: float | None = None

    @property
    def attempts(self) -> int:
        return self.outcomes.attempts

    @property
    def missing(self) -> int:
        return self.outcomes.total_missing


@dataclass(frozen=True, slots=True)
class Suspects:
    """The tasks whose drop is most suspicious, most suspicious first."""

    tasks: tuple[TaskChange, ...]
    """The suspects, with the counts that made them suspects."""
    pairing: Pairing
    """All tasks of both runs."""
    policy: MissingPolicy
    """How attempts without a verdict are counted."""
    alpha: float
    """The error of a false confirmation: the share of the gate's error that is not the mean's."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(task.task for task in self.tasks)

    def attempts_to_confirm(self) -> int:
        """The fewest fresh attempts that could confirm the first suspect against kept counts.

        From 8, and at most 32; with few attempts in the baseline 8 cannot survive a correction
        over all tasks.
        """
        if not self.tasks:
            return FRESH_ATTEMPTS
        first = self.tasks[0]
        for attempts in range(FRESH_ATTEMPTS, _MOST_FRESH_ATTEMPTS, 4):
            cells = (first.passed_a, first.attempts_a, first.passed_b, first.attempts_b + attempts)
            less, _ = fisher_tests(*(np.array([cell]) for cell in cells))
            if float(less[0]) * len(self.pairing) * _TESTS / (_TESTS - 1) <= self.alpha:
                return attempts
        return _MOST_FRESH_ATTEMPTS


def choose_suspects(
    pairing: Pairing, policy: MissingPolicy, level: float, most: int = MOST_SUSPECTS
) -> Suspects:
    """Up to ``most`` tasks that passed less often than in the baseline, by the exact test."""
    changes = find_changed_tasks(pairing, policy, 1.0, "less")
    drops = [
        change
        for change in changes
        if change.passed_b * change.attempts_a < change.passed_a * change.attempts_b
    ]
    alpha = (1 - CONFIRMED_MEAN_SHARE) * (1 - level)
    return Suspects(tuple(drops[:most]), pairing, policy, alpha)


@dataclass(frozen=True, slots=True)
class Confirmation(Plain):
    """Fresh attempts at the suspects, and what they show."""

    WRITTEN = (
        *("suspects", "confirmed", "unconfirmed", "runs", "attempts", "cost", "kept"),
        "everywhere",
    )

    suspects: tuple[TaskChange, ...]
    """The tasks that looked worst, with their counts in the two runs."""
    tests: tuple[TaskChange, ...]
    """The same tasks, with the counts of all attempts, first and fresh."""
    runs: tuple[FreshRun, ...]
    """The runs of fresh attempts."""
    alpha: float
    """A task is confirmed up to this corrected p-value."""
    kept: str = ""
    """Why the baseline's first attempts were used, where they were; else empty."""
    everywhere: FreshRun | None = None
    """Fresh attempts of the new agent at all tasks, where the first ones left the mean open."""
    others: tuple[TaskChange, ...] = ()
    """Tasks that the first attempts show to be broken, beyond the suspects."""

    @property
    def confirmed(self) -> tuple[TaskChange, ...]:
        """Suspects that are shown to be broken."""
        return tuple(test for test in self.tests if test.p_holm <= self.alpha)

    @property
    def unconfirmed(self) -> tuple[TaskChange, ...]:
        """Suspects that are not shown to be broken."""
        return tuple(test for test in self.tests if test.p_holm > self.alpha)

    @property
    def attempts(self) -> int:
        return sum(run.attempts for run in self.runs)

    @property
    def cost(self) -> float | None:
        """Dollars spent on fresh attempts; ``None`` where a run did not record them."""
        return total_cost(self.runs)

    def shows_drop(
        self, pairing: Pairing, metric: Metric, policy: MissingPolicy, alpha: float
    ) -> bool | None:
        """Whether the fresh attempts at all tasks show a drop with the first ones.

        ``None`` where there is no second look, so that the first one has all of the mean's error.
        ``alpha`` is the error of the whole gate.
        """
        attempts = count_mean_attempts(pairing, metric, policy, alpha)
        if attempts == 0:
            return None if _mean_p_value(pairing, metric, policy) is None else False
        if self.everywhere is None:
            return None
        assert isinstance(metric, CountMetric)
        b = add_attempts(pairing.b, [self.everywhere.outcomes])
        p_value = longer_drop_p_value(replace(pairing, b=b), metric, policy)
        n_a, n_b = pairing.a.attempts, pairing.b.attempts
        shared = (1 / n_a + 1 / (n_b + self.everywhere.attempts)) / (1 / n_a + 1 / n_b)
        limit = _second_limit(MEAN_SHARE * alpha, CONFIRMED_MEAN_SHARE * alpha, shared)
        return p_value is not None and p_value <= limit

    @property
    def sentences(self) -> tuple[str, ...]:
        """The confirmed tasks, the others, and what it took."""
        if not self.suspects:
            return ("No task passed less often than in the baseline: there is none to confirm.",)
        parts = []
        if self.confirmed:
            names = some([str(task) for task in self.confirmed], MOST_SUSPECTS)
            parts.append(f"Broken, first and fresh attempts counted: {names}.")
        if self.unconfirmed:
            names = some([str(task) for task in self.unconfirmed], MOST_SUSPECTS)
            parts.append(f"Suspected, not confirmed: {names}.")
        parts.append(f"{describe_runs('Confirming', self.runs)}.")
        if self.everywhere is not None:
            fresh = self.everywhere.outcomes
            parts.append(
                "The mean looked lower and was not shown to be, so all "
                f"{counted(len(fresh), 'task')} were attempted again: "
                f"{percent(int(fresh.c.sum()) / max(fresh.scored, 1), 0)} of these attempts passed."
            )
        if self.kept:
            parts.append(
                f"The baseline's first attempts were used, corrected for all tasks: {self.kept}"
            )
        return tuple(parts)


def count_mean_attempts(
    pairing: Pairing, metric: Metric, policy: MissingPolicy, alpha: float
) -> int:
    """Fresh attempts at each task that may show a drop of the mean; 0 where none are called for.

    ``alpha`` is the error of the whole gate. As many as the run made: its cost at most doubles.
    """
    p_first = _mean_p_value(pairing, metric, policy)
    if p_first is None or not MEAN_SHARE * alpha < p_first <= _OPEN_MEAN:
        return 0
    return pairing.b.attempts // len(pairing)


def _mean_p_value(pairing: Pairing, metric: Metric, policy: MissingPolicy) -> float | None:
    """The p-value of a drop by the first attempts; ``None`` where they cannot be added to."""
    if not isinstance(metric, CountMetric) or pairing.a.attempts < 2 * len(pairing):
        return None
    return pair_drop_p_value(pairing, metric, policy)


def _second_limit(alpha_first: float, alpha_both: float, shared: float) -> float:
    """The p-value up to which the second look shows a drop, so that both err with ``alpha_both``.

    P(Z1 > z or Z2 > c) = ``alpha_both``, with z the limit of the first look. The second one holds
    all of the first one's attempts: their correlation is the square root of ``shared``, the ratio
    of its variance to the first one's.
    """
    from scipy.optimize import brentq

    z = np.linspace(-9.0, -float(special.ndtri(alpha_first)), 4_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    def error(limit: float) -> float:
        inside = special.ndtr((limit - np.sqrt(shared) * z) / np.sqrt(1 - shared))
        return 1 - float(np.trapezoid(density * inside, z)) - alpha_both

    return float(special.ndtr(-brentq(error, 0.0, 9.0)))


def total_cost(runs: Sequence[FreshRun]) -> float | None:
    """Dollars of all runs, if all recorded them."""
    costs = [run.cost for run in runs if run.cost is not None]
    return sum(costs) if runs and len(costs) == len(runs) else None


def describe_runs(what: str, runs: Sequence[FreshRun]) -> str:
    """The number, cost and ids of runs of fresh attempts, in words."""
    attempts = counted(sum(run.attempts for run in runs), "fresh attempt")
    cost = total_cost(runs)
    price = "cost not recorded" if cost is None else money(cost)
    names = " and ".join(f"{run.id} ({run.side})" for run in runs)
    return f"{what} took {attempts}, {price}: {names}"


def confirm_suspects(
    suspects: Suspects,
    fresh: FreshRun,
    fresh_base: FreshRun | None,
    kept: str = "",
    everywhere: FreshRun | None = None,
) -> Confirmation:
    """Test the suspects by first and fresh attempts, or against the baseline's kept counts.

    So too where the baseline's agent now fails where it passed: then it is not what it was.
    ``everywhere`` are fresh attempts at all tasks, for the mean.
    """
    runs = tuple(run for run in (fresh_base, fresh, everywhere) if run is not None)
    names, policy = suspects.names, suspects.policy
    a, b = (pick_tasks(side, names) for side in (suspects.pairing.a, suspects.pairing.b))
    if fresh_base is not None:
        drifts = find_changed_tasks(pair(a, fresh_base.outcomes), policy, _DRIFT, "less")
        if drifts:
            fresh_base = None
            kept = f"its agent is not what it was, {some(list(map(str, drifts)))}."
    first_look = find_changed_tasks(suspects.pairing, policy, 1.0, "less")
    corrected = {change.task: change.p_holm * _TESTS for change in first_look}
    share = 1 / _TESTS
    if fresh_base is None:
        share *= 2
    else:
        alone = find_changed_tasks(pair(fresh_base.outcomes, fresh.outcomes), policy, 1.0, "less")
        for test in alone:
            corrected[test.task] = min(corrected[test.task], test.p_holm * _TESTS)
        a = add_attempts(a, [fresh_base.outcomes])
    together = find_changed_tasks(pair(a, add_attempts(b, [fresh.outcomes])), policy, 1.0, "less")
    untested = [1.0] * (len(suspects.pairing) - len(names))
    p_together = holm([*(test.p_value for test in together), *untested])
    tests = tuple(
        replace(test, p_holm=min(1.0, corrected[test.task], float(p) / share))
        for test, p in zip(together, p_together, strict=False)
    )
    others = tuple(
        change
        for change in first_look
        if change.task not in names and corrected[change.task] <= suspects.alpha
    )
    return Confirmation(suspects.tasks, tests, runs, suspects.alpha, kept, everywhere, others)


def pick_tasks(outcomes: Outcomes, names: Sequence[str], attempts: int = 0) -> Outcomes:
    """The counts of some tasks in this order; up to ``attempts`` what is absent is missing."""
    place_of = {task: i for i, task in enumerate(outcomes.tasks)}
    cells = [
        (int(outcomes.n[i]), int(outcomes.c[i]), int(outcomes.missing[i]))
        if (i := place_of.get(name)) is not None
        else (0, 0, 0)
        for name in names
    ]
    missing = [m + max(attempts - n - m, 0) for n, _, m in cells]
    n, c = [cell[0] for cell in cells], [cell[1] for cell in cells]
    return Outcomes.from_counts(n, c, names, missing=missing)


def add_attempts(outcomes: Outcomes, others: Sequence[Outcomes]) -> Outcomes:
    """The counts with those of other attempts at the same tasks."""
    n, c, m = outcomes.n.copy(), outcomes.c.copy(), outcomes.missing.copy()
    place_of = {task: i for i, task in enumerate(outcomes.tasks)}
    for other in others:
        places = [place_of[task] for task in other.tasks]
        n[places] += other.n
        c[places] += other.c
        m[places] += other.missing
    return Outcomes.from_counts(n, c, outcomes.tasks, missing=m)
