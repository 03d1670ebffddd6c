"""From a report (and a comparison) to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from passhat._serialize import to_data
from passhat._version import __version__
from passhat.reporting.comparison_view import TaskChange, protocol_lines, ranking_lines
from passhat.reporting.figures import Figure, Material, make_figure, page_svg
from passhat.reporting.figures.base import MOST_RUNS, labels_of
from passhat.reporting.html import page, page_tables
from passhat.reporting.html.payload import (
    SMALL,
    Transcripts,
    attempts_data,
    is_counted,
    script_json,
    shown_tasks,
    transcripts_of,
    without_tasks,
)
from passhat.reporting.view import Report
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.outcomes import Run
from passhat.stats.terms import Terms

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["PAGE_SCHEMA", "HtmlOptions", "html_report", "template"]

PAGE_SCHEMA = "passhat.page/1"
_WITH_TWO = ("forest", "flips", "lift")
_CHARTS = (
    *("curves", "delta", "flips", "lift", "forest", "forecast", "width"),
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

    Parameters
    ----------
    report : Report
        Built with details.
    options : HtmlOptions
        The command, and whether conversations are embedded.
    found : Comparison or Comparisons, optional
        Of the same runs; its claim is then the headline.
    changes : sequence of TaskChange
        Task by task from A to B, where there are two runs.
    """
    material = Material(
        report,
        comparison if isinstance(comparison, Comparison) else None,
        tuple(changes),
        options.terms,
    )
    labels = labels_of(report.runs)
    runs = [run.run for run in report.runs]
    conversations = [transcripts_of(run, wanted=options.transcripts) for run in runs]
    top = page.lead(report, comparison)
    return template("report.html.j2").render(
        title=top.title,
        lead=top,
        cards=list(page.cards(report)) if len(labels) <= page.MOST_ON_CARDS else [],
        overview=page_tables.overview(report) if len(labels) > page.MOST_ON_CARDS else None,
        level=f"{100 * options.terms.level:g}%",
        labels=labels,
        most_runs=MOST_RUNS,
        settling=list(page.settling(report, comparison)),
        compared=list(page_tables.comparison_tables(comparison)),
        figures=[(figure, page_svg(figure)) for figure in _figures(material)],
        missing=list(page_tables.missing_tables(report)),
        numbers=list(page_tables.number_tables(report)),
        slices=list(page_tables.slice_tables(report)),
        formulas=page.formulas(report),
        runs=report.runs,
        agreement=_agreement(comparison),
        conversations=_conversations_text(conversations),
        left_out=_left_out_text(report),
        command=options.command,
        report_json=script_json(_embedded(report, comparison, changes, options)),
        attempts_json=script_json(attempts_data(runs, labels, conversations)),
    )


def _figures(material: Material) -> Iterator[Figure]:
    for name in _CHARTS:
        if name in _WITH_TWO and len(material.runs) < 2:
            continue
        figure = make_figure(name, material)
        if figure is not None:
            yield figure


def _embedded(
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


def _agreement(comparison: Comparison | Comparisons | None) -> list[str]:
    if isinstance(comparison, Comparison):
        return [*protocol_lines(comparison), *comparison.notes]
    return ranking_lines(comparison) if isinstance(comparison, Comparisons) else []


def _left_out_text(report: Report) -> str:
    """Parts of counted runs that the page omits; empty where it shows all."""
    runs = [run.run for run in report.runs]
    large = max((run for run in runs if is_counted(run)), key=_attempts, default=None)
    if large is None:
        return ""
    total, shown = max(len(run.outcomes) for run in runs), len(shown_tasks(runs))
    listed = (
        f" Of {total:,} tasks the {shown:,} most unsettled are listed." if shown < total else ""
    )
    return (
        f"Single attempts are left out: {_attempts(large):,} of {large.name} were counted in the "
        f"database. --one-by-one puts them in, whatever that takes.{listed}"
    )


def _attempts(run: Run) -> int:
    return run.outcomes.attempts


def _conversations_text(transcripts: Sequence[Transcripts]) -> str:
    if any(part.left_out for part in transcripts):
        return (
            f"Conversations are left out (more than {SMALL // 1_000_000} MB, or not wanted); "
            "--with-transcripts embeds them."
        )
    return ""


def template(name: str) -> Template:
    """A template that escapes its values and fails on an undefined name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passhat.reporting.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "own_file": own_file,
        "inline_script": _inline_script,
        "content_security_policy": _content_security_policy(),
        "versions": versions(),
    }
    return environment.get_template(name)


_SCRIPTS = ("scheme.js", "page.js", "script.js")


def _inline_script(name: str) -> Markup:
    return Markup(f"<script>{own_file(name)}</script>")


def _content_security_policy() -> str:
    """Only our own scripts run, by their digests; nothing is loaded from or sent to anywhere."""
    digests = [
        base64.b64encode(hashlib.sha256(own_file(name).encode()).digest()).decode()
        for name in _SCRIPTS
    ]
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "form-action 'none'; base-uri 'none'"
    )


def own_file(name: str) -> str:
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
