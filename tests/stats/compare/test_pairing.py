"""Which tasks are paired, and what their differences are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import (
    InvalidValue,
    NotComparable,
    OrderUnknown,
    TooFewAttempts,
    UnequalAttempts,
)
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import estimate, metric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes

BOUND = MissingPolicy.BOUND


def test_tasks_are_paired_by_id_in_any_order() -> None:
    a = Outcomes.from_counts(2, [2, 0, 1], ["x", "y", "only-a"])
    b = Outcomes.from_counts(2, [1, 2, 0], ["y", "x", "only-b"])
    found = pair(a, b)
    assert found.a.tasks == found.b.tasks == ("x", "y")
    assert (found.only_a, found.only_b, len(found)) == (("only-a",), ("only-b",), 2)
    assert found.differences(metric("pass^1"), BOUND).values.tolist() == [0.0, 0.5]


def test_nothing_shared_is_refused_with_what_was_seen() -> None:
    a, b = Outcomes.from_counts(1, [1], ["t1"]), Outcomes.from_counts(1, [1], ["task-1"])
    with pytest.raises(NotComparable, match=r"no task is in both.*t1.*task-1") as caught:
        pair(a, b)
    assert "columns={'task'" in (caught.value.hint or "")


@given(
    st.lists(st.tuples(st.integers(3, 6), st.integers(0, 6)), min_size=1, max_size=12),
    st.sampled_from(["pass^1", "pass@3", "pass^2", "gpass@3:0.5", "rate"]),
)
def test_values_by_task_average_to_the_estimate(rows: list[tuple[int, int]], word: str) -> None:
    outcomes = Outcomes.from_counts([n for n, _ in rows], [min(n, c) for n, c in rows])
    values = values_by_task(outcomes, metric(word), Completion.AS_FAILED)
    assert values.mean() == pytest.approx(estimate(outcomes, word).value)


def test_missing_attempts_reach_both_extremes() -> None:
    a = Outcomes.from_counts([1, 2], [1, 0], missing=[1, 0])
    b = Outcomes.from_counts([2, 1], [1, 1], missing=[0, 1])
    found = pair(a, b).differences(metric("pass^1"), BOUND)
    assert found.values.tolist() == [0.0, 0.5]
    assert found.lowest.tolist() == [-0.5, 0.5]
    assert found.highest.tolist() == [0.0, 1.0]
    assert found.open == 2
    left_out = pair(a, b).differences(metric("pass^1"), MissingPolicy.EXCLUDE)
    assert left_out.values.tolist() == [-0.5, 1.0]
    assert left_out.open == 0


def test_ordered_metrics_are_paired_too() -> None:
    a = Outcomes.from_matrix([[1, 0, 0], [0, 1, 1]])
    b = Outcomes.from_matrix([[0, 1, 0], [1, 1, 1]])
    found = pair(a, b)
    assert found.differences(metric("first@1"), BOUND).values.tolist() == [-1.0, 1.0]
    assert found.differences(metric("first^2"), BOUND).values.tolist() == [0.0, 1.0]
    assert found.differences(metric("window^2"), BOUND).values.tolist() == [0.0, 0.0]


def test_order_must_be_known_for_ordered_metrics() -> None:
    a = Outcomes.from_counts(3, [1, 2])
    with pytest.raises(OrderUnknown):
        pair(a, a).differences(metric("first@2"), BOUND)


def test_window_needs_the_same_n_on_both_sides() -> None:
    a, b = Outcomes.from_matrix([[1, 0, 1]]), Outcomes.from_matrix([[1, 1]])
    with pytest.raises(UnequalAttempts, match="from 2 to 3"):
        pair(a, b).differences(metric("window^2"), BOUND)


def test_delta_is_refused_with_what_to_ask_instead() -> None:
    a = Outcomes.from_counts(4, [1, 2])
    with pytest.raises(InvalidValue, match=r"delta\^4.*no value on a single task") as caught:
        pair(a, a).differences(metric("delta^4"), BOUND)
    assert "pass^4" in (caught.value.hint or "")


def test_short_tasks_are_named_with_their_run_or_left_out() -> None:
    a = Outcomes.from_counts([4, 4], [1, 2], ["x", "y"])
    b = Outcomes.from_counts([4, 2], [1, 2], ["x", "y"])
    found = pair(a, b, ("old", "new"))
    words = [metric("pass^3")]
    with pytest.raises(TooFewAttempts, match=r"new: pass\^3 needs 3.*y has 2"):
        found.supporting(words, BOUND, drop_short=False)
    assert found.supporting(words, BOUND, drop_short=True).a.tasks == ("x",)
    with pytest.raises(NotComparable, match="no paired task"):
        found.supporting([metric("pass^5")], BOUND, drop_short=True)


def test_a_million_paired_tasks_take_moments() -> None:
    c = np.arange(1_000_000) % 9
    a, b = Outcomes.from_counts(8, c), Outcomes.from_counts(8, (c * 5) % 9)
    assert len(pair(a, b).differences(metric("pass^4"), BOUND).values) == 1_000_000
