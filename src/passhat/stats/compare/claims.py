"""The sentences that the evidence allows. The interval decides, nothing else.

:class:`Evidence` holds the facts; every sentence about a comparison of two agents is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from passhat._display import counted, some
from passhat.protocol import Alternative
from passhat.stats.compare.guard import Agreement
from passhat.stats.compare.lift import Interval
from passhat.stats.terms import Population

__all__ = [
    "AdjustedFor",
    "Claim",
    "Evidence",
    "Method",
    "decide",
    "headline",
    "points",
    "remarks",
    "sentence",
]


class Claim(StrEnum):
    """The allowed claim about B against A."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class AdjustedFor:
    """The number and kind of comparisons that the intervals were adjusted for."""

    count: int = 1
    what: str = "metrics"

    def __str__(self) -> str:
        return "" if self.count == 1 else f"Adjusted for {self.count:,} {self.what}."


@dataclass(frozen=True, slots=True)
class Method:
    """How a lift was judged: interval, adjustment, test, missing attempts."""

    interval: str
    adjusted: str = ""
    test: str = ""
    missing: str = ""

    def __str__(self) -> str:
        adjusted = f", {self.adjusted}" if self.adjusted else ""
        parts = [f"interval: {self.interval}{adjusted}"]
        parts += [f"p-value: {self.test}"] if self.test else []
        return "; ".join([*parts, *([self.missing] if self.missing else [])])


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts behind a claim about B against A.

    Attributes
    ----------
    interval : Interval
        The interval of the lift that decides the claim.
    needed : int or None
        What would settle an inconclusive result if the lift stays the same: paired tasks (about
        new tasks) or attempts per task (about these tasks); ``None`` when no number would.
    missing : int
        Attempts without a verdict that are counted against the claim.
    undecided : bool
        Whether those alone could turn the lift around.
    broken, fixed : tuple of str
        Tasks that are shown, each by itself, to pass less or more often; about these tasks only.
    """

    metric: str
    a: str
    b: str
    value_a: float
    value_b: float
    lift: float
    interval: Interval
    level: float
    alternative: Alternative
    tasks: int
    population: Population
    agreement: Agreement
    looked: AdjustedFor
    missing: int
    needed: int | None
    undecided: bool
    attempts: int = 0
    broken: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def claim(self) -> Claim:
        return decide(self.interval)


def decide(interval: Interval) -> Claim:
    """Strictly above zero, strictly below, or neither."""
    if interval.low > 0:
        return Claim.IMPROVEMENT
    return Claim.REGRESSION if interval.high < 0 else Claim.INCONCLUSIVE


def headline(evidence: Evidence) -> str:
    """The result in one line, without digests: the better agent, by how much, on how many tasks."""
    names = {
        Claim.IMPROVEMENT: f"{evidence.b} beats {evidence.a}",
        Claim.REGRESSION: f"{evidence.b} is worse than {evidence.a}",
        Claim.INCONCLUSIVE: f"No difference shown between {evidence.b} and {evidence.a}",
    }[evidence.claim]
    low, high = (_whole(100 * end) for end in (evidence.interval.low, evidence.interval.high))
    reach = {
        "two-sided": f"{low} to {high}",
        "greater": f"at least {low}",
        "less": f"at most {high}",
    }[evidence.alternative]
    about = " again" if evidence.population is Population.THESE_TASKS else ""
    return (
        f"{names}: {evidence.metric} {_whole(100 * evidence.value_b)}% against "
        f"{_whole(100 * evidence.value_a)}%, {_whole(100 * evidence.lift, signed=True)} points "
        f"({reach}), {'these ' if about else ''}{counted(evidence.tasks, 'task')}{about}."
    )


def sentence(evidence: Evidence) -> str:
    """The claim with its size, interval, tasks and protocol."""
    claim = evidence.claim
    lead = {
        Claim.IMPROVEMENT: "Evidence of improvement",
        Claim.REGRESSION: "Evidence of regression",
        Claim.INCONCLUSIVE: "Inconclusive",
    }[claim]
    where = f"{counted(evidence.tasks, 'paired task')}, {evidence.agreement}"
    return (
        f"{lead} on {evidence.population}: {evidence.metric} of {evidence.b} is "
        f"{_size(evidence)}; {_range(evidence, claim)} ({where})."
    )


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Sentences to go with the claim: adjustments, missing attempts, single tasks, next step."""
    parts = [str(evidence.looked)] if evidence.looked.count > 1 else []
    for tasks, verb in ((evidence.broken, "broke"), (evidence.fixed, "improved")):
        if tasks:
            parts.append(f"{counted(len(tasks), 'task')} {verb}: {some(tasks)}.")
    if evidence.missing:
        parts.append(
            f"{counted(evidence.missing, 'attempt')} without a verdict "
            f"{'is' if evidence.missing == 1 else 'are'} counted against the claim."
        )
    if evidence.claim is Claim.INCONCLUSIVE:
        parts.append(_what_next(evidence))
    return tuple(parts)


def points(share: float, *, signed: bool = True) -> str:
    """A share in points; a number that is not zero never reads as zero."""
    value = 100 * share
    digits = 1
    while value != 0 and digits < 6 and round(abs(value), digits) == 0:
        digits += 1
    value = 0.0 if round(value, digits) == 0 else value
    return f"{value:+.{digits}f}" if signed and value else f"{value:.{digits}f}"


def _whole(value: float, *, signed: bool = False) -> str:
    """A number of percent or points without decimals, unless it would read as 0 or as 100."""
    digits = 0
    while value not in (0, 100, -100) and digits < 3 and abs(round(value, digits)) in (0, 100):
        digits += 1
    value = 0.0 if round(value, digits) == 0 else value
    return f"{value:+.{digits}f}" if signed and value else f"{value:.{digits}f}"


def _size(evidence: Evidence) -> str:
    if evidence.lift == 0:
        return f"level with that of {evidence.a} (lift 0.0 points)"
    side = "above" if evidence.lift > 0 else "below"
    return f"{points(abs(evidence.lift), signed=False)} points {side} that of {evidence.a}"


def _range(evidence: Evidence, claim: Claim) -> str:
    low, high = points(evidence.interval.low), points(evidence.interval.high)
    level = f"{100 * evidence.level:g}%"
    if evidence.alternative == "two-sided":
        text = f"the {level} interval of the lift, {low} to {high} points,"
    elif evidence.alternative == "greater":
        text = f"the one-sided {level} lower bound of the lift, {low} points,"
    else:
        text = f"the one-sided {level} upper bound of the lift, {high} points,"
    where = {
        Claim.IMPROVEMENT: "lies above zero",
        Claim.REGRESSION: "lies below zero",
        Claim.INCONCLUSIVE: "includes zero"
        if evidence.alternative == "two-sided"
        else "does not exclude zero",
    }[claim]
    return f"{text} {where}"


def _what_next(evidence: Evidence) -> str:
    if evidence.undecided:
        return (
            "More tasks alone would not settle it: attempts without a verdict could turn the lift "
            "around. Judge or repeat those first."
        )
    if evidence.needed is None:
        what = "attempts" if evidence.population is Population.THESE_TASKS else "tasks"
        return f"No number of {what} would settle it if the lift stays as it is."
    if evidence.population is Population.THESE_TASKS:
        return (
            f"If the lift stays the same, about {evidence.needed:,} attempts per task would settle "
            f"it on these tasks ({evidence.attempts:,} now); plan twice that many."
        )
    return (
        f"If the lift stays the same, about {evidence.needed:,} paired tasks like these would "
        f"settle it ({evidence.tasks:,} now); plan twice that many."
    )
