"""The inner problem: its optimum satisfies the conditions of one."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.forecast.band import rate_grid
from passhat.stats.forecast.views import countable
from passhat.stats.outcomes import Outcomes


@pytest.mark.parametrize("tau", [0.0, 5.0, 2000.0])
def test_the_optimum_satisfies_its_conditions(tau: float) -> None:
    rng = np.random.default_rng(0)
    cells = Outcomes.from_counts(8, rng.binomial(8, rng.beta(0.5, 0.5, 300))).histogram()
    chosen = countable("pass@40")
    rates = rate_grid(8, [chosen])
    b, tasks = scaled_likelihood(cells, rates), cells.tasks.astype(float)
    found = minimise(Factored.of(b), chosen.value_at_rate(rates), tasks, tau)
    reduced = tau * chosen.value_at_rate(rates) - found.prices @ b
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights >= 0).all()
    assert found.prices * (b @ found.weights) == pytest.approx(tasks, rel=1e-3)
    # No rate is cheaper than those that carry the mass.
    assert found.weights @ (reduced - reduced.min()) < 1e-4 * max(tau, 10)


def test_a_factored_matrix_is_the_matrix() -> None:
    """More columns too; of low rank (ragged attempts) and of full rank (long, far apart)."""
    rng = np.random.default_rng(1)
    ragged = rng.integers(5, 60, 400)
    for n, rank_is_low in ((ragged, True), (np.full(80, 3000), False)):
        rates = np.linspace(0.01, 0.99, len(n))
        cells = Outcomes.from_counts(n, np.round(n * rates).astype(int)).histogram()
        rates = rate_grid(int(n.max()), [countable("pass@10")])
        b, more = scaled_likelihood(cells, rates), rng.random(7)
        factored = Factored.of(b)
        assert (len(factored.right) < len(b)) is rank_is_low
        wider = factored.append_columns(scaled_likelihood(cells, more))
        whole = np.hstack([b, scaled_likelihood(cells, more)])
        assert np.abs(wider.left @ wider.right - whole).max() < 1e-9
        v = rng.random(len(b))
        assert wider.priced(v) == pytest.approx(v @ whole)
        g = rng.random((whole.shape[1],))
        assert wider.times(g) == pytest.approx(whole @ g)


def test_the_grid_has_both_ends_and_reaches_far_enough() -> None:
    for word, side in (("pass@100000", 1), ("pass^100000", -2)):
        rates = rate_grid(8, [countable(word)])
        assert rates[0] == 0
        assert rates[-1] == 1
        assert (np.diff(rates) > 0).all()
        near = min(rates[side], 1 - rates[side])
        assert near == pytest.approx(0.02 / 100_000, rel=1e-6)
