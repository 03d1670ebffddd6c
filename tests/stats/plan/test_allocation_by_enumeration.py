"""Allocation against enumeration: posteriors, variances, totals and tables with whole numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import beta, binom

from passhat.errors import InvalidValue
from passhat.reporting.documents.forecast import allocation_table
from passhat.stats.compare.prospects import cell_likelihood
from passhat.stats.estimate.metrics import CountMetric, GPass, PassAt, PassHat
from passhat.stats.outcomes import Outcomes
from passhat.stats.plan import Allocation, Allocator, Difficulty, plan_tasks
from passhat.stats.plan.allocation import EarlierRun, Level, Offer, counts_digest, share_of_settled
from passhat.stats.plan.difficulty import binomial_chances

COINS = Difficulty(np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.5, 0.25]))
"""A quarter of the tasks never passes, a quarter always, the others are fair coins."""


def _allocator(n: int | list[int], c: list[int], metric: CountMetric) -> Allocator:
    return Allocator(Outcomes.from_counts(n, c), metric, difficulty=COINS)


def _variance_of_a_coin(metric: CountMetric, n: int) -> Fraction:
    """Var u(n, C) of a fair coin, over all 2^n outcomes."""
    values = metric.values(np.full(n + 1, n), np.arange(n + 1))
    exact = [Fraction(float(value)).limit_denominator(10**6) for value in values]
    chance = [Fraction(comb(n, c), 2**n) for c in range(n + 1)]
    mean = sum((p * u for p, u in zip(chance, exact, strict=True)), Fraction(0))
    return sum((p * (u - mean) ** 2 for p, u in zip(chance, exact, strict=True)), Fraction(0))


@pytest.mark.parametrize("metric", [PassHat(1), PassHat(2), PassAt(2), GPass(3, Fraction(1, 2))])
@pytest.mark.parametrize("n", [3, 4, 7])
def test_the_variance_is_that_of_the_posterior_share_of_coins(metric: CountMetric, n: int) -> None:
    """After 2 of 2 passes: coin with chance (1/2 1/4) / (1/2 1/4 + 1/4) = 1/3, else sure."""
    found = _allocator(2, [0, 1, 2], metric).variance(n)
    coin = float(_variance_of_a_coin(metric, n))
    assert found == pytest.approx([coin / 3, coin, coin / 3], rel=1e-9)


def test_a_task_without_a_verdict_has_the_rates_of_any_task() -> None:
    outcomes = Outcomes.from_counts([0, 2], [0, 1], missing=[2, 0])
    found = Allocator(outcomes, PassHat(1), difficulty=COINS).variance(4)
    assert found == pytest.approx([0.5 * 0.25 / 4, 0.25 / 4])


def test_the_standard_error_of_a_design_adds_up_task_by_task() -> None:
    allocator = _allocator(2, [0, 1, 1, 2], PassHat(1))
    design = np.array([2, 4, 8, 2])
    variances = [0.25 / 2 / 3, 0.25 / 4, 0.25 / 8, 0.25 / 2 / 3]
    assert allocator.noise(design) == pytest.approx(math.sqrt(sum(variances)) / 4)
    # Which of two alike tasks has more makes no difference.
    assert allocator.noise(design[[0, 2, 1, 3]]) == pytest.approx(allocator.noise(design))


def test_equal_attempts_give_the_remainder_to_the_first_tasks() -> None:
    allocator = _allocator(2, [0, 1, 2], PassHat(1))
    assert allocator.uniform(12).tolist() == [4, 4, 4]
    assert allocator.uniform(14).tolist() == [5, 5, 4]
    assert allocator.uniform(14).sum() == 14


def test_the_uniform_total_is_the_inverse_of_the_standard_error() -> None:
    allocator = _allocator(2, [0, 1, 1, 1, 2], PassHat(1))
    for each in (2, 3, 8, 50):
        noise = allocator.noise(np.full(5, each))
        assert allocator.uniform_total(noise) == 5 * each
    between = math.sqrt(
        (allocator.noise(np.full(5, 3)) ** 2 + allocator.noise(np.full(5, 4)) ** 2) / 2
    )
    assert 15 < allocator.uniform_total(between) < 20
    assert allocator.uniform_total(1.0) == 10  # two attempts at each are the fewest


def test_attempts_go_to_coins_and_not_to_settled_tasks() -> None:
    allocator = _allocator(8, [0, 0, 4, 4, 8, 8], PassHat(1))
    design = allocator.allocate(48, 2)
    assert design[[0, 1, 4, 5]].tolist() == [2, 2, 2, 2]
    assert int(design[[2, 3]].min()) >= 16
    assert int(design.sum()) <= 48
    assert allocator.noise(design) < allocator.noise(allocator.uniform(48))


def test_too_small_a_budget_names_the_smallest() -> None:
    allocator = _allocator(8, [0, 4, 8], PassHat(4))
    with pytest.raises(InvalidValue, match="12 in all; the budget is 11") as error:
        allocator.floors(11)
    assert "Give a budget of 12 or more" in str(error.value)
    with pytest.raises(InvalidValue, match="most is 3"):
        Allocator(Outcomes.from_counts(8, [4]), PassHat(4), most=3)


def test_settled_attempts_by_hand() -> None:
    # One attempt settles nothing, whatever it was.
    assert share_of_settled(Outcomes.from_counts([1, 1], [0, 1])) == 0.0
    assert share_of_settled(Outcomes.from_counts([2, 6, 4], [2, 3, 0])) == pytest.approx(6 / 12)
    assert share_of_settled(Outcomes.from_counts([0, 2], [0, 2], missing=[2, 0])) == 1.0


def test_a_digest_knows_counts_and_not_their_order() -> None:
    one = Outcomes.from_counts([4, 4], [1, 2], ["a", "b"])
    same = Outcomes.from_counts([4, 4], [2, 1], ["b", "a"])
    other = Outcomes.from_counts([4, 4], [2, 1], ["a", "b"])
    lost = Outcomes.from_counts([4, 4], [1, 2], ["a", "b"], missing=[0, 1])
    assert counts_digest(one) == counts_digest(same)
    assert len({counts_digest(outcomes) for outcomes in (one, other, lost)}) == 3
    assert str(EarlierRun.of(one)) == "an earlier run"
    assert EarlierRun.of(Outcomes.from_counts([2, 4, 9], [1, 1, 1])).attempts == 4


def _made(attempts: tuple[int, ...], uniform_total: int, **more: object) -> Allocation:
    return Allocation(
        metric="pass^2",
        tasks=tuple(f"t{i}" for i in range(len(attempts))),
        attempts=attempts,
        others=4,
        earlier=EarlierRun(name="first"),
        level=0.95,
        half_width=0.1,
        uniform_half_width=0.2,
        uniform_total=uniform_total,
        **more,  # type: ignore[arg-type]
    )


def _rows(allocation: Allocation) -> tuple[tuple[str, ...], ...]:
    return allocation_table(allocation).rows


def test_an_allocation_reads_as_its_numbers() -> None:
    made = _made((2, 2, 12), 32, table=(Level(2, 2, (0.0, 1.0)), Level(12, 1, (0.5, 0.5))))
    assert (made.total, made.saving) == (16, 0.5)
    assert made.sentence == (
        "16 attempts at 3 tasks, 2 to 12 each: as certain about pass^2 on these tasks as 32 "
        "spread evenly (50% saved)."
    )
    assert _rows(made) == (("2", "2", "4", "0 to 100%"), ("12", "1", "12", "50%"))
    lines = list(made.remarks())
    assert "tasks that first does not have: 4 attempts each" in lines


def test_equal_attempts_claim_no_saving() -> None:
    for attempts in ((4,), (4, 4), (5, 4)):
        made = _made(attempts, 100)
        assert made.is_uniform
        assert made.saving == 0.0
        assert "saved" not in made.sentence
    assert _made((4,), 4).sentence == "4 attempts at 1 task: 4 each."
    # More attempts than equal ones would need save nothing, and not less than nothing.
    assert _made((2, 12), 10).saving == 0.0


@pytest.mark.parametrize("n", [1, 6, 500])
def test_chances_are_binomial(n: int) -> None:
    rates = np.array([0.0, 0.02, 0.5, 1.0])
    wanted = binom.pmf(np.arange(n + 1), n, rates[:, None])
    assert binomial_chances(n, rates) == pytest.approx(wanted, abs=1e-12)


def test_likelihoods_are_binomial_up_to_a_factor_per_row() -> None:
    n, c, rates = np.array([4, 4, 7]), np.array([0, 3, 7]), np.linspace(0, 1, 9)
    found = cell_likelihood(n, c, rates)
    wanted = np.asarray(binom.pmf(c[:, None], n[:, None], rates))
    assert found == pytest.approx(wanted / wanted.max(axis=1, keepdims=True), abs=1e-12)


@pytest.mark.parametrize(("mean", "icc"), [(0.3, 0.2), (0.7, 0.5), (0.5, 0.05)])
def test_stated_assumptions_are_the_quantiles_of_their_beta(mean: float, icc: float) -> None:
    size = 1 / icc - 1
    found = Difficulty.from_mean(mean, icc)
    middles = (np.arange(len(found.rates)) + 0.5) / len(found.rates)
    assert found.rates == pytest.approx(beta.ppf(middles, mean * size, (1 - mean) * size), abs=1e-9)
    assert found.weights.sum() == pytest.approx(1.0)


def test_the_two_ends_of_likeness() -> None:
    alike, sure = Difficulty.from_mean(0.3, 0.0), Difficulty.from_mean(0.3, 1.0)
    assert alike.components(PassHat(1), 4).between == 0.0
    assert alike.components(PassHat(1), 4).within == pytest.approx(0.3 * 0.7 / 4)
    assert sure.components(PassHat(2), 4).within == pytest.approx(0.0, abs=1e-15)
    assert sure.components(PassHat(2), 4).between == pytest.approx(0.3 * 0.7)


def test_shares_and_levels_are_not_rounded_to_none_or_all() -> None:
    table = (Level(2, 3, (0.0, 0.004)), Level(9, 1, (0.996, 1.0)))
    made = replace(_made((2, 2, 2, 9), 3_500, table=table), level=0.995)
    text = "\n".join(made.remarks())
    assert "of pass^2 at 99.5%: 0.100" in text
    assert [row[3] for row in _rows(made)] == ["0 to 0.4%", "99.6 to 100%"]
    assert "(99.6% saved)" in made.sentence
    assert str(Offer(0.998, 0.004)).startswith("99.8% of the baseline's attempts are at settled")
    assert str(Offer(0.998, 0.004)).endswith("for about 0.4% of the attempts")


def test_a_mean_that_is_nearly_one_is_not_assumed_to_be_one() -> None:
    made = plan_tasks(half_width=0.01, mean=0.996, icc=0.3)
    assert any("99.6% of attempts pass" in line for line in made.remarks())
