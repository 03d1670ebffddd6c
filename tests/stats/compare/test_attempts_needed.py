"""What would settle a comparison, by its formula, and tried out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from passhat import Outcomes, compare
from passhat.protocol import Alternative
from passhat.stats.compare import Claim
from passhat.stats.compare.lift import LiftSample, tail_of, tasks_needed

A = [3, 5, 2, 6, 4, 7, 1, 3, 5, 4] * 2
B = [4, 5, 3, 6, 5, 7, 2, 3, 5, 5] * 2


@pytest.mark.parametrize(("a", "b"), [(A, B), (B, A)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_attempts_grow_with_the_square_of_the_reach(
    a: list[int], b: list[int], alternative: Alternative
) -> None:
    (result,) = compare(
        Outcomes.from_counts(8, a),
        Outcomes.from_counts(8, b),
        about="these tasks",
        alternative=alternative,
    ).results
    needed = result.evidence.needed
    away = (alternative == "greater" and result.lift < 0) or (
        alternative == "less" and result.lift > 0
    )
    if away:
        assert needed is None
        return
    reach = result.lift - result.low if result.lift > 0 else result.high - result.lift
    ratio = max(reach / abs(result.lift), 1.0)
    assert needed == math.ceil(8 * ratio**2)
    if result.claim is Claim.INCONCLUSIVE:
        assert needed > 8
        assert f"about {needed:,} attempts per task would settle it" in result.sentence
        assert "(8 now)" in result.sentence


def test_so_many_attempts_of_the_same_shares_settle_it() -> None:
    """Twice the needed attempts with the same shares of passes: no longer inconclusive."""
    (open_,) = compare(
        Outcomes.from_counts(8, A), Outcomes.from_counts(8, B), about="these tasks"
    ).results
    assert open_.claim is Claim.INCONCLUSIVE
    assert open_.evidence.needed is not None
    times = math.ceil(2 * open_.evidence.needed / 8)
    (settled,) = compare(
        Outcomes.from_counts(8 * times, times * np.array(A)),
        Outcomes.from_counts(8 * times, times * np.array(B)),
        about="these tasks",
    ).results
    assert settled.claim is Claim.IMPROVEMENT
    assert settled.lift == pytest.approx(open_.lift)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_tasks_needed_is_where_the_interval_leaves_zero(alternative: Alternative) -> None:
    d = np.array([0.25, 0.0, -0.25, 0.5, 0.0, 0.25, 0.0, -0.125])
    sample = LiftSample.of(d)
    tail = tail_of(0.95, alternative)
    needed = tasks_needed(sample, tail, alternative)
    assert needed is not None

    def excludes_zero(tasks: float) -> bool:
        scaled = LiftSample(sample.values, sample.counts * tasks / len(d), sample.sizes)
        interval = scaled.interval(tail, alternative)
        return interval.low > 0

    assert excludes_zero(needed)
    assert not excludes_zero(0.97 * needed - 1)
    assert tasks_needed(LiftSample.of(-d), tail, alternative) == (
        needed if alternative == "two-sided" else None
    )


def test_with_missing_attempts_the_fill_nearest_to_zero_counts() -> None:
    """The lift is +.25 with the missing failed and less where A's had passed."""
    a = Outcomes.from_counts([4, 3] * 10, [1, 1] * 10, missing=[0, 1] * 10)
    b = Outcomes.from_counts(4, [2, 3] * 10)
    (result,) = compare(a, b, about="new tasks", level=0.999).results
    lowest = result.lift_lowest
    assert 0 < lowest < result.lift
    (nearest,) = compare(
        Outcomes.from_counts(4, [1, 2] * 10), b, about="new tasks", level=0.999
    ).results
    assert nearest.lift == pytest.approx(lowest)
    assert result.evidence.needed == nearest.evidence.needed
    assert result.low == nearest.low


def test_nothing_is_needed_where_nothing_would_do() -> None:
    same = Outcomes.from_counts(4, [1, 2, 3])
    for about in ("new tasks", "these tasks"):
        (result,) = compare(same, same, about=about).results
        assert result.evidence.needed is None
        assert result.tasks_needed is None
