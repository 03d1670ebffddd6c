"""Settings of ``passhat run`` and ``judge``: models behind an API, programs, and Ray workers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from passhat._display import counted
from passhat.cli.shared.commands import setting

if TYPE_CHECKING:
    from passhat.agents.prices import PriceTable
    from passhat.judging.bench import JudgingChoice
    from passhat.runner import RunSpec
    from passhat.runner.budget import Budget
    from passhat.runner.run import RunPlan, Work
    from passhat.runner.run_spec import Loaded
    from passhat.runner.spending import Spending
    from passhat.stats.plan import Allocation

F = TypeVar("F", bound=Callable[..., Any])

_MONEY = (
    click.option(
        "--user", metavar="AGENT", help="Agent that plays the user, as in openai:gpt-5-mini."
    ),
    click.option(
        "--budget", type=float, metavar="DOLLARS", help="The run never spends more, as in 2.50."
    ),
    setting("top_p", type=float, help="Like --temperature: handed on and recorded."),
    setting("max_tokens", type=int, help="The run never uses more tokens than this."),
    setting("prices", envvar="PASSHAT_PRICES", help="A file with your own table of prices."),
    setting(
        "rate",
        "rates",
        multiple=True,
        help="Calls per s, min or h, as in rate=60/min or rate=openai=500/min; repeatable.",
    ),
    setting("retries", type=int, default=8, help="Retries of a call that the provider failed."),
)


@dataclass(frozen=True, slots=True)
class Money:
    """Spending options of a command."""

    top_p: float | None
    user: str | None
    budget: float | None
    max_tokens: int | None
    prices: str | None
    rates: tuple[str, ...]
    retries: int

    def table(self) -> PriceTable:
        """Prices: those that ship, and the user's own."""
        from passhat.agents.prices import read_prices

        return read_prices(self.prices)

    def spending(self) -> Spending:
        """Caps, rates and retries."""
        from passhat.agents.pacing import read_rates
        from passhat.runner.spending import Spending

        return Spending(self.budget, self.max_tokens, read_rates(self.rates), self.retries)

    def print_capped(self, budget: Budget, left: int) -> None:
        """Print how far the cap reached, and the expected cost of the rest."""
        from passhat._display import money

        expected, spending = budget.expected(left), budget.spent
        about = "about" if budget.attempt_count else "up to"
        if self.budget is not None:
            now, cap = money(spending.cost), money(self.budget)
            rest, option = f"{about} {money(expected.cost)}", "--budget"
            need = money(budget.need.cost)
        else:
            now, cap = f"{spending.tokens:,.0f} tokens", f"{self.max_tokens:,}"
            rest, option = f"{about} {expected.tokens:,.0f} tokens", "max_tokens"
            need = f"{budget.need.tokens:,.0f} tokens"
        click.echo(
            f"the cap is reached: {now} of {cap} used by this run, and another attempt could need "
            f"{need}. {counted(left, 'attempt')} not made, which would take {rest} more. The same "
            "command "
            f"with a larger {option} continues.",
            err=True,
        )
        if budget.cut_off:
            click.echo(
                f"cut off by it and missing (budget): {counted(budget.cut_off, 'attempt')}; "
                "--only-missing makes them again.",
                err=True,
            )
        if not budget.attempt_count:
            click.echo(
                "Not one call was sure to fit. A smaller answer makes calls cheaper: "
                "MODEL?max_output_tokens=500",
                err=True,
            )


def money_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them at once, handed on as one ``money``."""
    names = tuple(Money.__dataclass_fields__)

    @wraps(function)
    def with_money(*arguments: Any, **options: Any) -> Any:
        money = Money(**{name: options.pop(name) for name in names})
        return function(*arguments, **options, money=money)

    for option in reversed(_MONEY):
        with_money = option(with_money)
    return with_money


_RULES = ("judges_choice", "strict", "allow_weak")
_NAMES = ("sandbox", "python", "packages", "cpu_seconds", "memory", *_RULES)
_NO_SANDBOX = "none"

_JUDGING = (
    click.option(
        "--sandbox",
        metavar="KIND",
        default="auto",
        show_default=True,
        help="Sandbox of programs: auto, bubblewrap, landlock, docker:IMAGE, podman:IMAGE, or "
        "none for programs you trust.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Count programs that only plain Python could judge as unsupported, without naming "
        "them as passes that a program can forge.",
    ),
    setting(
        "program_seconds",
        "cpu_seconds",
        type=float,
        default=5.0,
        help="Processor time for a generated program.",
    ),
    setting(
        "program_memory",
        "memory",
        type=click.IntRange(64),
        default=1024,
        help="Memory for a generated program, in MiB.",
    ),
    setting(
        "python",
        help="Run programs on this Python, with its packages; in a container, its path there.",
    ),
    setting(
        "with",
        "packages",
        multiple=True,
        help="Let programs import this installed package and what it needs, as in with=numpy; "
        "repeatable.",
    ),
    setting(
        "judge",
        "judges_choice",
        type=click.Choice(("both", "plain", "split")),
        default="both",
        help="Judges: plain runs tests and program together, split keeps them apart, both requires "
        "a pass by each",
    ),
    setting(
        "allow_weak_sandbox",
        "allow_weak",
        type=bool,
        default=False,
        help="Use a sandbox that fails a part of its self-test. Only for programs you trust.",
    ),
)


def judging_options(function: F) -> F:
    """``--sandbox`` and the settings on interpreter, limits and judges, received as ``choose``."""

    @wraps(function)
    def with_choice(*arguments: Any, **options: Any) -> Any:
        choices = {name: options.pop(name) for name in _NAMES}
        ctx = click.get_current_context()
        default = click.core.ParameterSource.DEFAULT
        is_given = any(ctx.get_parameter_source(name) is not default for name in _NAMES)
        return function(*arguments, choose=JudgingOptions(choices, is_given), **options)

    for option in reversed(_JUDGING):
        with_choice = option(with_choice)
    return cast("F", with_choice)


class JudgingOptions:
    """The judging options of a command; ``given`` is false when all have their defaults."""

    def __init__(self, chosen: dict[str, Any], given: bool) -> None:
        self.given = given
        self._chosen = chosen

    def __call__(self, jobs: int | None = None) -> JudgingChoice:
        """The choice; warns, loudly, when programs are to run without a sandbox."""
        from passhat.judging.bench import JudgingChoice
        from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits

        choices = dict(self._chosen)
        limits = ProgramLimits(choices.pop("cpu_seconds"), choices.pop("memory") << 20)
        unsafe = choices["sandbox"] == _NO_SANDBOX
        if unsafe:
            choices["sandbox"] = "auto"
            click.secho(
                "WARNING: no sandbox. The programs run with all your rights: files, network, "
                "secrets.",
                fg="red",
                bold=True,
                err=True,
            )
        rules = JudgeRules(*[choices.pop(name) for name in _RULES])
        return JudgingChoice(**choices, unsafe=unsafe, limits=limits, jobs=jobs, rules=rules)


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
        return _read_plan(text, self, param, ctx)


def _read_plan(
    path: str, kind: AttemptsParam, param: click.Parameter | None, ctx: click.Context | None
) -> int | Allocation:
    """The attempts of a plan: by task, or the same number for every task."""
    from passhat.errors import InvalidValue
    from passhat.stats.plan import Allocation
    from passhat.stats.plan.plan_result import SCHEMA

    problem = f"{path} is not a plan of `passhat plan --allocate -o {path}`"
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        kind.fail(f"{problem}: {error}", param, ctx)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        kind.fail(f"{problem}: it has no schema {SCHEMA!r}.", param, ctx)
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


def ray_address(on: str | None) -> str | None:
    """The address of the cluster that ``--on`` names; empty for a new one on this machine."""
    if on is None:
        return None
    from passhat.integrations.ray.ray_runner import OnRay

    return OnRay.address_of(on, here=os.environ.get("RAY_ADDRESS", ""))


@contextmanager
def ray_workers(
    spec: RunSpec, address: str, plan: RunPlan, loaded: Loaded
) -> Iterator[Work | None]:
    """Start workers, and stop them when the run is over."""
    # Half a minute on a small machine, in which Ray itself prints nothing.
    where = f"at {address}" if address else "on this machine"
    click.echo(f"starting Ray workers {where}; the first can take half a minute", err=True)
    from passhat.integrations.ray.ray_runner import OnRay

    with OnRay(plan, spec, loaded.models, address) as engine:
        click.echo(f"{engine.workers} Ray workers", err=True)
        yield engine.work
