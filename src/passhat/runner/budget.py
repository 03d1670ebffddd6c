"""Caps on money and tokens that hold: the cost of attempts in flight is reserved in advance.

At every moment: what was spent, plus what attempts in flight may still spend, is within the cap.

- **An attempt starts** only when its reservation fits. Once attempts were seen, that is one and a
  half times the largest of them, and the most that one more call can use, so that its last call
  still fits. Before, it is ``max_steps`` calls of ``max_output_tokens`` each, at the model's price,
  with 4,000 tokens of input; while nothing is known and not even that fits, one attempt alone may
  use what is left.
- **A call starts** only when the most it can use fits into its attempt's reservation: one token of
  input for every byte of the request, and ``max_output_tokens`` of output. Otherwise the
  reservation grows, if the cap allows it, or waits for other attempts to end. When all of them
  wait, the call is not made and its attempt is missing (``budget``).
- **A call whose use is unknown** (given up in the middle, or a server that does not count)
  has used the most that it could.

The cap holds for the whole run: what the store already has of it counts, and so does what other
runners of the same run finish meanwhile (:mod:`passhat.runner.spending` looks now and then).
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Self

from passhat.agents.base import Meter, ProviderFault, Usage
from passhat.stats.outcomes import MissingReason

_HEADROOM = 1.5
_ROUNDING = 1e-9
"""Sums of many small amounts of money are equal up to this."""


@dataclass(frozen=True, slots=True)
class Sum:
    """An amount of tokens and of money."""

    tokens: float = 0.0
    cost: float = 0.0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.tokens - other.tokens, self.cost - other.cost)

    def times(self, factor: float) -> Sum:
        return Sum(self.tokens * factor, self.cost * factor)

    def beyond(self, other: Sum) -> Sum:
        """The part of this amount that exceeds the other."""
        return Sum(max(0.0, self.tokens - other.tokens), max(0.0, self.cost - other.cost))

    def larger(self, other: Sum) -> Sum:
        return Sum(max(self.tokens, other.tokens), max(self.cost, other.cost))

    def smaller(self, other: Sum) -> Sum:
        return Sum(min(self.tokens, other.tokens), min(self.cost, other.cost))

    def within(self, cap: Sum) -> bool:
        return self.tokens <= cap.tokens and self.cost <= cap.cost + _ROUNDING


@dataclass(frozen=True, slots=True)
class Used:
    """Usage of finished attempts, and the number of attempts with unknown usage.

    ``attempt_count`` counts those that used anything, ``largest`` is the largest of them.
    """

    total: Sum = field(default_factory=Sum)
    largest: Sum = field(default_factory=Sum)
    attempt_count: int = 0
    unknown: int = 0

    def without(self, other: Used) -> Used:
        """The rest after subtracting the attempts of another; never negative."""
        return Used(
            self.total.beyond(other.total),
            self.largest,
            max(0, self.attempt_count - other.attempt_count),
            max(0, self.unknown - other.unknown),
        )


class Budget:
    """A cap, and the amounts of it that are spent and reserved.

    ``first`` is what an attempt may use as long as none was seen, ``before`` what the run used
    earlier, and elsewhere.
    """

    def __init__(
        self,
        *,
        cost: float | None = None,
        tokens: float | None = None,
        first: Sum,
        before: Used | None = None,
    ) -> None:
        self.cap = Sum(math.inf if tokens is None else tokens, math.inf if cost is None else cost)
        self.exhausted = False
        self.cut_off = 0
        self.overrun = 1.0
        self._first = first
        self._call = Sum()
        self._largest = Sum()
        self._reserved = Sum()
        self._in_flight = 0
        self._waiting = 0
        self._changed: asyncio.Future[None] | None = None
        self._spent_here = self._spent_elsewhere = Sum()
        self._made_here = self._made_elsewhere = 0
        self.learn(before or Used())

    @property
    def spent(self) -> Sum:
        """The amount that the run has used so far, as far as is known here."""
        return self._spent_here + self._spent_elsewhere

    @property
    def attempt_count(self) -> int:
        """How many attempts used that."""
        return self._made_here + self._made_elsewhere

    def learn(self, elsewhere: Used) -> None:
        """All that was used by attempts which were not made here, before or by other runners."""
        self._largest = self._largest.larger(elsewhere.largest)
        self._made_elsewhere = elsewhere.attempt_count
        per_attempt = self._largest.times(_HEADROOM) if self.attempt_count else self._first
        self._spent_elsewhere = elsewhere.total + per_attempt.times(elsewhere.unknown)

    @property
    def need(self) -> Sum:
        """The amount that must be free for another attempt to start."""
        return self._largest.times(_HEADROOM) + self._call if self.attempt_count else self._first

    def call_of(self, most: Sum) -> None:
        """A call that can use so much is about to be made."""
        self._call = self._call.larger(most)

    async def admit(self) -> _Capped | None:
        """Room for another attempt, as soon as there is; ``None`` when there will not be."""
        while not self.exhausted:
            need = self.need
            if self._fits(need) and not self._waiting:  # attempts in flight come first
                return self._open_account(need)
            if self._in_flight == 0:
                left = self.cap - self.spent
                if not self.attempt_count and left.tokens > 0 and left.cost > 0:
                    # The first attempt, alone with the rest of the cap.
                    return self._open_account(left.smaller(self._first))
                self.exhausted = True
                break
            await self._change()
        return None

    async def grow(self, more: Sum) -> bool:
        """More for an attempt in flight; waits for others, unless all of them wait, too."""
        while not self._fits(more):
            if self._waiting + 1 >= self._in_flight:
                return False
            self._waiting += 1
            try:
                await self._change()
            finally:
                self._waiting -= 1
        self._reserved += more
        return True

    def spend(self, amount: Sum) -> None:
        """Move an amount from reserved to spent."""
        self._reserved -= amount
        self._spent_here += amount

    def overspend(self, amount: Sum) -> None:
        """Something was spent that had not been reserved."""
        self._spent_here += amount

    def end_attempt(self, unused: Sum, used: Sum) -> None:
        """An attempt is over: free the rest of its reservation."""
        self._reserved -= unused
        self._in_flight -= 1
        if used != Sum():  # an attempt without a call is no evidence for the next
            self._made_here += 1
            self._largest = self._largest.larger(used)
        self._tell()

    def expected(self, attempts: int) -> Sum:
        """Expected usage of more attempts, by the average of those made."""
        per_attempt = (
            self.spent.times(1 / self.attempt_count) if self.attempt_count else self._first
        )
        return per_attempt.times(attempts)

    def _fits(self, amount: Sum) -> bool:
        return (self.spent + self._reserved + amount).within(self.cap)

    def _open_account(self, amount: Sum) -> _Capped:
        self._reserved += amount
        self._in_flight += 1
        return _Capped(self, amount)

    async def _change(self) -> None:
        """Wait until something was given back or another caller began to wait."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def _tell(self) -> None:
        waiter, self._changed = self._changed, None
        if waiter is not None:
            waiter.set_result(None)


class Account(Meter):
    """An attempt's meter, without a cap; to be used in a ``with``."""

    __slots__ = ()

    @property
    def refused_at_once(self) -> bool:
        """Whether the cap left no room for a single call of the attempt."""
        return False

    def abandon(self) -> bool:
        """The worker is gone; returns whether something was or may have been used."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _Capped(Account):
    """An attempt's meter under a cap, with the reservation that it draws on."""

    __slots__ = ("_budget", "_pending", "_refused", "_reserved", "_spent")

    def __init__(self, budget: Budget, reserved: Sum) -> None:
        super().__init__()
        self._budget = budget
        self._reserved = reserved
        self._spent = Sum()
        self._pending = Sum()
        self._refused = False

    @property
    def refused_at_once(self) -> bool:
        return self._refused and self._spent == Sum()

    def abandon(self) -> bool:
        if self._pending != Sum():
            self.settle(Usage())  # unknown
        return self._spent != Sum()

    async def reserve(self, worst: Usage) -> None:
        bound = Sum(worst.tokens or 0.0, worst.cost or 0.0)
        self._pending = bound.times(self._budget.overrun)
        self._budget.call_of(self._pending)
        shortfall = self._pending.beyond(self._reserved)
        if shortfall == Sum():
            return
        with self.off_the_clock():
            is_granted = await self._budget.grow(shortfall)
        if not is_granted:
            self._pending = Sum()
            self._refused = True
            self._budget.exhausted = True
            self._budget.cut_off += self._spent != Sum()
            raise ProviderFault(MissingReason.BUDGET, "the next call could pass the cap")
        self._reserved += shortfall

    def settle(self, usage: Usage) -> None:
        super().settle(usage)
        amount = Sum(
            self._pending.tokens if usage.tokens is None else usage.tokens,
            self._pending.cost if usage.cost is None else usage.cost,
        )
        if self._pending.tokens:
            # A server that reports more than the bound is believed, and expected to do so again.
            factor = self._budget.overrun * amount.tokens / self._pending.tokens
            self._budget.overrun = max(self._budget.overrun, factor)
        self._pending = Sum()
        from_reserve = amount.smaller(self._reserved)
        self._budget.spend(from_reserve)
        self._budget.overspend(amount - from_reserve)
        self._reserved -= from_reserve
        self._spent += amount

    def forgo(self) -> None:
        super().forgo()
        self._pending = Sum()

    def __exit__(self, *_: object) -> None:
        self._budget.end_attempt(self._reserved, self._spent)
