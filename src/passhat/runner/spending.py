"""What a run may spend and how fast: prices, rates and caps, put in place before the first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from passhat.agents.base import Agent
from passhat.agents.chat import ChatAgent
from passhat.agents.prices import OWN_FILE, PriceTable
from passhat.errors import InvalidValue
from passhat.runner.attempting import Limits
from passhat.runner.budget import Budget, Sum
from passhat.store import Store

__all__ = ["Spending", "budget_for", "prepare"]

_INPUT_BEFORE_SEEN = 4_000
"""Tokens of input of one call, as long as none was seen."""
_TOKENS, _COST = 6, 7
"""Columns of ``Store.rows``."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What the user asked for."""

    cost: float | None = None
    tokens: int | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    retries: int = 8

    def __post_init__(self) -> None:
        for name, cap in (("--budget", self.cost), ("--max-tokens", self.tokens)):
            if cap is not None and not cap > 0:
                raise InvalidValue(f"{name} must be more than 0, not {cap:g}.")
        if self.retries < 0:
            raise InvalidValue("--retries must be at least 0.")

    @property
    def is_capped(self) -> bool:
        return self.cost is not None or self.tokens is not None


def prepare(agents: Sequence[Agent], spending: Spending, prices: PriceTable) -> None:
    """Give models their price, and one provider to those that share an address.

    Raises
    ------
    InvalidValue
        A cap is asked for, and one of the agents does not say what it uses or has no price.
    """
    models = [one for one in agents if isinstance(one, ChatAgent)]
    shared = {(one.kind, one.base_url): one.provider for one in reversed(models)}
    for one in models:
        one.price = prices.price(one.kind, one.model)
        one.provider = shared[one.kind, one.base_url]
        one.provider.retries = spending.retries
    for provider in shared.values():
        rate = spending.rates.get(provider.kind, spending.rates.get(""))
        if rate is not None:
            provider.limit(rate)
    kinds = {one.kind for one in models}
    if unknown := set(spending.rates) - kinds - {""}:
        raise InvalidValue(
            f"--rate {', '.join(sorted(unknown))}: no such provider in this run.",
            hint=f"Providers here: {', '.join(sorted(kinds)) or 'none'}.",
        )
    if spending.is_capped:
        for agent in agents:
            _check(agent, spending)


def _check(agent: Agent, spending: Spending) -> None:
    option = "--budget" if spending.cost is not None else "--max-tokens"
    if not isinstance(agent, ChatAgent):
        raise InvalidValue(
            f"{option} cannot hold: {agent.name} does not say what it uses.",
            hint="A cap works with models behind an API: openai:MODEL or anthropic:MODEL.",
        )
    if spending.cost is not None and agent.price is None:
        raise InvalidValue(
            f"--budget cannot hold: there is no price for {agent.kind}:{agent.model}.",
            hint=f'Write one into {OWN_FILE}: [{agent.kind}] "{agent.model}" = '
            "{ input = 0.5, output = 1.5 } (dollars per million tokens).",
        )


def budget_for(
    agents: Sequence[Agent], spending: Spending, limits: Limits, store: Store, run: str
) -> Budget | None:
    """The cap of a run, with what the store has of it; ``None`` without a cap."""
    if not spending.is_capped:
        return None
    models = [one for one in agents if isinstance(one, ChatAgent)]
    steps = [one.worst_step(_INPUT_BEFORE_SEEN) for one in models]
    step = Sum(sum(one.tokens or 0.0 for one in steps), sum(one.cost or 0.0 for one in steps))
    first = step.times(limits.max_steps)
    before = _spent_before(store, run, spending)
    each = before.largest.times(1.5) if before.made else first
    return Budget(
        cost=spending.cost,
        tokens=spending.tokens,
        first=first,
        spent=before.total + each.times(before.unknown),
        largest=before.largest,
        made=before.made,
    )


@dataclass(slots=True)
class _Before:
    """What finished attempts used, and of how many nobody knows that."""

    total: Sum = field(default_factory=Sum)
    largest: Sum = field(default_factory=Sum)
    made: int = 0
    unknown: int = 0


def _spent_before(store: Store, run: str, spending: Spending) -> _Before:
    before = _Before()
    if all(one.id != run for one in store.runs()):
        return before
    for block in store.rows(run):
        for row in block:
            tokens, cost = row[_TOKENS], row[_COST]
            if tokens is None or (cost is None and spending.cost is not None):
                before.unknown += 1
            elif tokens or cost:
                used = Sum(float(str(tokens)), float(str(cost or 0.0)))
                before.total += used
                before.largest = before.largest.larger(used)
                before.made += 1
    return before
