"""Single tasks that changed: Fisher's test by enumeration, Holm, and missing attempts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes, compare
from passhat._serialize import to_data
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.task_changes import find_changed_tasks, fisher_tests
from passhat.stats.outcomes import MissingPolicy

BOUND = MissingPolicy.BOUND


def _exact(c_a: int, n_a: int, c_b: int, n_b: int) -> tuple[Fraction, Fraction]:
    """All ways to hand c_a + c_b passes to n_a + n_b attempts, each as likely."""
    passed = c_a + c_b
    ways = {
        x: comb(n_b, x) * comb(n_a, passed - x)
        for x in range(max(0, passed - n_a), min(n_b, passed) + 1)
    }
    total = sum(ways.values())
    less = Fraction(sum(count for x, count in ways.items() if x <= c_b), total)
    more = Fraction(sum(count for x, count in ways.items() if x >= c_b), total)
    return less, more


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_p_values_are_shares_of_all_ways(n_a: int, n_b: int, data: st.DataObject) -> None:
    c_a, c_b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    less, more = fisher_tests(*(np.array([x]) for x in (c_a, n_a, c_b, n_b)))
    wanted = _exact(c_a, n_a, c_b, n_b)
    assert float(less[0]) == pytest.approx(float(wanted[0]), rel=1e-9)
    assert float(more[0]) == pytest.approx(float(wanted[1]), rel=1e-9)
    # Swapping sides swaps the directions, and so does counting failures.
    swapped = fisher_tests(*(np.array([x]) for x in (c_b, n_b, c_a, n_a)))
    assert float(swapped[1][0]) == pytest.approx(float(less[0]), rel=1e-9)
    failures = fisher_tests(*(np.array([x]) for x in (n_a - c_a, n_a, n_b - c_b, n_b)))
    assert float(failures[1][0]) == pytest.approx(float(less[0]), rel=1e-9)


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (2, 3), (4, 4), (1, 8)])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.95])
def test_a_true_null_is_called_seldom_whatever_the_rate(n_a: int, n_b: int, rate: float) -> None:
    """By enumeration: P(p <= alpha) is at most alpha for equal rates, exactly."""
    for alpha in (0.05, 0.2):
        called = 0.0
        for c_a, c_b in product(range(n_a + 1), range(n_b + 1)):
            chance = comb(n_a, c_a) * rate**c_a * (1 - rate) ** (n_a - c_a)
            chance *= comb(n_b, c_b) * rate**c_b * (1 - rate) ** (n_b - c_b)
            called += chance * (_exact(c_a, n_a, c_b, n_b)[0] <= Fraction(alpha))
        assert called <= alpha + 1e-12


def test_huge_counts_neither_overflow_nor_vanish() -> None:
    less, more = fisher_tests(*(np.array([x]) for x in (500_000, 10**6, 499_000, 10**6)))
    assert 0.05 < float(less[0]) < 0.1  # a difference of 1,000 is about 1.41 standard errors
    assert float(less[0] + more[0]) == pytest.approx(1.0, abs=1e-2)


def test_the_published_case_and_one_task_alone() -> None:
    """8 of 8 to 0 of 8 has p = .00008: one broken task of 300 is found, of 400 it is not."""
    for tasks, found in ((1, True), (30, True), (300, True), (400, False)):
        a = Outcomes.from_counts(8, [8] * tasks)
        b = Outcomes.from_counts(8, [8] * (tasks - 1) + [0])
        changes = find_changed_tasks(pair(a, b), BOUND, 0.025)
        assert bool(changes) is found, tasks
        for change in changes:
            assert change.p_value == pytest.approx(1 / 12870)
            assert change.p_holm == pytest.approx(tasks / 12870)
            assert str(change) == f"{tasks - 1} (8 of 8 passed, now 0 of 8)"


def test_one_attempt_each_never_shows_a_single_task() -> None:
    """Passed once and then failed once happens half of the time by chance."""
    changes = find_changed_tasks(
        pair(Outcomes.from_counts(1, [1]), Outcomes.from_counts(1, [0])), BOUND, 0.4
    )
    assert changes == ()


def test_changes_are_sorted_named_and_one_sided_when_asked() -> None:
    a = Outcomes.from_counts(8, [8, 0, 8, 4], ["down", "up", "little", "same"])
    b = Outcomes.from_counts(8, [0, 8, 6, 4], ["down", "up", "little", "same"])
    both = find_changed_tasks(pair(a, b), BOUND, 0.05)
    assert {change.task: change.change for change in both} == {"down": "broke", "up": "improved"}
    assert [c.task for c in find_changed_tasks(pair(a, b), BOUND, 0.05, "less")] == ["down"]
    assert [c.task for c in find_changed_tasks(pair(a, b), BOUND, 0.05, "greater")] == ["up"]
    # A one-sided gate names the same broken tasks, with the same p-value, as a comparison.
    assert find_changed_tasks(pair(a, b), BOUND, 0.05, "less")[0] in both
    assert list(to_data(both[0])) == [
        *("task", "change", "passed_a", "attempts_a", "passed_b", "attempts_b"),
        *("p_value", "p_holm"),
    ]


def _changes(a: tuple[int, int, int], b: tuple[int, int, int]) -> set[str]:
    """What is shown of one task with so many scored, passed and missing attempts on each side."""
    sides = [Outcomes.from_counts([n], [c], missing=[m]) for n, c, m in (a, b)]
    return {change.change for change in find_changed_tasks(pair(sides[0], sides[1]), BOUND, 0.05)}


@pytest.mark.parametrize("m_a", [0, 2])
@pytest.mark.parametrize("m_b", [0, 1, 2])
def test_a_change_must_hold_however_the_missing_would_have_ended(m_a: int, m_b: int) -> None:
    """All numbers of passes in eight attempts, and every way the missing ones could have ended."""
    shown_at_all = 0
    for c_a, c_b in product(range(9 - m_a), range(9 - m_b)):
        shown = _changes((8 - m_a, c_a, m_a), (8 - m_b, c_b, m_b))
        every = [
            _changes((8, c_a + f_a, 0), (8, c_b + f_b, 0))
            for f_a, f_b in product(range(m_a + 1), range(m_b + 1))
        ]
        assert shown == set.intersection(*every), (c_a, c_b)
        shown_at_all += bool(shown)
    # With two missing on either side the largest difference left is 6 of 8 against 2 of 8.
    assert (shown_at_all > 0) is not (m_a == m_b == 2)


def test_compare_names_single_tasks_with_half_of_the_error_in_each_direction() -> None:
    a = Outcomes.from_counts(8, [8] * 10)
    b = Outcomes.from_counts(8, [8] * 9 + [1])
    p = float(_exact(8, 8, 1, 8)[0])
    assert compare(a, b).task_changes[0].p_value == pytest.approx(p)
    # 10 p = .007: above half of 1% and below half of 5%.
    assert compare(a, b, level=0.99).task_changes == ()
    assert 0.005 < 10 * p <= 0.025
