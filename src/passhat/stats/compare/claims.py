"""The sentences that the evidence allows. The interval decides, nothing else.

:class:`Evidence` holds the facts about one population, :class:`PairVerdict` those about both; every
sentence about a pair of runs is written here, so that ``compare``, ``gate``, the dashboard, a pull
request comment and JUnit say the same about the same pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from passhat._display import counted, some
from passhat.protocol import Alternative
from passhat.stats.compare.guard import Agreement
from passhat.stats.compare.lift import Interval
from passhat.stats.compare.prospects import Prospect
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.estimate.metrics import Metric
from passhat.stats.terms import Population


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
        adjustment = f", {self.adjusted}" if self.adjusted else ""
        parts = [f"interval: {self.interval}{adjustment}"]
        parts += [f"p-value: {self.test}"] if self.test else []
        return "; ".join([*parts, *([self.missing] if self.missing else [])])


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts behind a claim about B against A."""

    metric: Metric
    a: str
    b: str
    value_a: float
    value_b: float
    lift: float
    interval: Interval
    """The interval of the lift that decides the claim."""
    level: float
    alternative: Alternative
    tasks: int
    population: Population
    agreement: Agreement
    looked: AdjustedFor
    missing: int
    """Attempts without a verdict that are counted against the claim."""
    prospect: Prospect | None
    """What settles an inconclusive result, and in how many simulated cases: paired tasks (about new
    tasks) or attempts per task (about these tasks); ``None`` where neither does.
    """
    undecided: bool
    """Whether the missing attempts alone could turn the lift around."""
    attempts: int = 0
    broken: tuple[TaskChange, ...] = ()
    fixed: tuple[TaskChange, ...] = ()
    """``broken``, ``fixed``: tasks that are shown, each by itself, to pass less or more often;
    about these tasks only.
    """
    highest_a: float | None = None
    highest_b: float | None = None
    """``highest_a``, ``highest_b``: the two values had the missing attempts passed; ``None`` where
    nothing is missing.
    """
    unjudged: tuple[str, ...] = ()
    """The runs without a single verdict on the paired tasks: nothing can be said then."""
    unpaired: tuple[int, int] | None = None
    """The tasks of either side, where they are not the same tasks."""

    @property
    def claim(self) -> Claim:
        return decide(self.interval)

    @property
    def digits(self) -> int:
        """Decimals at which the printed numbers agree with each other.

        The difference of the two printed values lies in the printed interval, only zero reads as 0
        and only certainty as 100.
        """
        numbers = [100 * value for value in self._printed_values]
        for digits in range(4):
            shown_numbers = [round(number, digits) for number in numbers]
            a, b, low, high = shown_numbers[:4]
            misread = any(
                abs(short) in (0, 100) and abs(number) not in (0, 100)
                for short, number in zip(shown_numbers, numbers, strict=True)
            )
            if low - 1e-9 <= b - a <= high + 1e-9 and not misread:
                return digits
        return 4

    @property
    def _printed_values(self) -> tuple[float, ...]:
        low, high = self.interval.low, self.interval.high
        extremes = (self.highest_a, self.highest_b)
        return self.value_a, self.value_b, low, high, *(x for x in extremes if x is not None)


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The facts about a pair of runs: on these tasks first, then on new ones.

    ``these`` or ``new`` is ``None`` where that population was not asked about.
    """

    these: Evidence | None
    new: Evidence | None

    @property
    def lead(self) -> Evidence:
        """The facts that come first."""
        lead = self.these or self.new
        assert lead is not None
        return lead

    @property
    def claim(self) -> Claim:
        """The claim about the mean; where that shows nothing, about the tasks that changed."""
        lead = self.lead
        if lead.unjudged or lead.claim is not Claim.INCONCLUSIVE:
            return Claim.INCONCLUSIVE if lead.unjudged else lead.claim
        if lead.broken:
            return Claim.REGRESSION
        return Claim.IMPROVEMENT if lead.fixed else Claim.INCONCLUSIVE

    @property
    def is_rise(self) -> bool:
        """Whether an improvement is shown."""
        return self.claim is Claim.IMPROVEMENT

    @property
    def sentence(self) -> str:
        """The change on these tasks, then whether it carries to new ones."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The parts of :attr:`sentence`: the change, single tasks, new tasks."""
        lead = self.lead
        if lead.unjudged:
            who = " and ".join(lead.unjudged)
            return (f"Nothing is known about {lead.metric}: no attempt of {who} has a verdict.",)
        parts = [*_task_sentences(lead), _change_sentence(lead)]
        if lead.claim is not Claim.INCONCLUSIVE:  # else the tasks are the news
            parts = [parts[-1], *parts[:-1]]
        if self.these is not None and self.new is not None:
            parts.append(_carry_sentence(self.these, self.new))
        return tuple(parts)


_VERBS = {Claim.IMPROVEMENT: "rose", Claim.REGRESSION: "dropped"}
_NOUNS = {Claim.IMPROVEMENT: "a rise", Claim.REGRESSION: "a drop"}


def _change_sentence(evidence: Evidence) -> str:
    if evidence.population is Population.THESE_TASKS:
        tasks = "this task" if evidence.tasks == 1 else f"these {evidence.tasks:,} tasks"
    else:
        tasks = f"new tasks ({counted(evidence.tasks, 'task')} seen)"
    a, b = (
        f"{_value_text(low, high, evidence.digits)} ({name})"
        for low, high, name in (
            (evidence.value_a, evidence.highest_a, evidence.a),
            (evidence.value_b, evidence.highest_b, evidence.b),
        )
    )
    if evidence.claim is Claim.INCONCLUSIVE:
        what = f"No change of {evidence.metric} is shown on {tasks}"
        if evidence.broken or evidence.fixed:
            what = f"The mean of {evidence.metric} is not shown to change on {tasks}"
        return f"{what}, from {a} to {b}: {_size_text(evidence)}."
    return (
        f"{evidence.metric} {_VERBS[evidence.claim]} by {_change_text(evidence)} on {tasks}, "
        f"from {a} to {b}."
    )


def _change_text(evidence: Evidence) -> str:
    """The size of a shown change with its interval: 9 points, between 4 and 14,."""
    if evidence.alternative != "two-sided" or {evidence.highest_a, evidence.highest_b} != {None}:
        return _size_text(evidence)
    digits = evidence.digits
    # The difference of the printed values, so that the sentence adds up.
    before, after = (round(100 * value, digits) for value in (evidence.value_a, evidence.value_b))
    ends = sorted(abs(100 * end) for end in (evidence.interval.low, evidence.interval.high))
    low, high = (f"{end:.{digits}f}" for end in ends)
    size = _points(abs(after - before), digits)
    return size if low == high else f"{size}, between {low} and {high},"


_MOST_TASKS = 3
"""Tasks that a verdict names; the screen below it has more."""


def _task_sentences(evidence: Evidence) -> list[str]:
    return [
        f"{counted(len(changes), 'task')} {verb}: {some(list(map(str, changes)), _MOST_TASKS)}."
        for changes, verb in ((evidence.broken, "broke"), (evidence.fixed, "improved"))
        if changes
    ]


def _carry_sentence(these: Evidence, new: Evidence) -> str:
    """Whether the change carries to tasks like these."""
    if new.claim is not Claim.INCONCLUSIVE:
        noun = _NOUNS[new.claim]
        also = " as well" if new.claim is these.claim else ""
        return f"{noun[0].upper()}{noun[1:]} is shown for new tasks{also}: {_size_text(new)}."
    if these.claim is Claim.INCONCLUSIVE:
        return f"For new tasks no change is shown either: {_size_text(new)}."
    return f"For new tasks {_NOUNS[these.claim]} is not shown: {_size_text(new)}."


def _size_text(evidence: Evidence) -> str:
    """The interval as the size of the change: 12 to 26 points, or 9 lower to 5 higher."""
    digits, claim, one_sided = evidence.digits, evidence.claim, evidence.alternative != "two-sided"
    low, high = 100 * evidence.interval.low, 100 * evidence.interval.high
    if claim is not Claim.INCONCLUSIVE:
        least, largest = (low, high) if claim is Claim.IMPROVEMENT else (-high, -low)
        if one_sided:
            return f"at least {_points(least, digits)}"
        # Ends that read the same are one number.
        low_text = f"{least:.{digits}f}"
        same = low_text == f"{largest:.{digits}f}"
        return _points(largest, digits) if same else f"{low_text} to {_points(largest, digits)}"
    lower, higher = max(-low, 0.0), max(high, 0.0)
    if evidence.alternative == "greater":
        return f"at most {_points(lower, digits)} lower"
    if evidence.alternative == "less":
        return f"at most {_points(higher, digits)} higher"
    return f"between {_points(lower, digits)} lower and {higher:.{digits}f} higher"


def _points(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}"
    return f"{text} {'point' if float(text) == 1 else 'points'}"


def _value_text(low: float, high: float | None, digits: int) -> str:
    texts = [f"{100 * value:.{digits}f}%" for value in (low, high) if value is not None]
    return texts[0] if len(set(texts)) == 1 else f"between {texts[0]} and {texts[1]}"


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
    if evidence.unpaired is not None:
        tasks_a, tasks_b = evidence.unpaired
        where = f"{tasks_a:,} and {tasks_b:,} tasks, not paired, {evidence.agreement}"
    return (
        f"{lead} on {evidence.population}: {evidence.metric} of {evidence.b} is "
        f"{_size(evidence)}; {_range(evidence, claim)} ({where})."
    )


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Sentences to go with the claim: adjustments, missing attempts, single tasks, next step."""
    parts = [str(evidence.looked)] if evidence.looked.count > 1 else []
    for tasks, verb in ((evidence.broken, "broke"), (evidence.fixed, "improved")):
        if tasks:
            names = some([change.task for change in tasks])
            parts.append(f"{counted(len(tasks), 'task')} {verb}: {names}.")
    if evidence.missing:
        parts.append(
            f"{counted(evidence.missing, 'attempt')} without a verdict "
            f"{'is' if evidence.missing == 1 else 'are'} counted against the claim."
        )
    if evidence.claim is Claim.INCONCLUSIVE:
        parts += _what_next(evidence)
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


def _what_next(evidence: Evidence) -> list[str]:
    if evidence.undecided:
        return [
            "More tasks alone would not settle it: attempts without a verdict could turn the lift "
            "around. Judge or repeat those first."
        ]
    return [] if evidence.prospect is None else [evidence.prospect.sentence]
