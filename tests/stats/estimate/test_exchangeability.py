"""The test of exchangeability by position, and where its warning is printed."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.stats.estimate import estimate, exchangeability
from passhat.stats.estimate.exchangeability import (
    PositionEffect,
    position_effect,
    position_warnings,
)
from passhat.stats.forecast import forecast
from passhat.stats.outcomes import Outcomes

FALLING = np.random.default_rng(3).random((60, 10)) < np.linspace(0.8, 0.3, 10)
FLAT = np.random.default_rng(4).random((60, 10)) < 0.55


def test_a_falling_pass_rate_is_found_and_a_flat_one_is_not() -> None:
    falling = position_effect(Outcomes.from_matrix(FALLING))
    flat = position_effect(Outcomes.from_matrix(FLAT))
    assert falling is not None
    assert flat is not None
    assert falling.p_value < 1e-6 < 0.01 < flat.p_value
    assert falling.early > falling.late + 0.2


def test_difficulty_of_tasks_is_not_taken_for_their_order() -> None:
    """Tasks that always pass have more attempts than those that pass sometimes."""
    rows = [[1] * 10] * 20 + [[1, 0, 1, 0, -1, -1, -1, -1, -1, -1]] * 5
    effect = position_effect(Outcomes.from_matrix(rows))
    assert effect is not None
    assert effect.p_value > 0.1


@pytest.mark.parametrize("tasks", [4, 60])
def test_p_values_are_right_under_exchangeability(tasks: int) -> None:
    """By permutation with few attempts, by a normal quantile with many."""
    rng = np.random.default_rng(tasks)
    values = []
    for _ in range(60):
        effect = position_effect(Outcomes.from_matrix(rng.random((tasks, 8)) < 0.5))
        values.append(1.0 if effect is None else effect.p_value)
    assert np.mean(np.array(values) < 0.1) < 0.25
    assert np.mean(values) == pytest.approx(0.5, abs=0.15)


def test_what_has_no_order_has_no_test() -> None:
    assert position_effect(Outcomes.from_counts(4, [1, 2, 3])) is None
    assert position_effect(Outcomes.from_matrix([[1, 1], [0, 0]])) is None
    assert position_warnings(Outcomes.from_matrix(FLAT), "") == ()


def test_forecasts_and_ordered_metrics_warn_and_plain_ones_do_not() -> None:
    outcomes = Outcomes.from_matrix(FALLING)
    assert any(
        "order of attempts matters" in text for text in forecast(outcomes, "pass@20").warnings
    )
    assert any("order of attempts matters" in text for text in estimate(outcomes, "first@3").notes)
    assert not any("order of attempts" in text for text in estimate(outcomes, "pass@3").notes)


def test_a_forecast_shows_what_missing_attempts_leave_open() -> None:
    rows = [[1, 1, -1, 0]] * 5 + [[0, 0, -1, 1]] * 5
    either = forecast(Outcomes.from_matrix(rows), "pass^1")
    assert (either.observed, either.observed_if_passed) == pytest.approx((0.375, 0.625))
    assert either.low < 0.375 < 0.625 < either.high
    left_out = forecast(Outcomes.from_matrix(rows), "pass^1", missing="exclude")
    assert left_out.observed_if_passed is None


@pytest.mark.parametrize(("p_value", "warns"), [(0.0009, True), (0.001, False), (0.0011, False)])
def test_a_warning_about_the_order_needs_a_p_value_below_one_in_a_thousand(
    p_value: float, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = PositionEffect(p_value, 0.9, 0.1)
    monkeypatch.setattr(exchangeability, "position_effect", lambda _: effect)
    outcomes = Outcomes.from_counts(2, [1])
    assert bool(position_warnings(outcomes, "look at the log")) is warns
