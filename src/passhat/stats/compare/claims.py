"""The sentence that the evidence allows. The interval decides, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from passhat._display import counted
from passhat.protocol import Alternative
from passhat.stats.compare.lift import Interval

__all__ = ["Claim", "Evidence", "Looked", "decide", "points", "sentence"]


class Claim(StrEnum):
    """What may be said of B against A."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Looked:
    """How many comparisons were looked at together, and what they were."""

    count: int = 1
    what: str = "metrics"

    def __str__(self) -> str:
        if self.count == 1:
            return "It is the only comparison looked at."
        return (
            f"It is one of {self.count:,} {self.what} looked at, and the intervals are widened to "
            "hold for all of them at once."
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the sentence speaks of.

    ``needed`` is the number of tasks that would settle it, ``None`` when no number would;
    ``undecided`` says that the attempts without a verdict alone could turn the lift around.
    """

    metric: str
    a: str
    b: str
    lift: float
    interval: Interval
    level: float
    alternative: Alternative
    tasks: int
    protocols: str
    looked: Looked
    missing: int
    needed: int | None
    undecided: bool


def decide(interval: Interval) -> Claim:
    """Strictly above zero, strictly below, or neither."""
    if interval.low > 0:
        return Claim.IMPROVEMENT
    return Claim.REGRESSION if interval.high < 0 else Claim.INCONCLUSIVE


def sentence(found: Evidence) -> str:
    """The claim in words: size, interval, tasks, protocol, what else was looked at, what next."""
    claim = decide(found.interval)
    lead = {
        Claim.IMPROVEMENT: "Evidence of improvement",
        Claim.REGRESSION: "Evidence of regression",
        Claim.INCONCLUSIVE: "Inconclusive",
    }[claim]
    where = f"{counted(found.tasks, 'paired task')}, {found.protocols}"
    parts = [
        f"{lead}: {found.metric} of {found.b} is {_size(found)}; {_range(found, claim)} ({where}).",
        str(found.looked),
    ]
    if found.missing:
        parts.append(
            f"{counted(found.missing, 'attempt')} without a verdict "
            f"{'is' if found.missing == 1 else 'are'} taken at the worst for either claim."
        )
    if claim is Claim.INCONCLUSIVE:
        parts.append(_what_next(found))
    return " ".join(parts)


def points(share: float, *, signed: bool = True) -> str:
    """A share in points; a number that is not zero never reads as zero."""
    value = 100 * share
    digits = 1
    while value != 0 and digits < 6 and round(abs(value), digits) == 0:
        digits += 1
    value = 0.0 if round(value, digits) == 0 else value
    return f"{value:+.{digits}f}" if signed and value else f"{value:.{digits}f}"


def _size(found: Evidence) -> str:
    if found.lift == 0:
        return f"level with that of {found.a} (lift 0.0 points)"
    side = "above" if found.lift > 0 else "below"
    return f"{points(abs(found.lift), signed=False)} points {side} that of {found.a}"


def _range(found: Evidence, claim: Claim) -> str:
    low, high = points(found.interval.low), points(found.interval.high)
    level = f"{100 * found.level:g}%"
    if found.alternative == "two-sided":
        text = f"the {level} interval of the lift, {low} to {high} points,"
    elif found.alternative == "greater":
        text = f"the one-sided {level} lower bound of the lift, {low} points,"
    else:
        text = f"the one-sided {level} upper bound of the lift, {high} points,"
    where = {
        Claim.IMPROVEMENT: "lies above zero",
        Claim.REGRESSION: "lies below zero",
        Claim.INCONCLUSIVE: "includes zero"
        if found.alternative == "two-sided"
        else "does not exclude zero",
    }[claim]
    return f"{text} {where}"


def _what_next(found: Evidence) -> str:
    if found.undecided:
        return (
            "More tasks alone would not settle it: attempts without a verdict could turn the lift "
            "around. Judge or repeat those first."
        )
    if found.needed is None:
        return "No number of tasks would settle it if the lift stays as it is."
    return (
        f"If the lift stays the same, about {found.needed:,} paired tasks like these would settle "
        f"it ({found.tasks:,} now); plan twice that many to be fairly sure."
    )
