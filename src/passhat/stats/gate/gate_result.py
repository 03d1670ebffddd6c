"""Results of a gate: a verdict per rule, and a verdict for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from passhat._display import counted, figure, html_table, number, percent
from passhat._serialize import Plain
from passhat.stats.compare.claims import points
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.gate.rules import Measure, Missing, Rule, Subject

__all__ = [
    "SCHEMA",
    "Advice",
    "GateResult",
    "GateVerdict",
    "Question",
    "RuleResult",
    "Unsettled",
    "verdict_of",
]

Unsettled = Literal["pass", "warn", "fail"]
"""How a gate that is not settled ends: with 0, with 0 and a warning, or with 3."""

SCHEMA = "passhat.gate/1"


class GateVerdict(StrEnum):
    """The verdict of the data on a rule."""

    SHOWN = "shown"
    REFUTED = "refuted"
    NOT_SETTLED = "not settled"

    @property
    def sign(self) -> str:
        """A distinct symbol for each verdict, so that color is not needed."""
        return {"shown": "✓", "refuted": "✗", "not settled": "?"}[self.value]


class Question(Protocol):
    """The question of a verdict: a rule, or the gate without a rule."""

    @property
    def subject(self) -> Subject: ...

    @property
    def relative(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Advice:
    """The cheapest step that should settle a rule.

    ``kind`` is the step: ``finish`` the run, get the ``verdicts`` of missing attempts, more
    ``tasks``, more ``attempts`` per task, or none because the value lies on the ``limit``.
    """

    kind: Literal["finish", "verdicts", "tasks", "attempts", "limit", "none"]
    text: str
    tasks: int | None = None
    attempts: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class RuleResult(Plain):
    """A rule and its verdict.

    Attributes
    ----------
    rule : Rule or NoRegression
        The rule or question.
    verdict : GateVerdict
        Shown when the whole interval meets the limit, refuted when none of it does.
    value : float
        The estimate; for a relative rule the lift over the other run.
    low, high : float or None
        One-sided bounds at ``level`` each; ``None`` for counted values.
    level : float or None
        One-sided confidence.
    about : str
        The population of the verdict: new tasks, these tasks, or this run as it was.
    tasks, attempts : int
        The numbers of tasks and attempts behind it.
    advice : Advice or None
        The step that should settle a rule that is not settled.
    notes : tuple of str
        Further remarks.
    margin : float or None
        The drop that the gate without a rule accepts.
    broken : tuple of TaskChange
        Tasks that the gate without a rule shows to be broken.
    """

    rule: Question
    verdict: GateVerdict
    value: float
    low: float | None
    high: float | None
    level: float | None
    about: str
    tasks: int
    attempts: int
    advice: Advice | None = None
    notes: tuple[str, ...] = ()
    margin: float | None = None
    broken: tuple[TaskChange, ...] = ()

    @property
    def outcome(self) -> str:
        """The verdict in words that fit the question."""
        if self.margin is None:
            return str(self.verdict)
        return {
            GateVerdict.SHOWN: f"no regression beyond {points(self.margin, signed=False)} points",
            GateVerdict.REFUTED: "regression",
            GateVerdict.NOT_SETTLED: "unsettled",
        }[self.verdict]

    @property
    def evidence(self) -> str:
        """The number and its bounds, in words."""
        if self.margin is not None and self.low is not None and self.high is not None:
            return (
                f"{self.rule.subject} changed by {points(self.value)} points, at least "
                f"{points(self.low)} and at most {points(self.high)} (about {self.about})"
            )
        lift = self.rule.relative
        value = _shown(self.value, self.rule, signed=lift)
        what = f"lift over base {value}" if lift else f"{self.rule.subject} is {value}"
        if self.low is None or self.high is None or self.level is None:
            return f"{what} ({self.about})"
        return (
            f"{what}, at least {_shown(self.low, self.rule, signed=lift)} and at most "
            f"{_shown(self.high, self.rule, signed=lift)} ({100 * self.level:g}% one-sided each; "
            f"about {self.about})"
        )

    @property
    def sentence(self) -> str:
        """Verdict, evidence and advice, in one line."""
        more = "" if self.advice is None else f"; {self.advice}"
        return f"{self.outcome}: {self.rule}; {self.evidence}{more}"

    def _as_dict(self) -> dict[str, object]:
        return {
            "rule": str(self.rule),
            "verdict": str(self.verdict),
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "about": self.about,
            "tasks": self.tasks,
            "attempts": self.attempts,
            "advice": None if self.advice is None else self.advice.text,
            "notes": list(self.notes),
            "sentence": self.sentence,
            "outcome": self.outcome,
            "margin": self.margin,
            "broken": self.broken,
        }


@dataclass(frozen=True, slots=True)
class GateResult(Plain):
    """All rules of a gate.

    Attributes
    ----------
    name : str
        The run that was judged.
    base : str or None
        The run it was compared with.
    results : tuple of RuleResult
        One per rule, in the order of the rules.
    missing_policy : str
        How attempts without a verdict were counted.
    absent : int
        Attempts that were planned and are not there at all.
    notes : tuple of str
        Further remarks.
    unsettled : {"pass", "warn", "fail"} or None
        How the gate ends where it is not settled; ``None`` ends with 3.
    order_seed : int, str or None
        The seed of the order of tasks of a gate that was watched.
    """

    SCHEMA = SCHEMA
    WRITTEN = (
        "name",
        "base",
        "verdict",
        "exit_code",
        "incomplete",
        "absent",
        "missing_policy",
        "headline",
        ("rules", "results"),
        "unsettled",
        "warning",
        "order_seed",
        "notes",
    )

    name: str
    base: str | None
    results: tuple[RuleResult, ...]
    missing_policy: str
    absent: int = 0
    notes: tuple[str, ...] = ()
    unsettled: Unsettled | None = None
    order_seed: int | str | None = None

    @property
    def incomplete(self) -> bool:
        """Whether planned attempts are absent, or more are missing than a rule allows."""
        return self.absent > 0 or any(
            isinstance(result.rule.subject, Missing) and result.verdict is GateVerdict.REFUTED
            for result in self.results
        )

    @property
    def verdict(self) -> GateVerdict:
        """Refuted when any rule is, shown when all are."""
        verdicts = {result.verdict for result in self.results}
        if GateVerdict.REFUTED in verdicts:
            return GateVerdict.REFUTED
        return GateVerdict.SHOWN if verdicts == {GateVerdict.SHOWN} else GateVerdict.NOT_SETTLED

    @property
    def exit_code(self) -> int:
        """0 all shown, 1 any refuted, 3 neither; 4 before all of them when attempts are lost.

        An incomplete run comes first: complete it, then judge it. ``unsettled`` may turn 3 into 0.
        """
        if self.incomplete:
            return 4
        if self.verdict is GateVerdict.NOT_SETTLED:
            return 0 if self.unsettled in ("pass", "warn") else 3
        return 0 if self.verdict is GateVerdict.SHOWN else 1

    @property
    def warning(self) -> bool:
        """Whether the gate passes with a warning although it is not settled."""
        return (
            self.verdict is GateVerdict.NOT_SETTLED
            and self.unsettled == "warn"
            and not self.incomplete
        )

    @property
    def headline(self) -> str:
        """The sentence before any table."""
        counts = [
            f"{sum(result.verdict is verdict for result in self.results)} {verdict}"
            for verdict in GateVerdict
            if any(result.verdict is verdict for result in self.results)
        ]
        ending = f" The run is incomplete{self._absent_text()}." if self.incomplete else ""
        if len(self.results) == 1 and self.results[0].margin is not None:
            only = self.results[0]
            named = f" ({len(only.broken)} broken)" if only.broken else ""
            warned = " Warning: not settled." if self.warning else ""
            return f"{only.outcome[0].upper()}{only.outcome[1:]}{named}.{warned}{ending}"
        return f"{self.verdict.capitalize()}: {', '.join(counts)}.{ending}"

    def _absent_text(self) -> str:
        if not self.absent:
            return ""
        verb = "is" if self.absent == 1 else "are"
        return f": {counted(self.absent, 'planned attempt')} {verb} absent"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.headline}"]
        for result in self.results:
            lines.append(f"  {result.verdict.sign} {result.sentence}")
            lines += [f"      {note}" for note in result.notes]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        rows = [
            (str(result.verdict), str(result.rule), result.evidence, str(result.advice or ""))
            for result in self.results
        ]
        return html_table(
            f"{self.name}: {self.headline}", ("verdict", "rule", "evidence", "what next"), rows
        )


def verdict_of(rule: Rule, low: float, high: float) -> GateVerdict:
    """Shown when both ends meet the limit, refuted when neither does."""
    ends = {rule.sign.holds(low, rule.limit), rule.sign.holds(high, rule.limit)}
    if ends == {True}:
        return GateVerdict.SHOWN
    return GateVerdict.REFUTED if ends == {False} else GateVerdict.NOT_SETTLED


def _shown(value: float, rule: Question, *, signed: bool) -> str:
    """Shares with three digits, missing in percent, money and time with four digits."""
    plus = "+" if signed and value > 0 else ""
    if isinstance(rule.subject, Missing):
        return percent(value)
    if isinstance(rule.subject, Measure):
        return f"{plus}{figure(value, 4)}"
    text = number(value)
    return f"{plus}{text}" if float(text) else text
