"""The gate without a rule: regression, none beyond the margin, or unsettled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from passhat import Outcomes, Run, gate
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.stats.estimate import estimate
from passhat.stats.gate import GateVerdict

BASE = Outcomes.from_counts(8, [8] * 20 + [4] * 10)
SAME = Outcomes.from_counts(8, [8] * 20 + [5] * 5 + [3] * 5)
WORSE = Outcomes.from_counts(8, [6] * 20 + [2] * 10)
BROKEN = Outcomes.from_counts(8, [8] * 19 + [0] + [5] * 10)


def test_a_no_op_is_green_and_has_a_margin() -> None:
    result = gate(SAME, against=BASE)
    (only,) = result.results
    assert (result.exit_code, only.verdict, only.about) == (0, GateVerdict.SHOWN, "these tasks")
    assert only.outcome == "no regression"
    assert only.margin is not None
    assert 0 < only.margin < 0.25


@pytest.mark.parametrize(
    ("base", "run"),
    [([8, 7, 5, 8, 2, 6] * 5, [8, 7, 5, 8, 2, 6] * 5), ([7] * 30, [8] * 30), ([8] * 30, [7] * 30)],
)
def test_the_margin_is_what_is_called_in_nine_of_ten_cases(base: list[int], run: list[int]) -> None:
    """1 + 1.2816 / 1.96 times the longer arm of the interval: z at 90% beside z at 97.5%."""
    (result,) = gate(Outcomes.from_counts(8, run), (), Outcomes.from_counts(8, base)).results
    assert result.low is not None
    assert result.high is not None
    arms = result.high - result.value, result.value - result.low
    seen = 1 + norm.ppf(0.9) / norm.ppf(0.975)
    assert result.margin == pytest.approx(seen * max(arms), rel=1e-3)


def test_a_mean_drop_is_red() -> None:
    result = gate(WORSE, against=BASE)
    assert (result.exit_code, result.results[0].outcome) == (1, "regression")
    assert result.headline.startswith("Regression")


def test_one_broken_task_is_red_and_named_though_the_mean_is_level() -> None:
    (only,) = gate(BROKEN, against=BASE).results
    assert only.high is not None
    assert only.high > 0
    assert [change.task for change in only.broken] == ["19"]
    assert "1 task broke: 19 (8 of 8 passed, now 0 of 8)." in only.evidence
    assert only.verdict is GateVerdict.REFUTED
    assert only.to_dict()["outcome"] == "regression"


@pytest.mark.parametrize(("unsettled", "code"), [(None, 0), ("pass", 0), ("warn", 0), ("fail", 3)])
def test_unsettled_ends_as_asked_and_says_what_would_settle_it(unsettled: Any, code: int) -> None:
    result = gate(SAME, against=BASE, margin=0.03, unsettled=unsettled)
    (only,) = result.results
    assert only.outcome == "unsettled"
    assert result.exit_code == code
    assert result.warning is (unsettled in (None, "warn"))
    assert only.advice is not None
    assert only.advice.kind == "attempts"
    assert only.advice.prospect is not None
    assert only.advice.prospect.total > 8


def test_rules_end_with_3_unless_unsettled_is_given() -> None:
    assert gate(SAME, "rate >= base", BASE).exit_code == 3
    assert gate(SAME, "rate >= base", BASE, unsettled="warn").exit_code == 0


def test_what_would_change_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="needs a rule, or a baseline"):
        gate(BASE)
    with pytest.raises(InvalidValue, match="belongs to the gate without a rule"):
        gate(SAME, "rate >= base", BASE, margin=0.05)
    with pytest.raises(InvalidValue, match="is about these tasks"):
        gate(SAME, against=BASE, about="new tasks")
    with pytest.raises(InvalidValue, match="clusters matter for new tasks only"):
        gate(SAME, "rate >= base", BASE, cluster="repo")
    with pytest.raises(InvalidValue, match="changes nothing"):
        gate(Outcomes.from_counts(1, [1], missing=1), "missing <= 2%", about="new tasks")
    with pytest.raises(InvalidValue, match="a share between 0 and 1"):
        gate(SAME, against=BASE, margin=5)


def test_the_same_name_twice_is_told_apart() -> None:
    result = gate(Run("bot", "bot", SAME), against=Run("bot", "bot", BASE))
    assert (result.name, result.base) == ("bot (new)", "bot (baseline)")


def test_a_baseline_rule_is_about_these_tasks_and_an_absolute_one_about_new_tasks() -> None:
    result = gate(SAME, ["rate >= 0.1", "rate >= base - 0.2"], BASE)
    assert [rule.about for rule in result.results] == ["new tasks", "these tasks"]
    both = gate(SAME, ["rate >= 0.1", "rate >= base - 0.2"], BASE, about="these-tasks")
    assert [rule.about for rule in both.results] == ["these tasks", "these tasks"]
    new = gate(SAME, "rate >= base - 0.2", BASE, about="new tasks")
    assert new.results[0].about == "new tasks"


def test_an_unfinished_run_reads_as_in_a_report_and_should_be_finished_first() -> None:
    """0.1.0 read .086 where the report said .317, and advised 6,183 more tasks."""
    outcomes = Outcomes.from_counts([8] * 10 + [3] * 20, [3] * 10 + [1] * 20)
    run = Run("half", "half", outcomes, Protocol(attempts=8))
    result = gate(run, "pass^1 >= 0.3")
    (only,) = result.results
    assert only.value == pytest.approx(estimate(outcomes, "pass^1").value)
    assert only.low is not None
    assert only.low < only.value
    assert result.exit_code == 4
    assert only.advice is not None
    assert only.advice.kind == "finish"
    assert "100 planned attempts are absent" in only.advice.text


def test_all_or_nothing_repositories_show_nothing() -> None:
    """10 repositories x 10 tasks: 0.1.0 showed ``>= 0.5`` in 38% of runs with a truth of .5."""
    rng = np.random.default_rng(1)
    labels = {"repo": [f"r{i // 10}" for i in range(100)]}
    shown = {True: 0, False: 0}
    for _ in range(60):
        passes = np.repeat(rng.random(10) < 0.5, 10).astype(int) * 4
        outcomes = Outcomes.from_counts(4, passes, labels=labels)
        for clustered in shown:
            cluster = "repo" if clustered else None
            result = gate(outcomes, "pass^1 >= 0.5", cluster=cluster)
            shown[clustered] += result.verdict is GateVerdict.SHOWN
    assert shown[False] > 10
    assert shown[True] <= 0.05 * 60 + 3
    warned = gate(outcomes, "pass^1 >= 0.5", cluster="repo").results[0].notes
    assert any("only 10 clusters of repo" in note for note in warned)


def test_no_false_alarms_without_a_change() -> None:
    """Short form of benchmarks/gate.py: an unchanged agent is red in at most 5% of builds."""
    rng = np.random.default_rng(2)
    rates = rng.beta(0.8, 0.6, 30)
    red = 0
    for _ in range(40):
        new, base = (Outcomes.from_counts(8, rng.binomial(8, rates)) for _ in range(2))
        red += gate(new, against=base).exit_code == 1
    assert red <= 40 * 0.05 + 3


def test_missing_attempts_do_not_make_a_regression() -> None:
    lost = replace(SAME, n=SAME.n - 2, c=np.minimum(SAME.c, SAME.n - 2), m=np.full(30, 2))
    assert gate(lost, against=BASE).exit_code != 1


def test_a_shown_rise_of_one_task_is_settled() -> None:
    never, always = (Outcomes.from_counts(8, [c], ["t"]) for c in (0, 8))
    result = gate(always, against=never)
    assert result.exit_code == 0
    assert not result.warning
    assert result.headline.startswith("Improvement")


def test_tasks_that_are_too_short_are_named_where_they_are_left_out() -> None:
    base = Outcomes.from_counts([8] * 9 + [1], [8] * 9 + [1])
    new = Outcomes.from_counts(8, [8] * 8 + [7, 8])
    result = gate(new, against=base, metric="pass^4", drop_short=True, allow=True, attempts=8)
    assert any("1 of 10 tasks left out" in note for note in result.results[0].notes)
