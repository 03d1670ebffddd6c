"""Every interval is made to hold the number that is reported, inside the metric's range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes, estimate
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.interval_methods import Interval, _holding
from passhat.stats.estimate.metrics import Delta, PassHat
from passhat.stats.outcomes import Completion
from passhat.stats.terms import Population

HAT, DELTA = PassHat(2), Delta(2)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 1), st.booleans())
def test_whatever_comes_the_result_is_an_interval_around_the_point(
    one: float, other: float, share: float, gain: bool
) -> None:
    low, high = sorted((one, other))
    chosen = DELTA if gain else HAT
    point = chosen.lowest + share * (chosen.highest - chosen.lowest)
    made = _holding(chosen, point, Interval(low, high, "way"))
    assert chosen.lowest <= made.low <= point <= made.high <= chosen.highest
    assert made.high > made.low
    # An end inside the range is only moved to reach the point.
    if chosen.lowest <= low <= point:
        assert made.low == pytest.approx(low, abs=1.1e-5)
        assert made.low <= low + 1e-8
    if point <= high <= chosen.highest:
        assert made.high == pytest.approx(high, abs=1.1e-5)
        assert made.high >= high - 1e-8


@pytest.mark.parametrize(
    ("low", "high", "point", "extended"),
    [
        (0.2, 0.6, 0.4, False),
        (0.2, 0.6, 0.2, False),
        (0.2, 0.6, 0.1, True),
        (0.2, 0.6, 0.7, True),
        (0.2, 0.6, 0.19995, False),  # within what the solver leaves open
        (0.2, 0.6, 0.6003, False),  # less than a thousandth of the width
        (0.2, 0.6, 0.6005, True),
        (0.2, 0.2001, 0.20025, True),  # a narrow interval: a whole width beside it
    ],
)
def test_an_end_that_moved_is_told_where_it_matters(
    low: float, high: float, point: float, extended: bool
) -> None:
    made = _holding(HAT, point, Interval(low, high, "way"))
    assert made.method == ("way, extended to the point" if extended else "way")
    assert made.low == min(low, point)
    assert made.high == max(high, point)


def test_no_width_becomes_the_smallest_width_inside_the_range() -> None:
    middle = _holding(HAT, 0.5, Interval(0.5, 0.5, "way"))
    assert middle.high - middle.low == pytest.approx(2e-5, rel=1e-3)
    top = _holding(HAT, 1.0, Interval(1.0, 1.0, "way"))
    assert (top.high, top.low < 1.0) == (1.0, True)
    bottom = _holding(HAT, 0.0, Interval(0.0, 0.0, "way"))
    assert (bottom.low, bottom.high > 0.0) == (0.0, True)


def test_ends_are_rounded_outward_to_five_decimals() -> None:
    made = _holding(HAT, 0.5, Interval(0.1234567890123456, 0.9876543210987654, "way"))
    assert (made.low, made.high) == (0.12345, 0.98766)


SUITES = {
    "new tasks": Outcomes.from_counts(4, [0, 1, 4, 4, 2]),
    "one attempt each": Outcomes.from_counts(1, [0, 1, 1, 1]),
    "one task": Outcomes.from_counts(6, [4]),
}


@pytest.mark.parametrize(
    ("suite", "word", "about", "method"),
    [
        ("new tasks", "pass^2", "new tasks", "Gaffke's bound on the histogram of task values"),
        ("new tasks", "pass^2", "these tasks", "saddlepoint frontier over the likelihood region"),
        (
            "one attempt each",
            "pass^1",
            "new tasks",
            "Gaffke's bound on the histogram of task values",
        ),
        ("one attempt each", "pass^1", "these tasks", "Clopper-Pearson interval"),
        (
            *("one task", "pass^2", "these tasks"),
            "Clopper-Pearson interval of the task's success rate",
        ),
        ("one task", "pass^2", "new tasks", "Gaffke's bound on the histogram of task values"),
    ],
)
def test_which_method_serves_which_suite(suite: str, word: str, about: str, method: str) -> None:
    assert estimate(SUITES[suite], word, about=about).interval_method == method


def test_delta_of_one_attempt_has_a_value_and_no_interval() -> None:
    made = estimate(SUITES["new tasks"], "delta^1")
    assert (made.value, made.low, made.high, made.level) == (0.0, None, None, None)
    assert made.interval_text() == "no interval"
    assert str(made) == "delta^1 = 0.000 no interval (new tasks; 5 tasks, 20 attempts)"


def test_an_ordered_metric_is_bounded_by_its_own_values_and_again_by_its_twin() -> None:
    outcomes = Outcomes.from_matrix([[1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    new = estimate(outcomes, "first^2")
    again = estimate(outcomes, "first^2", about="these tasks")
    assert new.interval_method == "Gaffke's bound on the histogram of task values"
    assert again.interval_method.endswith(" of pass^2, its unordered twin")
    twin = estimate(outcomes, "pass^2", about="these tasks")
    assert again.low is not None
    assert twin.low is not None
    assert again.low <= twin.low
    assert metric("first^2").as_count_metric(3) == metric("pass^2")


@pytest.mark.parametrize("missing", ["bound", "fail", "exclude"])
def test_the_policy_is_named_in_the_method(missing: str) -> None:
    words = {
        "bound": "missing as failed, and as passed beside it",
        "fail": "missing as failed",
        "exclude": "missing left out",
    }
    lossy = Outcomes.from_counts([3, 2], [1, 2], missing=[1, 1])
    made = estimate(lossy, "pass^1", missing=missing)
    assert made.method.split("; ")[1] == words[missing]
    assert made.missing_policy == missing
    assert (made.value_if_passed is None) is (missing != "bound")
    n, c = lossy.counts(Completion.DROPPED if missing == "exclude" else Completion.AS_FAILED)
    assert made.value == pytest.approx((c / n).mean())
    assert made.population == Population.NEW_TASKS
