"""Peaks between temperatures, against polynomials fitted with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.temperature.peak import KnownRates, peaks

steps = st.lists(st.floats(0.05, 0.8), min_size=3, max_size=6)
heights = st.lists(st.integers(0, 1000), min_size=7, max_size=7)


def _top(x: np.ndarray, y: np.ndarray, degree: int) -> list[float]:
    """The maxima of the polynomial through some points, in their own unit."""
    # Centered and scaled, the system is well conditioned.
    center, scale = x.mean(), np.ptp(x)
    fitted = np.polynomial.Polynomial.fit((x - center) / scale, y, degree, domain=[-1, 1])
    slope = fitted.deriv()
    return [
        float(root.real * scale + center)
        for root in slope.roots()
        if abs(root.imag) < 1e-9 and slope.deriv()(root.real) < 0
    ]


@given(steps, heights, st.booleans())
def test_the_range_is_that_of_all_curves_through_the_neighbors(
    gaps: list[float], values: list[int], greedy: bool
) -> None:
    temperatures = np.cumsum([0.0 if greedy else 0.1, *gaps])
    curve = np.array(values[: len(temperatures)], dtype=float) / 1000
    best = int(curve.argmax())
    if (curve == curve[best]).sum() > 1:
        return  # ties are another test's
    low, high = max(best - 1, 0), min(best + 1, len(curve) - 1)
    tops = [float(temperatures[best])]
    with np.errstate(divide="ignore"):
        logs = np.log(temperatures)
    for x, back in ((temperatures, float), (logs, lambda at: float(np.exp(at)))):
        start = min(max(best - 1, 0), len(x) - 3)
        window = slice(start, start + 3)
        if np.isfinite(x[window]).all():
            found = _top(x[window], curve[window], 2)
            tops += [back(np.clip(top, x[low], x[high])) for top in found]
        for before in (1, 2) if len(x) > 3 else ():
            start = min(max(best - before, 0), len(x) - 4)
            window = slice(start, start + 4)
            if np.isfinite(x[window]).all():
                inside = [t for t in _top(x[window], curve[window], 3) if x[low] <= t <= x[high]]
                tops += map(back, inside)
    made = peaks(temperatures, curve)
    assert float(made.low) == pytest.approx(min(tops), abs=1e-5)
    assert float(made.high) == pytest.approx(max(tops), abs=1e-5)
    assert bool(made.edge) == (best == len(curve) - 1 or (best == 0 and not greedy))


def test_many_curves_at_once_are_each_their_own() -> None:
    rng = np.random.default_rng(4)
    temperatures = np.array([0.1, 0.3, 0.5, 0.9, 1.3])
    values = rng.random((3, 4, 5))
    together = peaks(temperatures, values)
    assert together.top.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            alone = peaks(temperatures, values[i, j])
            assert float(alone.top) == float(together.top[i, j])
            assert float(alone.low) == float(together.low[i, j])
            assert float(alone.high) == float(together.high[i, j])
            assert bool(alone.edge) == bool(together.edge[i, j])


RATES = KnownRates(
    "m",
    ("easy", "hard"),
    (0.2, 0.5, 1.0),
    np.array([[1.0, 0.0], [0.8, 0.1], [0.5, 0.2]]),
)


def test_known_rates_by_hand() -> None:
    assert RATES.pass_at_k(1) == pytest.approx([0.5, 0.45, 0.35])
    assert RATES.pass_at_k(2) == pytest.approx([0.5, (0.96 + 0.19) / 2, (0.75 + 0.36) / 2])
    assert RATES.best_temperature(1) == pytest.approx(0.2)
    assert 0.2 < RATES.best_temperature(2) < 1.0
    assert repr(RATES) == "<KnownRates of m: 2 tasks at 3 temperatures>"


def test_drawn_runs_have_the_rates_they_were_drawn_from() -> None:
    runs = RATES.draw(2_000, np.random.default_rng(0))
    assert [run.protocol.decoding["temperature"] for run in runs] == [0.2, 0.5, 1.0]
    assert {run.agent for run in runs} == {"m"}
    assert len({run.name for run in runs}) == 3
    for run, rates in zip(runs, RATES.rates, strict=True):
        assert run.protocol.attempts == 2_000
        assert run.outcomes.c / 2_000 == pytest.approx(rates, abs=0.05)
        # What is certain never varies.
        assert (run.outcomes.c[rates == 1.0] == 2_000).all()
        assert (run.outcomes.c[rates == 0.0] == 0).all()


def test_some_of_the_temperatures_are_the_nearest_ones() -> None:
    assert RATES.at(0.21, 0.9).temperatures == (0.2, 1.0)
    assert RATES.at(0.4, 0.6).temperatures == (0.5,)  # nearest on a scale of ratios
    assert RATES.at(0.3).temperatures == (0.2,)  # 0.3 / 0.2 < 0.5 / 0.3
    assert RATES.at(1.0).rates.tolist() == [[0.5, 0.2]]
