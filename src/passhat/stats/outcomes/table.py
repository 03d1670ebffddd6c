"""Outcomes: per task n scored, c passed, m missing, and the order where it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from passhat._display import counted, html_table
from passhat._serialize import Plain
from passhat.errors import InvalidCounts, InvalidValue, shorten
from passhat.stats.arrays import BoolArray, IntArray, VerdictArray
from passhat.stats.outcomes.attempts import Attempt
from passhat.stats.outcomes.cells import (
    Histogram,
    PackedNames,
    RowError,
    cells_of,
    fillings_between,
)
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, OutcomeColumns
from passhat.stats.outcomes.order import Order, Scores
from passhat.stats.outcomes.rewards import REWARD_TOLERANCE, Unscored, check_threshold
from passhat.stats.outcomes.vocabulary import Completion, Verdict


def columns_from_records(records: Iterable[Mapping[str, object] | Attempt]) -> OutcomeColumns:
    """See :meth:`Outcomes.from_records`."""
    rows = [_as_mapping(record, index) for index, record in enumerate(records)]
    if not rows:
        raise InvalidValue("there are no records: at least one attempt is needed.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = ColumnMap.resolve(names)
    if not columns.holds_attempts:
        raise InvalidValue(
            f"records need a task and a success; these have: {', '.join(map(str, names))}.",
            hint="Name them 'task' and 'success', or use an alias such as task_id and passed.",
        )
    gatherer = AttemptGatherer(columns)
    try:
        gatherer.add({name: [row.get(name) for row in rows] for name in names})
        runs = gatherer.runs()
    except RowError as error:
        other = "" if error.other is None else f" (see record {error.other})"
        raise InvalidValue(f"record {error.row}: {error.message}{other}") from None
    if len(runs) > 1:
        raise InvalidValue(
            f"the records belong to {len(runs)} runs (they differ in model, suite or temperature).",
            hint="Make one Outcomes for each.",
        )
    return runs[0].columns


def _as_mapping(record: Mapping[str, object] | Attempt, index: int) -> Mapping[str, object]:
    if isinstance(record, Attempt):
        success = None if record.verdict is Verdict.MISSING else bool(record.verdict)
        row = {"task": record.task, "trial": record.number, "success": success}
        return row if record.score is None else {**row, "score": record.score}
    if isinstance(record, Mapping):
        return record
    raise InvalidValue(
        f"record {index} is a {type(record).__name__}; a mapping such as "
        '{"task": "a", "success": True} or an Attempt is needed.'
    )


@dataclass(frozen=True, slots=True)
class TaskNumbers(Sequence[str]):
    """Ids for tasks without ids, made when they are read: a million cost nothing."""

    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [str(i) for i in range(self.size)[index]]
        return str(range(self.size)[index])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcomes(Plain):
    """The outcomes of a run, task by task; build it with one of the ``from_`` methods.

    Attributes
    ----------
    tasks : sequence of str
        Task ids, unique.
    n, c : int arrays
        Attempts with a verdict, and how many of them passed.
    m : int array or None
        Attempts without a verdict; ``None`` when there are none at all.
    order : Order or None
        Attempt by attempt, when the order is known.
    labels : mapping of str to tuple of str
        Slices: for each label name one value per task.
    scores : Scores or None
        Graded results of the attempts; ``None`` where each would be the verdict itself.
    unscored : Unscored or None
        Why scores that the source has are not here; ``None`` where none are lost.
    binary_scores : bool
        Whether the source gives scores, although each of them is 0 or 1 and so its verdict.
    """

    tasks: Sequence[str]
    n: IntArray
    c: IntArray
    m: IntArray | None = None
    order: Order | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    _cells: Histogram | None = None
    scores: Scores | None = None
    unscored: Unscored | None = None
    binary_scores: bool = False

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def from_counts(
        cls,
        n: npt.ArrayLike,
        c: npt.ArrayLike,
        tasks: Sequence[str] | None = None,
        *,
        missing: npt.ArrayLike | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> Outcomes:
        """Outcomes from n scored attempts and c passes per task.

        Arrays of ``int64`` are kept, not copied. ``n`` may be one number for all tasks.

        Examples
        --------
        >>> Outcomes.from_counts(10, [0, 1, 2, 4])
        <Outcomes: 4 tasks x 10 attempts, 7 passed>
        """
        passes = np.atleast_1d(whole_numbers(c, "c"))
        judged_counts = whole_numbers(n, "n")
        if passes.ndim != 1 or judged_counts.ndim > 1:
            raise InvalidCounts("n and c must be one-dimensional, one entry per task.")
        if len(passes) == 0:
            raise InvalidCounts("there are no tasks: n and c are empty.")
        judged_counts = _one_per_task(judged_counts, len(passes), "n")
        missing_counts = None if missing is None else whole_numbers(missing, "missing")
        if missing_counts is not None:
            missing_counts = _nonzero_or_none(_one_per_task(missing_counts, len(passes), "missing"))
        cells = _check_cells(judged_counts, passes, missing_counts)
        # Packed names come from a source that lists each task once.
        packed_names = tasks if isinstance(tasks, PackedNames) else None
        names = packed_names or (
            TaskNumbers(len(passes)) if tasks is None else tuple(map(str, tasks))
        )
        _check_names(names, len(passes), unique=tasks is not None and packed_names is None)
        return cls(
            names,
            judged_counts,
            passes,
            missing_counts,
            None,
            _frozen_labels(labels, len(passes)),
            cells,
        )

    @classmethod
    def from_matrix(
        cls,
        matrix: npt.ArrayLike,
        tasks: Sequence[str] | None = None,
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> Outcomes:
        """Outcomes from tasks x attempts of 1 (passed), 0 (failed), NaN or -1 (missing).

        The columns are taken to be in the order of the attempts.

        Examples
        --------
        >>> Outcomes.from_matrix([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
        <Outcomes: 3 tasks x 3 attempts, 2 passed, order known>
        """
        verdicts = _verdict_matrix(_as_array(matrix))
        rows, columns = verdicts.shape
        passed = _row_counts(verdicts == 1) if verdicts.dtype == np.int8 else _row_counts(verdicts)
        missing_counts = None
        if verdicts.dtype == np.int8:
            missing_counts = _row_counts(verdicts == -1)
            missing_counts = missing_counts if missing_counts.any() else None
        judged_counts: IntArray = np.broadcast_to(np.int64(columns), rows)
        judged_counts = judged_counts if missing_counts is None else judged_counts - missing_counts
        flat: VerdictArray = verdicts.reshape(-1).view(np.int8)
        order = Order(flat, np.arange(0, rows * columns + 1, columns, dtype=np.int64))
        names = TaskNumbers(rows) if tasks is None else tuple(map(str, tasks))
        _check_names(names, rows, unique=tasks is not None)
        cells = _check_cells(judged_counts, passed, missing_counts)
        return cls(
            names, judged_counts, passed, missing_counts, order, _frozen_labels(labels, rows), cells
        )

    @classmethod
    def from_scores(
        cls,
        matrix: npt.ArrayLike,
        tasks: Sequence[str] | None = None,
        *,
        pass_at: float = 1.0,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> Outcomes:
        """Outcomes from tasks x attempts of scores between 0 and 1; NaN is missing.

        An attempt passes from a score of ``pass_at``.

        Examples
        --------
        >>> Outcomes.from_scores([[0.5, 1.0], [0.0, 0.25]])
        <Outcomes: 2 tasks x 2 attempts, 1 passed, order known, scores kept>
        """
        check_threshold(pass_at, None)
        try:
            scores = _as_array(matrix).astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidValue("the matrix must hold scores, and NaN for missing.") from None
        if not bool((np.isnan(scores) | ((scores >= 0) & (scores <= 1))).all()):
            raise InvalidValue(
                f"scores lie between 0 and 1; here they go from {np.nanmin(scores):g} to "
                f"{np.nanmax(scores):g}.",
                hint="Scale them: (scores - lowest) / (highest - lowest).",
            )
        with np.errstate(invalid="ignore"):
            verdicts = np.where(np.isnan(scores), np.nan, scores >= pass_at - REWARD_TOLERANCE)
        outcomes = cls.from_matrix(verdicts, tasks, labels=labels)
        starts = np.arange(0, scores.size + 1, scores.shape[1], dtype=np.int64)
        return replace(outcomes, scores=Scores(scores.reshape(-1), starts))

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, object] | Attempt]) -> Outcomes:
        """Outcomes from one record per attempt.

        A record is a mapping with ``task`` and ``success`` (or an alias such as ``task_id`` and
        ``passed``), optionally ``trial`` and ``slice:NAME``; ``None`` as success is missing. The
        order is known when trials are whole numbers. Records may also be :class:`Attempt`.

        Examples
        --------
        >>> Outcomes.from_records([{"task": "a", "trial": 0, "success": True},
        ...                        {"task": "a", "trial": 1, "success": False}])
        <Outcomes: 1 task x 2 attempts, 1 passed, order known>
        """
        return cls.from_columns(columns_from_records(records))

    @classmethod
    def from_columns(cls, columns: OutcomeColumns) -> Outcomes:
        """Outcomes from the columns of a gatherer."""
        if columns.order is None:
            outcomes = cls.from_counts(
                columns.n, columns.c, columns.tasks, missing=columns.m, labels=columns.labels
            )
            return replace(
                outcomes,
                scores=columns.scores,
                unscored=columns.unscored,
                binary_scores=columns.binary_scores,
            )
        labels = MappingProxyType({name: tuple(v) for name, v in columns.labels.items()})
        return cls(
            columns.tasks,
            columns.n,
            columns.c,
            columns.m,
            columns.order,
            labels,
            scores=columns.scores,
            unscored=columns.unscored,
            binary_scores=columns.binary_scores,
        )

    # -- looking -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def missing(self) -> IntArray:
        """Attempts without a verdict, per task."""
        return np.zeros(len(self), np.int64) if self.m is None else self.m

    @property
    def total_missing(self) -> int:
        return 0 if self.m is None else int(self.m.sum())

    @property
    def scored(self) -> int:
        """Attempts that have a verdict, over all tasks."""
        return int(self.n.sum())

    @property
    def attempts(self) -> int:
        """Attempts over all tasks, including missing attempts."""
        return self.scored + self.total_missing

    @property
    def passes(self) -> int:
        return int(self.c.sum())

    def counts(self, completion: Completion) -> tuple[IntArray, IntArray]:
        """n and c once missing attempts are filled in (or dropped)."""
        if self.m is None or completion is Completion.DROPPED:
            return self.n, self.c
        if completion is Completion.AS_PASSED:
            return self.n + self.m, self.c + self.m
        return self.n + self.m, self.c

    def histogram(self, completion: Completion = Completion.AS_FAILED) -> Histogram:
        """How many tasks have each (n, c)."""
        if self._cells is not None and (self.m is None or completion is Completion.DROPPED):
            return self._cells
        return cells_of(*self.counts(completion))

    def histograms_between(self) -> list[Histogram]:
        """Histograms between those with missing attempts failed and passed, where ends may lie."""
        if self.m is None:
            return []
        return fillings_between(*self.counts(Completion.AS_FAILED), self.m)

    @property
    def scores_are_verdicts(self) -> bool:
        """Whether every score is the verdict of its attempt, 1 or 0."""
        if self.scores is None:
            return self.unscored is None
        recorded = self.scores.values[~np.isnan(self.scores.values)]
        if not bool(np.isin(recorded, (0.0, 1.0)).all()):
            return False
        task = np.repeat(np.arange(len(self)), self.n)
        return bool((np.bincount(task, recorded, minlength=len(self)) == self.c).all())

    def attempts_text(self) -> str:
        """Attempts per task in words: ``8 attempts``, ``4 to 8 attempts``."""
        per_task, _ = self.counts(Completion.AS_FAILED)
        low, high = int(per_task.min()), int(per_task.max())
        return counted(low, "attempt") if low == high else f"{low:,} to {high:,} attempts"

    def graded(self, completion: Completion = Completion.AS_FAILED) -> Scores:
        """The scores with missing attempts filled in; verdicts where there are no scores.

        Those of a task are not in the order of its attempts.
        """
        n, c = self.n, self.c
        if self.scores is None:
            rank = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
            recorded = (rank < np.repeat(c, n)).astype(np.float64)
        else:
            recorded = self.scores.values[~np.isnan(self.scores.values)]
        if self.m is None or completion is Completion.DROPPED:
            return Scores(recorded, np.concatenate(([0], np.cumsum(n))))
        starts = np.concatenate(([0], np.cumsum(n + self.m)))
        values = np.full(int(starts[-1]), float(completion is Completion.AS_PASSED))
        place = np.arange(len(recorded)) + np.repeat(starts[:-1] - (np.cumsum(n) - n), n)
        values[place] = recorded
        return Scores(values, starts)

    # -- choosing ----------------------------------------------------------------------------

    def take(self, keep: IntArray | BoolArray) -> Outcomes:
        """The outcomes of some tasks, by mask or by index."""
        indices = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep.astype(np.int64)
        if len(indices) == 0:
            raise InvalidValue("no task is left after this choice.")
        missing_counts = None if self.m is None else self.m[indices]
        missing_counts = (
            missing_counts if missing_counts is not None and missing_counts.any() else None
        )
        tasks = self.tasks
        return Outcomes(
            tasks.take(indices)
            if isinstance(tasks, PackedNames)
            else tuple(tasks[i] for i in indices.tolist()),
            self.n[indices],
            self.c[indices],
            missing_counts,
            None if self.order is None else self.order.take(indices),
            MappingProxyType(
                {name: tuple(values[i] for i in indices) for name, values in self.labels.items()}
            ),
            scores=None if self.scores is None else self.scores.take(indices),
            unscored=self.unscored,
            binary_scores=self.binary_scores,
        )

    def by(self, label: str) -> Iterator[tuple[str, Outcomes]]:
        """Split by a label; yields its values in order of appearance with their outcomes."""
        values = self.label(label)
        column = np.array(values, dtype=object)
        for value in dict.fromkeys(values):
            yield value, self.take(column == value)

    def label(self, name: str) -> tuple[str, ...]:
        """The value of a label for every task, or an error that names the labels there are."""
        if name not in self.labels:
            names = ", ".join(self.labels) or "none"
            raise InvalidValue(
                f"there is no slice called {name!r}; slices here: {names}.",
                hint=f"A table names one with a column {name!r} or 'slice:{name}'.",
            )
        return self.labels[name]

    # -- showing -----------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [
            f"{counted(len(self), 'task')} x {self.attempts_text()}",
            f"{self.passes:,} passed",
        ]
        if self.total_missing:
            parts.append(f"{self.total_missing:,} missing")
        if self.order is not None:
            parts.append("order known")
        if self.scores is not None:
            parts.append("scores kept")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"<Outcomes: {self}>"

    def _repr_html_(self) -> str:
        missing = self.missing
        rows = [
            (self.tasks[i], str(self.n[i]), str(self.c[i]), str(missing[i]))
            for i in range(min(len(self), 20))
        ]
        hidden_rows = len(self) - len(rows)
        note = f"and {hidden_rows:,} more tasks" if hidden_rows > 0 else ""
        return html_table(str(self), ("task", "scored", "passed", "missing"), rows, note)

    def _as_dict(self) -> dict[str, object]:
        data: dict[str, object] = {
            "tasks": list(self.tasks),
            "n": self.n.tolist(),
            "c": self.c.tolist(),
            "missing": self.missing.tolist(),
            "labels": {name: list(values) for name, values in self.labels.items()},
        }
        if self.order is not None:
            data["verdicts"] = self.order.verdicts.tolist()
        if self.scores is not None:
            data["scores"] = [None if s != s else s for s in self.scores.values.tolist()]
        return data


def _one_per_task(values: IntArray, tasks: int, name: str) -> IntArray:
    if values.ndim == 0:
        return np.broadcast_to(values, tasks)
    if len(values) != tasks:
        raise InvalidCounts(
            f"{name} has {len(values):,} entries and c has {tasks:,}: one per task is needed."
        )
    return values


def _nonzero_or_none(missing: IntArray) -> IntArray | None:
    _first_bad(missing < 0, lambda i: f"missing[{i}] = {missing[i]} is negative.")
    return missing if missing.any() else None


def _check_cells(n: IntArray, c: IntArray, m: IntArray | None) -> Histogram:
    """Count the cells, and refuse c > n, negative numbers and tasks without an attempt.

    A check of the few cells replaces one of a million tasks.
    """
    try:
        cells = cells_of(n, c)
    except ValueError:
        _first_bad(c < 0, lambda i: f"c[{i}] = {c[i]} is negative.")
        raise
    if cells.n[0] < (1 if m is None else 0):
        _first_bad(n < 1, lambda i: f"n[{i}] = {n[i]}; a task needs at least one attempt.")
    if m is not None:
        _first_bad(n + m < 1, lambda i: f"task {i} has no attempt at all: n and missing are 0.")
    if (cells.c > cells.n).any():
        _first_bad(c > n, lambda i: f"c[{i}] = {c[i]} passes out of n[{i}] = {n[i]} attempts.")
    return cells


def _check_names(names: Sequence[str], tasks: int, *, unique: bool) -> None:
    if len(names) != tasks:
        given_text = (
            f"{counted(len(names), 'task id')} {'was' if len(names) == 1 else 'were'} given"
        )
        raise InvalidValue(f"{given_text} for {counted(tasks, 'task')}.")
    if unique and len(set(names)) != tasks:
        unique_names: set[str] = set()
        twice = next(name for name in names if name in unique_names or unique_names.add(name))  # type: ignore[func-returns-value]
        raise InvalidValue(f"task id {twice!r} stands for two tasks; ids must be unique.")


def _frozen_labels(
    labels: Mapping[str, Sequence[str]] | None, tasks: int
) -> Mapping[str, tuple[str, ...]]:
    frozen = {name: tuple(map(str, values)) for name, values in (labels or {}).items()}
    for name, values in frozen.items():
        if len(values) != tasks:
            given_text = counted(len(values), "value")
            raise InvalidValue(f"label {name!r} has {given_text} for {counted(tasks, 'task')}.")
    return MappingProxyType(frozen)


def _as_array(matrix: npt.ArrayLike) -> npt.NDArray[np.generic]:
    try:
        if np.ma.isMaskedArray(matrix) or (
            isinstance(matrix, list) and any(map(np.ma.isMaskedArray, matrix))
        ):
            # NumPy would forget the mask: a masked attempt is a missing one.
            return np.ma.filled(np.ma.stack(list(matrix)).astype(np.float64), np.nan)
        return np.asarray(matrix)
    except ValueError:
        # NumPy refuses rows of different lengths; say which one is.
        rows = cast("Iterable[Any]", matrix)
        sizes = [len(row) if isinstance(row, Sized) else None for row in rows]
        row = next((i for i, size in enumerate(sizes) if size is None or size != sizes[0]), 0)
        length = "no list" if sizes[row] is None else counted(sizes[row] or 0, "entry", "entries")
        raise InvalidValue(
            f"row {row} of the matrix has {length}, row 0 has {sizes[0]}: every task needs a row "
            "of the same length.",
            hint="Fill short rows with None (a missing attempt), or give n and c of each task: "
            "Outcomes.from_counts(n, c).",
        ) from None


def _verdict_matrix(matrix: npt.NDArray[np.generic]) -> npt.NDArray[np.int8 | np.bool_]:
    """Bring a matrix to bool (nothing missing) or int8 with -1 for missing."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidValue(
            f"a matrix of tasks x attempts is needed, not one of shape {matrix.shape}.",
            hint="Attempts at one task are one row: [[1, 0, 1]]; tasks with one attempt each are "
            "rows of one: [[1], [0], [1]].",
        )
    if matrix.dtype == np.bool_:
        return np.ascontiguousarray(matrix, dtype=np.bool_)
    try:
        numbers = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("the matrix must hold 1, 0, and NaN or -1 for missing.") from None
    is_missing = np.isnan(numbers) | (numbers == -1)
    bad = np.argwhere(~is_missing & (numbers != 0) & (numbers != 1))
    if len(bad):
        row, column = map(int, bad[0])
        raise InvalidValue(
            f"entry [{row}, {column}] is {numbers[row, column]:g}; the matrix must hold 1, 0, and "
            "NaN or -1 for missing.",
            hint="Counts of attempts and passes of each task: Outcomes.from_counts(n, c).",
        )
    return np.where(is_missing, -1, numbers).astype(np.int8)


def _row_counts(flags: npt.NDArray[np.generic]) -> IntArray:
    """Count the true entries of every row, in bytes where they fit: twice a plain read."""
    flat = np.ascontiguousarray(flags).view(np.uint8)
    total = np.zeros(flat.shape[0], np.int64)
    for start in range(0, flat.shape[1], 255):
        total += flat[:, start : start + 255].sum(axis=1, dtype=np.uint8)
    return total


def whole_numbers(values: npt.ArrayLike, name: str) -> IntArray:
    """As ``int64``; integers in other types are converted, fractions and text refused."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64:
            too_large = array > np.iinfo(np.int64).max
            _first_bad(too_large, lambda i: f"{name} = {array.reshape(-1)[i]} is too large.")
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise InvalidCounts(f"{name} must be whole numbers, not {shorten(values)}.")
    broken = ~(np.isfinite(array) & (array == np.floor(array)))
    _first_bad(broken, lambda i: f"{_at(name, array, i)} is not a whole number.")
    # Beyond 2^53 a float skips whole numbers, and beyond 2^63 the cast would give any.
    too_large = np.abs(array) >= 2.0**53
    _first_bad(too_large, lambda i: f"{_at(name, array, i)} is too large to be a count.")
    return array.astype(np.int64)


def _first_bad(broken: BoolArray, message: Callable[[int], str]) -> None:
    """Raise about the first element that is marked; do nothing when none is."""
    if broken.any():
        raise InvalidCounts(message(int(np.flatnonzero(broken)[0])))


def _at(name: str, array: npt.NDArray[np.floating], index: int) -> str:
    place = name if array.ndim == 0 else f"{name}[{index}]"
    return f"{place} = {array.reshape(-1)[index]:g}"
