"""Whole results on hundreds of small runs: one task, one attempt, ties, gaps, uneven attempts.

The runs and the options are drawn from seeds. ``PASSHAT_WRITE_RESULTS=1 python -m pytest`` with
this file writes the folder ``small_runs`` again. Other tests say why a number is right; this one
says that it is still the same, in every branch that small runs reach.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kept_results import check_results
from passhat import Outcomes, Protocol, Run
from passhat._serialize import to_data
from passhat.errors import PasshatError
from passhat.stats.changes import find_changes
from passhat.stats.compare import compare, compare_all
from passhat.stats.estimate import default_ks, diagnose, estimate_all, missing_effect
from passhat.stats.forecast import forecast_all, forecast_curve, keeps, reaches
from passhat.stats.gate import gate
from passhat.stats.gate.each_task import judge_one_task
from passhat.stats.gate.sequential_gate import Watcher
from passhat.stats.labels.correction import correct
from passhat.stats.labels.judge_error import judge_error
from passhat.stats.labels.label_plan import plan_labels
from passhat.stats.labels.lifts import LabeledSide, correct_lift
from passhat.stats.outcomes.labels import LabelCounts
from passhat.stats.plan import allocate, plan_attempts, plan_tasks
from passhat.stats.temperature import fit_temperatures
from passhat.stats.why import Step, Trace, explain_failures, explain_task

FOLDER = Path(__file__).with_name("small_runs")
COUNTED = ["pass^1", "pass@2", "pass^2", "pass@3", "pass^3", "delta^2", "delta^3", "gpass@2:0.5"]
COUNTED += ["gpass@3:0.7", "gpass@4:1", "rate"]
METRICS = [*COUNTED, "first@2", "first^2", "window^2", "window^3"]
METRICS += ["mean", "best@2", "worst@2", "best@3", "worst@3"]
OPTIONS: dict[str, tuple[float, list[object]]] = {
    "missing": (0.5, ["fail", "exclude"]),
    "level": (0.4, [0.8, 0.9, 0.99]),
    "about": (0.5, ["these tasks", "new tasks"]),
    "drop_short": (0.7, [True]),
    "allow": (0.7, [True]),
}


class Dice(random.Random):
    """Draws runs and options."""

    def options(self, *names: str) -> dict[str, Any]:
        """Some of these options of an analysis."""
        options: dict[str, Any] = {}
        for name in names:
            chance, values = OPTIONS.get(name, (0.2, ["family"]))
            known = name != "cluster" or options.get("about") != "these tasks"
            if known and self.random() < chance:
                options[name] = self.choice(values)
        return options

    def metrics(self, most: int) -> list[str]:
        return self.sample(METRICS, self.randint(1, most))

    def run(
        self, tasks: int = 0, name: str = "a", most: int = 6, *, scored: bool | None = None
    ) -> Run:
        """A run of 1 to 14 tasks, some easy, some hard, with up to 7 attempts each."""
        tasks = tasks or self.choice([1, 2, 3, 4, 6, 9, 14])
        attempts = self.choice([1, 2, 3, 3, 4, 5, most])
        shape = self.choice(["equal", "equal", "uneven", "gaps", "both"])
        rates = self.choice([[0, 0.3, 0.5, 0.8, 1]] * 3 + [[0.9], [0.1], [1], [0]])
        has_scores = self.random() < 0.25 if scored is None else scored
        records: list[dict[str, object]] = []
        for task in range(tasks):
            rate = self.choice(rates)
            last = attempts if shape in ("equal", "gaps") else self.randint(1, attempts + 1)
            for number in range(1, last + 1):
                passed = self.random() < rate
                is_missing = shape in ("gaps", "both") and self.random() < 0.15
                record = {"task": f"t{task}", "trial": number, "slice:family": f"f{task % 4}"}
                record["success"] = None if is_missing else passed
                if has_scores and not is_missing:
                    record["score"] = 1.0 if passed else self.choice([0, 0.25, 0.5])
                records.append(record)
        suite = self.choice(["s", "u"]) if self.random() < 0.04 else None
        protocol = Protocol() if suite is None else Protocol(suite=suite)
        return Run(name, name, Outcomes.from_records(records), protocol)

    def labels(self, outcomes: Outcomes) -> LabelCounts:
        """Labels of some whole tasks, by which the judge errs in none to 3 of 10 attempts."""
        share, errors = self.choice([0.5, 0.8, 1]), self.choice([0, 0.1, 0.3])
        return LabelCounts.from_rows(
            (task, place < int(c), (place < int(c)) ^ (self.random() < errors))
            for task, n, c in zip(outcomes.tasks, outcomes.n, outcomes.c, strict=True)
            if self.random() < share
            for place in range(int(n))
        )

    def rule(self) -> str:
        signs = [">=", ">", "<=", "<"]
        forms = [
            *(f"{{metric}} {sign} {{limit}}" for sign in signs),
            "{metric} >= base",
            "{metric} >= base - {limit}",
            "{metric} > base",
            "each {metric} >= {limit}",
            "each {metric} < {limit}",
            "missing <= {limit}",
        ]
        metric = self.choice([*COUNTED[:6], "rate", "mean"])
        limit = self.choice([0, 0.1, 0.2, 0.5, 0.9, 1])
        return self.choice(forms).format(metric=metric, limit=limit)

    def goal(self) -> dict[str, Any]:
        """A lift to detect or a half-width to reach."""
        goal: dict[str, Any] = {"half_width": self.choice([0.05, 0.2])}
        if self.random() < 0.6:
            goal = {"detect": self.choice([0.05, 0.1, 0.3])}
        if self.random() < 0.3:
            goal["power"] = 0.9
        if self.random() < 0.3:
            goal["level"] = self.choice([0.8, 0.99])
        return goal


def _estimates(dice: Dice) -> object:
    options = dice.options("missing", "level", "about", "cluster", "drop_short")
    return estimate_all(dice.run().outcomes, dice.metrics(4), **options)


def _looks(dice: Dice) -> object:
    outcomes = dice.run(scored=False).outcomes
    effect = missing_effect(outcomes, "pass^1")
    return [diagnose(outcomes), default_ks(outcomes), effect, outcomes.attempts_text()]


def _comparison(dice: Dice) -> object:
    tasks = dice.choice([1, 2, 3, 5, 8, 12])
    a, b = dice.run(tasks), dice.run(tasks + (dice.random() < 0.15), "b")
    options = dice.options("missing", "level", "about", "cluster", "drop_short", "allow")
    if dice.random() < 0.2:
        options["alternative"] = dice.choice(["greater", "less"])
    if dice.random() < 0.2:
        options["by"] = "family"
    if dice.random() < 0.1:
        options["unpaired"] = True
    result = compare(a, b, dice.metrics(2), **options)
    return [result, str(result)]


def _comparisons(dice: Dice) -> object:
    tasks = dice.choice([2, 5, 9])
    options = dice.options("missing", "level", "about", "drop_short", "allow")
    result = compare_all([dice.run(tasks, name) for name in "abc"], dice.metrics(2), **options)
    return [result, str(result)]


def _gate(dice: Dice) -> object:
    tasks = dice.choice([1, 2, 3, 5, 8])
    options = dice.options("missing", "level", "about", "cluster", "drop_short", "allow")
    rules = [dice.rule() for _ in range(dice.choice([1, 1, 2, 3]))]
    has_base = dice.random() < 0.7 or any("base" in rule for rule in rules)
    planned: dict[str, list[object]] = {
        "attempts": [1, 2, 4, 6],
        "tasks": [tasks, tasks + 1],
        "unsettled": ["warn", "fail", "pass"],
        "max_missing": [0, 0.2, 1],
        "details": [True],
    }
    for name, values in planned.items():
        if dice.random() < 0.2:
            options[name] = dice.choice(values)
    base = dice.run(tasks, "base") if has_base else None
    result = gate(dice.run(tasks, "run"), rules, base, **{"details": False, **options})
    return [result, str(result), int(result.exit_code)]


def _regression(dice: Dice) -> object:
    tasks = dice.choice([1, 2, 4, 7, 12])
    options = dice.options("missing", "level", "drop_short", "allow")
    if dice.random() < 0.4:
        options["margin"] = dice.choice([0.05, 0.2])
    if dice.random() < 0.4:
        options["metric"] = dice.choice(METRICS)
    if dice.random() < 0.3:
        options |= {"tasks": tasks, "attempts": dice.randint(1, 6)}
    run, base = (dice.run(tasks, name, scored=False) for name in ("run", "base"))
    result = gate(run, (), base, details=dice.random() < 0.2, **options)
    return [result, str(result), int(result.exit_code)]


def _task_rule(dice: Dice) -> object:
    n = dice.randint(1, 12)
    rules = ["pass^1 >= 0.5", "pass^2 >= 0.25", "pass@2 > 0.9", "pass^1 < 0.3", "gpass@4:1 >= 0.4"]
    c, missing, level = dice.randint(0, n), dice.choice([0, 0, 1]), dice.choice([0.8, 0.95])
    result = judge_one_task("t", dice.choice(rules), n=n, c=c, missing=missing, level=level)
    return [result, str(result)]


def _plan(dice: Dice) -> object:
    metric, goal = dice.choice([*METRICS[:11], "mean", "best@2"]), dice.goal()
    attempts = dice.randint(1, 8) if dice.random() < 0.4 else None
    tasks = dice.choice([2, 4, 8, 15])
    pilot, for_gate = dice.run(tasks), dice.random() < 0.3
    kind = dice.choice(["tasks", "tasks", "attempts", "allocation", "without a pilot"])
    if kind == "without a pilot":
        mean, icc = dice.choice([0.2, 0.5, 0.95]), dice.choice([0, 0.3, 0.8, 1])
        plan = plan_tasks(metric=metric, mean=mean, icc=icc, attempts=attempts, **goal)
    elif kind == "tasks":
        cluster = "family" if dice.random() < 0.2 else None
        other = dice.run(tasks, "b") if dice.random() < 0.2 else None
        goal |= {"attempts": attempts, "cluster": cluster, "against": other}
        plan = plan_tasks(pilot, metric=metric, **goal)
    elif kind == "attempts":
        plan = plan_attempts(pilot, metric=metric, gate=for_gate, attempts=attempts, **goal)
    else:
        most = dice.randint(2, 12) if dice.random() < 0.3 else None
        aim = {"budget": dice.randint(2, 60)} if dice.random() < 0.4 else goal
        plan = allocate(pilot, metric=metric, gate=for_gate, most=most, **aim)
    return [plan, str(plan), plan.allocation and plan.allocation.by_task]


def _forecast(dice: Dice) -> object:
    run, options = dice.run(scored=False), dice.options("missing", "level", "cluster")
    words = ["pass^8", "pass@16", "gpass@10:0.5", "pass^1", "pass@3", "rate", "pass^100"]
    kind = dice.choice(["several", "curve", "reach"])
    if kind == "several":
        return forecast_all(run, dice.sample(words, 2), **options)
    if kind == "curve":
        return forecast_curve(run, dice.choice(["pass^5", "pass@9", "rate"]), **options)
    return [
        reaches(run, dice.choice([0.3, 0.8, 1]), **options),
        keeps(run, dice.choice([0.1, 0.5, 0.9]), **options),
    ]


def _labels(dice: Dice) -> object:
    tasks, metric = dice.choice([8, 14, 20]), dice.choice(COUNTED)
    a, b = (dice.run(tasks, name, scored=False) for name in "ab")
    a, b = (replace(run, labels=dice.labels(run.outcomes)) for run in (a, b))
    assert a.labels is not None
    assert b.labels is not None
    kind = dice.choice(["whole tasks", "errors"])
    options = dice.options("missing", "level", "drop_short", "about")
    question = dice.choice(["error", "value", "value", "plan", "lift", "lift", "gate"])
    if question == "error":
        return judge_error(a.outcomes, a.labels)
    if question == "value":
        return correct(a.outcomes, a.labels, metric, correction=kind, **options)
    if question == "plan":
        width = dice.choice([None, 0.05, 0.2])
        return plan_labels(a.outcomes, a.labels, metric, half_width=width, correction=kind)
    if question == "lift":
        sides = LabeledSide(a.outcomes, a.labels), LabeledSide(b.outcomes, b.labels)
        return correct_lift(*sides, metric, correction=kind)
    rules = [f"{metric} >= 0.4", f"{metric} >= base - 0.1"]
    result = gate(a, rules, b, corrected=kind, details=False, allow=True)
    return [result, str(result)]


def _changes(dice: Dice) -> object:
    tasks, runs = dice.choice([1, 3, 8]), dice.randint(6, 14)
    sides = [dice.run(tasks, most=4, scored=False).outcomes for _ in "ab"]
    return find_changes([sides[place > runs // 2] for place in range(runs)])


def _watched(dice: Dice) -> object:
    tasks, rules = dice.choice([2, 4, 9]), [dice.rule() for _ in range(dice.choice([1, 2]))]
    base, run = (dice.run(tasks, name, scored=False) for name in ("base", "run"))
    names, attempts = run.outcomes.tasks, dice.randint(1, 5)
    watcher = Watcher(rules, tasks=names, attempts=attempts, against=base.outcomes, seed=1)
    parts = (run.outcomes.take(np.arange(upto)) for upto in (tasks // 2, tasks))
    looks = [watcher.look(replace(run, outcomes=part)) for part in parts]
    return [(look.result, look.complete, look.settled) for look in looks]


def _temperatures(dice: Dice) -> object:
    tasks, ladder = dice.choice([3, 6]), dice.choice([(0.0, 0.5), (0.2, 0.6, 1.0), (0, 1)])
    runs = [
        replace(run, agent=agent, protocol=Protocol(decoding={"temperature": temperature}))
        for agent in dice.choice(["x", "xy"])
        for temperature in ladder
        for run in [dice.run(tasks, f"{agent} {temperature}", scored=False)]
    ]
    fit = fit_temperatures(runs, dice.choice([(), (1, 2), (1, 3)]), **dice.options("level"))
    return [fit, str(fit), [agent.best_rows() for agent in fit.agents]]


def _step(dice: Dice) -> Step:
    arguments = {"q": dice.randint(0, 1)} if dice.random() < 0.5 else {}
    return Step(dice.choice(["find", "get", "buy"]), arguments)


def _explanation(dice: Dice) -> object:
    traces = [
        Trace(task, number, dice.random() < 0.5, tuple(map(_step, [dice] * dice.randint(0, 4))))
        for task in "abc"[: dice.randint(1, 3)]
        for number in range(dice.randint(2, 9))
    ]
    of_a = [trace for trace in traces if trace.task == "a"]
    missing, passed, failed = dice.choice([0, 1]), dice.choice([0, 2]), dice.choice([0, 1])
    explanation = explain_task(
        "a", of_a, missing=missing, silent_passed=passed, silent_failed=failed
    )
    return [explain_failures(traces), explanation]


KINDS: dict[str, tuple[Callable[[Dice], object], int]] = {
    "estimates": (_estimates, 70),
    "looks": (_looks, 25),
    "comparison": (_comparison, 50),
    "comparisons": (_comparisons, 12),
    "gate": (_gate, 70),
    "regression": (_regression, 40),
    "task rule": (_task_rule, 25),
    "plan": (_plan, 40),
    "forecast": (_forecast, 8),
    "labels": (_labels, 70),
    "changes": (_changes, 25),
    "watched": (_watched, 40),
    "temperatures": (_temperatures, 12),
    "explanation": (_explanation, 25),
}


def _compact(data: object) -> object:
    """Data without what is empty."""
    if isinstance(data, dict):
        parts = {key: _compact(part) for key, part in data.items()}
        return {key: part for key, part in parts.items() if part not in (None, "", [], {})}
    return [_compact(part) for part in data] if isinstance(data, list | tuple) else data


@pytest.mark.parametrize("kind", KINDS)
def test_small_runs_have_the_results_they_had(kind: str) -> None:
    make, count = KINDS[kind]
    results: dict[str, object] = {}
    for number in range(count):
        try:
            result = _compact(to_data(make(Dice(f"{kind} {number}"))))
        except PasshatError as error:
            result = [type(error).__name__, error.message, str(error.hint or "")]
        results[str(number)] = result
    check_results(FOLDER / f"{kind.replace(' ', '_')}.json", results)
