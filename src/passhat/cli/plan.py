"""passhat plan"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import corrected_option, labels_option, with_labels
from passhat.cli.shared.options import (
    ReadingOptions,
    Share,
    look_at_attempts,
    source_options,
    term_options,
)
from passhat.cli.shared.outputs import write_text
from passhat.errors import InvalidValue

if TYPE_CHECKING:
    from passhat.stats.outcomes import Run
    from passhat.stats.plan import Plan
    from passhat.stats.terms import Terms


_ASSUMPTIONS = ("mean", "icc", "correlation")


def _assumptions(
    _ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, float]:
    """Read ``mean=0.7,icc=0.3``; the option may be repeated."""
    numbers = {}
    for pair in (pair for value in values for pair in value.split(",")):
        name, _, text = pair.partition("=")
        try:
            numbers[name.strip()] = float(text)
        except ValueError:
            raise click.BadParameter(f"{pair!r} should read NAME=NUMBER.", param=param) from None
        if name.strip() not in _ASSUMPTIONS:
            names = ", ".join(_ASSUMPTIONS)
            raise click.BadParameter(f"{name!r} is not one of {names}.", param=param)
    return numbers


@click.command(
    "plan",
    cls=Command,
    renamed={
        "--mean": "--assume mean={}",
        "--icc": "--assume icc={}",
        "--correlation": "--assume correlation={}",
    },
    examples=(
        "passhat plan latest --metric pass^4 --half-width 0.05",
        "passhat plan --assume mean=0.7,icc=0.3 --metric pass^4 --detect 0.1",
    ),
)
@click.argument("source", required=False)
@click.option(
    "--detect", type=Share(), metavar="D", help="The lift to see between two agents, as in 0.05."
)
@click.option(
    "--half-width",
    type=Share(),
    metavar="W",
    help="Half-width of the interval of one value, as in 0.03.",
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
@click.option(
    "--attempts", type=click.IntRange(1), metavar="N", help="List N attempts per task, as in 8."
)
@click.option(
    "--against", metavar="SOURCE", help="A pilot of the second agent, same tasks, as in b.csv."
)
@click.option(
    "--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several, as in careful."
)
@click.option("--base-run", metavar="NAME", help="Which run of --against, as in careful.")
@click.option(
    "--assume",
    multiple=True,
    callback=_assumptions,
    metavar="NAME=NUMBER,...",
    help="Without SOURCE, as in mean=0.7,icc=0.3; without --against, correlation=0.75.",
)
@source_options
@corrected_option
@labels_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the plan for passhat run --attempts, as in plan.json.",
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
    assume: dict[str, float],
    how: ReadingOptions,
    corrected: str | None,
    label_files: tuple[str, ...],
    as_json_text: bool,
    output: str | None,
) -> ExitCode:
    """Compute how many tasks and attempts are needed, before they are paid for.

    SOURCE is a pilot with two or more attempts per task. Without one, state --assume mean=P,icc=R.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.readers import Needs
    from passhat.reporting.document import Level
    from passhat.reporting.documents.forecast import plan_document
    from passhat.reporting.terminal import render_terminal
    from passhat.stats import plan as plans
    from passhat.stats.terms import Population

    if corrected is not None:
        is_other_plan = detect is not None or allocate or gate or against is not None
        run = _labeled_run(None if is_other_plan else source, run_name, how, terms, label_files)
        return _plan_labels(run, metric, terms, half_width, corrected, as_json_text=as_json_text)
    these = gate or terms.population is Population.THESE_TASKS
    make = plans.allocate if allocate else plans.plan_attempts if these else plans.plan_tasks
    _refuse_unused(make, assume)
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
    needs = Needs(attempts=look_at_attempts([metric]), answers=False)

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
        "mean": assume.get("mean"),
        "icc": assume.get("icc"),
        "correlation": assume.get("correlation", 0.75),
        "attempts": attempts,
        "against": run_of(against, base_run, "--base-run"),
    }
    pilot = run_of(source, run_name, "--run")
    result = make(pilot, **{name: values[name] for name in _options(make)})
    if output is not None:
        write_text(output, as_json(result))
    if as_json_text:
        click.echo(as_json(result), nl=False)
    elif output != "-":
        document = plan_document(result)
        click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
        if output is not None and result.allocation is not None:
            click.echo(f"\nmake the attempts with: passhat run --attempts {output} ...")
    return ExitCode.OK


def _labeled_run(
    source: str | None,
    run_name: str | None,
    how: ReadingOptions,
    terms: Terms,
    label_files: Sequence[str],
) -> Run:
    from passhat.readers import Needs

    if source is None:
        raise InvalidValue(
            "a plan of labels is about one run with labels, and a half-width.",
            hint="As in: passhat plan RUN --corrected --metric pass^4 --half-width 0.1",
        )
    needs = Needs(attempts=bool(label_files), answers=False)
    run = how.read_one(source, run_name, "--run", needs, (terms.cluster,))
    return with_labels([run], label_files)[0]


def _plan_labels(
    run: Run,
    metric: str,
    terms: Terms,
    half_width: float | None,
    correction: str,
    *,
    as_json_text: bool,
) -> ExitCode:
    """Print how much labels and attempts narrow the corrected interval."""
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.document import Level
    from passhat.reporting.documents.judge import label_plan_document
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.labels.label_plan import plan_labels
    from passhat.stats.labels.lifts import require_labels

    plan = plan_labels(run.outcomes, require_labels(run), metric, terms, half_width, correction)
    if as_json_text:
        click.echo(as_json(plan), nl=False)
    else:
        text = render_terminal(label_plan_document(plan), Console(), Level.SHORT)
        click.echo(text, nl=False)
    return ExitCode.OK


def _options(make: Callable[..., Plan]) -> list[str]:
    return [name for name in inspect.signature(make).parameters if name != "pilot"]


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _refuse_unused(make: Callable[..., Plan], assume: Mapping[str, float]) -> None:
    """Refuse options that the kind of plan that was asked for does not have."""
    goal = {"allocate": "an allocation", "plan_attempts": "a plan of attempts at these tasks"}.get(
        make.__name__, "a plan for new tasks"
    )
    flags = {f"--assume {name}": name for name in assume}
    flags |= {
        f"--{name}": name
        for name in ("cluster", "against", "attempts", "budget", "most")
        if _is_given(name)
    }
    for flag, name in flags.items():
        if name not in _options(make):
            only = name in ("budget", "most")
            raise InvalidValue(
                f"{flag} plays no part in {goal}.",
                hint="Add --allocate." if only else f"Leave out {flag}.",
            )
