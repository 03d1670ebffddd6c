"""The limits of a program that hold unless others are set, and those that are refused."""

from __future__ import annotations

import pytest

from passhat.errors import InvalidValue
from passhat.judging.sandbox_kinds import ProgramLimits


def test_the_limits_that_the_pages_state() -> None:
    """They are part of a run's protocol, and decide verdicts."""
    limits = ProgramLimits()
    assert (limits.cpu_seconds, limits.wall_seconds) == (5.0, 40.0)
    assert (limits.memory, limits.scratch, limits.output) == (2**30, 2**24, 2**22)
    assert ProgramLimits(cpu_seconds=10).wall_seconds == 60.0
    assert ProgramLimits(wall=7.0).wall_seconds == 7.0
    assert (limits.idle_seconds, ProgramLimits(wall=6.0).idle_seconds) == (7.0, 6.0)


@pytest.mark.parametrize("seconds", [0, -1.0, 3600.5, float("nan")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidValue, match="must lie between 0 and 3600 seconds"):
        ProgramLimits(cpu_seconds=seconds)


def test_the_longest_time() -> None:
    assert ProgramLimits(cpu_seconds=3600).cpu_seconds == 3600
