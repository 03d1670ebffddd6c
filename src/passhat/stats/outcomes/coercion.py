"""Outcomes from common kinds of data: a run, a matrix, columns, or a data frame.

No library of data frames is imported: what they have in common is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from passhat._display import some
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes.cells import RowError
from passhat.stats.outcomes.run import Run
from passhat.stats.outcomes.table import Outcomes

Data: TypeAlias = "Run | Outcomes | Sequence[Sequence[Any]] | np.ndarray[Any, Any] | Any"
"""A run, outcomes, a matrix with a row per task, or a data frame."""

_TAKES = (
    "a Run (from passhat.run or passhat.read), Outcomes, a matrix of 0 and 1 with a row per task "
    "and a column per attempt, or of scores from 0 to 1 (a list of lists or a NumPy array; None "
    "or NaN is a missing attempt), a dict of task: [attempts], or a pandas or polars frame or "
    "an Arrow table with the columns task and success, or task, n and c, or task and a column per "
    "attempt"
)
_NUMBERED = re.compile(r"(.*?)(\d+)")
"""The name of a column that holds one attempt of every task, as in attempt_1."""
_NOT_AVAILABLE = "NAType"
"""The type of pandas.NA."""


def as_outcomes(data: Data) -> Outcomes:
    """Outcomes of the data; other kinds of data are refused."""
    outcomes = as_run_or_outcomes(data)
    return outcomes.outcomes if isinstance(outcomes, Run) else outcomes


def as_run_or_outcomes(data: Data) -> Run | Outcomes:
    """The run or the outcomes that were given; a matrix or a data frame becomes outcomes."""
    if isinstance(data, Run | Outcomes):
        return data
    data = _as_columns(data)
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if _is_frame(data):
        return _from_frame(data)
    if hasattr(data, "to_list") and not isinstance(data, list):
        return _from_series(data)
    if isinstance(data, Iterator):
        data = list(data)
    if _is_row(data):
        return _from_matrix(data)
    raise InvalidValue(f"expected {_TAKES}; got {kind_of(data)}.")


class SeveralRuns(InvalidValue):
    """A table of several runs where one is needed."""

    runs: Sequence[Run] = ()


def _as_columns(data: Any) -> Any:
    """A dict of columns of what other libraries read step by step; all else as it is."""
    if hasattr(data, "collect") and hasattr(data, "lazy"):  # a LazyFrame of polars
        data = data.collect()
    if hasattr(data, "read_all") and hasattr(data, "schema"):  # a stream of Arrow
        data = data.read_all()
    if hasattr(data, "to_pydict"):  # Arrow
        data = data.to_pydict()
    if hasattr(data, "fetchall") and hasattr(data, "columns"):  # a relation of DuckDB
        data = dict(zip(data.columns, map(list, zip(*data.fetchall(), strict=True)), strict=True))
    return data


def as_runs(data: Any) -> list[Run]:
    """One or several runs: a list, a dict with a name for each, or a table that names models."""
    if isinstance(data, Mapping) and data and all(map(_is_table, data.values())):
        sides = [(str(name), as_run_or_outcomes(side)) for name, side in data.items()]
        # The reports name a run by its agent: what the caller calls it is what is printed.
        return [
            replace(side, name=name, agent=name) if isinstance(side, Run) else Run(name, name, side)
            for name, side in sides
        ]
    several = isinstance(data, list | tuple) and len(data) > 0 and all(map(_is_table, data))
    try:
        tables = [as_run_or_outcomes(side) for side in (data if several else [data])]
    except SeveralRuns as error:
        if several:
            raise
        return list(error.runs)
    names = (
        [f"outcomes {place}" for place in range(1, len(tables) + 1)] if several else ["outcomes"]
    )
    return [
        side if isinstance(side, Run) else Run(name, "not named", side)
        for name, side in zip(names, tables, strict=True)
    ]


def _is_table(data: object) -> bool:
    """Whether a part of the data is a run's results by itself, not a row of attempts."""
    if isinstance(data, Run | Outcomes | Mapping) or _is_frame(data) or hasattr(data, "collect"):
        return not isinstance(data, Mapping) or any(map(_is_row, data.values()))
    if isinstance(data, np.ndarray):
        return data.ndim == 2
    return _is_row(data) and any(map(_is_row, data))  # type: ignore[call-overload]


def _is_row(data: object) -> bool:
    return isinstance(data, Sequence | np.ndarray) and not isinstance(data, str | bytes)


def kind_of(data: object) -> str:
    """A value with its type, for an error message."""
    name = type(data).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name} ({shorten(data if isinstance(data, str) else repr(data))})"


def _from_matrix(data: Any) -> Outcomes:
    if isinstance(data, np.ndarray) and (data.ndim == 0 or data.dtype.kind == "c"):
        raise InvalidValue(f"expected {_TAKES}; got {kind_of(data)}.")
    if len(data) and all(isinstance(item, Run) for item in data):
        raise InvalidValue(
            f"expected one run, got a list of {len(data)}.",
            hint="passhat.read returns a list: write run, = passhat.read(...), or choose one.",
        )
    if len(data) and all(isinstance(item, Mapping) for item in data):
        return Outcomes.from_records(data)
    return _from_rows(data)


def _from_rows(rows: Any, tasks: Sequence[str] | None = None) -> Outcomes:
    """Outcomes of a matrix of verdicts, of scores, or of words such as pass and fail."""
    if not isinstance(rows, np.ndarray) or rows.dtype.kind in "OUS":
        cells = [cell for row in rows if _is_row(row) for cell in row]
        if any(isinstance(cell, str) for cell in cells):
            names = tasks or [f"task {place}" for place in range(1, len(rows) + 1)]
            return _from_ragged(dict(zip(names, rows, strict=True)))
        if any(type(cell).__name__ == _NOT_AVAILABLE for cell in cells):
            rows = [list(map(_as_cell, row)) for row in rows]
    build = Outcomes.from_scores if _holds_scores(rows) else Outcomes.from_matrix
    return build(rows, tasks)


def _from_ragged(rows: Mapping[str, Any]) -> Outcomes:
    return Outcomes.from_records(
        {"task": name, "trial": trial, "success": _as_cell(cell)}
        for name, row in rows.items()
        for trial, cell in enumerate(row)
    )


def _from_mapping(data: Mapping[Any, Any]) -> Outcomes:
    """Outcomes of ``{"task": [...], "success": [...]}``, or of attempts by task."""
    if not all(_is_row(cells) or hasattr(cells, "to_list") for cells in data.values()):
        raise InvalidValue(f"expected {_TAKES}; got {kind_of(data)}.")
    names = [str(name) for name in data]
    _refuse_repeats(names, "several tasks")
    rows = {str(task): list(map(_as_cell, cells)) for task, cells in data.items()}
    if _has_columns(names):
        return _from_columns(rows)
    if not rows or not all(rows.values()):
        raise InvalidValue(
            "a dict needs tasks, each with its attempts: "
            + ("it is empty." if not rows else "some have none."),
            hint='For example {"a": [1, 0, 1], "b": [1, 1, None]}.',
        )
    if len({len(row) for row in rows.values()}) == 1:
        return _from_rows(list(rows.values()), names)
    return _from_ragged(rows)


def _refuse_repeats(names: Sequence[str], what: str) -> None:
    """Refuse two of one name: a dict would keep the last alone."""
    repeats = [name for name, count in Counter(names).items() if count > 1]
    if repeats:
        raise InvalidValue(f"the data have {what} named {repeats[0]}.")


def _from_series(series: Any) -> Outcomes:
    """Outcomes of a series whose index names the task of each attempt, and perhaps its number."""
    tasks, cells = list(getattr(series, "index", range(len(series)))), series.to_list()
    if tasks == list(range(len(cells))):
        raise InvalidValue(
            f"a series of {len(cells)} values without an index does not tell tasks from attempts.",
            hint="Use the tasks as its index, or give a matrix with a row per task.",
        )
    if cells and all(map(_is_row, cells)):
        _refuse_repeats([str(task) for task in tasks], "several rows")
        return _from_mapping(dict(zip(tasks, cells, strict=True)))
    if getattr(series.index, "nlevels", 1) > 1:
        return _from_frame(series.rename("success").reset_index())
    return _from_columns({"task": tasks, "success": [_as_cell(cell) for cell in cells]})


def _as_cell(cell: object) -> object:
    return None if cell is np.ma.masked or type(cell).__name__ == _NOT_AVAILABLE else cell


def _holds_scores(data: Any) -> bool:
    """Whether a matrix has fractions, all of them between 0 and 1."""
    try:
        numbers = np.ma.filled(np.ma.asarray(data, np.float64), np.nan)
    except (TypeError, ValueError):
        return False
    numbers = numbers[~np.isnan(numbers)]
    has_fractions = bool(((numbers > 0) & (numbers < 1)).any())
    return has_fractions and bool(((numbers >= 0) & (numbers <= 1)).all())


def _is_frame(data: object) -> bool:
    """Whether this is a data frame (pandas, polars and others have the same two members)."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")


def _has_columns(names: Sequence[str]) -> bool:
    from passhat.stats.outcomes.columns import ColumnMap

    columns = ColumnMap.resolve(names)
    return columns.holds_attempts or columns.holds_counts


def _from_frame(frame: Any) -> Outcomes:
    """Outcomes of a frame with the columns of a table, or with a column for each attempt."""
    names = [str(name) for name in frame.columns]
    if not _has_columns(names) and hasattr(frame, "reset_index"):
        # In pandas the tasks may be the index.
        frame = frame if list(frame.index) == list(range(len(frame))) else frame.reset_index()
        names = [str(name) for name in frame.columns]
    _refuse_repeats(names, "several columns")
    # Both libraries have to_list; a missing value is None in polars; NaN, NaT or NA in pandas.
    columns = {
        name: _cells(frame[column]) for name, column in zip(names, frame.columns, strict=True)
    }
    if _has_columns(names):
        return _from_columns(columns)
    return _from_wide(columns)


def _cells(column: Any) -> list[Any]:
    """The cells of a column; a million plain numbers are not looked at one by one."""
    cells: list[Any] = column.to_list()
    kind = getattr(column, "dtype", None)
    may_hold_na = hasattr(kind, "na_value") or str(kind) == "object"
    return list(map(_as_cell, cells)) if may_hold_na else cells


def _from_wide(columns: dict[str, list[Any]]) -> Outcomes:
    """Outcomes of a column with the task and one for each attempt: attempt_1, attempt_2.

    Names without a number may be those of models, so that only numbered ones are attempts.
    """
    numbered = {name: match for name in columns if (match := _NUMBERED.fullmatch(name))}
    prefixes = {match[1] for match in numbered.values()}
    others = [name for name in columns if name not in numbered]
    if len(prefixes) != 1 or len(others) > 1:
        raise InvalidValue(
            f"the frame has the columns {some(list(columns), 12)}; it needs task and success (one "
            "row per attempt), task, n and c (one row per task), or task and a column for each "
            "attempt (attempt_1, attempt_2).",
            hint="Rename them: frame.rename(columns={'my_column': 'task'})",
        )
    order = sorted(numbered, key=lambda name: int(numbered[name][2]))
    matrix = list(zip(*(columns[name] for name in order), strict=True))
    return _from_rows(matrix, [str(task) for task in columns[others[0]]] if others else None)


def _from_columns(values: dict[str, list[Any]]) -> Outcomes:
    """Outcomes of a table's columns."""
    from passhat.stats.outcomes.columns import ColumnMap
    from passhat.stats.outcomes.gathering import AttemptGatherer, CountGatherer

    columns = ColumnMap.resolve(values)
    for row, task in enumerate(values.get(columns.meaning["task"], ()), 1):
        if task is None or task != task:  # NaN is not itself
            raise InvalidValue(f"row {row} of the frame has no task.")
    verdicts = columns.meaning.get("success", "")
    if -1 in values.get(verdicts, ()):
        raise InvalidValue(
            f"{verdicts} holds -1, which may be a failure or a missing attempt.",
            hint=f"Say which: frame.replace({{{verdicts!r}: {{-1: 0}}}}), or None in place of 0.",
        )
    gatherer: AttemptGatherer | CountGatherer
    gatherer = AttemptGatherer(columns) if columns.holds_attempts else CountGatherer(columns)
    try:
        gatherer.add(values)
        parts = gatherer.runs()
    except RowError as error:
        other = "" if error.other is None else f" (see row {error.other})"
        raise InvalidValue(
            f"row {error.row} of the frame: {error.message}{other}", hint=error.hint
        ) from None
    if not parts:
        raise InvalidValue("the frame has no rows.")
    if len(parts) > 1:
        names = [" on ".join(filter(None, (run.model, run.suite))) for run in parts]
        refusal = SeveralRuns(
            f"the frame holds {len(parts)} runs ({some(names)}), and one is needed.",
            hint="Choose one: frame[frame['model'] == 'NAME']",
        )
        refusal.runs = [
            Run(name, part.model or name, Outcomes.from_columns(part.columns))
            for name, part in zip(names, parts, strict=True)
        ]
        raise refusal
    return Outcomes.from_columns(parts[0].columns)
