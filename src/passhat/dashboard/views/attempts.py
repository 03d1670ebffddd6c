"""Attempts of a run line by line, one with its conversation, and what goes with failure."""

from __future__ import annotations

import json

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import address, pretty, render_parts, turns_of
from passhat.dashboard.run_snapshots import READ_ONE_BY_ONE
from passhat.dashboard.run_summaries import Summary
from passhat.errors import InvalidValue, PasshatError
from passhat.reporting.answers import Answers, Work, drop_answers, find_answers, find_work
from passhat.reporting.document import NextStep
from passhat.reporting.documents.why import why_document
from passhat.reporting.run_summary import call_facts
from passhat.reporting.why import build_why
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store.queries import AttemptFilter, AttemptLine, Reading

SCHEMA = "passhat.attempts/1"
VERDICTS = {
    "": None,
    "passed": Verdict.PASSED,
    "failed": Verdict.FAILED,
    "missing": Verdict.MISSING,
}
ORDERS = ("newest", "suite")
_PAGE, _MOST_ROWS = 100, 10_000


def attempts(state: AppState, request: PageRequest) -> Answer:
    """The attempts of a run, a page at a time; ``after`` is where the page starts."""
    summary = state.summaries.find(request.path["run"])
    verdict, order = request.choice("verdict", [*VERDICTS]), request.choice("order", ORDERS)
    choice = AttemptFilter(VERDICTS[verdict], request.text("why"))
    size = min(request.whole("size", _PAGE), _MOST_ROWS)
    page = _find_lines(state.reading, summary, choice, order, size + 1, request.text("after"))
    lines, has_more = page[:size], len(page) > size
    after = _after(lines[-1], order) if has_more else ""
    if request.form == "json":
        data = {"schema": SCHEMA, "run": summary.id, "attempts": lines}
        return Json(data | {"after": after or None})
    if request.form == "csv":
        return Csv.of_dicts([line.to_dict() for line in lines], "task")
    more = ""
    filters = {"verdict": verdict, "why": request.text("why"), "order": order}
    if has_more:
        more = address("runs", summary.id, "attempts", **filters, after=after)
    return Html(
        "_attempts.html.j2" if request.part == "list" else "attempts.html.j2",
        {
            "run": summary,
            "lines": lines,
            "asked": filters,
            "next": more,
            "words": _words(state, summary),
            "verdicts": [word for word in VERDICTS if word],
        },
    )


def _words(state: AppState, summary: Summary) -> list[str]:
    """Categories and reasons to choose from, where they are counted already."""
    try:
        snapshot = state.snapshots.soon(summary)
    except PasshatError:
        snapshot = None
    return sorted({group.why for group in snapshot.groups if group.why}) if snapshot else []


def _find_lines(
    reading: Reading, summary: Summary, choice: AttemptFilter, order: str, size: int, after: str
) -> list[AttemptLine]:
    when, _, place = after.rpartition("~")
    task, _, number = place.partition(".")
    if after and not (task.isdigit() and number.isdigit()):
        raise InvalidValue(
            f"after={after!r} is not a place in this list; leave it out to start at the top."
        )
    key = summary.head.key
    if order == "suite":
        return reading.lines(key, choice, size, (int(task), int(number)) if after else None)
    return reading.newest(key, choice, size, (when, int(task), int(number)) if after else None)


def _after(line: AttemptLine, order: str) -> str:
    place = f"{line.place[0]}.{line.place[1]}"
    return f"{line.finished}~{place}" if order == "newest" else place


def attempt(state: AppState, request: PageRequest) -> Answer:
    """A single attempt: how it ended, why, every turn, and links to its neighbors."""
    summary, line, _ = state.find_attempt(request.path)
    run = summary.head.key
    transcript = state.reading.transcript(run, line.place)
    turns = turns_of(drop_answers(transcript, with_work=True))
    answers = find_answers(transcript)
    data = {"schema": "passhat.attempt/1", "run": summary.id, **line.to_dict()}
    if request.form == "json":
        entries = [dict(entry) for entry in transcript]
        return Json(data | answers.to_dict() | {"transcript": entries})
    if request.form == "csv":
        rows = [(turn.number, turn.kind, turn.who, turn.text) for turn in turns]
        return Csv(("turn", "kind", "who", "text"), rows)
    only = request.choice("verdict", [*VERDICTS])
    choice = AttemptFilter(VERDICTS[only])
    before, after = (
        state.reading.neighbor(run, choice, line.place, before=before) for before in (True, False)
    )
    marks = state.reading.marks(run, [line.place[0]]).get(line.place[0], [])
    ends = {Verdict.PASSED, Verdict.FAILED}
    others = (number for number, verdict in marks if {verdict, line.verdict} == ends)
    other = next(others, None)
    work = find_work(transcript)
    other_work = Work()
    if other is not None and work.diff:
        other_work = find_work(state.reading.transcript(run, (line.place[0], other)))
    return Html(
        "attempt.html.j2",
        {
            "run": summary,
            "line": line,
            "work": work,
            "other": other,
            "other_work": other_work,
            "turns": turns,
            "answers": Answers(
                pretty(answers.expected), pretty(answers.got), is_taken=answers.is_taken
            ),
            "differences": () if line.verdict is Verdict.PASSED else answers.differences,
            "only": only,
            "categories": [str(category) for category in FailureCategory],
            "words": state.reading.judgements(run, line.place),
            "marks": marks[:_PAGE],
            "previous": _link(summary, before, only),
            "next": _link(summary, after, only),
        },
    )


def calls(state: AppState, request: PageRequest) -> Answer:
    """The calls to models and tools of an attempt; the page fetches them when they are opened."""
    summary, line, _ = state.find_attempt(request.path)
    records = state.reading.calls(summary.head.key, line.place)
    if request.form == "json":
        return Json({"schema": "passhat.calls/1", "run": summary.id, "calls": records})
    if request.form == "csv":
        columns = ("name", "role", "model", "stop", "input_tokens", "output_tokens", "cost")
        rows = [[call.get(name, "agent" if name == "role" else None) for name in columns]
                for call in records]  # fmt: skip
        return Csv(columns, rows)
    call_rows = [
        {
            "facts": ", ".join(call_facts(call)),
            "problems": [f"retried after {cause}" for cause in call.get("retries", ())]
            + ([f"error: {call['error']}"] if call.get("error") else []),
            "bodies": [
                (name, json.dumps(call[name], indent=2, ensure_ascii=False))
                for name in ("request", "reply")
                if call.get(name) is not None
            ],
        }
        for call in records
    ]
    return Html("_calls.html.j2", {"calls": call_rows})


def _link(summary: Summary, line: AttemptLine | None, only: str) -> str:
    if line is None:
        return ""
    return address("runs", summary.id, "attempt", line.task, line.number, verdict=only)


_MOST_TASKS = 60


def why(state: AppState, request: PageRequest) -> Answer:
    """The events over all tasks, then the chosen task, and the other tasks to choose from."""
    summary = state.summaries.find(request.path["run"])
    if summary.counts.attempts > READ_ONE_BY_ONE:
        raise InvalidValue(
            f"run {summary.id} has more than {READ_ONE_BY_ONE:,} attempts, too many for this page.",
            hint=f"On the command line: passhat why {state.reading.path} --run {summary.id}",
        )
    task = request.text("task") or None
    run = state.snapshots.run(summary)
    facts = build_why(run, task, attempts=state.snapshots.traces(summary))
    if request.form == "json":
        return Json(facts)
    if request.form == "csv":
        header = ("event", "tasks", "attempts", "failed", "others", "others_failed", "odds_ratio",
                  "low", "high", "p_value", "p_holm")  # fmt: skip
        rows = [
            [finding.event.text, *(getattr(finding, name) for name in header[1:])]
            for finding in facts.events
        ]
        return Csv(header, rows)
    chosen = facts.task.task if facts.task is not None else ""
    document = why_document(
        facts,
        subject=summary.id,
        link=lambda number: address("runs", summary.id, "attempt", chosen, number),
    )
    parts = {
        section.name: render_parts(document, [section.name], without=NextStep)
        for section in document.sections
    }
    return Html(
        "why.html.j2",
        {
            "run": summary,
            "facts": facts,
            "chosen": chosen,
            "events": parts["events"],
            "task_part": parts.get("task", ""),
            "mixed": facts.mixed[:_MOST_TASKS],
            "left_out": max(0, len(facts.mixed) - _MOST_TASKS),
        },
    )
