"""The parts of the interval about these tasks: moments, points and limits, each by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from hypothesis_profiles import max_examples
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.intervals import interior_point
from passhat.stats.estimate.intervals.frontier import (
    Attempted,
    Calibration,
    Statistic,
    _rate_grid,
    _tilts,
    frontier,
    holds,
    strata,
)
from passhat.stats.estimate.intervals.these_tasks import (
    TheseTasks,
    clopper_pearson,
)
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.outcomes import Histogram, Outcomes
from passhat.stats.terms import Terms


def _cells(n: int | list[int], c: list[int]) -> Histogram:
    return Outcomes.from_counts(n, c).histogram()


def _statistic(cells: Histogram, metric: CountMetric, **options: float) -> Statistic:
    def values(n: int, c: IntArray) -> FloatArray:
        return metric.values(np.full(len(c), n), c)

    return Statistic(Attempted.of(cells), values, metric.value_at_rate, **options)


def test_the_point_is_the_mean_over_tasks() -> None:
    cells = _cells([2, 2, 4, 4, 4], [2, 1, 4, 3, 0])
    wanted = (1 + 0 + 1 + Fraction(comb(3, 2), comb(4, 2)) + 0) / 5
    assert _statistic(cells, PassHat(2)).point() == pytest.approx(float(wanted))
    shared = _statistic(cells, PassHat(2), share=0.25, sign=-1.0)
    assert shared.point() == pytest.approx(-0.25 * float(wanted))


def test_log_moments_are_sums_over_all_numbers_of_passes() -> None:
    """log E exp(s u | p), averaged over the tasks' different n."""
    cells = _cells([2, 4, 4], [1, 2, 4])
    rates, tilts = np.array([0.0, 0.3, 0.9, 1.0]), np.array([-5.0, 0.1, 20.0])
    found = _statistic(cells, PassHat(2)).log_moments(rates, tilts)
    for i, s in enumerate(tilts):
        for j, p in enumerate(rates):
            total = 0.0
            for n, share in ((2, 1 / 3), (4, 2 / 3)):
                moment = sum(
                    comb(n, c) * p**c * (1 - p) ** (n - c) * exp(s * comb(c, 2) / comb(n, 2))
                    for c in range(n + 1)
                )
                total += share * log(moment)
            assert found[i, j] == pytest.approx(total, rel=1e-10, abs=1e-12)


def test_a_statistic_that_is_subtracted_is_tilted_the_other_way() -> None:
    cells = _cells(3, [0, 1, 3])
    rates, tilts = np.linspace(0, 1, 5), np.array([-2.0, 2.0])
    plain = _statistic(cells, PassAt(2)).log_moments(rates, tilts)
    turned = _statistic(cells, PassAt(2), sign=-1.0).log_moments(rates, -tilts)
    assert turned == pytest.approx(plain, abs=1e-12)


def test_steps_and_spread_of_a_metric() -> None:
    cells = _cells([2, 4], [1, 2])
    found = _statistic(cells, PassHat(2))
    assert found.largest_step() == pytest.approx(1.0)  # 0, 0, 1 with two attempts
    assert _statistic(_cells(4, [2]), PassHat(2)).largest_step() == pytest.approx(0.5)
    assert found.spread() == pytest.approx(1.0)
    assert _statistic(_cells(8, [3]), PassHat(1)).largest_step() == pytest.approx(1 / 8)


@pytest.mark.parametrize("n", [1, 7, 60])
def test_probabilities_are_binomial_and_kept(n: int) -> None:
    attempted = Attempted.of(_cells(n, [0, n]))
    found = attempted.probabilities(n, attempted.rates)
    wanted = binom.pmf(np.arange(n + 1)[:, None], n, attempted.rates)
    assert found == pytest.approx(wanted, abs=1e-12)
    assert attempted.probabilities(n, attempted.rates) is found
    assert attempted.best.sum() == pytest.approx(1.0)


def test_the_most_likely_distribution_of_sure_tasks_sits_at_both_ends() -> None:
    attempted = Attempted.of(_cells(8, [0] * 3 + [8] * 9))
    mean = float(attempted.best @ attempted.rates)
    assert mean == pytest.approx(0.75, abs=1e-3)
    assert attempted.best[[0, -1]] == pytest.approx([0.25, 0.75], abs=2e-3)


@pytest.mark.parametrize(("n", "finer"), [(1, 1), (8, 1), (8, 3), (5000, 1)])
def test_grids_of_rates_are_mirrored_and_reach_both_ends(n: int, finer: int) -> None:
    grid = _rate_grid(n, finer)
    assert (grid[0], grid[-1]) == (0.0, 1.0)
    assert grid == pytest.approx(1 - grid[::-1], abs=1e-12)
    assert (np.diff(grid) > 0).all()
    widest = float(np.diff(np.arcsin(np.sqrt(grid))).max())
    assert widest <= max(0.055 / np.sqrt(n), 0.0035) / finer + 1e-9


@pytest.mark.parametrize("tasks", [1, 5, 200, 10**6])
def test_tilts_have_both_signs_and_even_ratios(tasks: int) -> None:
    tilts = _tilts(tasks, 1.92)
    half = len(tilts) // 2
    assert tilts[:half] == pytest.approx(-tilts[half:][::-1])
    assert tilts[-1] == pytest.approx(25.0)
    ratios = tilts[half + 1 :] / tilts[half:-1]
    assert ratios.max() <= 1.5 + 1e-9
    assert ratios == pytest.approx(np.full(len(ratios), ratios[0]))


def test_the_calibration_at_95_percent_is_the_published_one() -> None:
    at_95 = Calibration.at(0.95, 1000)
    assert at_95.surprise == pytest.approx(1.9207, abs=1e-4)
    assert at_95.fit == pytest.approx(3.6889, abs=1e-4)
    assert at_95.step == pytest.approx(0.5025)
    assert Calibration.at(0.8, 5).surprise == pytest.approx(norm.ppf(0.9) ** 2 / 2)
    assert Calibration.at(0.8, 5).step == 0.75


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_each_end_holds_at_the_rates_that_are_hardest_for_five_tasks(level: float) -> None:
    """Exact: all histograms of 5 tasks x 2, at rates found by climbing on the chance of a miss."""
    metric, tail = PassHat(2), (1 - level) / 2
    ends: dict[tuple[int, ...], tuple[float, float]] = {}
    for passes in combinations_with_replacement(range(3), 5):
        found = TheseTasks(_cells(2, list(passes)), Terms(level=level)).interval(metric)
        assert found is not None
        point = float(np.mean([c == 2 for c in passes]))
        ends[passes] = (min(found[0], point), max(found[1], point))
    for rates in ([0.74] * 5, [0.59] * 5, [0.3] * 5, [0.0, 0.88, 0.88, 0.88, 0.88], [0.5] * 5):
        truth = float(np.mean(np.square(rates)))
        below = above = 0.0
        for counts in product(range(3), repeat=5):
            chance = float(np.prod(binom.pmf(counts, 2, rates)))
            low, high = ends[tuple(sorted(counts))]
            below += chance * (high < truth - 1e-9)
            above += chance * (low > truth + 1e-9)
        assert max(below, above) <= 1.2 * tail
        assert below + above <= 1 - level + 0.02


def test_sizes_are_never_joined_where_n_goes_with_the_rate() -> None:
    """Timeouts left out: 16 tasks of one attempt at .5 among 84 that always pass."""
    rng = np.random.default_rng(5)
    n = np.array([1] * 16 + [7] * 16 + [8] * 68)
    rates = np.where(n == 1, 0.5, 1.0)
    held = 0
    for _ in range(20):
        c = rng.binomial(n, rates)
        found = TheseTasks(_cells(n.tolist(), c.tolist()), Terms()).interval(PassHat(1))
        assert found is not None
        held += found[0] <= rates.mean() <= found[1]
    assert held >= 17  # joined, it was .75


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40)), min_size=1, max_size=12))
@settings(max_examples=max_examples(30))
def test_strata_hold_every_task_once_in_order_of_attempts(sizes: list[tuple[int, int]]) -> None:
    n = [size for size, count in sizes for _ in range(count)]
    cells = _cells(n, [size // 2 for size in n])
    parts = strata(cells)
    assert sum(part.size for part, _ in parts) == len(n)
    assert sum(share for _, share in parts) == pytest.approx(1.0)
    assert len(parts) == min(len(set(n)), 24)
    edges = [(int(part.n.min()), int(part.n.max())) for part, _ in parts]
    assert all(before[1] < after[0] for before, after in pairwise(edges))
    for part, share in parts:
        assert share == pytest.approx(part.size / len(n))


@pytest.mark.parametrize("metric", [PassHat(2), PassAt(3), PassHat(1)], ids=str)
def test_holding_a_value_and_the_ends_tell_one_story(metric: CountMetric) -> None:
    cells = _cells(4, [0, 1, 1, 2, 3, 4, 4, 4])
    statistic, calibration = _statistic(cells, metric), Calibration.at(0.9, cells.size)
    low, high = frontier([statistic], calibration)
    assert 0 <= low < statistic.point() < high <= 1
    for value, inside in (
        (low - 0.01, False),
        (low + 0.01, True),
        (statistic.point(), True),
        (high - 0.01, True),
        (high + 0.01, False),
    ):
        assert holds([statistic], calibration, value) is inside


def test_a_difference_of_a_suite_with_itself_is_symmetric_and_wider() -> None:
    cells = _cells(4, [0, 1, 1, 2, 3, 4, 4, 4])
    calibration = Calibration.at(0.95, cells.size)
    plus, minus = _statistic(cells, PassHat(1)), _statistic(cells, PassHat(1), sign=-1.0)
    low, high = frontier([plus, minus], calibration)
    assert low == pytest.approx(-high, abs=1e-3)
    alone = frontier([plus], calibration)
    assert high - low > alone[1] - alone[0]


# -- exact binomial intervals ----------------------------------------------------------------------


@pytest.mark.parametrize(("c", "n"), [(0, 1), (1, 1), (0, 9), (3, 9), (9, 9), (40, 113)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_clopper_pearson_is_scipys_exact_interval(c: int, n: int, level: float) -> None:
    wanted = binomtest(c, n).proportion_ci(level, method="exact")
    assert clopper_pearson(c, n, level) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@pytest.mark.parametrize("c", [0, 3, 8])
@pytest.mark.parametrize("metric", [PassHat(4), PassAt(4), PassHat(1)], ids=str)
def test_one_task_is_its_rates_interval_put_through_the_metric(c: int, metric: CountMetric) -> None:
    low, high = clopper_pearson(c, 8, 0.95)
    found = TheseTasks(_cells(8, [c]), Terms()).interval(metric)
    assert found == pytest.approx(tuple(metric.value_at_rate(np.array([low, high]))), abs=1e-12)


def test_delta_of_one_task_or_of_one_attempt_has_no_interval() -> None:
    from passhat.stats.estimate.metrics import Delta

    assert TheseTasks(_cells(8, [3]), Terms()).interval(Delta(2)) is None
    assert TheseTasks(_cells(8, [3, 4]), Terms()).interval(Delta(1)) is None


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(
    ("sizes", "metric"),
    [((3, 3, 3, 12), PassHat(3)), ((2, 2, 2, 4, 4, 4), PassHat(2)), ((1, 2, 3, 4), PassHat(1))],
)
@pytest.mark.parametrize("others", ["pass", "fail"])
def test_whichever_attempts_all_pass_keep_the_rates_at_which_that_is_likely_enough(
    sizes: tuple[int, ...], metric: CountMetric, others: str, level: float
) -> None:
    """Attempts of one n, or of all, that pass at rates where that has a chance above the tail.

    The others' outcome is certain. An interval without those rates would miss too often.
    """
    n = np.array(sizes)
    for size in (*np.unique(n), None):
        varies = np.full(len(n), True) if size is None else n == size
        rate = (1.02 * (1 - level) / 2) ** (1 / n[varies].sum())
        rates = np.where(varies, rate, 1.0 if others == "pass" else 0.0)
        passes = np.where(rates > 0, n, 0)
        ends = TheseTasks(_cells(list(sizes), passes.tolist()), Terms(level=level)).interval(metric)
        assert ends is not None
        assert ends[0] <= metric.value_at_rate(rates).mean()


@pytest.mark.parametrize("rates", [7, 30, 401, 450])
@pytest.mark.parametrize("has_blocks", [False, True])
def test_both_ways_to_solve_a_step_solve_it(rates: int, has_blocks: bool) -> None:
    """On small grids by Cholesky, on larger ones by Woodbury's formula; rows are fewer."""
    rng = np.random.default_rng(rates)
    rows, diagonal = rng.random((9, rates)), rng.random(9) + 0.1
    scale, known = rng.random(rates) + 0.1, rng.random((3, rates))
    half = rng.random((2, 2))
    blocks = [(4, half @ half.T + np.eye(2))] if has_blocks else []
    weight = np.diag(diagonal)
    for at, block in blocks:
        weight[at : at + 2, at : at + 2] = block
    expected = np.linalg.solve(np.diag(1 / scale) + rows.T @ weight @ rows, known.T).T
    found = interior_point._solver(rows, diagonal, blocks, scale)(known)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)
