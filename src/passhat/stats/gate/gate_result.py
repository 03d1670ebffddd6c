"""Results of a gate: a verdict per rule, which words itself, and a verdict for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

from passhat._display import counted, html_table, number
from passhat._serialize import Plain, Screen
from passhat.stats.compare.claims import PairVerdict
from passhat.stats.compare.prospects import Prospect
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.cases import Case, Losses, Unsettled
from passhat.stats.gate.confirm import Confirmation, FreshRun, describe_runs
from passhat.stats.gate.power import PowerCurve, RulePower
from passhat.stats.outcomes import FailureKind, Failures
from passhat.stats.terms import Population, Terms

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


@dataclass(frozen=True, slots=True)
class Advice:
    """A step that may settle a rule; with a ``prospect``, in how many simulated cases.

    ``kind`` is the step: ``finish`` the run, get the ``verdicts`` of missing attempts, more
    ``tasks``, more ``attempts`` per task, another ``baseline``, or none because the value lies on
    the ``limit``.
    """

    kind: Literal["finish", "verdicts", "tasks", "attempts", "limit", "baseline", "none"]
    text: str
    prospect: Prospect | None = None

    @classmethod
    def of(cls, prospect: Prospect | None, *, both_runs: bool) -> Advice | None:
        """The advice to make more attempts or take more tasks; none where nothing helps."""
        if prospect is None:
            return None
        where = " in both runs" if both_runs and prospect.kind == "attempts" else ""
        return cls(prospect.kind, prospect.text(where), prospect)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class RunSide:
    """One of the two runs of a gate: its value with an interval, and what it took.

    ``cost`` and ``seconds`` are sums over all attempts; ``None`` where they are not recorded.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    attempts: int
    missing: int
    cost: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DroppedTask(Plain):
    """A task that passed less often than in the baseline, and why its attempts failed.

    ``status`` is ``broken`` where it is shown by itself, ``suspected`` where it only looks so;
    ``counted_in`` says which attempts are counted, where there are others.
    """

    WRITTEN = ("task", "status", "change", "failures", "sentence")

    change: TaskChange
    status: Literal["broken", "suspected"]
    failures: Failures
    counted_in: str = ""

    @property
    def task(self) -> str:
        return self.change.task

    @property
    def cause(self) -> str:
        """The kinds of failure with their most common message; empty where they are unknown."""
        return self.failures.sentence()

    @property
    def sentence(self) -> str:
        """The task with its counts and the cause."""
        return f"{self.change}: {self.cause}" if self.cause else str(self.change)


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """A task that a rule is judged on: its counts, bounds at the rule's level, and verdict."""

    task: str
    passed: int
    attempts: int
    missing: int
    low: float
    high: float
    verdict: GateVerdict

    def __str__(self) -> str:
        missing_text = f", {self.missing} missing" if self.missing else ""
        return f"{self.task} ({self.passed} of {self.attempts} passed{missing_text})"


class Rule(ABC):
    """A question that a gate puts to a run.

    A subclass is a frozen dataclass. ``judge`` gives its verdict with the numbers, ``outcome`` and
    ``evidence`` put it into words, ``as_dict`` adds to its JSON. The text of the rule is ``str()``.
    """

    __slots__ = ()

    marks_incomplete: ClassVar[bool] = False
    """Whether a refuted rule means that the run is not complete, rather than not good enough."""
    relative: bool = False
    """Whether the rule compares with the other run, ``base``."""

    @property
    def subject(self) -> object:
        """The metric, the measure, or missing attempts."""
        return None

    @property
    def metric(self) -> Metric | None:
        """The metric that is judged, where it is one."""
        return self.subject if isinstance(self.subject, Metric) else None

    @property
    def measure(self) -> str | None:
        """The measure (cost, seconds, steps, tokens) that a run must have recorded."""
        return None

    def population(self, terms: Terms) -> Population | None:
        """The tasks that the verdict is about; ``None`` for a count of this run."""
        default = Population.THESE_TASKS if self.relative else Population.NEW_TASKS
        return None if self.metric is None else terms.about(default)

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Rule | None:
        """The rule that a text states, or ``None`` if it is of another kind."""

    @abstractmethod
    def judge(self, case: Case) -> RuleResult:
        """The verdict of the data on the rule."""

    def outcome(self, result: RuleResult) -> str:
        """The verdict in words that fit the rule."""
        return str(result.verdict)

    def evidence(self, result: RuleResult) -> str:
        """The number and its bounds, in words."""
        value = self.value_text(result.value)
        if result.value_range is not None:
            least, largest = map(self.value_text, result.value_range)
            value = value if least == largest else f"between {least} and {largest}"
        what = f"lift over base {value}" if self.relative else f"{self.subject} is {value}"
        if result.low is None or result.high is None or result.level is None:
            return f"{what} ({result.about})"
        return (
            f"{what}, at least {self.value_text(result.low)} and at most "
            f"{self.value_text(result.high)} ({100 * result.level:g}% one-sided each; about "
            f"{result.about})"
        )

    def value_text(self, value: float) -> str:
        """A value of the rule's subject; a lift has its sign."""
        text = number(value)
        return f"+{text}" if self.relative and value > 0 and float(text) else text

    def extra_entries(self, result: RuleResult) -> dict[str, Any]:  # noqa: ARG002
        """Further entries of the JSON of this rule's verdict, beside the common ones."""
        return {}


@dataclass(frozen=True, slots=True)
class RuleResult(Plain):
    """A rule and its verdict."""

    rule: Rule
    """The rule; its class judged it and puts it into words."""
    verdict: GateVerdict
    """Shown when the whole interval meets the limit, refuted when none of it does."""
    value: float
    """The estimate; for a relative rule the lift over the other run."""
    low: float | None
    high: float | None
    """``low``, ``high``: one-sided bounds at ``level`` each; ``None`` for counted values."""
    level: float | None
    """One-sided confidence."""
    about: str
    """The population of the verdict: new tasks, these tasks, or this run as it was."""
    tasks: int
    attempts: int
    """``tasks``, ``attempts``: the numbers of tasks and attempts behind it."""
    advice: Advice | None = None
    """The step that may settle a rule that is not settled."""
    notes: tuple[str, ...] = ()
    """Further remarks."""
    margin: float | None = None
    """The drop that the gate without a rule accepts."""
    broken: tuple[TaskChange, ...] = ()
    """Tasks that the gate without a rule shows to be broken."""
    pair: PairVerdict | None = None
    """What the gate without a rule knows about both runs; ``compare`` says the same."""
    by_task: tuple[TaskVerdict, ...] = ()
    """The verdict of each task, for a rule on each."""
    unmeasured: str = ""
    """Why there is no number: no attempt has a verdict, or none gave an answer. Else empty."""
    value_range: tuple[float, float] | None = None
    """The least and the largest value, however missing attempts would have ended; ``None`` where
    they cannot move it.
    """

    @property
    def outcome(self) -> str:
        """The verdict in words that fit the rule."""
        return self.rule.outcome(self)

    @property
    def evidence(self) -> str:
        """The number and its bounds, in words; a dash where nothing was measured."""
        if self.unmeasured and self.pair is None:
            what = "lift over base" if self.rule.relative else f"{self.rule.subject} is"
            return f"{what} –: {self.unmeasured}"
        return self.rule.evidence(self)

    @property
    def sentence(self) -> str:
        """Verdict, evidence and advice, in one line."""
        advice_text = "" if self.advice is None else f"; {self.advice}"
        return f"{self.outcome}: {self.rule}; {self.evidence}{advice_text}"

    def _as_dict(self) -> dict[str, object]:
        return {
            "rule": str(self.rule),
            "verdict": str(self.verdict),
            "value": None if self.unmeasured else self.value,
            "low": None if self.unmeasured else self.low,
            "high": None if self.unmeasured else self.high,
            "level": self.level,
            "about": self.about,
            "tasks": self.tasks,
            "attempts": self.attempts,
            "advice": None if self.advice is None else self.advice.text,
            "prospect": None if self.advice is None else self.advice.prospect,
            "notes": list(self.notes),
            "sentence": self.sentence,
            "outcome": self.outcome,
            "margin": self.margin,
            "broken": self.broken,
            **self.rule.extra_entries(self),
        }


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Screen):
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
    losses : Losses or None
        What the run should have and does not.
    confirmation : Confirmation or None
        Fresh attempts at the tasks that looked broken.
    settling : tuple of FreshRun
        Runs of further attempts at undecided tasks, which the verdicts count.
    failures : Failures or None
        The failed attempts of the run by cause, where the causes are known.
    power : PowerCurve or None
        How often the gate without a rule would have caught a drop.
    rule_powers : tuple of RulePower
        How often rules on a metric would have refuted a value below their limit.
    sides : tuple of RunSide
        The baseline and the run, each by itself, on the tasks of both.
    dropped : tuple of DroppedTask
        Tasks that broke, or look so where a drop is shown or was to be confirmed, with causes.
    no_answer : str
        The sentence that no attempt of the run gave an answer; empty where one did.
    """

    SCHEMA = SCHEMA
    WRITTEN = (
        *("name", "base", "verdict", "exit_code", "incomplete", "absent", "losses"),
        *("missing_policy", "headline", ("rules", "results"), "unsettled", "warning"),
        *("order_seed", "confirmation", "settling", "failures", "dropped", "power"),
        *("rule_powers", "sides", "notes"),
    )

    name: str
    base: str | None
    results: tuple[RuleResult, ...]
    missing_policy: str
    absent: int = 0
    notes: tuple[str, ...] = ()
    unsettled: Unsettled | None = None
    order_seed: int | str | None = None
    losses: Losses | None = None
    confirmation: Confirmation | None = None
    settling: tuple[FreshRun, ...] = ()
    failures: Failures | None = None
    power: PowerCurve | None = None
    rule_powers: tuple[RulePower, ...] = ()
    sides: tuple[RunSide, ...] = ()
    no_answer: str = ""
    dropped: tuple[DroppedTask, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Results and cost of fresh attempts, where a gate made some, and the power of the gate."""
        confirmed = () if self.confirmation is None else self.confirmation.sentences
        settled = (f"{describe_runs('Settling', self.settling)}.",) if self.settling else ()
        power = () if self.power is None else (self.power.sentence,)
        rules = (rule.sentence for rule in self.rule_powers)
        return (*confirmed, *settled, *power, *rules)

    @property
    def incomplete(self) -> bool:
        """Whether planned attempts are absent, or more are missing than a rule allows."""
        is_lost = self.losses is not None and self.losses.is_beyond_limit
        is_absent = self.losses is None and self.absent > 0
        return (is_lost or is_absent) or any(
            result.rule.marks_incomplete and result.verdict is GateVerdict.REFUTED
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
        """The sentence before any table; of an incomplete run, why it is incomplete."""
        if self.incomplete:
            return f"Incomplete: {self._cause}."
        only = self.results[0]
        no_answer = f" N{self.no_answer[1:]}." if self.no_answer else ""
        if len(self.results) == 1 and only.pair is not None:
            warning_text = " (warning)" if self.warning else ""
            lead = only.pair.sentences[0]
            outcome = f"{only.outcome[0].upper()}{only.outcome[1:]}{warning_text}"
            if only.advice is not None and only.advice.kind == "baseline":
                return f"{outcome}: {only.advice}. {lead}"
            if no_answer:
                return f"{outcome}:{no_answer} {lead}"
            plan = "" if self.losses is None else self.losses.plan
            return f"{outcome}{plan}: {lead}{self._failure_text}"
        counts = [
            f"{sum(result.verdict is verdict for result in self.results)} {verdict}"
            for verdict in GateVerdict
            if any(result.verdict is verdict for result in self.results)
        ]
        if len(self.results) == 1:
            return f"{only.outcome.capitalize()}: {only.rule}.{no_answer}"
        return f"{self.verdict.capitalize()}: {', '.join(counts)}.{no_answer}"

    @property
    def _failure_text(self) -> str:
        """The failures, where a regression is mostly exceptions and cut answers, not wrong ones."""
        failures = self.failures
        if failures is None or self.verdict is not GateVerdict.REFUTED:
            return ""
        is_wrong = 2 * failures.count(FailureKind.WRONG_ANSWER) > failures.total
        return "" if is_wrong else f" The run has {failures.sentence()}."

    @property
    def _cause(self) -> str:
        if self.losses is not None and self.losses.is_beyond_limit:
            return self.losses.sentence
        if self.absent and self.losses is None:
            verb = "is" if self.absent == 1 else "are"
            return f"{counted(self.absent, 'planned attempt')} {verb} absent"
        broken = [result for result in self.results if result.rule.marks_incomplete]
        return "; ".join(f"{result.evidence}, {result.rule} is asked" for result in broken)

    @property
    def title(self) -> str:
        return f"{self.name}: {self.headline}"

    def _repr_html_(self) -> str:
        rows = [
            (str(result.verdict), str(result.rule), result.evidence, str(result.advice or ""))
            for result in self.results
        ]
        return html_table(
            f"{self.name}: {self.headline}", ("verdict", "rule", "evidence", "what next"), rows
        )
