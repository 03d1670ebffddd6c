"""window^w as a function of the success rate, against counting and against draws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from passhat import Outcomes, estimate
from passhat.stats.estimate.intervals.ordered_metrics import MOST_ATTEMPTS, InARow, in_a_row


@pytest.mark.parametrize(("w", "n"), [(1, 5), (2, 5), (3, 8), (4, 9), (6, 6)])
def test_every_sequence_is_counted(w: int, n: int) -> None:
    counted = [0] * (n + 1)
    for row in product((0, 1), repeat=n):
        counted[sum(row)] += any(all(row[i : i + w]) for i in range(n - w + 1))
    assert InARow(w, n).ways() == counted


def test_extreme_windows_are_pass_at_and_pass_hat() -> None:
    p = np.array([0.0, 0.03, 0.5, 0.97, 1.0])
    assert InARow(1, 12).value(p) == pytest.approx(1 - (1 - p) ** 12)
    assert InARow(12, 12).value(p) == pytest.approx(p**12)


def test_moments_against_draws() -> None:
    a, b, c = np.array([0.5, 3.0]), np.array([0.7, 2.0]), np.array([0, 4, 8])
    form = InARow(3, 8)
    first, second = in_a_row(a, b, c, form)
    rng = np.random.default_rng(1)
    for i, j in product(range(2), range(3)):
        drawn = form.value(rng.beta(a[i] + c[j], b[i] + 8 - c[j], 40_000))
        assert first[i, j] == pytest.approx(drawn.mean(), abs=0.01)
        assert second[i, j] == pytest.approx((drawn**2).mean(), abs=0.01)


def test_nothing_overflows_at_the_most_attempts() -> None:
    spread = np.exp(np.linspace(-12, 12, 20))
    c = np.array([0, 1, 64, MOST_ATTEMPTS])
    first, second = in_a_row(spread, spread[::-1], c, InARow(10, MOST_ATTEMPTS))
    assert (first >= 0).all()
    assert (first <= 1 + 1e-6).all()
    assert (second <= first + 1e-6).all()


def test_the_method_says_what_is_assumed_and_many_attempts_have_none() -> None:
    found = estimate(
        Outcomes.from_matrix([[1, 1, 0, 1], [0, 1, 0, 0]]), "window^2", about="these tasks"
    )
    assert "independent given the task" in found.method
    rows = np.ones((2, MOST_ATTEMPTS + 1), int)
    none = estimate(Outcomes.from_matrix(rows), "window^2", about="these tasks")
    assert none.low is None
    assert "no interval" in none.method
