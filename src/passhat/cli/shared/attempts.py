"""How many attempts `passhat run` makes: a number, a plan, or by an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from passhat.stats.plan import Allocation

__all__ = ["AttemptsParam", "chosen_attempts"]


class AttemptsParam(click.ParamType[Any]):
    """A whole number, or a file that ``passhat plan -o`` wrote."""

    name = "attempts"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Allocation:
        from passhat.stats.plan import Allocation

        if isinstance(value, int | Allocation) and not isinstance(value, bool):
            return value
        text = str(value).strip()
        if text.lstrip("-").isdigit():
            return int(text)
        if not Path(text).is_file():
            self.fail(f"{text!r} is neither a whole number nor a plan (a file).", param, ctx)
        return _planned(text, self, param, ctx)


def _planned(
    path: str, kind: AttemptsParam, param: click.Parameter | None, ctx: click.Context | None
) -> int | Allocation:
    """The attempts of a plan: by task, or the same number where the plan says so."""
    from passhat.errors import InvalidValue
    from passhat.stats.plan import Allocation
    from passhat.stats.plan.plan_result import SCHEMA

    made = f"{path} is not a plan of `passhat plan --allocate -o {path}`"
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        kind.fail(f"{made}: {error}", param, ctx)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        kind.fail(f"{made}: it has no schema {SCHEMA!r}.", param, ctx)
    if data.get("allocation") is None:
        if data.get("about") == "these tasks":  # a gate's plan for equal attempts
            return int(data["cheapest"]["attempts"])
        kind.fail(
            f"{path} says how many tasks are needed; --attempts needs --allocate.", param, ctx
        )
    try:
        return Allocation.from_dict(data["allocation"])
    except InvalidValue as error:
        kind.fail(f"{path}: {error.message}", param, ctx)


def chosen_attempts(
    attempts: int | Allocation,
    earlier: str | None,
    total: int | None,
    metric: str | None,
    store: str,
) -> int | Allocation:
    """What ``--attempts`` says, or an allocation from the run of ``--attempts-from``."""
    if earlier is None:
        if total is not None or metric is not None:
            raise click.UsageError(
                "--attempts-total and --attempts-for go with --attempts-from RUN."
            )
        return attempts
    from click.core import ParameterSource

    ctx = click.get_current_context()
    if ctx.get_parameter_source("attempts") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--attempts and --attempts-from both say how many; give one.")
    from passhat.errors import InvalidValue
    from passhat.readers import Needs, read_all
    from passhat.stats.plan import plan

    runs = read_all(earlier, store=store, needs=Needs(attempts=False, answers=False)).runs
    if len(runs) != 1:
        raise InvalidValue(
            f"--attempts-from {earlier}: there are {len(runs)} runs.",
            hint="Name one run of the store, or make a plan: passhat plan SOURCE --run NAME "
            "--allocate -o plan.json",
        )
    made = plan(runs[0], allocate=True, metric=metric or "pass^1", budget=total).allocation
    assert made is not None
    click.echo(made.sentence, err=True)
    return made
