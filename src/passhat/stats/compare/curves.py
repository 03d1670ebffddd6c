"""The lift over k: a band that holds at every k at once, and where the ranking flips."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.claims import Claim, decide, points
from passhat.stats.compare.lift import (
    METHOD,
    ROWS,
    TOGETHER,
    Interval,
    LiftSample,
    cluster_rows,
    hull,
    simultaneous_tail,
)
from passhat.stats.compare.pairing import Differences, Pairing
from passhat.stats.estimate.metrics import Mean, Metric, PassHat, Rate, WorstOf
from passhat.stats.outcomes import MissingPolicy

_MOST_POINTS = 32
_LEVEL = 1e-12
"""A lift closer to zero than rounding can tell is level."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The lift at one k, with the ends of the band and the values of both sides."""

    k: int
    lift: float
    low: float
    high: float
    value_a: float = math.nan
    value_b: float = math.nan

    @property
    def middle(self) -> float:
        """The mean of both values: runs are told apart best where it is near one half."""
        return (self.value_a + self.value_b) / 2


@dataclass(frozen=True, slots=True)
class Flip(Plain):
    """Between two values of k the other agent takes the lead."""

    WRITTEN = (..., "sentence")

    family: str
    last_k: int
    first_k: int
    leader_before: str
    leader_after: str
    shown: bool

    def __str__(self) -> str:
        worth = (
            "the band over k shows both"
            if self.shown
            else "the band over k does not show both, so it may be chance"
        )
        return (
            f"the ranking flips over k: {self.leader_before} leads up to k = {self.last_k} of "
            f"{self.family}, {self.leader_after} from k = {self.first_k}; {worth}. The choice of "
            "k is not neutral here."
        )

    @property
    def sentence(self) -> str:
        """The result in words."""
        return str(self)


@dataclass(frozen=True, slots=True)
class LiftCurve:
    """The lift of one family of metrics over k."""

    family: str
    level: float
    points: tuple[CurvePoint, ...]
    flips: tuple[Flip, ...]
    method: str

    def __str__(self) -> str:
        ends = (self.points[0], self.points[-1])
        text = ", ".join(f"{points(end.lift)} points at k = {end.k}" for end in ends)
        return f"lift of {self.family}: {text}"


def family(metric: Metric) -> str:
    """``pass^4`` belongs to ``pass^k``."""
    return metric.family


def lift_curve(
    pairing: Pairing,
    metric: Metric,
    policy: MissingPolicy,
    *,
    level: float,
) -> LiftCurve | None:
    """The lift at every k that both sides support; ``None`` when that is only one k.

    The band has two sides with any alternative: a flip is about both agents.
    """
    top = min(int(side.counts(policy.completion)[0].min()) for side in (pairing.a, pairing.b))
    if top < 2:
        return None
    ks = sorted({round(k) for k in np.linspace(1, top, min(top, _MOST_POINTS)).tolist()})
    start = PassHat(1) if isinstance(metric, Rate) else metric
    start = WorstOf(1) if isinstance(metric, Mean) else start
    members = [start.with_k(k) for k in ks]
    # Computed twice rather than kept: of a million tasks that would be a gigabyte.
    tail = simultaneous_tail(_rows(pairing, members, policy), level, "two-sided")
    points = tuple(
        _point(member.k, pairing.differences(member, policy), tail) for member in members
    )
    name = family(metric)
    return LiftCurve(
        name,
        level,
        points,
        _flips(name, points, pairing.names),
        f"{METHOD}, simultaneous over {len(ks)} values of k by {TOGETHER}",
    )


def _rows(
    pairing: Pairing, metrics: Sequence[Metric], policy: MissingPolicy
) -> Iterator[FloatArray]:
    """The differences block by block, one column for each metric."""
    if pairing.clusters is not None:
        columns = [pairing.differences(metric, policy).values for metric in metrics]
        yield cluster_rows(np.stack(columns, axis=1), pairing.clusters)
        return
    for start in range(0, len(pairing), ROWS):
        block = pairing.take(np.arange(start, min(start + ROWS, len(pairing))))
        yield np.stack([block.differences(metric, policy).values for metric in metrics], axis=1)


def _point(k: int, differences: Differences, tail: float) -> CurvePoint:
    ends = hull(LiftSample.of(d, differences.clusters).interval(tail) for d in differences.fills)
    values = differences.value_a, differences.value_b
    return CurvePoint(k, differences.lift, ends.low, ends.high, *values)


def _flips(name: str, drawn: tuple[CurvePoint, ...], names: tuple[str, str]) -> tuple[Flip, ...]:
    leading = [point for point in drawn if abs(point.lift) > _LEVEL]
    flips = []
    for before, after in pairwise(leading):
        if (before.lift > 0) != (after.lift > 0):
            earlier = {decide(Interval(p.low, p.high)) for p in drawn if p.k <= before.k}
            later = {decide(Interval(p.low, p.high)) for p in drawn if p.k >= after.k}
            up, down = Claim.IMPROVEMENT, Claim.REGRESSION
            signs = (up, down) if before.lift > 0 else (down, up)
            flips.append(
                Flip(
                    name,
                    before.k,
                    after.k,
                    names[before.lift > 0],
                    names[after.lift > 0],
                    signs[0] in earlier and signs[1] in later,
                )
            )
    return tuple(flips)
