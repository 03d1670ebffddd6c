"""Attempts that a table lists twice: copies, and attempts that were made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat import Run, read
from passhat.errors import PasshatError


def _read(folder: Path, text: str) -> Run:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    (run,) = read(path)
    return run


_TABLE = "task,attempt,passed,note\na,1,1,x\na,2,0,y\nb,1,0,x\nb,2,1,y\n"


def test_rows_alike_in_every_cell_count_once(tmp_path: Path) -> None:
    run = _read(tmp_path, _TABLE + "a,2,0,y\nb,1,0,x\n")
    assert (run.outcomes.passes, run.outcomes.scored) == (2, 4)
    assert "2 rows written twice, alike in every cell: counted once" in run.decisions
    assert run.tally is not None
    assert run.tally.rows == 6


@pytest.mark.parametrize("row", ["a,2,1,y", "a,2,0,z"])
def test_rows_that_differ_are_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(PasshatError, match="trial '2' of task 'a' is listed twice"):
        _read(tmp_path, f"{_TABLE}b,1,0,x\n{row}\n")


def test_one_label_for_all_attempts_makes_no_copies(tmp_path: Path) -> None:
    with pytest.raises(PasshatError, match="is listed twice"):
        _read(tmp_path, "task,attempt,passed\na,1,1\na,1,1\nb,1,0\nb,1,0\n")


def test_attempt_without_verdict_that_was_made_again(tmp_path: Path) -> None:
    run = _read(tmp_path, "task,attempt,passed\na,1,1\na,2,\nb,1,0\nb,2,1\na,2,0\n")
    assert (run.outcomes.passes, run.outcomes.scored) == (2, 4)
    assert run.outcomes.total_missing == 0
    assert "1 attempt without a verdict and listed again: the later row counts" in run.decisions
    assert run.tally is not None
    assert (run.tally.rows, run.tally.attempts) == (5, 4)


def test_verdict_before_an_empty_cell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PasshatError, match="Keep the row that counts"):
        _read(tmp_path, "task,attempt,passed\na,1,1\na,2,1\na,2,\n")
