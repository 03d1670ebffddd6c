"""``each pass^1 >= 0.8``: every task for itself, by exact binomial bounds and Holm."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

from passhat import Outcomes, Run, gate
from passhat._serialize import as_json
from passhat.errors import InvalidValue, RuleError
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import GateVerdict, parse_rule
from passhat.stats.gate.each_task import rate_at

SHOWN, REFUTED, OPEN = GateVerdict.SHOWN, GateVerdict.REFUTED, GateVerdict.NOT_SETTLED


def test_eight_of_eight_show_only_069() -> None:
    result = gate(Outcomes.from_counts(8, [8] * 5), "each pass^1 >= 0.8")
    (only,) = result.results
    assert result.exit_code == 3
    assert only.low == pytest.approx(0.05 ** (1 / 8))
    assert only.advice is not None
    assert "at least 14 attempts" in only.advice.text  # .05 ** (1 / 14) = .807
    assert "8 of 8 show only 0.688" in only.advice.text
    assert only.evidence.startswith("of 5 tasks: 5 undecided (")
    assert gate(Outcomes.from_counts(14, [14] * 5), "each pass^1 >= 0.8").exit_code == 0


def test_one_bad_task_is_named_among_good_ones() -> None:
    outcomes = Outcomes.from_counts(20, [20] * 9 + [8], [*(f"t{i}" for i in range(9)), "bad"])
    result = gate(outcomes, "each pass^1 >= 0.8")
    (only,) = result.results
    assert result.exit_code == 1
    assert only.evidence == "of 10 tasks: 9 shown, 1 below (bad (8 of 20 passed))"
    assert [task.task for task in only.by_task if task.verdict is REFUTED] == ["bad"]
    written = json.loads(as_json(result))["rules"][0]
    assert written["by_task"][-1]["verdict"] == "refuted"
    assert gate(outcomes, "pass^1 >= 0.8", about="these tasks").exit_code == 0  # the mean is blind


def test_the_worst_of_many_is_corrected_for_their_number() -> None:
    """P(at most 9 of 20 | .8) = .0006: refuted among 10 tasks, not among 100."""
    p = float(binom.cdf(10, 20, 0.8))
    for tasks in (10, 100):
        outcomes = Outcomes.from_counts(20, [20] * (tasks - 1) + [10])
        verdict = gate(outcomes, "each pass^1 >= 0.8").verdict
        assert verdict is (REFUTED if tasks * p <= 0.05 else OPEN)
    assert 10 * p <= 0.05 < 100 * p


def test_at_the_limit_a_false_alarm_is_rare() -> None:
    """All 30 tasks exactly at the limit: some task refuted in at most 5% of runs."""
    rng = np.random.default_rng(5)
    alarms = sum(
        gate(Outcomes.from_counts(12, rng.binomial(12, 0.8, 30)), "each pass^1 >= 0.8").verdict
        is REFUTED
        for _ in range(200)
    )
    assert alarms <= 14


def test_missing_attempts_count_against_either_verdict() -> None:
    lossy = Outcomes.from_counts([20, 2], [20, 0], missing=[0, 18])
    (only,) = gate(lossy, "each pass^1 >= 0.8", max_missing=1.0).results
    assert [task.verdict for task in only.by_task] == [SHOWN, OPEN]
    assert "missing" in str(only.by_task[1])


def test_other_metrics_and_directions() -> None:
    assert rate_at(PassHat(4), 0.8) == pytest.approx(0.8**0.25)
    assert gate(Outcomes.from_counts(40, [0] * 3), "each pass^1 <= 0.1").exit_code == 0
    assert gate(Outcomes.from_counts(40, [40] * 3), "each pass^4 >= 0.5").exit_code == 0
    assert gate(Outcomes.from_counts(40, [0, 0, 30]), "each pass^1 <= 0.1").exit_code == 1


def test_what_each_cannot_ask() -> None:
    assert str(parse_rule("Each pass^2 >= 80%")) == "each pass^2 >= 0.8"
    for text in ("each pass^1 >= base", "each delta^2 >= 0.1"):
        with pytest.raises(RuleError, match="each task is held against a number"):
            parse_rule(text)
    with pytest.raises(RuleError, match="neither a metric"):
        parse_rule("each cost <= 1")
    with pytest.raises(InvalidValue, match="clusters matter for new tasks"):
        gate(Run("r", "r", Outcomes.from_counts(4, [4])), "each rate >= 0.1", cluster="repo")


def test_the_worst_task_is_the_one_with_the_smallest_share() -> None:
    run = Outcomes.from_counts([8, 2, 4], [3, 2, 4], ["a", "b", "c"])
    (result,) = gate(run, "each pass^1 >= 0.2").results
    assert result.value == pytest.approx(3 / 8)
    lost = Outcomes.from_counts([4, 0], [1, 0], ["a", "b"], missing=[0, 4])
    (result,) = gate(lost, "each pass^1 >= 0.2", max_missing=1).results
    assert result.value == 0
