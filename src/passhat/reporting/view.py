"""The view model: everything any form of a report shows, computed once.

Every form prints these objects and computes nothing, so a number is the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from passhat._display import (
    counted,
    percent,
    percent_digits,
    percent_interval,
    percent_range,
)
from passhat._serialize import Plain
from passhat.protocol import Protocol, is_code_judge
from passhat.reporting.document import upper_first
from passhat.reporting.source_checks import SourceCheck, check_source
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate import Diagnosis, Estimate, metric
from passhat.stats.estimate.metrics import Delta, Metric, PassAt, PassHat
from passhat.stats.outcomes import (
    Completion,
    Failures,
    Outcomes,
    Run,
    Verdict,
    judge_error_message,
    no_answer_text,
    summarize_failures,
)
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason
from passhat.stats.terms import Population, Terms

if TYPE_CHECKING:
    from passhat.reporting.details import Details


SCHEMA = "passhat.report/1"
_USUAL_LEVEL = 0.95
_KIND = re.compile(r"^[a-z][a-z0-9_-]*:(?=[^\s/])")
"""The kind before an agent's name, as in ``demo:careful``; not the scheme of a URL."""


_MANY_TIMEOUTS = 0.05
"""The share of attempts from which timeouts are pointed out above the headline."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Capability and reliability at one k, for drawing."""

    k: int
    pass_hat: float
    pass_at: float


@dataclass(frozen=True, slots=True)
class TaskRow(Plain):
    """A task: its counts, its attempts as dots, and how unsettled its success rate is."""

    WRITTEN = ("task", "n", "c", "missing", ("attempts", "dots"), "unsettled")

    task: str
    n: int
    c: int
    missing: int
    dots: str
    unsettled: float


@dataclass(frozen=True, slots=True)
class RunReport(Plain):
    """The report on a single run.

    ``weak_tests`` are tasks whose hidden tests notice too few mistakes, with the share they do;
    ``sections`` the facts of the sections that have facts of their own, ``requested`` the metrics
    that were asked for by name: no screen leaves one of them out.
    """

    run: Run
    protocol: Protocol
    estimates: tuple[Estimate, ...]
    slices: Mapping[str, tuple[Estimate, ...]]
    slice_label: str | None
    curve: tuple[CurvePoint, ...]
    diagnosis: Diagnosis
    missing_effect: Mapping[str, Mapping[str, float | None]]
    tasks: tuple[TaskRow, ...]
    notes: tuple[str, ...]
    weak_tests: Mapping[str, float] = field(default_factory=dict)
    details: Details | None = None
    sections: Mapping[str, object] = field(default_factory=dict)
    requested: tuple[Metric, ...] = ()

    @property
    def name(self) -> str:
        return self.run.name

    def mark_task(self, task: str) -> str:
        """The name of a task, with a mark where its tests are weak."""
        return f"{task} (weak tests)" if task in self.weak_tests else task

    def find(self, word: str | Metric, population: Population | None = None) -> Estimate | None:
        """The estimate of a metric, if it is in this report."""
        key = (metric(word), population or self.interval_population)
        pairs = ((estimate, (estimate.metric, estimate.population)) for estimate in self.estimates)
        return next((estimate for estimate, pair in pairs if pair == key), None)

    @property
    def failures(self) -> Failures:
        """The failed attempts by cause."""
        return summarize_failures(self.run)

    @property
    def nothing_answered(self) -> bool:
        """Whether the agent itself broke in every attempt, so that a rate would say nothing."""
        return bool(no_answer_text(self.run))

    @property
    def interval_population(self) -> Population:
        """The population of the intervals on a screen: a single task shows nothing of others."""
        return Terms().for_tasks(len(self.run.outcomes)).about()

    @property
    def main_estimates(self) -> tuple[Estimate, ...]:
        """The estimates about the population that a screen shows."""
        population = self.interval_population
        return tuple(each for each in self.estimates if each.population is population)

    @property
    def top_k(self) -> int:
        """The largest k that this report has pass^k for; 1 where one attempt is all there is."""
        return max((point.k for point in self.curve), default=1)

    @property
    def headline(self) -> str:
        """The sentence before any table: one try, k tries, each with its interval.

        Before it what was confirmed, where some programs passed by plain Python alone.
        """
        return " ".join(filter(None, (confirmed_text(self.run), self._rate_sentence())))

    def _rate_sentence(self) -> str:
        outcomes = self.run.outcomes
        lead = self.find("pass^1")
        if lead is None:
            first = self.estimates[0]
            first = self.find(first.metric, self.interval_population) or first
            ending = " One task says nothing about other tasks." if len(outcomes) == 1 else ""
            return f"{first.metric} is {value_text(first)}{_interval_in_words(first)}.{ending}"
        if self.nothing_answered:
            return f"{upper_first(no_answer_text(self.run))}."
        if outcomes.scored == 0:
            attempts = outcomes.attempts
            all_of_them = "the only one is" if attempts == 1 else f"all {attempts:,} are"
            return f"No attempt has a verdict: {all_of_them} missing."
        if len(outcomes) == 1:
            return self._headline_of_one_task()
        sentence = f"{value_text(lead)} of single attempts pass{_interval_in_words(lead)}"
        k = self.top_k
        reliable = self.find(PassHat(k))
        if k == 1 or reliable is None:
            if int(outcomes.counts(Completion.AS_FAILED)[0].max()) > 1:
                return f"{sentence}."
            return (
                f"{sentence}. One attempt per task cannot show whether the same task passes again."
            )
        all_of_them = "both" if k == 2 else f"all {k}"
        return (
            f"{sentence}; {all_of_them} pass on {value_text(reliable)} of tasks"
            f"{_interval_in_words(reliable)}."
        )

    def _headline_of_one_task(self) -> str:
        """The headline of a single task, about its own attempts only."""
        outcomes = self.run.outcomes
        n, c = int(outcomes.n[0]), int(outcomes.c[0])
        if n == 1:
            return (
                f"The only judged attempt at the only task {'passed' if c else 'failed'}. That "
                "shows neither how often it would pass again nor how other tasks would end."
            )
        again = self.find(PassHat(1))
        interval = "" if again is None else _interval_in_words(again)
        k = self.top_k
        reliable = self.find(PassHat(k))
        extra = ""
        if k > 1 and reliable is not None:
            extra = (
                f"; all {k} pass {value_text(reliable)} of the time{_interval_in_words(reliable)}"
            )
        return (
            f"{c} of {n:,} attempts at the only task pass{interval}{extra}. One task says nothing "
            "about other tasks."
        )

    @property
    def protocol_lines(self) -> tuple[tuple[str, str], ...]:
        """Facts next to every number: n, k, estimator, interval, decoding, tests, policy."""
        protocol = self.protocol
        unknown = "not recorded"
        decoding = ", ".join(f"{key} {value}" for key, value in protocol.decoding.items())
        ks = sorted({estimate.metric.k for estimate in self.estimates} - {0})
        return (
            ("attempts per task (n)", self.run.outcomes.attempts_text()),
            ("k", ", ".join(map(str, ks)) or "1"),
            ("estimator", "unbiased from n and c, each task counts once"),
            ("interval", self.interval_text),
            ("decoding", decoding or unknown),
            ("suite", protocol.suite or unknown),
            ("tests", protocol.tests_fingerprint or protocol.judge or unknown),
            ("missing policy", protocol.missing),
            ("passed means", f"reward >= {protocol.pass_at:g}"),
            ("protocol", protocol.digest),
        )

    @property
    def level(self) -> float | None:
        """The confidence of the intervals; ``None`` where there are none."""
        return next((each.level for each in self.estimates if each.level is not None), None)

    @property
    def interval_text(self) -> str:
        """The level of the intervals and their populations."""
        level = self.level
        if level is None:
            return "none computed: the values are point estimates"
        if len(self.run.outcomes) == 1:
            return f"{100 * level:g}%, for fresh attempts at this task"
        return f"{100 * level:g}%, for new tasks and for these tasks, each by name"

    @property
    def methods(self) -> tuple[tuple[str, str], ...]:
        """Methods of values and intervals, each once, with the metrics they were used for."""
        values: dict[str, dict[str, None]] = {}
        intervals: dict[str, dict[str, None]] = {}
        for estimate in self.estimates:
            family = estimate.metric.family
            values.setdefault(estimate.estimator, {})[family] = None
            interval = f"{estimate.interval_method} ({estimate.population})"
            intervals.setdefault(interval, {})[family] = None
        return (
            *((", ".join(families), how) for how, families in values.items()),
            *((f"interval of {', '.join(families)}", how) for how, families in intervals.items()),
        )

    @property
    def missing_text(self) -> str:
        """How many attempts are missing, and why."""
        total = self.run.outcomes.total_missing
        if total == 0:
            return "none"
        message = judge_error_message(self.run)
        judge_words = f" ({message})" if message else ""
        reasons = ", ".join(
            f"{why} {count:,}{judge_words if why == MissingReason.JUDGE_ERROR else ''}"
            for why, count in self.run.missing_by_reason.items()
        )
        attempts = self.run.outcomes.attempts
        return (
            f"{counted(total, 'attempt')} of {attempts:,} ({percent(total / attempts)}): {reasons}"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to read before any number."""
        return run_warnings(self.run)

    @property
    def missing_effect_lines(self) -> tuple[str, ...]:
        """How far the headline moves under each way to treat missing attempts."""
        return tuple(
            f"{metric}: {', '.join(f'{way} {percent(value, 1)}' for way, value in effect.items())}"
            for metric, effect in self.missing_effect.items()
        )

    @property
    def source_checks(self) -> tuple[SourceCheck, ...]:
        """Numbers that the source states, next to those that passhat computes."""
        return check_source(self.run)

    def _as_dict(self) -> dict[str, object]:
        outcomes = self.run.outcomes
        data: dict[str, object] = {
            "name": self.run.name,
            "agent": self.run.agent,
            "source": self.run.source,
            "tasks": len(outcomes),
            "attempts": outcomes.attempts,
            "attempts_per_task": outcomes.attempts_text(),
            "scored": outcomes.scored,
            "passed": outcomes.passes,
            "missing": outcomes.total_missing,
            "missing_by_reason": self.run.missing_by_reason,
            "missing_policy": self.protocol.missing,
            "missing_effect": {metric: dict(ways) for metric, ways in self.missing_effect.items()},
            "confirmed": confirmed_shares(self.run),
            "failures_by_category": self.run.failures_by_category,
            "protocol": {"digest": self.protocol.digest, **self.protocol.to_dict()},
            "source_says": dict(self.run.source_says),
            "source_check": self.source_checks,
            "losses": self.run.losses,
            "warnings": list(self.warnings),
            "headline": self.headline,
            "estimates": self.estimates,
            "slices": self.slices,
            "sliced_by": self.slice_label,
            "diagnostics": self.diagnosis,
            "notes": list(self.notes),
            "reading": list(self.run.reading),
            "decisions": list(self.run.decisions),
        }
        if self.weak_tests:
            data["weak_tests"] = dict(self.weak_tests)
        if self.details is not None:
            data |= self.details.to_dict()
        if self.tasks:
            data["task_table"] = self.tasks
        if self.sections:
            data["sections"] = dict(self.sections)
        return data


@dataclass(frozen=True, slots=True)
class Report(Plain):
    """A report on one run or several."""

    SCHEMA = SCHEMA

    runs: tuple[RunReport, ...]


def value_text(estimate: Estimate) -> str:
    """``64%``, or ``64 to 70%`` where missing attempts could have passed."""
    return _value_range(estimate, percent_digits(estimate.low, estimate.high))


def _value_range(estimate: Estimate, digits: int) -> str:
    """The value, or its range over all ways to fill in missing attempts."""
    if estimate.value_range is None:
        return percent(estimate.value, digits)
    return percent_range(*estimate.value_range, digits)


def populations_text(estimates: Iterable[Estimate | None]) -> str:
    """``new tasks``, or ``these tasks`` where single tasks are all there is; both if mixed."""
    return " or ".join(dict.fromkeys(str(each.population) for each in estimates if each))


def estimate_text(estimate: Estimate) -> str:
    """``64% (49 to 77%)``, as tables show it."""
    if estimate.low is None:
        return value_text(estimate)
    return f"{value_text(estimate)} ({percent_interval(estimate.low, estimate.high)})"


def estimates_over_k(
    estimates: Iterable[Estimate],
) -> tuple[dict[int, Estimate], dict[int, Estimate], dict[int, Estimate]]:
    """The estimates of pass^k, of pass@k and of delta^k, each by its k."""
    by_family: dict[type[Metric], dict[int, Estimate]] = {PassHat: {}, PassAt: {}, Delta: {}}
    for estimate in estimates:
        if type(estimate.metric) in by_family:
            by_family[type(estimate.metric)][estimate.metric.k] = estimate
    return by_family[PassHat], by_family[PassAt], by_family[Delta]


def card_value(estimate: Estimate) -> str:
    """The value on a card of a page: ``64.1%``, or ``64.1 to 70.3%`` with missing attempts."""
    return _value_range(estimate, 1)


def card_interval(estimate: Estimate) -> str:
    """The interval below it: ``48.7% to 76.6%``."""
    if estimate.low is None or estimate.high is None:
        return "no interval"
    return f"{percent(estimate.low, 1)} to {percent(estimate.high, 1)}"


def _interval_in_words(estimate: Estimate) -> str:
    """`` (49 to 77%)``; the level is named where it is not the usual one."""
    if estimate.low is None or estimate.level is None:
        return ""
    usual = estimate.level == _USUAL_LEVEL
    level = "" if usual else f"{100 * estimate.level:g}% interval "
    return f" ({level}{percent_interval(estimate.low, estimate.high)})"


def run_warnings(run: Run) -> tuple[str, ...]:
    """Warnings to read before any number: leaks, cut answers, frequent timeouts."""
    late = run.failures_by_category.get(FailureCategory.TIMEOUT, 0)
    late += run.missing_by_reason.get(MissingReason.TIMEOUT, 0)
    total = run.outcomes.attempts
    if not total or late / total < _MANY_TIMEOUTS:
        return run.warnings
    return (
        *run.warnings,
        f"{percent(late / total, 0)} of attempts ({late:,} of {total:,}) timed out: their share "
        "says as much about the time limit and the server as about the agent",
    )


def rate_variance(outcomes: Outcomes) -> FloatArray:
    """How unsettled each task is: the variance of its success rate under Jeffreys' prior.

    Highest for few attempts and for a rate near one half.
    """
    a, b = outcomes.c + 0.5, outcomes.n - outcomes.c + 0.5
    variance: FloatArray = a * b / ((a + b) ** 2 * (a + b + 1))
    return variance


def task_marks(outcomes: Outcomes, index: int, signs: Mapping[Verdict, str]) -> str:
    """The attempts of a task in order, or passes first where the order is unknown."""
    if outcomes.order is not None:
        return "".join(signs[verdict] for verdict in outcomes.order.of(index))
    n, c = int(outcomes.n[index]), int(outcomes.c[index])
    counts = {Verdict.PASSED: c, Verdict.FAILED: n - c, Verdict.MISSING: outcomes.missing[index]}
    return "".join(signs[verdict] * int(count) for verdict, count in counts.items())


def confirmed_shares(run: Run) -> dict[str, float] | None:
    """Shares of the attempts that a code judge confirmed, and that passed plain Python alone.

    The value lies between the first and the sum of both. None without a code judge.
    """
    attempts = run.outcomes.attempts
    alone = run.missing_by_reason.get(MissingReason.UNCONFIRMED, 0)
    if not attempts or not (alone or is_code_judge(run.protocol.judge)):
        return None
    low, more = run.outcomes.passes / attempts, alone / attempts
    return {"low": low, "high": low + more, "only_by_plain": more}


def confirmed_text(run: Run) -> str:
    """Shares that were confirmed and that passed plain Python alone; empty without the latter."""
    alone, shares = run.missing_by_reason.get(MissingReason.UNCONFIRMED, 0), confirmed_shares(run)
    if not alone or shares is None:
        return ""
    return (
        f"{percent(shares['low'], 0)} confirmed, {percent(shares['only_by_plain'], 0)} more "
        f"({counted(alone, 'attempt')}) only by plain Python, which a program can forge."
    )


def doubt_notes(run: Run) -> tuple[str, ...]:
    """Sentences on programs that the judges did not agree on."""
    unlike = run.missing_by_reason.get(MissingReason.JUDGES_DISAGREE, 0)
    if not unlike or not is_code_judge(run.protocol.judge):
        return ()
    return (
        f"judges disagree on {counted(unlike, 'attempt')}, counted as failed in the lower bound; "
        "look at them with passhat judge --show TASK",
    )


def strip_kind(agent: str) -> str:
    """The name of an agent without its kind: ``careful`` for ``demo:careful``."""
    return _KIND.sub("", agent)


def run_labels(runs: Sequence[Run]) -> list[str]:
    """Short distinct labels: the agents, with further details where agents are the same."""
    agents = [run.agent or run.name for run in runs]
    short = [strip_kind(agent) for agent in agents]
    labels = short if len(set(short)) == len(set(agents)) else agents
    for details in (
        [_temperature_of(run) for run in runs],
        [run.protocol.suite or "" for run in runs],
        # The id in the store, or the run's own name: distinct for runs of the same agent.
        [run.id or run.name.removeprefix(run.agent or "").strip() for run in runs],
    ):
        if len(set(labels)) == len(labels):
            return labels
        labels = [
            f"{label} {detail}".strip()
            if len({d for other, d in zip(labels, details, strict=True) if other == label}) > 1
            else label
            for label, detail in zip(labels, details, strict=True)
        ]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label} ({index})" for index, label in enumerate(labels, 1)]


_LABEL_COLUMNS = 24


def short_labels(runs: Sequence[Run]) -> list[str]:
    """Labels that fit a column and are distinct, by their ends if necessary."""
    labels = run_labels(runs)
    return _cut_labels(labels, _LABEL_COLUMNS) or labels


def _cut_labels(labels: Sequence[str], limit: int) -> list[str]:
    """Labels of at most ``limit`` characters, by their starts or ends; none if not distinct."""
    starts = [label if len(label) <= limit else f"{label[: limit - 1]}…" for label in labels]
    ends = [label if len(label) <= limit else f"…{label[1 - limit :]}" for label in labels]
    for short in (starts, ends):
        if len(set(short)) == len(set(labels)):
            return short
    return []


def number_labels(labels: Sequence[str], limit: int) -> list[str]:
    """Distinct labels that fit, with a number in front where their words alone are the same."""
    short = _cut_labels(labels, limit)
    return short or [f"{i} {label}"[: limit - 1] + "…" for i, label in enumerate(labels, 1)]


def _temperature_of(run: Run) -> str:
    temperature = run.protocol.decoding.get("temperature")
    return "" if temperature is None else f"T={temperature}"
