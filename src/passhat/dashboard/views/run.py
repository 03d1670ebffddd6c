"""A run, updated while attempts finish."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.event_stream import mark_of
from passhat.dashboard.run_snapshots import RunSnapshot
from passhat.dashboard.run_summaries import Summary
from passhat.dashboard.svg_charts import Plot, Point, Series, draw
from passhat.dashboard.views.task_table import task_list
from passhat.errors import PasshatError
from passhat.reporting.data import as_csv
from passhat.reporting.html.blocks import Card, build_cards
from passhat.reporting.measures import measures_of
from passhat.reporting.view import Report, estimate_text
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.outcomes import Verdict
from passhat.stats.outcomes.attempts import MEASURES
from passhat.store.queries import AttemptFilter, Group

_RECENT = 20
_LEVEL = 0.95


def run(state: AppState, request: PageRequest) -> Answer:
    """The run: progress, numbers, curve, outcome categories, and its tasks."""
    summary = state.summaries.find(request.path["run"])
    if request.form == "json":
        return Json(state.snapshots.data(summary))
    if request.form == "csv":
        return Csv(text=as_csv(Report((state.snapshots.whole(summary).report,))))
    # Taken first: numbers that become ready meanwhile are then announced twice, not never.
    mark = mark_of(state, summary)
    snapshot, trouble = _find_snapshot(state, summary)
    context: dict[str, object] = {"run": summary, "known": snapshot, "mark": mark}
    context["trouble"] = trouble
    if request.part != "tasks":
        context |= _live(state, summary, snapshot)
    if request.part != "live":
        context |= {
            "list": task_list(state, summary, snapshot, request),
            "protocol": snapshot.report.protocol_lines if snapshot else (),
        }
    template = {"live": "_live.html.j2", "tasks": "_tasks.html.j2"}.get(request.part, "run.html.j2")
    return Html(template, context)


def _find_snapshot(state: AppState, summary: Summary) -> tuple[RunSnapshot | None, str]:
    try:
        return state.snapshots.soon(summary), ""
    except PasshatError as error:
        return None, str(error)


def _live(state: AppState, summary: Summary, known: RunSnapshot | None) -> dict[str, object]:
    groups = known.groups if known else ()
    failed = known.report.failures.groups if known else ()
    missing = [group for group in groups if group.verdict is Verdict.MISSING]
    return {
        "cards": cards_of(known) if known else [],
        "plot": _plot(known) if known else "",
        "curve_rows": _curve_rows(known) if known else [],
        "failed": failed,
        "missing": missing,
        "most": max((*(group.count for group in failed), *(one.attempts for one in missing), 0)),
        "totals": {name: total(groups, name) for name in MEASURES},
        "lines": state.reading.newest(summary.head.key, AttemptFilter(), _RECENT),
    }


def total(groups: Sequence[Group], name: str) -> float | None:
    """Sum of a measure over all attempts; ``None`` when it was not recorded."""
    values = [value for group in groups if (value := getattr(group, name)) is not None]
    return sum(values) if values else None


def cards_of(known: RunSnapshot) -> list[Card]:
    """Cards of pass^1, of pass^k and pass@k at the largest k, and of the cost per solved task."""
    measures = {measure.name: measure for measure in measures_of(known.run.attempts, _LEVEL)}
    return list(build_cards([known.report], [""], [measures]))


def _plot(known: RunSnapshot) -> Markup:
    ks = sorted({estimate.metric.k for estimate in known.curve})
    if len(ks) < 2:
        return Markup("")
    lines = []
    for place, kind in enumerate((PassHat, PassAt), 1):
        estimates = [estimate for estimate in known.curve if isinstance(estimate.metric, kind)]
        points = [Point(e.metric.k, e.value, e.low, e.high, _tip(e)) for e in estimates]
        lines.append(Series(kind(1).family, points, place))
    step = max(1, -(-len(ks) // 10))
    return draw(
        Plot(
            "curve",
            "Capability and reliability over k",
            "pass@k, the chance that at least one of k attempts passes, rises with k; pass^k, the "
            "chance that all of them pass, falls. Shaded: the 95% interval for "
            f"{known.curve[0].population}. "
            + "; ".join(_tip(estimate) for estimate in (known.curve[len(ks) - 1], known.curve[-1])),
            lines,
            ticks=[(k, str(k)) for k in ks[::step]],
        )
    )


def _curve_rows(known: RunSnapshot) -> list[tuple[int, Estimate, Estimate]]:
    half = len(known.curve) // 2
    pairs = zip(known.curve[:half], known.curve[half:], strict=True)
    return [(hat.metric.k, hat, at) for hat, at in pairs]


def _tip(estimate: Estimate) -> str:
    return f"{estimate.metric} {estimate_text(estimate)}"
