"""From a report (and a comparison) to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from passhat._serialize import to_data
from passhat._version import __version__
from passhat.reporting.document import Document, Heading, Level, NextStep, Section, Table
from passhat.reporting.documents.report import report_document
from passhat.reporting.documents.verdicts import comparison_document, lead_verdict
from passhat.reporting.figures import Figure, Material, make_figure, page_svg
from passhat.reporting.figures.base import MOST_RUNS, labels_of
from passhat.reporting.html.blocks import (
    build_cards,
    render_blocks,
    render_sections,
    template_environment,
)
from passhat.reporting.html.payload import (
    SMALL,
    Transcripts,
    attempts_data,
    choose_tasks,
    is_counted,
    script_json,
    transcripts_of,
    without_tasks,
)
from passhat.reporting.measures import RATIO_METHOD
from passhat.reporting.task_changes import TaskChange
from passhat.reporting.view import Report
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.terms import Terms

if TYPE_CHECKING:
    from jinja2 import Template

    from passhat.stats.why import Why

PAGE_SCHEMA = "passhat.page/1"
MOST_ON_CARDS = 3
"""Runs on one card; more become a table."""
_WITH_TWO = ("forest", "flips", "lift")
_CHARTS = (
    *("curves", "scores", "thresholds", "delta", "flips", "lift", "forest", "forecast", "width"),
    *("failures", "distributions", "heatmap"),
)


@dataclass(frozen=True, slots=True)
class HtmlOptions:
    """Options of the page besides the numbers.

    ``transcripts`` None embeds conversations only where they are small; ``command`` is the line
    that made the page.
    """

    command: str = ""
    transcripts: bool | None = None
    terms: Terms = field(default_factory=Terms)


def html_report(
    report: Report,
    options: HtmlOptions,
    comparison: Comparison | Comparisons | None = None,
    changes: Sequence[TaskChange] = (),
) -> str:
    """The report as a single self-contained HTML file.

    The report must have been built with details. A ``comparison`` of the same runs gives the
    headline; ``changes`` go task by task from A to B, where there are two runs.
    """
    pair = comparison if isinstance(comparison, Comparison) else None
    material = Material(report, pair, tuple(changes), options.terms)
    labels = labels_of(report.runs)
    runs = [run.run for run in report.runs]
    conversations = [transcripts_of(run, wanted=options.transcripts) for run in runs]
    document = report_document(report)
    comparison_text = None if comparison is None else comparison_document(comparison, runs, changes)
    on_cards = len(labels) <= MOST_ON_CARDS
    measures = [
        {} if run.details is None else {measure.name: measure for measure in run.details.measures}
        for run in report.runs
    ]
    return template("report.html.j2").render(
        title=(comparison_text or document).title,
        badge="" if pair is None else str(lead_verdict(pair).claim),
        lead=_lead(document, comparison_text, few=on_cards),
        facts=list(dict.fromkeys(str(run.outcomes) for run in runs))[:MOST_ON_CARDS],
        cards=list(build_cards(report.runs, labels if len(labels) > 1 else [""], measures))
        if on_cards
        else [],
        overview=[] if on_cards else document.find("overview"),
        labels=labels,
        most_runs=MOST_RUNS,
        steps=_steps(document, comparison_text),
        compared=[] if comparison_text is None else _of(comparison_text, *_COMPARED),
        figures=[(figure, page_svg(figure)) for figure in _figures(material)],
        missing=_of(document, "missing", "policies"),
        others=[section for section in document.sections if section.name not in _PLACED],
        numbers=_of(document, "estimates", "slices"),
        formulas=_formulas(report),
        agreement=[] if comparison_text is None else comparison_text.find("evidence"),
        methods=_of(document, "notes", "method"),
        conversations=_conversations_text(conversations),
        left_out=_left_out_text(report),
        command=options.command,
        report_json=script_json(_page_data(report, comparison, changes, options)),
        attempts_json=script_json(attempts_data(runs, labels, conversations)),
    )


_COMPARED = ("results", "tasks", "slices", "use")
# The task list of the page shows every task with its attempts, and charts show the curve.
_PLACED = (
    *("heading", "headline", "screen", "overview", "estimates", "slices", "curve", "tasks"),
    *("missing", "policies", "worst tasks", "plan", "notes", "method", "more"),
)


def _of(document: Document, *names: str) -> list[Section]:
    """The sections by these names in the order of the document, those of a run together."""
    return [
        Section(section.name, tuple(b for b in section.blocks if Level.FULL in b.level), subject)
        for section in document.sections
        for subject in [section.subject]
        if section.name in names and any(Level.FULL in block.level for block in section.blocks)
    ]


def _lead(document: Document, compared: Document | None, *, few: bool) -> list[Section]:
    """The claim of a comparison, or the headlines of a few runs."""
    if compared is not None:
        return [
            replace(part, blocks=tuple(b for b in part.blocks if not isinstance(b, Heading)))
            for part in _of(compared, "lead", "claims")
        ]
    # The best of many would be praised for its luck; all of them are in the table below.
    return document.find("headline") if few else []


def _steps(document: Document, compared: Document | None) -> list[tuple[str, str]]:
    """Ways to settle an open question, each with the run that it is about."""
    sections = [*([] if compared is None else compared.find("next")), *document.find("plan")]
    return [
        (section.subject, block.text)
        for section in sections
        for block in section.blocks
        if isinstance(block, NextStep)
    ]


def _formulas(report: Report) -> Table:
    """Every kind of number with its question and its formula."""
    metrics = (estimate.metric for run in report.runs for estimate in run.estimates)
    by_family = {metric.family: metric for metric in metrics}
    rows = [(family, metric.asks, metric.formula) for family, metric in by_family.items()]
    if any(run.details is not None and run.details.measures for run in report.runs):
        rows.append(("per solved task", "what a success takes", RATIO_METHOD))
    caption = "What each number asks, and its formula"
    return Table(("metric", "asks", "formula"), tuple(rows), caption, (0, 1, 2))


def _figures(material: Material) -> Iterator[Figure]:
    for name in _CHARTS:
        if name in _WITH_TWO and len(material.runs) < 2:
            continue
        figure = make_figure(name, material)
        if figure is not None:
            yield figure


def _page_data(
    report: Report,
    comparison: Comparison | Comparisons | None,
    changes: Sequence[TaskChange],
    options: HtmlOptions,
) -> dict[str, object]:
    data: dict[str, object] = {
        "schema": PAGE_SCHEMA,
        "passhat": __version__,
        "command": options.command,
        "report": without_tasks(to_data(report)),
    }
    if comparison is not None:
        data["comparison"] = to_data(comparison)
    if changes:
        data["changes"] = to_data(changes)
    return data


def _left_out_text(report: Report) -> str:
    """Parts of counted runs that the page omits; empty where it shows all."""
    runs = [run.run for run in report.runs]
    counted_runs = filter(is_counted, runs)
    large = max(counted_runs, key=lambda run: run.outcomes.attempts, default=None)
    if large is None:
        return ""
    total, visible = max(len(run.outcomes) for run in runs), len(choose_tasks(runs))
    tables_text = (
        f" Of {total:,} tasks the {visible:,} most unsettled are listed." if visible < total else ""
    )
    return (
        f"Single attempts are left out: {large.outcomes.attempts:,} of {large.name} were counted "
        "in the database. passhat read --one-by-one puts them in, whatever that takes."
        f"{tables_text}"
    )


def _conversations_text(transcripts: Sequence[Transcripts]) -> str:
    if not any(part.left_out for part in transcripts):
        return ""
    return (
        f"Conversations are left out (more than {SMALL // 1_000_000} MB, or not wanted); "
        "--with-transcripts embeds them."
    )


def template(name: str) -> Template:
    """A template of these pages."""
    environment = template_environment("passhat.reporting.html", ".")
    environment.globals |= {
        "blocks": render_blocks,
        "sections": render_sections,
        "own_file": read_template_file,
        "inline_script": lambda name: Markup(f"<script>{read_template_file(name)}</script>"),
        "content_security_policy": _content_security_policy(),
        "versions": versions(),
    }
    return environment.get_template(name)


_SCRIPTS = ("scheme.js", "page.js", "script.js", "board.js")


def _content_security_policy() -> str:
    """Only our own scripts run, by their digests; nothing is loaded from or sent to anywhere."""
    digests = [
        base64.b64encode(hashlib.sha256(read_template_file(name).encode()).digest()).decode()
        for name in _SCRIPTS
    ]
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "form-action 'none'; base-uri 'none'"
    )


def read_template_file(name: str) -> str:
    """The text of a file in the folder of the templates."""
    return files("passhat.reporting.html").joinpath(name).read_text(encoding="utf-8")


def versions() -> str:
    """Versions of the packages that computed the numbers."""
    import numpy
    import scipy

    return (
        f"passhat {__version__}, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}"
    )


def why_page(why: Why, document: Document, command: str = "") -> str:
    """A single HTML file with the document of :func:`passhat.reporting.documents.why`."""
    return template("why.html.j2").render(
        title=f"Why {why.run} passes and fails",
        document_sections=document.sections,
        command=command,
        data=script_json(to_data(why)),
    )
