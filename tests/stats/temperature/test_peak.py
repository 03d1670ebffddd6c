"""Where a curve through a few temperatures peaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.temperature.peak import peaks


def test_a_parabola_in_the_logarithm_has_its_own_top() -> None:
    temperatures = np.array([0.2, 0.4, 0.6, 0.8, 1.2])
    tops = np.array([0.5, 0.9])
    curve = peaks(temperatures, 1 - np.log(temperatures / tops[:, None]) ** 2)
    assert curve.top == pytest.approx(tops)
    assert not curve.edge.any()
    assert (curve.low <= tops).all()
    assert (curve.high >= tops).all()


def test_a_cubic_over_the_temperature_lies_in_the_range() -> None:
    temperatures = np.array([0.1, 0.5, 0.9, 1.3])
    rise = (temperatures - 0.62) ** 2 * (1 - 0.6 * (temperatures - 0.62))
    curve = peaks(temperatures, 1 - rise)
    assert float(curve.low) <= 0.62 + 1e-9
    assert float(curve.high) >= 0.62 - 1e-9


def test_an_end_is_an_edge_unless_it_is_zero() -> None:
    temperatures = np.array([0.1, 0.2, 0.4])
    falling, rising = peaks(temperatures, -temperatures), peaks(temperatures, temperatures)
    assert float(falling.top) == pytest.approx(0.1)
    assert float(rising.top) == pytest.approx(0.4)
    assert bool(falling.edge)
    assert bool(rising.edge)
    greedy = peaks(np.array([0.0, 0.2, 0.4]), -temperatures)
    assert (float(greedy.top), float(greedy.low), bool(greedy.edge)) == (0.0, 0.0, False)


def test_a_plateau_reaches_over_all_its_temperatures() -> None:
    curve = peaks(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.1, 0.5, 0.5, 0.2]))
    assert float(curve.low) <= 0.4
    assert float(curve.high) >= 0.6
    assert float(curve.top) == pytest.approx(0.5)


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=8),
    st.floats(0.01, 1),
    st.floats(1.05, 3),
    st.booleans(),
)
def test_the_range_holds_the_best_and_stays_between_its_neighbors(
    values: list[float], first: float, ratio: float, greedy: bool
) -> None:
    temperatures = first * ratio ** np.arange(len(values), dtype=np.float64)
    if greedy:
        temperatures[0] = 0.0
    curve = peaks(temperatures, np.array(values))
    best = np.flatnonzero(np.array(values) >= max(values) - 1e-12)
    low, high = temperatures[max(best[0] - 1, 0)], temperatures[min(best[-1] + 1, len(values) - 1)]
    slack = 1e-9
    assert low - slack <= float(curve.low) <= temperatures[best[0]] + slack
    assert temperatures[best[-1]] - slack <= float(curve.high) <= high + slack
    assert float(curve.low) - slack <= float(curve.top) <= float(curve.high) + slack
