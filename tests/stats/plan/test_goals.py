"""The formulas behind a plan: variances by enumeration, goals against their inverses, sentences."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from passhat import Outcomes, Run, plan_attempts, plan_tasks
from passhat.errors import InvalidValue
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.plan.difficulty import Difficulty
from passhat.stats.plan.plan_result import Detect, HalfWidth


def _count(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


RATES = (Fraction(0), Fraction(1, 4), Fraction(2, 3), Fraction(1))
SHARES = (Fraction(1, 8), Fraction(3, 8), Fraction(1, 4), Fraction(1, 4))
MIXED = Difficulty(np.array([float(p) for p in RATES]), np.array([float(w) for w in SHARES]))


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_both_parts_of_the_variance_by_enumeration(n: int, k: int) -> None:
    """Over every number of passes of every kind of task, in exact fractions."""
    if k > n:
        with pytest.raises(InvalidValue, match=f"needs at least {k} attempts"):
            MIXED.components(_count(f"pass^{k}"), n)
        return
    for word in ("pass^", "pass@"):
        value = [Fraction(comb(c, k), comb(n, k)) for c in range(n + 1)]
        known = [p**k for p in RATES]
        if word == "pass@":
            value = [1 - Fraction(comb(n - c, k), comb(n, k)) for c in range(n + 1)]
            known = [1 - (1 - p) ** k for p in RATES]
        mean = between = total = Fraction(0)
        for w, g in zip(SHARES, known, strict=True):
            mean += w * g
        for p, w, g in zip(RATES, SHARES, known, strict=True):
            between += w * (g - mean) ** 2
            for c in range(n + 1):
                chance = comb(n, c) * p**c * (1 - p) ** (n - c)
                total += w * chance * (value[c] - mean) ** 2
        parts = MIXED.components(_count(f"{word}{k}"), n)
        assert MIXED.mean(_count(f"{word}{k}")) == pytest.approx(float(mean))
        assert parts.between == pytest.approx(float(between))
        assert parts.total == pytest.approx(float(total))


@given(st.floats(0.02, 0.98), st.floats(0, 1), st.integers(1, 12))
def test_stated_assumptions_give_the_variance_they_say(mean: float, icc: float, n: int) -> None:
    """One attempt: mean (1 - mean). ICC is the share of it that lies between tasks."""
    difficulty = Difficulty.from_mean(mean, icc)
    one = difficulty.components(_count("rate"), 1)
    assert difficulty.mean(_count("rate")) == pytest.approx(mean, abs=0.01)
    assert one.total == pytest.approx(mean * (1 - mean), abs=0.01)
    assert one.between == pytest.approx(icc * mean * (1 - mean), abs=0.012)
    # More attempts divide what lies within, and leave what lies between.
    more = difficulty.components(_count("rate"), n)
    assert more.between == one.between
    assert more.within == pytest.approx(one.within / n, abs=1e-12)


def test_a_million_attempts_divide_what_lies_within() -> None:
    few, many = (MIXED.components(_count("pass^3"), n) for n in (2_000, 1_000_000))
    assert many.between == few.between
    assert many.within == pytest.approx(few.within / 500)
    # Up to there nothing is approximated: half the attempts, nearly twice the variance.
    half = MIXED.components(_count("pass^3"), 1_000)
    assert half.within == pytest.approx(2 * few.within, rel=0.01)


@given(st.floats(0.001, 0.25), st.floats(0.01, 0.3), st.sampled_from([0.8, 0.95, 0.99]))
def test_a_half_width_and_the_tasks_for_it_are_inverse(
    variance: float, target: float, level: float
) -> None:
    goal = HalfWidth(target, level)
    tasks = goal.tasks(variance)
    assert goal.reach(variance, tasks) <= target + 1e-9
    if tasks > 5:
        assert goal.reach(variance, tasks - 1) >= target - 1e-9
    z = float(norm.ppf((1 + level) / 2))
    assert tasks >= z**2 * variance / target**2


@given(st.floats(0.01, 0.4), st.floats(0.05, 0.4), st.sampled_from([0.5, 0.8, 0.95]))
def test_a_lift_and_the_tasks_for_it_are_inverse(
    variance: float, target: float, power: float
) -> None:
    goal = Detect(target, 0.95, power)
    tasks = goal.tasks(variance)
    assert goal.power_at(variance, tasks) >= power
    if tasks > 2:
        assert goal.power_at(variance, tasks - 1) < power
    assert goal.reach(variance, tasks) <= target + 1e-6
    # Never fewer than normal theory has it, which knows nothing of tasks that were not seen.
    z = 1.959964 + float(norm.ppf(power))
    assert tasks >= 0.95 * z**2 * variance / target**2


@pytest.mark.parametrize("word", ["pass^1", "pass^2", "pass@2", "gpass@4:0.5"])
def test_rows_trade_attempts_for_tasks(word: str) -> None:
    found = plan_tasks(metric=word, half_width=0.06, mean=0.6, icc=0.3)
    attempts = [row.attempts for row in found.rows]
    assert attempts == sorted(set(attempts))
    assert attempts[0] >= metric(word).k
    tasks = [row.tasks for row in found.rows]
    assert tasks == sorted(tasks, reverse=True)
    assert all(count >= found.fewest_tasks for count in tasks)
    assert found.cheapest.total_attempts == min(row.total_attempts for row in found.rows)
    assert found.cheapest in found.rows
    for row in found.rows:
        assert row.total_attempts == row.tasks * row.attempts
        assert row.cost is None


def test_a_comparison_pays_for_both_agents() -> None:
    found = plan_tasks(detect=0.1, mean=0.5, icc=0.5, attempts=3)
    row = next(row for row in found.rows if row.attempts == 3)
    assert row.total_attempts == 2 * row.tasks * 3
    assert "by each agent" in found.sentence
    alike = plan_tasks(detect=0.1, mean=0.5, icc=0.5, correlation=1.0)
    strangers = plan_tasks(detect=0.1, mean=0.5, icc=0.5, correlation=0.0)
    assert alike.cheapest.tasks < found.cheapest.tasks < strangers.cheapest.tasks


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_a_difference_has_the_noise_of_both_and_what_they_do_not_share(correlation: float) -> None:
    found = plan_tasks(metric="pass^2", detect=0.1, mean=0.6, icc=0.4, correlation=correlation)
    alone = Difficulty.from_mean(0.6, 0.4).components(_count("pass^2"), found.rows[0].attempts)
    assert found.within == pytest.approx(2 * alone.within)
    assert found.between == pytest.approx(2 * (1 - correlation) * alone.between)


def test_two_pilots_measure_how_far_the_lift_differs() -> None:
    """The same rates for both agents: what differs between tasks cancels in the lift."""
    rng = np.random.default_rng(7)
    rates = rng.beta(1, 1, 400)
    a, b = (Outcomes.from_counts(16, rng.binomial(16, rates)) for _ in range(2))
    alike = plan_tasks(a, detect=0.1, against=b)
    shuffled = Outcomes.from_counts(16, rng.permutation(b.c))
    strangers = plan_tasks(a, detect=0.1, against=shuffled)
    assert alike.between < 0.02
    assert strangers.between == pytest.approx(2 / 12, abs=0.03)  # twice the variance of Beta(1, 1)


def test_levels_and_powers_read_as_they_were_asked_for() -> None:
    found = plan_tasks(detect=0.1, mean=0.5, icc=0.5, power=0.995, level=0.999)
    assert "with power 99.5% at level 99.9%" in found.sentence
    assert "100%" not in found.sentence
    width = plan_tasks(half_width=0.1, mean=0.5, icc=0.5, level=0.995)
    assert width.goal_text == "To know pass^1 to within 0.1 at level 99.5%"


@pytest.mark.parametrize("passes", [[2] * 5, [0] * 5, [1, 1, 1, 1, 1]])
def test_a_pilot_in_which_nothing_varies_still_asks_for_tasks(passes: list[int]) -> None:
    found = plan_tasks(Outcomes.from_counts(2, passes), half_width=0.05)
    assert found.cheapest.tasks > 20
    assert found.tasks_range is None  # every redraw would be the same


@pytest.mark.parametrize("tasks", [1, 2])
def test_one_or_two_tasks_are_a_pilot_without_redraws(tasks: int) -> None:
    found = plan_tasks(Outcomes.from_counts(4, [2, 4][:tasks]), half_width=0.1)
    assert found.cheapest.tasks >= 2
    assert (found.tasks_range, found.power_range) == (None, None)
    assert not any("redraws" in line for line in found.remarks())


def test_missing_attempts_do_not_count_as_difficulty() -> None:
    full = Outcomes.from_counts([4] * 12, [1, 2, 3, 4] * 3)
    lost = Outcomes.from_counts([4] * 12, [1, 2, 3, 4] * 3, missing=[4] * 12)
    one, other = (Difficulty.from_outcomes(outcomes) for outcomes in (full, lost))
    assert other.weights.tolist() == one.weights.tolist()


def test_about_these_tasks_only_attempts_are_planned() -> None:
    rng = np.random.default_rng(3)
    pilot = Outcomes.from_counts(4, rng.binomial(4, rng.beta(1, 1, 30)))
    wide = plan_attempts(pilot, half_width=0.08)
    narrow = plan_attempts(pilot, half_width=0.04)
    assert wide.cheapest.tasks == narrow.cheapest.tasks == 30
    assert 3 < narrow.cheapest.attempts / wide.cheapest.attempts < 5  # half the width, four times
    assert "on these tasks" in narrow.sentence
    assert "more tasks would answer another question" in narrow.attempts_text
    with pytest.raises(InvalidValue, match="no number of attempts up to 1,024"):
        plan_attempts(pilot, half_width=0.0005)


def test_a_gate_plans_for_a_drop_and_says_so() -> None:
    rng = np.random.default_rng(3)
    pilot = Run("p", "a", Outcomes.from_counts(4, rng.binomial(4, rng.beta(1, 1, 30))))
    found = plan_attempts(pilot, detect=0.1, gate=True)
    assert found.gate
    assert "For the gate to be red with power 80%" in found.sentence
    assert "drops by 0.1 on these tasks" in found.sentence
    smaller = plan_attempts(pilot, detect=0.05, gate=True)
    assert smaller.cheapest.total_attempts > found.cheapest.total_attempts


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_half_width_is_that_of_a_normal_mean_with_guenthers_correction(level: float) -> None:
    outer = norm.ppf((1 + level) / 2)
    goal = HalfWidth(0.1, level)
    assert goal.tasks(0.2) == int(np.ceil(outer**2 * 0.2 / 0.01 + outer**2 / 2))
    assert goal.tasks(0.0) == 2
    assert goal.reach(0.2, 50) == pytest.approx(outer * (0.2 / (50 - outer**2 / 2)) ** 0.5)
    assert goal.reach(0.2, 2) == pytest.approx(outer * (0.2 / max(2 - outer**2 / 2, 1)) ** 0.5)
    assert goal.reach_with_noise(0.05, 0.1, 1.5) == pytest.approx(1.5 * norm.ppf(0.9) * 0.05)
