"""Rows gathered chunk by chunk: how they are cut, ordered and refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes
from passhat.errors import InvalidValue
from passhat.stats.outcomes.cells import (
    CellCodes,
    HashColumn,
    NumberColumn,
    RowError,
    TextColumn,
    number_from,
    parse_column,
    whole_number_from,
)
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, CountGatherer
from passhat.stats.outcomes.rewards import blame_notes

rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 5),
        st.sampled_from(["1", "0", "", "true", "FAIL"]),
    ),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[:2],
)


def _gather(
    table: Sequence[tuple[object, ...]], names: Sequence[str], cuts: Sequence[int]
) -> Outcomes:
    gatherer = AttemptGatherer(ColumnMap.resolve(names))
    edges = sorted({0, len(table), *(cut % (len(table) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        part = table[start:stop]
        gatherer.add({name: [row[i] for row in part] for i, name in enumerate(names)})
    (run,) = gatherer.runs()
    return Outcomes.from_columns(run.columns)


@given(rows, st.lists(st.integers(0, 30), max_size=4), st.randoms(use_true_random=False))
def test_neither_cuts_nor_the_order_of_rows_matter(
    table: list[tuple[str, int, str]], cuts: list[int], random: object
) -> None:
    names = ("task", "trial", "success")
    whole = _gather(table, names, [])
    assert whole.order is not None
    shuffled = list(table)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for other in (_gather(table, names, cuts), _gather(shuffled, names, cuts)):
        assert other.order is not None
        for i, task in enumerate(whole.tasks):
            j = list(other.tasks).index(task)
            assert other.order.of(j) == whole.order.of(i)
            assert (other.n[j], other.c[j], other.missing[j]) == (
                *(whole.n[i], whole.c[i], whole.missing[i]),
            )
    meaning = {"1": 1, "true": 1, "0": 0, "FAIL": 0, "": -1}
    for i, task in enumerate(whole.tasks):
        own = sorted((trial, meaning[cell]) for name, trial, cell in table if name == task)
        assert [int(v) for v in whole.order.of(i)] == [verdict for _, verdict in own]


def test_a_chunk_that_fails_leaves_nothing_behind() -> None:
    gatherer = AttemptGatherer(ColumnMap.resolve(["task", "success", "cost"]))
    gatherer.add({"task": ["a"], "success": ["1"], "cost": ["0.5"]})
    with pytest.raises(RowError) as caught:
        gatherer.add({"task": ["b", "c"], "success": ["1", "1"], "cost": ["2", "dear"]})
    assert caught.value.row == 2
    assert "column 'cost' (read as cost) should hold a number, not 'dear'" in caught.value.message
    gatherer.add({"task": ["d"], "success": ["0"], "cost": [""]})
    (run,) = gatherer.runs()
    assert run.columns.tasks == ("a", "d")
    assert run.attempts is not None
    cost = run.attempts.measures["cost"]
    assert cost[0] == 0.5
    assert np.isnan(cost[1])


def test_runs_are_told_apart_by_model_suite_and_temperature() -> None:
    columns = ColumnMap.resolve(["model", "temperature", "task", "success"])
    gatherer = AttemptGatherer(columns)
    gatherer.add(
        {
            "model": ["m", "m", "k", "m"],
            "temperature": ["0.50", "1", "", ".5"],
            "task": ["a", "a", "a", "a"],
            "success": ["1", "0", "1", "0"],
        }
    )
    runs = gatherer.runs()
    assert [(run.model, run.temperature) for run in runs] == [("m", 0.5), ("m", 1.0), ("k", None)]
    assert runs[0].columns.n.tolist() == [2]  # 0.50 and .5 are one temperature


@pytest.mark.parametrize(
    ("trials", "ordered"),
    [
        (["2", "1"], True),
        (["2.0", "1.0"], True),
        (["b", "a"], False),
        (["1", "x"], False),
        (["10", "9"], True),
    ],
)
def test_order_comes_from_whole_numbers_only(trials: list[str], ordered: bool) -> None:
    found = _gather(
        [("a", trials[0], "1"), ("a", trials[1], "0")], ("task", "trial", "success"), []
    )
    assert (found.order is not None) is ordered
    if ordered:
        assert found.order is not None
        assert found.order.verdicts.tolist() == [0, 1]


def test_a_seed_tells_attempts_apart_without_an_order() -> None:
    found = _gather([("a", "7", "1"), ("a", "3", "0")], ("task", "seed", "success"), [])
    assert found.order is None
    with pytest.raises(InvalidValue, match="trial '7' of task 'a' is listed twice"):
        Outcomes.from_records([{"task": "a", "seed": 7, "success": True}] * 2)


def test_counts_that_cannot_be_are_refused_with_their_row() -> None:
    for n, c, missing, says in (
        (["4", "2"], ["1", "3"], ["0", "0"], "more passes"),
        (["4", "-2"], ["1", "0"], ["0", "0"], "cannot be negative"),
        (["4", "0"], ["1", "0"], ["0", "0"], "at least one attempt"),
    ):
        gatherer = CountGatherer(ColumnMap.resolve(["task", "n", "c", "missing"]))
        gatherer.add({"task": ["a", "b"], "n": n, "c": c, "missing": missing})
        with pytest.raises(RowError, match=says) as caught:
            gatherer.runs()
        assert caught.value.row == 1
    fine = CountGatherer(ColumnMap.resolve(["task", "n", "c", "missing"]))
    fine.add({"task": ["a"], "n": ["0"], "c": ["0"], "missing": ["3"]})
    assert fine.runs()[0].columns.m is not None


def test_a_fault_of_ours_that_a_table_counts_as_failed_is_pointed_out() -> None:
    (note,) = blame_notes({"rate_limit": 2, "timeout: x": 5, "wrong_answer": 3, "budget": 0})
    assert note.startswith("2 attempts with failure 'rate_limit' counted as failed")


# -- cells -----------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["x", "y", " x ", "", None, 3, 4.5, True]), max_size=30))
def test_text_and_hash_columns_take_lists_and_codes_alike(cells: list[object]) -> None:
    values = list(dict.fromkeys(map(repr, cells)))
    by_text = {repr(cell): cell for cell in cells}
    coded = CellCodes(
        [by_text[text] for text in values],
        np.array([values.index(repr(cell)) for cell in cells], np.int64),
    )
    assert list(coded) == cells
    assert len(coded) == len(cells)
    one, two = TextColumn(), TextColumn()
    one.extend(cells)
    two.extend(coded)
    assert [one.values[code] for code in one.codes] == [two.values[code] for code in two.codes]
    assert [one.values[code] for code in one.codes] == [
        "" if cell is None else str(cell).strip() for cell in cells
    ]
    hashes, others = HashColumn(), HashColumn()
    hashes.extend(cells)
    others.extend(coded)
    assert hashes.values.tolist() == others.values.tolist()
    assert [value == 0 for value in hashes.values.tolist()] == [
        cell is None or cell == "" for cell in cells
    ]
    one.truncate(0)
    assert one.codes.tolist() == []


def test_cells_that_are_lists_are_read_as_their_text() -> None:
    column = TextColumn()
    column.extend([["a", 1], "x", {"k": 2}])
    assert [column.values[code] for code in column.codes] == ["['a', 1]", "x", "{'k': 2}"]
    assert column.code_of("x") == 1
    assert column.code_of("y") is None


@pytest.mark.parametrize(
    ("cell", "number"), [("1.5", 1.5), (2, 2.0), ("1e3", 1000.0), (True, 1.0), (" 7 ", 7.0)]
)
def test_numbers(cell: object, number: float) -> None:
    assert number_from(cell) == number


@pytest.mark.parametrize("cell", ["x", [], {}, "1,5"])
def test_what_is_no_number(cell: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        number_from(cell)


@pytest.mark.parametrize("cell", [1.5, "0.5", None, "", 2.0**53, "nan", "inf"])
def test_what_is_no_whole_number(cell: object) -> None:
    with pytest.raises((ValueError, OverflowError)):
        whole_number_from(cell)


def test_the_first_bad_cell_is_named_by_its_row() -> None:
    for cells in (["1", "2", "x", "y"], CellCodes(["1", "x"], np.array([0, 0, 1, 1]))):
        with pytest.raises(RowError) as caught:
            parse_column(cells, number_from, first_row=10, named="column 'n'", expected="a number")
        assert caught.value.row == 12
        assert "column 'n' should hold a number, not 'x'" in caught.value.message
    numbers = NumberColumn()
    numbers.extend(parse_column(["1", ""], number_from, first_row=0, named="", expected=""))
    assert numbers.values[0] == 1
    assert np.isnan(numbers.values[1])
