"""Whole results on hundreds of small runs: one task, one attempt, ties, gaps, uneven attempts.

The runs and the options are drawn from seeds. ``PASSHAT_WRITE_RESULTS=1 python -m pytest`` with
this file writes the folder ``small_runs`` again. Other tests say why a number is right; this one
says that it is still the same, in every branch that small runs reach.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kept_results import check_results
from passhat import Outcomes, Protocol, Run
from passhat._serialize import to_data
from passhat.errors import PasshatError
from passhat.stats.changes import Found, Search, find_changes, in_order
from passhat.stats.changes.search import choose_tasks, pair_capital, telling
from passhat.stats.compare import compare, compare_all, holm, max_t, sign_flip_test, sign_test
from passhat.stats.compare.lift import expected_bound, simultaneous_tail
from passhat.stats.compare.paired_comparison import deployment, deployment_line
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.prospects import Reach, foresee_attempts, foresee_tasks
from passhat.stats.compare.ranking import find_front, find_groups, rank_agents
from passhat.stats.compare.significance import (
    drop_p_value,
    lift_deviation,
    longer_drop_p_value,
    pair_drop_p_value,
    pair_rise_p_value,
    split_drop_p_value,
    unequal_drop_p_value,
)
from passhat.stats.compare.task_changes import find_changed_tasks, fisher_tests
from passhat.stats.estimate import default_ks, diagnose, estimate_all, missing_effect
from passhat.stats.estimate import metric as parse_metric
from passhat.stats.estimate.counting import as_share, pass_at_k, pass_hat_k
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.forecast import forecast_all, forecast_curve, keeps, reaches
from passhat.stats.gate import FreshRun, GateOptions, confirm_suspects, gate, judge
from passhat.stats.gate.confirm import count_mean_attempts
from passhat.stats.gate.decision import find_suspects
from passhat.stats.gate.each_task import judge_one_task
from passhat.stats.gate.power import simulate_curve, simulate_rule
from passhat.stats.gate.rules import parse_rule
from passhat.stats.gate.sequential_gate import Watcher
from passhat.stats.labels.agreement import (
    cohen_kappa,
    count_voted_tasks,
    krippendorff_alpha,
    share_noise,
)
from passhat.stats.labels.correction import correct
from passhat.stats.labels.drawing import DrawKind, draw_attempts, draw_whole_tasks
from passhat.stats.labels.judge_error import (
    AnchorCheck,
    CheckedAttempt,
    judge_error,
    summarize_check,
)
from passhat.stats.labels.label_plan import plan_labels
from passhat.stats.labels.lifts import LabeledSide, correct_lift
from passhat.stats.outcomes import Completion, MissingPolicy, Verdict, summarize_failures
from passhat.stats.outcomes.attempts import concatenate
from passhat.stats.outcomes.causes import (
    judge_error_message,
    no_answer_text,
    summarize_task_failures,
)
from passhat.stats.outcomes.cells import RowError, number_from, parse_number, whole_number_from
from passhat.stats.outcomes.coercion import as_runs
from passhat.stats.outcomes.columns import (
    ColumnMap,
    fold_name,
    is_first_success,
    is_negative,
    is_percent,
)
from passhat.stats.outcomes.gathering import AttemptGatherer, CountGatherer
from passhat.stats.outcomes.labels import Anchor, LabelCounts
from passhat.stats.outcomes.rewards import (
    RewardWords,
    ScoreRange,
    are_endings,
    check_threshold,
    has_failure_reasons,
    is_agent_ending,
    is_failure_reason,
    is_odd_ending,
)
from passhat.stats.outcomes.vocabulary import failure_category, missing_reason, source_words
from passhat.stats.plan import allocate, plan_attempts, plan_tasks
from passhat.stats.plan.allocation import Allocation
from passhat.stats.sequential import ConfidenceSequence, consumption_order
from passhat.stats.temperature import fit_temperatures
from passhat.stats.temperature.laws import fit_law, fit_log_logit, sweep
from passhat.stats.temperature.optimum import expected_pass_at_k
from passhat.stats.temperature.peak import peaks
from passhat.stats.temperature.tasks import family
from passhat.stats.terms import Population, Terms
from passhat.stats.why import (
    Step,
    Trace,
    explain_failures,
    explain_task,
    find_closest_pair,
    find_decisive_step,
)
from passhat.stats.why.events import list_events
from passhat.stats.why.stratified import Stratified, Stratum, choose_testable, correct_discrete

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

    def any_of(self, *values: Any) -> Any:
        """One of some values of any type."""
        return self.choice(values)

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


# -- data as they are given --------------------------------------------------------------------

CELLS: list[list[object]] = [
    [True, False, None],
    [1, 0, "", -1],
    [1, -1],
    ["pass", "FAIL", "n/a", "failed: assertion"],
    ["✅ pass", "❌ fail (timeout)", "env error", "agent crashed"],
    ["yes", "no", "not passed", "resolved_ids", "sandbox timeout"],
    [0.5, 1.0, 0, "25%", "0,75", None],
    [np.float32(0.25), np.bool_(True), 1.2],
    [3, 5, 10, 80],
    ["maybe", True],
]
"""Cells of a column about success, as tables of different origin have them."""
NAMES = {
    "task": ["task", "Task ID", "question", "problem"],
    "success": ["success", "passed", "score", "Reward", "status"],
    "trial": ["trial", "run", "seed", "attempt_id"],
}


def _table(dice: Dice) -> tuple[list[str], list[dict[str, object]]]:
    """The names of the columns of a table of attempts, and its rows."""
    names = {word: dice.choice(choices) for word, choices in NAMES.items()}
    trials = dice.choice([None, [1, 2, 3], [0, 1, 2], [2, 3, 9], ["a", "b"], ["1.0", "2", "10"]])
    tasks = dice.any_of(["a", "b", "c"], ["a", "A", "b"], ["1", "3.0", 2], ["x/1", " y ", "z"])
    cells = dice.choice(CELLS)
    others: dict[str, list[object]] = {
        "model": ["m", "n"],
        "suite": ["s", "s", "t"],
        "temperature": [0.5, "0.5", 1],
        "n": [3, 4],
        "graded_score": [0.2, 1, 0, "x", None],
        "duration": [1.5, 2, None, 40],
        "steps": [3, 4, ""],
        "tokens": [100, 2e3],
        "cost": [0.1, 0.25, "0.3"],
        "failure": ["", "timeout: max_steps", "AssertionError", "judge_error", "KeyError", "lost"],
        "answer": ["yes", "no", "", None],
        "slice:family": ["f", "g"],
        "note": ["x", "y"],
    }
    chances = {"model": 0.15, "suite": 0.1, "temperature": 0.15, "slice:family": 0.3}
    chosen = [name for name in others if dice.random() < chances.get(name, 0.35)]
    repeats = dice.choice([0, 0, 0, 0.1])
    rows: list[dict[str, object]] = []
    for place, task in enumerate(tasks):
        for trial in trials or [0] * dice.randint(1, 3):
            for _ in range(1 + (dice.random() < repeats)):
                row = {names["task"]: task, names["success"]: dice.choice(cells)}
                if trials is not None:
                    row[names["trial"]] = trial
                for name in chosen:
                    by_task = name.startswith("slice") and dice.random() < 0.995
                    row[name] = others[name][place % 2] if by_task else dice.choice(others[name])
                rows.append(row)
    if dice.random() < 0.3:
        dice.shuffle(rows)
    return list(rows[0]), rows


def _gathered(dice: Dice, columns: ColumnMap, gatherer: Any, rows: list[dict[str, object]]) -> Any:
    """What a gatherer makes of rows that come in one or two chunks."""
    half = len(rows) // 2 if dice.random() < 0.4 else 0
    for part in (rows[:half], rows[half:]):
        if part:
            gatherer.add({name: [row[name] for row in part] for name in rows[0]})
    runs: list[object] = [columns.sentences(), columns.rivals, list(columns.gaps())]
    for gathered in gatherer.runs():
        outcomes = Outcomes.from_columns(gathered.columns)
        attempts = [] if gathered.attempts is None else list(gathered.attempts)
        texts = [gathered.notes, gathered.remarks, str(outcomes), outcomes.binary_scores]
        rest = replace(gathered, columns=None, attempts=None)
        runs.append([rest, texts, outcomes, outcomes.unscored, attempts])
    return [*runs, getattr(gatherer, "repeated", 0)]


def _records(dice: Dice) -> object:
    names, rows = _table(dice)
    options: dict[str, Any] = {}
    if dice.random() < 0.3:
        options["pass_at"] = dice.choice([0.5, 0.25, 5, 80])
    if dice.random() < 0.25:
        options["score_range"] = ScoreRange.parse(dice.choice(["0..10", "0..1", "1..5", "0..100"]))
    if dice.random() < 0.2:
        options["first_trial"] = dice.choice([0, 1, 2])
    if "note" in names and dice.random() < 0.5:
        options["extras"] = ["note"]
    labels = ["note"] if dice.random() < 0.1 else []
    has_scores = "graded_score" in names and dice.random() < 0.3
    stated = {"score": "graded_score"} if has_scores else None
    columns = ColumnMap.resolve(names, stated, labels)
    if not columns.holds_attempts:
        return [columns.sentences(), columns.holds_counts, list(columns.gaps())]
    return _gathered(dice, columns, AttemptGatherer(columns, **options), rows)


def _count_rows(dice: Dice) -> object:
    names = dice.choice(
        [("n", "c", "missing"), ("runs", "Passes", "errors"), ("n", "c", "skipped")]
    )
    cells: list[object] = [4, "4", 5.0, 8]
    if dice.random() < 0.25:
        cells.append(dice.choice([0, -1, "four", 2.5, None]))
    rows: list[dict[str, object]] = []
    for task in dice.choice([["a", "b"], ["a", "b", "c"], ["1", "1.0", "2"], ["a", ""]]):
        for model in dice.choice([["m"], ["m"], ["m", "n"], ["m", "m"]]):
            row = {"task": task, "model": model, names[0]: dice.choice(cells)}
            row[names[1]] = dice.choice([0, 1, 3, "2", 4])
            if names[2] != "skipped" or dice.random() < 0.9:
                row[names[2]] = dice.choice([0, 0, 1])
            rows.append({**row, "slice:family": f"f{len(task)}"})
    if any(row.keys() != rows[0].keys() for row in rows):
        rows = [{name: row[name] for name in rows[0] if name != names[2]} for row in rows]
    columns = ColumnMap.resolve(list(rows[0]))
    return _gathered(dice, columns, CountGatherer(columns), rows)


def _outcomes(dice: Dice) -> object:
    tasks, is_odd = dice.choice([1, 2, 3, 5]), dice.random() < 0.3
    names = [f"t{i}" for i in range(tasks)]
    families = [f"f{i % 2}" for i in range(tasks)]
    given: dict[str, Any] = {"tasks": dice.choice([None, names])}
    given["labels"] = dice.choice([{"family": families}, {"family": families}, None])
    if is_odd:
        given["tasks"] = dice.choice([None, names, ["t0"] * tasks, names[1:]])
        given["labels"] = dice.choice([None, {"family": families[1:]}])
    kind = dice.choice(["counts", "counts", "matrix", "scores", "records"])
    if kind == "counts":
        n, c, missing = _counts_given(dice, tasks, is_odd=is_odd and dice.random() < 0.6)
        outcomes = Outcomes.from_counts(n, c, missing=missing, **given)
    elif kind == "records":
        outcomes = dice.run(tasks).outcomes
    else:
        cells: list[Any] = [1, 0, 1, 0] if kind == "matrix" else [1, 0, 0.25, 0.5, 0.999]
        cells += dice.choice([[], [np.nan], [None], [True]])
        if is_odd:
            cells += dice.choice([[-1], [0.5], [1.5], ["x"]])
        width = dice.choice([1, 2, 3, 4, 7])
        rows: Any = [[dice.choice(cells) for _ in range(width)] for _ in range(tasks)]
        if is_odd and dice.random() < 0.3:
            rows[-1] = dice.choice([rows[-1][1:], 3, []])
        elif dice.random() < 0.15:
            rows = np.array([[cell == 1 for cell in row] for row in rows])
        if kind == "matrix":
            outcomes = Outcomes.from_matrix(rows, **given)
        else:
            pass_at = dice.choice([1.0, 0.5, 0.25, float("inf") if is_odd else 0.999])
            outcomes = Outcomes.from_scores(rows, pass_at=pass_at, **given)
    return _outcome_facts(dice, outcomes)


def _counts_given(dice: Dice, tasks: int, *, is_odd: bool) -> tuple[Any, Any, Any]:
    """n, c and missing as callers give them; odd ones break a rule."""
    n: Any = dice.choice([4, 4.0, [4] * tasks, [4, 5, 4, 6, 8][:tasks]])
    c: Any = [dice.choice([0, 1, 2, 2, 4]) for _ in range(tasks)]
    c = dice.choice([c, c, [x > 1 for x in c], np.array(c, np.uint8)])
    missing = dice.choice([None, None, 1, [0] * tasks, [i % 3 for i in range(tasks)]])
    if is_odd:
        n = dice.choice([n, [2.5] * tasks, [2**63], [4] * (tasks + 1), "4", 2**60, 3, 0, [[1]]])
        c = dice.choice([c, [-1] * tasks, [], [2.0**53]])
        missing = dice.choice([None, [-1] * tasks, 0])
    return n, c, missing


def _outcome_facts(dice: Dice, outcomes: Outcomes) -> list[object]:
    """What outcomes say of themselves, with missing attempts filled in each way, and of a part."""
    facts: list[object] = [outcomes, str(outcomes), outcomes.attempts, outcomes.scores_are_verdicts]
    for way in Completion:
        facts += [outcomes.counts(way), outcomes.graded(way).values, outcomes.histogram(way)]
    facts.append([cells.tasks for cells in outcomes.histograms_between()])
    keep = np.array([dice.random() < 0.6 for _ in outcomes.tasks])
    part = outcomes.take(dice.choice([keep, np.flatnonzero(keep)[::-1], np.array([0])]))
    facts += [
        part,
        str(part),
        outcomes.unscored,
        outcomes.binary_scores,
        len(outcomes._repr_html_().split("<td")),
    ]
    if outcomes.labels or dice.random() < 0.1:
        facts.append([(value, str(group)) for value, group in outcomes.by("family")])
    return facts


def _matrix(dice: Dice, rows: int = 3) -> list[list[object]]:
    sets = [[1, 0], [True, False, None], ["pass", "fail"], [0.5, 1, 0], [1, -1], [2, 1]]
    cells = [*dice.any_of(*sets), *dice.any_of([], [], [np.nan], [pd.NA])]
    width = dice.choice([1, 2, 3])
    return [[dice.choice(cells) for _ in range(width)] for _ in range(rows)]


def _by_task(dice: Dice) -> dict[Any, list[object]]:
    rows = zip("abc", _matrix(dice), strict=True)
    return {name: row[dice.random() < 0.1 :] for name, row in rows}


def _frame(dice: Dice) -> Any:
    kind = dice.choice(["long", "long", "counts", "wide", "models", "index", "no task", "other"])
    if kind == "counts":
        return pd.DataFrame({"task": ["a", "b"], "n": [4, dice.choice([3, 0])], "c": [1, 3]})
    if kind in ("wide", "other"):
        stem = "attempt_" if kind == "wide" else dice.choice(["m", "a b "])
        wide = pd.DataFrame({f"{stem}{i}": [r[0] for r in _matrix(dice)] for i in (10, 9, 1)})
        return dice.choice([wide, wide.assign(name=["a", "b", "c"]), wide.assign(x=1, y=2)])
    tasks = ["a", "a", "b", "b", None if kind == "no task" else "c"]
    cells = pd.Series([row[0] for row in _matrix(dice, 5)], dtype=object)
    data = pd.DataFrame({"task": tasks, "success": cells})
    if kind == "models":
        return data.assign(model=["m", "m", "m", "n", "n"], suite=dice.choice(["s", None]))
    return data.set_index("task") if kind == "index" else data


def _series(dice: Dice) -> Any:
    values = [row[0] for row in _matrix(dice)]
    places = [("a", 1), ("a", 2), ("b", 1)]
    index = pd.MultiIndex.from_tuples(places, names=["task", "trial"])
    return dice.choice(
        [
            pd.Series(values, ["a", "a", "b"], dtype=object),
            pd.Series(values, dtype=object),
            pd.Series(_matrix(dice), ["a", "b", "c"]),
            pd.Series(values, index, dtype=object),
        ]
    )


def _given_data(dice: Dice) -> object:
    single: list[Callable[[Dice], Any]] = [_matrix, _by_task, _frame, _series]
    odd: list[Any] = [
        None,
        "abc",
        3,
        [],
        {},
        {"a": []},
        [[]],
        {"a": 1},
        np.float64(1),
        [[1], 2],
        [1, 0],
    ]
    masked = np.ma.masked_values([[1.0, 0.0, 9.0]] * 2, 9.0)
    sides: list[Callable[[Dice], Any]] = [_matrix, _by_task, Dice.run]
    kinds: dict[str, Callable[[], Any]] = {
        "list": lambda: [dice.choice(sides)(dice) for _ in range(2)],
        "tuple": lambda: tuple(dice.choice(sides)(dice) for _ in range(2)),
        "dict": lambda: {"x": dice.choice(sides)(dice), "y": dice.choice([_matrix, _frame])(dice)},
        "array": lambda: dice.choice([masked, np.eye(3), np.ones(3), np.full((2, 2), 0.5)]),
        "iterator": lambda: iter(_matrix(dice)),
        "odd": lambda: dice.choice(odd),
    }
    kind = dice.choice([*kinds, "single", "single", "single", "single"])
    data = kinds[kind]() if kind in kinds else dice.choice([*single, _frame])(dice)
    return [[run.name, run.agent, run.outcomes, str(run.outcomes)] for run in as_runs(data)]


def _measured_run(dice: Dice, name: str, tasks: int = 0) -> Run:
    """A run with measures, reasons of failures and answers of its attempts, some not recorded."""
    reasons = [
        "",
        "timeout: max_steps",
        "AssertionError",
        "KeyError: 'a3'",
        "KeyError: 'b7'",
        "lost",
    ]
    reasons = dice.sample(reasons, dice.randint(1, 4))
    chosen = [word for word in ("duration", "steps", "tokens", "cost") if dice.random() < 0.7]
    has_gaps, answers = dice.random() < 0.3, dice.choice([["x"], ["x", "y", ""], None])
    records: list[dict[str, object]] = []
    for task in range(tasks or dice.choice([1, 2, 3, 5])):
        for number in range(1, dice.choice([2, 3, 4]) + 1):
            record: dict[str, object] = {"task": f"t{task}", "trial": number}
            record["success"] = dice.choice([True, True, False, False, None])
            record["failure"] = "" if record["success"] else dice.choice(reasons)
            for word in chosen:
                is_gap = has_gaps and dice.random() < 0.3
                record[word] = None if is_gap else dice.choice([0.1, 0.2, 0.7, 3])
            if answers:
                record["answer"] = dice.choice(answers)
            records.append({**record, "slice:family": f"f{task % 2}"})
    columns = ColumnMap.resolve(list(records[0]))
    gatherer = AttemptGatherer(columns)
    gatherer.add({key: [record.get(key) for record in records] for key in records[0]})
    (gathered,) = gatherer.runs()
    return Run(name, "agent", Outcomes.from_columns(gathered.columns), attempts=gathered.attempts)


def _measured(dice: Dice) -> object:
    run = _measured_run(dice, "run")
    failures = summarize_failures(run)
    facts: list[object] = [run, str(run), failures, failures.sentence(), failures.lines(2)]
    facts += [run.failures_by_category, run.missing_by_reason, run.failure_messages]
    facts += [run.missing_messages, judge_error_message(run), no_answer_text(replace(run, id="r"))]
    facts.append([summarize_task_failures(run, task) for task in (*run.outcomes.tasks, "none")])
    facts.append(diagnose(run.outcomes, run.attempts))
    facts += [run.measured(word) for word in ("seconds", "steps", "tokens", "cost", "other")]
    frame = run.to_pandas().astype(object)
    facts.append([list(frame), list(map(str, frame["passed"])), list(frame["attempt"])])
    bare = replace(run, attempts=None)
    facts.append([row["passed"] for row in bare.iterate_rows()][:8])
    return facts


def _measure_rule(dice: Dice) -> object:
    tasks = dice.choice([1, 2, 4])
    run, base = (_measured_run(dice, name, tasks) for name in ("run", "base"))
    words = ["cost", "seconds", "tokens/solved", "cost / solved", "steps", "missing"]
    limits = ["0.1", "0.2", "50%", "1", "base", "base + 0.1", "base - 0.1"]
    rules = [
        f"{dice.choice(words)} {dice.choice(['<=', '<', '>='])} {dice.choice(limits)}"
        for _ in range(dice.choice([1, 2]))
    ]
    result = gate(run, rules, dice.choice([base, base, None]), details=False)
    use = deployment(base, run, run.outcomes.tasks)
    return [result, str(result), int(result.exit_code), use, deployment_line(use)]


# -- words -------------------------------------------------------------------------------------

WORDS = [
    *("pass", "fail", "failed", "correct", "wrong answer", "timeout", "max_steps", "TimeoutError"),
    *("gave up", "max turns reached", "limit", "token limit", "stopped by", "time", "ran out of"),
    *("resolved_ids", "n/a", "skipped", "judge error", "api outage", "agent crash", "docker died"),
    *("crash of the sandbox", "partial", "partially_correct", "unknown", "errors", "oom", "nok"),
    *("12", "1,000", "0,5", "1,5", "12,5", "66.7", "-3", "1e400", "nan", "inf", ".5", "1 000", "7"),
    *("is_correct", "Task ID", "taskId", "error_rate", "exit code", "pass rate", "first_success"),
    *(
        "solved_at_attempt",
        "attempts_needed",
        "params.model",
        "Passed ✅",
        "rc",
        "n_runs",
        "ValueError",
    ),
    *("syntaxerror", "memory", "refused", "white_agent_error", "judge_error", "infrastructure"),
]
ENDS = [
    *(
        "",
        "",
        "",
        "",
        ": max_steps",
        " (timeout)",
        " (72%)",
        "%",
        " %",
        " ± 2.5",
        " [40.7%; 76.6%]",
    ),
    *(" runs", "x", " - api error", " (api error)", "; wrong", "*", " (y/n)", "s", " (%)", "_ids"),
]


def _as_refusal(error: Exception) -> list[object]:
    """The type of an error, and its text where it is one of ours."""
    details = [getattr(error, name, None) for name in ("message", "row", "other", "hint")]
    return [type(error).__name__, *(str(part) for part in details if part is not None)]


def _answers(calls: dict[str, Callable[..., object]], *arguments: object) -> dict[str, object]:
    """The answer of each function, or the error that it raises."""
    answers: dict[str, object] = {}
    for name, call in calls.items():
        try:
            answers[name] = to_data(call(*arguments))
        except (PasshatError, ValueError, TypeError) as error:
            answers[name] = _as_refusal(error)
    return {name: answer for name, answer in answers.items() if answer not in (False, "", None)}


WORD_FUNCTIONS: dict[str, Callable[..., object]] = {
    "number": parse_number,
    "float": number_from,
    "whole": whole_number_from,
    "reward": lambda word: RewardWords()[word],
    "odd": is_odd_ending,
    "reason": is_failure_reason,
    "ending": is_agent_ending,
    "category": failure_category,
    "missing": missing_reason,
    "own": source_words,
    "column": fold_name,
    "percent": is_percent,
    "negative": is_negative,
    "first": is_first_success,
}


def _words(dice: Dice) -> object:
    words = [
        dice.choice(["", "", "", "not ", "✅ ", "is_"]) + dice.choice(WORDS) for _ in range(10)
    ]
    words = [word + dice.choice(ENDS) for word in words]
    answers: dict[str, object] = {word: _answers(WORD_FUNCTIONS, word) for word in words}
    answers["endings"] = [are_endings(words[:3]), has_failure_reasons(words[:2])]
    return answers


def _options(dice: Dice) -> object:
    signs, words = [">=", "<=", "=>", "=", ">", "≥", "is"], [*METRICS, "pas^4", "pass4", "gpass@4"]
    words += ["acuracy", "cost", "coste", "cost/solved", "cost/task", "missing", "each pass^2"]
    words += [
        "passhat4",
        "pass^0",
        "pass^3:0.5",
        "gpass@3:2",
        "best@0",
        "pass at 3",
        "g-pass@8",
        "",
    ]
    limits = [
        "0.5",
        "50%",
        "1.2",
        "-0.1",
        "base",
        "base-3%",
        "base + 0.02",
        "bas - 1",
        "x",
        "1e999",
    ]
    rule = f"{dice.choice(words)} {dice.choice(signs)} {dice.choice(limits)}"
    options: dict[str, Any] = {}
    given: dict[str, list[Any]] = {
        "missing": ["fail", "bound", "x"],
        "level": [0.9, 1, 0, 1.5, True, "0.9", 95],
        "about": ["new-tasks", "re-runs", "these_tasks", "this run", "x", 3],
        "drop_short": [True, "no"],
        "cluster": ["family", "", 3],
        "alow": [True],
        "allow": [True, 1],
    }
    for name, values in given.items():
        if dice.random() < 0.15:
            options[name] = dice.choice(values)
    ks = [dice.any_of((2, 3), (1, 1), (0, 2), (2.5, 3), ("2", 3)) for _ in range(2)]
    texts = dice.choice(["1..5", "5..1", "0..", "a..b", "0..1", "-1..1", "0..inf"])
    calls: dict[str, Callable[..., object]] = {
        "rule": lambda: [repr(parse_rule(rule)), str(parse_rule(rule))],
        "metric": lambda: [str(parse_metric(word)) for word in dice.sample(words, 2)],
        "terms": lambda: Terms.from_options(options),
        "some terms": lambda: Terms.from_options(options, takes=("missing", "level", "allow")),
        "for one task": lambda: Terms.from_options(options).for_tasks(dice.choice([1, 2])),
        "range": lambda: ScoreRange.parse(texts),
        "threshold": lambda: check_threshold(dice.choice([0, 1, 5, 6, 0.5]), ScoreRange(0, 5)),
        "counts": lambda: (
            [pass_at_k(5, c, k) for c, k in ks] + [pass_hat_k(4, c, k) for c, k in ks]
        ),
        "share": lambda: [as_share(dice.any_of(0.5, "2/3", "1.5", 0, 1, "x", 0.3))],
    }
    return [rule, to_data(options), _answers(calls)]


# -- tests and sequences -----------------------------------------------------------------------


def _tests(dice: Dice) -> object:
    tasks, n, m = dice.choice([1, 2, 3, 6, 9]), dice.randint(1, 6), dice.randint(1, 6)
    c_a, c_b = (np.array([dice.randint(0, n) for _ in range(tasks)]) for _ in "ab")
    c_m = np.array([dice.randint(0, m) for _ in range(tasks)])
    sizes = np.full(tasks, n), np.full(tasks, m)
    side = dice.any_of("two-sided", "greater", "less")
    d = (c_b - c_a) / dice.choice([n, 7, np.pi])
    p_values = np.array([round(dice.random() ** 3, 3) for _ in range(tasks)])
    columns = np.stack([d, -d / 2, (c_a - n / 2) / n], axis=1)
    a, b = Outcomes.from_counts(n, c_a), Outcomes.from_counts(n, c_b)
    longer = pair(a, Outcomes.from_counts(m, c_m))
    equal, one = pair(a, b), PassHat(1)
    policy = dice.choice(list(MissingPolicy))
    calls: dict[str, Callable[..., object]] = {
        "signs": lambda: sign_test(int((d > 0).sum()), int((d < 0).sum()), side),
        "flips": lambda: sign_flip_test(d, side),
        "holm": lambda: holm(p_values),
        "max t": lambda: max_t(columns, side),
        "drop": lambda: drop_p_value(n, c_a, c_b),
        "normal": lambda: drop_p_value(n, c_a, c_b, most_steps=0),
        "split": lambda: split_drop_p_value(n, c_a, c_b),
        "unequal": lambda: unequal_drop_p_value(sizes[0], c_a, sizes[1], c_m),
        "longer": lambda: longer_drop_p_value(longer, one, policy),
        "deviation": lambda: lift_deviation(equal, one, policy),
        "rise": lambda: [
            pair_rise_p_value(equal, one, policy),
            pair_drop_p_value(equal, one, policy),
        ],
        "fisher": lambda: fisher_tests(c_a, sizes[0], c_m, sizes[1]),
        "changed": lambda: find_changed_tasks(longer, policy, 0.5, side),
        "bound": lambda: expected_bound(tasks, float(d.mean()), float(d.var()), 0.05),
        "tail": lambda: simultaneous_tail(columns, 0.9, side),
    }
    return _answers(calls)


def _ranking(dice: Dice) -> object:
    tasks, agents = dice.choice([2, 5, 9]), dice.choice([2, 3, 4])
    n, rates = dice.choice([1, 2, 4]), [dice.random() for _ in range(agents)]
    gaps = [dice.choice([0, 0, 0, 1]) if dice.random() < 0.2 else 0 for _ in range(agents)]
    labels = {"family": [f"f{i % 3}" for i in range(tasks)]}
    sides = [
        Outcomes.from_counts(
            n,
            [sum(dice.random() < rate for _ in range(n)) for _ in range(tasks)],
            missing=[gap] + [0] * (tasks - 1),
            labels=labels,
        )
        for rate, gap in zip(rates, gaps, strict=True)
    ]
    metric = parse_metric(dice.choice(["pass^1", "pass^2", "pass@2", "rate", "mean"]))
    options = dice.options("missing", "level", "about", "cluster")
    ranking = rank_agents(sides, metric, Terms.from_options({"about": "these tasks", **options}))
    values = np.stack([side.c / n for side in sides], axis=1)
    prices = np.array([[dice.choice([0.1, 0.2, 0.5]) for _ in sides] for _ in range(tasks)])
    return [ranking, ranking.order, find_groups(ranking), find_front(values, prices)]


def _sequence(dice: Dice) -> object:
    total, count = dice.choice([None, None, 5, 12, 30]), dice.randint(1, 30)
    thresholds = dice.sample([0, 0.25, 0.5, 0.9, 1], 2)
    binary, rate = dice.random() < 0.5, dice.choice([0, 0.3, 0.8, 1])
    side = dice.any_of("two-sided", "two-sided", "lower", "upper")
    level = dice.choice([0.8, 0.95])
    sequence = ConfidenceSequence(
        level, sides=side, total=total, thresholds=thresholds, points=20, binary=binary
    )
    looks: list[object] = [str(sequence.bounds)]
    for number in range(count):
        passed = dice.random() < rate
        value = float(passed) if binary else dice.choice([0, 0.25, 0.5, 1, float(passed)])
        if dice.random() < 0.01:
            value = dice.choice([1.5, -0.5, 0.5])
        try:
            if total is None and number % 5 == 4:
                bounds = sequence.update_round([value, 1 - value])
            else:
                bounds = sequence.update(value)
        except PasshatError as error:
            looks.append(_as_refusal(error))
            break
        decisions = [sequence.decide(x, strict=x > 0.3)[0] for x in thresholds]
        looks.append(
            [round(bounds.low, 4), round(bounds.high, 4), bounds.crossed, "".join(decisions)]
        )
    return [*looks[:1], looks[-6:], consumption_order("abcd", dice.any_of(1, "x"))]


def _agreement(dice: Dice) -> object:
    tasks = [f"t{i}" for i in range(dice.randint(1, 9))]
    units = [[dice.randint(0, 1) for _ in range(dice.randint(0, 3))] for _ in tasks]
    votes = [
        (task, dice.randint(0, count), count)
        for task in tasks
        for count in [dice.choice([1, 2, 3, 3])] * dice.choice([1, 2, 2, 3])
    ]
    passed = [(task, i) for task in tasks for i in range(dice.randint(0, 3))]
    failed = [(task, i + 5) for task in tasks for i in range(dice.randint(0, 2))]
    size, failures = dice.randint(1, 8), dice.choice([None, None, 0, 1, 3, 9])
    variants = ["the same answer", "shorter", "longer"]
    checked = [
        CheckedAttempt(
            task,
            dice.random() < 0.5,
            {name: dice.random() < 0.6 for name in variants if dice.random() < 0.8},
            dice.choice([None, True, False]),
        )
        for task in tasks
    ]
    anchors = [Anchor(task, *(dice.random() < 0.5 for _ in range(3))) for task in tasks]
    rows = [(task, dice.random() < 0.5, dice.choice([True, False, None])) for task in tasks * 2]
    labels = LabelCounts.from_rows(
        rows, draws=("sample 3 of 9, seed 1",), people=dice.choice([1, 2])
    )
    other = LabelCounts.from_rows(rows[1:3])
    joined = LabelCounts.join([labels, other])
    texts = ["whole tasks 3 of 9, seed 1", "sample 1 of 2, seed -3", "drawn by hand", *labels.draws]
    calls: dict[str, Callable[..., object]] = {
        "alpha": lambda: krippendorff_alpha(units),
        "kappa": lambda: cohen_kappa([(u[0], u[1]) for u in units if len(u) > 1]),
        "noise": lambda: share_noise(votes, dice.choice([0.9, 0.95])),
        "voted": lambda: count_voted_tasks(votes),
        "draw": lambda: draw_attempts(passed, failed, size, 7, failures),
        "whole": lambda: draw_whole_tasks([*passed, *failed], size, 7),
        "check": lambda: summarize_check("run", "judge", checked, skipped=1),
        "anchors": lambda: AnchorCheck.of(anchors),
        "joined": lambda: [joined, joined.tasks, joined.looked_at],
        "taken": lambda: labels.take(np.arange(len(labels.tasks)) > 0),
        "kinds": lambda: [DrawKind.of(text) for text in texts],
    }
    return _answers(calls)


def _toy(dice: Dice) -> object:
    name = dice.choice(["gaussian", "exponential", "power"])
    values = dice.sample([1.2, 2, 3.5] if name == "power" else [0.5, 1, 4, 12], 2)
    ks = sorted(dice.sample([1, 2, 4, 8, 32, 256], 4))
    sets = [family(name, value) for value in values]
    if dice.random() < 0.3:
        sets = [tasks.sample(30, np.random.default_rng(3)) for tasks in sets]
    points = sweep(((tasks.spread, tasks) for tasks in sets), ks)
    t = np.array([*dice.choice([[0.2], [0.0, 0.3]]), 0.5, 0.8, 1.2][: dice.choice([3, 4, 5])])
    curves = np.array([[dice.choice([0.2, 0.4, 0.5, 0.6]) for _ in t] for _ in range(4)])
    calls: dict[str, Callable[..., object]] = {
        "expected": lambda: expected_pass_at_k(sets[0], ks, 1.5),
        "refused": lambda: expected_pass_at_k(sets[0], 0, 1.5),
        "points": lambda: points,
        "law": lambda: [str(fit_law(points, name)), fit_law(points, name)],
        "line": lambda: fit_log_logit([p for p in points if p.tasks == sets[0].name]),
        "peaks": lambda: peaks(t, curves),
        "family": lambda: family(dice.choice(["gauss", "power"]), dice.choice([0, -1, 2])).spread,
    }
    return _answers(calls)


# -- gates with fresh attempts, and their power ------------------------------------------------


def _counts(dice: Dice, rates: list[float], n: int, names: list[str]) -> Outcomes:
    passes = [sum(dice.random() < rate for _ in range(n)) for rate in rates]
    missing = [dice.choice([0, 0, 0, 0, 1]) for _ in names] if dice.random() < 0.15 else None
    return Outcomes.from_counts(n, passes, names, missing=missing)


def _confirmed(dice: Dice) -> object:
    tasks, n = dice.choice([2, 6, 12, 30]), dice.choice([1, 2, 4, 8])
    names = [f"t{i}" for i in range(tasks)]
    rates = [dice.choice([0.1, 0.5, 0.9, 1, 1]) for _ in names]
    fall = dice.choice([0, 0.2, 0.5])
    lower = [0.0 if dice.random() < 0.1 else max(rate - fall, 0) for rate in rates]
    base, new = _counts(dice, rates, n, names), _counts(dice, lower, n, names)
    terms = Terms(missing=dice.any_of("bound", "fail"), level=dice.choice([0.9, 0.95]))
    options = GateOptions(terms, metric=dice.choice(["pass^1", "pass^1", "pass^2", "rate"]))
    suspects = find_suspects(Run("new", "x", new), Run("old", "x", base), options)
    metric, alpha = parse_metric(options.metric), 1 - terms.level
    more = count_mean_attempts(suspects.pairing, metric, terms.missing, alpha)
    facts: list[object] = [suspects.tasks, suspects.alpha, suspects.attempts_to_confirm(), more]
    if not suspects.tasks:
        return facts
    size = dice.choice([4, 8, suspects.attempts_to_confirm()])
    chosen = [names.index(name) for name in suspects.names]
    cost = dice.choice([None, 0.5])
    fresh, fresh_base = (
        FreshRun(
            side,
            side,
            _counts(dice, [p[i] for i in chosen], size, [names[i] for i in chosen]),
            cost,
        )
        for side, p in (("new", lower), ("base", dice.choice([rates, rates, lower])))
    )
    everywhere = FreshRun("all", "new", _counts(dice, lower, more, names), 1.5) if more else None
    is_kept = dice.random() < 0.3
    kept = "its agent is gone." if is_kept else ""
    confirmation = confirm_suspects(
        suspects, fresh, None if is_kept else fresh_base, kept, everywhere
    )
    result = judge(new, (), base, replace(options, confirmation=confirmation))
    shows = confirmation.shows_drop(suspects.pairing, metric, terms.missing, alpha)
    power = None
    if tasks == 2 and dice.random() < 0.4:
        attempts = np.full(tasks, n)
        power = simulate_curve(base, attempts, metric, terms.level, confirmation)
    return [*facts, confirmation, confirmation.sentences, shows, result, str(result), power]


def _power(dice: Dice) -> object:
    tasks, n = dice.choice([2, 4, 7]), dice.choice([1, 2, 4, 8])
    names = [f"t{i}" for i in range(tasks)]
    rates = [dice.choice([0.05, 0.5, 0.9, 1]) for _ in names]
    base = _counts(dice, rates, n, names)
    metric = parse_metric(dice.choice(["pass^1", "pass^2", "pass@2", "rate", "mean"]))
    missing = np.array([dice.choice([0, 0, 1]) for _ in names]) if dice.random() < 0.4 else None
    policy, level = dice.choice(list(MissingPolicy)), dice.choice([0.8, 0.95])
    attempts = np.full(tasks, dice.choice([n, n, n + 1]))
    curve = simulate_curve(base, attempts, metric, level, missing=missing, policy=policy)
    limit, wants_more = dice.choice([0.05, 0.3, 0.6, 0.95]), dice.random() < 0.7
    about = dice.choice([Population.NEW_TASKS, Population.THESE_TASKS])

    def bound(sides: Any) -> tuple[float, float]:
        middle = float((sides[-1].c / sides[-1].n).mean())
        return max(middle - 0.15, 0), min(middle + 0.15, 1)

    calls: dict[str, Callable[..., object]] = {
        "curve": lambda: [curve, curve.sentence, [str(power) for power in curve.powers]],
        "rule": lambda: simulate_rule(
            "r",
            [base],
            metric,
            limit,
            Reach(0.1, 0.2),
            about,
            dice.choice([bound, None]),
            wants_more=wants_more,
        ),
        "lift": lambda: simulate_rule("r", [base, base], metric, 0.05, Reach(0.1, 0.2), about),
        "tasks": lambda: foresee_tasks(
            [base], metric, Reach(0.2, 0.2), lambda v, r: v - r.below > limit
        ),
        "attempts": lambda: foresee_attempts(
            [base], metric, Reach(0.2, 0.2), lambda v, r: v - r.below > limit
        ),
    }
    return _answers(calls)


def _unpaired(dice: Dice) -> object:
    sizes = dice.choice([(2, 3), (6, 4), (12, 15), (1, 5)])
    a, b = (dice.run(size, name) for size, name in zip(sizes, "ab", strict=True))
    if dice.random() < 0.85:
        names = tuple(f"other {task}" for task in b.outcomes.tasks)
        b = replace(b, outcomes=replace(b.outcomes, tasks=names))
    options = dice.options("missing", "level", "cluster", "drop_short", "allow")
    if dice.random() < 0.3:
        options["alternative"] = dice.choice(["greater", "less"])
    result = compare(a, b, dice.metrics(2), unpaired=True, **options)
    return [result, str(result), [lift.evidence.undecided for lift in result.results]]


def _search(dice: Dice) -> object:
    count, tasks = dice.choice([1, 2, 5, 12]), dice.choice([1, 3, 8])
    change = dice.randint(0, count)  # the first candidate without it; count is no change
    rates = np.array([dice.choice([0.3, 0.8, 1]) for _ in range(tasks)])
    fall = np.array([dice.choice([0, 0.3, 1]) for _ in range(tasks)])
    contains = np.zeros((count, count + 1), np.bool_)
    contains[:, :count] = in_order(count)
    if count > 3 and dice.random() < 0.3:
        contains[0, 2] = False  # a branch
    n, c = np.zeros((2, count + 1, tasks), np.int64)

    def attempt(revision: int, task: int, attempts: int) -> list[bool]:
        is_lower = change <= revision < count
        rate = max(rates[task] - fall[task] * is_lower, 0)
        return [dice.random() < rate for _ in range(attempts)]

    for end in (count - 1, count):
        n[end], c[end] = 4, [sum(attempt(end, task, 4)) for task in range(tasks)]
    search = Search(contains, [count, *range(count - 1)], n, c, np.ones(count + 1, np.bool_))
    steps: list[object] = [search.foresee()]
    for _ in range(12):
        step = search.next()
        steps.append(step)
        if isinstance(step, Found):
            break
        if dice.random() < 0.12 and 0 < step.revisions[0] < count - 1:
            search.skip(step.revisions[0])
            continue
        verdicts: Any = [
            [attempt(revision, task, step.attempts) for task in step.tasks]
            for revision in step.revisions
        ]
        if step.confirms:
            verdicts[0][0][0] = dice.choice([None, True])
            search.confirm(step, *verdicts)
        else:
            size = np.full(len(step.tasks), step.attempts)
            passed = np.array([sum(one) for one in verdicts[0]])
            search.add(step.revisions[0], step.tasks, size, passed)
    capitals = [evidence.capital for evidence in search.evidence.values()]
    return [*steps, search.settle(), search.posterior.smallest_set(0.9), capitals]


def _gains(dice: Dice) -> object:
    size = dice.randint(1, 6)
    before, after = ([dice.choice([0, 0.2, 0.5, 0.9, 1]) for _ in range(size)] for _ in "ab")
    gain = telling(np.array(before), np.array(after))
    wanted = dice.choice([0.5, 2, 8, 40])
    return [gain, choose_tasks(gain, wanted), pair_capital(dice.randint(0, 9), dice.randint(0, 3))]


def _strata(dice: Dice) -> object:
    tests = []
    for _ in range(dice.randint(1, 4)):
        strata = []
        for _ in range(dice.randint(1, 3)):
            attempts = dice.randint(1, 7)
            failed, with_event = dice.randint(0, attempts), dice.randint(0, attempts)
            empty = Stratum(attempts, failed, with_event, 0)
            strata.append(replace(empty, failed_with_event=dice.randint(empty.low, empty.high)))
        tests.append(Stratified(tuple(strata)))
    smallest = [test.smallest_p_value for test in tests]
    facts: list[object] = [correct_discrete(tests), choose_testable(smallest, 0.3), smallest]
    for test in tests:
        first = test.strata[0]
        facts.append([test.p_value, test.odds_ratio, test.interval(0.9), test.chance_of(0.3)])
        facts.append([first, first.is_informative, first.without_event()])
    return facts


def _traces(dice: Dice) -> object:
    values: list[object] = [0, 1, "x", "a long text that says more than forty signs do", [1, 2]]

    def step() -> Step:
        arguments = {"q": dice.choice(values)} if dice.random() < 0.6 else {}
        return Step(dice.choice(["find", "get", "buy"]), arguments, dice.random() < 0.15)

    traces = []
    for task in "ab":
        for number in range(dice.choice([2, 5, 9])):
            calls = tuple(step() for _ in range(dice.randint(0, 4)))
            passed = dice.random() < (0.2 if any(call.name == "buy" for call in calls) else 0.8)
            cut = dice.choice([None, False, False, True])
            traces.append(Trace(task, number, passed, calls, dice.randint(0, 3), cut))
    events = {
        str(event): [sorted(places.happened), len(places.scope)]
        for event, places in list_events(traces).items()
    }
    of_a = [trace for trace in traces if trace.task == "a"]
    step_text = [[str(call), call.label] for call in of_a[0].calls]
    closest, decisive = find_closest_pair(of_a), find_decisive_step(of_a, 0.3)
    return [events, closest, decisive, step_text, list(map(str, explain_failures(traces)))]


@cache
def _allocation() -> Allocation:
    plan = allocate(Outcomes.from_counts(4, [4, 1, 2, 0, 3]), budget=30)
    assert plan.allocation is not None
    return plan.allocation


def _written_plan(dice: Dice) -> object:
    """What is read back of a plan's JSON, which people edit."""
    data = _allocation().to_dict()
    cells: list[object] = [None, 0, True, "x", {"a": 0}, {"a": 10**6}, 1.5, {}, 10**6 + 1, 7]
    keys = ["level", "half_width", "others", "earlier", "attempts", "uniform_total_attempts"]
    for key in dice.sample(keys, 2):
        if dice.random() < 0.6:
            data[key] = dice.choice(cells)
    read = Allocation.from_dict(data)
    return [read, read.sentence, list(read.remarks())]


def _joined(dice: Dice) -> object:
    """Attempts of two sources in one run, of which one may lack a column."""
    parts = [_measured_run(dice, name, 2).attempts for name in "ab"]
    attempts = [part for part in parts if part is not None]
    if dice.random() < 0.4:
        attempts[0] = replace(attempts[0], detail=None, scores=attempts[0].verdicts / 2 + 0.5)
    sizes = [len(part) for part in attempts]
    sorting = np.arange(sum(sizes))
    starts = np.array([0, sizes[0], sum(sizes)])
    joined = concatenate(attempts, ("t0", "t1"), starts, sorting)
    return [list(joined), joined.reasons(Verdict.FAILED), joined.messages(Verdict.FAILED)]


def _rounds(dice: Dice) -> object:
    """A run watched as its tasks, or the attempts at all of them, come in."""
    tasks, attempts = dice.choice([2, 5, 12]), dice.choice([1, 2, 4, 8])
    names = [f"t{i}" for i in range(tasks)]
    rate, gap = dice.choice([0.05, 0.5, 0.95, 1]), dice.choice([0, 0, 0.1])
    metric = dice.choice(["pass^1", "pass^2", "pass@2", "rate", "mean"])
    limit = dice.choice(["0.5", "0.9", "0.2", "base", "base - 0.1", "base - 0.3"])
    rules = [f"{metric} {dice.choice(['>=', '>', '<'])} {limit}"]
    rules += dice.choice([[], [], ["missing <= 10%"], ["missing < 0.5"]])

    def verdict() -> object:
        return None if dice.random() < gap else dice.random() < rate

    records = [
        {"task": name, "trial": number, "success": verdict()}
        for name in names
        for number in range(1, attempts + 1)
    ]
    about = dice.choice(["new tasks", "these tasks", "these tasks", "this run"])
    about_terms = Terms(
        population=Population.of(about),
        missing=dice.choice(list(MissingPolicy)),
        level=dice.choice([0.8, 0.95]),
    )
    has_base = "base" in limit or dice.random() < 0.2
    base = dice.run(tasks, "base", scored=False).outcomes if has_base else None
    watcher = Watcher(
        rules,
        tasks=dice.any_of(names, names, tasks),
        attempts=attempts,
        options=GateOptions(about_terms),
        against=base,
        seed=dice.any_of(0, "x"),
    )
    by_attempt = dice.random() < 0.6
    looks: list[object] = []
    for share in (0.3, 0.6, 1):
        most = attempts if not by_attempt else max(1, round(share * attempts))
        upto = tasks if by_attempt else max(1, round(share * tasks))
        here = [
            record
            for record in records
            if record["trial"] <= most and record["task"] in names[:upto]  # type: ignore[operator]
        ]
        if dice.random() < 0.2 and len(here) > 2:
            here.pop(1)  # an attempt that is still on its way
        look = watcher.look(Run("run", "a", Outcomes.from_records(here)))
        rules_text = [
            [str(r.verdict), r.value, r.low, r.high, r.advice] for r in look.result.results
        ]
        looks.append(
            [rules_text, look.complete, look.settled, look.used, look.waiting, look.rounds]
        )
    return looks


def _label_plan(dice: Dice) -> object:
    """Labels with skipped attempts, and what more of them would give."""
    tasks, n = dice.choice([15, 30, 45]), dice.choice([2, 4, 6])
    counts = [
        sum(dice.random() < rate for _ in range(n)) for rate in [0.2, 0.7, 0.95] * (tasks // 3)
    ]
    labels = {"family": [f"f{i % 5}" for i in range(tasks)], "one": ["x"] * tasks}
    outcomes = Outcomes.from_counts(n, counts, labels=labels)
    share, errors = dice.choice([0.4, 0.6, 1]), dice.choice([0.02, 0.1])
    skips, single = dice.choice([0, 0, 0.05]), dice.random() < 0.4
    rows = [
        (
            str(i),
            place < c,
            None if dice.random() < skips else (place < c) ^ (dice.random() < errors),
        )
        for i, c in enumerate(counts)
        if single or dice.random() < share
        for place in range(n)
        if not single or dice.random() < share
    ]
    draws = dice.choice([(), ("sample 9 of 99, seed 1",), ("whole tasks 9 of 20, seed 2",)])
    found = LabelCounts.from_rows(rows, draws=draws)
    kind = dice.choice(["errors", "errors", "whole tasks"])
    metric, width = dice.choice(["pass^1", "pass^2", "pass@2"]), dice.choice([None, 0.02, 0.1, 0.3])
    options = dice.options("level", "cluster")
    terms = Terms.from_options(options)
    calls: dict[str, Callable[..., object]] = {
        "error": lambda: judge_error(outcomes, found, terms.level),
        "value": lambda: correct(outcomes, found, metric, correction=kind, **options),
        "plan": lambda: plan_labels(outcomes, found, metric, terms, width, kind),
    }
    return _answers(calls)


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
    "records": (_records, 110),
    "count rows": (_count_rows, 45),
    "outcomes": (_outcomes, 110),
    "given data": (_given_data, 100),
    "measured": (_measured, 20),
    "measure rule": (_measure_rule, 60),
    "words": (_words, 40),
    "options": (_options, 60),
    "tests": (_tests, 60),
    "ranking": (_ranking, 30),
    "sequence": (_sequence, 40),
    "agreement": (_agreement, 30),
    "toy": (_toy, 20),
    "confirmed": (_confirmed, 24),
    "power": (_power, 24),
    "unpaired": (_unpaired, 20),
    "search": (_search, 30),
    "gains": (_gains, 30),
    "strata": (_strata, 30),
    "traces": (_traces, 16),
    "written plan": (_written_plan, 40),
    "joined": (_joined, 12),
    "rounds": (_rounds, 60),
    "label plan": (_label_plan, 14),
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
        except RowError as error:
            result = _as_refusal(error)
        results[str(number)] = result
    check_results(FOLDER / f"{kind.replace(' ', '_')}.json", results)
