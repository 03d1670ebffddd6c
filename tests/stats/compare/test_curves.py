"""The lift over k: every point by hand, flips, and what the band must hold."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes
from passhat._serialize import to_data
from passhat.stats.compare.curves import family, lift_curve
from passhat.stats.compare.lift import LiftSample
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric
from passhat.stats.outcomes import MissingPolicy

BOUND = MissingPolicy.BOUND

suites = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=10),
    )
)


@settings(max_examples=max_examples(8))
@given(suites, st.sampled_from(["pass^", "pass@"]))
def test_every_point_is_the_difference_of_two_averages(
    suite: tuple[int, list[tuple[int, int]]], word: str
) -> None:
    n, counts = suite
    a, b = (Outcomes.from_counts(n, [pair[i] for pair in counts]) for i in (0, 1))
    curve = lift_curve(pair(a, b), metric(f"{word}{n}"), BOUND, level=0.95)
    assert curve is not None
    assert [point.k for point in curve.points] == list(range(1, n + 1))
    for point in curve.points:
        k = point.k
        all_pass = [comb(c, k) / comb(n, k) for c in range(n + 1)]
        value = all_pass if word == "pass^" else [1 - share for share in all_pass[::-1]]
        differences = [value[y] - value[x] for x, y in counts]
        assert point.lift == pytest.approx(float(np.mean(differences)), abs=1e-12)
        alone = LiftSample.of(np.array(differences)).interval(0.025)
        assert point.low <= alone.low + 1e-12
        assert point.high >= alone.high - 1e-12
        assert -1 <= point.low <= point.lift <= point.high <= 1


def test_flips_are_found_where_the_sign_changes_and_levels_are_skipped() -> None:
    # A solves half of the tasks always; B solves each task half of the time.
    a = Outcomes.from_counts(4, [4, 4, 0, 0])
    b = Outcomes.from_counts(4, [2, 2, 2, 2])
    curve = lift_curve(pair(a, b, ("steady", "spread")), metric("pass@4"), BOUND, level=0.95)
    assert curve is not None
    assert curve.points[0].lift == 0.0
    assert [point.lift > 0 for point in curve.points[1:]] == [True] * 3
    assert curve.flips == ()
    # pass^k: B falls behind from k = 2 on, again without a flip, because k = 1 is level.
    hat = lift_curve(pair(a, b), metric("pass^4"), BOUND, level=0.95)
    assert hat is not None
    assert hat.flips == ()
    better = Outcomes.from_counts(4, [3, 3, 2, 2])
    flipping = lift_curve(pair(a, better, ("steady", "spread")), metric("pass^4"), BOUND, level=0.5)
    assert flipping is not None
    (flip,) = flipping.flips
    assert (flip.last_k, flip.first_k) == (1, 2)
    assert (flip.leader_before, flip.leader_after) == ("spread", "steady")
    assert not flip.shown
    assert "may be chance" in str(flip)
    assert to_data(flip)["sentence"] == str(flip)


def test_a_flip_is_shown_only_when_the_band_shows_both_sides() -> None:
    a = Outcomes.from_counts(8, [8] * 200 + [0] * 200)
    b = Outcomes.from_counts(8, [5] * 400)
    curve = lift_curve(pair(a, b, ("steady", "spread")), metric("pass^8"), BOUND, level=0.95)
    assert curve is not None
    (flip,) = curve.flips
    assert flip.shown
    assert "the band over k shows both" in str(flip)
    before = [point for point in curve.points if point.k <= flip.last_k]
    after = [point for point in curve.points if point.k >= flip.first_k]
    assert any(point.low > 0 for point in before)
    assert any(point.high < 0 for point in after)


def test_a_flip_with_one_side_shown_is_not_shown() -> None:
    """At k = 1 the lead is 0.3 points of 400 tasks, at k = 8 it is 50 points."""
    a = Outcomes.from_counts(8, [8] * 200 + [0] * 200)
    b = Outcomes.from_counts(8, [4] * 390 + [5] * 10)
    curve = lift_curve(pair(a, b), metric("pass^8"), BOUND, level=0.95)
    assert curve is not None
    (flip,) = curve.flips
    assert curve.points[-1].high < 0
    assert not flip.shown


def test_families_and_curves_that_do_not_exist() -> None:
    assert family(metric("pass^16")) == "pass^k"
    assert family(metric("gpass@8:0.25")) == "gpass@k:0.25"
    assert family(metric("rate")) == "pass^k"
    once = pair(Outcomes.from_counts([1, 9], [1, 3]), Outcomes.from_counts([1, 9], [0, 2]))
    assert lift_curve(once, metric("pass^1"), BOUND, level=0.95) is None


def test_missing_attempts_reach_over_both_extremes_at_every_k() -> None:
    a = Outcomes.from_counts([3, 4], [2, 4])
    b = Outcomes.from_counts([2, 4], [1, 1], missing=[1, 0])
    curve = lift_curve(pair(a, b), metric("pass^3"), BOUND, level=0.9)
    assert curve is not None
    for fill in (0, 1):
        filled = Outcomes.from_counts([3, 4], [1 + fill, 1])
        other = lift_curve(pair(a, filled), metric("pass^3"), BOUND, level=0.9)
        assert other is not None
        for wide, narrow in zip(curve.points, other.points, strict=True):
            assert wide.low <= narrow.lift <= wide.high


def test_text_and_data() -> None:
    a, b = Outcomes.from_counts(2, [0, 2, 1]), Outcomes.from_counts(2, [1, 2, 1])
    curve = lift_curve(pair(a, b), metric("pass^2"), BOUND, level=0.9)
    assert curve is not None
    assert str(curve) == "lift of pass^k: +16.7 points at k = 1, 0.0 points at k = 2"
    data = to_data(curve)
    assert data["level"] == 0.9
    assert isinstance(data["points"], list)
    assert data["points"][0]["k"] == 1
    assert "2 values of k" in str(data["method"])
