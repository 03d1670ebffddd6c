"""The band: it never fails, its ends are right, and it behaves as a band must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.forecast import forecast
from passhat.stats.forecast.band import Admissible, cutoff_for, rare_tasks
from passhat.stats.forecast.views import countable
from passhat.stats.outcomes import Outcomes

Counts = tuple[list[int], list[int]]


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    """Ragged attempts, including one task, one attempt, all passed and none passed."""
    tasks = draw(st.integers(1, 25))
    n = draw(st.lists(st.integers(1, 30), min_size=tasks, max_size=tasks))
    kind = draw(st.sampled_from(["any", "none", "all"]))
    if kind != "any":
        return n, [0 if kind == "none" else size for size in n]
    return n, [draw(st.integers(0, size)) for size in n]


def ends(n: list[int] | int, c: list[int], *words: str) -> list[tuple[float, float]]:
    cells = Outcomes.from_counts(n, c).histogram()
    metrics: list[CountMetric] = [countable(word) for word in words]
    admissible = Admissible.of(cells, metrics)
    return [admissible.ends(metric, cutoff_for(0.95)) for metric in metrics]


@settings(max_examples=max_examples(30))
@given(counts(), st.sampled_from([1, 3, 40, 1000, 10**6]))
def test_never_fails_and_stays_in_range(given_counts: Counts, k: int) -> None:
    for low, high in ends(*given_counts, f"pass@{k}", f"pass^{k}", f"gpass@{k}:0.4"):
        assert -1e-9 <= low <= high <= 1 + 1e-9


@settings(max_examples=max_examples(8))
@given(counts())
def test_monotone_in_k(given_counts: Counts) -> None:
    ks = (1, 2, 8, 60, 4000)
    at = ends(*given_counts, *(f"pass@{k}" for k in ks))
    hat = ends(*given_counts, *(f"pass^{k}" for k in ks))
    for end in (0, 1):
        assert (np.diff([one[end] for one in at]) > -3e-4).all()
        assert (np.diff([one[end] for one in hat]) < 3e-4).all()


@settings(max_examples=max_examples(8))
@given(counts())
def test_failures_and_passes_are_mirror_images(given_counts: Counts) -> None:
    n, c = given_counts
    ((low, high),) = ends(n, c, "pass@50")
    ((mirror_low, mirror_high),) = ends(
        n, [size - one for size, one in zip(n, c, strict=True)], "pass^50"
    )
    assert low == pytest.approx(1 - mirror_high, abs=3e-4)
    assert high == pytest.approx(1 - mirror_low, abs=3e-4)


def test_one_attempt_gives_the_bounds_of_jensen() -> None:
    """With n = 1 only the mean is known: pass^k goes from mu^k to mu, apart from sampling."""
    tasks, k = 2_000_000, 5
    passed = [1] * (tasks * 6 // 10) + [0] * (tasks * 4 // 10)
    (hat, at) = ends(1, passed, f"pass^{k}", f"pass@{k}")
    assert hat == pytest.approx((0.6**k, 0.6), abs=2e-3)
    assert at == pytest.approx((0.6, 1 - 0.4**k), abs=2e-3)


def test_more_attempts_narrow_the_band() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 0.8, 200)
    widths = []
    for n in (1, 2, 4, 8, 32, 128):
        ((low, high),) = ends(n, rng.binomial(n, p).tolist(), "pass^16")
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 4


@pytest.mark.parametrize(
    ("passed", "word", "expected"),
    [
        # One binary observation per task: the likelihood interval of a proportion.
        ([0] * 20 + [1] * 30, "pass@1", (0.4423, 0.7447)),
        # No task passed: mass e at p = 1 costs 50 log(1 - e).
        ([0] * 50, "pass^1", (0.0, 1 - np.exp(-2.5 / 50))),
        ([0] * 50, "pass@1000", (0.0, 1.0)),
        ([1] * 50, "pass^1000", (0.0, 1.0)),
    ],
)
def test_ends_that_can_be_found_by_hand(
    passed: list[int], word: str, expected: tuple[float, float]
) -> None:
    ((low, high),) = ends(1, passed, word)
    assert (low, high) == pytest.approx(expected, abs=3e-4)


def test_agrees_with_a_brute_force_search() -> None:
    """Two tasks at most of two kinds: every G on a coarse grid of three rates, tried out."""
    cells = Outcomes.from_counts(2, [0] * 6 + [1] * 2 + [2] * 4).histogram()
    chosen = countable("pass^4")
    admissible = Admissible.of(cells, [chosen])
    rng = np.random.default_rng(0)
    rates = np.sort(rng.random((200_000, 3)), axis=1)
    rates[:, 0] *= rng.integers(0, 2, len(rates))
    rates[:, 2] = np.where(rng.random(len(rates)) < 0.5, 1.0, rates[:, 2])
    weights = rng.dirichlet([0.7] * 3, len(rates))
    chance = [((1 - rates) ** 2), (2 * rates * (1 - rates)), rates**2]
    fit = sum(
        count * np.log((weights * one).sum(axis=1))
        for count, one in zip((6, 2, 4), chance, strict=True)
    )
    best = 6 * np.log(0.5) + 2 * np.log(1 / 6) + 4 * np.log(1 / 3)  # the histogram is attainable
    value = (weights * rates**4).sum(axis=1)[np.asarray(fit) >= best - 2.5]
    low, high = admissible.ends(chosen, 2.5)
    assert low <= value.min() <= low + 0.02
    assert high - 0.02 <= value.max() <= high


def test_the_cutoff_rises_where_one_kind_of_task_is_rare() -> None:
    assert cutoff_for(0.95, 0) == pytest.approx(3.0)
    assert 2.5 < cutoff_for(0.95, 30) < cutoff_for(0.95, 3) < 3.0
    cells = Outcomes.from_counts(4, [0] * 2 + [1] * 5 + [4] * 9).histogram()
    rare = [rare_tasks(cells, countable(word)) for word in ("pass@9", "pass^9", "gpass@8:0.5")]
    assert rare == [2, 7, 2]


@pytest.mark.parametrize("tasks", [5, 10, 30])
def test_coverage_at_one_attempt_is_exact_and_holds(tasks: int) -> None:
    """With n = 1 the band of pass@1 is that of a proportion, and all outcomes can be counted."""
    passed = np.arange(tasks + 1)
    bands = []
    for c in passed.tolist():
        band = forecast(Outcomes.from_counts(1, [1] * c + [0] * (tasks - c)), "pass@1")
        bands.append((band.low, band.high))
    low, high = np.array(bands).T
    truth = np.linspace(0.002, 0.998, 499)
    chance = binom.pmf(passed[:, None], tasks, truth)
    covered = (chance * ((low[:, None] <= truth) & (truth <= high[:, None]))).sum(axis=0)
    assert covered.min() >= 0.93


def test_levels_scale_the_cutoff() -> None:
    assert cutoff_for(0.95) == pytest.approx(2.5)
    assert cutoff_for(0.99) == pytest.approx(2.5 * 6.6349 / 3.8415, rel=1e-4)
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        cutoff_for(1.0)


def test_a_thousand_tasks_with_a_hundred_attempts_reach_ten_times_further() -> None:
    rng = np.random.default_rng(1)
    outcomes = Outcomes.from_counts(100, rng.binomial(100, rng.beta(0.3, 3, 1000)))
    found = forecast(outcomes, "pass@1000")
    assert 0.6 < found.low < found.high < 1


def test_ragged_attempts() -> None:
    rng = np.random.default_rng(2)
    n = rng.integers(20, 120, 1500)
    passed = rng.binomial(n, rng.beta(0.3, 3, 1500))
    ((low, high),) = ends(n.tolist(), passed.tolist(), "pass@16")
    truth = float(np.mean(1 - (1 - np.random.default_rng(5).beta(0.3, 3, 10**6)) ** 16))
    assert low < truth < high
    assert high - low < 0.06
