"""One level for several intervals."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.stats.compare import LiftSample, compare
from passhat.stats.compare.lift import simultaneous_tail
from passhat.stats.estimate import pass_hat_k
from passhat.stats.outcomes import Outcomes


def test_one_interval_keeps_its_tail() -> None:
    d = np.array([[0.5], [0.0], [1.0]])
    assert simultaneous_tail(d, 0.95, "two-sided") == pytest.approx(0.025)
    assert simultaneous_tail(d, 0.95, "greater") == pytest.approx(0.05)


def test_strangers_pay_bonferroni_and_copies_almost_nothing() -> None:
    rng = np.random.default_rng(0)
    strangers = rng.integers(-4, 5, (2000, 4)) / 4
    copies = np.stack([strangers[:, 0]] * 4, axis=1)
    assert simultaneous_tail(strangers, 0.95, "two-sided") == pytest.approx(0.025 / 4, rel=0.06)
    assert simultaneous_tail(copies, 0.95, "two-sided") > 0.022
    assert simultaneous_tail(strangers, 0.95, "greater") == pytest.approx(0.05 / 4, rel=0.1)


def test_tasks_may_come_in_parts() -> None:
    rng = np.random.default_rng(1)
    d = np.cumsum(rng.integers(-2, 3, (700, 5)), axis=1).clip(-8, 8) / 8
    d[600:, 0] = 1  # whole, and far from the mean of those before
    d[:600, 1] = 0
    whole = simultaneous_tail(d, 0.95, "two-sided")
    for size in (1, 64, 699):
        parts = (d[start : start + size] for start in range(0, len(d), size))
        assert simultaneous_tail(parts, 0.95, "two-sided") == pytest.approx(whole, rel=1e-7)


def test_the_curve_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    a, b = (Outcomes.from_counts(6, rng.integers(0, 7, 50)) for _ in range(2))
    (whole,) = compare(a, b, "pass^4").curves
    monkeypatch.setattr("passhat.stats.compare.curves.ROWS", 7)
    (parts,) = compare(a, b, "pass^4").curves
    for one, other in zip(whole.points, parts.points, strict=True):
        assert (one.k, one.lift) == (other.k, other.lift)
        assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-7)


def test_nothing_seen_is_no_reason_to_fail() -> None:
    tail = simultaneous_tail(np.zeros((10, 3)), 0.95, "two-sided")
    assert 0.025 / 3 <= tail <= 0.025


def test_the_band_over_k_holds_at_all_k_at_once() -> None:
    """At least 95% of the time, less three Monte Carlo standard errors."""
    rng = np.random.default_rng(5)
    repetitions, tasks, n = 40, 50, 4
    ks = np.arange(1, n + 1)
    values = np.stack([np.asarray(pass_hat_k(n, np.arange(n + 1), int(k))) for k in ks], axis=1)
    held = 0
    for _ in range(repetitions):
        p = rng.beta(1, 1, tasks)
        d = values[rng.binomial(n, p)] - values[rng.binomial(n, p)]
        tail = simultaneous_tail(d, 0.95, "two-sided")
        found = [LiftSample.of(column).interval(tail) for column in d.T]
        held += all(interval.low <= 0 <= interval.high for interval in found)
    assert held / repetitions >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repetitions)
