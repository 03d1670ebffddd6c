"""Values task by task: what is refused, what is left out, and what a gap in numbers means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes
from passhat.errors import InvalidValue, OrderUnknown, TooFewAttempts, UnequalAttempts
from passhat.stats.estimate import default_ks, estimate, estimate_all, metric, missing_effect
from passhat.stats.estimate.task_values import FilledOutcomes, gap_notes, values_by_task
from passhat.stats.outcomes import Completion

RAGGED = Outcomes.from_counts([2, 4, 8], [1, 4, 2], ["a", "b", "c"])


def test_a_short_task_is_named_with_what_can_be_done() -> None:
    with pytest.raises(TooFewAttempts) as caught:
        values_by_task(RAGGED, metric("pass^4"))
    error = caught.value
    assert (error.k, error.largest_k, list(error.tasks)) == (4, 2, ["a"])
    assert "1 task of 3 has fewer: a has 2" in error.message
    assert error.hint is not None
    assert "k up to 2" in error.hint
    assert "forecast" in error.hint


def test_when_all_tasks_are_short_dropping_them_is_no_way_out() -> None:
    with pytest.raises(TooFewAttempts) as caught:
        estimate(RAGGED, "pass^9", drop_short=True)
    assert "drop" not in (caught.value.hint or "")
    assert "3 tasks of 3 have fewer" in caught.value.message


def test_left_out_tasks_are_counted_and_do_not_weigh() -> None:
    kept = estimate(RAGGED, "pass^4", drop_short=True)
    alone = estimate(Outcomes.from_counts([4, 8], [4, 2]), "pass^4")
    assert (kept.value, kept.low, kept.high, kept.tasks) == (alone.value, alone.low, alone.high, 2)
    assert kept.notes == ("1 task with fewer than 4 attempts left out",)
    # A smaller k of the same call is asked of all tasks.
    both = estimate_all(RAGGED, ["pass^1", "pass^4"], drop_short=True)
    assert [found.tasks for found in both] == [3, 2]


def test_six_short_tasks_are_named_in_part() -> None:
    outcomes = Outcomes.from_counts([1] * 7 + [4], [1] * 8)
    with pytest.raises(TooFewAttempts, match=r"7 tasks of 8 have fewer: .*4 has 1 and 2 more\."):
        estimate(outcomes, "pass^2")


def test_order_is_asked_for_only_where_it_matters() -> None:
    counted = Outcomes.from_counts(3, [1, 2])
    with pytest.raises(OrderUnknown, match="order of the attempts is not known"):
        estimate(counted, "first@2")
    ragged = Outcomes.from_records(
        [
            {"task": task, "trial": trial, "success": True}
            for task, n in (("a", 2), ("b", 3))
            for trial in range(n)
        ]
    )
    assert estimate(ragged, "first^2").value == 1.0
    with pytest.raises(UnequalAttempts, match="from 2 to 3"):
        estimate(ragged, "window^2")


def test_delta_has_no_value_on_a_task() -> None:
    with pytest.raises(InvalidValue, match="no value on a single task"):
        values_by_task(RAGGED, metric("delta^2"))
    with pytest.raises(InvalidValue, match="not an average over tasks"):
        FilledOutcomes(RAGGED, Completion.AS_FAILED).of(metric("delta^2"))


matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([1, 0, -1]), min_size=n, max_size=n), min_size=1, max_size=6
    )
)


@given(matrices)
def test_filling_in_by_hand_gives_the_same_values(rows: list[list[int]]) -> None:
    """Counting missing attempts as failed or passed is writing 0 or 1 in their place."""
    outcomes = Outcomes.from_matrix(rows)
    n = len(rows[0])
    for completion, fill in ((Completion.AS_FAILED, 0), (Completion.AS_PASSED, 1)):
        filled = Outcomes.from_matrix([[fill if x == -1 else x for x in row] for row in rows])
        for word in (f"pass^{n}", f"pass@{n}", f"first@{n}", f"first^{n}", "window^1", "rate"):
            own = values_by_task(outcomes, metric(word), completion)
            assert own.tolist() == values_by_task(filled, metric(word)).tolist(), word


@given(matrices)
def test_dropping_missing_attempts_closes_up_the_order(rows: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(rows)
    scored = [[x for x in row if x != -1] for row in rows]
    if min(map(len, scored)) == 0:
        with pytest.raises(TooFewAttempts):
            values_by_task(outcomes, metric("first@1"), Completion.DROPPED)
        return
    own = values_by_task(outcomes, metric("first@1"), Completion.DROPPED)
    assert own.tolist() == [float(row[0]) for row in scored]
    rates = values_by_task(outcomes, metric("rate"), Completion.DROPPED)
    assert rates.tolist() == pytest.approx([sum(row) / len(row) for row in scored])


@given(matrices)
def test_the_missing_effect_is_what_estimates_say(rows: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(rows)
    effect = missing_effect(outcomes, "pass^1")
    bound = estimate(outcomes, "pass^1", level=None)
    assert effect["as failed"] == bound.value
    assert effect["as passed"] == bound.value_if_passed
    if effect["left out"] is None:
        assert (outcomes.n == 0).any()
    else:
        left_out = estimate(outcomes, "pass^1", level=None, missing="exclude").value
        assert effect["left out"] == left_out


def test_gaps_in_the_numbers_are_pointed_out_where_they_matter() -> None:
    records = [
        {"task": "a", "trial": trial, "success": success}
        for trial, success in ((0, True), (2, False), (3, True))
    ]
    outcomes = Outcomes.from_records(records)
    assert gap_notes(outcomes, metric("first@1")) == ()
    assert gap_notes(outcomes, metric("pass@2")) == ()
    (note,) = gap_notes(outcomes, metric("first@2"))
    assert note.startswith("1 task with a gap")
    assert gap_notes(outcomes, metric("window^1")) != ()
    assert estimate(outcomes, "first@2").notes == (note,)


@pytest.mark.parametrize(
    ("n", "ks"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2)), (8, (1, 2, 4, 8)), (100, (1, 2, 4, 8, 16, 32, 64))],
)
def test_default_ks_are_powers_of_two_that_every_task_has(n: int, ks: tuple[int, ...]) -> None:
    assert default_ks(Outcomes.from_counts([n, n + 5], [0, 1])) == ks


def test_missing_attempts_count_for_k_unless_left_out() -> None:
    outcomes = Outcomes.from_counts([2, 0], [1, 0], missing=[2, 4])
    assert default_ks(outcomes) == (1, 2, 4)
    assert default_ks(outcomes, "exclude") == ()
    assert estimate(outcomes, "pass^4").value == 0.0
    with pytest.raises(TooFewAttempts, match=r"pass\^1 needs 1 scored attempt on every task"):
        estimate(outcomes, "pass^1", missing="exclude")


def test_values_are_in_the_order_of_the_tasks() -> None:
    n = np.array([5, 2, 5, 3, 2])
    c = np.array([5, 0, 1, 3, 1])
    assert values_by_task(Outcomes.from_counts(n, c), metric("rate")).tolist() == (c / n).tolist()
