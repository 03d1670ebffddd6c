"""One metric compared: lift, interval, test, claim, sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._display import html_table, number
from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.claims import Claim, Evidence, Looked, decide, points, sentence
from passhat.stats.compare.lift import METHOD as INTERVAL_METHOD
from passhat.stats.compare.lift import Spread, hull, tail_of, tasks_needed
from passhat.stats.compare.pairing import Differences
from passhat.stats.compare.significance import Tested, sign_flip_test, sign_test
from passhat.stats.outcomes import MissingPolicy
from passhat.stats.terms import Terms

__all__ = ["Result", "Setting", "judge"]

_LEVEL = 1e-12
"""A difference closer to zero than rounding can tell is a tie."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Between whom, under which protocol, and beside how many other comparisons."""

    names: tuple[str, str]
    protocols: str
    looked: Looked


@dataclass(frozen=True, slots=True)
class Result:
    """What one metric says about B against A.

    Attributes
    ----------
    lift : float
        Mean over paired tasks of B minus A; ``value_a`` and ``value_b`` are the two sides.
    low, high : float
        The interval that decides the claim; where several comparisons are looked at together it is
        widened to hold for all of them. ``low_alone`` and ``high_alone`` are not widened.
    p_value : float
        Of the exact sign test or the sign-flip test, not corrected. ``p_holm`` and ``p_max_t`` are,
        where there are several slices or pairs.
    wins, losses, ties : int
        Tasks on which B is better, worse, the same.
    lift_lowest, lift_highest : float
        The lift had the missing attempts gone the worst and the best way for B.
    tasks_needed : int or None
        Paired tasks that would settle an inconclusive result if the lift stays as it is.
    """

    metric: str
    lift: float
    low: float
    high: float
    level: float
    p_value: float
    alternative: Alternative
    wins: int
    losses: int
    ties: int
    claim: Claim
    sentence: str
    method: str
    value_a: float
    value_b: float
    low_alone: float
    high_alone: float
    lift_lowest: float
    lift_highest: float
    tasks_needed: int | None
    looked_at: int = 1
    p_holm: float | None = None
    p_max_t: float | None = None

    @property
    def tasks(self) -> int:
        return self.wins + self.losses + self.ties

    def interval_text(self) -> str:
        """The interval in points; an end that was not asked for is left out."""
        low, high = points(self.low), points(self.high)
        if self.alternative == "greater":
            return f"at least {low}"
        return f"at most {high}" if self.alternative == "less" else f"{low} to {high}"

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items() if value is not None]
        return html_table(f"{self.metric}: {self.claim}", ("", ""), rows)

    def to_dict(self) -> dict[str, object]:
        data: dict[str, object] = {
            "metric": self.metric,
            "lift": self.lift,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "p_value": self.p_value,
            "alternative": self.alternative,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "claim": str(self.claim),
            "sentence": self.sentence,
            "method": self.method,
            "value_a": self.value_a,
            "value_b": self.value_b,
            "tasks": self.tasks,
            "low_alone": self.low_alone,
            "high_alone": self.high_alone,
            "lift_lowest": self.lift_lowest,
            "lift_highest": self.lift_highest,
            "tasks_needed": self.tasks_needed,
            "looked_at": self.looked_at,
        }
        if self.p_holm is not None:
            data["p_holm"] = self.p_holm
        if self.p_max_t is not None:
            data["p_max_t"] = self.p_max_t
        return data

    def p_text(self) -> str:
        """The p-value as it is, not corrected."""
        return _p(self.p_value)

    def corrected(self) -> tuple[str, str]:
        """The p-values corrected by Holm and by max-T."""
        return _p(self.p_holm), _p(self.p_max_t)


def judge(
    metric: str,
    found: Differences,
    terms: Terms,
    setting: Setting,
    *,
    tail: float | None = None,
    widened_by: str = "",
) -> Result:
    """Judge the differences of one metric.

    ``tail`` is what the interval leaves beyond each end when it is one of several; ``widened_by``
    names how that was found.
    """
    alone = tail_of(terms.level, terms.alternative)
    tail = alone if tail is None else tail
    spreads = [Spread.of(d) for d in (found.values, found.lowest, found.highest)]
    interval = hull(spread.interval(tail, terms.alternative) for spread in spreads)
    by_itself = hull(spread.interval(alone, terms.alternative) for spread in spreads)
    lift, lowest, highest = (spread.mean for spread in spreads)
    undecided = found.open > 0 and lowest <= 0 <= highest
    claim = decide(interval)
    needed = None
    if claim is Claim.INCONCLUSIVE and not undecided:
        nearest = min(spreads, key=lambda spread: abs(spread.mean))
        needed = tasks_needed(nearest, tail, terms.alternative)
    tested = _tested(found, terms.alternative)
    wins, losses = int((found.values > _LEVEL).sum()), int((found.values < -_LEVEL).sum())
    method = "; ".join(
        part
        for part in (
            f"interval: {INTERVAL_METHOD}{', ' + widened_by if widened_by else ''}",
            f"p-value: {tested.method}",
            _missing_text(terms.missing, found.open),
        )
        if part
    )
    evidence = Evidence(
        metric,
        *setting.names,
        lift=lift,
        interval=interval,
        level=terms.level,
        alternative=terms.alternative,
        tasks=len(found.values),
        protocols=setting.protocols,
        looked=setting.looked,
        missing=found.open,
        needed=needed,
        undecided=undecided,
    )
    return Result(
        metric=metric,
        lift=lift,
        low=interval.low,
        high=interval.high,
        level=terms.level,
        p_value=tested.p_value,
        alternative=terms.alternative,
        wins=wins,
        losses=losses,
        ties=len(found.values) - wins - losses,
        claim=claim,
        sentence=sentence(evidence),
        method=method,
        value_a=found.value_a,
        value_b=found.value_b,
        low_alone=by_itself.low,
        high_alone=by_itself.high,
        lift_lowest=lowest,
        lift_highest=highest,
        tasks_needed=needed,
        looked_at=setting.looked.count,
    )


def _p(value: float | None) -> str:
    """A p-value with three digits; a small one never reads as zero."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else number(value)


def _tested(found: Differences, alternative: Alternative) -> Tested:
    """The test at the extreme that is worst for the alternative."""
    if not found.open:
        return _test(found.values, alternative)
    worst = "at the unfavourable extreme of the missing attempts"
    if alternative != "two-sided":
        extreme = found.lowest if alternative == "greater" else found.highest
        tested = _test(extreme, alternative)
        return Tested(tested.p_value, f"{tested.method} {worst}")
    ways = [_test(d, alternative) for d in (found.values, found.lowest, found.highest)]
    # Extremes on both sides of zero may each look extreme; somewhere between them nothing does.
    undecided = found.lowest.mean() <= 0 <= found.highest.mean()
    p_value = 1.0 if undecided else max(way.p_value for way in ways)
    return Tested(p_value, f"{ways[0].method} {worst}")


def _test(d: FloatArray, alternative: Alternative) -> Tested:
    if bool((np.isin(d, (-1.0, 0.0, 1.0))).all()):
        return sign_test(int((d > 0).sum()), int((d < 0).sum()), alternative)
    return sign_flip_test(np.where(np.abs(d) > _LEVEL, d, 0.0), alternative)


def _missing_text(policy: MissingPolicy, missing: int) -> str:
    if policy is MissingPolicy.BOUND:
        return "missing attempts both ways, outer ends" if missing else ""
    return "missing as failed" if policy is MissingPolicy.FAIL else "missing left out"
