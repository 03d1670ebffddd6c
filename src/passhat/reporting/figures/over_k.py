"""Figures over k: capability and reliability, delta^k, the forecast, the lift, and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from passhat._display import number, percent
from passhat.reporting.details import Curves
from passhat.reporting.figures.base import MOST_RUNS, Figure, estimate_tip, labels_of, paired_row
from passhat.reporting.figures.lines import Panel, Scale, k_scale, panel
from passhat.reporting.figures.vega_lite import Row, Spec, stack
from passhat.reporting.measures import ScoreFacts
from passhat.reporting.view import RunReport, populations_text
from passhat.stats.compare import LiftCurve
from passhat.stats.compare.claims import points
from passhat.stats.estimate import Estimate
from passhat.stats.forecast import Forecast

_SHARE = Scale("share of tasks", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".0%")
_TALL, _LOW = 240, 165
_SCORE = Scale("score", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".2~f")
_CUT = Scale("a score passes from", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".2~f")
_ASKS = {"pass^k": "pass^k, all of k attempts pass", "pass@k": "pass@k, at least one of k passes"}

P = TypeVar("P")
Pick = Callable[[Curves], Sequence[Estimate]]


def _curves_by_label(runs: Sequence[RunReport]) -> list[tuple[str, Curves]]:
    """The runs that are drawn, by their labels; six at most."""
    return [
        (label, run.details.curves)
        for label, run in zip(labels_of(runs), runs, strict=True)
        if run.details is not None
    ][:MOST_RUNS]


def _two_families(
    labelled_curves: Sequence[tuple[str, Curves]],
    picks: Mapping[str, Callable[[Curves], Sequence[P]]],
    make_row: Callable[[P, str, str], Row],
) -> Spec:
    """Both families in one panel, or, with several runs, a panel for each."""
    several = len(labelled_curves) > 1
    rows = {
        family: [
            make_row(point, label if several else family, label if several else "")
            for label, curve in labelled_curves
            for point in pick(curve)
        ]
        for family, pick in picks.items()
    }
    if not several:
        # Reliability first: it keeps the first color wherever it is drawn.
        both = [*rows["pass^k"], *rows["pass@k"]]
        return panel(Panel(both, ["pass^k", "pass@k"], _scale_of(both), _SHARE, height=_TALL))
    labels = [label for label, _ in labelled_curves]
    return stack(
        [
            panel(Panel(part, labels, _scale_of(part), _SHARE, title=_ASKS[family], height=_LOW))
            for family, part in rows.items()
        ]
    )


def curves(runs: Sequence[RunReport]) -> Figure | None:
    """pass@k and pass^k over k with their intervals."""
    labelled_curves = [
        (label, curve) for label, curve in _curves_by_label(runs) if len(curve.pass_hat) > 1
    ]
    if not labelled_curves:
        return None
    families: dict[str, Pick] = {"pass@k": lambda c: c.pass_at, "pass^k": lambda c: c.pass_hat}
    several = len(labelled_curves) > 1
    return Figure(
        "curves",
        "Capability and reliability over k",
        " ".join(
            _curve_sentence(label if several else "", curve) for label, curve in labelled_curves
        ),
        "Lines over the number of attempts k. pass@k, the chance that at least one of k attempts "
        "passes, rises with k; pass^k, the chance that all of them pass, falls. Shaded: the "
        f"interval for {populations_text(curve.pass_at[0] for _, curve in labelled_curves)}. "
        + "; ".join(
            f"{estimate_tip(curve.pass_at[-1], label)}, {estimate_tip(curve.pass_hat[-1])}"
            for label, curve in labelled_curves
        )
        + ".",
        _two_families(labelled_curves, families, _point),
        ("run", "k", "pass^k", "interval", "pass@k", "interval"),
        tuple(
            paired_row(label, hat, at)
            for label, curve in labelled_curves
            for hat, at in zip(curve.pass_hat, curve.pass_at, strict=True)
        ),
    )


def _curve_sentence(label: str, own: Curves) -> str:
    hat, at = own.pass_hat[-1], own.pass_at[-1]
    who = f"{label}: at" if label else "At"
    return (
        f"{who} k = {hat.metric.k} at least one attempt passes on {percent(at.value)} of tasks, "
        f"and all of them on {percent(hat.value)}."
    )


def _point(estimate: Estimate, series: str, label: str) -> Row:
    return {
        "x": estimate.metric.k,
        "series": series,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tip": estimate_tip(estimate, label),
    }


def delta(runs: Sequence[RunReport]) -> Figure | None:
    """delta^k, the gain in pass^k from uneven difficulty, under its upper bound."""
    labelled_curves = [
        (label, curve)
        for label, curve in _curves_by_label(runs)
        # A single task has no uneven difficulty, and no interval for it.
        if len(curve.delta) > 1 and curve.delta[0].low is not None
    ]
    if not labelled_curves:
        return None
    several = len(labelled_curves) > 1
    rows = [
        _point(estimate, label if several else "delta^k", label if several else "")
        for label, curve in labelled_curves
        for estimate in curve.delta
    ]
    ceiling: list[Row] = []
    if not several:
        ceiling = [
            {
                "x": estimate.metric.k,
                "series": "at most",
                "value": estimate.bounds[1],
                "tip": f"{estimate.metric} is at most {number(estimate.bounds[1])}",
            }
            for estimate in labelled_curves[0][1].delta
            if estimate.bounds
        ]
    series = [label for label, _ in labelled_curves] if several else ["delta^k", "at most"]
    lowest = min(0.0, *(float(str(row["low"])) for row in rows if row["low"] is not None))
    top = max(float(str(row["high"] or row["value"])) for row in rows)
    top = max([top, *(float(str(row["value"])) for row in ceiling)])
    y = Scale("delta^k", lowest, top * 1.06 + 0.01, form=".2~f")
    last = {label: curve.delta[-1] for label, curve in labelled_curves}
    return Figure(
        "delta",
        "What uneven difficulty adds to pass^k",
        " ".join(
            f"{f'{label}: a' if several else 'A'}ll {estimate.metric.k} attempts pass "
            f"{points(abs(estimate.value), signed=False)} points "
            f"{'more' if estimate.value >= 0 else 'less'} often than "
            f"{estimate.metric.k} independent tries at the average rate would."
            for label, estimate in last.items()
        ),
        "Lines of delta^k, pass^k minus the k-th power of pass^1, over k. It is 0 when all tasks "
        "are equally hard and at most mu - mu^k. "
        + "; ".join(estimate_tip(estimate, label) for label, estimate in last.items())
        + ".",
        panel(Panel([*rows, *ceiling], series, _scale_of(rows), y, height=_TALL)),
        ("run", "k", "delta^k", "interval", "at most"),
        tuple(
            (
                label,
                str(estimate.metric.k),
                number(estimate.value),
                estimate.interval_text(),
                number(estimate.bounds[1] if estimate.bounds else None),
            )
            for label, curve in labelled_curves
            for estimate in curve.delta
        ),
    )


def forecast(runs: Sequence[RunReport]) -> Figure | None:
    """The band beyond n, and the observed values up to n."""
    labelled_curves = [
        (label, curve)
        for label, curve in _curves_by_label(runs)
        if curve.forecast_at and curve.forecast_hat
    ]
    if not labelled_curves:
        return None
    several = len(labelled_curves) > 1
    picks: dict[str, Callable[[Curves], Sequence[Forecast]]] = {
        "pass@k": lambda curve: curve.forecast_at,
        "pass^k": lambda curve: curve.forecast_hat,
    }
    ends = [
        (label, curve.forecast_at[-1], curve.forecast_hat[-1]) for label, curve in labelled_curves
    ]
    return Figure(
        "forecast",
        "Beyond the attempts that were made",
        " ".join(
            f"{f'{label}: {at.metric}' if several else at.metric} lies between "
            f"{percent(at.low)} and {percent(at.high)}, {hat.metric} between "
            f"{percent(hat.low)} and {percent(hat.high)}, whatever the shape of the difficulty."
            for label, at, hat in ends
        ),
        "Bands over k on a doubling scale: every value that some distribution of difficulty not "
        "rejected by the data would give. Points are what was observed, up to the attempts that "
        "were made. " + "; ".join(f"{label}: {at}; {hat}" for label, at, hat in ends) + ".",
        _two_families(labelled_curves, picks, _band),
        ("run", "metric", "band", "observed"),
        tuple(
            (label, str(band.metric), band.band_text(), number(band.observed))
            for label, curve in labelled_curves
            for band in (*curve.forecast_at, *curve.forecast_hat)
        ),
    )


def _scale_of(rows: Sequence[Row]) -> Scale:
    return k_scale([int(str(row["x"])) for row in rows])


def _band(band: Forecast, series: str, label: str) -> Row:
    observed_text = "" if band.observed is None else f" = {number(band.observed)} observed,"
    words = f"{band.metric}{observed_text} band {band.band_text()}"
    return {
        "x": band.metric.k,
        "series": series,
        "value": band.observed,
        "low": band.low,
        "high": band.high,
        "tip": f"{label}: {words}" if label else words,
    }


def lift(curves: Sequence[LiftCurve], names: tuple[str, str]) -> Figure | None:
    """The lift of B over A at every k, with a band that holds for all of them at once."""
    if not curves:
        return None
    rows: list[Row] = [
        {
            "x": point.k,
            "series": curve.family,
            "value": 100 * point.lift,
            "low": 100 * point.low,
            "high": 100 * point.high,
            "tip": f"{curve.family} at k = {point.k}: {points(point.lift)} points, band "
            f"{points(point.low)} to {points(point.high)}",
        }
        for curve in curves
        for point in curve.points
    ]
    ends = [float(str(row[end])) for row in rows for end in ("low", "high")]
    y = Scale("lift in points", min(0.0, *ends) - 2, max(0.0, *ends) + 2, form="+d")
    flips = [str(flip) for curve in curves for flip in curve.flips]
    families = [curve.family for curve in curves]
    return Figure(
        "lift",
        "The lift over k",
        " ".join(flips) or "; ".join(map(str, curves)).capitalize() + ": the same agent leads.",
        f"Lines of the lift of {names[1]} over {names[0]} over k with a band that holds for every "
        "k at once. " + " ".join(map(str, curves)) + ".",
        panel(Panel(rows, families, _scale_of(rows), y, zero=True, height=_TALL)),
        ("family", "k", "lift", "band"),
        tuple(
            (
                curve.family,
                str(point.k),
                points(point.lift),
                f"{points(point.low)} to {points(point.high)}",
            )
            for curve in curves
            for point in curve.points
        ),
    )


def _runs_with_scores(runs: Sequence[RunReport]) -> list[tuple[str, ScoreFacts]]:
    pairs = zip(labels_of(runs), (run.sections.get("scores") for run in runs), strict=True)
    return [(label, facts) for label, facts in pairs if isinstance(facts, ScoreFacts)][:MOST_RUNS]


def scores(runs: Sequence[RunReport]) -> Figure | None:
    """The expected worst and best score of k attempts over k, and the band between them."""
    graded_runs = [(label, facts) for label, facts in _runs_with_scores(runs) if facts.worst]
    if not graded_runs:
        return None
    several = len(graded_runs) > 1
    panels = []
    for label, facts in graded_runs:
        rows = [
            {**_row(point, name), "low": worst.value, "high": best.value}
            for worst, best in zip(facts.worst, facts.best, strict=True)
            for name, point in (("worst@k", worst), ("best@k", best))
        ]
        scale = k_scale([point.metric.k for point in facts.worst])
        title, height = (label, _LOW) if several else ("", _TALL)
        series = ["worst@k", "best@k"]
        panels.append(panel(Panel(rows, series, scale, _SCORE, title=title, height=height)))
    return Figure(
        "scores",
        "Worst and best of k attempts by score",
        " ".join(_sentence(label if several else "", facts) for label, facts in graded_runs),
        "Two lines over the number of attempts k: the score of the worst of k attempts, which "
        "falls with k, and that of the best, which rises. Shaded: the band between them.",
        stack(panels) if several else panels[0],
        ("run", "k", "worst@k", "interval", "best@k", "interval"),
        tuple(
            paired_row(label, worst, best)
            for label, facts in graded_runs
            for worst, best in zip(facts.worst, facts.best, strict=True)
        ),
    )


def _sentence(label: str, facts: ScoreFacts) -> str:
    worst, best = facts.worst[-1], facts.best[-1]
    who = f"{label}: of" if label else "Of"
    return (
        f"{who} {facts.k} attempts at a task the worst scores {number(worst.value)} on average, "
        f"the best {number(best.value)}."
    )


def _row(estimate: Estimate, series: str) -> Row:
    tip = estimate_tip(estimate)
    return {"x": estimate.metric.k, "series": series, "value": estimate.value, "tip": tip}


def thresholds(runs: Sequence[RunReport]) -> Figure | None:
    """pass^1 and pass^k over the score from which an attempt passes."""
    graded_runs = [
        (label, facts) for label, facts in _runs_with_scores(runs) if len(facts.cuts) > 1
    ]
    if not graded_runs:
        return None
    several = len(graded_runs) > 1
    rows: list[Row] = []
    for label, facts in graded_runs:
        for cut in facts.cuts:
            kinds = [("pass^1", cut.pass_one), (f"pass^{facts.k}", cut.pass_all)]
            for name, value in kinds[: 1 if several or facts.k == 1 else 2]:
                tip = f"{name} = {number(value)} if {cut.threshold:g} or more passes"
                line = label if several else name
                rows.append({"x": cut.threshold, "series": line, "value": value, "tip": tip})
    series = list(dict.fromkeys(str(row["series"]) for row in rows))
    return Figure(
        "thresholds",
        "The verdict over its threshold",
        " ".join(
            f"{f'{label}: ' if several else ''}{percent(facts.judged.pass_one)} of single attempts "
            f"pass as judged; {facts.sensitivity}."
            for label, facts in graded_runs
        ),
        "Lines over the score from which an attempt counts as passed: the lower the threshold, the "
        "more attempts pass.",
        panel(Panel(rows, series, _CUT, _SHARE, height=_TALL)),
        ("run", "passes from", "pass^1", "pass^k"),
        tuple(
            (label, f"{cut.threshold:g}", number(cut.pass_one), number(cut.pass_all))
            for label, facts in graded_runs
            for cut in facts.cuts
        ),
    )
