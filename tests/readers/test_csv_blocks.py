"""Columns cut by NumPy are the columns that csv.reader gives."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import read
from passhat.readers.csv_blocks import cut_block

CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=',"\n\r\x00'), max_size=30
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=40))
def test_cut_agrees_with_csv_reader(rows: list[tuple[str, str, str]]) -> None:
    text = "".join(",".join(row) + "\n" for row in rows)
    block = cut_block(text.encode(), ("a", "b", "c"), b",")
    assert block is not None
    columns = list(zip(*csv.reader(io.StringIO(text, newline="")), strict=True))
    assert [tuple(block[name]) for name in block] == columns


@given(st.lists(st.text('ab,\n"\r é', max_size=12), min_size=1, max_size=12))
def test_what_is_not_plain_is_left_to_the_parser(lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    block = cut_block(text.encode(), ("a", "b"), b",")
    if block is not None:
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert [list(row) for row in zip(*block.values(), strict=True)] == rows


@given(st.lists(st.from_regex(r"[0-9]{0,9}[.]?[0-9]{0,6}", fullmatch=True), min_size=1, max_size=9))
def test_decimal_numbers_are_those_of_float(cells: list[str]) -> None:
    block = cut_block("".join(f"{cell},1\n" for cell in cells).encode(), ("a", "b"), b",")
    assert block is not None
    numbers = block["a"].numbers()
    if any(cell == "." or len(cell) > 15 for cell in cells):
        assert numbers is None
    else:
        assert numbers is not None
        expected = [float(cell) if cell else math.nan for cell in cells]
        assert np.array_equal(numbers, expected, equal_nan=True)


@pytest.mark.parametrize("cell", ["-1", "1e3", "nan", "1_0", " 1", "1.2.3", "."])
def test_other_forms_of_numbers_are_left_to_python(cell: str) -> None:
    block = cut_block(f"{cell},1\n2,1\n".encode(), ("a", "b"), b",")
    assert block is not None
    assert block["a"].numbers() is None
    assert list(block["a"]) == [cell, "2"]


def test_long_cells_and_equal_beginnings() -> None:
    cells = ["x" * 100 + str(i % 3) for i in range(50)] + ["y" * 16, "y" * 17, "y" * 8, "y" * 9, ""]
    block = cut_block("".join(f"{cell},1\n" for cell in cells).encode(), ("a", "b"), b",")
    assert block is not None
    assert list(block["a"]) == cells


def test_each_different_cell_is_kept_once_whatever_follows_it() -> None:
    cells = [f"{'task' * size}{i % 4}" for size in range(1, 7) for i in range(40)]
    text = "".join(f"{cell},{row}\n" for row, cell in enumerate(cells))
    block = cut_block(text.encode(), ("a", "b"), b",")
    assert block is not None
    assert sorted(block["a"].values) == sorted(set(cells))  # type: ignore[type-var]
    assert [block["a"].values[code] for code in block["a"].codes] == cells


def test_a_quote_late_in_a_large_table_changes_nothing(tmp_path: Path) -> None:
    rows = [f"t{i % 997},{i // 997},{i % 2}" for i in range(60_000)]
    rows[50_001] = f'"t{50_001 % 997}",{50_001 // 997},1'
    path = tmp_path / "table.csv"
    path.write_text("task,trial,success\n" + "\n".join(rows) + "\n")
    (run,) = read(path)
    assert run.outcomes.attempts == 60_000
    assert run.outcomes.passes == 30_000
    rows[50_002] = "broken"
    path.write_text("task,trial,success\n" + "\n".join(rows))
    (run,) = read(path)
    assert [loss.where for loss in run.losses] == ["line 50004"]
    assert run.outcomes.attempts == 59_999


@pytest.mark.parametrize("number", [1_000, 40_000])
def test_many_different_cells_in_any_order(number: int) -> None:
    rng = np.random.default_rng(number)
    cells = [f"task {i}" for i in rng.integers(0, number, 60_000)]
    block = cut_block("".join(f"{cell},1\n" for cell in cells).encode(), ("a", "b"), b",")
    assert block is not None
    assert sorted(block["a"].values) == sorted(set(cells))  # type: ignore[type-var]
    assert list(block["a"]) == cells


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=9), st.data())
def test_lines_of_windows(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    ends = data.draw(st.lists(st.sampled_from(["\r\n", "\r\n", "\r\n", "\n"]), min_size=len(rows)))
    text = "".join(",".join(row) + end for row, end in zip(rows, ends, strict=False))
    block = cut_block(text.encode(), ("a", "b"), b",")
    assert (block is None) == (len(set(ends[: len(rows)])) > 1)
    if block is not None:
        assert list(zip(block["a"], block["b"], strict=True)) == rows


def test_rows_in_any_order_give_the_same_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    passed = rng.random((70_000, 3)) < 0.4
    rows = [
        f"t{task},{trial},{int(passed[task, trial])}"
        for task in range(70_000)
        for trial in range(3)
    ]
    counts = []
    for order in (range(len(rows)), rng.permutation(len(rows))):
        path = tmp_path / "a.csv"
        path.write_text("\n".join(["task,trial,success", *(rows[i] for i in order)]) + "\n")
        (run,) = read(path)
        outcomes = run.outcomes
        counts.append(dict(zip(outcomes.tasks, outcomes.c.tolist(), strict=True)))
    assert counts[0] == counts[1]
