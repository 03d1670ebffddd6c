"""Whether a stated number, interval or comparison agrees with what was computed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from passhat.reporting.review.single_runs import RunScore
from passhat.reporting.review.statements import Difference, Share
from passhat.stats.compare import Result
from passhat.stats.estimate import Estimate

__all__ = [
    "Support",
    "agrees",
    "agrees_any",
    "fits_points",
    "holds",
    "is_error",
    "near",
    "support",
    "support_of",
]

_CLOSE_POINTS = 2.0
_CLOSE_PART = 0.125
"""An end of an interval by another sound method may be so far from ours, in points or in widths."""


class Support(StrEnum):
    """Answers of the runs to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_SHOWN = "not shown"
    NOT_CHECKABLE = "not checkable"


def support_of(claim: Difference, about: Sequence[Result]) -> Support:
    """The answer to a comparison without a size; with two readings one of them is enough."""
    excludes = [not one.low <= 0 <= one.high for one in about]
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


def is_error(result: Estimate | RunScore, stated: float) -> bool:
    """Whether "± x" is half an interval, or a standard error (negative where it is called so)."""
    if result.low is None or result.high is None:
        return False
    half = (result.high - result.low) / 2
    as_error = 0.6 <= abs(stated) * 1.96 / half <= 1.6 if half else stated == 0
    is_close = abs(stated - half) <= _CLOSE_POINTS / 100 and stated >= half / 2
    return as_error or (stated >= 0 and is_close)


def support(is_right: bool) -> Support:
    return Support.SUPPORTED if is_right else Support.CONTRADICTED
