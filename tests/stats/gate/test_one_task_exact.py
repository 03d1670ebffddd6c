"""Rules on one task against exact binomial tests: what is shown, what is advised."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.gate import GateVerdict
from passhat.stats.gate.each_task import (
    attempts_that_could_show,
    check_one_task_rule,
    judge_one_task,
)

SHOWN, REFUTED, OPEN = GateVerdict.SHOWN, GateVerdict.REFUTED, GateVerdict.NOT_SETTLED


@given(st.integers(1, 25), st.data(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@settings(max_examples=max_examples(30))
def test_bounds_are_those_of_two_one_sided_tests(n: int, data: st.DataObject, level: float) -> None:
    """A one-sided level is the end of an exact two-sided interval with twice the error."""
    c = data.draw(st.integers(0, n))
    found = judge_one_task("t", "rate >= 0.5", n=n, c=c, level=level).results[0]
    wanted = binomtest(c, n).proportion_ci(2 * level - 1, method="exact")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert found.value == pytest.approx(c / n)


@given(st.integers(1, 20), st.data(), st.sampled_from([0.2, 0.5, 0.9]))
@settings(max_examples=max_examples(30))
def test_verdicts_are_decisions_of_exact_tests(n: int, data: st.DataObject, limit: float) -> None:
    """Shown: under a rate at the limit so many passes have a chance of at most 5%."""
    c = data.draw(st.integers(0, n))
    up = float(binom.sf(c - 1, n, limit))
    down = float(binom.cdf(c, n, limit))
    verdict = judge_one_task("t", f"rate >= {limit}", n=n, c=c).verdict
    if abs(up - 0.05) > 1e-9 and abs(down - 0.05) > 1e-9:
        assert verdict is (SHOWN if up < 0.05 else REFUTED if down < 0.05 else OPEN)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("limit", [0.5, 0.9])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_fewest_attempts_follow_from_a_logarithm(k: int, limit: float, level: float) -> None:
    """All of n passed bounds the rate by (1 - level)^(1/n), and pass^k by its k-th power."""
    rule, metric = check_one_task_rule(f"pass^{k} >= {limit}", 1000)
    wanted = math.ceil(k * math.log(1 - level) / math.log(limit) - 1e-9)
    assert attempts_that_could_show(rule, metric, level) == max(wanted, k)


def test_a_rule_against_passing_is_shown_by_failures() -> None:
    """No pass in n bounds the rate by 1 - .05^(1/n): 29 failures show a rate below a tenth."""
    rule, metric = check_one_task_rule("rate <= 0.1", 100)
    needed = attempts_that_could_show(rule, metric, 0.95)
    assert needed == math.ceil(math.log(0.05) / math.log(0.9))
    assert judge_one_task("t", rule, n=29, c=0).verdict is SHOWN
    found = judge_one_task("t", rule, n=28, c=0).results[0]
    assert found.verdict is OPEN
    assert "at least 29 attempts, all failed" in str(found.advice)


def test_at_least_k_attempts_are_advised() -> None:
    """pass@8 >= 0.5 is shown by two passes, but pass@8 needs eight attempts to be seen."""
    rule, metric = check_one_task_rule("pass@8 >= 0.5", 100)
    assert attempts_that_could_show(rule, metric, 0.95) == 8


@pytest.mark.parametrize(("rule", "n", "c"), [("pass^2 >= 0.5", 4, 2), ("pass@2 <= 0.5", 4, 2)])
def test_the_value_is_unbiased_and_not_a_power_of_the_rate(rule: str, n: int, c: int) -> None:
    """2 of 4: pass^2 is 1/6 and pass@2 is 5/6, not 1/4 and 3/4."""
    found = judge_one_task("t", rule, n=n, c=c).results[0]
    assert found.value == pytest.approx(1 / 6 if "^" in rule else 5 / 6)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.25 <= found.high if "^" in rule else found.low <= 0.75 <= found.high


@given(st.integers(0, 12), st.integers(0, 6), st.data())
@settings(max_examples=max_examples(30))
def test_a_verdict_with_missing_attempts_holds_however_they_would_have_ended(
    n: int, missing: int, data: st.DataObject
) -> None:
    if n + missing == 0:
        return
    c = data.draw(st.integers(0, n))
    lossy = judge_one_task("t", "rate >= 0.6", n=n, c=c, missing=missing)
    ended = [
        judge_one_task("t", "rate >= 0.6", n=n + missing, c=c + passed).verdict
        for passed in range(missing + 1)
    ]
    if lossy.verdict is not OPEN:
        assert set(ended) == {lossy.verdict}
    elif len(set(ended)) == 1:
        assert ended[0] is OPEN


def test_what_it_is_about_is_said() -> None:
    found = judge_one_task("mine", "rate >= 0.5", n=1, c=1).results[0]
    assert (found.about, found.tasks, found.attempts) == ("this one task", 1, 1)
    assert found.notes == ("1 of 1 attempt passed; Clopper-Pearson bounds",)
    settled = judge_one_task("mine", "rate >= 0.1", n=20, c=20).results[0]
    assert settled.advice is None
    assert settled.low is not None
    assert settled.low == pytest.approx(0.05 ** (1 / 20))


@pytest.mark.parametrize("level", [0.5, 1.0, 0.0, 1.5])
def test_levels_that_show_nothing_or_everything_are_refused(level: float) -> None:
    with pytest.raises(InvalidValue, match=r"between 0\.5 and 1"):
        judge_one_task("t", "rate >= 0.5", n=3, c=3, level=level)
