"""The gate without a rule: is the run worse than its baseline on the tasks of both?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from passhat._display import counted
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.compare.claims import AdjustedFor, Claim, Evidence, PairVerdict, points
from passhat.stats.compare.comparison import MEAN_SHARE, Setting, pair_evidence, sharpen_reach
from passhat.stats.compare.pairing import Pairing
from passhat.stats.compare.prospects import Reach, foresee_attempts
from passhat.stats.compare.task_changes import find_changed_tasks
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate import metric as parse_metric
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.cases import Case, missing_notes
from passhat.stats.gate.confirm import CONFIRMED_MEAN_SHARE
from passhat.stats.gate.gate_result import Advice, GateVerdict, Rule, RuleResult
from passhat.stats.terms import Population, Terms

_COARSEST = 0.5
"""Data that resolve no drop smaller than this show nothing that is worth being called a pass."""

_RESOLVED = 1 + 1.2816 / 1.96
"""A drop of this many half-widths of the interval is called a regression with a chance of 90%."""


@dataclass(frozen=True, slots=True)
class NoRegression(Rule):
    """The question of the gate without a rule.

    ``margin`` is a share (0.05 for 5 points); ``None`` takes what the data can resolve.
    """

    subject: Metric = field()  # without it, the base class's property would be its default
    margin: float | None = None
    relative: bool = True

    def __post_init__(self) -> None:
        if self.margin is not None and not 0 < self.margin < 1:
            raise InvalidValue(
                f"the margin is a share between 0 and 1, not {self.margin:g}.",
                hint=Hint("For example {margin}: a drop of 5 points is accepted.", margin=0.05),
            )

    @classmethod
    def parse(cls, text: str) -> Rule | None:  # noqa: ARG003
        """Nothing: it is the gate without a text."""
        return None

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" beyond {100 * self.margin:g} points"
        return f"no regression of {self.subject}{margin}"

    def population(self, terms: Terms) -> Population:  # noqa: ARG002
        return Population.THESE_TASKS

    def judge(self, case: Case) -> RuleResult:
        """Judge a run against its baseline on the tasks of both, at a one-sided level."""
        metric, base, alpha = self.subject, case.baseline(self), 1 - case.options.terms.level
        terms = replace(case.options.terms, alternative="two-sided", cluster=None)
        comparison = case.pair(case.run, base, metric, terms)
        with_absent = comparison
        if case.absent:
            with_absent = case.pair(case.completed_run, base, metric, terms)
        pairing = with_absent.pairing
        # Mean and tasks share the error of a false alarm. "No regression" is another claim: only
        # one of the two can be false, so its bound has the whole error to itself.
        confirmation = case.options.confirmation
        tail, task_alpha = MEAN_SHARE * alpha, (1 - MEAN_SHARE) * alpha
        is_drop_shown: bool | None = False
        if confirmation is None:
            changes = find_changed_tasks(pairing, terms.missing, task_alpha)
        else:
            # First and fresh attempts share the tasks' error. Without a second look at the mean,
            # all of the mean's share goes to the first attempts.
            rises = find_changed_tasks(pairing, terms.missing, task_alpha, "greater")
            changes = (*confirmation.confirmed, *confirmation.others, *rises)
            is_drop_shown = confirmation.shows_drop(pairing, metric, terms.missing, alpha)
            if is_drop_shown is None:
                tail = CONFIRMED_MEAN_SHARE * alpha
        setting = Setting(
            pairing.names,
            with_absent.agreement,
            AdjustedFor(),
            tail,
            changes=changes,
            advises=False,
            is_drop_shown=bool(is_drop_shown),
        )
        pair = PairVerdict(
            pair_evidence(metric, pairing, terms, setting, Population.THESE_TASKS),
            None
            if len(pairing) == 1
            else pair_evidence(metric, pairing, terms, setting, Population.NEW_TASKS),
        )
        these = pair.lead
        low = bound_lift(pairing, metric, replace(terms, alternative="greater"), alpha).low
        value = comparison.pairing.differences(metric, terms.missing).lift
        high = these.interval.high
        reach = Reach(value - low, high - value)
        margin = _resolve(reach) if self.margin is None else self.margin
        too_coarse = self.margin is None and margin > _COARSEST
        if these.unjudged:
            verdict = GateVerdict.NOT_SETTLED
        elif pair.claim is Claim.REGRESSION or these.broken:
            verdict = GateVerdict.REFUTED
        elif (too_coarse and low <= 0) or low < -margin:
            verdict = GateVerdict.NOT_SETTLED
        else:
            verdict = GateVerdict.SHOWN
        advice = None
        if verdict is GateVerdict.SHOWN and _cannot_drop(these) and not pair.is_rise:
            verdict = GateVerdict.NOT_SETTLED
            advice = Advice(
                "baseline", f"no attempt of the baseline {these.a} passed, so that no drop can show"
            )
        elif verdict is GateVerdict.NOT_SETTLED:
            advice = _advise(case, pairing, self.margin, reach)
        return RuleResult(
            rule=self,
            verdict=verdict,
            value=value,
            low=min(low, value),
            high=max(high, value),
            level=case.options.terms.level,
            about=str(Population.THESE_TASKS),
            tasks=len(pairing),
            attempts=with_absent.attempts,
            advice=advice,
            notes=(*comparison.notes, *missing_notes(case.run, terms.missing, base)),
            margin=margin,
            broken=these.broken,
            pair=pair,
        )

    def outcome(self, result: RuleResult) -> str:
        """Regression, improvement, no regression, or unsettled."""
        if result.verdict is GateVerdict.REFUTED:
            return "regression"
        if result.verdict is GateVerdict.NOT_SETTLED:
            return "unsettled"
        is_rise = result.pair is not None and result.pair.is_rise
        return "improvement" if is_rise else "no regression"

    def evidence(self, result: RuleResult) -> str:
        """The verdict sentence that ``compare`` prints for the same pair."""
        return "" if result.pair is None else result.pair.sentence

    def extra_entries(self, result: RuleResult) -> dict[str, Any]:
        pair = result.pair
        return {} if pair is None else {"claim": str(pair.claim), "verdict_sentence": pair.sentence}


def _cannot_drop(evidence: Evidence) -> bool:
    """Whether the baseline is at zero already, however its missing attempts would have ended."""
    highest = evidence.value_a if evidence.highest_a is None else evidence.highest_a
    return highest == 0


def _advise(case: Case, pairing: Pairing, margin: float | None, reach: Reach) -> Advice | None:
    """The step that may settle the gate: finish the run, or more attempts, with their chance."""
    absent, terms = case.absent, case.options.terms
    if absent:
        return Advice(
            "finish",
            f"finish the run first: {counted(absent.attempts, 'planned attempt')} "
            f"{'is' if absent.attempts == 1 else 'are'} absent",
        )
    metric = parse_metric(case.options.metric)
    sharp = sharpen_reach(reach, pairing, metric, terms, MEAN_SHARE * (1 - terms.level))

    sharper = sharp.above / reach.above if reach.above else 1.0

    def settles(lifts: FloatArray, reach: Reach) -> BoolArray:
        is_drop = lifts + sharper * reach.above < 0
        accepted = _resolve(reach) if margin is None else margin
        is_fine = margin is not None or accepted <= _COARSEST
        return is_drop | ((lifts - reach.below >= -accepted) & is_fine)

    prospect = foresee_attempts((pairing.a, pairing.b), metric, reach, settles)
    advice = Advice.of(prospect, both_runs=True)
    if margin is not None or _resolve(reach) <= _COARSEST:
        return advice
    smallest = _resolve(reach)
    text = f"these data resolve only drops of {points(smallest, signed=False)} points or more"
    if smallest >= 1:
        text = "these data cannot show a drop, however large it is"
    return Advice("attempts", f"{text}; {advice}" if advice else text, prospect)


def _resolve(reach: Reach) -> float:
    """The drop that data with this reach would have shown with a chance of about 90%."""
    return min(1.0, max(_RESOLVED * max(reach.above, reach.below), 0.001))
