"""Metrics of known success rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import exact
from passhat.errors import InvalidValue

rates = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(rates, st.integers(1, 30))
def test_the_bounds_of_jensen(p: list[float], k: int) -> None:
    mean = exact(p, "rate")
    assert mean**k - 1e-12 <= exact(p, f"pass^{k}") <= mean + 1e-12
    assert mean - 1e-12 <= exact(p, f"pass@{k}") <= 1 - (1 - mean) ** k + 1e-12
    assert -1e-12 <= exact(p, f"delta^{k}") <= mean - mean**k + 1e-12


@given(rates, st.integers(1, 12))
def test_g_pass_goes_from_any_to_all(p: list[float], k: int) -> None:
    assert exact(p, f"gpass@{k}:1/{k}") == pytest.approx(exact(p, f"pass@{k}"), abs=1e-12)
    assert exact(p, f"gpass@{k}:1") == pytest.approx(exact(p, f"pass^{k}"), abs=1e-12)


@given(rates, st.integers(1, 12))
def test_the_first_k_of_fresh_attempts_are_as_good_as_any_k(p: list[float], k: int) -> None:
    assert exact(p, f"first@{k}") == pytest.approx(exact(p, f"pass@{k}"), abs=1e-12)
    assert exact(p, f"first^{k}") == pytest.approx(exact(p, f"pass^{k}"), abs=1e-12)


def test_tiny_rates_keep_their_digits() -> None:
    assert exact([1e-12], "pass@1000") == pytest.approx(1e-9, rel=1e-8)
    assert exact([1.0], "pass@3") == 1.0


@pytest.mark.parametrize("p", [[-0.1], [1.1], [0.5, np.nan], []])
def test_what_is_not_a_probability_is_refused(p: list[float]) -> None:
    with pytest.raises(InvalidValue, match=r"probability|at least one"):
        exact(p, "pass^2")


def test_a_window_needs_to_know_n() -> None:
    with pytest.raises(InvalidValue, match="how many attempts"):
        exact([0.5], "window^2")
