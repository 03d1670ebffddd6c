"""Confirm the suspects: fresh attempts at the few tasks whose drop looks worst.

A mean is blind to one task of 60 that went from always to never. The tasks with the smallest
p-values are attempted again, on both sides where the baseline's agent can still be run, and tested
on the fresh attempts alone: what chose the suspects does not convict them, so the correction is
Holm's over the suspects.

Where only the baseline's attempts are left, its counts took part in the choice. Then the counts of
the baseline are tested against all attempts of the new side, first and fresh, with Holm's
correction over *all* tasks. That is valid: every task could have been a suspect, and one that was
not is treated as if its p-value were 1.

Fresh attempts on both sides also tell of the mean: their exact test (:mod:`.significance`) is
independent of the first attempts', and both are combined with weights that the numbers of attempts
fix beforehand (the inverse normal method). A drop that the first attempts show stays shown; the
combination gets what is left of the mean's error.

References
----------
W. Lehmacher and G. Wassmer (1999), Adaptive sample size calculations in group sequential trials,
    Biometrics 55.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted, money, some
from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.significance import holm, pair_drop_p_value
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks, fisher_tests
from passhat.stats.estimate.metrics import CountMetric, Metric, PassHat
from passhat.stats.outcomes import MissingPolicy, Outcomes

__all__ = [
    "FRESH_ATTEMPTS",
    "MOST_SUSPECTS",
    "Confirmation",
    "FreshRun",
    "Suspects",
    "add_attempts",
    "choose_suspects",
    "confirm_suspects",
]

MOST_SUSPECTS = 5
FRESH_ATTEMPTS = 8
_MOST_FRESH_ATTEMPTS = 32
CONFIRMED_MEAN_SHARE = 0.7
"""The share of a gate's error for the mean where suspects are confirmed: a task that went from
always to never needs far less than the rest, a drop spread over all tasks needs all it can get."""
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
    """The tasks whose drop is most suspicious, most suspicious first.

    Attributes
    ----------
    tasks : tuple of TaskChange
        The suspects, with the counts that made them suspects.
    pairing : Pairing
        All tasks of both runs.
    policy : MissingPolicy
        How attempts without a verdict are counted.
    alpha : float
        The error of a false confirmation: the share of the gate's error that is not the mean's.
    """

    tasks: tuple[TaskChange, ...]
    pairing: Pairing
    policy: MissingPolicy
    alpha: float

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
            if float(less[0]) * len(self.pairing) <= self.alpha:
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
    """Fresh attempts at the suspects, and what they show.

    Attributes
    ----------
    suspects : tuple of TaskChange
        The tasks that looked worst, with their counts in the two runs.
    tests : tuple of TaskChange
        The same tasks, with the counts that were tested.
    runs : tuple of FreshRun
        The runs of fresh attempts.
    alpha : float
        A task is confirmed up to this corrected p-value.
    kept : str
        Why the baseline's first attempts were used, where they were; else empty.
    drop_p : float or None
        The p-value of a drop of all suspects together on the fresh attempts of both sides;
        ``None`` where there are none.
    """

    WRITTEN = ("suspects", "confirmed", "unconfirmed", "runs", "attempts", "cost", "kept")

    suspects: tuple[TaskChange, ...]
    tests: tuple[TaskChange, ...]
    runs: tuple[FreshRun, ...]
    alpha: float
    kept: str = ""
    drop_p: float | None = None

    @property
    def confirmed(self) -> tuple[TaskChange, ...]:
        """Tasks that are shown to be broken."""
        return tuple(test for test in self.tests if test.p_holm <= self.alpha)

    @property
    def unconfirmed(self) -> tuple[TaskChange, ...]:
        """Suspects that the fresh attempts do not convict."""
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
        """Whether first and fresh attempts together show a drop; ``None`` if they do not combine.

        ``alpha`` is the error of the whole gate. The first attempts alone have spent their share
        of it, as in a gate without a confirmation.
        """
        if self.drop_p is None or not isinstance(metric, CountMetric):
            return None
        p_first = pair_drop_p_value(pairing, metric, policy)
        if p_first is None:
            return None
        first = pairing.a.attempts + pairing.b.attempts
        weight = first / (first + self.attempts)
        limit = _combined_limit(MEAN_SHARE * alpha, CONFIRMED_MEAN_SHARE * alpha, weight)
        scores = _normal_scores(np.clip([p_first, self.drop_p], 1e-15, 1 - 1e-15))
        return float(np.sqrt([weight, 1 - weight]) @ scores) >= limit

    @property
    def sentences(self) -> tuple[str, ...]:
        """The confirmed tasks, the others, and what it took."""
        if not self.suspects:
            return ("No task passed less often than in the baseline: there is none to confirm.",)
        parts = []
        if self.confirmed:
            names = some([str(task) for task in self.confirmed], MOST_SUSPECTS)
            parts.append(f"Confirmed by fresh attempts: {names}.")
        if self.unconfirmed:
            names = some([str(task) for task in self.unconfirmed], MOST_SUSPECTS)
            parts.append(f"Suspected, not confirmed: {names}.")
        parts.append(f"{describe_runs('Confirming', self.runs)}.")
        if self.kept:
            parts.append(
                f"The baseline's first attempts were used, corrected for all tasks: {self.kept}"
            )
        return tuple(parts)


def _normal_scores(p_values: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    return np.asarray(-ndtri(p_values), np.float64)


def _combined_limit(alpha_first: float, alpha_both: float, weight: float) -> float:
    """The limit c of the combined score for which one of both tests errs with ``alpha_both``.

    P(Z1 > z or sqrt(w) Z1 + sqrt(1 - w) Z2 > c) = ``alpha_both``, with z the first test's limit.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    first_limit = float(_normal_scores(np.array([alpha_first]))[0])
    z = np.linspace(-9.0, first_limit, 4_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    def error(limit: float) -> float:
        inside = ndtr((limit - np.sqrt(weight) * z) / np.sqrt(1 - weight))
        return 1 - float(np.trapezoid(density * inside, z)) - alpha_both

    return float(brentq(error, 0.0, 9.0))


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
    suspects: Suspects, fresh: FreshRun, fresh_base: FreshRun | None, kept: str = ""
) -> Confirmation:
    """Test the suspects on fresh attempts; without a fresh baseline, against its kept counts.

    So too where the baseline's agent now fails where it passed: then it is not what it was.
    """
    runs = (fresh,) if fresh_base is None else (fresh_base, fresh)
    others = 0
    drop_p: float | None = None
    first = pick_tasks(suspects.pairing.a, suspects.names)
    if fresh_base is not None:
        drifts = find_changed_tasks(
            pair(first, fresh_base.outcomes), suspects.policy, _DRIFT, "less"
        )
        if drifts:
            fresh_base, kept = (
                None,
                f"its agent is not what it was, {some(list(map(str, drifts)))}.",
            )
    if fresh_base is None:
        second = add_attempts(pick_tasks(suspects.pairing.b, suspects.names), [fresh.outcomes])
        others = len(suspects.pairing) - len(suspects.tasks)
    else:
        first, second = fresh_base.outcomes, fresh.outcomes
        drop_p = pair_drop_p_value(pair(first, second), PassHat(1), suspects.policy)
    tests = find_changed_tasks(pair(first, second), suspects.policy, 1.0, "less")
    p_holm = holm([*(test.p_value for test in tests), *([1.0] * others)])
    corrected = tuple(
        replace(test, p_holm=float(p)) for test, p in zip(tests, p_holm, strict=False)
    )
    return Confirmation(suspects.tasks, corrected, runs, suspects.alpha, kept, drop_p)


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
