"""Outcomes: made from counts, matrices and records, and refused when they cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Attempt, Outcomes
from passhat.errors import InvalidCounts, InvalidValue
from passhat.stats.outcomes import Completion, Verdict

matrices = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([1, 0, -1]), min_size=n, max_size=n), min_size=1, max_size=12
    )
)


def test_from_counts_takes_one_n_for_all_tasks() -> None:
    outcomes = Outcomes.from_counts(10, [0, 1, 2, 4])
    assert outcomes.n.tolist() == [10, 10, 10, 10]
    assert list(outcomes.tasks) == ["0", "1", "2", "3"]
    assert outcomes.order is None
    assert repr(outcomes) == "<Outcomes: 4 tasks x 10 attempts, 7 passed>"


def test_from_counts_takes_whole_floats_and_names() -> None:
    outcomes = Outcomes.from_counts([4.0, 5.0], [2.0, 5.0], ["a", "b"], missing=[1, 0])
    assert outcomes.tasks == ("a", "b")
    assert outcomes.attempts == 10
    assert outcomes.total_missing == 1
    assert "4 to 5 attempts" not in str(outcomes)
    assert "5 attempts" in str(outcomes)


@pytest.mark.parametrize(
    ("n", "c", "message"),
    [
        ([5, 5], [0, 7], r"c\[1\] = 7 passes out of n\[1\] = 5"),
        ([1, 0], [0, 0], r"n\[1\] = 0"),
        ([5, 5], [0, -1], r"c\[1\] = -1 is negative"),
        ([5, 5.5], [0, 1], r"n\[1\] = 5.5 is not a whole number"),
        ([5, np.nan], [0, 1], r"n\[1\] = nan is not a whole number"),
        (["a", "b"], [0, 1], "n must be whole numbers"),
        ([5, 5, 5], [0, 1], "n has 3 entries and c has 2"),
        ([[5, 5]], [0, 1], "one-dimensional"),
        ([], [], "there are no tasks"),
    ],
)
def test_bad_counts_are_named(n: object, c: object, message: str) -> None:
    with pytest.raises(InvalidCounts, match=message):
        Outcomes.from_counts(n, c)  # type: ignore[arg-type]


def test_a_task_may_have_nothing_but_missing_attempts() -> None:
    outcomes = Outcomes.from_counts([0, 2], [0, 1], missing=[2, 0])
    assert outcomes.scored == 2
    with pytest.raises(InvalidCounts, match="no attempt at all"):
        Outcomes.from_counts([0, 2], [0, 1], missing=[0, 1])
    with pytest.raises(InvalidCounts, match=r"missing\[1\] = -1"):
        Outcomes.from_counts([1, 2], [0, 1], missing=[0, -1])


def test_task_ids_must_be_unique_and_as_many() -> None:
    with pytest.raises(InvalidValue, match="'a' stands for two tasks"):
        Outcomes.from_counts(2, [0, 1], ["a", "a"])
    with pytest.raises(InvalidValue, match="3 task ids were given for 2"):
        Outcomes.from_counts(2, [0, 1], ["a", "b", "c"])


@given(matrices)
def test_a_matrix_and_its_records_agree(matrix: list[list[int]]) -> None:
    from_matrix = Outcomes.from_matrix(matrix)
    from_records = Outcomes.from_records(
        {"task": str(i), "trial": j, "success": None if value == -1 else value}
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
    )
    assert from_matrix.to_dict() == from_records.to_dict()
    assert from_matrix.n.tolist() == [sum(v != -1 for v in row) for row in matrix]
    assert from_matrix.c.tolist() == [row.count(1) for row in matrix]


@given(matrices)
def test_a_bool_matrix_of_any_width_is_counted(matrix: list[list[int]]) -> None:
    wide = np.tile(np.array(matrix) == 1, (1, 60))
    assert Outcomes.from_matrix(wide).c.tolist() == wide.sum(axis=1).tolist()


def test_nan_in_a_matrix_is_missing() -> None:
    outcomes = Outcomes.from_matrix([[1.0, np.nan], [0.0, 1.0]])
    assert outcomes.missing.tolist() == [1, 0]
    assert outcomes.order is not None
    assert outcomes.order.of(0) == (Verdict.PASSED, Verdict.MISSING)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 0.5]], r"entry \[0, 1\] is 0.5"),
        ([[1, 0], [2, 0]], r"entry \[1, 0\] is 2"),
        ([1, 0], "tasks x attempts"),
        ([[]], "tasks x attempts"),
        ([["x"]], "must hold 1, 0"),
    ],
)
def test_bad_matrices_are_refused(matrix: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Outcomes.from_matrix(matrix)  # type: ignore[arg-type]


def test_records_may_be_attempts_and_come_in_any_order() -> None:
    outcomes = Outcomes.from_records(
        [
            Attempt("a", 2, Verdict.FAILED),
            Attempt("a", 1, Verdict.PASSED),
            Attempt("b", 1, Verdict.MISSING),
        ]
    )
    assert outcomes.order is not None
    assert outcomes.order.of(0) == (Verdict.PASSED, Verdict.FAILED)
    assert outcomes.n.tolist() == [2, 0]


def test_attempts_keep_their_scores() -> None:
    outcomes = Outcomes.from_records(
        [
            Attempt("a", 1, Verdict.PASSED, score=0.75),
            Attempt("a", 2, Verdict.FAILED, score=0.25),
            Attempt("b", 1, Verdict.FAILED, score=0.0),
        ]
    )
    assert outcomes.scores is not None
    assert outcomes.scores.of(0).tolist() == [0.75, 0.25]
    assert Outcomes.from_records([Attempt("a", 1, Verdict.PASSED)]).scores is None


def test_records_use_the_aliases_of_tables_and_keep_slices() -> None:
    outcomes = Outcomes.from_records(
        [
            {"task_id": 7, "epoch": 1, "passed": True, "slice:band": "easy"},
            {"task_id": 8, "epoch": 1, "passed": False, "slice:band": "hard"},
        ]
    )
    assert outcomes.tasks == ("7", "8")
    assert outcomes.labels["band"] == ("easy", "hard")
    assert [(value, part.tasks) for value, part in outcomes.by("band")] == [
        ("easy", ("7",)),
        ("hard", ("8",)),
    ]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "no records"),
        ([{"task": "a"}], "records need a task and a success; these have: task"),
        ([{"task": "a", "success": "maybe"}], "record 0: .*'maybe'"),
        ([{"task": "", "success": 1}], "record 0: the task id is empty"),
        (
            [{"task": "a", "trial": 1, "success": 1}, {"task": "a", "trial": 1, "success": 0}],
            r"record 1: trial '1' of task 'a' is listed twice. \(see record 0\)",
        ),
        (
            [{"model": "m", "task": "a", "success": 1}, {"model": "o", "task": "a", "success": 1}],
            "belong to 2 runs",
        ),
        ([("a", 1)], "record 0 is a tuple"),
        ([{"task": "a", "success": [1]}], "record 0"),
    ],
)
def test_bad_records_are_named(records: list[object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Outcomes.from_records(records)  # type: ignore[arg-type]


def test_completions_fill_in_what_is_missing() -> None:
    outcomes = Outcomes.from_counts([3, 2], [1, 2], missing=[1, 0])
    assert [a.tolist() for a in outcomes.counts(Completion.AS_FAILED)] == [[4, 2], [1, 2]]
    assert [a.tolist() for a in outcomes.counts(Completion.AS_PASSED)] == [[4, 2], [2, 2]]
    assert [a.tolist() for a in outcomes.counts(Completion.DROPPED)] == [[3, 2], [1, 2]]


def test_an_unknown_slice_names_those_there_are() -> None:
    outcomes = Outcomes.from_counts(2, [1], labels={"band": ["easy"]})
    with pytest.raises(InvalidValue, match="no slice called 'size'; slices here: band"):
        list(outcomes.by("size"))
    with pytest.raises(InvalidValue, match="label 'band' has 2 values for 1 task\\."):
        Outcomes.from_counts(2, [1], labels={"band": ["easy", "hard"]})


@given(matrices, st.data())
def test_taking_some_tasks_keeps_theirs(matrix: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(
        st.lists(st.integers(0, len(matrix) - 1), min_size=1, max_size=5, unique=True)
    )
    taken = Outcomes.from_matrix(matrix).take(np.array(chosen))
    again = Outcomes.from_matrix([matrix[i] for i in chosen], [str(i) for i in chosen])
    assert taken.to_dict() == again.to_dict()


def test_it_shows_itself_in_a_notebook_without_listing_a_million_tasks() -> None:
    outcomes = Outcomes.from_counts(200, np.zeros(1000, int))
    html = outcomes._repr_html_()
    assert "and 980 more tasks" in html
    assert len(html) < 4000
