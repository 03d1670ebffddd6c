"""The possible readings of a file that no reader is sure of, weighed by its values and tried.

A reading says which columns or fields name the task, the run and the attempt, and what passes. Each
is a set of options that a user can type, so what a refusal prints was read once with the number
that it shows. Names are one piece of evidence; the others are values: what repeats, what is a key,
what varies within a task, which columns share their words.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from os.path import commonprefix
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passhat._display import counted, some
from passhat.errors import NoRows, PasshatError, ReadError
from passhat.readers.base import ReadOptions
from passhat.readers.guessing import Column, SampleTable, sample_tables
from passhat.readers.outcome_candidates import MOST_WORDS, Outcome, find_outcomes, verdict_likeness
from passhat.readers.pivot_candidates import find_pivots
from passhat.readers.record_map import map_option, split_map
from passhat.readers.records import RecordFile, content_kind, find_facts, plain_log
from passhat.readers.row_groups import RUN_PARTS, TASK_PARTS
from passhat.readers.sources import Source, make_folder
from passhat.readers.wide_tables import (
    is_judge_name,
    is_model_name,
)
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import EVERY_COLUMN, EVERY_PART, JOIN_SIGN
from passhat.stats.outcomes.rewards import is_odd_ending

_MOST_TRIED = 9
_LARGE = 4 << 20
"""Of a file of so many bytes only as many readings are tried as are shown."""
_MOST_BYTES = 12 << 20
"""Read for the readings of a large file that are shown, where the first is not larger."""
_SHOWN = 4
_ROUNDING = 0.0051
"""A stated share of passes has two digits or more."""
_MOST_ALIKE = 3
"""Readings that differ in the task alone: other rules for a pass are to be seen, too."""
_MOST_OUTCOMES = 14
_LEAST = -0.9
"""A weaker outcome is not worth a line."""
_LIKELY = 1.0
"""A weaker outcome is one by nothing but that no other was found."""
_ROLES = frozenset({"system", "user", "assistant", "tool", "function", "developer", "human", "ai"})

_TRIAL = re.compile(
    r"(.*_)?(trial|attempt|retry|epoch|run|seed|repeat|repetition|rep|iteration|iter|try|round|rollout|"
    r"sample|replicate|versuch|durchlauf|lauf|essai|intento|tentativa)(_.*)?"
)
_COUNT = re.compile(r"(^|_)(total|count|num|sum|max|min|passed|failed|score)(_|$)")
_NUMBERED = re.compile(r"(?:[a-z]+[\s_#-]*)?#?\d+", re.IGNORECASE)
_MODEL = re.compile(
    r"(.*_)?(sheet|model|agent|assistant|system|llm|bot|engine|solver|player|checkpoint|ckpt|runner|"
    r"candidate|modelo|modell|submission|build|release|version|variant|prover|policy|pipeline|"
    r"vendor|scaffold|harness|writer|defen[cs]e|controller|(sprach|ki)modell|modèle|assistente?)(_.*)?"
)
_TASK = re.compile(
    r"(.*_)?(task|item|question|problem|instance|example|test|case|scenario|prompt|query|exercise|"
    r"puzzle|challenge|ticket|issue|bug|story|q|id|name|key|title|goal|input|nodeid|uid|qid|game|"
    r"journey|flow|incident|claim|theorem|kernel|probe|assay|protocol|exploit|skill|épreuve|tâche|"
    r"vorgang|anliegen|testfall|fall|check|"
    r"level|env|environment|aufgabe|frage|tarea|pregunta|tâche|domanda|задача|任务|问题|题目|問題|"
    r"タスク|문제|zadanie|tarefa|sample|doc|document|file|filename|url|site|page|intent)(_.*)?"
)


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A way to read a file: the options, what speaks for it, and what it gives."""

    columns: Mapping[str, str]
    weight: float
    runs: tuple[Run, ...] = ()
    evidence: float = 0.0
    """The part of the weight that is for what passes."""

    @property
    def signature(self) -> object:
        """The numbers that it gives: two readings with equal ones do not differ."""
        return sorted(
            (run.name, sorted(zip(run.outcomes.n.tolist(), run.outcomes.c.tolist(), strict=True)))
            for run in self.runs
        )

    def options(self, options: ReadOptions) -> ReadOptions:
        """The options of the user with those of this reading."""
        return replace(options, **split_map(self.columns))

    def command(self, source: str) -> str:
        """The command line that reads the file so."""
        pairs = [f"{word}={_quote(path)}" for word, path in self.columns.items()]
        return f"passhat report {shlex.quote(source)} {map_option(','.join(pairs))}"

    @property
    def rule(self) -> str:
        """The rule for a pass and the rows that count, without the task."""
        words = ("where", "n", "c", "fails", "success")
        return repr([self.columns.get(word) for word in words])

    @property
    def attempts(self) -> int:
        """The number of attempts in all runs."""
        return sum(run.outcomes.attempts for run in self.runs)

    def has_rate(self, stated: float | None) -> bool:
        """Whether as many attempts passed as the file states."""
        passes, scored = (
            sum(getattr(run.outcomes, word) for run in self.runs) for word in ("passes", "scored")
        )
        return stated is not None and abs(passes / scored - stated) < _ROUNDING

    def describe(self) -> str:
        """The number of attempts, tasks and runs, and the share that passed."""
        passes, scored = (
            sum(getattr(run.outcomes, word) for run in self.runs) for word in ("passes", "scored")
        )
        tasks = len({task for run in self.runs for task in run.outcomes.tasks})
        share = f"{passes / scored:.0%} of " if scored else ""
        scores = [s.values for run in self.runs if (s := run.outcomes.scores) is not None]
        if scores and not re.search(r"[<=>]", self.columns.get("success", "")):
            share = f"a mean of {np.nanmean(np.concatenate(scores)):.2f} over "
        runs = f", {counted(len(self.runs), 'run')}" if len(self.runs) > 1 else ""
        return f"{share}{counted(scored, 'attempt')} at {counted(tasks, 'task')}{runs}"


def _quote(path: str) -> str:
    return f'"{path}"' if "," in path else path


def interpret(
    source: Source, options: ReadOptions, read: Callable[[Source, ReadOptions], list[Run]]
) -> list[Interpretation]:
    """The readings of a file with different numbers, the likeliest first, each of them tried."""
    candidates: list[Interpretation] = []
    with suppress(PasshatError):
        for table in sample_tables(source):
            candidates += _weigh_table(table)
    ranked = sorted(candidates, key=lambda one: -one.weight)
    results: list[Interpretation] = []
    rules = Counter[str]()
    tried: set[str] = set()
    stated = find_facts(source)[1] if content_kind(source) == "JSON" else source.stated_rate
    size = source.path.stat().st_size if source.path.is_file() else 0
    most = _SHOWN if size > _LARGE else _MOST_TRIED
    most_results = max(1, _MOST_BYTES // size) if size > _LARGE else _SHOWN + 1
    for candidate in ranked:
        key = repr(sorted(candidate.columns.items()))
        if not all(map(str.isprintable, candidate.columns.values())):
            continue  # a command of several lines
        if key in tried or len(tried) >= most or len(results) >= most_results:
            continue
        rule = candidate.rule
        if rules[rule] == _MOST_ALIKE:
            continue
        tried.add(key)
        with suppress(PasshatError):
            runs = read(source, candidate.options(options))
            one = replace(candidate, runs=tuple(runs))
            if any(run.outcomes.scored for run in runs) and all(
                one.signature != other.signature for other in results
            ):
                results.append(one)
                rules[rule] += 1
    return sorted(results, key=lambda one: not one.has_rate(stated))


def suggest_commands(source: str, readings: Sequence[Interpretation], example: str) -> str:
    """The command lines for the likeliest readings, with the number that each gives.

    ``example`` is the file that was read, where the commands are about its folder.
    """
    is_likely = any(one.evidence >= _LIKELY for one in readings[:_SHOWN])
    lead = "Say how to read it, the likeliest first:"
    lead = lead if is_likely else "No field looks like a verdict. If one of these is what passed:"
    lead = lead if example == source else f"{lead[:-1]} (the numbers are those of {example}):"
    lines = [f"{one.describe()}: {one.command(source)}" for one in readings[:_SHOWN]]
    return "\n  ".join((lead, *lines))


# -- what a row is about ---------------------------------------------------------------------


def _weigh_table(table: SampleTable) -> list[Interpretation]:
    """The readings of a table with their weights."""
    if table.size < 2 or any(
        c.fold in ("role", "speaker") and c.words and c.words.keys() <= _ROLES
        for c in table.columns.values()
    ):  # the messages of a conversation
        return []
    readings = [one for part in (table, *_selections(table)) for one in _weigh_rows(part)]
    return sorted(readings, key=lambda one: -one.weight)[:_MOST_TRIED]


def _selections(table: SampleTable) -> Iterator[SampleTable]:
    """The rows of one kind, where only they have a verdict: an event at the end of an attempt."""
    verdicts = [c for c in table.columns.values() if c.has_empty and _may_decide(c)]
    verdicts = sorted(verdicts, key=lambda c: -verdict_likeness(c))[:3]
    kinds = [c for c in table.columns.values() if 1 < len(c.words) <= MOST_WORDS]
    for kind in kinds:
        pairs = zip(kind.words, kind.rewards, strict=True)
        ends = [word for word, reward in pairs if reward in (0, 1)]
        others = [w for w, r in zip(kind.words, kind.rewards, strict=True) if r is None]
        if {0.0, 1.0} <= set(kind.rewards) and not (
            kind.numbers or all(map(is_odd_ending, others))
        ):
            where = f"{kind.name} in {'|'.join(ends)}"
            part = _select(table, [text in ends for text in kind.texts], where)
            yield replace(part, verdict=kind.name)
    for verdict in verdicts:
        filled = np.array([text != "" for text in verdict.texts])
        for kind in kinds:
            words = {text for text, full in zip(kind.texts, filled, strict=True) if full}
            (word,) = words if len(words) == 1 else ("",)
            chosen = [text == word for text in kind.texts]
            count = sum(chosen)
            if word and kind is not verdict and count == filled.sum() <= 3 * (table.size - count):
                is_end = _END.search(word) is not None
                yield _select(table, chosen, f"{kind.name} == {word}", 1.5 + is_end)


_END = re.compile(r"end|finish|complete|final|result|summary|done|score|eval|grade", re.IGNORECASE)
"""In the name of an event: one that closes an attempt, and no step of it."""


def _select(
    table: SampleTable, chosen: Sequence[bool], where: str, weight: float = 1.5
) -> SampleTable:
    """Some rows of a table, which a rule names."""
    places = [row for row, is_chosen in enumerate(chosen) if is_chosen]
    columns = {
        name: Column(name, [c.cells[row] for row in places]) for name, c in table.columns.items()
    }
    weight += table.weight
    return replace(table, columns=columns, size=len(places), where=where, weight=weight)


def _may_decide(column: Column) -> bool:
    """Whether some words of a column are verdicts, and its name is one of a verdict."""
    is_known = bool({0.0, 1.0} & set(column.rewards))
    return is_known and len(column.words) <= MOST_WORDS and verdict_likeness(column) >= 3


def _weigh_rows(table: SampleTable) -> list[Interpretation]:
    """The readings of a table whose rows are all alike."""
    outcomes = [
        outcome
        for outcome in (*find_outcomes(table), *find_pivots(table))
        if outcome.weight > _LEAST and table.verdict in ("", outcome.pairs.get("success"))
    ]
    outcomes = sorted(outcomes, key=lambda outcome: -outcome.weight)[:_MOST_OUTCOMES]
    readings = [one for outcome in outcomes for one in _group_rows(table, outcome)]
    return sorted(readings, key=lambda one: -one.weight)[:_MOST_TRIED]


class _Choice(NamedTuple):
    """A column, or several together, for the task, the run or the attempt of a row."""

    weight: float
    name: str
    codes: IntArray
    inner: IntArray | None = None
    """The task alone, where this is a task within a group."""


def _group_rows(table: SampleTable, outcome: Outcome) -> Iterator[Interpretation]:
    """Roles of the rows, given what passes: ways to name task, run and attempt."""
    columns = [
        c
        for c in table.columns.values()
        if c.name.partition("[")[0] not in outcome.used
        and c.name not in outcome.used
        and c.words
        and not (c.is_inner or c.is_measure)
    ]
    size, nothing = table.size, _Choice(0.0, "", np.zeros(table.size, np.int64))
    is_count = not {"n", "c"}.isdisjoint(outcome.pairs)
    models, trials = [nothing], [nothing]
    if "model" not in outcome.pairs:
        models += _best(_Choice(_weigh_model(c, size), c.name, c.codes) for c in columns)
    if "trial" not in outcome.pairs and not is_count:
        trials += _best(_Choice(_weigh_trial(c), c.name, c.codes) for c in columns)
    tasks = _task_choices(table, outcome, columns)
    # A column that names the model, or the attempt, speaks against a column for each of them.
    rivals = [0.0]
    if EVERY_COLUMN in outcome.pairs.get("model", ""):
        rivals += [_weigh_model(c, size) for c in columns]
    if EVERY_COLUMN in outcome.pairs.get("trial", ""):
        rivals += [_weigh_trial(c) for c in columns]
    penalty = 2.0 if max(rivals) >= 2.0 else 0.0
    start = {
        word: text for word, text in (("records", table.records), ("where", table.where)) if text
    }
    if table.records == "[*]":
        start.pop("records")  # as a list is read anyway, also with a column for each model
    for task, model, trial in product(tasks, models, trials):
        names = [name for each in (task, model, trial) for name in each.name.split(JOIN_SIGN)]
        names = [name for name in names if name]
        if len(set(names)) < len(names) or _names_alone(task, model, trial):
            continue
        weight = table.weight + outcome.weight + task.weight + model.weight + trial.weight
        weight -= penalty
        weight += _weigh_groups(task.codes, model, trial, is_count=is_count)
        if outcome.values is not None:
            weight -= _weigh_constancy(task.codes, outcome.values)
        pairs = {"task": task.name, "model": model.name, "trial": trial.name}
        pairs = {word: name for word, name in pairs.items() if name}
        pairs = {**start, **pairs, **outcome.pairs}
        if outcome.pairs.get("task") == EVERY_PART:
            pairs["task"] = task.name + EVERY_PART
        yield Interpretation(pairs, weight, evidence=outcome.weight)


def _task_choices(table: SampleTable, outcome: Outcome, columns: Sequence[Column]) -> list[_Choice]:
    """The likeliest columns for the task, alone and within a group; the place of a row at last."""
    size, first = table.size, next(iter(table.columns))
    if outcome.pairs.get("task") == EVERY_COLUMN:
        return [_Choice(0.0, "", np.zeros(size, np.int64))]
    tasks = _best((_Choice(_weigh_task(c, size, first), c.name, c.codes) for c in columns), 4)
    trials = [c for c in columns if len(c.words) == size > 1 and _weigh_trial(c) >= 2.0]
    is_plain = size > 4 and not any(c.is_inner for c in table.columns.values())
    is_plain &= table.records in ("", "[*]")
    if trials and is_plain and all(task.weight < 2.5 for task in tasks):
        tasks.append(_Choice(2.0, "@file", np.zeros(size, np.int64)))  # attempts at one task
    is_inner = table.records.count("*") > 1  # the place in one of several lists is no task
    if not is_inner and not any(EVERY_COLUMN in path for path in outcome.pairs.values()):
        tasks.append(_Choice(-1.5, "@index", np.arange(size)))
    groups = [c for c in columns if c.fold in TASK_PARTS or c.named("task", "suite")][:3]
    for task, group in product(tasks[:4], groups):
        joint = _combine(group.codes, task.codes)
        if group.name != task.name and _count(joint) > _count(task.codes) and "@" not in task.name:
            name = f"{group.name}{JOIN_SIGN}{task.name}"
            tasks.append(_Choice(task.weight - 0.2, name, joint, task.codes))
    return tasks


def _best(choices: Iterable[_Choice], count: int = 3) -> list[_Choice]:
    return sorted(choices, key=lambda choice: -choice.weight)[:count]


def _names_alone(task: _Choice, model: _Choice, trial: _Choice) -> bool:
    """Whether the task alone tells the rows apart, so that its group need not."""
    if task.inner is None:
        return False
    return _count(_combine(_combine(task.inner, model.codes), trial.codes)) == len(task.codes)


def _weigh_task(column: Column, size: int, first: str) -> float:
    distinct = len(column.words)
    weight = 3.0 if column.named("task") else 1.8 if _TASK.fullmatch(column.fold) else 0.0
    if column.name.endswith("@key"):
        weight = 1.5 - 0.3 * column.name.count("^")
    weight -= 0.5 * column.name.startswith("^")
    is_key = distinct == size and not column.numbers
    if column.named("model", "trial", "success", "n", "c", "fails", "missing") or (
        column.named("suite") and not is_key
    ):
        weight -= 2.5
    is_part = column.fold in TASK_PARTS and not is_key
    weight -= 1.0 if is_part else 1.5 if column.fold in RUN_PARTS else 0.0
    weight -= 2.0 * (column.is_whole and _COUNT.search(column.fold) is not None)
    weight += 0.4 if column.name == first else 0.0
    weight += float(np.log(distinct) / np.log(size)) if size > 1 else 0.0
    if distinct < 2:
        return weight - 3.0
    if column.numbers and not column.is_whole:
        return weight - 4.0
    weight -= 3.0 * column.is_time + 2.0 * column.is_verdict + 1.5 * column.has_empty
    return weight


def _weigh_model(column: Column, size: int) -> float:
    distinct = len(column.words)
    named = sum(map(is_model_name, column.words)) * 2 > distinct
    if column.named("model"):
        weight = 3.0
    else:
        named = named or _MODEL.fullmatch(column.fold) is not None
        weight = 2.0 if named else 1.2 if column.fold in RUN_PARTS else -1.0
        weight -= 2.0 * bool(column.numbers) + 2.0 * (distinct < 2) + 3.0 * column.is_time
        weight -= 2.0 * (distinct > max(20, size / 3)) + 2.0 * column.is_verdict
    weight -= 1.5 if column.fold in TASK_PARTS else 0.0
    weight -= 2.0 * is_judge_name(column.name)
    return weight - (2.0 if column.named("task", "trial") else 0.0) - 1.5 * column.has_empty


def _weigh_trial(column: Column) -> float:
    named = column.named("trial") or _TRIAL.fullmatch(column.fold) is not None
    numbered = column.is_whole or all(map(_NUMBERED.fullmatch, islice(column.words, 50)))
    weight = 2.0 if named else -0.8
    weight += 0.5 if numbered else 0.2 if column.is_time else -1.0
    return weight - 3.0 * column.named("model") - 2.0 * column.named("task")


def _weigh_groups(task: IntArray, model: _Choice, trial: _Choice, *, is_count: bool) -> float:
    """How well task, run and attempt tell the rows apart."""
    size = len(task)
    rows = _combine(task, model.codes)
    groups, tasks, models = _count(rows), _count(task), _count(model.codes)
    weight = 0.0
    if model.name:
        if groups >= 0.8 * tasks * models:
            weight += 1.0
        elif groups == tasks and models > 1:
            weight -= 2.5  # a label of the tasks
    if is_count:
        return weight + (1.5 if groups == size else -3.0)
    if not trial.name:
        # Few rows of the same task are no further attempts: question texts that are there twice.
        is_odd = 0.8 * size < groups < size
        return weight + (1.5 if groups == size else -1.5 * is_odd)
    if _count(_combine(rows, trial.codes)) < size:
        return weight - 4.0
    largest = int(np.bincount(rows).max())
    trials = _count(trial.codes)
    if groups == size:  # nothing to tell apart
        return weight - (0.5 if trials == 1 else 2.5)
    return weight + (1.5 if trials <= 2 * largest else -0.5)


def _weigh_constancy(task: IntArray, values: IntArray) -> float:
    """The case against a verdict that is the same in all rows of each task: a label of it."""
    tasks, repeated = _count(task), int((np.bincount(task) > 1).sum())
    if tasks == len(task) or _count(values) < 2 or _count(_combine(task, values)) > tasks:
        return 0.0
    return 2.5 if repeated >= 4 else 1.0


def _combine(first: IntArray, second: IntArray) -> IntArray:
    pairs = first * (int(second.max()) + 1) + second
    combined: IntArray = np.unique(pairs, return_inverse=True)[1]
    return combined


def _count(codes: IntArray) -> int:
    return len(np.unique(codes))


# -- the tables of a folder ------------------------------------------------------------

_WORD_IN_PATH = re.compile(r"\{(\w+)\}")
_PATH_WORDS = ("model", "suite", "trial", "seed")
_REPEATED_STEM = re.compile(
    r"(?P<model>.*?)(?P<sign>[\s_.-]+[rstk]|[\s_.-]*(?:(?:run|trial|attempt|seed|sample|rep|repeat|repetition|try|"
    r"epoch|iter|iteration|round|rollout)[\s_.#-]*)?)(?P<n>\d+)(?P<end>\D*)",
    re.IGNORECASE,
)
_DAY = re.compile(r"20\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_T ]?\d[\d_-]*\d)?")
_MOST_FILES = 2_000


def is_table_pattern(pattern: str | None) -> bool:
    """Whether a pattern for paths names models or attempts, and the files hold the tasks."""
    names = _WORD_IN_PATH.findall(pattern or "")
    return bool(names) and "task" not in names and "success" not in names


def gather_tables(folder: Source, pattern: str) -> Source:
    """The rows of all tables in a folder, with a column for each name in the pattern."""
    names = _WORD_IN_PATH.findall(pattern)
    if set(names) - {*_PATH_WORDS} or len(set(names)) < len(names):
        raise ReadError(
            f"the pattern {pattern!r} may name {', '.join(_PATH_WORDS)}, each once.",
            source=folder.name,
            hint="With {task} a file is an attempt; without it the rows name the task.",
        )
    text = _WORD_IN_PATH.sub(lambda match: f"(?P<{match[1]}>[^/]+)", _escape(pattern))
    path_re = re.compile(text.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*"))
    files = [(file, path_re.fullmatch(_below(file, folder))) for file in folder.children("**/*")]
    found = {file: match.groupdict() for file, match in files if match is not None}
    names_of = dict.fromkeys(found, frozenset[str]())
    for file in found:
        with suppress(PasshatError):  # a text beside the tables
            names_of[file] = frozenset(next(_rows_of(file), ()))
    headers = Counter(filter(None, names_of.values()))
    if not headers:
        why = " with rows; for a file per attempt the pattern needs {task}" if found else ""
        raise NoRows(f"no file fits the pattern {pattern!r}{why}.", source=folder.name)
    header = headers.most_common(1)[0][0]
    alike = [file for file, its in names_of.items() if 2 * len(header & its) > len(header)]
    clash = sorted(header & set(names))
    if clash:
        raise ReadError(
            f"{alike[0].name} has a column {clash[0]!r} of its own.",
            source=folder.name,
            hint=f"Write * in place of {{{clash[0]}}} in the pattern.",
        )
    path = make_folder() / f"{Path(folder.name).stem}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for file in alike:
            for row in _rows_of(file):
                stream.write(json.dumps({**row, **found[file]}, default=str) + "\n")
    said = f"{len(alike)} files that fit {pattern} are one table"
    if others := [_below(file, folder) for file in found if file not in alike]:
        said += f", without {some(others, 3)}"
    return Source(folder.name, path, found=folder.found, conversion=said)


def _escape(pattern: str) -> str:
    return "".join(
        part if _WORD_IN_PATH.fullmatch(part) else re.escape(part)
        for part in re.split(r"(\{\w+\})", pattern)
    )


def _below(file: Source, folder: Source) -> str:
    return file.path.relative_to(folder.path).as_posix()


def _rows_of(file: Source) -> Iterator[Mapping[str, Any]]:
    for record in RecordFile(file, plain_log(file)).records():
        if isinstance(record.data, dict):
            yield record.data


def suggest_tables(folder: Source) -> str | None:
    """The pattern for tables of one kind that differ in a number, or in a number and a name."""
    kinds: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for file in islice(folder.children("**/*"), _MOST_FILES):
        if content_kind(file) not in ("CSV", "JSON lines", "Excel", "Parquet") or not file.head:
            continue
        with suppress(PasshatError):
            header = tuple(next(_rows_of(file), ()))
            if len(header) > 1:
                kinds.setdefault(header, []).append(tuple(_below(file, folder).split("/")))
    paths = max(kinds.values(), key=len, default=[])
    if len(paths) < 2 or len({len(path) for path in paths}) > 1:
        return None
    parts, names = [], list[str]()
    for column in zip(*paths, strict=True):
        part, found = _name_part(column)
        parts.append(part)
        names += found
    own = [name for name in names if name in max(kinds, key=lambda kind: len(kinds[kind]))]
    for name in own:  # the rows say it
        parts = [part.replace(f"{{{name}}}", "*") for part in parts]
    return "/".join(parts) if len(names) > len(own) and len(set(names)) == len(names) else None


def _name_part(column: Sequence[str]) -> tuple[str, list[str]]:
    """A part of the paths with names for what differs in it."""
    if len(set(column)) == 1:
        return column[0], []
    column = [_DAY.sub("*", name) for name in column]
    if len(set(column)) == 1:  # a table of each day
        return column[0].replace("*", "{trial}", 1), ["trial"]
    matches = [match for name in column if (match := _REPEATED_STEM.fullmatch(name))]
    shared = {(match["sign"].lower(), match["end"]) for match in matches}
    if len(matches) == len(column) and len(shared) == 1:
        model = matches[0]["model"]
        is_same = len({match["model"] for match in matches}) == 1
        number = f"{matches[0]['sign']}{{trial}}{matches[0]['end']}"
        if is_same:
            return f"{model}{number}", ["trial"]
        models = Counter(match["model"] for match in matches)
        has_word = any(map(str.isalpha, matches[0]["sign"]))
        if has_word or (min(models.values()) > 1 and len(set(models.values())) == 1):
            start = commonprefix(list(models))  # noqa: RUF071 - of letters
            start = start[: max(map(start.rfind, "_- ")) + 1]
            return f"{start}{{model}}{number}", ["model", "trial"]
    ending = commonprefix([name[::-1] for name in column])[::-1]  # noqa: RUF071 - of letters
    suffix = re.search(r"[._-].*", ending)
    return "{model}" + (suffix[0] if suffix else ""), ["model"]


def say_tables(
    folder: Source, runs: Sequence[tuple[Run, ...]], columns: Mapping[str, str]
) -> list[tuple[Run, ...]]:
    """The runs of each table, with a word where names of files number attempts of models."""
    is_guess = all(run.agent_guessed and run.attempts is not None for its in runs for run in its)
    if len(runs) < 2 or not is_guess or any(len(its) > 1 for its in runs):
        return list(runs)
    pattern = suggest_tables(folder) or ""
    if "{trial}" not in pattern or "{model}" not in pattern:
        return list(runs)  # a number alone is said where runs are compared
    pairs = ",".join(f"{word}={name}" for word, name in {"records": pattern, **columns}.items())
    command = f"passhat report {shlex.quote(folder.name)} {map_option(pairs)}"
    said = f"each file is a run; if they are attempts of models: {command}"
    return [tuple(replace(run, decisions=(*run.decisions, said)) for run in its) for its in runs]
