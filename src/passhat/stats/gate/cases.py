"""A run before the gate: its baseline, what was planned, what is absent, and how it is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from passhat._display import counted, percent, some
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import IntArray, log_choose
from passhat.stats.compare.guard import Agreement, agree
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.confirm import Confirmation
from passhat.stats.outcomes import (
    Completion,
    Failures,
    MissingPolicy,
    Outcomes,
    Run,
    summarize_task_failures,
)
from passhat.stats.outcomes.attempts import MEASURES
from passhat.stats.terms import Terms

Unsettled = Literal["pass", "warn", "fail"]
"""How a gate that is not settled ends: with 0, with 0 and a warning, or with 3."""

MAX_MISSING = 0.05
"""The share of planned attempts that may have no verdict before a run counts as incomplete."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The functions that compute bounds, and that find why attempts at a task failed.

    Tests replace them, and the command line looks into the store of a run.
    """

    estimate: Callable[..., Estimate] = estimate
    task_failures: Callable[[Run, str], Failures] = summarize_task_failures


@dataclass(frozen=True, slots=True)
class GateOptions:
    """How a gate judges.

    The level of ``terms`` is one-sided. ``tasks`` and ``attempts`` (per task) are what was planned;
    fewer than that are reported as absent. ``metric`` and ``margin`` belong to the gate without a
    rule, ``unsettled`` is how a gate ends that is not settled, ``max_missing`` the share of planned
    attempts that may have no verdict. With a ``confirmation``, the gate without a rule calls only
    confirmed tasks broken. ``anytime`` judges each task so that it may be looked at again after
    further attempts. ``corrected`` judges rules on a metric by numbers that labels correct, by
    ``whole tasks`` or by ``errors``. ``details`` estimates both runs and simulates how often a drop
    would have been caught.
    """

    terms: Terms = field(default_factory=Terms)
    tasks: int | None = None
    attempts: int | None = None
    metric: str | Metric = "pass^1"
    margin: float | None = None
    unsettled: Unsettled | None = None
    tools: Tools = field(default_factory=Tools)
    max_missing: float = MAX_MISSING
    confirmation: Confirmation | None = None
    anytime: bool = False
    details: bool = False
    corrected: str | None = None

    def __post_init__(self) -> None:
        if not 0.5 < self.terms.level < 1:
            raise InvalidValue(
                f"a gate's level is one-sided and lies between 0.5 and 1, not {self.terms.level:g}."
            )
        if not 0 <= self.max_missing <= 1:
            raise InvalidValue(
                f"max_missing is a share from 0 to 1, not {self.max_missing:g}.",
                hint=Hint("For example {max_missing}: 5% may be missing.", max_missing=0.05),
            )

    @property
    def two_sided(self) -> Terms:
        """Terms of the two-sided interval that has the one-sided bounds as its ends."""
        return replace(self.terms, level=2 * self.terms.level - 1, equal_tails=True)


@dataclass(frozen=True, slots=True)
class Absent:
    """Planned attempts that are not in the run, and the outcomes with them counted as missing."""

    outcomes: Outcomes
    attempts: int = 0
    tasks: int = 0

    def __bool__(self) -> bool:
        return self.attempts > 0


@dataclass(frozen=True, slots=True)
class Losses:
    """Tasks and attempts that a run should have and does not: facts, with their causes."""

    absent_tasks: tuple[str, ...] = ()
    """Tasks of the baseline that the run does not have."""
    unnamed_tasks: int = 0
    """Further tasks that were planned, of which only the number is known."""
    absent: int = 0
    """Planned attempts that are not there at all, those of absent tasks included."""
    missing: int = 0
    """Attempts that were made and have no verdict."""
    planned: int = 0
    """All attempts that the run should have."""
    limit: float = MAX_MISSING
    """The share of them that may be lost."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many attempts are missing for which reason."""
    unread: tuple[str, ...] = ()
    """Sources with rows that could not be read, each with their number and the first reason."""
    empty_base: str = ""
    """The name of a baseline without a single verdict."""
    plan: str = ""
    """Where no task has as many attempts as in the baseline: whose plan counts, in words."""
    base_missing: int = 0
    base_attempts: int = 0
    """``base_missing``, ``base_attempts``: attempts of the baseline that have no verdict, and all
    of them; the same limit holds.
    """
    base_reasons: Mapping[str, int] = field(default_factory=dict)
    """How many of them are missing for which reason."""

    @property
    def is_empty_run(self) -> bool:
        """Whether not a single attempt has a verdict."""
        return self.planned > 0 and self.absent + self.missing >= self.planned

    @property
    def is_beyond_limit(self) -> bool:
        """Whether the run counts as incomplete."""
        tasks = len(self.absent_tasks) + self.unnamed_tasks
        is_unusable = bool(self.unread or self.empty_base) or self.is_empty_run
        is_short = self._is_too_short or self.is_base_too_short
        return bool(tasks) or is_unusable or is_short

    @property
    def is_base_too_short(self) -> bool:
        """Whether more attempts of the baseline than allowed have no verdict."""
        return self.base_missing > self.limit * self.base_attempts

    @property
    def _is_too_short(self) -> bool:
        """Whether more attempts than allowed were not made, or have no verdict."""
        return self.absent + self.missing > self.limit * self.planned

    @property
    def sentence(self) -> str:
        """The cause in one sentence; empty where nothing is lost beyond the limit."""
        if not self.is_beyond_limit:
            return ""
        parts = []
        tasks = len(self.absent_tasks) + self.unnamed_tasks
        if tasks:
            names_text = f" ({some(self.absent_tasks, 3)})" if self.absent_tasks else ""
            verb = "is" if tasks == 1 else "are"
            parts.append(f"{counted(tasks, 'planned task')}{names_text} {verb} absent")
        if self.absent:
            verb = "is" if self.absent == 1 else "are"
            parts.append(
                f"{counted(self.absent, 'planned attempt')} of {self.planned:,} {verb} absent"
                f"{self.plan}"
            )
        if self.missing and (self._is_too_short or self.is_empty_run):
            beyond = f", more than {percent(self.limit, 0)}" if not self.is_empty_run else ""
            planned = counted(self.planned, "attempt")
            parts.append(f"{_no_verdict_text(self.missing, planned, self.reasons)}{beyond}")
        if self.empty_base:
            parts.append(f"no attempt of the baseline {self.empty_base} has a verdict")
        elif self.is_base_too_short:
            made = f"{counted(self.base_attempts, 'attempt')} of the baseline"
            parts.append(
                f"{_no_verdict_text(self.base_missing, made, self.base_reasons)}, more than "
                f"{percent(self.limit, 0)}"
            )
        parts += self.unread
        return "; ".join(parts)


def _no_verdict_text(missing: int, made: str, reasons: Mapping[str, int]) -> str:
    verb = "has" if missing == 1 else "have"
    why = some([f"{reason} {count:,}" for reason, count in reasons.items()], 3)
    return f"{missing:,} of {made} {verb} no verdict{f' ({why})' if why else ''}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A run paired with its baseline, and notes on the pairing."""

    pairing: Pairing
    agreement: Agreement
    notes: tuple[str, ...]

    @property
    def attempts(self) -> int:
        return self.pairing.a.attempts + self.pairing.b.attempts


@dataclass(frozen=True, slots=True)
class Case:
    """All that a rule needs to be judged."""

    run: Run
    base: Run | None
    absent: Absent
    options: GateOptions

    def baseline(self, rule: object) -> Run:
        """The run called ``base``; refused where there is none."""
        if self.base is None:
            raise InvalidValue(
                f"'{rule}' compares with base, and there is none.",
                hint=Hint("Name the run to compare with: {against}.", against="SOURCE"),
            )
        return self.base

    @property
    def completed_run(self) -> Run:
        """The run with absent attempts counted as missing."""
        return replace(self.run, outcomes=self.absent.outcomes) if self.absent else self.run

    def pair(self, run: Run, base: Run, metric: Metric, terms: Terms) -> Baseline:
        """Pair a run with its baseline; refuse protocols that differ unless that is allowed."""
        whole = pair(base.outcomes, run.outcomes, pair_names(run, base))
        agreement = agree(base.protocol, run.protocol, whole, [metric], allow=terms.allow)
        pairing = whole.supporting([metric], terms.missing, drop_short=terms.drop_short)
        notes = []
        if agreement.differences:
            differences = "; ".join(map(str, agreement.differences))
            notes.append(f"compared although they differ: {differences}")
        if agreement.attempts_text is not None:
            notes.append(agreement.attempts_text)
        if whole.only_a or whole.only_b:
            notes.append(
                f"{counted(len(whole), 'task')} in both runs; left out: {len(whole.only_b):,} only "
                f"in the run, {len(whole.only_a):,} only in base"
            )
        if len(pairing) < len(whole):
            kept = set(pairing.a.tasks)
            short = [task for task in whole.a.tasks if task not in kept]
            notes.append(
                f"{len(short):,} of {counted(len(whole), 'task')} left out, too few attempts for "
                f"{metric}: {some(short)}"
            )
        return Baseline(pairing.with_clusters(terms.cluster), agreement, tuple(notes))


def pair_names(run: Run, base: Run) -> tuple[str, str]:
    """Names of the baseline and the run that tell them apart."""
    # A run without a name of its own is called by its agent and its id; the id says nothing here.
    old, new = (side.name.removesuffix(side.id).strip() or side.name for side in (base, run))
    return (old, new) if old != new else (f"{old} (baseline)", f"{new} (new)")


def missing_notes(run: Run, policy: MissingPolicy, base: Run | None = None) -> tuple[str, ...]:
    """How attempts without a verdict are counted, those of the baseline too where it is used."""
    ways = {
        MissingPolicy.BOUND: "the bounds reach from all of them failed to all of them passed",
        MissingPolicy.FAIL: "they count as failed",
        MissingPolicy.EXCLUDE: "they are left out",
    }
    sides = [("attempt", run)] if base is None else [("attempt", run), ("baseline attempt", base)]
    return tuple(
        f"{counted(total, what)} missing: {ways[policy]}"
        for what, side in sides
        if (total := side.outcomes.total_missing)
    )


def find_losses(
    run: Run, base: Run | None, options: GateOptions
) -> tuple[Absent, Losses, tuple[str, ...]]:
    """Count what the run should have and does not, and fill absent attempts in as missing.

    The plan is what the caller states, what the run's protocol records, or the baseline: a task
    that it has and the run has not was lost. An attempt that was planned and left no trace is as
    unknown as one without a verdict; for whole tasks nothing can be filled in.
    """
    outcomes = run.outcomes
    attempts, _ = outcomes.counts(Completion.AS_FAILED)
    plan = _attempts_by_plan(run, base, options)
    lacking = np.maximum(plan - attempts, 0)
    absent = int(lacking.sum())
    notes: tuple[str, ...] = ()
    stated_attempts = _stated_attempts(run, base, options)
    if absent:
        short = np.flatnonzero(lacking)
        names = some([outcomes.tasks[i] for i in short.tolist()])
        verb, verb_count = ("is", "counts") if absent == 1 else ("are", "count")
        planned = f" of the {stated_attempts} planned per task" if stated_attempts else ""
        what = counted(absent, "attempt" if planned else "planned attempt")
        notes += (
            f"{what}{planned} {verb} absent on {counted(len(short), 'task')} ({names}) and "
            f"{verb_count} as missing",
        )
        order = outcomes.order
        outcomes = replace(
            outcomes,
            m=outcomes.missing + lacking,
            order=None if order is None else order.filled(attempts + lacking),
        )
    in_run = set(outcomes.tasks)
    absent_tasks = () if base is None else tuple(t for t in base.outcomes.tasks if t not in in_run)
    nameless = max((options.tasks or 0) - len(outcomes) - len(absent_tasks), 0)
    per_task = stated_attempts or int(attempts.max())
    tasks_lost = len(absent_tasks) + nameless
    if nameless:
        verb = "is" if nameless == 1 else "are"
        notes += (f"{counted(nameless, 'task')} of the {options.tasks:,} planned {verb} absent",)
    is_planned = (plan > 0) | (not plan.any())  # tasks of the run alone are beyond the plan
    losses = Losses(
        absent_tasks,
        nameless,
        absent + tasks_lost * per_task,
        run.outcomes.total_missing,
        int(np.maximum(plan, attempts)[is_planned].sum()) + tasks_lost * per_task,
        options.max_missing,
        run.missing_by_reason,
        _unread_rows(run, base),
        "" if base is None or base.outcomes.scored else base.name,
        _plan_text(run, base, options),
        *((0, 0, {}) if base is None else _missing_of(base)),
    )
    return Absent(outcomes, losses.absent, tasks_lost), losses, notes


def _missing_of(run: Run) -> tuple[int, int, Mapping[str, int]]:
    """Attempts of a run without a verdict, all of its attempts, and why they are missing."""
    return run.outcomes.total_missing, run.outcomes.attempts, run.missing_by_reason


def _stated_attempts(run: Run, base: Run | None, options: GateOptions) -> int | None:
    """Attempts per task that the caller or the run itself states; counted ones are no plan."""
    if options.attempts is not None:
        return options.attempts
    is_counted = run.attempts_counted and base is not None
    return None if is_counted else run.protocol.attempts


def _unread_rows(run: Run, base: Run | None) -> tuple[str, ...]:
    """The sources of both runs that have rows which could not be read."""
    tallies = {
        id(side.tally): (side.source, side.tally)
        for side in (run, base)
        if side is not None and side.tally is not None and side.tally.lost
    }
    return tuple(
        f"{counted(tally.lost, 'row')} of {source} could not be read ({tally.losses[0].what})"
        for source, tally in tallies.values()
    )


def _attempts_by_plan(run: Run, base: Run | None, options: GateOptions) -> IntArray:
    """Attempts that were planned for each task of the run; 0 where nothing tells."""
    outcomes = run.outcomes
    stated_attempts = _stated_attempts(run, base, options)
    if stated_attempts is not None:
        return np.full(len(outcomes), stated_attempts, np.int64)
    if run.planned is not None:
        return np.asarray(run.planned, np.int64)
    if base is None:
        return np.zeros(len(outcomes), np.int64)
    base_attempts, _ = base.outcomes.counts(Completion.AS_FAILED)
    by_task = dict(zip(base.outcomes.tasks, base_attempts.tolist(), strict=True))
    return np.array([by_task.get(task, 0) for task in outcomes.tasks], np.int64)


def _plan_text(run: Run, base: Run | None, options: GateOptions) -> str:
    """Say whose plan it is, where the whole run is shorter than its baseline."""
    if base is None or run.planned is not None:
        return ""
    most, planned = (
        int(side.outcomes.counts(Completion.AS_FAILED)[0].max()) for side in (run, base)
    )
    if most >= planned:
        return ""
    if stated := _stated_attempts(run, base, options):
        return f" (planned: {stated} at a task, {planned} in the baseline)"
    return f" (up to {most} at a task, {planned} in the baseline)"


_LUCK = 1e-4
"""Two runs with all counts alike are taken for one where luck is rarer than this."""


def luck_of_same_counts(run: Run, base: Run) -> float | None:
    """The chance that two runs without a change have the same counts at every task.

    ``None`` where they differ, or where something else tells them apart: the time, steps, tokens or
    cost of their attempts, when they began, or two ids in a store. Given the passes of both at a
    task, each way to deal them to the two runs is as likely; a task that always or never passes
    repeats by itself. 0 where the same agent began at the same second.
    """
    a, b = base.outcomes, run.outcomes
    is_same_start = bool(run.started) and (run.started, run.agent) == (base.started, base.agent)
    if (base.id and run.id and base.id != run.id) or (
        run.started and base.started and not is_same_start
    ):
        return None
    measures = [(base.measured(name), run.measured(name)) for name in MEASURES]
    if any(None not in sides and sides[0] != sides[1] for sides in measures):
        return None
    counts = [
        sorted(zip(one.tasks, one.n.tolist(), one.c.tolist(), one.missing.tolist(), strict=True))
        for one in (a, b)
    ]
    if counts[0] != counts[1]:
        return None
    if is_same_start:
        return 0.0
    return float(np.exp((2 * log_choose(a.n, a.c) - log_choose(2 * a.n, 2 * a.c)).sum()))


def copy_text(run: Run, base: Run | None, terms: Terms) -> str:
    """Say that the run may be a copy of its baseline; empty where that is unlikely or allowed."""
    luck = None if base is None or terms.allow else luck_of_same_counts(run, base)
    if luck is None or luck > _LUCK:
        return ""
    chance = f"chance for two runs: 1 in 10^{-math.log10(luck):.0f}" if luck else "and its start"
    return (
        f"every task has the same counts as in the baseline ({chance}), so the run may be a copy "
        "of it"
    )
