"""Columns of cells, and sequences by plan: each as a plain list would have it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.stats.outcomes import Completion, Order, Verdict
from passhat.stats.outcomes.cells import (
    CellCodes,
    HashColumn,
    Histogram,
    NumberColumn,
    PackedNames,
    RowError,
    TextColumn,
    cells_of,
    number_by_appearance,
    number_from,
    parse_column,
    parse_number,
    same_names,
    sort_rows,
    whole_number_from,
    whole_numbers_of,
)
from passhat.stats.outcomes.vocabulary import failure_category, missing_reason, source_words

texts = st.lists(st.sampled_from(["a", " a", "b ", "", None, "Ä", 7, "7"]), max_size=20)


@given(texts, texts)
@settings(max_examples=max_examples(30))
def test_a_text_column_reads_every_cell_as_its_stripped_text(
    first: list[object], more: list[object]
) -> None:
    column = TextColumn()
    column.extend(first)
    column.extend(iter(more))
    wanted = ["" if cell is None else str(cell).strip() for cell in [*first, *more]]
    assert [column.values[code] for code in column.codes.tolist()] == wanted
    assert list(column.values) == list(dict.fromkeys(wanted))  # once each, in order
    for text in wanted:
        code = column.code_of(text)
        assert code is not None
        assert column.values[code] == text
    assert column.code_of("never seen") is None


def test_cells_that_cannot_be_looked_up_are_read_as_their_text() -> None:
    column = TextColumn()
    column.extend(["x", ["a", 1], {"k": 2}, "x"])
    assert [column.values[code] for code in column.codes] == ["x", "['a', 1]", "{'k': 2}", "x"]


@pytest.mark.parametrize("column", [TextColumn(), NumberColumn(), HashColumn()])
def test_columns_take_codes_as_they_take_cells_and_forget_rows(
    column: TextColumn | NumberColumn | HashColumn,
) -> None:
    """Codes are what a reader hands over that has each different cell once."""
    plain = type(column)()
    column.extend(CellCodes([1.5, 2.5, 4.0], np.array([2, 0, 0, 1])))
    plain.extend([4.0, 1.5, 1.5, 2.5])
    rows = [c.codes if isinstance(c, TextColumn) else c.values for c in (column, plain)]
    if isinstance(column, TextColumn) and isinstance(plain, TextColumn):
        read = [[c.values[code] for code in c.codes] for c in (column, plain)]
        assert read[0] == read[1]
    else:
        assert rows[0].tolist() == rows[1].tolist()
    del rows
    column.truncate(2)
    left = column.codes if isinstance(column, TextColumn) else column.values
    assert len(left) == 2
    del left
    column.truncate(0)
    assert len(column.codes if isinstance(column, TextColumn) else column.values) == 0


def test_codes_behave_as_the_list_they_stand_for() -> None:
    codes = CellCodes(["x", None, 3], np.array([1, 0, 0, 2]))
    assert len(codes) == 4
    assert list(codes) == [None, "x", "x", 3]
    assert [codes[i] for i in range(4)] == list(codes)
    assert codes[-1] == 3


def test_answers_are_hashed_alike_or_not_recorded() -> None:
    column = HashColumn()
    column.extend(["4", 4, "", None, "five", "4"])
    first, same, empty, nothing, other, again = column.values.tolist()
    assert first == same == again != other
    assert (empty, nothing) == (0, 0)
    assert 0 not in (first, other)


@pytest.mark.parametrize(
    ("cell", "number"),
    [("3", 3.0), (" 2.5 ", 2.5), (4, 4.0), (np.int64(5), 5.0), (np.float32(0.5), 0.5), (-1, -1.0)],
)
def test_numbers_of_many_kinds(cell: object, number: float) -> None:
    assert number_from(cell) == number


@pytest.mark.parametrize("cell", ["", None])
def test_an_empty_cell_is_not_recorded_and_no_whole_number(cell: object) -> None:
    assert math.isnan(number_from(cell))
    with pytest.raises(ValueError, match=r".*"):
        whole_number_from(cell)


@pytest.mark.parametrize("cell", ["x", [1], {"a": 1}, object()])
def test_what_is_no_number_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        number_from(cell)


@pytest.mark.parametrize("cell", ["2.5", 2.5, 2**53, "1e300", "nan", "inf"])
def test_whole_numbers_are_whole_and_exact(cell: object) -> None:
    with pytest.raises((ValueError, OverflowError)):
        whole_number_from(cell)
    assert whole_number_from("12") == 12
    assert whole_number_from(-3.0) == -3
    assert whole_number_from(2**53 - 1) == 2**53 - 1


@pytest.mark.parametrize("parse", [number_from, whole_number_from])
@pytest.mark.parametrize("as_codes", [False, True])
def test_the_first_bad_cell_is_named_with_its_row(parse: object, as_codes: bool) -> None:
    cells: object = ["1", "2", "two", "3", "three"]
    if as_codes:
        cells = CellCodes(["1", "three", "two", "3"], np.array([0, 0, 2, 3, 1]))
    with pytest.raises(RowError) as error:
        parse_column(cells, parse, first_row=100, named="steps", expected="numbers")  # type: ignore[arg-type]
    assert error.value.row == 102
    assert error.value.message == "steps should hold numbers, not 'two'."


def test_a_code_that_no_row_uses_may_be_anything() -> None:
    """A filter leaves values behind that occur in no row any more."""
    cells = CellCodes(["1", "not a number"], np.array([0, 0]))
    assert list(parse_column(cells, number_from, first_row=0, named="n", expected="")) == [1, 1]


def test_a_column_with_gaps_is_parsed_cell_by_cell() -> None:
    found = parse_column(["1", "", None, 2], number_from, first_row=0, named="n", expected="")
    assert [value if value == value else None for value in found] == [1.0, None, None, 2.0]


# -- attempts in the order of a plan ---------------------------------------------------------------


def _order(rows: list[list[tuple[int, int]]]) -> Order:
    """From (number, verdict) of every attempt."""
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    flat = [attempt for row in rows for attempt in row]
    verdicts = np.array([verdict for _, verdict in flat], np.int8)
    return Order(verdicts, starts, np.array([number for number, _ in flat], np.int64))


numbered = st.lists(
    st.dictionaries(st.integers(0, 7), st.sampled_from([1, 0, -1]), max_size=6).map(
        lambda row: sorted(row.items())
    ),
    min_size=1,
    max_size=5,
)


@given(numbered, st.data())
@settings(max_examples=max_examples(40))
def test_a_plan_by_task_is_filled_where_the_numbers_have_gaps(
    rows: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    planned = [data.draw(st.integers(1, 8)) for _ in rows]
    filled = _order(rows).filled(np.array(planned))
    for task, (row, plan) in enumerate(zip(rows, planned, strict=True)):
        size = max(plan, len(row))
        wanted = [-1] * size
        beyond = any(number >= plan for number, _ in row)
        for place, (number, verdict) in enumerate(row):
            wanted[place if beyond else number] = verdict
        assert [int(verdict) for verdict in filled.of(task)] == wanted
    assert sum(v != -1 for v in filled.verdicts) == sum(v != -1 for row in rows for _, v in row)


@given(numbered, st.integers(1, 6))
@settings(max_examples=max_examples(30))
def test_gaps_are_counted_up_to_the_attempts_that_are_used(
    rows: list[list[tuple[int, int]]], count: int
) -> None:
    def has_gap(row: list[tuple[int, int]], most: int) -> bool:
        used = [number for number, _ in row[:most]]
        return used != list(range(len(used)))

    order = _order(rows)
    assert order.gaps_before(count) == sum(has_gap(row, count) for row in rows)
    assert order.gaps_before() == sum(has_gap(row, len(row)) for row in rows)


def test_taking_tasks_twice_and_none_keeps_numbers_with_their_attempts() -> None:
    order = _order([[(0, 1), (2, 0)], [(1, -1)], []])
    taken = order.take(np.array([1, 0, 1]))
    assert taken.numbers is not None
    assert taken.numbers.tolist() == [1, 0, 2, 1]
    assert taken.of(1) == (Verdict.PASSED, Verdict.FAILED)
    nothing = order.take(np.array([2]))
    assert nothing.of(0) == ()
    assert nothing.completed(Completion.DROPPED).lengths.tolist() == [0]


# -- histograms, names and words -------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda x: (max(x), min(x))),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([1, 10**7]),
)
@settings(max_examples=max_examples(30))
def test_dense_and_sorted_histograms_count_the_same_cells(
    tasks: list[tuple[int, int]], scale: int
) -> None:
    """Numbers of ten million leave no room for a table, and are sorted instead."""
    n = np.array([size for size, _ in tasks], np.int64) * scale
    c = np.array([passed for _, passed in tasks], np.int64) * scale
    found = cells_of(n, c)
    wanted = sorted({(size * scale, passed * scale) for size, passed in tasks})
    assert list(zip(found.n.tolist(), found.c.tolist(), strict=True)) == wanted
    assert found.size == len(tasks)
    places = found.places(n, c)
    assert found.n[places].tolist() == n.tolist()
    assert found.c[places].tolist() == c.tolist()
    assert np.bincount(places).tolist() == found.tasks.tolist()


@pytest.mark.parametrize("n", [[4, 4], [4, 5], [4, 10**12]])
def test_negative_passes_are_no_histogram(n: list[int]) -> None:
    with pytest.raises(ValueError, match=r".*"):
        cells_of(np.array(n), np.array([2, -1]))


def test_a_histogram_is_its_plain_columns() -> None:
    found = Histogram(np.array([2, 4]), np.array([1, 0]), np.array([3, 5]))
    assert found.size == 8


def test_names_are_a_sequence_from_either_end() -> None:
    packed = PackedNames(["x", "", "zed", "ä"])
    assert [packed[-1], packed[-4], packed[1]] == ["ä", "x", ""]
    assert packed[::-2] == ["ä", ""]
    assert "zed" in packed
    assert packed.index("zed") == 2
    with pytest.raises(IndexError):
        packed[4]
    assert packed != PackedNames(["x", "", "ze", "dä"])  # the same letters, cut elsewhere
    assert repr(packed) == "<4 task ids>"
    assert packed != ["x", "", "zed", "ä"]  # a list has to be packed first
    assert not same_names(["a", "b"], ["b", "a"])
    assert list(whole_numbers_of(np.array([3, 1, 2]))) == [3, 1, 2]


@pytest.mark.parametrize(
    ("word", "category", "own"),
    [
        ("timeout: max_steps", "timeout", "max_steps"),
        ("TIMEOUT:  too slow ", "timeout", "too slow"),
        ("max_steps", "timeout", "max_steps"),
        ("odd: reason", "unknown_failure", "odd: reason"),
        ("KeyError", "exception", "KeyError"),
        ("key_error", "unknown_failure", "key_error"),
        ("http error", "unknown_failure", "http error"),
        ("wrong_answer:", "wrong_answer", ""),
    ],
)
def test_words_of_a_source_and_their_own_reason(word: str, category: str, own: str) -> None:
    assert failure_category(word) == category
    assert source_words(word) == own


def test_reasons_of_missing_attempts_have_their_own_words_too() -> None:
    assert missing_reason("judge_error: no key") == "judge_error"
    assert source_words("judge_error: no key") == "no key"
    assert missing_reason("") == "not_recorded"


@pytest.mark.parametrize("reach", [3, (1 << 16) - 1, 1 << 16, (1 << 16) + 1])
@pytest.mark.parametrize("least", [0, -5, 1 << 40])
def test_rows_are_sorted_whatever_the_reach_of_their_numbers(reach: int, least: int) -> None:
    """Up to 65,536 different numbers are sorted as numbers of two bytes."""
    rank = np.array([reach, 0, 1, reach - 1, 0]) + least
    assert sort_rows(np.zeros(5, np.int64), rank).tolist() == [1, 4, 2, 3, 0]
    assert sort_rows(rank, None).tolist() == [1, 4, 2, 3, 0]


@pytest.mark.parametrize("limit", [0, 1, 2, 4, 5])
def test_numbers_of_few_and_of_far_codes_are_the_same(limit: int) -> None:
    """Codes far apart are numbered by sorting, others in a table."""
    codes = np.array([7, 3, 7, 0, 3])
    far = codes * (1_020 // 7 + limit)
    ranks, distinct = number_by_appearance(far)
    assert ranks.tolist() == [0, 1, 0, 2, 1]
    assert distinct.tolist() == [far[0], far[1], far[3]]
    assert [part.tolist() for part in number_by_appearance(codes[:0])] == [[], []]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1,5e3", None),
        ("1,2,3", None),
        ("12,5", 12.5),
        ("-,5", -0.5),
        ("1,000", 1000),
        ("0,123", 0.123),
        ("1 000%", 10),
        ("38 (72%)", 38),
        ("60.0% [40.7%; 76.6%]", 0.6),
        ("40.0 ± 5.5", 40),
        ("40.0 ± 5.5%", 0.4),
        ("**12** runs", None),
        ("12 runs", 12),
        ("1e999", None),
        ("nan", None),
    ],
)
def test_numbers_as_tables_write_them(cell: object, number: float | None) -> None:
    assert parse_number(cell) == (None if number is None else pytest.approx(number))


def test_packed_names_are_compared_with_packed_names_and_lists() -> None:
    names = ["a", "b"]
    assert same_names(PackedNames(names), PackedNames(names))
    assert same_names(PackedNames(names), names)
    assert not same_names(PackedNames(names), PackedNames(["a", "c"]))
    assert not same_names(PackedNames(names), PackedNames(["ab", ""]))
    assert not same_names(names, ["a"])
