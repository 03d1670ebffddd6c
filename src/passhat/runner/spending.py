"""Prices, rates and caps of a run, set up before the first call."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from passhat.agents.base import Agent
from passhat.agents.chat import ChatAgent
from passhat.agents.command import CommandAgent
from passhat.agents.function import FrameworkAgent, FunctionAgent
from passhat.agents.prices import OWN_FILE, PriceTable
from passhat.errors import InvalidValue, StoreUnavailable
from passhat.runner.budget import Budget, Sum, Used
from passhat.runner.queues import StoreThread
from passhat.runner.time_limits import AttemptLimits
from passhat.runner.workers import WorkerAgent
from passhat.store import AttemptRecord, Store

_INPUT_BEFORE_SEEN = 4_000
"""Tokens of input of one call, as long as none was seen."""
_REPORTING = (FunctionAgent, WorkerAgent, FrameworkAgent, CommandAgent)
"""Agents that report their usage with their answer."""
_LOOK_SECONDS = 2.0
"""How often the store is asked what other runners have used."""
_LOOK_FACTOR = 50.0
"""Time between two looks, in times of how long one takes."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The user's caps, rates and number of retries."""

    cost: float | None = None
    tokens: int | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    retries: int = 8

    def __post_init__(self) -> None:
        for name, cap in (("--budget", self.cost), ("max_tokens", self.tokens)):
            if cap is not None and not cap > 0:
                raise InvalidValue(f"{name} must be more than 0, not {cap:g}.")
        if self.retries < 0:
            raise InvalidValue("retries must be at least 0.")

    @property
    def is_capped(self) -> bool:
        return self.cost is not None or self.tokens is not None


def prepare(agents: Sequence[Agent], spending: Spending, prices: PriceTable) -> None:
    """Give models their price, and one provider to those that share an address.

    Raises
    ------
    InvalidValue
        A cap is set, and one of the agents does not report its usage or has no price.
    """
    models = [agent for agent in agents if isinstance(agent, ChatAgent)]
    shared = {(model.kind, model.base_url): model.provider for model in reversed(models)}
    for model in models:
        model.price = prices.price(model.kind, model.model)
        model.provider = shared[model.kind, model.base_url]
        model.provider.retries = spending.retries
    for agent in agents:
        if isinstance(agent, _REPORTING):
            agent.price_table = prices
    for provider in shared.values():
        rate = spending.rates.get(provider.kind, spending.rates.get(""))
        if rate is not None:
            provider.limit(rate)
    kinds = {model.kind for model in models}
    if unknown := set(spending.rates) - kinds - {""}:
        raise InvalidValue(
            f"rate={', '.join(sorted(unknown))}: no such provider in this run.",
            hint=f"Providers here: {', '.join(sorted(kinds)) or 'none'}.",
        )
    if spending.is_capped:
        for agent in agents:
            _check(agent, spending)


def _check(agent: Agent, spending: Spending) -> None:
    option = "--budget" if spending.cost is not None else "max_tokens"
    if isinstance(agent, _REPORTING):
        return  # reports its usage with its answer; see budget_for
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
    agents: Sequence[Agent], spending: Spending, limits: AttemptLimits, store: Store, run: str
) -> Budget | None:
    """The cap of a run, with its usage so far in the store; ``None`` without a cap."""
    if not spending.is_capped:
        return None
    models = [agent for agent in agents if isinstance(agent, ChatAgent)]
    steps = [model.worst_step(_INPUT_BEFORE_SEEN) for model in models]
    step = Sum(
        sum(usage.tokens or 0.0 for usage in steps), sum(usage.cost or 0.0 for usage in steps)
    )
    first = step.times(limits.max_steps)
    if len(models) < len(agents):
        # An agent that says only afterwards what it used: the first attempt runs alone, and
        # later ones start when one and a half times the largest so far fits.
        first = Sum(float(spending.tokens or 0), spending.cost or 0.0)
    return Budget(
        cost=spending.cost,
        tokens=spending.tokens,
        first=first,
        before=_load_usage(store, run, priced=spending.cost is not None),
    )


class SpendingWatch:
    """Updates a budget from time to time with the usage of other runners of the run.

    Only finished attempts are seen. Attempts that others have in flight, or finished since the last
    look, can go beyond the cap.
    """

    def __init__(self, budget: Budget | None, store: Store, run: str, thread: StoreThread) -> None:
        self._budget = budget
        self._thread = thread
        self._store = store
        self._run = run
        self._priced = budget is not None and budget.cap.cost < math.inf
        self._own = Used()
        self.writing = asyncio.Lock()
        """Held while attempts are written and :meth:`wrote` is called: a look in between would
        take ours for another runner's."""

    def note_written(self, records: Sequence[AttemptRecord]) -> None:
        """Note attempts that this runner wrote to the store."""
        for record in records if self._budget is not None else ():
            self._own = _plus_attempt(self._own, record.tokens, record.cost, self._priced)

    async def keep(self) -> None:
        """Look until canceled. A look that takes long is made rarely."""
        load = partial(_load_usage, self._store, self._run, priced=self._priced)
        while self._budget is not None:
            before = time.monotonic()
            with suppress(StoreUnavailable):
                async with self.writing:
                    total = await self._thread(load)
                    self._budget.learn(total.without(self._own))
            seconds = time.monotonic() - before
            await asyncio.sleep(max(_LOOK_SECONDS, _LOOK_FACTOR * seconds))


def _load_usage(store: Store, run: str, *, priced: bool) -> Used:
    """Usage of the finished attempts of a run, by a single query."""
    usage = store.load_usage(run, priced=priced)
    return Used(
        Sum(usage.tokens, usage.cost),
        Sum(usage.most_tokens, usage.most_cost),
        usage.attempt_count,
        usage.unknown,
    )


def _plus_attempt(used: Used, tokens: float | None, cost: float | None, priced: bool) -> Used:
    """The usage with another attempt, counted as the store counts."""
    if tokens is None or (cost is None and priced):
        return replace(used, unknown=used.unknown + 1)
    if not tokens and not cost:
        return used
    attempt = Sum(tokens, cost or 0.0)
    return replace(
        used,
        total=used.total + attempt,
        largest=used.largest.larger(attempt),
        attempt_count=used.attempt_count + 1,
    )
