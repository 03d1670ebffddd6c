"""The history of an agent: its trend as a chart, and its newest value as a badge."""

from __future__ import annotations

from html import escape

from passhat._display import number, percent_interval
from passhat.reporting.figures.base import WIDTH, Figure
from passhat.reporting.figures.lines import Panel, Scale, panel
from passhat.reporting.figures.vega_lite import Row
from passhat.reporting.history import History

_HEIGHT = 20
_CHARACTER = 6.6
"""The width of a character of 11 pixels in the badge's fonts, about."""
_PADDING = 10


def trend_figure(history: History) -> Figure:
    """The metrics of every run in the order of time, with a line where a change began."""
    words = list(dict.fromkeys(str(one.metric) for run in history.runs for one in run.estimates))
    rows: list[Row] = [
        {
            "x": run.place + 1,
            "series": str(one.metric),
            "value": one.value if run.has_verdicts else None,
            "low": one.low,
            "high": one.high,
            "tip": f"{run.title}: {one}",
        }
        for run in history.runs
        for one in run.estimates
    ]
    first, last = history.runs[0].place + 1, history.runs[-1].place + 1
    title = f"{history.agent} at {history.suite}" if history.suite else history.agent
    starts = [change.since.place + 1 for change in history.changes]
    chart = panel(
        Panel(
            rows,
            words,
            Scale("run, the newest on the right", first - 0.5, last + 0.5, form="d"),
            Scale("", 0.0, 1.0, form=".0%"),
            marks_at={words[0]: starts[-1]} if starts and words else None,
            width=2 * WIDTH,
        )
    )
    sentence = "No change is shown."
    if starts:
        sentence = f"A change is shown since run {', '.join(map(str, starts))}."
    return Figure(
        "history",
        title,
        sentence,
        f"{' and '.join(words)} of {len(history.runs)} runs with intervals. {sentence}",
        chart,
        ("run", "started", "metric", "value", "low", "high"),
        tuple(
            (str(run.place + 1), run.run.started, str(one.metric), one.value_text(),
             number(one.low), number(one.high))
            for run in history.runs
            for one in run.estimates
        ),
    )  # fmt: skip


def badge_svg(history: History) -> str:
    """The newest value with its interval, as a badge of two parts."""
    values = [(run, run.estimates[0]) for run in history.runs if run.estimates]
    label, text, color, about = "pass^1", "no value", "#59636e", ""
    if values:
        run, newest = values[-1]
        label, about = str(newest.metric), f"{history.agent} at {history.suite}, {run.title}, "
        ends = dict.fromkeys(f"{100 * end:.0f}" for end in newest.value_ends)
        interval = percent_interval(newest.low, newest.high)
        text, color = "no verdict", "#59636e"
        if run.has_verdicts:
            text, color = f"{' to '.join(ends)}% ({interval})", "#0072B2"
        if history.changes and history.changes[-1].change.direction != "rise":
            text, color = f"{text}, {history.changes[-1].verdict}", "#D55E00"
    left, right = (round(len(part) * _CHARACTER) + 2 * _PADDING for part in (label, text))
    whole = left + right
    title = escape(f"{about}{label}: {text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{whole}" height="{_HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{_HEIGHT}" fill="#1b1f24"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{color}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11"><text x="{left / 2:g}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
    )
