"""passhat compare"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import corrected_option, labels_option, with_labels
from passhat.cli.shared.options import (
    KList,
    ReadingOptions,
    choose_runs,
    exit_code,
    full_option,
    look_at_attempts,
    needs_of_page,
    source_options,
    sources_argument,
    term_options,
    this_command,
    transcripts_option,
)
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs

if TYPE_CHECKING:
    from passhat.protocol import Alternative
    from passhat.reporting.task_changes import TaskChange
    from passhat.stats.labels.lifts import CorrectedLift
    from passhat.stats.outcomes import Run
    from passhat.stats.terms import Terms


@click.command(
    "compare",
    cls=Command,
    renamed={"--md": "-o", "--html": "-o"},
    examples=(
        "passhat compare latest~1 latest --allow",
        "passhat compare example:helpdesk -k 1,4 -o compare.html",
    ),
)
@sources_argument
@click.option("-k", "ks", type=KList(), default=(), help="pass^k at these k, as in 1,2,4 or 1-4.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="A metric to compare, as in pass^4; may be repeated.  [default: pass^1]",
)
@click.option(
    "--alternative",
    type=click.Choice(["two-sided", "greater", "less"]),
    default="two-sided",
    show_default=True,
    help="Alternative hypothesis on B, chosen beforehand: different, better, worse.",
)
@click.option(
    "--by", metavar="SLICE", help="Compare each value of a slice too, corrected, as in --by domain."
)
@click.option(
    "--run",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only these runs, A first, as in --run old --run new.",
)
@click.option(
    "--unpaired",
    is_flag=True,
    help="The runs attempted different tasks of one pool: compare about new tasks, without pairs.",
)
@term_options("missing", "drop_short", "level", "allow", "about", "cluster")
@source_options
@corrected_option
@labels_option
@full_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option(
    *("html", "md", "json"),
    help="Write a file, as in compare.html, .md or .json; repeatable. -o md prints.",
)
@transcripts_option
def command(
    sources: tuple[str, ...],
    ks: tuple[int, ...],
    metrics: tuple[str, ...],
    alternative: Alternative,
    by: str | None,
    names: tuple[str, ...],
    unpaired: bool,
    how: ReadingOptions,
    terms: Terms,
    corrected: str | None,
    label_files: tuple[str, ...],
    full: bool,
    as_json_text: bool,
    outputs: tuple[Output, ...],
    transcripts: bool | None,
) -> ExitCode:
    """Compare the runs in SOURCE on the tasks they share: is B better than A?

    The first run is A, the second is B, and every lift is B minus A. A source that holds several
    runs brings all of them. Three or more runs are compared pair by pair and ranked.

    Without --about the claim is about new tasks; the claim about exactly these tasks is printed
    as well where the two differ.
    """
    from rich.console import Console

    from passhat._serialize import as_json, to_data
    from passhat.readers import Needs
    from passhat.reporting.document import Level
    from passhat.reporting.documents.judge import correct_lifts, with_corrected_lifts
    from passhat.reporting.documents.verdicts import comparison_document
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.compare import Comparison, Comparisons, compare, compare_all

    words = list(dict.fromkeys([*metrics, *(f"pass^{k}" for k in ks)])) or ["pass^1"]
    needs = Needs(attempts=look_at_attempts(words), answers=False)
    if any(output.form == "html" for output in outputs):
        needs = needs_of_page(words, page=True, transcripts=transcripts)
    if label_files:
        needs = replace(needs, attempts=True)  # labels are about single attempts
    runs = _choose_runs(how.read(sources, labels=(by, terms.cluster), needs=needs), names)
    runs = with_labels(runs, label_files)
    comparison: Comparison | Comparisons
    if len(runs) == 2:
        comparison = compare(
            runs[0], runs[1], words, terms, alternative=alternative, by=by, unpaired=unpaired
        )
    else:
        options = {
            "--alternative": alternative != "two-sided",
            "--by": by is not None,
            "--corrected": corrected is not None,
            "--unpaired": unpaired,
        }
        _refuse_for_many(len(runs), options)
        comparison = compare_all(runs, words, terms)
    changes: tuple[TaskChange, ...] = ()
    if len(runs) == 2 and not unpaired:
        from passhat.reporting.task_changes import task_changes

        changes = task_changes(runs[0], runs[1], words[0], terms)
    document = comparison_document(comparison, runs, changes)
    lifts: tuple[CorrectedLift, ...] = ()
    if corrected is not None:
        _refuse_unpaired_correction(unpaired=unpaired)
        lifts = correct_lifts(runs[0], runs[1], words, terms, corrected)
        document = with_corrected_lifts(document, lifts, (runs[0].name, runs[1].name))

    def page() -> str:
        from passhat.reporting.build import ReportOptions, build_report
        from passhat.reporting.html import HtmlOptions, html_report

        options = ReportOptions(terms=terms, with_details=True)
        settings = HtmlOptions(this_command(), transcripts, terms)
        return html_report(build_report(runs, options), settings, comparison, changes)

    def as_json_object() -> str:
        data = to_data(comparison) | {"changes": to_data(changes)}
        return as_json(data | ({"corrected": to_data(lifts)} if lifts else {}))

    write_outputs(
        outputs,
        {"md": lambda: render_markdown(document), "html": page, "json": as_json_object},
    )
    if as_json_text:
        click.echo(as_json_object(), nl=False)
    elif prints_to_screen(outputs):
        level = Level.FULL if full or by is not None else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return exit_code(runs)


def _choose_runs(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    """The runs by these names and in this order, or all of them; two are needed."""
    from passhat.errors import InvalidValue

    selection = choose_runs(runs, names)
    if len(selection) < 2:
        raise InvalidValue(
            f"two runs are needed to compare, and there is one: {selection[0].name}.",
            hint="Name another source, or --run twice. If one table holds both, its column for the "
            "agent may have another name: --map model=COLUMN",
        )
    return selection


def _refuse_unpaired_correction(*, unpaired: bool) -> None:
    """Labels correct a lift task by task."""
    from passhat.errors import InvalidValue

    if unpaired:
        raise InvalidValue(
            "--corrected pairs the tasks of both runs, and --unpaired has none.",
            hint="Correct each run by itself: passhat report RUN --corrected",
        )


def _refuse_for_many(runs: int, options: Mapping[str, bool]) -> None:
    """Among three or more there is neither a direction nor a B."""
    from passhat.errors import InvalidValue

    for option, is_set in options.items():
        if is_set:
            raise InvalidValue(
                f"{option} is about two runs, and there are {runs}.",
                hint="Choose them with --run NAME --run NAME.",
            )
