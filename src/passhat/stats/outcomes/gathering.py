"""Rows of a table, chunk by chunk, gathered into one set of attempts per agent and set-up.

Nothing here opens a file: a reader hands over chunks of columns and turns a :class:`RowError`
into file and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from passhat._display import counted
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray, IntArray, VerdictArray
from passhat.stats.outcomes.attempts import Aggregates, Attempts, Categorical
from passhat.stats.outcomes.cells import (
    CellCodes,
    HashColumn,
    NumberColumn,
    RowError,
    TextColumn,
    number_by_appearance,
    number_from,
    parse_column,
    sort_rows,
    whole_number_from,
)
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.order import Order, Scores
from passhat.stats.outcomes.rewards import (
    REWARD_NAMES,
    RewardWords,
    ScoreRange,
    Unscored,
    Verdicts,
    blame_notes,
    grade,
    is_binary,
    verdicts_from_rewards,
)
from passhat.stats.outcomes.vocabulary import Verdict

SPLIT_HINT = Hint(
    "If another column tells them apart, say what it is: {columns[suite]}, {columns[model]} or "
    "{columns[trial]}.",
    columns={"suite": "COLUMN", "model": "COLUMN", "trial": "COLUMN"},
)

Chunk = Mapping[str, Sequence[object]]
"""Cells by column; all columns are equally long."""
_Tasks = tuple[IntArray, tuple[str, ...]]  # the number of each row's task, and their names

_MEASURES = MappingProxyType(
    {"duration": "seconds", "steps": "steps", "tokens": "tokens", "cost": "cost"}
)
"""A table's name of a measure, and an attempt's name of it."""

_FEW_TASKS = 20_000
RUN_COLUMNS = ("model", "suite", "temperature")
"""Rows that differ in one of these belong to different runs."""

_EXPECTED = MappingProxyType(
    {
        "success": "true or false, 1 or 0, a reward, nothing for missing",
        "n": "a whole number",
        "c": "a whole number",
        "missing": "a whole number",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeColumns:
    """The input of :meth:`Outcomes.from_columns`: an entry per task.

    Without an order the counts are checked when the outcomes are built.
    """

    tasks: Sequence[str]
    n: IntArray
    c: IntArray
    m: IntArray | None = None
    order: Order | None = None
    labels: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    scores: Scores | None = None
    unscored: Unscored | None = None
    binary_scores: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """The rows of an agent under one set-up."""

    model: str | None
    suite: str | None
    temperature: float | None
    columns: OutcomeColumns
    attempts: Attempts | None = None
    notes: tuple[str, ...] = ()
    aggregates: Aggregates | None = None
    remarks: tuple[str, ...] = ()
    """Notes that concern no number of passes."""


class _Rows:
    """Base of both gatherers: the run, task and slice of each row."""

    def __init__(self, columns: ColumnMap) -> None:
        self.columns = columns
        self.count = 0
        self._task = TextColumn()
        self._twins: IntArray | None = None
        self._run = {word: TextColumn() for word in columns.names_of(*RUN_COLUMNS)}
        self._slices = {name: TextColumn() for name in columns.slices}

    def _add_shared(self, chunk: Chunk) -> int:
        """Take the shared columns of a chunk and return how many rows it has."""
        tasks = chunk[self.columns.meaning["task"]]
        self._task.extend(tasks)
        self._refuse_nameless()
        for word, column in self._run.items():
            cells = chunk[self.columns.meaning[word]]
            column.extend(
                self._numbers(word, cells, number_from) if word == "temperature" else cells
            )
        for name, column in self._slices.items():
            column.extend(chunk[self.columns.slices[name]])
        return len(tasks)

    def _refuse_nameless(self) -> None:
        code = self._task.code_of("")
        if code is None:
            return
        rows = np.flatnonzero(self._task.codes[self.count :] == code)
        if len(rows):
            raise RowError(self.count + int(rows[0]), "the task id is empty.")

    def _take_back(self) -> None:
        """Forget the rows of a chunk that could not be added as a whole."""
        for column in self._all_columns():
            column.truncate(self.count)

    def _all_columns(self) -> list[TextColumn | NumberColumn | HashColumn]:
        return [self._task, *self._run.values(), *self._slices.values()]

    def _numbers(
        self, word: str, cells: Sequence[object], parse: Callable[[object], float]
    ) -> Sequence[object]:
        column = self.columns.meaning[word]
        return parse_column(
            cells,
            parse,
            first_row=self.count,
            # A reader's own column, made of several cells, has a name that no user knows.
            named=word if column.startswith("passhat:") else f"column {column!r} (read as {word})",
            expected=_EXPECTED.get(word, "a number"),
            hint=_suggest_word(column) if word == "success" else None,
        )

    def _groups(self) -> Iterator[tuple[dict[str, str], IntArray]]:
        """The rows of every run, in the order in which runs first appear."""
        if not self._run:
            if self.count:
                yield {}, np.arange(self.count)
            return
        group_codes = np.zeros(self.count, np.int64)
        for column in self._run.values():
            # Renumbered after every column, so that the numbers stay small.
            group_codes = number_by_appearance(group_codes * len(column.values) + column.codes)[0]
        # Sorted once: a comparison per run would be quadratic in a table with 20,000 models.
        sorting = np.argsort(group_codes, kind="stable")
        starts = np.flatnonzero(np.diff(group_codes[sorting])) + 1
        for rows in np.split(sorting, starts) if self.count else ():
            key = {word: column.values[column.codes[rows[0]]] for word, column in self._run.items()}
            yield key, rows

    def _note_ids(self) -> tuple[str, ...]:
        """Decisions about ids that are nearly the same."""
        values = self._task.values
        notes = self._merge_ids()
        if len(values) <= _FEW_TASKS and len(set(map(str.lower, values))) < len(values):
            texts: dict[str, str] = {}
            for text in values:
                first = texts.setdefault(text.lower(), text)
                if first != text:
                    return (*notes, f"{first!r} and {text!r} are two tasks: ids differ in case")
        return notes

    def _merge_ids(self) -> tuple[str, ...]:
        """Make one task of 1 and 1.0, as pandas writes a column with an empty cell; a note on it.

        Ids such as 1.1 beside them are numbers of sections or versions, and stay as they are.
        """
        values = self._task.values
        if ".0\n" not in "\n".join((*values, "")):  # nearly always, and quick
            return ()
        texts = {text: code for code, text in enumerate(values) if text.endswith(".0")}
        pairs = {code: self._task.code_of(text[:-2]) for text, code in texts.items()}
        twins = {code: twin for code, twin in pairs.items() if twin is not None}
        if not twins or any("." in text and text not in texts for text in values):
            return ()
        self._twins = np.arange(len(values))
        for code, twin in twins.items():
            self._twins[code] = twin
        first = values[next(iter(twins))]
        return (f"ids such as {first[:-2]} and {first} are one task",)

    def _tasks_of(self, rows: IntArray) -> _Tasks:
        """Number the tasks of one run from 0 in order of appearance."""
        codes = self._task.codes[rows]
        ranks, distinct = number_by_appearance(codes if self._twins is None else self._twins[codes])
        values = self._task.values
        return ranks, tuple(values[code] for code in distinct.tolist())

    def _labels(self, rows: IntArray, task: IntArray, tasks: int) -> dict[str, tuple[str, ...]]:
        """A label per task; a task whose rows disagree is an error."""
        labels = {}
        for name, column in self._slices.items():
            codes, values = column.codes[rows], column.values
            first_codes, source = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
            # Written backwards, the first row of a task is written last and stays.
            first_codes[task[::-1]], source[task[::-1]] = codes[::-1], rows[::-1]
            clash = np.flatnonzero(first_codes[task] != codes)
            if len(clash):
                at = int(clash[0])
                raise RowError(
                    int(rows[at]),
                    f"slice {name!r} is {values[codes[at]]!r} here and "
                    f"{values[first_codes[task[at]]]!r} earlier for the same task; a slice "
                    "belongs to the task, not to the attempt.",
                    other=int(source[task[at]]),
                )
            labels[name] = tuple(values[code] for code in first_codes.tolist())
        return labels


class AttemptGatherer(_Rows):
    """Gathers rows that are one attempt each.

    ``pass_at`` is the reward from which an attempt passes; ``None`` is 1, and refuses rewards above
    it. ``extras`` are columns that are kept with each attempt as they are. ``first_trial`` is the
    number of a task's first attempt, where that is known; otherwise 0 or 1, as it stands there.
    Scores beyond ``score_range`` (0 and 1 unless stated) are not kept.
    """

    def __init__(
        self,
        columns: ColumnMap,
        pass_at: float | None = None,
        extras: Sequence[str] = (),
        first_trial: int | None = None,
        score_range: ScoreRange | None = None,
    ) -> None:
        super().__init__(columns)
        self._range = score_range
        self.has_rewards = False  # set by readers of logs whose rewards are numbers
        self._scores = NumberColumn() if "score" in columns.meaning else None
        self._first_trial = first_trial
        self._extras = {name: TextColumn() for name in extras}
        self._pass_at = pass_at
        self._reward_words = RewardWords()
        self._rewards = NumberColumn()
        self._trial = TextColumn() if "trial" in columns.meaning else None
        self._detail = TextColumn() if "failure" in columns.meaning else None
        self._answers = HashColumn() if "answer" in columns.meaning else None
        self.repeated = 0
        self._measures = {word: NumberColumn() for word in columns.names_of(*_MEASURES)}

    def add(self, chunk: Chunk) -> None:
        """Take the next rows: all of them, or none and a RowError."""
        try:
            self._add(chunk)
        except RowError:
            self._take_back()
            raise

    @property
    def trial_count(self) -> int:
        """The number of labels of attempts."""
        return 0 if self._trial is None else len(self._trial.values)

    def _all_columns(self) -> list[TextColumn | NumberColumn | HashColumn]:
        optional = (self._trial, self._detail, self._answers, self._scores)
        columns = [*super()._all_columns(), self._rewards, *self._measures.values()]
        return [*columns, *self._extras.values(), *(c for c in optional if c is not None)]

    def _add(self, chunk: Chunk) -> None:
        meaning = self.columns.meaning
        size = self._add_shared(chunk)
        lookup = self._reward_words.__getitem__
        self._rewards.extend(self._numbers("success", chunk[meaning["success"]], lookup))
        if self._scores is not None:
            parse = lookup if "score" in self.columns.stated else self._score_or_nan
            self._scores.extend(self._numbers("score", chunk[meaning["score"]], parse))
        if self._trial is not None:
            self._trial.extend(chunk[meaning["trial"]])
        if self._detail is not None:
            self._detail.extend(chunk[meaning["failure"]])
        if self._answers is not None:
            self._answers.extend(chunk[meaning["answer"]])
        for word, column in self._measures.items():
            cells = chunk[meaning[word]]
            numbers = cells.numbers() if isinstance(cells, CellCodes) else None
            column.extend(self._numbers(word, cells, number_from) if numbers is None else numbers)
        for name, texts in self._extras.items():
            texts.extend(chunk[name])
        self.count += size

    def _score_or_nan(self, cell: object) -> float:
        """A score, or NaN: in a column that is one by its name alone, a word is no mistake."""
        try:
            return self._reward_words[cell]
        except (ValueError, TypeError):
            return math.nan

    def _judge(self) -> tuple[Verdicts, FloatArray | None, tuple[str, ...]]:
        """Verdicts, and scores with remarks: of their own column, or of graded rewards."""
        rewards, bounds = self._rewards.values, self._range
        column = np.zeros(0) if self._scores is None else self._scores.values
        has_scores = not np.isnan(column).all()
        if has_scores and ("score" in self.columns.stated or is_binary(rewards)):
            judgement = verdicts_from_rewards(rewards, self._pass_at)
            return judgement, *grade(column, judgement.verdicts, bounds)
        if bounds is None:
            judgement = verdicts_from_rewards(rewards, self._pass_at)
        else:
            judgement = bounds.judge(rewards, self._pass_at)
        return judgement, *grade(rewards, judgement.verdicts, bounds)

    def runs(self) -> list[Gathered]:
        """Sort the gathered rows into runs; each keeps the tasks in order of appearance."""
        try:
            judgement, scores, remarks = self._judge()
        except InvalidValue as error:
            if {"task", "n"} <= self.columns.meaning.keys() and self._trial is None:
                total, passed = self.columns.meaning["n"], self.columns.meaning["success"]
                counts_hint = Hint(
                    "If a row is a task with its counts: {columns}. Otherwise: ",
                    columns={"n": total, "c": passed},
                )
                error.hint = counts_hint.then(error.hint or "")
            raise
        trials = (
            None
            if self._trial is None
            else _Trials(self._trial, gives_order=self.columns.trial_gives_order)
        )
        parts, id_notes, self.repeated = [], self._note_ids(), 0
        for key, rows in self._groups():
            task, names = self._tasks_of(rows)
            labels = self._labels(rows, task, len(names))
            sorting = sort_rows(task, None if trials is None else trials.rank[rows])
            if trials is not None:
                sorting = trials.without_retries(rows, (task, names), sorting, judgement.verdicts)
            repeats = _retry_notes(len(rows) - len(sorting))
            self.repeated += len(rows) - len(sorting)
            starts = np.searchsorted(task[sorting], np.arange(len(names) + 1))
            run_scores = scores if self._has_scores(rows) else None
            attempts = self._attempts(names, starts, rows[sorting], judgement.verdicts, run_scores)
            has_order, numbers = trials is not None and trials.ordered, None
            if trials is not None and has_order:
                numbers = self._numbers_with_gaps(trials.rank[rows[sorting]], starts)
            columns = replace(
                columns_of(attempts, ordered=has_order, labels=labels, numbers=numbers),
                unscored=Unscored.of(scores, remarks),
                binary_scores=scores is None and self._has_scores(rows),
            )
            notes = (*id_notes, *repeats, *judgement.notes, *blame_notes(_failure_words(attempts)))
            parts.append(as_gathered(key, columns, attempts, notes, remarks=remarks))
        return parts

    def _has_scores(self, rows: IntArray) -> bool:
        """Whether the rows of a run have scores of their own, or graded rewards."""
        if self._scores is not None and not np.isnan(self._scores.values).all():
            return not bool(np.isnan(self._scores.values[rows]).all())
        is_reward = self.columns.meaning["success"].lower() in REWARD_NAMES
        return self.has_rewards or is_reward or not is_binary(self._rewards.values)

    def _numbers_with_gaps(self, trial: IntArray, starts: IntArray) -> IntArray | None:
        """Which attempt at its task each one is, from 0; ``None`` when that is its place."""
        first = int(trial.min()) if self._first_trial is None else self._first_trial
        places = np.arange(len(trial)) - np.repeat(starts[:-1], np.diff(starts))
        if first not in (0, 1) or trial.min() < first or (trial - first == places).all():
            return None
        return trial - first

    def _attempts(
        self,
        names: tuple[str, ...],
        starts: IntArray,
        rows: IntArray,
        verdicts: VerdictArray,
        scores: FloatArray | None,
    ) -> Attempts:
        detail, answers = self._detail, self._answers
        return Attempts(
            names,
            starts,
            verdicts[rows],
            None if detail is None else Categorical(detail.values, detail.codes[rows]),
            MappingProxyType({_MEASURES[w]: c.values[rows] for w, c in self._measures.items()}),
            None if answers is None else answers.values[rows],
            MappingProxyType(
                {n: Categorical(c.values, c.codes[rows]) for n, c in self._extras.items()}
            ),
            None if scores is None else scores[rows],
        )


class CountGatherer(_Rows):
    """Gathers rows that are one task each, with n attempts and c passes."""

    def __init__(self, columns: ColumnMap) -> None:
        super().__init__(columns)
        self._counts = {word: NumberColumn() for word in columns.names_of("n", "c", "missing")}

    def add(self, chunk: Chunk) -> None:
        """Take the next rows: all of them, or none and a RowError."""
        try:
            self._add(chunk)
        except RowError:
            self._take_back()
            raise

    def _all_columns(self) -> list[TextColumn | NumberColumn | HashColumn]:
        return [*super()._all_columns(), *self._counts.values()]

    def _add(self, chunk: Chunk) -> None:
        size = self._add_shared(chunk)
        for word, column in self._counts.items():
            column.extend(self._numbers(word, chunk[self.columns.meaning[word]], whole_number_from))
        self.count += size

    def runs(self) -> list[Gathered]:
        """Sort the gathered rows into runs."""
        counts = {word: column.values.astype(np.int64) for word, column in self._counts.items()}
        missing = counts.get("missing", np.zeros(self.count, np.int64))
        _refuse_impossible(counts["n"], counts["c"], missing)
        parts = []
        id_notes = self._note_ids()
        for key, rows in self._groups():
            task, names = self._tasks_of(rows)
            _refuse_repeated(rows, task, names)
            columns = OutcomeColumns(
                names,
                counts["n"][rows],
                counts["c"][rows],
                missing[rows],
                labels=self._labels(rows, task, len(names)),
            )
            parts.append(as_gathered(key, columns, notes=id_notes))
        return parts


def _suggest_word(column: str) -> Hint:
    name = "COLUMN" if column.startswith("passhat:") else column
    return Hint("If a word stands for a pass, state it: {passes}", passes=f"{name} == WORD")


def _refuse_impossible(n: IntArray, c: IntArray, missing: IntArray) -> None:
    for broken, message in (
        ((n < 0) | (c < 0) | (missing < 0), "n, c and missing cannot be negative."),
        (c > n, "more passes (c) than attempts (n)."),
        (n + missing < 1, "a task needs at least one attempt."),
    ):
        if broken.any():
            row = int(np.flatnonzero(broken)[0])
            raise RowError(row, f"n = {n[row]}, c = {c[row]}: {message}")


def _refuse_repeated(rows: IntArray, task: IntArray, names: tuple[str, ...]) -> None:
    if len(names) == len(rows):
        return
    _, first = np.unique(task, return_index=True)
    again = int(np.setdiff1d(np.arange(len(rows)), first)[0])
    raise RowError(
        int(rows[again]),
        f"task {names[task[again]]!r} was counted before.",
        other=int(rows[first[task[again]]]),
        hint=SPLIT_HINT,
    )


def columns_of(
    attempts: Attempts,
    *,
    ordered: bool,
    labels: Mapping[str, tuple[str, ...]],
    numbers: IntArray | None = None,
) -> OutcomeColumns:
    """Count the attempts of every task; ``numbers`` are those of :class:`Order`."""
    per_task = np.diff(attempts.starts)
    task = np.repeat(np.arange(len(per_task)), per_task)
    passed = np.bincount(task[attempts.verdicts == Verdict.PASSED], minlength=len(per_task))
    missing = np.bincount(task[attempts.verdicts == Verdict.MISSING], minlength=len(per_task))
    return OutcomeColumns(
        attempts.tasks,
        per_task - missing,
        passed,
        missing if missing.any() else None,
        Order(attempts.verdicts, attempts.starts, numbers) if ordered else None,
        MappingProxyType(dict(labels)),
        None if attempts.scores is None else Scores(attempts.scores, attempts.starts),
    )


def _failure_words(attempts: Attempts) -> dict[str, int]:
    """Reasons of failed attempts in the source's own words, with their counts."""
    if attempts.detail is None:
        return {}
    words = attempts.detail.values
    codes = attempts.detail.codes[attempts.verdicts == Verdict.FAILED]
    return dict(zip(words, np.bincount(codes, minlength=len(words)).tolist(), strict=True))


def as_gathered(
    key: Mapping[str, str],
    columns: OutcomeColumns,
    attempts: Attempts | None = None,
    notes: tuple[str, ...] = (),
    aggregates: Aggregates | None = None,
    remarks: tuple[str, ...] = (),
) -> Gathered:
    """The gathered rows of a run, with temperature and names in their own types."""
    temperature = float(key.get("temperature", "nan"))
    return Gathered(
        key.get("model") or None,
        key.get("suite") or None,
        None if math.isnan(temperature) else temperature,
        columns,
        attempts,
        notes,
        aggregates,
        remarks,
    )


class _Trials:
    """Trial labels as ranks: by number when all are whole numbers, by appearance otherwise.

    A smaller ``rank`` within a task is an earlier attempt; ``ordered`` says whether ranks really
    are the order in which attempts were made.
    """

    def __init__(self, column: TextColumn, *, gives_order: bool) -> None:
        self._labels = column.values
        self._codes = column.codes
        numbers = [_whole_number(label) for label in self._labels]
        if any(number is None for number in numbers):
            self.ordered = False
            self.rank = self._codes
        else:
            self.ordered = gives_order
            self.rank = np.array(numbers, np.int64)[self._codes]

    def without_retries(
        self, rows: IntArray, tasks: _Tasks, sorting: IntArray, verdicts: VerdictArray
    ) -> IntArray:
        """Without attempts that have no verdict and stand in a later row again.

        ``sorting`` is by task, then by rank; any other attempt that is listed twice is refused.
        """
        task, names = tasks
        again = self._find_again(rows, task, sorting)
        if len(again):
            is_missing = verdicts[rows[sorting[again]]] == Verdict.MISSING
            sorting = np.delete(sorting, again[is_missing])
            again = self._find_again(rows, task, sorting)
        if not len(again):
            return sorting
        first, second = int(sorting[again[0]]), int(sorting[again[0] + 1])
        label = self._labels[self._codes[rows[second]]]
        raise RowError(
            int(rows[second]),
            f"trial {label!r} of task {names[task[second]]!r} is listed twice.",
            other=int(rows[first]),
            hint=SPLIT_HINT,
        )

    def _find_again(self, rows: IntArray, task: IntArray, sorting: IntArray) -> IntArray:
        """The places behind which the same attempt stands again."""
        same = np.diff(task[sorting]) == 0
        return np.flatnonzero(same & (np.diff(self.rank[rows[sorting]]) == 0))


def _retry_notes(count: int) -> tuple[str, ...]:
    attempts = counted(count, "attempt")
    return (f"{attempts} without a verdict and listed again: the later row counts",) * bool(count)


def _whole_number(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**62 else None
