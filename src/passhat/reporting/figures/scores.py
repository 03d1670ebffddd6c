"""Figures of scores: the band between worst and best of k, and the verdict over its threshold."""

from __future__ import annotations

from collections.abc import Sequence

from passhat._display import number, percent
from passhat.reporting.figures.base import MOST_RUNS, Figure, estimate_tip, labels_of, paired_row
from passhat.reporting.figures.lines import Panel, Scale, k_scale, panel
from passhat.reporting.figures.vega_lite import Row, stack
from passhat.reporting.measures import ScoreFacts
from passhat.reporting.view import RunReport
from passhat.stats.estimate import Estimate

_SCORE = Scale("score", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".2~f")
_SHARE = Scale("share of tasks", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".0%")
_CUT = Scale("a score passes from", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".2~f")
_TALL, _LOW = 240, 165


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
