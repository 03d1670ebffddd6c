"""Rows of a table, chunk by chunk, gathered into one set of attempts per agent and set-up.

Nothing here opens a file: a reader hands over chunks of columns and turns a :class:`RowError`
into file and line.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from zlib import crc32

import numpy as np

from passhat._arrays import FloatArray, IntArray
from passhat._display import counted
from passhat.errors import shorten
from passhat.outcomes.attempts import Attempts, Coded
from passhat.outcomes.columns import ColumnMap
from passhat.outcomes.order import Order
from passhat.outcomes.rewards import RewardWords, verdicts_from_rewards
from passhat.outcomes.table import Outcomes
from passhat.outcomes.words import MissingReason, Verdict

__all__ = ["AttemptGatherer", "CountGatherer", "Gathered", "RowError"]

Chunk = Mapping[str, list[object]]
"""Cells by column; all columns are equally long."""

_MEASURE_COLUMNS = MappingProxyType(
    {"duration": "seconds", "steps": "steps", "tokens": "tokens", "cost": "cost"}
)
_RUN_COLUMNS = ("model", "suite", "temperature")
"""Rows that differ in one of these belong to different runs."""


class RowError(Exception):
    """A row is wrong; ``row`` counts from 0, ``other`` is a second row involved."""

    def __init__(
        self, row: int, message: str, *, other: int | None = None, hint: str | None = None
    ):
        super().__init__(message)
        self.row = row
        self.message = message
        self.other = other
        self.hint = hint


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """One agent under one set-up, as a table knows it."""

    model: str | None
    suite: str | None
    temperature: float | None
    outcomes: Outcomes
    attempts: Attempts | None
    notes: tuple[str, ...]


class _Codes(dict[object, int]):
    """Gives every new value the next number, so a column of text becomes numbers."""

    def __missing__(self, value: object) -> int:
        self[value] = code = len(self)
        return code


class _TextColumn:
    """A column of text kept as codes."""

    def __init__(self) -> None:
        self._codes = _Codes()
        self._rows = array("q")

    def extend(self, cells: Iterable[object]) -> None:
        self._rows.extend(map(self._codes.__getitem__, cells))

    @property
    def values(self) -> tuple[str, ...]:
        return tuple("" if value is None else str(value) for value in self._codes)

    @property
    def codes(self) -> IntArray:
        return np.frombuffer(self._rows, dtype=np.int64) if self._rows else np.zeros(0, np.int64)


def _as_number(cell: object) -> float:
    if cell is None or cell == "":
        return math.nan
    if isinstance(cell, str | int | float):
        return float(cell)
    raise ValueError(shorten(cell))


def _as_text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _as_answer(cell: object) -> int:
    """A hash of the answer that is never 0; 0 stands for "not known"."""
    return 0 if cell is None or cell == "" else crc32(str(cell).encode("utf-8", "replace")) + 1


class _Rows:
    """What both kinds of table share: which run and which task a row belongs to."""

    def __init__(self, columns: ColumnMap) -> None:
        self.columns = columns
        self.count = 0
        self._task = _TextColumn()
        self._run = {word: _TextColumn() for word in columns.used(*_RUN_COLUMNS)}
        self._slices = {name: _TextColumn() for name in columns.slices}

    def _add_shared(self, chunk: Chunk) -> int:
        """Take the shared columns of a chunk and return how many rows it has."""
        tasks = [_as_text(cell) for cell in chunk[self.columns.meaning["task"]]]
        if "" in tasks:
            raise RowError(self.count + tasks.index(""), "the task id is empty.")
        self._task.extend(tasks)
        for word, column in self._run.items():
            cells = chunk[self.columns.meaning[word]]
            if word == "temperature":
                column.extend(self._numbers(word, cells, _as_number))
            else:
                column.extend(_as_text(cell) for cell in cells)
        for name, column in self._slices.items():
            column.extend(_as_text(cell) for cell in chunk[self.columns.slices[name]])
        return len(tasks)

    def _numbers(
        self, word: str, cells: list[object], parse: Callable[[object], float]
    ) -> list[float]:
        """Parse a column; a cell that cannot be parsed is named with its row."""
        try:
            return [parse(cell) for cell in cells]
        except (ValueError, TypeError):
            for offset, cell in enumerate(cells):
                try:
                    parse(cell)
                except (ValueError, TypeError):
                    raise RowError(
                        self.count + offset,
                        f"column {self.columns.meaning[word]!r} (read as {word}) should hold "
                        f"{_EXPECTED.get(word, 'a number')}, not {shorten(cell)}.",
                    ) from None
            raise

    def _groups(self) -> Iterator[tuple[dict[str, str], IntArray]]:
        """The rows of every run, in the order in which runs first appear."""
        combined = np.zeros(self.count, np.int64)
        for column in self._run.values():
            combined = combined * len(column.values) + column.codes
        _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        for code in np.argsort(first).tolist():
            rows = np.flatnonzero(inverse == code)
            key = {word: column.values[column.codes[rows[0]]] for word, column in self._run.items()}
            yield key, rows

    def _labels(self, rows: IntArray, task: IntArray, tasks: int) -> dict[str, tuple[str, ...]]:
        """One label per task; a task whose rows disagree is an error."""
        labels = {}
        for name, column in self._slices.items():
            codes = column.codes[rows]
            chosen = np.zeros(tasks, np.int64)
            source = np.zeros(tasks, np.int64)
            chosen[task[::-1]], source[task[::-1]] = codes[::-1], rows[::-1]
            clash = np.flatnonzero(chosen[task] != codes)
            if len(clash):
                values, at = column.values, int(clash[0])
                raise RowError(
                    int(rows[at]),
                    f"slice {name!r} is {values[codes[at]]!r} here and "
                    f"{values[chosen[task[at]]]!r} earlier for the same task; a slice belongs to "
                    "the task, not to the attempt.",
                    other=int(source[task[at]]),
                )
            labels[name] = tuple(column.values[code] for code in chosen.tolist())
        return labels


_EXPECTED = MappingProxyType(
    {
        "success": "true or false, 1 or 0, a reward, or nothing for missing",
        "n": "a whole number",
        "c": "a whole number",
        "missing": "a whole number",
    }
)


class AttemptGatherer(_Rows):
    """Gathers rows that are one attempt each.

    Parameters
    ----------
    columns : ColumnMap
        What each column was taken for.
    pass_at : float, optional
        The reward from which an attempt passes; ``None`` is 1, and refuses rewards above it.
    """

    def __init__(self, columns: ColumnMap, pass_at: float | None = None) -> None:
        super().__init__(columns)
        self._pass_at = pass_at
        self._reward_words = RewardWords()
        self._rewards = array("d")
        self._trial = _TextColumn() if "trial" in columns.meaning else None
        self._detail = _TextColumn() if "failure" in columns.meaning else None
        self._answer = array("q") if "answer" in columns.meaning else None
        self._measures = {word: array("d") for word in columns.used(*_MEASURE_COLUMNS)}

    def add(self, chunk: Chunk) -> None:
        """Take the next rows."""
        meaning = self.columns.meaning
        size = self._add_shared(chunk)
        lookup = self._reward_words.__getitem__
        self._rewards.extend(self._numbers("success", chunk[meaning["success"]], lookup))
        if self._trial is not None:
            self._trial.extend(_as_text(cell) for cell in chunk[meaning["trial"]])
        if self._detail is not None:
            self._detail.extend(_as_text(cell) for cell in chunk[meaning["failure"]])
        if self._answer is not None:
            self._answer.extend(map(_as_answer, chunk[meaning["answer"]]))
        for word, column in self._measures.items():
            column.extend(self._numbers(word, chunk[meaning[word]], _as_number))
        self.count += size

    def runs(self) -> list[Gathered]:
        """Sort what was gathered into runs; each keeps the tasks in order of appearance."""
        found = verdicts_from_rewards(_floats(self._rewards), self._pass_at)
        trials = None if self._trial is None else _Trials(self._trial, self.columns)
        gathered = []
        for key, rows in self._groups():
            task, names = _renumbered(self._task, rows)
            labels = self._labels(rows, task, len(names))
            if trials is not None:
                trials.refuse_duplicates(rows, task, names)
            sorting = (
                np.lexsort((trials.rank[rows], task)) if trials else np.argsort(task, kind="stable")
            )
            rows, task = rows[sorting], task[sorting]
            starts = np.searchsorted(task, np.arange(len(names) + 1))
            attempts = Attempts(
                names,
                starts,
                found.verdicts[rows],
                None
                if self._detail is None
                else Coded(self._detail.values, self._detail.codes[rows]),
                MappingProxyType(
                    {_MEASURE_COLUMNS[w]: _floats(c)[rows] for w, c in self._measures.items()}
                ),
                None if self._answer is None else np.frombuffer(self._answer, np.int64)[rows],
            )
            ordered = trials is not None and trials.ordered
            outcomes = _outcomes_of(attempts, ordered=ordered, labels=labels)
            notes = (*found.notes, *_blame_notes(attempts))
            gathered.append(_gathered(key, outcomes, attempts, notes))
        return gathered


class CountGatherer(_Rows):
    """Gathers rows that are one task each, with n attempts and c passes."""

    def __init__(self, columns: ColumnMap) -> None:
        super().__init__(columns)
        self._counts = {word: array("d") for word in columns.used("n", "c", "missing")}

    def add(self, chunk: Chunk) -> None:
        """Take the next rows."""
        size = self._add_shared(chunk)
        for word, column in self._counts.items():
            column.extend(self._numbers(word, chunk[self.columns.meaning[word]], _as_count))
        self.count += size

    def runs(self) -> list[Gathered]:
        """Sort what was gathered into runs."""
        counts = {word: _floats(column).astype(np.int64) for word, column in self._counts.items()}
        missing = counts.get("missing", np.zeros(self.count, np.int64))
        self._refuse_impossible(counts["n"], counts["c"], missing)
        gathered = []
        for key, rows in self._groups():
            task, names = _renumbered(self._task, rows)
            if len(names) < len(rows):
                _, first = np.unique(task, return_index=True)
                again = int(np.setdiff1d(np.arange(len(rows)), first)[0])
                raise RowError(
                    int(rows[again]),
                    f"task {names[task[again]]!r} was counted before.",
                    other=int(rows[first[task[again]]]),
                    hint=_SPLIT_HINT,
                )
            outcomes = Outcomes.from_counts(
                counts["n"][rows],
                counts["c"][rows],
                names,
                missing=missing[rows],
                labels=self._labels(rows, task, len(names)),
            )
            gathered.append(_gathered(key, outcomes, None, ()))
        return gathered

    def _refuse_impossible(self, n: IntArray, c: IntArray, missing: IntArray) -> None:
        for broken, message in (
            ((n < 0) | (c < 0) | (missing < 0), "n, c and missing cannot be negative."),
            (c > n, "more passes (c) than attempts (n)."),
            (n + missing < 1, "a task needs at least one attempt."),
        ):
            if broken.any():
                row = int(np.flatnonzero(broken)[0])
                raise RowError(row, f"n = {n[row]}, c = {c[row]}: {message}")


_SPLIT_HINT = (
    "If another column tells them apart, say what it is: --map suite=COLUMN, --map model=COLUMN or "
    "--map trial=COLUMN."
)


class _Trials:
    """Trial labels as ranks: by number when all are whole numbers, by appearance otherwise."""

    def __init__(self, column: _TextColumn, columns: ColumnMap) -> None:
        values = column.values
        numbers = [_whole(value) for value in values]
        self.numeric = all(number is not None for number in numbers)
        self.ordered = self.numeric and columns.trial_gives_order
        by_number = np.array(
            [number or 0 for number in numbers] if self.numeric else range(len(values))
        )
        self.rank: IntArray = by_number.astype(np.int64)[column.codes]
        self._codes = column.codes
        self._values = values

    def refuse_duplicates(self, rows: IntArray, task: IntArray, names: tuple[str, ...]) -> None:
        rank = self.rank[rows]
        sorting = np.lexsort((rows, rank, task))
        same = (np.diff(task[sorting]) == 0) & (np.diff(rank[sorting]) == 0)
        if same.any():
            at = int(np.flatnonzero(same)[0])
            first, second = int(sorting[at]), int(sorting[at + 1])
            label = self._values[self._codes[rows[second]]]
            raise RowError(
                int(rows[second]),
                f"trial {label!r} of task {names[task[second]]!r} stands there twice.",
                other=int(rows[first]),
                hint=_SPLIT_HINT,
            )


def _whole(text: str) -> int | None:
    try:
        number = float(text)
        return int(number) if number.is_integer() and abs(number) < 2**62 else None
    except ValueError:
        return None


def _as_count(cell: object) -> float:
    number = _as_number(cell)
    if not number.is_integer() or abs(number) >= 2**53:
        raise ValueError(shorten(cell))
    return number


def _floats(column: array[float]) -> FloatArray:
    return np.frombuffer(column, dtype=np.float64) if column else np.zeros(0)


def _renumbered(column: _TextColumn, rows: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """Number the tasks of one run from 0 in order of appearance."""
    found, first, inverse = np.unique(column.codes[rows], return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(len(found))
    values = column.values
    return rank[inverse], tuple(values[code] for code in found[appearance].tolist())


def _outcomes_of(
    attempts: Attempts, *, ordered: bool, labels: Mapping[str, tuple[str, ...]]
) -> Outcomes:
    """Count the attempts of every task."""
    per_task = np.diff(attempts.starts)
    task = np.repeat(np.arange(len(per_task)), per_task)
    passed = np.bincount(task[attempts.verdicts == Verdict.PASSED], minlength=len(per_task))
    lost = np.bincount(task[attempts.verdicts == Verdict.MISSING], minlength=len(per_task))
    return Outcomes(
        attempts.tasks,
        per_task - lost,
        passed,
        lost if lost.any() else None,
        Order(attempts.verdicts, attempts.starts) if ordered else None,
        MappingProxyType(dict(labels)),
    )


def _blame_notes(attempts: Attempts) -> Iterator[str]:
    """Say so when a source counts as failed what it explains with a fault of ours."""
    if attempts.detail is None:
        return
    reasons = set(MissingReason)
    for code, word in enumerate(attempts.detail.values):
        if word.strip().lower() in reasons:
            here = (attempts.detail.codes == code) & (attempts.verdicts == Verdict.FAILED)
            if here.any():
                yield (
                    f"{counted(int(here.sum()), 'attempt')} with failure {word!r} counted as "
                    "failed because the table says so; leave success empty to mark them missing"
                )


def _gathered(
    key: Mapping[str, str], outcomes: Outcomes, attempts: Attempts | None, notes: tuple[str, ...]
) -> Gathered:
    temperature = float(key.get("temperature", "nan"))
    return Gathered(
        key.get("model") or None,
        key.get("suite") or None,
        None if math.isnan(temperature) else temperature,
        outcomes,
        attempts,
        notes,
    )
