"""What people hand over: matrices, records, frames, runs, and things that are none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes, Run
from passhat.errors import InvalidValue, PasshatError
from passhat.stats.outcomes.coercion import (
    as_outcomes,
    as_run_or_outcomes,
    as_runs,
    kind_of,
)


class _Column:
    def __init__(self, cells: list[Any]) -> None:
        self._cells = cells

    def to_list(self) -> list[Any]:
        return self._cells


class Frame:
    """The members that pandas and polars frames share, and nothing else."""

    def __init__(self, **columns: list[Any]) -> None:
        self._data = columns
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name: str) -> _Column:
        return _Column(self._data[name])


matrices = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([1, 0, None]), min_size=n, max_size=n), min_size=1, max_size=5
    )
)


@given(matrices)
def test_lists_arrays_records_and_frames_of_the_same_attempts_agree(
    rows: list[list[int | None]],
) -> None:
    records = [
        {"task": f"t{i}", "trial": j, "success": value}
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
    ]
    frame = Frame(
        task=[record["task"] for record in records],
        trial=[record["trial"] for record in records],
        success=[record["success"] for record in records],
    )
    numbers = np.array([[np.nan if x is None else x for x in row] for row in rows], float)
    signs = np.array([[-1 if x is None else x for x in row] for row in rows])
    given_ways = [as_outcomes(data) for data in (rows, numbers, signs, records, frame)]
    for found in given_ways:
        assert found.n.tolist() == [sum(x is not None for x in row) for row in rows]
        assert found.c.tolist() == [sum(x == 1 for x in row) for row in rows]
        assert found.missing.tolist() == [sum(x is None for x in row) for row in rows]
        assert found.order is not None
        assert found.order.verdicts.tolist() == signs.ravel().tolist()


def test_runs_and_outcomes_pass_as_they_are() -> None:
    outcomes = Outcomes.from_counts(2, [1])
    run = Run("r", "a", outcomes)
    assert as_outcomes(outcomes) is outcomes
    assert as_outcomes(run) is outcomes
    assert as_run_or_outcomes(run) is run


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([[1, 0], [1]], "row 1 of the matrix has 1 entry, row 0 has 2"),
        ([[1], [1, 0, 1]], "row 1 of the matrix has 3 entries, row 0 has 1"),
        ([[1, 0], [1, 0], []], "row 2 of the matrix has 0 entries"),
        ([[1, 0], 1], "row 1 of the matrix has no list"),
        ([[1, 2]], r"entry \[0, 1\] is 2"),
        ([[1.5, 1]], r"entry \[0, 0\] is 1.5"),
        ([1, 0, 1], r"not one of shape \(3,\)"),
        ([], r"not one of shape \(0,\)"),
        ([[]], r"not one of shape \(1, 0\)"),
        ([[[1]]], r"not one of shape \(1, 1, 1\)"),
        ("results.csv", "got a str"),
        (Path("results.csv"), "got a"),
        (3, "got an int"),
        (np.array(3), "^expected .* got an? ndarray"),
        (np.array([[1, 1j]]), "^expected .* got an? ndarray"),
        (None, "got a NoneType"),
        ({"task": 1}, "got a dict"),
    ],
)
def test_what_is_no_outcome_is_refused_in_words(data: object, says: str) -> None:
    with pytest.raises(PasshatError, match=says):
        as_outcomes(data)


def test_rows_of_different_lengths_get_two_ways_out() -> None:
    with pytest.raises(InvalidValue) as caught:
        as_outcomes([[1, 0, 1], [1, 0]])
    assert "None (a missing attempt)" in (caught.value.hint or "")
    assert "Outcomes.from_counts(n, c)" in (caught.value.hint or "")
    # The first way out works.
    assert as_outcomes([[1, 0, 1], [1, 0, None]]).missing.tolist() == [0, 1]


def test_a_path_is_no_outcome_and_a_list_of_runs_is_one_too_many() -> None:
    with pytest.raises(InvalidValue, match=r"expected a Run .*; got a str"):
        as_outcomes("results.csv")
    run = Run("r", "a", Outcomes.from_counts(1, [1]))
    with pytest.raises(InvalidValue, match="expected one run, got a list of 2"):
        as_outcomes([run, run])


def test_words_of_verdicts_are_taken_as_in_a_table() -> None:
    assert as_outcomes([["yes", "no"]]).c.tolist() == [1]


def test_a_frame_of_counts_and_one_with_slices() -> None:
    found = as_outcomes(Frame(task=["a", "b"], n=[4, 2], c=[1, 2], missing=[0, 1]))
    assert (found.n.tolist(), found.c.tolist(), found.missing.tolist()) == ([4, 2], [1, 2], [0, 1])
    sliced = as_outcomes(
        Frame(task_id=["a", "a", "b"], passed=[True, False, None], **{"slice:lang": ["py"] * 3})
    )
    assert sliced.labels["lang"] == ("py", "py")
    assert sliced.missing.tolist() == [0, 1]
    assert sliced.order is None


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (Frame(question=["a"], verdictish=[1]), "it needs task and success"),
        (Frame(task=["a", ""], success=[1, 1]), "row 1 of the frame: the task id is empty"),
        (Frame(task=["a"], success=["perhaps"]), "row 0 of the frame"),
        (
            Frame(task=["a", "a"], trial=[1, 1], success=[1, 0]),
            r"row 1 of the frame: trial '1' of task 'a' is listed twice\. \(see row 0\)",
        ),
        (Frame(task=["a"], n=[2], c=[3]), "row 0 of the frame: .*more passes"),
        (Frame(task=["a", "a"], n=[2, 2], c=[1, 1]), "row 1 of the frame: .*counted before"),
        (Frame(task=["a"], n=[2.5], c=[1]), "row 0 of the frame: .*a whole number"),
        (Frame(task=["a"], n=[0], c=[0]), "row 0 of the frame: .*at least one attempt"),
        (
            Frame(task=["a", "a"], success=[1, 1], **{"slice:x": ["p", "q"]}),
            "row 1 of the frame: slice 'x' is 'q' here and 'p' earlier",
        ),
        (Frame(model=["m", "k"], task=["a", "a"], success=[1, 0]), "holds 2 runs"),
        (Frame(task=["a"], success=[40]), "rewards go up to 40"),
    ],
)
def test_frames_that_cannot_be_read_name_the_row(frame: Frame, says: str) -> None:
    """A repeated attempt or more passes than attempts ended in a traceback."""
    with pytest.raises(PasshatError, match=says):
        as_outcomes(frame)


def test_kinds_have_their_article() -> None:
    assert kind_of(3).startswith("an int (")
    assert kind_of("x").startswith("a str (")
    assert len(kind_of("x" * 10_000)) < 200


MASKED = np.ma.masked_array(
    [[1, 0, 1], [1, 1, 0]], mask=[[False, True, False], [False, False, True]]
)
LONG = {"task": ["a"] * 3 + ["b"] * 3, "success": [1, None, 1, 1, 1, None]}
WIDE = {"attempt_1": [1, 1], "attempt_2": [None, 1], "attempt_3": [1, None]}


@pytest.mark.parametrize(
    "data",
    [
        MASKED,
        list(MASKED),
        LONG,
        {"a": [1, None, 1], "b": [1, 1, None]},
        pd.DataFrame(LONG).astype({"success": "Int64"}),
        pd.DataFrame(LONG).astype({"success": "boolean"}),
        pd.DataFrame(LONG).set_index("task"),
        pd.DataFrame(LONG).set_index("task")["success"],
        pd.DataFrame({"task": ["a", "b"], **WIDE}),
        pd.DataFrame([[1, None, 1], [1, 1, None]], index=["a", "b"]),
        pl.DataFrame({"task": ["a", "b"], **WIDE}),
        pl.LazyFrame(LONG),
    ],
    ids=lambda data: type(data).__name__,
)
def test_the_same_six_attempts_in_many_containers(data: Any) -> None:
    outcomes = as_outcomes(data)
    assert outcomes.n.tolist() == outcomes.c.tolist() == [2, 2]
    assert outcomes.missing.tolist() == [1, 1]


def test_tasks_of_a_dict_may_have_different_numbers_of_attempts() -> None:
    assert as_outcomes({"a": [1, 0], "b": [1]}).n.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pd.DataFrame({"task": ["a"], "gpt": [1], "claude": [0]}), "a column for each attempt"),
        (pd.Series([1, 0, 1]), "does not tell tasks from attempts"),
        ({}, "it is empty"),
        ({"a": []}, "some have none"),
    ],
)
def test_containers_that_may_mean_several_things_are_refused(data: Any, words: str) -> None:
    """Columns without numbers may be models: their attempts are not added up."""
    with pytest.raises(InvalidValue, match=words):
        as_outcomes(data)


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_without_a_task_is_named(nothing: object) -> None:
    with pytest.raises(InvalidValue, match="row 2 of the frame has no task"):
        as_outcomes({"task": ["a", nothing], "success": [1, 0]})


def test_a_list_is_of_several_runs_only_where_each_entry_is_one() -> None:
    run = Run("r", "r", Outcomes.from_counts(2, [1]))
    assert [one.name for one in as_runs([run, [[1, 0]]])] == ["r", "outcomes 2"]
    assert [one.name for one in as_runs([[1, 0], [0, 1]])] == ["outcomes"]
    with pytest.raises(InvalidValue, match="matrix"):
        as_runs([run, 3])
