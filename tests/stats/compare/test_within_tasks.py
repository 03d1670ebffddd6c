"""The exact test of a change of the mean: by hand, by its error, and in the interval."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, hypergeom

from passhat.stats.compare.pairing import pair
from passhat.stats.compare.significance import (
    drop_p_value,
    longer_drop_p_value,
    pair_drop_p_value,
    pair_rise_p_value,
    split_drop_p_value,
    unequal_drop_p_value,
)
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.outcomes import MissingPolicy, Outcomes
from passhat.stats.terms import Terms

BOUND = MissingPolicy.BOUND


def test_with_one_attempt_it_is_the_sign_test() -> None:
    won, lost = np.array([1] * 13 + [0] * 3), np.array([0] * 13 + [1] * 3)
    assert drop_p_value(1, won, lost) == pytest.approx(binom.cdf(3, 16, 0.5))


def test_with_one_task_it_is_fishers_test() -> None:
    assert drop_p_value(8, np.array([7]), np.array([2])) == pytest.approx(
        hypergeom(16, 9, 8).cdf(2)
    )


def test_tasks_that_always_or_never_pass_say_nothing() -> None:
    mixed = np.array([5, 3]), np.array([2, 3])
    alone = drop_p_value(6, *mixed)
    assert drop_p_value(6, np.r_[mixed[0], 6, 0], np.r_[mixed[1], 6, 0]) == pytest.approx(alone)
    assert drop_p_value(6, np.array([6, 0]), np.array([6, 0])) == 1.0


def test_many_attempts_take_the_normal_distribution() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.binomial(20, 0.5, (2, 600))
    near = drop_p_value(20, a[:240], b[:240])
    assert int(np.minimum(a + b, 40 - a - b)[:240].sum()) < 5_000
    variance = ((a + b) * (40 - a - b))[:240].sum() / (4 * 39)
    z = (b[:240].sum() + 0.5 - (a + b)[:240].sum() / 2) / np.sqrt(variance)
    assert near == pytest.approx(ndtr(z), abs=1e-3)
    variance = ((a + b) * (40 - a - b)).sum() / (4 * 39)
    z = (b.sum() + 0.5 - (a + b).sum() / 2) / np.sqrt(variance)
    assert drop_p_value(20, a, b) == pytest.approx(ndtr(z))


@pytest.mark.parametrize("rates", [(0.5, 0.5, 0.5, 0.5), (0.2, 0.9, 0.55, 0.55), (0, 1, 1, 0)])
def test_it_errs_no_more_than_it_says_also_where_changes_cancel(rates: tuple[float, ...]) -> None:
    n = 4
    chances = [binom.pmf(np.arange(n + 1), n, rate) for rate in rates]
    error = sum(
        np.prod([chances[i][c] for i, c in enumerate(cells)])
        for cells in product(range(n + 1), repeat=4)
        if split_drop_p_value(n, np.array(cells[:2]), np.array(cells[2:])) <= 0.05
    )
    assert error <= 0.05


def test_equal_sums_are_split_by_the_tasks_that_moved() -> None:
    """By enumeration of all ways to deal the passes of four tasks again."""
    n, c_a, c_b = 4, np.array([4, 4, 4, 2]), np.array([2, 2, 3, 1])
    totals = c_a + c_b
    chances = [hypergeom(2 * n, total, n).pmf(np.arange(n + 1)) for total in totals]
    variances = totals * (2 * n - totals) / (4 * (2 * n - 1))

    def count_moves(passes: np.ndarray) -> int:
        return int(((passes - totals / 2) ** 2 > variances + 1e-9).sum())

    below = tied = 0.0
    for passes in product(range(n + 1), repeat=4):
        chance = np.prod([row[c] for row, c in zip(chances, passes, strict=True)])
        below += chance * (sum(passes) < c_b.sum())
        is_counted = count_moves(np.array(passes)) <= count_moves(c_b)
        tied += chance * (sum(passes) == c_b.sum() and is_counted)
    assert split_drop_p_value(n, c_a, c_b) == pytest.approx(below + tied)
    assert below < split_drop_p_value(n, c_a, c_b) < drop_p_value(n, c_a, c_b)


def test_sums_far_from_a_claim_and_large_ones_are_not_split() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.binomial(4, 0.5, (2, 20))
    assert split_drop_p_value(4, a, a) == drop_p_value(4, a, a)
    a, b = rng.binomial(20, [[0.5], [0.4]], (2, 200))
    assert split_drop_p_value(20, a, b) == drop_p_value(20, a, b)


@pytest.mark.parametrize(
    ("a", "b", "metric"),
    [
        (Outcomes.from_counts(4, [4, 4]), Outcomes.from_counts(3, [1, 1]), PassHat(1)),
        (Outcomes.from_counts([4, 3], [4, 3]), Outcomes.from_counts([4, 3], [1, 1]), PassHat(1)),
        (Outcomes.from_counts(4, [4, 4]), Outcomes.from_counts(4, [1, 1]), PassHat(2)),
    ],
)
def test_without_equal_attempts_or_for_other_metrics_there_is_none(
    a: Outcomes, b: Outcomes, metric: CountMetric
) -> None:
    assert pair_drop_p_value(pair(a, b), metric, BOUND) is None


def test_missing_attempts_count_against_the_change() -> None:
    a = Outcomes.from_counts(3, [3] * 4, missing=1)
    b = Outcomes.from_counts(4, [1] * 4)
    drop = pair_drop_p_value(pair(a, b), PassAt(1), BOUND)
    assert drop == pytest.approx(split_drop_p_value(4, np.full(4, 3), np.full(4, 1)))
    rise = pair_rise_p_value(pair(b, a), PassAt(1), BOUND)
    assert rise == pytest.approx(split_drop_p_value(4, np.full(4, 3), np.full(4, 1)))


def test_the_interval_ends_before_zero_where_the_test_shows_a_change() -> None:
    a = Outcomes.from_counts(8, [8, 7, 6, 5, 4, 2] * 5)
    shown = []
    for moved in (12, 19, 20, 21, 22):
        passes = np.array([8, 7, 6, 5, 4, 2] * 5)
        passes[:moved] -= 1
        pairing = pair(a, Outcomes.from_counts(8, passes))
        p = pair_drop_p_value(pairing, PassHat(1), BOUND)
        assert p is not None
        ends = bound_lift(pairing, PassHat(1), Terms(), 0.025)
        assert (ends.high < 0) is (p <= 0.025)
        assert ends.low <= -moved / 240 <= ends.high
        shown += [ends.high] if ends.high < 0 else []
        mirrored = bound_lift(pair(pairing.b, pairing.a), PassHat(1), Terms(), 0.025)
        assert (mirrored.low, mirrored.high) == pytest.approx((-ends.high, -ends.low))
    assert shown[0] == pytest.approx(-1 / 480, abs=1e-5)
    p = pair_drop_p_value(pair(a, a), PassHat(1), BOUND)
    assert p is not None
    assert p > 0.5


def test_more_attempts_on_one_side_are_dealt_by_the_hypergeometric_distribution() -> None:
    a, b = np.array([7]), np.array([6])
    expected = hypergeom(24, 13, 16).cdf(6)
    eight, sixteen = np.array([8]), np.array([16])
    assert unequal_drop_p_value(eight, a, sixteen, b) == pytest.approx(expected)


def test_a_longer_side_does_not_make_changes_that_cancel_a_drop() -> None:
    """The side with few attempts spreads more than both together: its own variance counts."""
    rng = np.random.default_rng(4)
    rates = np.repeat([0.5, 0.5], 10), np.repeat([1.0, 0.0], 10)
    reds = [0, 0]
    for _ in range(1_000):
        c_a, c_b = rng.binomial(4, rates[0]), rng.binomial(16, rates[1])
        pairing = pair(Outcomes.from_counts(4, c_a), Outcomes.from_counts(16, c_b))
        p = longer_drop_p_value(pairing, PassHat(1), BOUND)
        assert p is not None
        few, many = np.full(20, 4), np.full(20, 16)
        reds[0] += unequal_drop_p_value(few, c_a, many, c_b) <= 0.05
        reds[1] += p <= 0.05
    assert reds[0] > 60 > reds[1]
