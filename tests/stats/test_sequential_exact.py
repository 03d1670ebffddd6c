"""Confidence sequences against every order in which a small suite can be drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.stats.sequential import _FRACTIONS, ConfidenceSequence, consumption_order

ALPHA = 0.25  # small suites refute nothing at 5%


@pytest.mark.parametrize(("total", "passes"), [(4, 0), (5, 2), (6, 5), (7, 7), (8, 4)])
@pytest.mark.parametrize("sides", ["lower", "upper"])
def test_no_more_orders_than_allowed_ever_refute_the_truth(
    total: int, passes: int, sides: str
) -> None:
    """Every order of passes and failures is as likely; the bound may pass the truth in 1/4."""
    wrong = orders = 0
    for row in product((0, 1), repeat=total):
        if sum(row) != passes:
            continue
        orders += 1
        sequence = ConfidenceSequence(1 - ALPHA, sides=sides, total=total, binary=True)  # type: ignore[arg-type]
        crossed = False
        for value in row:
            found = sequence.update(value)
            crossed |= found.low > passes / total + 1e-9 or found.high < passes / total - 1e-9
        wrong += crossed
        assert sequence.bounds.count == total
    assert orders == comb(total, passes)
    assert wrong <= ALPHA * orders + 1e-9


@pytest.mark.parametrize(
    "values", [(0.0, 0.25, 1.0, 0.5), (1 / 3, 1 / 3, 1.0), (0.0, 0.0, 1.0, 1.0)]
)
def test_betting_without_replacement_over_all_orders(values: tuple[float, ...]) -> None:
    truth = sum(values) / len(values)
    for sides in ("lower", "upper", "two-sided"):
        wrong = 0
        orders = list(permutations(values))
        for row in orders:
            sequence = ConfidenceSequence(1 - ALPHA, sides=sides, total=len(values))
            seen = [sequence.update(value) for value in row]
            wrong += any(not f.low - 1e-9 <= truth <= f.high + 1e-9 for f in seen[:-1])
            last = seen[-1]
            if sides != "upper":
                assert last.low == pytest.approx(truth)
            if sides != "lower":
                assert last.high == pytest.approx(truth)
        assert wrong <= ALPHA * len(orders)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)])
def test_new_tasks_by_enumeration(rate: Fraction) -> None:
    """All 2^9 sequences of independent tasks, weighted by their chance."""
    wrong = Fraction(0)
    for row in product((0, 1), repeat=9):
        sequence = ConfidenceSequence(1 - ALPHA)
        inside = all(found.low <= float(rate) <= found.high for found in map(sequence.update, row))
        if not inside:
            wrong += rate ** sum(row) * (1 - rate) ** (9 - sum(row))
    assert float(wrong) <= ALPHA


@settings(max_examples=max_examples(40))
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=25),
    st.sampled_from(["two-sided", "lower", "upper"]),
    st.booleans(),
)
def test_it_never_widens_and_stays_in_what_is_certain(
    values: list[float], sides: str, fixed: bool
) -> None:
    total = len(values) + 3 if fixed else None
    sequence = ConfidenceSequence(0.9, sides=sides, total=total)  # type: ignore[arg-type]
    seen = [sequence.bounds, *map(sequence.update, values)]
    for before, after in pairwise(seen):
        assert before.low <= after.low <= after.high + 1e-9
        assert after.high <= before.high
    last = seen[-1]
    assert last.mean == pytest.approx(sum(values) / len(values))
    if fixed and not last.crossed:
        lowest = sum(values) / (len(values) + 3)
        if sides != "upper":
            assert last.low >= lowest - 1e-9
        if sides != "lower":
            assert last.high <= lowest + 3 / (len(values) + 3) + 1e-9


@settings(max_examples=max_examples(30))
@given(st.lists(st.integers(0, 1), min_size=1, max_size=20), st.integers(0, 5))
def test_passes_and_failures_are_mirrored(values: list[int], more: int) -> None:
    total = len(values) + more
    for binary in (True, False):
        plain = ConfidenceSequence(0.9, total=total, binary=binary)
        mirror = ConfidenceSequence(0.9, total=total, binary=binary)
        for value in values:
            found, other = plain.update(value), mirror.update(1 - value)
            assert (1 - other.high, 1 - other.low) == pytest.approx(
                (found.low, found.high), abs=1e-6
            )


def test_the_urn_is_a_likelihood_ratio() -> None:
    """Ten tasks, all of the first six passed: by hand, in whole numbers.

    Under K passes among 10, six passes in a row have chance C(K, 6) / C(10, 6) x ... = K!/(K-6)! x
    4!/10!; the mixture over K' > K is uniform.
    """
    total, seen = 10, 6

    def chance(k: int) -> Fraction:
        result = Fraction(1)
        for i in range(seen):
            result *= Fraction(max(k - i, 0), total - i)
        return result

    sequence = ConfidenceSequence(0.95, sides="lower", total=total, binary=True)
    for _ in range(seen):
        bounds = sequence.update(1)
    refuted = [
        k
        for k in range(total)
        if chance(k) == 0
        or sum(chance(j) for j in range(k + 1, total + 1)) / (total - k) / chance(k) >= 20
    ]
    assert bounds.low == pytest.approx((max(refuted) + 1) / total)


@pytest.mark.parametrize("total", [None, 12])
def test_the_capital_of_the_player_by_hand(total: int | None) -> None:
    """At every candidate mean the stakes of the module's docstring, multiplied out."""
    values = [1.0, 0.75, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0]
    sequence = ConfidenceSequence(0.9, sides="lower", total=total)
    wanted = 0.0
    capital = {m: np.full(len(_FRACTIONS), 1 / len(_FRACTIONS)) for m in np.linspace(0, 1, 401)}
    for seen, value in enumerate(values):
        before = sum(values[:seen])
        for m in capital:
            mean = m if total is None else (total * m - before) / (total - seen)
            if mean <= 0:
                capital[m] = np.full(len(_FRACTIONS), math.inf)
            else:
                capital[m] = capital[m] * (1 - _FRACTIONS + _FRACTIONS * value / mean)
            if capital[m].sum() >= 10:
                wanted = max(wanted, float(m))
        found = sequence.update(value)
        certain = 0.0 if total is None else sum(values[: seen + 1]) / total
        assert found.low == pytest.approx(max(wanted, certain)), seen
    assert wanted > 0.3


@pytest.mark.parametrize("threshold", [0.3, 0.5, 2 / 3])
def test_decisions_at_the_exact_mean(threshold: float) -> None:
    """A finished suite whose mean is the threshold: "at least" is shown, "above" is refuted."""
    total = 6
    values = [threshold] * total
    sequence = ConfidenceSequence(0.95, total=total, thresholds=[threshold])
    sequence.update_many(values)
    assert sequence.decide(threshold) == "shown"
    assert sequence.decide(threshold, strict=True) == "refuted"


def test_levels_read_as_they_were_asked_for() -> None:
    assert "99.9% at every look; no task yet, 0 seen" in str(ConfidenceSequence(0.999).bounds)


@given(st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=20), st.integers())
def test_an_order_is_a_permutation_that_ids_and_seed_decide(tasks: list[str], seed: int) -> None:
    order = consumption_order(tasks, seed)
    assert sorted(order) == sorted(tasks)
    assert order == consumption_order(sorted(tasks), seed)
    # Leaving one out does not reorder the others.
    if tasks:
        rest = consumption_order([task for task in tasks if task != tasks[0]], seed)
        assert rest == tuple(task for task in order if task != tasks[0])


def test_every_task_comes_first_about_as_often() -> None:
    firsts = [consumption_order(["a", "b", "c", "d"], seed)[0] for seed in range(800)]
    for task in "abcd":
        assert 150 < firsts.count(task) < 250  # 200 expected, standard deviation 12
