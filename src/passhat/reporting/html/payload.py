"""Data embedded in the page: the report as ``--json`` prints it, and every attempt in few bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from passhat.errors import PasshatError
from passhat.reporting.view import rate_variance, task_marks
from passhat.stats.outcomes import Attempts, Outcomes, Run, Verdict
from passhat.stats.outcomes.cells import same_names
from passhat.store import Store, is_address, open_store

SMALL = 1_000_000
"""Characters of conversation that a page holds without being asked to."""
_FEW = 4_000
"""Attempts that are looked through for that."""
_MAGIC = b"SQLite format 3\x00"

Body = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The conversations of a run: attempt numbers, and the turns of each (role, text)."""

    numbers: Mapping[str, Sequence[int]] = field(default_factory=lambda: MappingProxyType({}))
    bodies: Mapping[str, Mapping[int, Body]] = field(default_factory=lambda: MappingProxyType({}))
    left_out: bool = False

    @property
    def size(self) -> int:
        """Characters of all conversations; repeated texts count once."""
        bodies = (body for attempts in self.bodies.values() for body in attempts.values())
        return sum(map(len, {text for body in bodies for _, text in body}))


def transcripts_of(run: Run, *, wanted: bool | None) -> Transcripts:
    """The conversations of a stored run; ``wanted`` None takes them only where they are small."""
    if is_counted(run):  # too many to be looked at one by one
        return Transcripts(left_out=True)
    source_store = _open_source(run.source, wanted=bool(wanted))
    if source_store is None:
        return Transcripts()
    with source_store as store:
        try:
            stored_run = store.find(run.id or run.name)
        except PasshatError:  # a run with that name was made elsewhere
            return Transcripts()
        numbers = _numbers(store, stored_run.id)
        if wanted is False or (wanted is None and run.outcomes.attempts > _FEW):
            return Transcripts(numbers, left_out=True)
        bodies: dict[str, dict[int, Body]] = {}
        for task, attempt_numbers in numbers.items():
            for number in attempt_numbers:
                attempt = store.attempt(stored_run.id, task, number)
                if attempt is not None and attempt.transcript:
                    turns = [(turn["role"], turn["text"]) for turn in attempt.transcript]
                    bodies.setdefault(task, {})[number] = turns
    transcripts = Transcripts(numbers, bodies)
    if wanted is None and transcripts.size > SMALL:
        return Transcripts(numbers, left_out=True)
    return transcripts


def _numbers(store: Store, run: str) -> dict[str, list[int]]:
    """The numbers of the finished attempts at every task."""
    numbers: dict[str, list[int]] = {}
    for block in store.rows(run):
        for task, number, *_ in block:
            numbers.setdefault(str(task), []).append(int(str(number)))
    return numbers


def _open_source(source: str, *, wanted: bool) -> Store | None:
    """The store that a run was read from, where it is one."""
    if not (is_address(source) or _is_store(source)):
        return None
    try:
        return open_store(source, must_exist=True, read_only=True)
    except PasshatError:
        # A password that stood in the address is not known any more.
        if wanted or not is_address(source):
            raise
        return None


def _is_store(source: str) -> bool:
    path = Path(source)
    if not source or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


MOST_TASKS = 10_000
"""Tasks that a page lists of a run that was counted."""

_MARKS = {Verdict.PASSED: "1", Verdict.FAILED: "0", Verdict.MISSING: "-"}
_DIGITS = 4
"""Significant digits of a measure of one attempt; the report itself has all of them."""


def script_json(data: object) -> str:
    """JSON that is safe inside a script element: no ``<`` in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    # Line separators are fine in JSON, and were not in JavaScript for long.
    return safe.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def attempts_data(
    runs: Sequence[Run], labels: Sequence[str], transcripts: Sequence[Transcripts]
) -> dict[str, object]:
    """Tasks of all runs in one order, and for every run a string of marks per task.

    ``1`` passed, ``0`` failed, ``-`` missing; ``codes`` and ``measures`` run over all attempts of
    a run in the same order. ``code`` 0 says nothing, others are places in ``words`` plus one. A run
    whose attempts were counted has ``counts`` instead: passed, failed and missing of each task.
    """
    tasks = choose_tasks(runs)
    texts: dict[str, int] = {}
    runs_data = [
        _run(run, label, tasks) | _conversations(transcript, tasks, texts)
        for run, label, transcript in zip(runs, labels, transcripts, strict=True)
    ]
    labels_data = _labels(tasks, runs)
    return {"tasks": tasks, "labels": labels_data, "runs": runs_data, "texts": list(texts)}


def _labels(tasks: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The labels of each task in one string, to be searched and shown."""
    labels: dict[str, dict[str, None]] = {task: {} for task in tasks}
    for run in runs:
        for values in run.outcomes.labels.values():
            for task, value in zip(run.outcomes.tasks, values, strict=True):
                if value and task in labels:
                    labels[task][value] = None
    return [" · ".join(labels[task]) for task in tasks] if any(labels.values()) else []


def _run(run: Run, label: str, tasks: Sequence[str]) -> dict[str, object]:
    task_set = set(tasks)
    place = {task: i for i, task in enumerate(run.outcomes.tasks) if task in task_set}
    data: dict[str, object] = {
        "name": run.name,
        "label": label,
        "ordered": run.outcomes.order is not None,
    }
    if is_counted(run):
        return data | {"counts": [_counts(run.outcomes, place.get(task)) for task in tasks]}
    data["marks"] = [
        task_marks(run.outcomes, place[task], _MARKS) if task in place else "" for task in tasks
    ]
    attempts = run.attempts
    if attempts is not None:
        rows = _rows(attempts, tasks)
        words, codes = _why(attempts, rows)
        if words:
            data |= {"words": words, "codes": codes}
        data["measures"] = {
            name: [_short(value) for value in column[rows].tolist()]
            for name, column in attempts.measures.items()
            if not np.isnan(column).all()
        }
        seeds = attempts.extras.get("seed")
        if seeds is not None and any(seeds.values):
            data["seeds"] = [seeds[row] for row in rows]
    return data


def is_counted(run: Run) -> bool:
    """Whether a run was counted, without its single attempts."""
    return run.attempts is None and run.aggregates is not None


def choose_tasks(runs: Sequence[Run]) -> list[str]:
    """All tasks; of very many in a run that was counted, the most unsettled.

    Unsettled is as in a table of tasks: the variance of the success rate, of all runs together.
    """
    tasks = runs[0].outcomes.tasks
    if all(same_names(run.outcomes.tasks, tasks) for run in runs[1:]):
        if len(tasks) <= MOST_TASKS or not any(map(is_counted, runs)):
            return list(tasks)
        open_ = np.sum([rate_variance(run.outcomes) for run in runs], axis=0)
        places = np.sort(np.argsort(-open_, kind="stable")[:MOST_TASKS])
        return [tasks[place] for place in places.tolist()]
    totals: dict[str, float] = {}
    for run in runs:
        variances = rate_variance(run.outcomes).tolist()
        for task, value in zip(run.outcomes.tasks, variances, strict=True):
            totals[task] = totals.get(task, 0.0) + value
    if len(totals) <= MOST_TASKS or not any(map(is_counted, runs)):
        return list(totals)
    least = sorted(totals.values(), reverse=True)[MOST_TASKS - 1]
    return [task for task, value in totals.items() if value >= least][:MOST_TASKS]


def _counts(outcomes: Outcomes, index: int | None) -> list[int]:
    if index is None:
        return []
    n, c = int(outcomes.n[index]), int(outcomes.c[index])
    return [c, n - c, 0 if outcomes.m is None else int(outcomes.m[index])]


def _conversations(
    transcripts: Transcripts, tasks: Sequence[str], texts: dict[str, int]
) -> dict[str, object]:
    """Turns as role and place in ``texts``: a shared beginning is embedded once."""
    data: dict[str, object] = {}
    uneven = {
        str(index): list(numbers)
        for index, task in enumerate(tasks)
        if (numbers := transcripts.numbers.get(task))
        and list(numbers) != list(range(1, len(numbers) + 1))
    }
    if uneven:
        data["numbers"] = uneven
    if transcripts.bodies:
        data["transcripts"] = {
            f"{index}#{number}": [[role, texts.setdefault(text, len(texts))] for role, text in body]
            for index, task in enumerate(tasks)
            for number, body in transcripts.bodies.get(task, {}).items()
        }
    return data


def _rows(attempts: Attempts, tasks: Sequence[str]) -> list[int]:
    """The attempts of a run in the page's order of tasks."""
    place = {task: i for i, task in enumerate(attempts.tasks)}
    starts = attempts.starts.tolist()
    return [
        row
        for task in tasks
        if task in place
        for row in range(starts[place[task]], starts[place[task] + 1])
    ]


def _why(attempts: Attempts, rows: Sequence[int]) -> tuple[list[list[str]], list[int]]:
    """Category (or reason) and the source's own text, each pair once."""
    if attempts.detail is None:
        return [], []
    code_by_pair: dict[tuple[str, str], int] = {}
    codes = []
    by_code: dict[tuple[int, int], int] = {}
    for row in rows:
        verdict = int(attempts.verdicts[row])
        if verdict == Verdict.PASSED:
            codes.append(0)
            continue
        key = (int(attempts.detail.codes[row]), verdict)
        if key not in by_code:
            pair = _words(attempts, row)
            by_code[key] = code_by_pair.setdefault(pair, len(code_by_pair) + 1)
        codes.append(by_code[key])
    return [list(pair) for pair in code_by_pair], codes


def _words(attempts: Attempts, row: int) -> tuple[str, str]:
    index = int(np.searchsorted(attempts.starts, row, side="right")) - 1
    attempt = list(attempts.of(index))[row - int(attempts.starts[index])]
    return attempt.why or "", "" if attempt.detail in (None, attempt.why) else str(attempt.detail)


def _short(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def without_tasks(data: Mapping[str, Any]) -> dict[str, Any]:
    """A report's data without its table of tasks, which the page holds in its own form."""
    return {
        **data,
        "runs": [{k: v for k, v in run.items() if k != "task_table"} for run in data["runs"]],
    }
