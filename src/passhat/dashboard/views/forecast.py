"""Forecasts at a k beyond the attempts that were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup
from starlette.datastructures import QueryParams

from passhat._display import number
from passhat._serialize import to_data
from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import render_parts
from passhat.dashboard.svg_charts import Plot, Point, Series, draw
from passhat.errors import PasshatError
from passhat.reporting.document import Heading, Level, Note
from passhat.reporting.documents.forecast import (
    default_words,
    forecast_data,
    forecast_document,
    plan_document,
)
from passhat.reporting.html.blocks import render_blocks
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.forecast import Forecast, forecast_all, forecast_curve, keeps, reaches
from passhat.stats.outcomes import Run
from passhat.stats.plan import Plan, plan_tasks

_OFFERED = 200
_FIELDS = (
    *("run", "against", "goal", "target", "metric", "power", "level"),
    *("mean", "icc", "correlation", "attempts"),
)


def plan_page(state: AppState, request: PageRequest) -> Answer:
    """A plan from a pilot, or from stated assumptions."""
    pilots = state.attempted_runs(_OFFERED)
    if not request.query and request.form == "html":  # opened from the menu: the newest run
        usable = [run.id for run in pilots if not run.is_all_missing and run.head.planned > 1]
        request = replace(request, query=QueryParams([("run", run) for run in usable[:1]]))
    context: dict[str, object] = {
        "offered": pilots,
        "asked": {name: request.text(name) for name in _FIELDS},
        "plan": None,
        "trouble": "",
        "hint": "",
    }
    has_input = bool(request.text("run") or request.text("mean"))
    if not has_input and request.form == "html":
        return Html("plan.html.j2", context)
    try:
        result = _plan(state, request)
    except PasshatError as error:
        if request.form != "html":
            raise
        return Html("plan.html.j2", context | {"trouble": error.message, "hint": error.hint or ""})
    if request.form == "json":
        return Json(result)
    if request.form == "csv":
        return Csv.of_dicts(to_data(result.rows))
    blocks = list(plan_document(result).blocks(Level.SHORT))
    parts = {"lead": render_blocks(blocks[:1]), "rest": render_blocks(blocks[1:], "stack")}
    return Html("plan.html.j2", context | {"plan": result} | parts)


def _plan(state: AppState, request: PageRequest) -> Plan:
    def run_of(name: str) -> object:
        word = request.text(name)
        return state.snapshots.run(state.summaries.find(word)) if word else None

    goal = request.choice("goal", ("half-width", "detect"))
    target = request.number("target", 0.05)
    attempts = request.number("attempts")
    return plan_tasks(
        run_of("run"),
        metric=request.text("metric") or "pass^1",
        detect=target if goal == "detect" else None,
        half_width=target if goal == "half-width" else None,
        power=request.number("power", 0.8) or 0.8,
        level=request.number("level", 0.95) or 0.95,
        against=run_of("against"),
        mean=request.number("mean"),
        icc=request.number("icc"),
        correlation=request.number("correlation", 0.75) or 0.75,
        attempts=None if attempts is None else int(attempts),
    )


_USERS = 10_000


def forecast(state: AppState, request: PageRequest) -> Answer:
    """Bands for any k, and which k reaches a target."""
    pilots = state.attempted_runs(_OFFERED)
    words = [word for text in request.texts("metric") for word in text.replace(",", " ").split()]
    context: dict[str, object] = {
        "offered": pilots,
        "chosen": None,
        "asked": {name: request.text(name) for name in ("reach", "keep", "users")},
        "words": words,
        "parts_of": None,
        "trouble": "",
        "hint": "",
        "plot": "",
    }
    word = request.text("run")
    if not word and not request.query and request.form == "html":
        # Opened from the menu: the newest run.
        word = next((summary.id for summary in pilots if not summary.is_all_missing), "")
    if not word:
        if request.form != "html":
            return Json({"runs": [summary.id for summary in pilots]})
        return Html("forecast.html.j2", context)
    summary = state.summaries.find(word)
    context["chosen"] = summary
    try:
        run = state.snapshots.run(summary)
        reach, keep = request.number("reach"), request.number("keep")
        # A page shows the band in any case; data have only the requested metrics.
        bare = request.form != "html" and (reach is not None or keep is not None)
        words = words or ([] if bare else list(default_words(run)))
        forecasts = forecast_all(run, words)
        inverse = [] if reach is None else [reaches(run, reach)]
        inverse += [] if keep is None else [keeps(run, keep)]
        users = request.whole("users", _USERS)
        plot = _plot(run, words) if request.form == "html" else Markup("")
    except PasshatError as error:
        if request.form != "html":
            raise
        return Html(
            "forecast.html.j2", context | {"trouble": error.message, "hint": error.hint or ""}
        )
    if request.form == "json":
        return Json(forecast_data(run, forecasts, inverse, users))
    if request.form == "csv":
        rows = [
            (str(band.metric), band.low, band.high, band.observed, band.users(users))
            for band in forecasts
        ]
        return Csv(("metric", "low", "high", "observed", "in_words"), rows)
    document = forecast_document(run, forecasts, inverse, users=users)
    parts = {
        name: render_parts(document, [name], Level.SHORT, Heading | Note, "")
        for name in ("lead", "bands", "next")
    }
    return Html(
        "forecast.html.j2",
        context | {"words": words, "parts_of": parts, "plot": plot, "run": run},
    )


def _plot(run: Run, words: Sequence[str]) -> Markup:
    """The band of every metric from k = 1 on; the points are observed values."""
    lines = []
    for place, kind in enumerate((PassHat, PassAt), 1):
        ks = [metric(word).k for word in words if isinstance(metric(word), kind)]
        if ks:
            points = [_point(band) for band in forecast_curve(run, kind(max(ks)))]
            lines.append(Series(kind(1).family, points, place))
    if not lines:
        return Markup("")
    k_values = sorted({int(point.x) for line in lines for point in line.points})
    step = max(1, -(-len(k_values) // 9))
    ends = "; ".join(line.points[-1].tip for line in lines)
    return draw(
        Plot(
            "forecast",
            "Beyond the attempts that were made",
            "Bands over k on a doubling scale: every value that some distribution of difficulty "
            f"not rejected by the data would give. Points are what was observed. {ends}.",
            lines,
            x_title="attempts k, doubling",
            ticks=[(k, f"{k:,}") for k in k_values[::step]],
            log=True,
            width=680,
        )
    )


def _point(band: Forecast) -> Point:
    observed_text = "" if band.observed is None else f" = {number(band.observed)} observed,"
    tip = f"{band.metric}{observed_text} band {band.band_text()}"
    return Point(band.metric.k, band.observed, band.low, band.high, tip)
