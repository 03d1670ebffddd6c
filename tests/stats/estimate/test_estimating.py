"""Suite-level estimates: macro average, missing policies, refusals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Estimate, Outcomes, estimate, estimate_all
from passhat.errors import InvalidValue, OrderUnknown, TooFewAttempts, UnequalAttempts
from passhat.stats.estimate import default_ks, missing_effect

matrices = st.integers(2, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([1, 0, -1]), min_size=n, max_size=n), min_size=1, max_size=6
    )
)
WORDS = ["pass@1", "pass@2", "pass^2", "gpass@2:0.5", "first@2", "first^2", "window^2", "rate"]


def test_every_task_counts_once_however_many_attempts_it_had() -> None:
    outcomes = Outcomes.from_counts([1, 100], [1, 0])
    assert estimate(outcomes, "pass^1").value == 0.5


@given(matrices)
def test_the_bounds_enclose_every_way_the_missing_could_have_ended(
    matrix: list[list[int]],
) -> None:
    holes = [(i, j) for i, row in enumerate(matrix) for j, v in enumerate(row) if v == -1][:4]
    known = [[0 if v == -1 and (i, j) not in holes else v for j, v in enumerate(row)]
             for i, row in enumerate(matrix)]  # fmt: skip
    bounds = estimate_all(Outcomes.from_matrix(known), WORDS)
    for ending in product([0, 1], repeat=len(holes)):
        filled = np.array(known)
        for (i, j), value in zip(holes, ending, strict=True):
            filled[i, j] = value
        truths = estimate_all(Outcomes.from_matrix(filled), WORDS)
        for bound, truth in zip(bounds, truths, strict=True):
            assert bound.value_if_passed is not None
            assert bound.value - 1e-12 <= truth.value <= bound.value_if_passed + 1e-12


@settings(max_examples=max_examples(25))  # the interval of delta^2 is drawn, and takes a while
@given(matrices)
def test_policies_agree_where_nothing_is_missing(matrix: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(np.maximum(matrix, 0))
    words = [*WORDS, "delta^2"]
    bound, fail, exclude = (
        estimate_all(outcomes, words, missing=policy) for policy in ("bound", "fail", "exclude")
    )
    assert [one.value for one in bound] == [one.value for one in fail]
    assert [one.value for one in bound] == [one.value for one in exclude]
    assert [one.value for one in bound] == [one.value_if_passed for one in bound]


@settings(max_examples=max_examples(25))  # the interval of delta^2 is drawn, and takes a while
@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_tasks_never_matters(matrix: list[list[int]], random: object) -> None:
    shuffled = list(matrix)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    words = [*WORDS, "delta^2"]
    first, second = (estimate_all(Outcomes.from_matrix(rows), words) for rows in (matrix, shuffled))
    assert [one.value for one in first] == pytest.approx([one.value for one in second], abs=1e-15)


@settings(max_examples=max_examples(25))  # the interval of delta^2 is drawn, and takes a while
@given(matrices)
def test_delta_lies_within_jensens_bounds_for_exact_rates(matrix: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(matrix)
    found = estimate(outcomes, "delta^2", about="new tasks")
    hat, mean = estimate(outcomes, "pass^2").value, estimate(outcomes, "pass^1").value
    assert found.value == pytest.approx(max(hat - mean**2, 0.0), abs=1e-12)
    assert found.bounds is not None
    assert found.low is not None
    assert found.high is not None
    # What it is at most holds for the truth, so it is never below the interval.
    assert 0 <= found.low <= found.value <= found.high <= found.bounds[1] + 1e-12
    assert found.value <= mean - mean**2 + 1e-12 <= found.bounds[1] + 2e-12
    alone = estimate(outcomes, "delta^2", level=None)
    assert alone.bounds is not None
    assert alone.bounds[1] >= mean - mean**2 - 1e-12


def test_delta_at_1_is_zero() -> None:
    assert estimate(Outcomes.from_counts(3, [1, 2]), "delta^1").value == 0.0


def test_k_beyond_n_is_refused_and_the_short_tasks_are_named() -> None:
    outcomes = Outcomes.from_counts([5, 12], [0, 3], ["retail/012", "retail/013"])
    with pytest.raises(TooFewAttempts) as caught:
        estimate(outcomes, "pass@10")
    error = caught.value
    assert (error.k, error.largest_k, error.tasks) == (10, 5, ("retail/012",))
    assert "retail/012 has 5" in str(error)
    assert "k up to 5" in str(error)
    assert "drop_short=True" in str(error)


def test_n5_c0_k10_is_never_answered() -> None:
    outcomes = Outcomes.from_counts(5, [0])
    for word in ("pass@10", "pass^10", "delta^10", "gpass@10:0.5"):
        for policy in ("bound", "fail", "exclude"):
            with pytest.raises(TooFewAttempts, match="needs 10"):
                estimate(outcomes, word, missing=policy)
        with pytest.raises(TooFewAttempts):
            estimate(outcomes, word, drop_short=True)


def test_short_tasks_can_be_left_out_and_that_is_said() -> None:
    outcomes = Outcomes.from_counts([2, 4, 4], [2, 4, 0], missing=[0, 0, 1])
    found = estimate(outcomes, "pass^4", drop_short=True)
    assert (found.value, found.tasks, found.attempts) == (0.5, 2, 9)
    assert found.notes == ("1 task with fewer than 4 attempts left out",)


def test_missing_attempts_count_towards_k_unless_left_out() -> None:
    outcomes = Outcomes.from_counts([3], [3], missing=[1])
    assert estimate(outcomes, "pass^4").value == 0.0
    assert estimate(outcomes, "pass^4").value_if_passed == 1.0
    assert estimate(outcomes, "pass^4", missing="fail").value_if_passed is None
    with pytest.raises(TooFewAttempts, match="4 scored attempts"):
        estimate(outcomes, "pass^4", missing="exclude")


def test_the_published_leaderboard_row_moves_as_measured() -> None:
    # 400 attempts, 51 passed, 150 unfinished: .128 if unfinished failed, .204 if dropped.
    outcomes = Outcomes.from_counts([250], [51], missing=[150])
    assert estimate(outcomes, "rate").value == pytest.approx(0.1275)
    assert estimate(outcomes, "rate", missing="exclude").value == pytest.approx(0.204)
    effect = missing_effect(outcomes, "rate")
    assert effect == {
        "as failed": pytest.approx(0.1275),
        "left out": pytest.approx(0.204),
        "as passed": pytest.approx(0.5025),
    }


def test_the_effect_of_missing_says_when_leaving_out_is_impossible() -> None:
    outcomes = Outcomes.from_counts([3], [3], missing=[1])
    assert missing_effect(outcomes, "pass^4")["left out"] is None


def test_ordered_metrics_refuse_outcomes_without_order() -> None:
    outcomes = Outcomes.from_counts(4, [2])
    for word in ("first@2", "first^2", "window^2"):
        with pytest.raises(OrderUnknown, match="order of the attempts is not known"):
            estimate(outcomes, word)


def test_window_needs_the_same_n_on_every_task() -> None:
    outcomes = Outcomes.from_records(
        {"task": t, "trial": i, "success": 1} for t, n in (("a", 3), ("b", 4)) for i in range(n)
    )
    assert estimate(outcomes, "first^2").value == 1.0
    with pytest.raises(UnequalAttempts, match="from 3 to 4"):
        estimate(outcomes, "window^2")


@pytest.mark.parametrize(
    ("row", "first_all", "window"),
    [
        ([1, 1, 1, 1], True, True),
        ([0, 1, 1, 1], False, True),
        ([1, 0, 1, 1], False, True),
        ([0, 1, 1, 0], False, True),
        ([1, 0, 0, 1], False, False),
        ([0, 0, 1, 1], False, True),
    ],
)
def test_the_rows_of_the_guide(row: list[int], first_all: bool, window: bool) -> None:
    outcomes = Outcomes.from_matrix([row])
    assert estimate(outcomes, "first^4").value == first_all
    assert estimate(outcomes, "window^2").value == window


def test_one_pass_gives_the_same_as_one_at_a_time() -> None:
    outcomes = Outcomes.from_counts([4, 6, 8], [1, 6, 3], missing=[0, 1, 2])
    words = ["pass^1", "pass@4", "delta^3", "gpass@4:0.5"]
    together = estimate_all(outcomes, words)
    assert together == tuple(estimate(outcomes, word) for word in words)


@pytest.mark.parametrize(("n", "ks"), [(1, (1,)), (2, (1, 2)), (7, (1, 2, 4)), (8, (1, 2, 4, 8))])
def test_default_ks_are_powers_of_two_up_to_the_smallest_n(n: int, ks: tuple[int, ...]) -> None:
    assert default_ks(Outcomes.from_counts([n, n + 5], [0, 0])) == ks


def test_arguments_are_checked() -> None:
    outcomes = Outcomes.from_counts(4, [2])
    with pytest.raises(InvalidValue, match="about must be 'new tasks' or 'these tasks'"):
        estimate(outcomes, "pass^1", about="everything")
    with pytest.raises(InvalidValue, match="level must lie between"):
        estimate(outcomes, "pass^1", level=95)
    with pytest.raises(InvalidValue, match="missing policy"):
        estimate(outcomes, "pass^1", missing="ignore")


def test_an_estimate_shows_itself() -> None:
    found = estimate(Outcomes.from_counts(4, [2, 4], missing=[1, 0]), "pass^2")
    assert isinstance(found, Estimate)
    assert str(found).startswith("pass^2 = 0.550 to 0.650")
    assert "2 tasks, 9 attempts" in str(found)
    assert "pass^2" in found._repr_html_()
    assert found.to_dict()["value"] == found.value
