"""passhat report"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import corrected_option, labels_option, with_labels
from passhat.cli.shared.options import (
    KList,
    ReadingOptions,
    exit_code,
    full_option,
    look_at_attempts,
    needs_of_page,
    source_options,
    sources_or_latest,
    sources_or_latest_argument,
    term_options,
    this_command,
    transcripts_option,
)
from passhat.cli.shared.outputs import (
    Output,
    output_option,
    prints_to_screen,
    write_outputs,
    write_text,
)

if TYPE_CHECKING:
    from passhat.reporting.view import Report
    from passhat.stats.terms import Terms


@click.command(
    "report",
    cls=Command,
    renamed={"--md": "-o", "--html": "-o", "--csv": "-o", "--to": "-o"},
    examples=(
        "passhat report",
        "passhat report example:helpdesk -k 1,2,4 --full",
    ),
)
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
@click.option(
    "--by", metavar="SLICE", help="Report each value of a slice apart as well, as in --by domain."
)
@corrected_option
@labels_option
@click.option("--tasks", "with_tasks", is_flag=True, help="Every task, the most unsettled first.")
@full_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option(
    *("html", "md", "csv", "json", "mlflow", "wandb", "langfuse", "inspect"),
    help="Write a file, as in report.html, .md, .csv, .json; or scores, as in mlflow:EXPERIMENT, "
    "wandb:FILE.",
)
@transcripts_option
def command(
    sources: tuple[str, ...],
    ks: tuple[int, ...],
    metrics: tuple[str, ...],
    how: ReadingOptions,
    terms: Terms,
    by: str | None,
    corrected: str | None,
    label_files: tuple[str, ...],
    with_tasks: bool,
    full: bool,
    as_json_text: bool,
    outputs: tuple[Output, ...],
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

    kinds = {output.form for output in outputs}
    handed_on = [output for output in outputs if output.form not in ("html", "md", "csv", "json")]
    with_details = as_json_text or not kinds.isdisjoint(("html", "json"))
    needs = Needs(attempts=look_at_attempts(metrics), measures=False, scores=True)
    if with_details:
        needs = needs_of_page(metrics, page="html" in kinds, transcripts=transcripts)
    if handed_on:
        needs = replace(needs, attempts=True)  # scores of traces need the attempts' own ids
    if label_files:
        needs = replace(needs, attempts=True)  # labels are about single attempts
    runs = how.read(sources_or_latest(sources), labels=(by, terms.cluster), needs=needs)
    runs = with_labels(runs, label_files)
    # A list of every task was requested, so the report may exceed one screen.
    long = full or with_tasks or by is not None
    short = not (long or with_details or outputs)
    options = ReportOptions(
        ks, metrics, terms, by, with_tasks, with_details, short=short, corrected=corrected
    )
    # One screen has room for a few runs: the rest of a large store is not computed.
    screen_runs = runs_on_screen(runs) if short else runs
    report = build_report(screen_runs, options)
    document = report_document(report, len(runs) - len(screen_runs))
    write_outputs(
        outputs,
        {
            "md": lambda: render_markdown(document),
            "csv": lambda: as_csv(report),
            "json": lambda: as_json(report),
            "html": lambda: _page(report, transcripts, terms),
        },
    )
    for output in handed_on:
        _hand_on(report, output.form, output.place)
    if as_json_text:
        click.echo(as_json(report), nl=False)
    elif prints_to_screen(outputs):
        level = Level.FULL if long else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return exit_code(runs)


def _page(report: Report, transcripts: bool | None, terms: Terms) -> str:
    from passhat.reporting.html import HtmlOptions, html_report

    return html_report(report, HtmlOptions(this_command(), transcripts, terms))


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
