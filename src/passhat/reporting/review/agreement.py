"""Stated numbers against computed ones, and scores of single runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from passhat._display import counted
from passhat.errors import PasshatError
from passhat.reporting.review.statements import (
    Difference,
    Share,
    Size,
    TaskCount,
)
from passhat.stats.arrays import FloatArray
from passhat.stats.compare import Result
from passhat.stats.compare.significance import sign_test
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.grammar import metric as parse_metric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes, Run

__all__ = [
    "Check",
    "RunScore",
    "Support",
    "agrees",
    "agrees_any",
    "check_size",
    "check_task",
    "fits_points",
    "fits_spread",
    "holds",
    "is_error",
    "near",
    "paired_p_values",
    "scores_of",
    "support",
    "support_of",
]

_CLOSE_POINTS = 2.0
_CLOSE_PART = 0.125
_CLOSE_SPREAD, _LAST_DIGIT = 0.05, 0.0006
"""An end of an interval by another sound method may be so far from ours, in points or in widths."""


class Support(StrEnum):
    """Answers of the runs to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_SHOWN = "not shown"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of the claim, what the runs say of it, and the numbers that say so."""

    statement: str
    support: Support
    detail: str


def support_of(claim: Difference, about: Sequence[Result]) -> Support:
    """The answer to a comparison without a size; with two readings one of them is enough."""
    excludes = [not one.low <= 0 <= one.high for one in about]
    if claim.kind == "tested":
        return Support.SUPPORTED
    if claim.kind == "unsettled":
        return support(not all(excludes))
    if claim.kind in ("equal", "different"):
        is_wrong = any(excludes) and claim.kind == "equal"
        return Support.CONTRADICTED if is_wrong else Support.NOT_CHECKABLE
    shown = [one.low > 0 if claim.sign > 0 else one.high < 0 for one in about]
    lift = claim.sign * about[0].lift
    if claim.kind == "denied":
        if lift <= 0:
            return Support.SUPPORTED
        return Support.CONTRADICTED if any(shown) else Support.NOT_CHECKABLE
    if claim.kind == "ranked":
        return support(lift >= 0)
    if lift <= 0:
        return Support.CONTRADICTED
    return Support.SUPPORTED if any(shown) else Support.NOT_SHOWN


def agrees_any(estimates: Sequence[Estimate | RunScore], share: Share) -> bool:
    return any(agrees(one, share) for one in estimates)


def agrees(result: Estimate | RunScore, share: Share) -> bool:
    """Whether the number is the estimate to its last digit, or between its bounds."""
    low, high = result.value_ends
    if share.failing:
        low, high = 1 - high, 1 - low
    is_round = abs(20 * share.low - round(20 * share.low)) < 1e-9 or share.step < 0.005
    about = 0.045 if is_round else 0.03
    margin = 0.5001 * share.step + (about if share.relation == "~" else 0)
    if share.relation == "!=":
        return not low - margin <= share.low <= high + margin
    if share.relation in "<>":
        return low < share.low if share.relation == "<" else high > share.high
    if share.relation == ">=":
        return high >= share.low - margin
    if share.relation == "<=":
        return low <= share.high + margin
    return low - margin <= share.high and share.low <= high + margin


def fits_points(claim: Difference, result: Result) -> bool:
    assert claim.points is not None
    lift = 100 * result.lift * claim.sign if claim.sign else abs(100 * result.lift)
    return holds(lift, claim.points, 0.5001 * claim.step, claim.relation)


def holds(actual: float, stated: float, slack: float, relation: str) -> bool:
    if relation == ">=":
        return actual >= stated - slack
    if relation == "<=":
        return 0 <= actual <= stated + slack
    return abs(actual - stated) <= slack + (1.5 if relation == "~" and stated > 5 else 0)


def near(low: float | None, high: float | None, ends: tuple[float, float]) -> bool:
    """Whether stated ends are close to ours; an interval of less than half the width is not."""
    if low is None or high is None:
        return False
    first, last = sorted((low, high))
    is_wide = abs(ends[1] - ends[0]) >= (last - first) / 2
    slack = max(_CLOSE_POINTS / 100, _CLOSE_PART * (last - first)) + 10**-9
    return is_wide and all(
        abs(one - other) <= slack for one, other in zip((first, last), sorted(ends), strict=True)
    )


def is_error(result: Estimate | RunScore, stated: float, spread: str) -> bool:
    """Whether "± x" is half an interval, or a standard error, by what it is called."""
    if result.low is None or result.high is None:
        return False
    half = (result.high - result.low) / 2
    as_error = 0.6 <= stated * 1.96 / half <= 1.6 if half else stated == 0
    is_close = abs(stated - half) <= _CLOSE_POINTS / 100 and stated >= half / 2
    is_half = is_close or (half > 0 and 0.7 <= stated / half <= 1.33)
    return (as_error and spread in ("", "se")) or (is_half and spread in ("", "ci"))


def fits_spread(outcomes: Outcomes, metric: str, stated: float, spread: str) -> bool | None:
    """Whether "± x" is a deviation or an error over tasks or trials; None where no order is known.

    Trials are the runs of the benchmark, and have a score each.
    """
    samples: list[FloatArray] = []
    with suppress(PasshatError):
        samples.append(values_by_task(outcomes, parse_metric(metric)))
    single = metric in ("pass^1", "pass@1")
    matrix = attempt_matrix(outcomes, outcomes.tasks)
    if single and matrix is not None:
        samples.append(matrix.mean(axis=0))
    sizes: list[float] = []
    for sample in (one for one in samples if len(one) > 1):
        deviations = [float(sample.std(ddof=ddof)) for ddof in (0, 1)]
        sizes += deviations if spread in ("", "sd") else []
        sizes += [one / len(sample) ** 0.5 for one in deviations] if spread in ("", "se") else []
    if any(abs(stated - size) <= _CLOSE_SPREAD * size + _LAST_DIGIT for size in sizes):
        return True
    return None if single and spread == "sd" and matrix is None else False


def support(is_right: bool) -> Support:
    return Support.SUPPORTED if is_right else Support.CONTRADICTED


def check_task(claim: TaskCount, runs: Sequence[Run]) -> Check:
    """Whether a single task passes as often as stated; missing attempts leave it open."""
    name = f"{claim.task}: {claim.text}"
    counts = [_passes_of(runs[run].outcomes, claim.task) for run in claim.runs]
    known = [(runs[run].name, *one) for run, one in zip(claim.runs, counts, strict=True) if one]
    if not known or len(known) < len(counts):
        return Check(name, Support.NOT_CHECKABLE, "not every source has this task")
    detail = ", ".join(f"{run} {low} of {total}" for run, low, _, total in known)
    if claim.kind in ("ahead", "behind"):
        (_, low, _, total), (_, other, _, others) = known
        lead = low / total - other / others
        answer = support(lead > 0 if claim.kind == "ahead" else lead < 0)
    else:
        answers = {_fits_task(claim, low, high, total) for _, low, high, total in known}
        answer = support(answers == {True})
        if None in answers:
            return Check(name, Support.NOT_CHECKABLE, f"it may be in part; {detail}")
    unsure = f"{claim.unsure!r}" if claim.unsure else ""
    if claim.kind == "count" and claim.count > max(total for *_, total in known):
        unsure = unsure or "a number beyond all attempts"
    if answer is Support.CONTRADICTED and unsure:
        reason = f"{unsure} was not understood; {detail}"
        return Check(name, Support.NOT_CHECKABLE, reason)
    return Check(name, answer, detail)


def _passes_of(outcomes: Outcomes, task: str) -> tuple[int, int, int] | None:
    """The fewest and the most passes of a task, and its attempts; None where it is not there."""
    if task not in outcomes.tasks:
        return None
    at = list(outcomes.tasks).index(task)
    passes, missing = int(outcomes.c[at]), int(outcomes.missing[at])
    total = int(outcomes.n[at]) + missing
    return (passes, passes + missing, total) if total else None


def _fits_task(claim: TaskCount, low: int, high: int, total: int) -> bool | None:
    """Whether passes between two bounds are as stated; None where that depends on more."""
    if claim.failing:
        low, high = total - high, total - low
    if claim.total not in (None, total):
        return False
    if claim.kind == "solved":  # at least once, or every time
        return True if low == total else None if high else False
    if claim.kind == "share":
        return _fits_share(claim, low / total, high / total)
    if claim.kind == "count":
        return _fits_share(claim, float(low), float(high))
    return {
        "none": low == 0,
        "any": high > 0,
        "all": high == total,
        "some": high > 0 and low < total,
    }[claim.kind]


def _fits_share(claim: TaskCount, low: float, high: float) -> bool:
    stated, slack = claim.count, 0.0
    if claim.kind == "share":
        stated, slack = claim.count / 100, 0.006 if claim.relation != "~" else 0.06
    if claim.relation in (">=", ">"):
        return high >= stated - slack
    if claim.relation in ("<=", "<"):
        return low <= stated + slack
    return low - slack <= stated <= high + slack


def check_size(size: Size, runs: Sequence[Run]) -> Check:
    """The number of tasks or of attempts."""
    tasks = {len(run.outcomes) for run in runs}
    planned = [run.outcomes.n + run.outcomes.missing for run in runs]
    attempts = {int(count) for one in planned for count in one}
    totals = set() if size.per_task else {int(one.sum()) for one in planned}
    if totals and not size.tasks:
        totals.add(sum(int(one.sum()) for one in planned))
    is_right = (size.tasks and size.count in tasks) or (
        size.attempts and size.count in attempts | totals
    )
    detail = ", ".join(
        f"{run.name} {counted(len(run.outcomes), 'task')}"
        if size.tasks
        else f"{run.name} {run.outcomes.attempts_text()}"
        for run in runs
    )
    noun = "tasks" if not size.attempts else "attempts" if not size.tasks else "tasks or attempts"
    answer = support(is_right)
    if not is_right and not size.is_certain:
        answer, detail = Support.NOT_CHECKABLE, f"it may count a part of them; {detail}"
    return Check(f"{size.count:,} {noun}", answer, detail)


def paired_p_values(new: Outcomes, old: Outcomes, test: str) -> list[float]:
    """P-values of the sign test over tasks, or of McNemar's for any way to call a task passed."""
    shared = sorted(set(new.tasks) & set(old.tasks))
    sides = zip(_verdicts(new, shared, test), _verdicts(old, shared, test), strict=True)
    return [
        sign_test(int((a > b).sum()), int((a < b).sum())).p_value
        for a, b in sides
        if a.shape == b.shape
    ]


def _verdicts(outcomes: Outcomes, tasks: Sequence[str], test: str) -> list[FloatArray]:
    """The rate of each task; for McNemar's test a verdict on each, in one way after the other."""
    at = [list(outcomes.tasks).index(task) for task in tasks]
    rates: FloatArray = outcomes.c[at] / np.maximum(outcomes.n[at], 1)
    if test != "mcnemar":
        return [rates]
    matrix = attempt_matrix(outcomes, tasks)
    attempts = [np.zeros(0)] * 2 if matrix is None else [matrix[:, 0], matrix]
    return [1.0 * (rates > 0), 1.0 * (rates == 1), 1.0 * (rates > 0.5), *attempts]


# Scores of single runs of a benchmark: the best, the worst, the third, and their spread.
_KINDS: MappingProxyType[str, Callable[[FloatArray], float]] = MappingProxyType(
    {
        "best": lambda scores: float(scores.max()),
        "worst": lambda scores: float(scores.min()),
        "median": lambda scores: float(np.median(scores)),
        "first": lambda scores: float(scores[0]),
        "deviation": lambda scores: float(scores.std(ddof=min(1, len(scores) - 1))),
        "spread": lambda scores: float(scores.max() - scores.min()),
    }
)


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run among the runs of a benchmark, read as an estimate is read.

    Where the order of attempts is not known, ``value_ends`` are the bounds of any order.
    """

    metric: str
    value: float
    value_ends: tuple[float, float]
    is_known: bool = True
    gap: str = "which attempts make a run is not known"
    """Why it is not known."""
    low: None = None
    high: None = None
    population: str = "this run"

    def interval_text(self) -> str:
        return "without an interval"


def scores_of(outcomes: Outcomes, word: str) -> list[RunScore]:
    """The scores that a word means: "best", "best5", "trial3", "passes2to4"."""
    if side := re.fullmatch(r"(above|below)([\d.]+)", word):
        return _runs_beyond(outcomes, float(side[2]) / 100, is_above=side[1] == "above")
    kind, first, last = re.fullmatch(r"([a-z]+)(\d*)(?:to(\d+))?", word).groups()  # type: ignore[union-attr]
    if kind == "passes":
        return [_share_with_passes(outcomes, int(first), int(last))]
    if kind == "triallast":
        return _trial_scores(outcomes, int(outcomes.n.max(initial=0)))
    if kind == "trial":
        return _trial_scores(outcomes, int(first))
    return _run_scores(outcomes, kind, int(first) if first else None)


def _runs_beyond(outcomes: Outcomes, limit: float, *, is_above: bool) -> list[RunScore]:
    """The share of the runs that score above or below a limit; those at it may count or not."""
    matrix = attempt_matrix(outcomes, outcomes.tasks)
    if matrix is None:
        return []
    scores = matrix.mean(axis=0) * (1 if is_above else -1)
    limit *= 1 if is_above else -1
    low, high = float((scores > limit + 1e-9).mean()), float((scores >= limit - 1e-9).mean())
    return [RunScore(f"share of runs beyond {abs(limit):.1%}", high, (low, high))]


def _share_with_passes(outcomes: Outcomes, low: int, high: int) -> RunScore:
    """The share of tasks that pass between two numbers of times; missing attempts are bounds."""
    c, most = outcomes.c, outcomes.c + outcomes.missing
    sure = float(((c >= low) & (most <= high)).mean())
    may = float(((most >= low) & (c <= high)).mean())
    times = f"{low}" if low == high else f"{low} to {high}"
    return RunScore(f"passed {times} times", sure, (sure, may))


def _run_scores(outcomes: Outcomes, kind: str, runs: int | None = None) -> list[RunScore]:
    """The best, worst, median or first of the runs, their spread, or every one of them ("any").

    ``runs`` is the number of runs that the text gives; another number than that of the data has no
    answer.
    """
    n = outcomes.n
    if not len(n) or n.min() < 1 or (runs or n.min()) != n.min():
        return []
    if kind in ("some", "majority"):
        return [_share_of_tasks(outcomes, kind)]
    if kind == "vote":  # a vote over answers may be won with fewer than half of them
        most = _share_of_tasks(outcomes, "majority")
        ends = most.value, float((outcomes.c + outcomes.missing > 0).mean())
        gap = "a vote over answers may be won with fewer than half of them"
        return [most, replace(most, value_ends=ends, is_known=False, gap=gap)]
    name = f"{kind} run"
    if outcomes.order is not None and n.min() == n.max() and not outcomes.missing.any():
        matrix = outcomes.order.completed(Completion.AS_FAILED).matrix()
        scores: FloatArray = matrix.mean(axis=0)
        values = list(map(float, scores)) if kind == "any" else [_KINDS[kind](scores)]
        return [RunScore(name, value, (value, value)) for value in values]
    if kind == "first":  # that of single attempts is meant
        return []
    mean = float((outcomes.c / n).mean())
    none, every = float((outcomes.c == n).mean()), float((outcomes.c > 0).mean())
    low = {"best": mean, "spread": 0.0, "deviation": 0.0}.get(kind, none)
    high = {"worst": mean, "spread": every - none, "deviation": 1.0}.get(kind, every)
    return [RunScore(name, mean, (low, high), is_known=False)]


def _trial_scores(outcomes: Outcomes, trial: int) -> list[RunScore]:
    """The score of the run with a number, from 1; it may be meant from 0, except for the last."""
    matrix = attempt_matrix(outcomes, outcomes.tasks)
    scores = [] if matrix is None else list(map(float, matrix.mean(axis=0)))
    places = [one for one in (max(trial - 1, 0), trial) if trial and one < len(scores)] or [0]
    if trial > len(scores):
        return []
    gap = "runs may be counted from 0 or from 1"
    return [
        RunScore(f"run {trial}", scores[at], (scores[at], scores[at]), at == places[0], gap)
        for at in places
    ]


def _share_of_tasks(outcomes: Outcomes, kind: str) -> RunScore:
    """The share of tasks that pass in some attempts only, or in most; missing ones are bounds."""
    n, c, missing = outcomes.n, outcomes.c, outcomes.missing
    total = n + missing
    if kind == "some":
        name, first = "passed in some attempts", (c > 0) & (c < n)
        last = (c + missing > 0) & (c < total) & (total > 1)
    else:
        name, first, last = "passed in most attempts", 2 * c > total, 2 * (c + missing) > total
    low, high = float(first.mean()), float(last.mean())
    return RunScore(name, low, (low, high))


def attempt_matrix(outcomes: Outcomes, tasks: Sequence[str]) -> FloatArray | None:
    """Attempts in their order, a row for each of the tasks; None where that is not known."""
    if outcomes.order is None or outcomes.n.min() < outcomes.n.max() or outcomes.missing.any():
        return None
    at = [list(outcomes.tasks).index(task) for task in tasks]
    attempts: FloatArray = outcomes.order.completed(Completion.AS_FAILED).matrix().astype(float)
    return attempts[at]
