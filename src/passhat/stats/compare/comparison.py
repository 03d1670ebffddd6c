"""A metric compared: lift, interval, test, claim; the same within each slice.

The claim is about new tasks (tasks like these) or about these tasks (the same suite again). Among
many slices the best one looks good by chance alone, so none is shown without the others and every
interval pays for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted, html_table, number
from passhat._serialize import Plain
from passhat.protocol import Alternative
from passhat.stats.arrays import BoolArray, FloatArray, special
from passhat.stats.clusters import shared_labels
from passhat.stats.compare.claims import (
    AdjustedFor,
    Claim,
    Evidence,
    Method,
    decide,
    headline,
    points,
    remarks,
    sentence,
)
from passhat.stats.compare.guard import Agreement
from passhat.stats.compare.lift import METHOD as NEW_TASKS_METHOD
from passhat.stats.compare.lift import Interval, LiftSample, hull, tail_of
from passhat.stats.compare.pairing import Differences, Pairing, mean_lift
from passhat.stats.compare.prospects import (
    Prospect,
    Reach,
    foresee_attempts,
    foresee_tasks,
    no_tie_chance,
)
from passhat.stats.compare.significance import (
    Tested,
    holm,
    lift_deviation,
    sign_flip_test,
    sign_test,
)
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.compare.these_tasks import METHOD as THESE_TASKS_METHOD
from passhat.stats.compare.these_tasks import bound_lift, end_below_zero
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import verdict_twin
from passhat.stats.outcomes import Completion, MissingPolicy
from passhat.stats.terms import Population, Terms

_LEVEL = 1e-12
"""A difference closer to zero than rounding can tell is a tie."""

MEAN_SHARE = 0.5
"""The share of a gate's error that is spent on the mean of these tasks; the rest is spent on single
tasks. A one-sided gate at 95% then decides by the ends of compare's two-sided 95% interval, and
both say the same about the same pair."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The runs, their protocols, and how many comparisons are made together.

    ``tail`` is what each end of an interval may miss; ``adjusted`` names how it was chosen where
    it is smaller than that of a single interval. Without ``advises``, what would settle an open
    claim is not searched for. With ``is_drop_shown``, attempts beside these show a drop.
    """

    names: tuple[str, str]
    agreement: Agreement
    looked: AdjustedFor
    tail: float
    adjusted: str = ""
    changes: tuple[TaskChange, ...] = ()
    advises: bool = True
    is_drop_shown: bool = False


@dataclass(frozen=True, slots=True)
class Result(Plain):
    """The result of a metric for B against A."""

    metric: Metric
    lift: float
    """Mean over paired tasks of B minus A; ``value_a`` and ``value_b`` are the two sides."""
    low: float
    high: float
    """``low``, ``high``: the interval that decides the claim; where several comparisons are looked
    at together it is widened to hold for all of them. ``low_alone`` and ``high_alone`` are not
    widened.
    """
    level: float
    p_value: float | None
    """Of the exact sign test or the sign-flip test, not corrected; ``None`` where the two sides
    have different numbers of attempts, since then no sign-flip test holds. ``p_holm`` and
    ``p_max_t`` are corrected, where there are several slices or pairs.
    """
    alternative: Alternative
    wins: int
    losses: int
    ties: int
    """``wins``, ``losses``, ``ties``: tasks on which B is better, worse, the same."""
    evidence: Evidence
    """The facts of the claim, which :mod:`passhat.stats.compare.claims` puts into words."""
    method: Method
    """How interval and p-value were made."""
    value_a: float
    value_b: float
    low_alone: float
    high_alone: float
    lift_lowest: float
    lift_highest: float
    """``lift_lowest``, ``lift_highest``: the lift had the missing attempts gone the worst and the
    best way for B.
    """
    looked_at: int = 1
    p_holm: float | None = None
    p_max_t: float | None = None

    @property
    def tasks(self) -> int:
        return self.wins + self.losses + self.ties

    @property
    def population(self) -> Population:
        """The tasks that the claim is about."""
        return self.evidence.population

    @property
    def claim(self) -> Claim:
        return self.evidence.claim

    @property
    def tasks_needed(self) -> int | None:
        """Paired tasks that would settle an inconclusive result about new tasks."""
        prospect = self.evidence.prospect
        return prospect.total if prospect is not None and prospect.kind == "tasks" else None

    @property
    def headline(self) -> str:
        """The result in one line."""
        return headline(self.evidence)

    @property
    def claim_sentence(self) -> str:
        """The claim with its size, interval, tasks and protocol."""
        return sentence(self.evidence)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences to go with the claim."""
        return remarks(self.evidence)

    @property
    def sentence(self) -> str:
        """The claim and its remarks."""
        return " ".join((self.claim_sentence, *self.remarks))

    def interval_text(self) -> str:
        """The interval in points; an end that was not requested is omitted."""
        low, high = points(self.low), points(self.high)
        if self.alternative == "greater":
            return f"at least {low}"
        return f"at most {high}" if self.alternative == "less" else f"{low} to {high}"

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items() if value is not None]
        return html_table(f"{self.metric}: {self.claim}", ("", ""), rows)

    def _as_dict(self) -> dict[str, object]:
        data: dict[str, object] = {
            "metric": self.metric,
            "about": str(self.population),
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
            "headline": self.headline,
            "sentence": self.sentence,
            "method": str(self.method),
            "value_a": self.value_a,
            "value_b": self.value_b,
            "tasks": self.tasks,
            "low_alone": self.low_alone,
            "high_alone": self.high_alone,
            "lift_lowest": self.lift_lowest,
            "lift_highest": self.lift_highest,
            "tasks_needed": self.tasks_needed,
            "prospect": self.evidence.prospect,
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


def pair_evidence(
    metric: Metric,
    pairing: Pairing,
    terms: Terms,
    setting: Setting,
    population: Population = Population.NEW_TASKS,
) -> Evidence:
    """The facts about one metric and one population: values, lift, interval, what is missing."""
    twin = verdict_twin(metric, pairing.a, pairing.b)
    differences = pairing.differences(twin, terms.missing)
    lift, lowest, highest = (
        mean_lift(d) for d in (differences.values, differences.lowest, differences.highest)
    )
    is_open = differences.open > 0 and lowest <= 0 <= highest
    interval = _lift_interval(differences, twin, pairing, terms, population, setting.tail)
    if setting.is_drop_shown and population is Population.THESE_TASKS:
        interval = end_below_zero(interval, pairing)
    prospect = None
    if setting.advises and not is_open and decide(interval) is Claim.INCONCLUSIVE:
        prospect = _foresee(pairing, twin, terms, interval, lift, population, setting.tail)
    changes = setting.changes if population is Population.THESE_TASKS else ()
    return Evidence(
        metric,
        *setting.names,
        value_a=differences.value_a,
        value_b=differences.value_b,
        lift=lift,
        interval=interval,
        level=terms.level,
        alternative=terms.alternative,
        tasks=len(differences.values),
        population=population,
        agreement=setting.agreement,
        looked=setting.looked,
        missing=differences.open,
        prospect=prospect,
        undecided=is_open,
        attempts=_attempts(pairing),
        broken=tuple(change for change in changes if change.change == "broke"),
        fixed=tuple(change for change in changes if change.change == "improved"),
        highest_a=differences.highest_a,
        highest_b=differences.highest_b,
        unjudged=pairing.unjudged,
    )


def _lift_interval(
    differences: Differences,
    metric: Metric,
    pairing: Pairing,
    terms: Terms,
    population: Population,
    tail: float,
) -> Interval:
    if population is Population.THESE_TASKS:
        return bound_lift(pairing, metric, terms, tail)
    samples = [LiftSample.of(d, differences.clusters) for d in differences.fills]
    return hull(sample.interval(tail, terms.alternative) for sample in samples)


def judge(
    metric: Metric,
    pairing: Pairing,
    terms: Terms,
    setting: Setting,
    population: Population = Population.NEW_TASKS,
) -> Result:
    """Judge one metric on the paired tasks."""
    evidence = pair_evidence(metric, pairing, terms, setting, population)
    twin = verdict_twin(metric, pairing.a, pairing.b)
    differences = pairing.differences(twin, terms.missing)
    interval = alone = evidence.interval
    tail = tail_of(terms.level, terms.alternative)
    if setting.tail != tail:
        alone = _lift_interval(differences, twin, pairing, terms, population, tail)
    test = _test_differences(differences, terms.alternative)
    wins = int((differences.values > _LEVEL).sum())
    losses = int((differences.values < -_LEVEL).sum())
    method = NEW_TASKS_METHOD if population is Population.NEW_TASKS else THESE_TASKS_METHOD
    if population is Population.NEW_TASKS and terms.cluster is not None:
        method += f", weights per {terms.cluster}"
    if twin is not metric:
        method += f", that of {twin}: every score is its verdict"
    return Result(
        metric=metric,
        lift=evidence.lift,
        low=interval.low,
        high=interval.high,
        level=terms.level,
        p_value=None if test is None else test.p_value,
        alternative=terms.alternative,
        wins=wins,
        losses=losses,
        ties=len(differences.values) - wins - losses,
        evidence=evidence,
        method=Method(
            method,
            setting.adjusted,
            "not computed, the sides have different numbers of attempts"
            if test is None
            else test.method,
            _missing_text(terms.missing, differences.open),
        ),
        value_a=differences.value_a,
        value_b=differences.value_b,
        low_alone=alone.low,
        high_alone=alone.high,
        lift_lowest=mean_lift(differences.lowest),
        lift_highest=mean_lift(differences.highest),
        looked_at=setting.looked.count,
    )


def _attempts(pairing: Pairing) -> int:
    """Attempts per task: the median over the tasks of both sides."""
    both = [side.counts(Completion.AS_FAILED)[0] for side in (pairing.a, pairing.b)]
    return int(np.median(np.concatenate(both)))


def _foresee(
    pairing: Pairing,
    metric: Metric,
    terms: Terms,
    interval: Interval,
    lift: float,
    population: Population,
    tail: float,
) -> Prospect | None:
    """Attempts or tasks with which the lift is shown, either way that the alternative allows."""

    def settles(lifts: FloatArray, reach: Reach) -> BoolArray:
        is_rise, is_drop = lifts - reach.below > 0, lifts + reach.above < 0
        ways = {"greater": is_rise, "less": is_drop, "two-sided": is_rise | is_drop}
        return ways[terms.alternative]

    sides = (pairing.a, pairing.b)
    reach = Reach(lift - interval.low, interval.high - lift)
    if population is Population.THESE_TASKS:
        reach = sharpen_reach(reach, pairing, metric, terms, tail)
    # Half of the interval; an end that was not asked for is that of the range.
    half = min(reach.below, reach.above)
    ceiling = no_tie_chance(lift, half / -float(special.ndtri(min(tail, 0.4))))
    if population is Population.NEW_TASKS:
        return foresee_tasks(sides, metric, reach, settles, pairing.clusters, ceiling=ceiling)
    return foresee_attempts(sides, metric, reach, settles, ceiling=ceiling)


def sharpen_reach(
    reach: Reach, pairing: Pairing, metric: Metric, terms: Terms, tail: float
) -> Reach:
    """The reach of the exact test within tasks, where zero has it and it is the shorter one."""
    deviation = None
    if isinstance(metric, CountMetric):
        deviation = lift_deviation(pairing, metric, terms.missing)
    if deviation is None:
        return reach
    exact = -float(special.ndtri(min(tail, 0.5))) * deviation
    return Reach(min(reach.below, exact), min(reach.above, exact))


def _p(value: float | None) -> str:
    """A p-value with three digits; a small one never reads as zero."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else number(value)


def _test_differences(differences: Differences, alternative: Alternative) -> Tested | None:
    """The test at the extreme that is worst for the alternative; none for unequal attempts."""
    if not differences.equal_n:
        return None

    def test(d: FloatArray) -> Tested:
        if differences.clusters is None:
            return _test(d, alternative)
        _, member = np.unique(np.asarray(differences.clusters), return_inverse=True)
        sums = np.bincount(member, weights=d) / len(d)
        result = sign_flip_test(np.where(np.abs(sums) > _LEVEL, sums, 0.0), alternative)
        return Tested(result.p_value, f"{result.method} over clusters")

    if not differences.open:
        return test(differences.values)
    worst = "at the unfavorable extreme of the missing attempts"
    if alternative != "two-sided":
        extreme = differences.lowest if alternative == "greater" else differences.highest
        result = test(extreme)
        return Tested(result.p_value, f"{result.method} {worst}")
    ways = [test(d) for d in differences.fills]
    # Extremes on both sides of zero may each look extreme; somewhere between them nothing does.
    is_open = differences.lowest.mean() <= 0 <= differences.highest.mean()
    p_value = 1.0 if is_open else max(way.p_value for way in ways)
    return Tested(p_value, f"{ways[0].method} {worst}")


def _test(d: FloatArray, alternative: Alternative) -> Tested:
    if bool((np.isin(d, (-1.0, 0.0, 1.0))).all()):
        return sign_test(int((d > 0).sum()), int((d < 0).sum()), alternative)
    return sign_flip_test(np.where(np.abs(d) > _LEVEL, d, 0.0), alternative)


def _missing_text(policy: MissingPolicy, missing: int) -> str:
    if policy is MissingPolicy.BOUND:
        return "missing attempts both ways, outer ends" if missing else ""
    return "missing as failed" if policy is MissingPolicy.FAIL else "missing left out"


# -- slices ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SliceResult(Plain):
    """The result of a metric within a slice."""

    label: str
    value: str
    result: Result

    def __str__(self) -> str:
        result = self.result
        return (
            f"{self.label} = {self.value}: {result.claim}, {result.metric} {points(result.lift)} "
            f"points ({result.interval_text()}; {counted(result.tasks, 'paired task')}; "
            f"adjusted for {result.looked_at})"
        )

    def _as_dict(self) -> dict[str, object]:
        return {"label": self.label, "value": self.value, **self.result.to_dict()}


def slice_results(
    pairing: Pairing,
    metrics: Sequence[Metric],
    label: str,
    terms: Terms,
    agreement: Agreement,
    population: Population,
) -> tuple[SliceResult, ...]:
    """Every metric in every slice: Bonferroni for the intervals, Holm for the p-values."""
    column = np.array(shared_labels((pairing.a, pairing.b), label), dtype=object)
    values = sorted(set(column.tolist()))
    count = len(values) * len(metrics)
    what = f"slices of {label!r}" if len(metrics) == 1 else f"results over slices of {label!r}"
    setting = Setting(
        pairing.names,
        agreement,
        AdjustedFor(count, what),
        tail_of(terms.level, terms.alternative) / count,
        f"Bonferroni over {count} {what}" if count > 1 else "",
    )
    parts = [
        SliceResult(label, value, judge(word, part, terms, setting, population))
        for value in values
        for part in [pairing.take(np.flatnonzero(column == value))]
        for word in metrics
    ]
    p_values = [part.result.p_value for part in parts]
    tested_values = [p for p in p_values if p is not None]
    corrections = iter(holm(tested_values).tolist()) if tested_values else iter(())
    return tuple(
        part
        if part.result.p_value is None
        else replace(part, result=replace(part.result, p_holm=next(corrections)))
        for part in parts
    )
