"""passhat report"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    KList,
    ReadingOptions,
    exit_code,
    full_option,
    html_options,
    look_at_order,
    needs_of_page,
    source_options,
    sources_or_latest,
    sources_or_latest_argument,
    term_options,
    this_command,
    write_text,
)

if TYPE_CHECKING:
    from passhat.reporting.view import Report
    from passhat.stats.terms import Terms

_KINDS = ("mlflow", "wandb", "langfuse", "inspect")


@click.command("report")
@sources_or_latest_argument
@click.option("-k", "ks", type=KList(), default=(), help="Values of k, as in 1,2,4 or 1-4.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="A metric to report instead, as in gpass@8:0.5; may be repeated. With -k: in addition.",
)
@term_options("missing", "drop_short", "level", "cluster")
@source_options
@click.option("--by", metavar="SLICE", help="Report each value of a slice apart as well.")
@click.option("--tasks", "with_tasks", is_flag=True, help="Every task, the most unsettled first.")
@full_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option("--md", metavar="FILE", help="Write Markdown to FILE (- is standard output).")
@click.option("--csv", metavar="FILE", help="Write CSV to FILE (- is standard output).")
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="KIND:WHERE",
    help="Hand the scores on: mlflow:EXPERIMENT, wandb:FILE, langfuse:FILE, or inspect:FILE for a "
    "copy of the inspect log with them; may be repeated.",
)
@html_options
def command(
    sources: tuple[str, ...],
    ks: tuple[int, ...],
    metrics: tuple[str, ...],
    how: ReadingOptions,
    terms: Terms,
    by: str | None,
    with_tasks: bool,
    full: bool,
    as_json_text: bool,
    md: str | None,
    csv: str | None,
    targets: tuple[str, ...],
    html: str | None,
    transcripts: bool | None,
) -> ExitCode:
    """Report pass^k, pass@k and delta^k of the runs in SOURCE.

    SOURCE is a log of another harness, a table (CSV or JSON lines, gzipped or not, or Parquet), a
    glob or folder of them, - for standard input, example:NAME, or a run of the store (an id or
    latest). Without SOURCE: the newest run of the store.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.readers import Needs
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.data import as_csv
    from passhat.reporting.document import Level
    from passhat.reporting.documents.report import report_document, runs_on_screen
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal

    handed_on = [_target(target) for target in targets]
    detailed = as_json_text or html is not None
    needs = Needs(attempts=look_at_order(metrics), measures=False)
    if detailed:
        needs = needs_of_page(metrics, page=html is not None, transcripts=transcripts)
    if handed_on:
        needs = replace(needs, attempts=True)  # scores of traces need the attempts' own ids
    runs = how.read(sources_or_latest(sources), labels=(by, terms.cluster), needs=needs)
    # A list of every task was requested, so the report may exceed one screen.
    long = full or with_tasks or by is not None
    short = not (long or detailed or md is not None or csv is not None or handed_on)
    options = ReportOptions(ks, metrics, terms, by, with_tasks, detailed, short=short)
    # One screen has room for a few runs: the rest of a large store is not computed.
    chosen = runs_on_screen(runs) if short else runs
    report = build_report(chosen, options)
    document = report_document(report, len(runs) - len(chosen))
    if md is not None:
        write_text(md, render_markdown(document))
    if csv is not None:
        write_text(csv, as_csv(report))
    if html is not None:
        from passhat.reporting.html import HtmlOptions, html_report

        page_options = HtmlOptions(this_command(), transcripts, terms)
        write_text(html, html_report(report, page_options))
    for kind, where in handed_on:
        _hand_on(report, kind, where)
    if as_json_text:
        click.echo(as_json(report), nl=False)
    elif "-" not in (md, csv, html, *(where for _, where in handed_on)):
        level = Level.FULL if long else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return exit_code(runs)


def _target(text: str) -> tuple[str, str]:
    """Where scores go, as in ``mlflow:EXPERIMENT``."""
    kind, _, where = text.partition(":")
    if kind not in _KINDS or not where:
        known = ", ".join(f"{name}:WHERE" for name in _KINDS)
        raise click.BadParameter(f"{text!r} should be one of {known}.", param_hint="--to")
    return kind, where


def _hand_on(report: Report, kind: str, where: str) -> None:
    from passhat.reporting.data import as_langfuse, as_wandb, send_to_mlflow

    if kind == "mlflow":
        for address in send_to_mlflow(report, where):
            click.echo(f"logged {address}", err=True)
    elif kind == "inspect":
        from passhat.integrations.inspect.reducers import write_scores

        write_scores(report, where)
        click.echo(f"wrote {where}", err=True)
    else:
        write_text(where, as_wandb(report) if kind == "wandb" else as_langfuse(report))
