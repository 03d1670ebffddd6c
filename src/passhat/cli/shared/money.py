"""The options of ``passhat run`` about models behind an API: money, tokens, rates, the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from passhat.agents.prices import PriceTable
    from passhat.runner.budget import Budget
    from passhat.runner.spending import Spending

__all__ = ["Money", "money_options"]

_OPTIONS = (
    click.option("--top-p", type=float, help="Like --temperature: handed on and recorded."),
    click.option("--user", metavar="AGENT", help="Agent that plays the user; scripted by default."),
    click.option("--budget", type=float, metavar="DOLLARS", help="The run never spends more."),
    click.option("--max-tokens", type=int, metavar="N", help="The run never uses more tokens."),
    click.option(
        "--prices", metavar="FILE", envvar="PASSHAT_PRICES", help="Your own table of prices."
    ),
    click.option(
        "--rate",
        "rates",
        multiple=True,
        metavar="[PROVIDER=]N/min",
        help="Calls per s, min or h; repeatable.",
    ),
    click.option(
        "--retries", default=8, show_default=True, help="Of a call that the provider failed."
    ),
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

        expected, spent = budget.expected(left), budget.spent
        about = "about" if budget.attempt_count else "up to"
        if self.budget is not None:
            used, cap = money(spent.cost), money(self.budget)
            rest, option = f"{about} {money(expected.cost)}", "--budget"
            need = money(budget.need.cost)
        else:
            used, cap = f"{spent.tokens:,.0f} tokens", f"{self.max_tokens:,}"
            rest, option = f"{about} {expected.tokens:,.0f} tokens", "--max-tokens"
            need = f"{budget.need.tokens:,.0f} tokens"
        click.echo(
            f"the cap is reached: {used} of {cap} used by this run, and another attempt could need "
            f"{need}. {left:,} attempts not made; they would take {rest} more. The same command "
            f"with a larger {option} continues.",
            err=True,
        )
        if budget.cut_off:
            click.echo(
                f"{budget.cut_off:,} attempts were cut off by it and are missing (budget); "
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
    def gathered(*arguments: Any, **options: Any) -> Any:
        money = Money(**{name: options.pop(name) for name in names})
        return function(*arguments, **options, money=money)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered
