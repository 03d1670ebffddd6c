"""Model lines against their formulas: closed forms, SciPy's own fits, and the mirror image."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, norm

from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.forecast.band import rate_grid
from passhat.stats.forecast.lines import (
    FORMULAS,
    Lines,
    _beta,
    _beta_with_zeros,
    _logit_normal,
    _observe_curve,
    lines_of,
)
from passhat.stats.forecast.views import countable
from passhat.stats.outcomes import Histogram, Outcomes


def _cells(n: int | Sequence[int], c: Sequence[int]) -> Histogram:
    return Outcomes.from_counts(n, c).histogram()


def _lines(cells: Histogram, *words: str) -> list[Lines]:
    metrics: list[CountMetric] = [countable(word) for word in words]
    return lines_of(cells, metrics)


TWO_ATTEMPTS = _cells(2, [0] * 10 + [1] * 6 + [2] * 4)
"""pass@1 = 14/40 and pass@2 = 10/20."""


@pytest.mark.parametrize("k", [1, 2, 3, 8, 100])
def test_two_points_fix_the_power_law(k: int) -> None:
    """-log pass@k = a k^-b through (1, .35) and (2, .5)."""
    a = -math.log(0.35)
    b = math.log2(a / -math.log(0.5))
    (line,) = _lines(TWO_ATTEMPTS, f"pass@{k}")
    assert line["power law"] == pytest.approx(math.exp(-a * k**-b), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 100])
def test_two_points_fix_the_log_logit_line(k: int) -> None:
    """The odds go from 7/13 to 1 as k doubles, and again with every further doubling."""
    (line,) = _lines(TWO_ATTEMPTS, f"pass@{k}")
    odds = 7 / 13 * (13 / 7) ** math.log2(k)
    assert line["log-logit"] == pytest.approx(odds / (1 + odds), rel=1e-9)


def test_pass_hat_is_the_mirror_image_of_pass_at() -> None:
    c = [0, 1, 1, 2, 4, 5, 5, 3] * 5
    words = ("pass@3", "pass@20")
    forward = _lines(_cells(5, c), *words)
    mirrored = _lines(_cells(5, [5 - passes for passes in c]), "pass^3", "pass^20")
    for at, hat in zip(forward, mirrored, strict=True):
        # The log-logit line is drawn for pass@k only, and the inflation is at the other end.
        assert set(at) - set(hat) == {"log-logit", "zero-inflated beta-binomial"}
        assert set(hat) - set(at) == {"one-inflated beta-binomial"}
        for name in ("power law", "beta-binomial", "logit-normal"):
            assert hat[name] == pytest.approx(1 - at[name], abs=1e-3)  # each is searched for
        inflated = 1 - at["zero-inflated beta-binomial"]
        assert hat["one-inflated beta-binomial"] == pytest.approx(inflated, abs=1e-3)


def test_both_kinds_together_are_each_as_alone() -> None:
    cells = _cells(6, [0, 1, 3, 5, 6, 6, 2, 0] * 4)
    words = ("pass@12", "pass^12", "pass@30", "gpass@12:0.5")
    together = _lines(cells, *words)
    for word, line in zip(words, together, strict=True):
        (alone,) = _lines(cells, word)
        assert set(alone) == set(line)
        for name, value in line.items():  # the grid follows the largest k that is asked
            assert value == pytest.approx(alone[name], abs=2e-3)
    assert set(together[3]) == {"beta-binomial", "zero-inflated beta-binomial", "logit-normal"}


def test_every_line_has_its_formula() -> None:
    cells = _cells(6, [0, 1, 3, 5, 6, 6, 2, 0] * 4)
    drawn = {name for line in _lines(cells, "pass@9", "pass^9") for name in line}
    assert drawn == set(FORMULAS)


@pytest.mark.parametrize("shape", [(0.7, 1.8), (3.0, 2.0)])
def test_the_beta_binomial_is_the_one_that_scipy_fits(shape: tuple[float, float]) -> None:
    rng = np.random.default_rng(11)
    c = rng.binomial(8, rng.beta(*shape, 300))
    cells = _cells(8, c.tolist())

    def loss(logs: np.ndarray) -> float:
        return -float(cells.tasks @ betabinom.logpmf(cells.c, 8, *np.exp(logs)))

    a, b = np.exp(minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-5}).x)
    at, hat = _lines(cells, "pass@24", "pass^24")
    assert at["beta-binomial"] == pytest.approx(1 - betabinom.pmf(0, 24, a, b), abs=2e-3)
    assert hat["beta-binomial"] == pytest.approx(betabinom.pmf(24, 24, a, b), abs=2e-3)


def test_inflation_finds_the_tasks_that_never_pass() -> None:
    """40% of tasks at p = 0, the others at Beta(6, 4): pass@k never goes beyond 60%."""
    rng = np.random.default_rng(5)
    rates = np.where(np.arange(500) < 200, 0.0, rng.beta(6, 4, 500))
    cells = _cells(10, rng.binomial(10, rates).tolist())
    (line,) = _lines(cells, "pass@1000")
    assert line["zero-inflated beta-binomial"] == pytest.approx(0.6, abs=0.02)
    assert line["beta-binomial"] > 0.75  # no share of tasks is at 0 for good there


def test_the_curve_that_is_fitted_is_the_unbiased_one() -> None:
    """Counts [0, 1, 2, 4] of 10: pass@1 .175, pass@3 .417, pass@5 .563 (published)."""
    ks, values = _observe_curve(_cells(10, [0, 1, 2, 4]))
    seen = dict(zip(ks.tolist(), values.tolist(), strict=True))
    assert seen[1.0] == pytest.approx(0.175)
    assert seen[3.0] == pytest.approx(0.417, abs=5e-4)
    assert seen[5.0] == pytest.approx(0.563, abs=5e-4)
    assert (np.diff(ks) > 0).all()
    assert (np.diff(values) > 0).all()
    assert ks[-1] == 10.0


def test_points_at_zero_or_one_are_not_fitted() -> None:
    """Every task passed once in two attempts: pass@2 is 1, and its logarithm says nothing."""
    ks, values = _observe_curve(_cells(2, [1, 1, 1]))
    assert (ks.tolist(), values.tolist()) == ([1.0], [0.5])
    (line,) = _lines(_cells(2, [1, 1, 1]), "pass@4")
    assert "power law" not in line
    assert "log-logit" not in line
    assert 0.5 < line["beta-binomial"] <= 1


def test_the_shortest_task_ends_the_curve() -> None:
    ks, values = _observe_curve(_cells([3, 8], [1, 2]))
    assert ks.tolist() == [1.0, 2.0, 3.0]
    assert values[0] == pytest.approx((1 / 3 + 2 / 8) / 2)
    assert values[2] == pytest.approx((1 + 1 - 20 / 56) / 2)  # C(6, 3) / C(8, 3) all fail


EDGES = np.array([0.01, 0.2, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (-2.0, 1.5), (1.5, 3.0)])
def test_masses_of_the_beta_family(parameters: tuple[float, float]) -> None:
    mean = 1 / (1 + math.exp(-parameters[0]))
    size = math.exp(parameters[1])
    cdf = beta_distribution.cdf(EDGES, mean * size, (1 - mean) * size)
    wanted = np.diff(np.concatenate([[0.0], cdf, [1.0]]))
    assert _beta(EDGES, parameters) == pytest.approx(wanted, abs=1e-12)
    inflated = _beta_with_zeros(EDGES, (*parameters, math.log(1 / 3)))  # a quarter at p = 0
    assert inflated[1:] == pytest.approx(0.75 * wanted[1:], abs=1e-12)
    assert inflated[0] == pytest.approx(0.25 + 0.75 * wanted[0], abs=1e-12)


def test_masses_of_the_logit_normal_family() -> None:
    logits = np.log(EDGES / (1 - EDGES))
    cdf = norm.cdf(logits, 0.4, math.exp(0.7))
    wanted = np.diff(np.concatenate([[0.0], cdf, [1.0]]))
    assert _logit_normal(EDGES, (0.4, 0.7)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("far", [-1e6, 1e6])
def test_a_search_that_runs_away_stays_a_distribution(far: float) -> None:
    for mass in (
        _beta(EDGES, (far, far)),
        _beta_with_zeros(EDGES, (far, far, far)),
        _logit_normal(EDGES, (far, far)),
    ):
        assert np.isfinite(mass).all()
        assert (mass >= 0).all()
        assert mass.sum() == pytest.approx(1)


# -- the grid under the lines and the band ---------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 50, 2000])
def test_the_grid_of_pass_hat_is_the_mirror_image_of_that_of_pass_at(n: int) -> None:
    at, hat = (rate_grid(n, [countable(word)]) for word in ("pass@640", "pass^640"))
    assert hat == pytest.approx(1 - at[::-1], abs=1e-12)
    assert (at[0], at[-1]) == (0.0, 1.0)
    assert (np.diff(at) > 0).all()


@pytest.mark.parametrize("word", ["pass@64", "pass^64", "gpass@64:0.5"])
def test_a_finer_grid_divides_every_step(word: str) -> None:
    coarse, fine = (rate_grid(8, [countable(word)], finer=finer) for finer in (1, 4))
    assert 3.4 * len(coarse) < len(fine) < 4.6 * len(coarse)
    gaps = [np.diff(np.arcsin(np.sqrt(grid[1:-1]))).max() for grid in (coarse, fine)]
    assert gaps[1] < 0.3 * gaps[0]


def test_the_step_of_gpass_lies_between_many_points() -> None:
    """At least 50 of 100: the chance climbs within a tenth around one half."""
    plain = rate_grid(4, [countable("pass@100")])
    steep = rate_grid(4, [countable("gpass@100:0.5")])
    climb = countable("gpass@100:0.5").value_at_rate(steep)
    assert np.diff(climb).max() < 0.06
    near = [int(((grid > 0.4) & (grid < 0.6)).sum()) for grid in (plain, steep)]
    assert near[1] > 4 * near[0]


def test_a_grid_of_any_n_stays_small() -> None:
    sizes = [len(rate_grid(n, [countable("pass@1000000000")])) for n in (1, 100, 10_000, 10**6)]
    assert max(sizes) < 1_600
    assert sizes[0] < 400
