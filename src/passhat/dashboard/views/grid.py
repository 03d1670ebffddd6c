"""A grid of a run: tasks down, attempts across; expected, got, cause, cost and time in a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import last_words, turns_of
from passhat.dashboard.run_summaries import Summary
from passhat.errors import InvalidValue
from passhat.reporting.answers import Answers, find_answers
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import JudgementSource, StoredJudgement, open_store
from passhat.store.queries import AttemptFilter, AttemptLine

SCHEMA = "passhat.grid/1"
PARTS = ("expected", "got", "cause", "cost", "time")
"""Parts of the grid that can be hidden."""
SHOW = ("all", "failed", "flaky", "truncated", "disagreeing", "missing")
_TASKS_PER_PAGE = 15
_MOST_ATTEMPTS = 20_000
"""Attempts of a run that are filtered; a larger run is looked at task by task."""
_MOST_COLUMNS = 16
_ANSWER = 140


@dataclass(frozen=True, slots=True)
class Cell:
    """An attempt; ``answer`` is what the judge looked at, cut to the size of a cell."""

    task: str
    attempt: int
    verdict: str
    why: str
    answer: str
    disagreeing: bool
    expected: str = ""
    detail: str = ""
    cost: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A task with its attempts; ``hidden`` counts those beyond the last column."""

    task: str
    passed: int
    judged: int
    cells: tuple[Cell, ...]
    hidden: int

    @property
    def expected(self) -> str:
        """The expected answers of its attempts: one, unless the judge compares parts."""
        return " | ".join(dict.fromkeys(cell.expected for cell in self.cells if cell.expected))


def grid(state: AppState, request: PageRequest) -> Answer:
    """The tasks that match, some at a time, with the answers of their attempts."""
    summary = state.summaries.find(request.path["run"])
    show, word = request.choice("show", SHOW), request.text("task").lower()
    lines = state.reading.lines(summary.head.key, AttemptFilter(), _MOST_ATTEMPTS + 1, None)
    cut = len(lines) > _MOST_ATTEMPTS
    disagreeing = _disagreeing(state, summary, lines[:_MOST_ATTEMPTS])
    by_task = [
        (task, list(attempts))
        for task, attempts in groupby(lines[:_MOST_ATTEMPTS], lambda line: line.task)
        if word in task.lower()
    ]
    matches = [entry for entry in by_task if _matches(entry[1], show, disagreeing)]
    page, pages, on_page = request.page(len(matches), _TASKS_PER_PAGE)
    rows = [_row(state, summary, *entry, disagreeing) for entry in matches[on_page]]
    if request.form == "json":
        return Json({"schema": SCHEMA, "run": summary.id, "rows": rows, "pages": pages})
    if request.form == "csv":
        names = [field.name for field in fields(Cell)]
        cells = [cell for row in rows for cell in row.cells]
        return Csv(names, [[getattr(cell, name) for name in names] for cell in cells])
    return Html(
        "_grid.html.j2" if request.part == "grid" else "grid.html.j2",
        {
            "run": summary,
            "rows": rows,
            "columns": max((len(row.cells) for row in rows), default=0),
            "count": len(matches),
            "total": len(by_task),
            "cut": cut,
            "page": page,
            "pages": pages,
            "show_words": SHOW,
            "parts_of_cells": PARTS,
            "has_expected": any(row.expected for row in rows),
            "asked": {"show": show, "task": request.text("task")},
        },
    )


def _matches(lines: Sequence[AttemptLine], show: str, disagreeing: Mapping[object, bool]) -> bool:
    verdicts = [line.verdict for line in lines]
    if show == "failed":
        return Verdict.FAILED in verdicts
    if show == "flaky":
        return Verdict.FAILED in verdicts and Verdict.PASSED in verdicts
    if show == "truncated":
        return any(line.why == FailureCategory.TRUNCATED for line in lines)
    if show == "disagreeing":
        return any(disagreeing.get(line.place, False) for line in lines)
    return show == "all" or Verdict.MISSING in verdicts


def _disagreeing(
    state: AppState, summary: Summary, lines: Sequence[AttemptLine]
) -> dict[object, bool]:
    """Attempts that were judged more than once, with different verdicts."""
    disagreeing: dict[object, bool] = {
        line.place: True for line in lines if line.why == MissingReason.JUDGES_DISAGREE
    }
    if summary.head.judged:  # only then was anything judged a second time
        for line in lines:
            words = state.reading.judgements(summary.head.key, line.place)
            if len({word.verdict for word in words}) > 1:
                disagreeing[line.place] = True
    return disagreeing


def _row(
    state: AppState,
    summary: Summary,
    task: str,
    lines: Sequence[AttemptLine],
    disagreeing: Mapping[object, bool],
) -> GridRow:
    return GridRow(
        task,
        sum(line.verdict is Verdict.PASSED for line in lines),
        sum(line.verdict is not Verdict.MISSING for line in lines),
        tuple(
            _cell(state, summary, line, is_disagreeing=disagreeing.get(line.place, False))
            for line in lines[:_MOST_COLUMNS]
        ),
        max(0, len(lines) - _MOST_COLUMNS),
    )


def _cell(state: AppState, summary: Summary, line: AttemptLine, *, is_disagreeing: bool) -> Cell:
    """An attempt with the answer that was judged, or the agent's last text, beside the expected."""
    transcript = state.reading.transcript(summary.head.key, line.place)
    answers = find_answers(transcript)
    got = answers.got
    if not answers.expected and not answers.is_taken:
        got = last_words(turns_of(transcript))
    return Cell(
        line.task,
        line.number,
        str(line.verdict),
        line.why,
        _shorten(got) or _shorten(line.detail),
        is_disagreeing,
        _shorten(answers.expected),
        _shorten(_cause(line, answers)),
        line.cost,
        line.seconds,
    )


def _cause(line: AttemptLine, answers: Answers) -> str:
    """Where the answer differs from the expected one; the judge's words where none is known."""
    if line.verdict is Verdict.PASSED:
        return ""
    return "; ".join(answers.differences[:2]) if answers.expected else line.detail


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _ANSWER else f"{text[: _ANSWER - 1]}…"


def override(
    state: AppState, store: str, path: Mapping[str, object], fields: Mapping[str, str]
) -> str:
    """Store a person's verdict on an attempt with its reason; return the id of the run."""
    summary, _, place = state.find_attempt(path)
    reason = fields.get("reason", "").strip()
    verdict = {"passed": Verdict.PASSED, "failed": Verdict.FAILED}.get(fields.get("verdict", ""))
    if verdict is None:
        raise InvalidValue("the verdict must be passed or failed.")
    if not reason:
        raise InvalidValue("a verdict needs a reason.", hint="Say what the judge got wrong.")
    why = ""
    if verdict is Verdict.FAILED:
        why = fields.get("category", "") or str(FailureCategory.WRONG_ANSWER)
        if why not in list(FailureCategory):
            raise InvalidValue(f"{why!r} is not a failure category.")
    judgement = StoredJudgement(verdict, why, reason, JudgementSource.HUMAN)
    with open_store(store, must_exist=True) as writable:
        writable.add_judgement(summary.id, *place, judgement)
    return summary.id
