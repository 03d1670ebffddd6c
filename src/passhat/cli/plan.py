"""passhat plan"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import ReadingOptions, source_options, term_options, write_text
from passhat.errors import InvalidValue

if TYPE_CHECKING:
    from passhat.stats.outcomes import Run
    from passhat.stats.plan import Plan
    from passhat.stats.terms import Terms


@click.command("plan")
@click.argument("source", required=False)
@click.option("--detect", type=float, metavar="D", help="The lift to see between two agents.")
@click.option(
    "--half-width", type=float, metavar="W", help="Half-width of the interval of one value."
)
@click.option("--metric", default="pass^1", show_default=True, help="The metric, as in pass^4.")
@click.option("--power", type=float, default=0.8, show_default=True, help="Chance to see D.")
@click.option(
    "--gate",
    is_flag=True,
    help="Plan for `gate NEW --against BASELINE`: attempts at which a drop of D is red.",
)
@click.option(
    "--allocate",
    is_flag=True,
    help="Attempts per task from SOURCE, an earlier run: many where they decide, few elsewhere.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="With --allocate: attempts over all tasks, as in 600.  [default: as many as SOURCE has]",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    metavar="N",
    help="With --allocate: the most attempts at one task.  [default: 8 times the mean]",
)
@term_options(
    "level",
    "about",
    "cluster",
    help={
        "level": "Two-sided confidence.",
        "about": "How many new tasks, or how many attempts at these.  [default: new-tasks]",
    },
)
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="List N attempts per task.")
@click.option("--against", metavar="SOURCE", help="A pilot of the second agent, same tasks.")
@click.option("--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several.")
@click.option("--base-run", metavar="NAME", help="Which run, when --against holds several.")
@click.option("--mean", type=float, metavar="P", help="Without SOURCE: share of attempts passed.")
@click.option("--icc", type=float, metavar="R", help="Without SOURCE: variance that is the task's.")
@click.option(
    "--correlation",
    type=float,
    default=0.75,
    show_default=True,
    help="Without --against: how alike two agents find the same tasks.",
)
@source_options
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the plan as JSON, for passhat run --attempts."
)
def command(
    source: str | None,
    detect: float | None,
    half_width: float | None,
    metric: str,
    power: float,
    gate: bool,
    allocate: bool,
    budget: int | None,
    most: int | None,
    terms: Terms,
    attempts: int | None,
    against: str | None,
    run_name: str | None,
    base_run: str | None,
    mean: float | None,
    icc: float | None,
    correlation: float,
    how: ReadingOptions,
    as_json_text: bool,
    output: str | None,
) -> ExitCode:
    """Compute how many tasks and attempts are needed, before they are paid for.

    SOURCE is a pilot with two or more attempts per task. Without one, state --mean and --icc.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.readers import Needs
    from passhat.reporting.document import Level
    from passhat.reporting.documents.forecast import plan_document
    from passhat.reporting.terminal import render_terminal
    from passhat.stats import plan as plans
    from passhat.stats.terms import Population

    these = gate or terms.population is Population.THESE_TASKS
    make = plans.allocate if allocate else plans.plan_attempts if these else plans.plan_tasks
    _refuse_unused(make)
    if (allocate or gate) and terms.population is Population.NEW_TASKS:
        raise InvalidValue(
            "an allocation and a gate against a baseline are about these tasks; about new tasks "
            "only more tasks help.",
            hint="Leave out --about new-tasks, or --allocate and --gate.",
        )
    if source is None and make is not plans.plan_tasks:
        raise InvalidValue(
            "attempts at these tasks are planned by an earlier run of them, and none is given.",
            hint="Run each task 4 times or more, and give that run as SOURCE.",
        )
    if half_width is not None and _is_given("power"):
        raise InvalidValue(
            "--power is the chance to see the difference of --detect; a half-width has none.",
            hint="Leave out --power, or plan with --detect D.",
        )
    needs = Needs(attempts=False, answers=False)

    def run_of(where: str | None, name: str | None, option: str) -> Run | None:
        return None if where is None else how.read_one(where, name, option, needs, (terms.cluster,))

    values: dict[str, Any] = {
        "metric": metric,
        "detect": detect,
        "half_width": half_width,
        "power": power,
        "level": terms.level,
        "cluster": terms.cluster,
        "gate": gate,
        "budget": budget,
        "most": most,
        "mean": mean,
        "icc": icc,
        "correlation": correlation,
        "attempts": attempts,
        "against": run_of(against, base_run, "--base-run"),
    }
    pilot = run_of(source, run_name, "--run")
    made = make(pilot, **{name: values[name] for name in _options(make)})
    if output is not None:
        write_text(output, as_json(made))
    if as_json_text:
        click.echo(as_json(made), nl=False)
    elif output != "-":
        document = plan_document(made)
        click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
        if output is not None and made.allocation is not None:
            click.echo(f"\nmake the attempts with: passhat run --attempts {output} ...")
    return ExitCode.OK


def _options(make: Callable[..., Plan]) -> list[str]:
    return [name for name in inspect.signature(make).parameters if name != "pilot"]


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _refuse_unused(make: Callable[..., Plan]) -> None:
    """Refuse options that the kind of plan that was asked for does not have."""
    goal = {"allocate": "an allocation", "plan_attempts": "a plan of attempts at these tasks"}.get(
        make.__name__, "a plan for new tasks"
    )
    names = ("cluster", "against", "mean", "icc", "correlation", "attempts", "budget", "most")
    for name in names:
        if _is_given(name) and name not in _options(make):
            only = name in ("budget", "most")
            raise InvalidValue(
                f"--{name} plays no part in {goal}.",
                hint="Add --allocate." if only else f"Leave out --{name}.",
            )
