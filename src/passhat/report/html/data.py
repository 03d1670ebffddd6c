"""What the page embeds: the report as ``--json`` prints it, and every attempt in few bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passhat.outcomes import Attempts, Outcomes, Run, Verdict
from passhat.report.html.transcripts import Transcripts

__all__ = ["attempts_data", "script_json"]

_MARKS = {Verdict.PASSED: "1", Verdict.FAILED: "0", Verdict.MISSING: "-"}
_DIGITS = 4
"""Significant digits of a measure of one attempt; the report itself has all of them."""


def script_json(data: object) -> str:
    """JSON that may stand inside a script element: no ``<`` in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    # Line separators are fine in JSON, and were not in JavaScript for long.
    return escaped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def attempts_data(
    runs: Sequence[Run], labels: Sequence[str], transcripts: Sequence[Transcripts]
) -> dict[str, object]:
    """Tasks of all runs in one order, and for every run a string of marks per task.

    ``1`` passed, ``0`` failed, ``-`` missing; ``codes`` and ``measures`` run over all attempts of
    a run in the same order. ``code`` 0 says nothing, others are places in ``words`` plus one.
    """
    tasks = list(dict.fromkeys(task for run in runs for task in run.outcomes.tasks))
    texts: dict[str, int] = {}
    data: dict[str, object] = {
        "tasks": tasks,
        "labels": _labels(tasks, runs),
        "runs": [
            _run(run, label, tasks) | _conversations(found, tasks, texts)
            for run, label, found in zip(runs, labels, transcripts, strict=True)
        ],
    }
    return data | {"texts": list(texts)}


def _labels(tasks: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The labels of each task in one string, to be searched and shown."""
    found: dict[str, dict[str, None]] = {task: {} for task in tasks}
    for run in runs:
        for values in run.outcomes.labels.values():
            for task, value in zip(run.outcomes.tasks, values, strict=True):
                if value:
                    found[task][value] = None
    return [" · ".join(found[task]) for task in tasks] if any(found.values()) else []


def _run(run: Run, label: str, tasks: Sequence[str]) -> dict[str, object]:
    place = {task: i for i, task in enumerate(run.outcomes.tasks)}
    data: dict[str, object] = {
        "name": run.name,
        "label": label,
        "ordered": run.outcomes.order is not None,
        "marks": [_marks(run.outcomes, place[task]) if task in place else "" for task in tasks],
    }
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


def _conversations(
    found: Transcripts, tasks: Sequence[str], texts: dict[str, int]
) -> dict[str, object]:
    """Turns as role and place in ``texts``: what every attempt begins with is embedded once."""
    data: dict[str, object] = {}
    uneven = {
        str(index): list(numbers)
        for index, task in enumerate(tasks)
        if (numbers := found.numbers.get(task))
        and list(numbers) != list(range(1, len(numbers) + 1))
    }
    if uneven:
        data["numbers"] = uneven
    if found.bodies:
        data["transcripts"] = {
            f"{index}#{number}": [[role, texts.setdefault(text, len(texts))] for role, text in body]
            for index, task in enumerate(tasks)
            for number, body in found.bodies.get(task, {}).items()
        }
    return data


def _marks(outcomes: Outcomes, index: int) -> str:
    """The attempts of a task in order, or passes first where the order is unknown."""
    if outcomes.order is not None:
        return "".join(_MARKS[verdict] for verdict in outcomes.order.of(index))
    n, c = int(outcomes.n[index]), int(outcomes.c[index])
    return "1" * c + "0" * (n - c) + "-" * int(outcomes.missing[index])


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
    """Category (or reason) and the source's own words, each pair once."""
    if attempts.detail is None:
        return [], []
    known: dict[tuple[str, str], int] = {}
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
            by_code[key] = known.setdefault(pair, len(known) + 1)
        codes.append(by_code[key])
    return [list(pair) for pair in known], codes


def _words(attempts: Attempts, row: int) -> tuple[str, str]:
    index = int(np.searchsorted(attempts.starts, row, side="right")) - 1
    number = row - int(attempts.starts[index])
    one = list(attempts.of(index))[number]
    return one.why or "", "" if one.detail in (None, one.why) else str(one.detail)


def _short(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def without_tasks(data: Mapping[str, Any]) -> dict[str, Any]:
    """A report's data without its table of tasks, which the page holds in its own form."""
    return {
        **data,
        "runs": [{k: v for k, v in run.items() if k != "task_table"} for run in data["runs"]],
    }
