"""Variance components: recovered from a pilot, and right for any number of attempts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Outcomes
from passhat.stats.plan import Difficulty
from passhat.stats.plan.difficulty import ScoreSpread


def count_metric(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


@pytest.mark.parametrize("word", ["pass^1", "pass^4", "pass@4", "gpass@4:0.5"])
@pytest.mark.parametrize("shape", [(0.5, 0.5), (2.0, 2.0), (8.0, 0.8)], ids=str)
def test_components_are_recovered_from_a_pilot(word: str, shape: tuple[float, float]) -> None:
    chosen = count_metric(word)
    rng = np.random.default_rng(4)
    pilot = Outcomes.from_counts(8, rng.binomial(8, rng.beta(*shape, 3000)))
    found = Difficulty.from_outcomes(pilot)
    rates = rng.beta(*shape, 200_000)
    for n in (4, 16):
        values = chosen.values(np.full(n + 1, n), np.arange(n + 1))
        seen = values[rng.binomial(n, rates)]
        parts = found.components(chosen, n)
        assert parts.total == pytest.approx(np.var(seen), rel=0.12, abs=0.002)
        assert parts.between == pytest.approx(
            np.var(chosen.value_at_rate(rates)), rel=0.15, abs=0.002
        )
    assert found.mean(chosen) == pytest.approx(np.mean(chosen.value_at_rate(rates)), abs=0.02)


def test_the_published_pilot() -> None:
    """tau-bench airline, gpt-4o: successes 0..4 of 4 on 14, 12, 10, 4, 10 tasks."""
    pilot = Outcomes.from_counts(4, np.repeat(np.arange(5), [14, 12, 10, 4, 10]))
    found = Difficulty.from_outcomes(pilot)
    parts = found.components(count_metric("pass^1"), 1)
    assert found.mean(count_metric("pass^4")) == pytest.approx(0.2, abs=0.02)
    assert parts.between / parts.total == pytest.approx(0.405, abs=0.02)  # ICC(1)


@given(st.floats(0.02, 0.98), st.floats(0, 1), st.integers(4, 40))
@settings(max_examples=max_examples(30))
def test_assumptions_give_what_they_say(mean: float, icc: float, n: int) -> None:
    found = Difficulty.from_mean(mean, icc)
    chosen = count_metric("pass^1")
    assert found.mean(chosen) == pytest.approx(mean, abs=0.01)
    one, many = found.components(chosen, 1), found.components(chosen, n)
    assert one.total == pytest.approx(mean * (1 - mean), abs=0.01)
    assert one.between == pytest.approx(icc * mean * (1 - mean), abs=0.01)
    assert many.within == pytest.approx(one.within / n, abs=1e-9)
    hat = count_metric("pass^4")
    assert found.components(hat, n).within <= found.components(hat, 4).within + 1e-12


def test_a_pilot_without_a_failure_still_leaves_variance() -> None:
    parts = Difficulty.from_outcomes(Outcomes.from_counts(8, [8] * 30)).components(
        count_metric("pass^4"), 8
    )
    assert parts.between > 0.001
    assert parts.within > 0


def test_one_attempt_per_task_cannot_tell_tasks_from_attempts() -> None:
    with pytest.raises(InvalidValue, match="without a pilot, as with mean="):
        Difficulty.from_outcomes(Outcomes.from_counts(1, [0, 1, 1]))
    with pytest.raises(InvalidValue, match="without a pilot"):
        Difficulty.from_outcomes(Outcomes.from_counts(0, [0, 0], missing=4))


def test_the_noise_of_many_scored_attempts_is_scaled_from_fewer() -> None:
    """From 32 attempts on, or 8 k, the variance within a task is divided, not drawn again."""
    rng = np.random.default_rng(4)
    pilot = ScoreSpread.from_outcomes(Outcomes.from_scores(rng.random((12, 6)).round(2)))
    for word, size in (("mean", 32), ("best@2", 32), ("best@6", 48)):
        scored: Any = metric(word)
        drawn = pilot.components(scored, size).within
        assert pilot.components(scored, 4 * size).within == pytest.approx(drawn / 4)
        below = pilot.components(scored, size - 1).within
        assert below != pytest.approx(drawn * size / (size - 1), rel=1e-9)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidValue, match="mean"):
        Difficulty.from_mean(1.0, 0.5)
    with pytest.raises(InvalidValue, match="icc"):
        Difficulty.from_mean(0.5, 1.5)
    with pytest.raises(InvalidValue, match="at least 4 attempts"):
        Difficulty.from_mean(0.5, 0.5).components(count_metric("pass^4"), 3)
