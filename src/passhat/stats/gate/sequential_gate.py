"""The gate on a run that is still going on: evaluated again and again, valid at every look.

A rule about this run or new tasks takes tasks in an order drawn beforehand. A task counts once all
its attempts are in; one that is next and still running is waited for, because tasks that finish
first are not like the rest. A rule about these tasks takes rounds, one block of attempts at every
task (:mod:`passhat.stats.gate.rounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from passhat._display import counted, some
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.gate.cases import GateOptions
from passhat.stats.gate.gate_result import Advice, GateResult, GateVerdict, Rule, RuleResult
from passhat.stats.gate.metric_rules import LiftRule, MetricRule
from passhat.stats.gate.rounds import Rounds, attempts_in_order
from passhat.stats.gate.rules import MissingRule, Sign, parse_rule
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.sequential import ConfidenceSequence, consumption_order
from passhat.stats.terms import Population

_SIDES: tuple[Literal["lower"], Literal["upper"]] = ("lower", "upper")

_WAYS = {
    MissingPolicy.BOUND: (Completion.AS_FAILED, Completion.AS_PASSED),
    MissingPolicy.FAIL: (Completion.AS_FAILED, Completion.AS_FAILED),
    MissingPolicy.EXCLUDE: (Completion.DROPPED, Completion.DROPPED),
}
"""How the lower and the upper bound count missing attempts."""
_WHEN_OVER = Hint("Judge it when the run is over, without {watch}.", watch=True)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look at a growing run."""

    result: GateResult
    """The verdicts so far."""
    used: int
    tasks: int
    """``used``, ``tasks``: tasks taken so far, and planned."""
    waiting: str | None
    """The task that is waited for; ``None`` when all are in."""
    rounds: str = ""
    """The rounds taken so far, where a rule is about these tasks."""

    @property
    def complete(self) -> bool:
        return self.used == self.tasks

    @property
    def settled(self) -> bool:
        """Whether going on could not change the answer any more."""
        return _is_settled(self.result)

    def __str__(self) -> str:
        waiting = "" if self.waiting is None else f"; waiting for {self.waiting}"
        used = self.rounds or f"{self.used:,} of {counted(self.tasks, 'task')}"
        return f"{used} used, {self.result.verdict}{waiting}"


def _is_settled(result: GateResult) -> bool:
    return result.incomplete or result.verdict is not GateVerdict.NOT_SETTLED


class Watcher:
    """Looks at a run again and again, and uses each task once.

    ``tasks`` are the ids of the planned tasks, or how many: with the ids the order is known from
    the start, with a number once every task has been seen. ``attempts`` are planned for every task;
    the baseline is complete. ``seed`` draws the order of tasks; a fresh one for every run, such as
    its id, since a fixed one repeats the same unlucky beginning in every build; results name it.

    The population of the terms decides the question: the value that this run will read once all
    planned tasks are in (this run), the value of tasks like them (new tasks), or that of the same
    tasks attempted again (these tasks), which keeps the noise of attempts. Without one, a rule
    against a baseline is about these tasks, as in the gate of a complete run, and any other rule
    about this run. A rule about these tasks ends early where attempts are made in rounds.
    """

    def __init__(
        self,
        rules: Iterable[str | Rule],
        *,
        tasks: int | Sequence[str],
        attempts: int,
        options: GateOptions | None = None,
        against: Outcomes | None = None,
        seed: int | str,
    ) -> None:
        self._options = options or GateOptions()
        self._rules = [parse_rule(rule) for rule in rules]
        self._tasks = tasks if isinstance(tasks, int) else len(tasks)
        self._attempts = attempts
        self._base = against
        self._seed = seed
        self._order = None if isinstance(tasks, int) else consumption_order(tasks, self._seed)
        self._used = 0
        self._missing = 0
        _refuse_unwatchable(self._rules, self._tasks, attempts, against)
        if self._options.terms.cluster is not None:
            raise InvalidValue(
                "clusters cannot be watched: tasks are taken one by one.",
                hint=_WHEN_OVER,
            )
        self._tracks = [
            self._make_track(rule)
            for rule in self._rules
            if isinstance(rule, MetricRule | LiftRule)
        ]

    def _make_track(self, rule: MetricRule | LiftRule) -> _Track:
        terms = self._options.terms
        plain = Population.THESE_TASKS if rule.relative else Population.THIS_RUN
        about = terms.about(plain)
        if about is Population.THESE_TASKS:
            rounds = _split_rounds(rule, self._attempts, self._base, terms.missing)
            return _RoundTrack(rule, terms.level, rounds, _rng(self._seed))
        total = self._tasks if about is Population.THIS_RUN else None
        binary = _is_binary(rule, self._attempts, terms.missing)
        return _TaskTrack(rule, terms.level, about, total, binary=binary)

    def look(self, run: Run) -> Look:
        """Take the tasks that have become complete, in the drawn order."""
        outcomes = run.outcomes
        if run.planned is not None:
            raise InvalidValue(
                f"{run.name} has a number of attempts of its own for every task, and a watched "
                "gate takes tasks once they have the same number.",
                hint=_WHEN_OVER,
            )
        where = {task: index for index, task in enumerate(outcomes.tasks)}
        attempts, _ = outcomes.counts(Completion.AS_FAILED)
        self._know_order(outcomes.tasks)
        ready: list[int] = []
        waiting = None
        for task in (self._order or ())[self._used :]:
            index = where.get(task)
            if index is None or attempts[index] < self._attempts:
                attempt_count = 0 if index is None else int(attempts[index])
                waiting = (
                    f"{task}, which has {attempt_count} of {counted(self._attempts, 'attempt')}"
                )
                break
            ready.append(index)
        if self._order is None:
            waiting = (
                f"the ids of all {self._tasks:,} tasks, of which {len(where):,} have been seen (a "
                "list of the ids makes it possible to start before)"
            )
        self._take_rounds(run)
        if ready and not _is_settled(self._result(run)):
            self._take(run, outcomes.take(np.array(ready)))
        rounds = [track.progress for track in self._tracks if isinstance(track, _RoundTrack)]
        return Look(self._result(run), self._used, self._tasks, waiting, ", ".join(rounds[:1]))

    def _know_order(self, seen: Sequence[str]) -> None:
        if self._order is None and len(seen) == self._tasks:
            self._order = consumption_order(seen, self._seed)
        plan = self._tasks if self._order is None else set(self._order)
        strange = [] if isinstance(plan, int) else [task for task in seen if task not in plan]
        if strange or len(seen) > self._tasks:
            raise InvalidValue(
                f"the source holds tasks that were not planned"
                f"{': ' + some(strange) if strange else ''} ({len(seen):,} tasks, "
                f"{self._tasks:,} planned).",
                hint=Hint(
                    "The plan must be made beforehand: start again with the right {tasks}.",
                    tasks=None,
                ),
            )

    def _take(self, run: Run, chosen: Outcomes) -> None:
        """Take tasks one by one, and stop after the task that settles it.

        So the answer does not depend on how many tasks happened to be ready at a look.
        """
        policy = self._options.terms.missing
        tracks = [track for track in self._tracks if isinstance(track, _TaskTrack)]
        values = [track.values(chosen, self._base, policy) for track in tracks]
        for index, missing in enumerate(chosen.missing.tolist()):
            for track, (low, high) in zip(tracks, values, strict=True):
                track.take(low[index], high[index])
            self._used += 1
            self._missing += missing
            if _is_settled(self._result(run)):
                return

    def _take_rounds(self, run: Run) -> None:
        """Take the rounds that have become complete, and stop after the one that settles it."""
        if self._order is None or len(run.outcomes) < self._tasks:
            return
        for track in self._tracks:
            if not isinstance(track, _RoundTrack):
                continue
            for low, high in track.rounds_ready(
                run.outcomes, self._base, self._options.terms.missing
            ):
                if _is_settled(self._result(run)):
                    return
                track.take(low, high)

    def _result(self, run: Run) -> GateResult:
        tracks = iter(self._tracks)
        results = tuple(
            self._missing_result(rule)
            if isinstance(rule, MissingRule)
            else self._metric_result(next(tracks))
            for rule in self._rules
        )
        return GateResult(
            run.name,
            None if self._base is None else "base",
            results,
            self._options.terms.missing,
            notes=tuple(self._notes()),
            order_seed=self._seed,
        )

    def _notes(self) -> Iterator[str]:
        if any(isinstance(track, _TaskTrack) for track in self._tracks) or not self._tracks:
            yield (
                f"{self._used:,} of {counted(self._tasks, 'task')} used, in an order drawn "
                f"beforehand (seed {self._seed}); the bounds hold at every look"
            )
        for track in self._tracks:
            if isinstance(track, _RoundTrack):
                yield f"{track.rule}: {track.progress} used; the bounds hold after every round"

    def _metric_result(self, track: _Track) -> RuleResult:
        low, value, high = track.bounds
        verdict = track.verdict
        used, attempts = track.used(self._used, self._tasks, self._attempts)
        return RuleResult(
            track.rule,
            verdict,
            value,
            low,
            high,
            self._options.terms.level,
            str(track.about),
            used,
            attempts,
            self._advice(track) if verdict is GateVerdict.NOT_SETTLED else None,
        )

    def _advice(self, track: _Track) -> Advice:
        if isinstance(track, _RoundTrack):
            return track.advice
        if self._used < self._tasks:
            left = self._tasks - self._used
            return Advice("finish", f"{left:,} planned tasks are still to come")
        if track.about is Population.NEW_TASKS:
            return Advice("tasks", "all planned tasks are in: only more tasks would settle it")
        # The mean of a suite that is complete is known, but for attempts without a verdict.
        missing = counted(self._missing, "attempt")
        return Advice(
            "verdicts", f"all planned tasks are in: the {missing} without a verdict decide"
        )

    def _missing_result(self, rule: MissingRule) -> RuleResult:
        """Judged on the tasks used so far; refuted once no later task could change that."""
        attempts = self._used * self._attempts
        share = self._missing / attempts if attempts else 0.0
        lost_for_good = self._missing / (self._tasks * self._attempts)
        if not rule.sign.holds(lost_for_good, rule.limit):
            verdict = GateVerdict.REFUTED
        elif attempts and rule.sign.holds(share, rule.limit):
            verdict = GateVerdict.SHOWN
        else:
            verdict = GateVerdict.NOT_SETTLED
        about = "the tasks used so far"
        return RuleResult(rule, verdict, share, None, None, None, about, self._used, attempts)


class _Track:
    """The two one-sided sequences of one rule.

    A lift d lies between -1 and 1; it is followed as (d + 1) / 2.
    """

    def __init__(
        self,
        rule: MetricRule | LiftRule,
        level: float,
        about: Population,
        total: int | None = None,
        *,
        binary: bool = False,
    ) -> None:
        self.rule = rule
        self.about = about
        self._limit = (rule.limit + 1) / 2 if rule.relative else rule.limit
        limits = [self._limit]
        self._lower, self._upper = (
            ConfidenceSequence(level, sides=side, total=total, thresholds=limits, binary=binary)
            for side in _SIDES
        )

    def used(self, tasks: int, _planned: int, attempts: int) -> tuple[int, int]:
        """The tasks and the attempts that the bounds rest on."""
        return tasks, tasks * attempts

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Lower bound, value so far, upper bound, in the units of the rule."""
        low, high = self._lower.bounds, self._upper.bounds
        value = 0.0 if low.mean is None else low.mean
        if self.rule.relative:
            return 2 * low.low - 1, 2 * value - 1, 2 * high.high - 1
        return low.low, value, high.high

    @property
    def verdict(self) -> GateVerdict:
        # "at most t" is the denial of "above t", "below t" that of "at least t".
        strict = self.rule.sign in (Sign.ABOVE, Sign.AT_MOST)
        above = self._lower.decide(self._limit, strict=strict) == "shown"
        under = self._upper.decide(self._limit, strict=strict) == "refuted"
        if not self.rule.sign.wants_more:
            above, under = under, above
        if above:
            return GateVerdict.SHOWN
        return GateVerdict.REFUTED if under else GateVerdict.NOT_SETTLED


class _TaskTrack(_Track):
    """About this run or new tasks: one value per task, in the drawn order."""

    def values(
        self, chosen: Outcomes, base: Outcomes | None, policy: MissingPolicy
    ) -> tuple[list[float], list[float]]:
        """Each task's value for the lower and for the upper bound, between 0 and 1."""
        metric = self.rule.subject
        pessimist, optimist = _WAYS[policy]
        low = values_by_task(chosen, metric, pessimist)
        high = values_by_task(chosen, metric, optimist)
        if self.rule.relative:
            assert base is not None
            base_outcomes = _same_tasks(base, chosen.tasks)
            low = (low - values_by_task(base_outcomes, metric, optimist) + 1) / 2
            high = (high - values_by_task(base_outcomes, metric, pessimist) + 1) / 2
        return _clip(low), _clip(high)

    def take(self, low: float, high: float) -> None:
        self._lower.update(low)
        self._upper.update(high)


class _RoundTrack(_Track):
    """About these tasks: one value per task and round."""

    def __init__(
        self,
        rule: MetricRule | LiftRule,
        level: float,
        rounds: Rounds,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(rule, level, Population.THESE_TASKS)
        self._rounds = rounds
        self._rng = rng
        self._taken = 0

    def rounds_ready(
        self, outcomes: Outcomes, base: Outcomes | None, policy: MissingPolicy
    ) -> Iterator[tuple[list[float], list[float]]]:
        """The values of every complete round not yet taken, for the lower and the upper bound."""
        pessimist, optimist = _WAYS[policy]
        planned = self._rounds.blocks[-1].stop
        low, ready = attempts_in_order(outcomes, planned, pessimist, self._rng)
        complete = self._rounds.complete(ready)
        if complete == self._taken:
            return
        high, _ = attempts_in_order(outcomes, planned, optimist, self._rng)
        base_low = base_high = None
        if base is not None and self.rule.relative:
            same = _same_tasks(base, outcomes.tasks)
            most = self._rounds.base_blocks[-1].stop
            base_low, _ = attempts_in_order(same, most, pessimist, self._rng)
            base_high, _ = attempts_in_order(same, most, optimist, self._rng)
        for index in range(self._taken, complete):
            ends = (
                self._rounds.values(index, low, base_high),
                self._rounds.values(index, high, base_low),
            )
            if self.rule.relative:
                ends = ((ends[0] + 1) / 2, (ends[1] + 1) / 2)
            yield _clip(ends[0]), _clip(ends[1])

    def take(self, low: list[float], high: list[float]) -> None:
        self._lower.update_round(low)
        self._upper.update_round(high)
        self._taken += 1

    def used(self, _tasks: int, planned: int, _attempts: int) -> tuple[int, int]:
        made = self._rounds.blocks[self._taken - 1].stop if self._taken else 0
        return (planned if made else 0), planned * made

    @property
    def progress(self) -> str:
        """The rounds taken so far, in words."""
        return f"{self._taken:,} of {counted(len(self._rounds.blocks), 'round')}"

    @property
    def advice(self) -> Advice:
        left = len(self._rounds.blocks) - self._taken
        if left:
            return Advice("finish", f"{counted(left, 'round')} of attempts at every task to come")
        return Advice(
            "attempts",
            "all rounds are in: the gate of the complete run, without looks in between, has "
            "narrower bounds",
        )


def _split_rounds(
    rule: MetricRule | LiftRule, attempts: int, base: Outcomes | None, policy: MissingPolicy
) -> Rounds:
    """The rounds of a rule about these tasks, or an error where it cannot have any."""
    metric = rule.subject.as_count_metric(attempts)
    if metric is None:
        raise InvalidValue(
            f"'{rule}' cannot be watched about these tasks: {rule.subject} is no mean over tasks.",
            hint=_WHEN_OVER,
        )
    if policy is MissingPolicy.EXCLUDE:
        raise InvalidValue(
            f"'{rule}' is about these tasks, and a round needs an attempt at every one of them, so "
            "that missing attempts cannot be left out.",
            hint=Hint("Count them both ways: {missing}.", missing="bound"),
        )
    base_attempts = None
    if base is not None and rule.relative:
        base_attempts = int(base.counts(Completion.AS_FAILED)[0].min())
    return Rounds.split(metric, attempts, base_attempts)


def _rng(seed: int | str) -> np.random.Generator:
    return np.random.default_rng(np.frombuffer(str(seed).encode(), np.uint8))


def _is_binary(rule: MetricRule | LiftRule, attempts: int, policy: MissingPolicy) -> bool:
    """Whether a task's value is always 0 or 1: one attempt each, or k as large as n."""
    if rule.relative or not isinstance(rule.subject, CountMetric) or attempts < rule.subject.k:
        return False
    if policy is MissingPolicy.EXCLUDE:
        return False  # the remaining attempts differ from task to task
    values = rule.subject.values(np.full(attempts + 1, attempts), np.arange(attempts + 1))
    return bool(np.isin(values, (0.0, 1.0)).all())


def _clip(values: FloatArray) -> list[float]:
    clipped_values: list[float] = np.clip(values, 0.0, 1.0).tolist()
    return clipped_values


def _same_tasks(base: Outcomes, tasks: Sequence[str]) -> Outcomes:
    where = {task: index for index, task in enumerate(base.tasks)}
    unknown = [task for task in tasks if task not in where]
    if unknown:
        raise InvalidValue(
            f"base has no attempts at {some(unknown)}, so the lift there is unknown.",
            hint="Compare with a run of the same suite.",
        )
    return base.take(np.array([where[task] for task in tasks]))


def _refuse_unwatchable(
    rules: Sequence[Rule], tasks: int, attempts: int, base: Outcomes | None
) -> None:
    if tasks < 1 or attempts < 1:
        raise InvalidValue("tasks and attempts that are planned must be at least 1.")
    for rule in rules:
        if rule.measure is not None:
            raise InvalidValue(
                f"'{rule}' cannot be watched: {rule.measure} has no upper limit, so no bound "
                "holds at every look.",
                hint=_WHEN_OVER,
            )
        if not isinstance(rule, MissingRule | MetricRule | LiftRule):
            raise InvalidValue(f"'{rule}' cannot be watched.", hint=_WHEN_OVER)
        if rule.relative and base is None:
            raise InvalidValue(
                f"'{rule}' compares with base, and there is none.",
                hint=Hint("Name it: {against}.", against="SOURCE"),
            )
        if rule.metric is not None and rule.metric.k > attempts:
            raise InvalidValue(
                f"'{rule}' needs {rule.metric.k} attempts per task; {attempts} are planned."
            )
