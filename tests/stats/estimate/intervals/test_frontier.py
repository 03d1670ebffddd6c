"""Intervals about these tasks as a whole: mirrors, levels, copies, and coverage at fixed rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, estimate, estimate_all
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.frontier import (
    Attempted,
    Calibration,
    Statistic,
    frontier,
    strata,
)
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric, PassHat
from passhat.stats.estimate.metrics.ordered import ShuffledWindow
from passhat.stats.outcomes.cells import cells_of
from passhat.stats.terms import Terms

AGAIN = "these tasks"


def _ends(outcomes: Outcomes, word: str, level: float = 0.95) -> tuple[float, float]:
    found = estimate(outcomes, word, about=AGAIN, level=level)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


suites = st.integers(2, 6).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=2, max_size=15))
)


@settings(max_examples=max_examples(10))
@given(suites, st.data())
def test_passes_and_failures_are_mirrored(
    suite: tuple[int, list[int]], data: st.DataObject
) -> None:
    n, passed = suite
    k = data.draw(st.integers(1, n))
    low, high = _ends(Outcomes.from_counts(n, passed), f"pass^{k}")
    mirrored = _ends(Outcomes.from_counts(n, [n - c for c in passed]), f"pass@{k}")
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=2e-3)


@settings(max_examples=max_examples(8))
@given(suites)
def test_levels_are_nested_and_copies_narrow(suite: tuple[int, list[int]]) -> None:
    n, passed = suite
    outcomes = Outcomes.from_counts(n, passed)
    inner, outer = (_ends(outcomes, "pass^2", level) for level in (0.8, 0.95))
    assert outer[0] <= inner[0] + 1e-3
    assert inner[1] <= outer[1] + 1e-3
    many = _ends(Outcomes.from_counts(n, passed * 8), "pass^2")
    assert many[1] - many[0] < outer[1] - outer[0] + 1e-3


def test_the_calibration_scales_with_the_normal_quantile() -> None:
    at_95, at_50 = Calibration.at(0.95, 50), Calibration.at(0.5, 50)
    assert at_95.surprise == pytest.approx(1.959964**2 / 2, rel=1e-5)
    # Attempts that all pass with the chance of one tail keep their rates.
    assert np.exp(-at_95.fit) == pytest.approx(0.025)
    assert at_50.surprise / at_95.surprise == pytest.approx((0.67449 / 1.959964) ** 2, rel=1e-4)
    assert np.exp(-at_50.fit) == pytest.approx(0.25)


def test_an_always_passing_suite_keeps_room_for_rare_failures() -> None:
    """30 tasks x 8, all passed: a failure in 240 attempts may have gone unseen, as 3 / 240."""
    low, high = _ends(Outcomes.from_counts(8, [8] * 30), "pass^1")
    assert high == 1.0
    assert 1 - 6 / 240 < low < 1 - 1 / 240
    none_low, none_high = _ends(Outcomes.from_counts(8, [0] * 30), "pass^1")
    assert (none_low, none_high) == pytest.approx((0.0, 1 - low), abs=1e-4)


def _covered(
    rates: FloatArray, n: int, words: dict[str, float], repetitions: int, seed: int
) -> dict[str, int]:
    """How often the interval of each metric holds its true value at these fixed rates."""
    rng = np.random.default_rng(seed)
    held = dict.fromkeys(words, 0)
    for _ in range(repetitions):
        rows = (rng.random((len(rates), n)) < rates[:, None]).astype(int)
        for found in estimate_all(Outcomes.from_matrix(rows), list(words), about=AGAIN):
            assert found.low is not None
            assert found.high is not None
            truth = words[found.metric.name]
            held[found.metric.name] += found.low - 1e-9 <= truth <= found.high + 1e-9
    return held


def _delta(rates: FloatArray, k: int) -> float:
    return float(np.mean(rates**k) - np.mean(rates) ** k)


@pytest.mark.parametrize(
    ("rates", "n"),
    [
        (np.repeat([0.3, 1.0], 10), 4),
        (np.linspace(0.05, 0.95, 20), 5),
        (np.r_[np.ones(18), 0.0, 0.0], 4),
    ],
    ids=["half .3", "spread", "always or never"],
)
def test_delta_and_windows_are_covered_at_fixed_rates(rates: FloatArray, n: int) -> None:
    """24 runs each: a true coverage of .95 falls below 19 of 24 once in a thousand.

    A window takes the interval of its unordered twin, whose truth depends on n.
    """
    words = {
        "delta^2": _delta(rates, 2),
        f"delta^{n}": _delta(rates, n),
        "window^2": float(ShuffledWindow(2, n).value_at_rate(rates).mean()),
        "first^2": float(np.mean(rates**2)),
    }
    held = _covered(rates, n, words, 24, seed=n + len(rates))
    assert min(held.values()) >= 19, held


def test_a_ragged_suite_that_three_starts_do_not_solve() -> None:
    """One of 10,000 random tables: its upper end was 1.0007, a bound that says nothing."""
    passes = {
        1: [1, 1],
        2: [1, 2],
        3: [1, 3, 3],
        4: [1, 3],
        5: [0, 3, 5, 5, 5],
        6: [3, 3, 5, 5, 6, 6, 6, 6],
        7: [1, 2, 5, 7, 7],
        8: [7],
        9: [0, 6, 8, 9, 9, 9, 9],
        10: [6, 7, 9],
        11: [3, 4, 6, 9, 10, 11, 11],
        12: [12],
        13: [8, 9, 10, 12],
        14: [6, 7, 9, 11, 13, 14, 14],
        15: [14, 15],
        16: [16, 16],
    }
    n, c = zip(*((n, c) for n, counts in passes.items() for c in counts), strict=True)
    low, high = _ends(Outcomes.from_counts(n, c), "pass^1")
    assert 0.71 < low < 0.7205
    assert 0.8185 < high < 0.825


def test_ragged_suites_are_covered_where_n_goes_with_difficulty() -> None:
    """Hard tasks were tried eight times, easy ones twice: the two kinds are kept apart."""
    rng = np.random.default_rng(5)
    rates = np.repeat([0.2, 0.9], 10)
    n = np.repeat([8, 2], 10)
    truth = float(np.mean(rates**2))
    held = 0
    for _ in range(40):
        low, high = _ends(Outcomes.from_counts(n, rng.binomial(n, rates)), "pass^2")
        held += low <= truth <= high
    assert held >= 33


def test_one_metric_asked_alone_or_together_has_one_interval() -> None:
    outcomes = Outcomes.from_counts([4, 4, 6, 6, 6], [0, 3, 6, 5, 1])
    words = ["pass^1", "pass^3", "pass@3", "gpass@4:0.5", "delta^2"]
    together = estimate_all(outcomes, words, about=AGAIN)
    for word, found in zip(words, together, strict=True):
        alone = estimate(outcomes, word, about=AGAIN)
        assert (alone.low, alone.high) == pytest.approx((found.low, found.high), abs=1e-9)


def test_every_n_has_a_part_of_its_own() -> None:
    n = np.repeat([2, 3, 4, 5, 6, 7, 8, 9, 30], [1, 40, 2, 3, 40, 1, 1, 1, 2])
    cells = cells_of(n, n // 2)
    parts = strata(cells)
    assert sum(share for _, share in parts) == pytest.approx(1)
    assert sum(part.size for part, _ in parts) == len(n)
    assert len(parts) == 9
    ordered = [size for part, _ in parts for size in sorted(set(part.n.tolist()))]
    assert ordered == sorted(set(n.tolist()))
    assert len(strata(cells_of(np.full(9, 4), np.full(9, 2)))) == 1


def test_n_that_depends_on_the_task_keeps_the_interval_narrow_and_right() -> None:
    """Settled tasks with few attempts and flaky ones with many: one G would fit neither."""
    rng = np.random.default_rng(5)
    rates = np.concatenate([np.zeros(120), np.full(40, 0.7)])
    n = np.where(rates == 0, 4, 24)
    truth = float((rates**4).mean())
    held, widths, even = [], [], []
    for _ in range(20):
        low, high = TheseTasks(cells_of(n, rng.binomial(n, rates)), Terms()).interval(
            PassHat(4)
        ) or (0.0, 1.0)
        held.append(low <= truth <= high)
        widths.append(high - low)
        same = np.full(len(n), 9)
        ends = TheseTasks(cells_of(same, rng.binomial(same, rates)), Terms()).interval(PassHat(4))
        assert ends is not None
        even.append(ends[1] - ends[0])
    assert np.mean(held) >= 0.9
    assert np.mean(widths) < 0.8 * np.mean(even)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_low_end_of_delta_gives_room_for_the_bend_of_the_mean(k: int) -> None:
    """delta = E[p^k - a p] + a m - m^k - R(mu): the tangent at m, less the largest R there is."""
    outcomes = Outcomes.from_counts(4, [0] * 20 + [4] * 12 + [2, 3])
    mean = float(np.mean(outcomes.c / 4))
    slope = k * mean ** (k - 1)
    powers, rates = metric(f"pass^{k}"), metric("pass^1")
    assert isinstance(powers, CountMetric)
    assert isinstance(rates, CountMetric)

    def tangent(n: int, c: IntArray) -> FloatArray:
        sizes = np.full(len(c), n)
        return powers.values(sizes, c) - slope * rates.values(sizes, c)

    statistic = Statistic(
        Attempted.of(outcomes.histogram()), tangent, lambda p: powers.value_at_rate(p) - slope * p
    )
    low, high = frontier([statistic], Calibration.at(0.95, len(outcomes)))
    ends = _ends(outcomes, "pass^1")
    bend = max(m**k - mean**k - slope * (m - mean) for m in ends)
    assert bend > 1e-3
    shift = slope * mean - mean**k
    wanted = (low + shift - bend, min(high + shift, (k - 1) * k ** (-k / (k - 1))))
    assert wanted[0] > 0.02
    assert _ends(outcomes, f"delta^{k}") == pytest.approx(wanted, abs=2e-4)
