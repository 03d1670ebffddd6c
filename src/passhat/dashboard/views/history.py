"""An agent at a suite over many runs: the trend with intervals, shown changes, run by run."""

from __future__ import annotations

from markupsafe import Markup

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import address, day
from passhat.dashboard.svg_charts import Mark, Plot, Point, Series, draw
from passhat.reporting.document import Heading, Level
from passhat.reporting.documents.history import changed_words, history_document
from passhat.reporting.history import History, HistoryRun, build_history
from passhat.reporting.html.blocks import render_blocks
from passhat.reporting.view import populations_text
from passhat.stats.estimate import Estimate, Metric, metric
from passhat.stats.outcomes import Run

_MOST_RUNS = 400
_MOST_LISTED = 60
_COLUMNS = (
    *("run", "agent", "name", "started", "metric", "value", "value_if_passed", "low", "high"),
    *("level", "missing", "changes"),
)


def history(state: AppState, request: PageRequest) -> Answer:
    """The newest runs of an agent at a suite, in the order in which they were started."""
    everything = [summary for summary in state.summaries.all() if summary.counts.attempts]
    suites = sorted({summary.head.suite for summary in everything})
    suite = request.text("suite") or (everything[0].head.suite if everything else "")
    word = metric(request.text("metric") or "pass^1")
    of_suite = [summary for summary in everything if summary.head.suite == suite]
    agents = sorted({summary.head.agent for summary in of_suite})
    agent = request.text("agent") or (of_suite[0].head.agent if of_suite else "")
    chosen = [summary for summary in of_suite if summary.head.agent == agent]
    chosen = chosen[:_MOST_RUNS][::-1]
    page = {"suite": suite, "suites": suites, "agent": agent, "agents": agents, "word": str(word)}
    if not chosen:
        empty = {"suite": suite, "agent": agent, "runs": ()}
        if request.form == "html":
            return Html("history.html.j2", page | {"facts": None})
        return Json(empty) if request.form == "json" else Csv(_COLUMNS, [])
    summaries = {summary.id: summary for summary in chosen}

    def estimate(run: Run, word: Metric) -> Estimate:
        return state.snapshots.estimate(summaries[run.id], str(word))

    runs = [state.snapshots.run(summary) for summary in chosen]
    facts = build_history(
        runs, suite=suite, agent=agent, metrics=[word], last=_MOST_LISTED, estimator=estimate
    )
    if request.form == "json":
        return Json(facts)
    if request.form == "csv":
        return _csv(facts)
    document = history_document(facts)
    blocks = [block for block in document.blocks(Level.FULL) if not isinstance(block, Heading)]
    return Html(
        "history.html.j2",
        page
        | {
            "about": populations_text(facts.values),
            "facts": facts,
            "blocks": render_blocks(blocks, "stack"),
            "plot": _plot(facts),
        },
    )


def _plot(facts: History) -> Markup:
    points = [
        Point(
            run.place,
            one.value if run.has_verdicts else None,
            *(one.low, one.high, _tip(run, one), address("runs", run.run.id)),
        )
        for run in facts.runs
        for one in run.estimates[:1]
    ]
    first = facts.runs[0].place
    marks = [
        Mark(run.place - 0.5, f"{day(run.run.started)}: {'; '.join(changed_words(run))}")
        for run in facts.runs
        if run.place > first and changed_words(run)
    ]
    shown = [
        Mark(entry.since.place - 0.5, f"{day(entry.since.run.started)}: {entry.verdict}")
        for entry in facts.changes
    ]
    step = max(1, -(-len(facts.runs) // 6))
    visible, changes = (
        [mark for mark in some if points and points[0].x <= mark.x <= points[-1].x]
        for some in (marks, shown)
    )
    values = facts.values
    word = str(values[0].metric) if values else "pass^1"
    return draw(
        Plot(
            "trend",
            f"{word} of {facts.suite} over {len(points)} runs",
            f"Points are runs in the order in which they were started, bars their 95% intervals "
            f"for {populations_text(values)}; {len(visible)} vertical lines mark where suite or "
            f"protocol changed, {len(changes)} where a change is shown.",
            [Series(facts.agent, points, 1, bars=True)] if points else [],
            x_title="runs, in order of their start",
            ticks=_ticks(facts.runs[::step]),
            marks=[*visible, *changes],
            width=680,
        )
    )


def _ticks(runs: tuple[HistoryRun, ...]) -> list[tuple[float, str]]:
    """Days; where all runs are of one day, hours and minutes."""
    stamps = [(run.place, day(run.run.started)) for run in runs]
    one_day = len({stamp[:10] for _, stamp in stamps}) == 1
    return [(place, stamp[11:] if one_day else stamp[5:10]) for place, stamp in stamps]


def _tip(run: HistoryRun, value: Estimate) -> str:
    return (
        f"{run.run.name} {run.run.id}, {day(run.run.started)}: {value.metric} = "
        f"{value.value_text()} {value.interval_text()}"
    )


def _csv(facts: History) -> Csv:
    rows = []
    for run in facts.runs:
        numbers: tuple[object, ...] = ("",) * 6
        for one in run.estimates[:1]:
            if_passed = one.value if one.value_if_passed is None else one.value_if_passed
            numbers = (str(one.metric), one.value, if_passed, one.low, one.high, one.level)
        head = (run.run.id, run.run.agent, run.run.name, run.run.started)
        missing = run.run.outcomes.total_missing
        rows.append((*head, *numbers, missing, "; ".join(changed_words(run))))
    return Csv(_COLUMNS, rows)
