"""The limits of attempts that hold unless others are set."""

from __future__ import annotations

from passhat.runner.spending import Spending
from passhat.runner.time_limits import AttemptLimits


def test_the_limits_that_the_pages_state() -> None:
    """They are part of the protocol of a run: another default would begin other runs."""
    limits = AttemptLimits()
    assert (limits.max_steps, limits.step_seconds, limits.attempt_seconds) == (30, 60.0, 600.0)
    spending = Spending()
    assert (spending.cost, spending.tokens, spending.retries) == (None, None, 8)
