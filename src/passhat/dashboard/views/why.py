"""Events that go with failure in a run, and the tree of tool calls of one of its tasks."""

from __future__ import annotations

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import address
from passhat.dashboard.run_snapshots import READ_ONE_BY_ONE
from passhat.errors import InvalidValue
from passhat.reporting.document import Level, NextStep
from passhat.reporting.documents.why import why_document
from passhat.reporting.html.blocks import render_blocks
from passhat.reporting.why import build_why

__all__ = ["why"]

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
        section.name: render_blocks(
            [
                block
                for block in section.blocks
                if Level.FULL in block.level and not isinstance(block, NextStep)
            ],
            "stack",
        )
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
