"""Outcomes from common kinds of data: a run, a matrix, or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from passhat._display import some
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes.cells import RowError
from passhat.stats.outcomes.run import Run
from passhat.stats.outcomes.table import Outcomes

__all__ = ["Data", "as_outcomes", "as_run_or_outcomes", "kind_of"]

Data: TypeAlias = "Run | Outcomes | Sequence[Sequence[Any]] | np.ndarray[Any, Any] | Any"
"""A run, outcomes, a matrix with a row per task, or a data frame."""

_TAKES = (
    "a Run (from passhat.run or passhat.read), Outcomes, a matrix of 0 and 1 with a row per task "
    "and a column per attempt, or of scores from 0 to 1 (a list of lists or a NumPy array; None "
    "or NaN is a missing attempt), or a pandas or polars frame with the columns task and success, "
    "or task, n and c"
)


def as_outcomes(data: Data) -> Outcomes:
    """Outcomes of the data; other kinds of data are refused."""
    outcomes = as_run_or_outcomes(data)
    return outcomes.outcomes if isinstance(outcomes, Run) else outcomes


def as_run_or_outcomes(data: Data) -> Run | Outcomes:
    """The run or the outcomes that were given; a matrix or a data frame becomes outcomes."""
    if isinstance(data, Run | Outcomes):
        return data
    if _is_frame(data):
        return _from_frame(data)
    if isinstance(data, np.ndarray) or (
        isinstance(data, Sequence) and not isinstance(data, str | bytes)
    ):
        return _from_matrix(data)
    hint = None
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        hint = f"Read the file first: run, = passhat.read({str(data)!r})"
    raise InvalidValue(f"expected {_TAKES}; got {kind_of(data)}.", hint=hint)


def kind_of(data: object) -> str:
    """A value with its type, for an error message."""
    name = type(data).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name} ({shorten(repr(data))})"


def _from_matrix(data: Any) -> Outcomes:
    if len(data) and all(isinstance(item, Run) for item in data):
        raise InvalidValue(
            f"expected one run, got a list of {len(data)}.",
            hint="passhat.read returns a list: write run, = passhat.read(...), or choose one.",
        )
    if len(data) and all(isinstance(item, Mapping) for item in data):
        return Outcomes.from_records(data)
    if _holds_scores(data):
        return Outcomes.from_scores(data)
    return Outcomes.from_matrix(data)


def _holds_scores(data: Any) -> bool:
    """Whether a matrix has fractions, all of them between 0 and 1."""
    try:
        numbers = np.asarray(data, np.float64)
    except (TypeError, ValueError):
        return False
    numbers = numbers[~np.isnan(numbers)]
    has_fractions = bool(((numbers > 0) & (numbers < 1)).any())
    return has_fractions and bool(((numbers >= 0) & (numbers <= 1)).all())


def _is_frame(data: object) -> bool:
    """Whether this is a data frame (pandas, polars and others have the same two members)."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")


def _from_frame(frame: Any) -> Outcomes:
    """Outcomes of a frame with the columns of a table; neither library is imported for it."""
    from passhat.stats.outcomes.columns import ColumnMap
    from passhat.stats.outcomes.gathering import AttemptGatherer, CountGatherer

    names = [str(name) for name in frame.columns]
    columns = ColumnMap.resolve(names)
    if columns.holds_attempts:
        gatherer: AttemptGatherer | CountGatherer = AttemptGatherer(columns)
    elif columns.holds_counts:
        gatherer = CountGatherer(columns)
    else:
        raise InvalidValue(
            f"the frame has the columns {some(names, 12)}; it needs task and success (one row per "
            "attempt), or task, n and c (one row per task).",
            hint="Rename them: frame.rename(columns={'my_column': 'task'})",
        )
    # Both libraries have to_list; a missing value is None in polars, NaN or NaT in pandas.
    values = {name: frame[name].to_list() for name in names}
    try:
        gatherer.add(values)
        parts = gatherer.runs()
    except RowError as error:
        other = "" if error.other is None else f" (see row {error.other})"
        raise InvalidValue(
            f"row {error.row} of the frame: {error.message}{other}", hint=error.hint
        ) from None
    if len(parts) != 1:
        models = some([run.model or "" for run in parts])
        raise InvalidValue(
            f"the frame holds {len(parts)} runs ({models}), and one is needed.",
            hint="Choose one: frame[frame['model'] == 'NAME']",
        )
    return Outcomes.from_columns(parts[0].columns)
