"""Columns that tell rows of one task apart: another task, another run, another judge, or attempts.

Two rows with the same task are two attempts only where no other column says that they are two
different things: question 1 of math and question 1 of biology, one answer by two metrics, two
versions of a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from passhat._display import some
from passhat.errors import ReadError
from passhat.readers.parsing import are_consecutive, is_verdict_list, number_or_none
from passhat.readers.record_map import map_option
from passhat.readers.wide_tables import (
    distinct_cells,
    find_wide,
    is_judge_name,
    is_model_name,
    list_unused,
    reward_or_none,
)
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes.cells import CellCodes, TextColumn, parse_number
from passhat.stats.outcomes.columns import (
    ALIASES,
    ANSWER_NAMES,
    EVERY_PART,
    JOIN_SIGN,
    MEASURES,
    ColumnMap,
    fold_name,
    split_joined,
)
from passhat.stats.outcomes.gathering import RUN_COLUMNS, Chunk
from passhat.stats.outcomes.rewards import RewardWords

TASK_PARTS = frozenset(
    {
        *("subject", "category", "domain", "topic", "section", "chapter", "split", "subset"),
        *("subcategory", "subdomain", "repo", "repository", "project", "language", "lang"),
        *("programming_language", "difficulty", "level", "group", "area", "field", "discipline"),
        *("question_type", "task_type", "type", "source", "config_name", "task_set", "year"),
    }
)
RUN_PARTS = frozenset(
    {
        *("model_version", "agent_version", "version", "revision", "checkpoint", "ckpt", "commit"),
        *("prompt", "prompt_id", "prompt_name", "prompt_template", "prompt_version", "template"),
        *("config", "configuration", "variant", "setting", "settings", "mode", "strategy"),
        *("method", "approach", "condition", "arm", "experiment", "experiment_name", "framework"),
        *("scaffold", "harness", "reasoning_effort", "effort", "thinking", "quantization"),
        *("precision", "fewshot", "num_fewshot", "shots", "n_shot", "n_shots", "num_shots"),
        *("provider", "backend", "team", "treatment", "system_prompt", "tool", "policy"),
    }
)
_SCORERS = frozenset(
    {
        *("metric", "metric_name", "judge", "judge_name", "judge_model", "scorer", "scorer_name"),
        *("grader", "grader_name", "rater", "annotator", "reviewer", "evaluator", "judge_id"),
        *("evaluator_name", "criterion", "criteria", "dimension", "rubric", "aspect", "assertion"),
    }
)
_ATTEMPT_LABELS = frozenset({"date", "day", "timestamp", "time", "started", "started_at", "when"})
_REMARKS = frozenset(
    {
        *("note", "notes", "comment", "comments", "remark", "remarks", "message", "error", "log"),
        *("pred", "prediction", "expected", "target", "gold", "label", "reference", "explanation"),
        *("rationale", "feedback", "path", "file", "url", "link", "transcript", "trajectory"),
    }
)
_ENDING_WORDS = (
    "status",
    "reason",
    "result",
    "outcome",
    "finish",
    "stop",
    "state",
    "exit",
    "ending",
)
"""In names of columns about how an attempt ended, which go with its verdict."""
_SAMPLES = frozenset({"sample_id", "example_id", "sample", "id"})
_ROW_NAME = re.compile(r"(.*_)?(id|uuid|time|timestamp|date|started|start|created)(_at|_start)?")
_TIME_NAME = re.compile(r"(.*_)?(time|timestamp|date|day|at|on|started|finished|created|ended)")
_MOST_LABELS = 4
_ROWS_LOOKED_AT = 20_000
"""Columns of unknown meaning are looked at in the first rows only."""


@dataclass(frozen=True, slots=True)
class Regrouping:
    """How to read a table again, once a column was found to tell its rows apart."""

    columns: Mapping[str, str]
    """The column for the task, the model or the trial; joined ones as ``subject+question_id``."""
    decisions: tuple[str, ...]


class RowGroups:
    """Collects the columns that may tell rows of a task apart.

    Parameters
    ----------
    meaning : mapping
        passhat's names of columns to those of the table, as far as they have a meaning.
    ignored : iterable of str
        The other columns.
    """

    def __init__(self, meaning: Mapping[str, str], ignored: Iterable[str]) -> None:
        self._meaning = meaning
        names = {name: fold_name(name) for name in ignored if name.strip()}
        self._candidates = {
            name: TextColumn()
            for name, fold in names.items()
            if named_parts([name])
            or not (fold in _REMARKS or any(word in fold for word in _ENDING_WORDS))
        }
        self._folds = names
        keys = ("task", *RUN_COLUMNS, "trial")
        self._keys = {word: TextColumn() for word in keys if word in meaning}
        self._count = 0

    def add(self, chunk: Chunk) -> None:
        """Take the next rows."""
        if not self._candidates:
            return
        if self._count > _ROWS_LOOKED_AT:
            self._forget_unknown()
        for word, column in self._keys.items():
            column.extend(chunk[self._meaning[word]])
        size = len(chunk[self._meaning["task"]])
        for name, column in self._candidates.items():
            # A field that only later lines of JSON have is empty before.
            absent = self._count - len(column.codes)
            column.extend([None] * absent)
            column.extend(chunk[name] if name in chunk else [None] * size)
        self._count += size

    def _forget_unknown(self) -> None:
        names = set(named_parts(self._candidates))
        names |= {n for n in self._candidates if _WARM_UP.fullmatch(self._folds[n])}
        for name in [name for name in self._candidates if name not in names]:
            del self._candidates[name]

    def find(self, source: str, *, scorer: str | None = None) -> Regrouping | ScorerChoice | None:
        """How the rows are to be grouped instead; ``None`` where they are attempts as they are.

        Raises ReadError where a column tells rows apart and nothing says what it is.
        """
        if not self._candidates or not self._count:
            return None
        rows = self._codes(["task", *RUN_COLUMNS])
        attempts = self._codes(["task", *RUN_COLUMNS, "trial"])
        is_repeated = _count_distinct(rows) < self._count
        if not is_repeated:
            return None
        has_trial = "trial" in self._keys
        is_listed_twice = _count_distinct(attempts) < self._count
        varying = [name for name in self._candidates if self._varies(name, rows)]
        within = [name for name in varying if self._varies(name, attempts)]
        scorers = [name for name in within if self._folds[name] in _SCORERS]
        named = attempts  # with everything that may name a part of a task or a run
        for name in within:
            is_part = self._is_task_part(name) or self._folds[name] in RUN_PARTS
            if is_part or self._numbers_rows(name, rows):
                named = _combine(named, self._candidates[name].codes)
        scorers = [name for name in scorers if self._varies(name, named)]
        if scorers and scorer is None:
            return ScorerChoice(scorers[0], self._labels(scorers[0]))
        is_open = is_listed_twice or not has_trial
        parts = [name for name in within if self._is_task_part(name)] if is_open else []
        runs = [
            name
            for name in (within if is_open else varying)
            if (self._folds[name] in RUN_PARTS or (has_trial and self._is_named_run(name)))
            and (is_open or "version" in self._folds[name])
            and not self._is_unique(name)
        ]
        if parts:  # what differs no more within the tasks as they are named then
            for name in parts:
                attempts = _combine(attempts, self._candidates[name].codes)
            runs = [name for name in runs if self._varies(name, attempts)]
        if parts or runs:
            return self._regroup(parts, runs)
        return self._look_at_others(within, attempts, source) if is_open else None

    def _regroup(self, parts: list[str], runs: list[str]) -> Regrouping:
        columns, decisions = {}, []
        if parts:
            task = self._meaning["task"]
            columns["task"] = JOIN_SIGN.join((*parts, *split_joined(task)))
            names = " and ".join(repr(name) for name in (*parts, task))
            decisions.append(f"{names} together name a task: {some(self._labels(parts[0]), 4)}")
        if runs:
            model = self._meaning.get("model")
            columns["model"] = JOIN_SIGN.join((*((model,) if model else ()), *runs))
            values = some(self._labels(runs[0]), _MOST_LABELS)
            decisions.append(f"column {runs[0]!r} tells runs apart: {values}")
        return Regrouping(columns, tuple(decisions))

    def _look_at_others(
        self, names: list[str], attempts: IntArray, source: str
    ) -> Regrouping | None:
        """A column of unknown meaning whose every value occurs at most once per task."""
        for name in names:
            if not self._is_crossed(name, attempts):
                continue
            labels = self._labels(name)
            if self._folds[name] in _ATTEMPT_LABELS or self._folds[name] in _SAMPLES:
                return Regrouping({"trial": name}, (f"column {name!r} tells attempts apart",))
            # Beside a number of the attempt a second one counts within it, as retries do.
            rows = self._codes(["task", *RUN_COLUMNS]) if "trial" in self._keys else attempts
            if self._numbers_rows(name, rows):
                return Regrouping({"trial": name}, (f"column {name!r} numbers the attempts",))
            if "trial" in self._keys and are_consecutive(labels):
                continue
            if all(_is_number(label) for label in labels):
                continue  # a measure that repeats
            task = self._meaning["task"]
            error = UnclearRole(
                f"rows of the same task differ in {name!r} ({some(labels, _MOST_LABELS)}): they "
                "may be attempts, runs, or different tasks.",
                source=source,
                hint=_role_hint(name, task, labels),
            )
            error.column = name
            raise error
        return None

    def remarks(self) -> tuple[str, ...]:
        """Rows that are counted, and may be none of the attempts: those of a warm-up."""
        lines = []
        for name in filter(lambda name: _WARM_UP.fullmatch(self._folds[name]), self._candidates):
            column = self._candidates[name]
            is_set = [value.lower() in ("true", "1", "yes") for value in column.values]
            count = int(np.array(is_set)[column.codes].sum()) if is_set else 0
            if 0 < count < len(column.codes):
                option = map_option(f"where={name} != true")
                lines.append(f"rows with {name!r} count ({count:,}); without them: {option}")
        return tuple(lines)

    def suggest_trial(self) -> str | None:
        """A column of ids or times that tells attempts apart which have the same number."""
        rows = self._codes(["task", *RUN_COLUMNS])
        for name, column in self._candidates.items():
            is_named = _ROW_NAME.fullmatch(self._folds[name]) is not None
            if is_named and _count_distinct(_combine(rows, column.codes)) == self._count:
                return name
        return None

    def _numbers_rows(self, name: str, groups: IntArray) -> bool:
        """Whether a column counts 0, 1, 2 ... or 1, 2 ..., each number once in a group."""
        codes = self._candidates[name].codes
        is_unique = _count_distinct(_combine(groups, codes)) == self._count
        return is_unique and are_consecutive(self._labels(name))

    def _is_task_part(self, name: str) -> bool:
        fold = self._folds[name]
        is_other_id = fold in ALIASES["task"] and fold not in _SAMPLES
        return (fold in TASK_PARTS or is_other_id) and not self._is_unique(name)

    def _is_named_run(self, name: str) -> bool:
        """Whether a column ``run`` holds names: beside a column of attempts it names no attempt."""
        is_run = self._folds[name] in ("run", "runs", "run_name", "run_label")
        return is_run and not any(_is_number(label) for label in self._labels(name))

    def _is_unique(self, name: str) -> bool:
        """Whether every row has its own value, as an id of the row or a text has."""
        column = self._candidates[name]
        return self._count > 2 and len(column.values) >= self._count

    def _is_crossed(self, name: str, attempts: IntArray) -> bool:
        """Whether each value occurs once per task, and with several tasks."""
        codes = self._candidates[name].codes
        if _count_distinct(_combine(attempts, codes)) < self._count or self._is_unique(name):
            return False
        values, counts = np.unique(codes, return_counts=True)
        return len(values) > 1 and bool((counts > 1).all())

    def _varies(self, name: str, groups: IntArray) -> bool:
        """Whether rows of one group differ in a column."""
        codes = self._candidates[name].codes
        return _count_distinct(_combine(groups, codes)) > _count_distinct(groups)

    def _labels(self, name: str) -> list[str]:
        return sorted(value or "(empty)" for value in self._candidates[name].values)

    def _codes(self, words: Sequence[str]) -> IntArray:
        codes = np.zeros(self._count, np.int64)
        for word in words:
            if word in self._keys:
                codes = _combine(codes, self._keys[word].codes)
        return codes


class UnclearRole(ReadError):
    """A column tells rows of a task apart that may be attempts, runs or different tasks."""

    column = ""

    def is_answered(self, columns: Mapping[str, str]) -> bool:
        """Whether options say what the column is, or which rows count."""
        parts = columns.get("task", "").split(JOIN_SIGN)
        is_part = (len(parts) > 1 and self.column in parts) or "where" in columns
        return is_part or self.column in (columns.get("model"), columns.get("trial"))


@dataclass(frozen=True, slots=True)
class ScorerChoice:
    """A column with the judge of each row: the user has to choose one."""

    column: str
    names: Sequence[str]


def named_parts(names: Iterable[str]) -> list[str]:
    """Columns that tell rows apart by their names: part of a task, of a run, or a judge."""
    folds = TASK_PARTS | RUN_PARTS | _SCORERS | set(ALIASES["task"])
    return [name for name in names if fold_name(name) in folds]


_WARM_UP = re.compile(r"(is_)?(warm_?up|dry_?run|practice|calibration|smoke)(_(run|row|only))?")
_OLD = re.compile(r"(is_|was_)?(superseded|obsolete|outdated|replaced|voided|discarded)")


def _role_hint(name: str, task: str, labels: Sequence[str]) -> str:
    """The options for a column in which rows of a task differ, the likeliest first."""
    if _OLD.fullmatch(fold_name(name)) and len(labels) == 2:
        option = map_option(f"where={name} == {labels[0]}")  # 0, False, no
        return f"If the others do not count: {option}"
    roles = [f"--map trial={name} (attempts)", f"--map model={name} (runs)"]
    roles = roles[::-1] if any(map(is_model_name, (name, *labels))) else roles
    roles.append(f"or --map task={name}{JOIN_SIGN}{task} (different tasks)")
    return f"Say what it is: {', '.join(roles)}"


def is_scorer_name(name: str) -> bool:
    """Whether a column of this name holds judges or metrics."""
    return fold_name(name) in _SCORERS


@dataclass(slots=True)
class ScorerFilter:
    """Keeps the rows of one judge, where a column names the judge of a row."""

    scorer: str | None
    skipped: int = 0
    column: str | None = None
    _names: dict[str, None] = field(default_factory=dict)

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The rows of the judge, and their lines."""
        if self.scorer is None:
            return chunk, lines
        self.column = next(filter(is_scorer_name, chunk), None)
        if self.column is None:
            return chunk, lines
        cells = [_text(cell) for cell in chunk[self.column]]
        self._names |= dict.fromkeys(cells)
        places = [row for row, cell in enumerate(cells) if cell == self.scorer]
        self.skipped += len(cells) - len(places)
        rest = {name: [chunk[name][row] for row in places] for name in chunk}
        return rest, [lines[row] for row in places]

    @property
    def decisions(self) -> tuple[str, ...]:
        """Decisions that follow from the choice of a judge."""
        if self.column is None:
            return ()
        return (f"only rows of {self.scorer!r} in column {self.column!r} count",)

    def refuse_unknown(self, source: str) -> None:
        """Refuse a judge that no row names."""
        if self.column is not None and self.scorer not in self._names:
            raise ReadError(
                f"has no scorer called {self.scorer!r}.",
                source=source,
                hint=f"Choose with --scorer: {some(list(self._names), 20)}.",
            )


def join_columns(chunk: Chunk, columns: Mapping[str, str]) -> Chunk:
    """The chunk with a column for each that is stated as several, as in ``subject+question_id``."""
    joined: dict[str, Sequence[object]] = {}
    for word, column in columns.items():
        if word == "n" and column.isdigit() and column not in chunk:
            joined[column] = [int(column)] * len(next(iter(chunk.values())))
        column = column.removesuffix(EVERY_PART)
        parts = split_joined(column)
        if column in chunk or len(parts) < 2 or not all(part in chunk for part in parts):
            continue
        sign = " " if word == "model" else "/"
        rows = zip(*(chunk[part] for part in parts), strict=True)
        if word in ("n", "c", "fails", "missing"):
            joined[column] = [_sum_cells(row) for row in rows]
            continue
        joined[column] = [sign.join(_text(cell) for cell in row) for row in rows]
    return {**{name: chunk[name] for name in chunk}, **joined} if joined else chunk


def _sum_cells(cells: Sequence[object]) -> object:
    """The sum of counts; a cell that is no number is kept, and its row is lost with it."""
    numbers = [parse_number(cell) for cell in cells]
    return next(
        (cell for cell, number in zip(cells, numbers, strict=True) if number is None),
        sum(number for number in numbers if number is not None),
    )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _combine(groups: IntArray, codes: IntArray) -> IntArray:
    """A number for each pair of a group and a code."""
    if not len(groups):
        return groups
    pairs = groups * (int(codes.max()) + 1) + codes
    combined: IntArray = np.unique(pairs, return_inverse=True)[1]
    return combined


def _count_distinct(codes: IntArray) -> int:
    return len(np.unique(codes))


def _is_number(label: str) -> bool:
    return number_or_none(label) is not None


# -- the column that names the task ----------------------------------------------------------

_WEAK_TASKS = (
    *("id", "name", "case", "qid", "uid", "exercise", "puzzle", "challenge", "query", "prompt"),
    *("input", "goal", "title", "instruction", "problem_name", "ticket", "issue", "key"),
    *("use_case", "usecase", "flow", "workflow", "requirement", "user_story"),
    *("sample", "nodeid", "q", "env", "environment", "env_id", "game", "aufgabe", "frage", "tarea"),
    *("pregunta", "tâche", "tache", "domanda", "задача", "no", "no.", "nr", "nr.", "number"),
    *("вопрос", "任务", "问题", "题目", "タスク", "問題", "과제", "문제", "zadanie", "tarefa"),
)
"""Names that may mean something else: taken as the task where no better one is there, and said."""
_NUMBERED_TASK = re.compile(
    r"(task|item|question|problem|prob|requirement|instance|example|test|test_?case|case|scenario|prompt|query|"
    r"exercise|puzzle|challenge|ticket|issue|bug|story|q)_?(id|no|nr|num(ber)?|idx|index|key|name|"
    r"title|code|text|uuid|slug)"
)
_LABEL_WORDS = ("category", "reason")
"""Names of columns that hold the reason of a failure in some tables, and a subject in others."""
_LONGEST_NAME = 200
_SAMPLE = 200
_ID = re.compile(r"(.*_)?(id|qid|uid|idx|index|no|number|key)|.*\did")


def name_columns(
    columns: ColumnMap, chunk: Chunk, *, is_prose: bool = False
) -> tuple[ColumnMap, tuple[str, ...]]:
    """The columns with a task by a weaker name, and the decisions that it took.

    A column ``category`` that is filled where attempts passed is no reason of a failure. In a text
    that lies beside others (``is_prose``) only certain names make a table.
    """
    objects = [
        word
        for word in ("task", "success", "trial", "score")
        if (name := columns.meaning.get(word)) in chunk
        and (_holds_objects(chunk[name or ""]) or _holds_answers(chunk[name or ""]))
    ]
    measures = [
        word
        for word in ("duration", "steps", "tokens", "cost", "temperature")
        if (name := columns.meaning.get(word)) in chunk
        and word not in columns.stated
        and not _holds_numbers(chunk[name or ""])
    ]
    columns = columns.without(*objects, *measures)
    columns = _without_constant_task(columns, chunk)
    meaning = columns.meaning
    failure, success = meaning.get("failure"), meaning.get("success")
    if failure is not None and "failure" not in columns.stated and success in chunk:
        words = RewardWords()
        pairs = zip(chunk[failure], chunk[success or ""], strict=True)
        if fold_name(failure) in _LABEL_WORDS and any(
            str(cell or "").strip() and reward_or_none(words, verdict) == 1
            for cell, verdict in pairs
        ):
            columns = columns.without("failure")
    if "task" in meaning or is_prose or find_wide(columns, chunk) is not None:
        return columns, ()
    names = [name for name in list_unused(columns, chunk) if len(name) <= _LONGEST_NAME]
    named = [n for weak in _WEAK_TASKS for n in names if fold_name(n) == weak]
    # A prompt of few texts, beside a column of many, is a setting of the run.
    named = [n for n in named if not _names_runs(columns, chunk, n)]
    named += [n for n in names if _NUMBERED_TASK.fullmatch(fold_name(n))]
    if any(_repeats(n, chunk[n]) for n in names):  # an id of each row names no task then
        named = [n for n in named if len(distinct_cells(chunk[n])) < len(chunk[n])]
        names = []
    task = next(iter(named), None)
    if task is None:
        # In a league of several days, or a game of several levels, a row is one of them.
        numbered = [n for n in names if fold_name(n) in ("day", "level", "stage", "week")]
        task = next((n for n in numbered if _is_key(columns, chunk, n)), None)
    if task is None and names and names[0] == next(iter(chunk)):
        task = names[0] if _may_be_task(columns, chunk, names[0]) else None
    if task is None:
        return columns, ()
    ignored = tuple(name for name in columns.ignored if name != task)
    columns = replace(columns, meaning=MappingProxyType({**meaning, "task": task}), ignored=ignored)
    return columns, (f"column {task!r} is taken as the task",)


def _repeats(name: str, cells: Sequence[object]) -> bool:
    """Whether the texts of a column are all there several times, and are many for their number."""
    fold = fold_name(name)
    others = TASK_PARTS | RUN_PARTS | _SCORERS | _REMARKS | ANSWER_NAMES
    is_other = fold in others - {"prompt", "prompt_id"} or MEASURES.fullmatch(fold) is not None
    if is_other or is_judge_name(name) or any(word in fold for word in _ENDING_WORDS):
        return False
    counts = Counter(map(_text, cells))
    is_text = sum(_is_number(text) for text in counts) * 2 < len(counts)
    is_many = len(counts) > 3 and 2 * len(counts) ** 2 >= len(cells)
    return is_text and is_many and "" not in counts and min(counts.values()) > 1


def _names_runs(columns: ColumnMap, chunk: Chunk, name: str) -> bool:
    """Whether a column may be a setting: few values, each with all of another column's many."""
    if fold_name(name) not in RUN_PARTS:
        return False
    values = len(distinct_cells(chunk[name]))
    rows = list(map(str, chunk[name]))
    for other in list_unused(columns, chunk):
        many = len(distinct_cells(chunk[other]))
        pairs = len(set(zip(rows, map(str, chunk[other]), strict=True)))
        if other != name and 2 * values < many and pairs == values * many:
            return True
    return False


def _holds_numbers(cells: Sequence[object]) -> bool:
    """Whether some cell is a number, or too few are none to tell: "49.7 s" is a text."""
    if isinstance(cells, CellCodes) and cells.numbers() is not None:
        return True  # without a text for each cell
    values = distinct_cells(cells)[:_SAMPLE]
    is_short = len(values) < 3 and not _holds_objects(cells)
    return is_short or any(number_or_none(value) is not None for value in values)


def _without_constant_task(columns: ColumnMap, chunk: Chunk) -> ColumnMap:
    """Without a task that is the same in every row, where an id differs from row to row.

    Likewise without texts of several lines, each in one row, beside an id or a name.
    """
    task = columns.meaning.get("task")
    if task is None or task not in chunk or "task" in columns.stated:
        return columns
    cells = distinct_cells(chunk[task])
    is_text = len(cells) == len(chunk[task]) and all("\n" in str(cell).strip() for cell in cells)
    if len(chunk[task]) < 3 or (len(cells) > 1 and not is_text):
        return columns
    weak = _WEAK_TASKS if is_text else ()
    names = [name for name in list_unused(columns, chunk) if len(name) <= _LONGEST_NAME]
    names = [n for n in names if _ID.fullmatch(fold_name(n)) or fold_name(n) in weak]
    ids = [n for n in names if _is_key(columns, chunk, n)]
    return columns.without("task") if ids else columns


def _holds_objects(cells: Sequence[object]) -> bool:
    return not isinstance(cells, CellCodes) and any(isinstance(cell, dict) for cell in cells)


def _holds_answers(cells: Sequence[object]) -> bool:
    """Whether a column holds lists that are no lists of verdicts, as those of right answers are."""
    lists = [] if isinstance(cells, CellCodes) else [c for c in cells if isinstance(c, list)]
    return bool(lists) and 2 * sum(map(is_verdict_list, lists)) < len(lists)


def _may_be_task(columns: ColumnMap, chunk: Chunk, name: str) -> bool:
    """Whether a column may name tasks: every row its own, for each model."""
    cells = [str(cell).strip() for cell in chunk[name]]
    is_text = any(not re.fullmatch(r"[\d.,%:TZ+/ -]*", cell) for cell in cells)  # nor times
    is_time = _TIME_NAME.fullmatch(fold_name(name)) is not None
    return is_text and not is_time and _is_key(columns, chunk, name)


def _is_key(columns: ColumnMap, chunk: Chunk, name: str) -> bool:
    """Whether every row of a model has a value of its own."""
    model = columns.meaning.get("model")
    models = chunk[model] if model is not None and model in chunk else [""] * len(chunk[name])
    cells = [str(cell).strip() for cell in chunk[name]]
    pairs = set(zip(map(str, models), cells, strict=True))
    return len(pairs) == len(cells) > 1 and "" not in cells
