"""delta^k over new tasks: the triangle it rests on, its limits, and coverage of known truths."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, estimate
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.new_tasks_delta import gaffke_delta, gaffke_delta_clusters


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_what_one_task_can_show_lies_in_the_triangle(k: int) -> None:
    """(pass^k, pass^1) of every n and c: between u = 0, u = k v - (k - 1) and u = v."""
    for n in range(k, 25):
        for c in range(n + 1):
            u, v = comb(c, k) / comb(n, k), c / n
            assert max(0.0, k * v - (k - 1)) - 1e-12 <= u <= v + 1e-12


@given(
    st.lists(st.tuples(st.integers(4, 8), st.integers(0, 8)), min_size=1, max_size=20),
    st.sampled_from([2, 3, 4]),
)
@settings(max_examples=max_examples(30))
def test_both_ends_lie_where_the_truth_can_lie(tasks: list[tuple[int, int]], k: int) -> None:
    n = np.array([size for size, _ in tasks])
    c = np.minimum([passed for _, passed in tasks], n)
    outcomes = Outcomes.from_counts(n, c)
    found = estimate(outcomes, f"delta^{k}", about="new tasks")
    assert found.low is not None
    assert found.high is not None
    largest = (k - 1) * k ** (-k / (k - 1))
    assert 0.0 <= found.low <= found.value <= found.high
    assert found.high <= max(largest, found.value) + 1e-5
    assert found.bounds is not None
    assert found.bounds[0] == 0.0
    assert found.high <= found.bounds[1] <= largest + 2e-5


@pytest.mark.parametrize(
    ("name", "k", "tasks"),
    [("coins", 2, 15), ("always or never", 4, 20), ("spread", 3, 30), ("nearly all solved", 4, 40)],
)
def test_known_truths_are_covered(name: str, k: int, tasks: int) -> None:
    """50 suites each: a true coverage of .95 falls below .86 once in a hundred."""
    rng = np.random.default_rng(len(name))

    def draw() -> FloatArray:
        return {
            "coins": np.full(tasks, 0.5),
            "always or never": (rng.random(tasks) < 0.6).astype(float),
            "spread": rng.beta(0.8, 0.6, tasks),
            "nearly all solved": rng.beta(8, 0.8, tasks),
        }[name]

    if name == "coins":
        truth = 0.0
    elif name == "always or never":
        truth = 0.6 - 0.6**k
    else:
        a, b = (0.8, 0.6) if name == "spread" else (8, 0.8)
        moment = float(np.prod([(a + i) / (a + b + i) for i in range(k)]))
        truth = moment - (a / (a + b)) ** k
    held = 0
    for _ in range(50):
        outcomes = Outcomes.from_counts(6, rng.binomial(6, draw()))
        found = estimate(outcomes, f"delta^{k}", about="new tasks")
        assert found.low is not None
        assert found.high is not None
        held += found.low - 1e-9 <= truth <= found.high + 1e-9
    assert held >= 43


@pytest.mark.parametrize("k", [2, 4])
def test_the_unseen_task_sits_where_it_hurts_most(k: int) -> None:
    """Own draws of the weights, and the unseen task tried at every place of the triangle."""
    rates = np.array([0.0, 0.5, 1.0])
    powers = np.array([0.0, 0.05, 1.0])
    tasks = np.array([12, 2, 6])
    found = gaffke_delta(powers, rates, tasks, [k])
    rng = np.random.default_rng(12)
    weights = rng.standard_gamma(tasks, size=(6_000, 3))
    extra = rng.standard_gamma(1.0, size=6_000)
    total = weights.sum(axis=1) + extra
    share = extra / total
    power, rate = (weights @ powers) / total, (weights @ rates) / total
    smallest, largest = np.full(6_000, np.inf), np.full(6_000, -np.inf)
    for v in np.linspace(0, 1, 41):
        for u in np.linspace(max(0.0, k * v - (k - 1)), v, 5):
            value = power + share * u - (rate + share * v) ** k
            smallest, largest = np.minimum(smallest, value), np.maximum(largest, value)
    top = (k - 1) * k ** (-k / (k - 1))
    wanted = [
        float(np.clip(np.quantile(smallest, 0.025), 0, top)),
        float(np.clip(np.quantile(largest, 0.975), 0, top)),
    ]
    assert [float(found.lows[0]), float(found.highs[0])] == pytest.approx(wanted, abs=0.008)
    assert 0.02 < wanted[0] < wanted[1] < top - 0.005


def test_a_difference_below_zero_is_given_as_zero() -> None:
    """Every task passes half of four attempts: pass^3 is 0 and (pass^1)^3 is not."""
    found = estimate(Outcomes.from_counts(4, [2] * 30), "delta^3")
    assert (found.low, found.value, found.high) == (0.0, 0.0, 1e-5)


def test_the_published_case_of_a_point_below_its_interval() -> None:
    """``low`` was above the value by 1e-16, because the point was computed twice."""
    found = estimate(Outcomes.from_matrix([[1, 1, 1, 1]] * 5 + [[1, 1, 1, 0]]), "delta^2")
    assert found.low is not None
    assert found.low <= found.value


def test_more_tasks_and_lower_levels_narrow_it() -> None:
    cells = ([0.0, 1 / 6, 1.0], [0.0, 0.5, 1.0])
    widths = []
    for factor, level in ((1, 0.95), (4, 0.95), (16, 0.95), (16, 0.5)):
        ends = gaffke_delta(
            cells[0], cells[1], [3 * factor, 2 * factor, 5 * factor], [2], level=level
        )
        widths.append(float(ends.highs[0] - ends.lows[0]))
    assert widths == sorted(widths, reverse=True)


def test_one_side_leaves_the_other_at_the_limit_of_the_truth() -> None:
    arguments = ([0.0, 1.0], [0.2, 1.0], [4, 6], [2])
    lower = gaffke_delta(*arguments, sides="lower")
    upper = gaffke_delta(*arguments, sides="upper")
    assert float(lower.highs[0]) == pytest.approx(0.25)  # the largest mu - mu^2
    assert float(upper.lows[0]) == 0.0


def test_clusters_widen_it() -> None:
    rng = np.random.default_rng(4)
    rates = np.repeat(rng.beta(0.5, 0.5, 8), 6)
    labels = [f"r{i // 6}" for i in range(48)]
    powers, single = rates**3, rates
    plain = gaffke_delta_clusters(powers, single, [f"t{i}" for i in range(48)], [3])
    by_repo = gaffke_delta_clusters(powers, single, labels, [3])
    assert float(by_repo.highs[0] - by_repo.lows[0]) > float(plain.highs[0] - plain.lows[0])


def test_rows_and_ks_must_fit() -> None:
    with pytest.raises(InvalidValue, match="one row of powers for each k >= 2"):
        gaffke_delta([0.5], [0.5], [3], [1])
    with pytest.raises(InvalidValue, match="one row of powers for each k >= 2"):
        gaffke_delta([0.5], [0.5], [3], [2, 3])
