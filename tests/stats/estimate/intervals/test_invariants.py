"""The invariants every interval must keep, and small coverage checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import beta

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.dirichlet_mean import lower_quantile
from passhat.stats.estimate.intervals.new_tasks import Intervals, gaffke, gaffke_clusters
from passhat.stats.estimate.intervals.new_tasks_delta import gaffke_delta, gaffke_delta_clusters

unit = st.floats(0.0, 1.0, allow_subnormal=False)
suites = st.lists(st.tuples(st.integers(4, 9), st.integers(0, 9)), min_size=1, max_size=30).map(
    lambda pairs: [(n, min(c, n)) for n, c in pairs]
)


def columns(suite: list[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    n, c = np.array(suite, dtype=float).T
    return n, c


def pass_hat(n: FloatArray, c: FloatArray, k: int) -> FloatArray:
    return np.asarray(comb(c, k) / comb(n, k))


def assert_sound(found: Intervals, lowest: float = 0.0, highest: float = 1.0) -> None:
    slack = 1e-12
    assert (found.lows <= found.points).all()
    assert (found.points <= found.highs).all()
    assert (found.lows >= lowest - slack).all()
    assert (found.highs <= highest + slack).all()
    assert (found.highs > found.lows).all()


def assert_same(one: Intervals, two: Intervals) -> None:
    np.testing.assert_allclose(one.lows, two.lows, atol=1e-9)
    np.testing.assert_allclose(one.highs, two.highs, atol=1e-9)


@given(st.lists(unit, min_size=1, max_size=40), st.sampled_from([0.8, 0.95, 0.99]))
def test_gaffke_is_sound_and_blind_to_order(values: list[float], level: float) -> None:
    found = gaffke(values, np.ones(len(values)), level=level)
    assert_sound(found)
    assert not found.extended.any()
    assert_same(found, gaffke(values[::-1], np.ones(len(values)), level=level))


@given(suites)
def test_a_list_of_tasks_and_its_histogram_agree(suite: list[tuple[int, int]]) -> None:
    n, c = columns(suite)
    values = np.stack([pass_hat(n, c, k) for k in (1, 2, 4)])
    cells, counts = np.unique(values, axis=1, return_counts=True)
    assert_same(gaffke(values, np.ones(len(c))), gaffke(cells, counts))


@given(st.integers(1, 400), st.data())
def test_binary_values_give_clopper_pearson(tasks: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, tasks))
    found = gaffke([0.0, 1.0], [tasks - good, good])
    low = beta.ppf(0.025, good, tasks - good + 1) if good else 0.0
    high = beta.ppf(0.975, good + 1, tasks - good) if good < tasks else 1.0
    assert found.lows[0] == pytest.approx(low, abs=1e-7)
    assert found.highs[0] == pytest.approx(high, abs=1e-7)


@pytest.mark.parametrize(("tasks", "good"), [(10**6, 1), (10**6, 500_000), (10**6, 10**6), (1, 1)])
def test_very_large_and_very_small_suites(tasks: int, good: int) -> None:
    found = gaffke([0.0, 1.0], [tasks - good, good])
    assert found.lows[0] == pytest.approx(beta.ppf(0.025, good, tasks - good + 1), rel=1e-5)


def test_quantile_agrees_with_simulation() -> None:
    rng = np.random.default_rng(5)
    values = rng.random(12) ** 3
    weights = rng.standard_gamma(np.ones(13), size=(400_000, 13))
    simulated = np.quantile(weights[:, 1:] @ values / weights.sum(axis=1), 0.025)
    exact = lower_quantile(values[None], np.ones(12), 0.025)[0]
    assert exact == pytest.approx(simulated, abs=6e-4)


def test_other_ranges_and_one_side() -> None:
    rng = np.random.default_rng(6)
    values = rng.uniform(-1, 1, 30)
    wide = gaffke(values, np.ones(30), lowest=-1, highest=1)
    same = gaffke((values + 1) / 2, np.ones(30))
    np.testing.assert_allclose(wide.lows, 2 * same.lows - 1)
    lower = gaffke(values, np.ones(30), lowest=-1, highest=1, sides="lower", level=0.975)
    assert lower.lows[0] == pytest.approx(wide.lows[0])
    assert lower.highs[0] == 1.0


@pytest.mark.parametrize(
    ("values", "weights"), [([0.5, 1.2], [1, 1]), ([0.5], [0]), ([0.5], [1, 2]), ([], [])]
)
def test_nonsense_is_refused(values: list[float], weights: list[float]) -> None:
    with pytest.raises(InvalidValue, match=r"got|weights"):
        gaffke(values, weights)


@given(st.lists(st.tuples(unit, st.integers(0, 5)), min_size=1, max_size=30))
def test_clusters(tasks: list[tuple[float, int]]) -> None:
    values, labels = zip(*tasks, strict=True)
    found = gaffke_clusters(values, labels)
    assert_sound(found)
    assert_same(found, gaffke_clusters(values[::-1], labels[::-1]))
    alone = gaffke_clusters(values, np.arange(len(values)))
    np.testing.assert_allclose(alone.lows, gaffke(values, np.ones(len(values))).lows, atol=1e-8)


@settings(max_examples=max_examples(30))
@given(suites)
def test_delta_is_sound_and_repeatable(suite: list[tuple[int, int]]) -> None:
    n, c = columns(sorted(suite))
    rows = [pass_hat(n, c, k) for k in (2, 4)]
    found = gaffke_delta(rows, c / n, np.ones(len(c)), [2, 4], draws=2000)
    assert_sound(found, lowest=-(0.75**4))
    alone = gaffke_delta(rows[1], c / n, np.ones(len(c)), [4], draws=2000)
    np.testing.assert_allclose(alone.lows, found.lows[1:], atol=1e-12)


@settings(max_examples=max_examples(30))
@given(suites, st.randoms(use_true_random=False))
def test_delta_over_clusters(suite: list[tuple[int, int]], random: Any) -> None:
    n, c = columns(suite)
    labels = np.array([random.randrange(4) for _ in suite])
    rows = np.stack([pass_hat(n, c, k) for k in (2, 4)])
    found = gaffke_delta_clusters(rows, c / n, labels, [2, 4], draws=2000)
    assert_sound(found, lowest=-(0.75**4))
    order = np.array(random.sample(range(len(suite)), len(suite)))
    # Another order of tasks and other names of clusters.
    moved = gaffke_delta_clusters(
        rows[:, order], (c / n)[order], 9 - labels[order], [2, 4], draws=2000
    )
    assert_same(found, moved)


def test_delta_over_clusters_of_one_task_is_delta() -> None:
    rng = np.random.default_rng(11)
    n, c = columns([(8, int(one)) for one in rng.binomial(8, rng.beta(0.5, 0.5, 40))])
    powers, rates = pass_hat(n, c, 4), c / n
    alone = gaffke_delta(powers, rates, np.ones(40), [4])
    found = gaffke_delta_clusters(powers, rates, np.arange(40), [4])
    # Both by draws: an end may differ by a few of its standard errors.
    np.testing.assert_allclose(found.lows, alone.lows, atol=0.006)
    np.testing.assert_allclose(found.highs, alone.highs, atol=0.006)
    # Each task twice in a cluster of its own: the same means from the same 40 draws.
    twice = gaffke_delta_clusters(
        np.tile(powers, 2), np.tile(rates, 2), np.tile(np.arange(40), 2), [4]
    )
    np.testing.assert_allclose(twice.lows, found.lows, atol=1e-9)
