"""Intervals about these tasks: the frontier, its certificate, and what replaces it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from hypothesis_profiles import max_examples
from passhat import Outcomes
from passhat.stats.estimate import estimate, estimate_all, metric
from passhat.stats.estimate.intervals.frontier import (
    Attempted,
    Calibration,
    Statistic,
    _tilts,
    frontier,
)
from passhat.stats.estimate.intervals.these_tasks import clopper_pearson
from passhat.stats.estimate.metrics import CountMetric, Delta
from passhat.stats.estimate.metrics.ordered import MOST_ATTEMPTS, ShuffledWindow
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

AGAIN = "these tasks"


def _count(word: str) -> CountMetric:
    found = metric(word)
    assert isinstance(found, CountMetric)
    return found


def _ends(outcomes: Outcomes, word: str, level: float = 0.95) -> tuple[float, float]:
    found = estimate(outcomes, word, about=AGAIN, level=level)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    return found.low, found.high


@st.composite
def tables(draw: st.DrawFn) -> Outcomes:
    """Suites of every shape, ragged ones among them."""
    tasks = draw(st.integers(1, 40))
    if draw(st.booleans()):
        n = [draw(st.integers(1, 12))] * tasks
    else:
        n = draw(st.lists(st.integers(1, 12), min_size=tasks, max_size=tasks))
    kind = draw(st.sampled_from(["any", "all", "none", "extreme"]))
    choices = {
        "any": lambda size: st.integers(0, size),
        "all": lambda size: st.just(size),
        "none": lambda _size: st.just(0),
        "extreme": lambda size: st.sampled_from([0, size]),
    }
    c = [draw(choices[kind](size)) for size in n]  # type: ignore[no-untyped-call]
    return Outcomes.from_counts(n, c)


@settings(max_examples=max_examples(30))
@given(tables(), st.data())
def test_every_table_has_an_interval(outcomes: Outcomes, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, int(outcomes.n.min())))
    words = [f"pass^{k}", f"pass@{k}", f"gpass@{k}:0.5", f"delta^{k}", "pass^1", "pass@1"]
    shuffled = outcomes.take(np.argsort(data.draw(st.permutations(range(len(outcomes))))))
    again = estimate_all(shuffled, words, about=AGAIN)
    for found, other in zip(estimate_all(outcomes, words, about=AGAIN), again, strict=True):
        assert (found.low, found.high) == (other.low, other.high)
        if found.low is None or found.high is None:
            assert isinstance(found.metric, Delta)
            assert k == 1 or len(outcomes) == 1
            continue
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        assert found.high > found.low
    assert (again[-1].low, again[-1].high) == (again[-2].low, again[-2].high)


@pytest.mark.parametrize("word", ["pass^1", "pass^3", "pass@3", "gpass@4:0.5"])
def test_the_certificate_is_close_to_what_a_distribution_attains(word: str) -> None:
    """A general solver, started at several places, finds nothing outside and comes close."""
    from scipy.optimize import minimize

    solver: Any = minimize

    chosen, n = _count(word), 4
    cells = Histogram(np.full(4, n), np.array([0, 1, 3, 4]), np.array([6, 3, 5, 10]))
    calibration = Calibration.at(0.95, cells.size)
    u = chosen.values(np.full(n + 1, n), np.arange(n + 1))
    tried = Attempted.of(cells)
    low, high = frontier(
        [Statistic(tried, lambda _n, c: u[c], chosen.value_at_rate)],
        calibration,
    )
    rates = np.array([0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0])
    pmf: Any = binom.pmf(np.arange(n + 1)[:, None], n, rates)
    tasks = 24
    point = float(u[cells.c] @ cells.tasks) / tasks
    best = float(cells.tasks @ np.log(tried.likelihood.times(tried.best)))
    peaks: Any = binom.pmf(cells.c, n, cells.c / n)
    scale = pmf[cells.c] / peaks[:, None]
    tilts = _tilts(tasks, calibration.surprise)
    moments = np.log(np.exp(np.outer(tilts, u)) @ pmf)
    step = float(np.abs(np.diff(u)).max())
    limits = calibration.surprise / tasks - tilts * point
    limits += np.abs(tilts) * calibration.step * step / tasks
    constraints = [
        {"type": "eq", "fun": lambda g: g.sum() - 1},
        {"type": "ineq", "fun": lambda g: limits + moments @ g},
        {
            "type": "ineq",
            "fun": lambda g: (
                cells.tasks @ np.log(np.maximum(scale @ g, 1e-12)) - best + calibration.fit
            ),
        },
    ]
    theta = chosen.value_at_rate(rates)
    for sign, end in ((1.0, low), (-1.0, high)):
        solved = solver(
            lambda g, sign=sign: sign * (theta @ g),
            np.full(len(rates), 1 / len(rates)),
            bounds=[(0, 1)] * len(rates),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 300},
        )
        assert solved.success
        # The grid here is coarse, so it attains a little less; it must never attain more.
        assert sign * end <= solved.fun + 1e-4
        assert sign * end >= solved.fun - 0.02


def test_a_wider_level_is_a_wider_interval() -> None:
    outcomes = Outcomes.from_counts(8, [0, 1, 8, 8, 5, 3, 8, 7, 2, 8])
    widths = [np.subtract(*_ends(outcomes, "pass^4", level)[::-1]) for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


def test_many_attempts_and_many_tasks() -> None:
    rng = np.random.default_rng(1)
    wide = Outcomes.from_counts(2000, rng.binomial(2000, [0.2, 0.5, 0.9] * 4))
    low, high = _ends(wide, "pass^1")
    assert high - low < 0.03
    rates = rng.beta(0.8, 0.6, 20_000)
    low, high = _ends(Outcomes.from_counts(4, rng.binomial(4, rates)), "pass^2")
    assert low < float(np.mean(rates**2)) < high
    assert high - low < 0.02


def test_identical_attempts_do_not_stop_it() -> None:
    """Every task passes exactly half of its attempts: less spread than independent attempts."""
    found = estimate(Outcomes.from_counts(8, [4] * 3000), "pass^8", about=AGAIN)
    assert found.low == found.value == 0.0
    assert found.high is not None
    assert 0 < found.high < 0.02


def test_one_task_is_its_success_rate_put_through_the_metric() -> None:
    found = _ends(Outcomes.from_counts(50, [0]), "pass^8")
    assert found == pytest.approx((0.0, clopper_pearson(0, 50, 0.95)[1] ** 8), abs=1e-5)
    assert found[1] > found[0]
    low, high = clopper_pearson(30, 50, 0.95)
    assert _ends(Outcomes.from_counts(50, [30]), "pass@2") == pytest.approx(
        (1 - (1 - low) ** 2, 1 - (1 - high) ** 2), abs=1e-5
    )
    sure = _ends(Outcomes.from_counts(1000, [1000]), "pass@8")
    assert sure[0] < sure[1] == 1.0


@pytest.mark.parametrize("word", ["pass^1", "pass@1", "rate", "first^1", "first@1", "window^1"])
def test_one_attempt_per_task_is_clopper_and_pearsons_interval(word: str) -> None:
    outcomes = Outcomes.from_matrix([[1]] * 12 + [[0]] * 8)
    for about in ("new tasks", AGAIN):
        found = estimate(outcomes, word, about=about)
        assert (found.low, found.high) == pytest.approx(clopper_pearson(12, 20, 0.95), abs=1e-5)


def test_a_gate_takes_ends_that_hold_one_by_one() -> None:
    outcomes = Outcomes.from_counts(1, [1] * 12 + [0] * 8)
    for about in ("new tasks", AGAIN):
        found = estimate(outcomes, "pass^1", Terms(equal_tails=True), about=about)
        assert (found.low, found.high) == pytest.approx(clopper_pearson(12, 20, 0.95), abs=1e-5)


@pytest.mark.parametrize(("w", "n"), [(1, 5), (2, 5), (3, 8), (4, 9), (6, 6)])
def test_every_sequence_is_counted(w: int, n: int) -> None:
    counted = [0] * (n + 1)
    for row in product((0, 1), repeat=n):
        counted[sum(row)] += any(all(row[i : i + w]) for i in range(n - w + 1))
    assert ShuffledWindow(w, n).ways() == counted


def test_extreme_windows_are_pass_at_and_pass_hat() -> None:
    p = np.array([0.0, 0.03, 0.5, 0.97, 1.0])
    assert ShuffledWindow(1, 12).value_at_rate(p) == pytest.approx(1 - (1 - p) ** 12)
    assert ShuffledWindow(12, 12).value_at_rate(p) == pytest.approx(p**12)


def test_a_window_has_an_interval_up_to_a_limit() -> None:
    outcomes = Outcomes.from_matrix([[1, 1, 0, 1], [0, 1, 0, 0]])
    assert "in any order, its unordered twin" in estimate(outcomes, "window^2", about=AGAIN).method
    rows = np.ones((2, MOST_ATTEMPTS + 1), int)
    none = estimate(Outcomes.from_matrix(rows), "window^2", about=AGAIN)
    assert none.low is None
    assert "no interval" in none.method
