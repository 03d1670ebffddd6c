"""A rule on one task: Clopper-Pearson bounds, carried over to the metric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.gate import GateVerdict
from passhat.stats.gate.each_task import (
    attempts_that_could_show,
    check_one_task_rule,
    judge_one_task,
)


def test_eight_of_eight() -> None:
    found = judge_one_task("t", "pass^4 >= 0.9", n=8, c=8).results[0]
    assert found.verdict is GateVerdict.NOT_SETTLED
    assert found.low == pytest.approx(0.05 ** (4 / 8))
    assert found.high == 1
    assert "at least 114 attempts, all passed" in str(found.advice)


@pytest.mark.parametrize("text", ["pass^4 >= 0.9", "pass@2 > 0.5", "rate <= 0.1", "rate < 0.2"])
def test_the_fewest_attempts_are_the_fewest(text: str) -> None:
    rule, metric = check_one_task_rule(text, 1000)
    needed = attempts_that_could_show(rule, metric, 0.95)
    assert needed is not None
    for n, verdict in ((needed, GateVerdict.SHOWN), (needed - 1, GateVerdict.NOT_SETTLED)):
        if n >= metric.k:
            c = n if rule.sign.wants_more else 0
            assert judge_one_task("t", rule, n=n, c=c).verdict is verdict


def test_certainty_cannot_be_shown() -> None:
    result = judge_one_task("t", "rate >= 1", n=50, c=50)
    assert "no number of attempts" in str(result)


@given(st.integers(1, 40), st.data())
@settings(max_examples=max_examples(60))
def test_missing_attempts_only_widen(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    missing = data.draw(st.integers(0, 10))
    whole = judge_one_task("t", "rate >= 0.5", n=n + missing, c=c).results[0]
    lossy = judge_one_task("t", "rate >= 0.5", n=n, c=c, missing=missing).results[0]
    assert whole.low is not None
    assert whole.high is not None
    assert lossy.low == whole.low
    assert (lossy.high or 0) >= whole.high
    assert whole.low <= whole.value <= whole.high


@pytest.mark.parametrize("p", [0.3, 0.9, 0.99])
def test_wrong_verdicts_are_rare(p: float) -> None:
    rng = np.random.default_rng(2)
    limit = p**4
    wrong = {"shown": 0, "refuted": 0}
    counts = np.bincount(rng.binomial(20, p, 4000), minlength=21)
    for c, times in enumerate(counts.tolist()):
        for rule, way in ((f"pass^4 > {limit!r}", "shown"), (f"pass^4 >= {limit!r}", "refuted")):
            if str(judge_one_task("t", rule, n=20, c=c).verdict) == way:
                wrong[way] += times
    assert max(wrong.values()) / 4000 <= 0.06


def test_what_one_task_cannot_answer() -> None:
    for rule in ("cost <= 1", "missing <= 2%", "rate >= base", "first@2 >= 0.5", "delta^2 >= 0"):
        with pytest.raises(InvalidValue, match="cannot be evaluated on one task"):
            check_one_task_rule(rule, 8)
    with pytest.raises(InvalidValue, match="at least 4 attempts"):
        judge_one_task("t", "pass^4 >= 0.5", n=3, c=3)
    with pytest.raises(InvalidValue, match="one-sided"):
        judge_one_task("t", "rate >= 0.5", n=3, c=3, level=0.2)


def test_missing_attempts_are_failed_below_and_passed_above() -> None:
    """Two of six passed and two are missing: 2 of 8 for the lower bound, 4 of 8 for the upper."""
    found = judge_one_task("t", "pass^1 <= 0.8", n=6, c=2, missing=2).results[0]
    low = judge_one_task("t", "pass^1 <= 0.8", n=8, c=2).results[0]
    high = judge_one_task("t", "pass^1 <= 0.8", n=8, c=4).results[0]
    assert (found.low, found.high) == (low.low, high.high)
    assert low.high is not None
    assert found.high is not None
    assert found.high > low.high
    assert "2 of 8 attempts passed, 2 missing" in found.notes[0]
    nothing = judge_one_task("t", "pass^1 <= 0.8", n=0, c=0, missing=8).results[0]
    assert (nothing.low, nothing.high) == (0.0, 1.0)
