"""Parts of pages that the report page and the dashboard share: blocks as HTML, and cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from passhat._display import counted, figure
from passhat.reporting.document import (
    Bar,
    Block,
    Facts,
    Finding,
    Heading,
    Listing,
    Mark,
    NextStep,
    Note,
    Outline,
    OutlineItem,
    Properties,
    Section,
    Sentence,
    Table,
)
from passhat.reporting.figures.agents import headline_words
from passhat.reporting.measures import Measure
from passhat.reporting.view import RunReport, card_interval, card_value
from passhat.stats.estimate import Estimate, metric
from passhat.stats.estimate.metrics import PassAt

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_ITEMS = 20
_WIDTH, _HEIGHT, _EDGE = 480, 46, 34
_CLASSES = {"lead": "claim", "plain": "more", "warning": "more warning"}


def template_environment(
    package: str, folder: str, finalize: Callable[[Any], Any] | None = None
) -> Environment:
    """Templates that escape their values and fail on an undefined name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def render_blocks(blocks: Iterable[Block], table_class: str = "") -> Markup:
    """Lay out blocks one below the other; figures are drawn by the pages themselves."""
    return Markup("\n").join(_render(block, table_class) for block in blocks)


def render_sections(sections: Iterable[Section], inner: str = "", *, fold: bool = False) -> Markup:
    """Lay out sections, those about the same run together under its name.

    ``inner`` is a class for what is below the name; ``fold`` puts lists of facts behind a click.
    """
    parts = []
    for subject, group in groupby(sections, lambda section: section.subject):
        title = Markup("<h3>{}</h3>").format(subject) if subject else ""
        blocks = [block for section in group for block in section.blocks]
        visible = [block for block in blocks if not (fold and isinstance(block, Facts))]
        body = Markup('<div class="{}">{}</div>').format(inner, render_blocks(visible))
        if len(visible) < len(blocks):
            facts = render_blocks(block for block in blocks if isinstance(block, Facts))
            summary = "Notes, reading and methods"
            body += Markup("<details><summary>{}</summary>{}</details>").format(summary, facts)
        kind = "run" if fold else "part"
        parts.append(Markup('<div class="{}">{}\n{}</div>').format(kind, title, body))
    return Markup("\n").join(parts)


def _render(block: Block, table_class: str) -> Markup:
    if isinstance(block, Heading):
        detail = Markup(' <span class="small">{}</span>').format(block.detail)
        return Markup("<h3>{}{}</h3>").format(block.text, detail if block.detail else "")
    if isinstance(block, Sentence):
        kind = _CLASSES[block.tone]
        if not block.text:  # an ending by itself is a command
            return Markup('<p class="{}"><code>{}</code></p>').format(kind, block.ending)
        return Markup('<p class="{}">{}{}</p>').format(kind, block.text, block.ending)
    if isinstance(block, Note):
        return Markup('<p class="hint">{}</p>').format(block.text)
    if isinstance(block, NextStep):
        return Markup('<p class="more next">{}</p>').format(block.line)
    if isinstance(block, Listing):
        rest = len(block.items) - _MOST_ITEMS
        rest_text = f" and {rest:,} more" if rest > 0 else ""
        items = ", ".join(block.items[:_MOST_ITEMS])
        return Markup('<p class="more"><b>{}</b> {}{}</p>').format(block.title, items, rest_text)
    if isinstance(block, Table):
        return _render_table(block, table_class)
    if isinstance(block, Bar):
        return Markup(
            '<figure class="bar">{}<figcaption class="hint">{}</figcaption></figure>'
        ).format(_draw_bar(block), block.text)
    return _render_list(block)


def _draw_bar(bar: Bar) -> Markup:
    """A bar as an SVG that takes the color of the text around it."""

    def x(point: float) -> str:
        return f"{_EDGE + bar.place(point) * (_WIDTH - 2 * _EDGE):.1f}"

    left, right = bar.ends
    parts = [
        f'<path d="M{x(left)} 22H{x(right)}" stroke-width="1" opacity=".35"/>',
        f'<path d="M{x(0)} 10V34" stroke-width="1.5"/>',
        f'<path d="M{x(bar.low)} 22H{x(bar.high)}M{x(bar.low)} 16V28M{x(bar.high)} 16V28" '
        'stroke-width="3"/>',
        f'<circle cx="{x(bar.value)}" cy="22" r="6" fill="currentColor"/>',
    ]
    if bar.detectable is not None:
        at = x(-bar.detectable)
        parts.append(f'<path d="M{at} 14l-5 -9h10z" fill="currentColor"/>')
    for end in dict.fromkeys((left, 0, right)):
        label = f"{end:+d}" if end else "0"
        parts.append(
            f'<text x="{x(end)}" y="44" text-anchor="middle" font-size="11" stroke="none" '
            f'fill="currentColor">{label}</text>'
        )
    return Markup(
        '<svg class="bar" role="img" viewBox="0 0 {} {}" width="{}" height="{}" fill="none" '
        'stroke="currentColor" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, _WIDTH, _HEIGHT, bar.text, Markup("").join(map(Markup, parts)))


def _render_list(block: Block) -> Markup:
    if isinstance(block, Facts):
        groups = groupby(block.entries, lambda entry: entry[0])
        return _definitions(
            ((title, [text for _, text in group]) for title, group in groups), "long"
        )
    if isinstance(block, Properties):
        return _definitions((name, [value]) for name, value in block.entries)
    if isinstance(block, Finding):
        lines = Markup("").join(Markup("<li>{}</li>").format(line) for line in block.details)
        return Markup('<div class="finding"><p><b>{} {}</b> {}</p><ul>{}</ul></div>').format(
            block.sign, block.verdict, block.text, lines
        )
    if isinstance(block, Outline):
        return Markup('<div class="scroll"><ul class="outline">{}</ul></div>').format(
            _outline_lines(block.items)
        )
    return Markup("")


def _outline_lines(items: Iterable[OutlineItem]) -> Markup:
    """Nested lists; every line leads to its first failed attempt, every mark to its own."""
    lines = []
    for item in items:
        failed = [mark.link for mark in item.marks if mark.link and not mark.passed]
        links = failed or [mark.link for mark in item.marks if mark.link]
        text = Markup('<a href="{}">{}</a>').format(links[0], item.text) if links else item.text
        below = _outline_lines(item.items)
        lines.append(
            Markup(
                '<li><div class="node{}"><span class="path">{}</span> <span class="small">{}'
                '</span> <span class="dots">{}</span></div>{}</li>'
            ).format(
                " strong" if item.strong else "",
                text,
                item.detail,
                Markup("").join(map(_attempt_dot, item.marks)),
                Markup("<ul>{}</ul>").format(below) if below else "",
            )
        )
    return Markup("").join(lines)


def _attempt_dot(mark: Mark) -> Markup:
    kind, sign = ("p", "●") if mark.passed else ("f", "○")
    label = f"attempt {mark.number} {'passed' if mark.passed else 'failed'}"
    if not mark.link:
        return Markup('<span class="{}" role="img" aria-label="{}">{}</span>').format(
            kind, label, sign
        )
    return Markup('<a class="{}" href="{}" aria-label="{}">{}</a>').format(
        kind, mark.link, label, sign
    )


def _definitions(groups: Iterable[tuple[str, list[str]]], kind: str = "") -> Markup:
    rows = Markup("").join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(
            title, Markup("<br>").join(map(escape, lines))
        )
        for title, lines in groups
    )
    return Markup('<dl class="{}">{}</dl>').format(kind, rows)


def _render_table(block: Table, table_class: str) -> Markup:
    sides = [" class=t" if index in block.left else "" for index in range(len(block.header))]
    head = Markup("").join(
        Markup("<th scope=col{}>{}</th>").format(Markup(side), name)
        for side, name in zip(sides, block.header, strict=True)
    )
    rows = []
    for row in block.rows:
        first = Markup("<th scope=row{}>{}</th>").format(Markup(sides[0]), row[0])
        cells = Markup("").join(
            Markup('<td{} data-label="{}">{}</td>').format(Markup(side), name, cell)
            for side, name, cell in zip(sides[1:], block.header[1:], row[1:], strict=True)
        )
        rows.append(Markup("<tr>{}{}</tr>").format(first, cells))
    caption = Markup("<caption>{}</caption>").format(block.caption) if block.caption else ""
    return Markup(
        '<div class="scroll"><table class="{}">{}<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>'
        "</table></div>"
    ).format(table_class, caption, head, Markup("\n").join(rows))


# -- cards: the numbers that matter ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CardRow:
    """A run's number on a card; ``value`` and the ends as shares, where there is an interval."""

    label: str
    text: str
    interval: str
    counts: str = ""
    level: str = ""
    low: float | None = None
    high: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A number with its interval and counts, for every run; ``place`` is its color."""

    name: str
    asks: str
    rows: tuple[CardRow, ...]
    place: int = 1


def build_cards(
    runs: Sequence[RunReport],
    labels: Sequence[str],
    measures: Sequence[Mapping[str, Measure]],
) -> Iterator[Card]:
    """Yield cards of pass^1, pass^k and pass@k, and of the cost per solved task."""
    for word in headline_words(runs):
        rows = tuple(
            _estimate_row(label, estimate)
            for label, run in zip(labels, runs, strict=True)
            if (estimate := run.find(word)) is not None
        )
        yield Card(
            str(word), metric(word).event_text, rows, 2 if isinstance(metric(word), PassAt) else 1
        )
    name = _currency(measures)
    if name:
        rows = tuple(
            _measure_row(label, by_name.get(name))
            for label, by_name in zip(labels, measures, strict=True)
        )
        yield Card(f"{name} per solved task", "failed attempts are paid for too", rows)


def _currency(measures: Sequence[Mapping[str, Measure]]) -> str:
    """Cost where it is recorded, else tokens, steps or seconds."""
    names = {name for by_name in measures for name, measure in by_name.items() if measure.mean}
    return next((word for word in ("cost", "tokens", "steps", "seconds") if word in names), "")


def _estimate_row(label: str, estimate: Estimate) -> CardRow:
    counts = f"{counted(estimate.tasks, 'task')}, {counted(estimate.attempts, 'attempt')}"
    if estimate.low is None or estimate.high is None or estimate.level is None:
        return CardRow(label, card_value(estimate), "no interval", counts)
    level = f"{100 * estimate.level:g}% for {estimate.population}"
    ends = (estimate.low, estimate.high, estimate.value)
    return CardRow(label, card_value(estimate), card_interval(estimate), counts, level, *ends)


def _measure_row(label: str, measure: Measure | None) -> CardRow:
    if measure is None:
        return CardRow(label, "–", "not recorded")
    if measure.low is None or measure.high is None:
        interval, level = "no interval: too few solved tasks", ""
    else:
        interval = f"{figure(measure.low)} to {figure(measure.high)}"
        level = f"{100 * measure.level:g}%"
    return CardRow(label, figure(measure.per_solved), interval, measure.counts_text(), level)
