"""Calls to one provider: how often, when to wait, when to try again, when to give up.

All attempts of a process share one :class:`Provider` per API and address. A provider that asks one
attempt to wait has asked all of them: that, and the rate, is in its ``pace``, which may be shared
with other processes. Waiting is never on the agent's clock, and a call that is made again is
counted as a retry, never as an attempt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import TypeVar

from passhat.agents.base import AgentFault, Meter, ProviderFault, Usage
from passhat.agents.pacing import Pace
from passhat.agents.provider_errors import Kind, Trouble, read_trouble
from passhat.errors import RunStopped
from passhat.stats.outcomes import FailureCategory, MissingReason

__all__ = ["Provider"]

T = TypeVar("T")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_SOON, _LONGEST_SOON = 0.05, 5.0
_LONGEST_ASKED = 300.0
"""A provider that asks for a longer wait than this is not waited for."""


class Provider:
    """One API at one address.

    Parameters
    ----------
    kind : str
        ``openai`` or ``anthropic``; the word that ``--rate`` knows it by.
    address : str
        Where it is, for messages.
    sdk : module
        The SDK whose errors are read.
    retries : int
        How often one call is made again before its attempt is given up as missing.

    Attributes
    ----------
    pace : Pace
        When calls may be made.
    """

    def __init__(self, kind: str, address: str, sdk: ModuleType, retries: int = 8) -> None:
        self.kind = kind
        self.address = address
        self.retries = retries
        self.pace = Pace()
        self._sdk = sdk
        self._dice = random.Random()

    def limit(self, per_second: float) -> None:
        """Ask at most so often from now on."""
        self.pace.limit(per_second)

    async def call(
        self,
        work: Callable[[], Awaitable[tuple[T, Usage]]],
        meter: Meter,
        worst: Usage,
        *,
        model: str,
    ) -> T:
        """Make a call, again if need be; what it used goes on the meter.

        Raises
        ------
        ProviderFault
            Retries are used up, or a cap is: the attempt is missing.
        AgentFault
            The request itself is not taken: the attempt fails.
        RunStopped
            No attempt could succeed: the key or the model is wrong.
        """
        tried = 0
        while True:
            with meter.off_the_clock():
                await self.pace.turn()
            await meter.reserve(worst)
            try:
                answer, used = await work()
            except Exception as error:
                trouble = read_trouble(self._sdk, error)
            except BaseException:
                meter.settle(Usage())  # given up in the middle: nobody knows what it cost
                raise
            else:
                self.pace.note_answer()
                meter.settle(used)
                return answer
            if trouble.may_be_billed:
                meter.settle(Usage())
            else:
                meter.forgo()
            self._judge(trouble, model, tried)
            tried += 1
            meter.retries += 1
            await self._back_off(trouble, tried, meter)

    def _judge(self, trouble: Trouble, model: str, tried: int) -> None:
        """Raise what the trouble means, unless the call is worth another try."""
        if trouble.kind is Kind.REFUSED:
            raise RunStopped(
                f"{self.kind}:{model} at {self.address} cannot be used. {trouble.detail}",
                hint="Check the key, the model's name and the account; the same command goes on.",
            )
        if trouble.kind is Kind.REJECTED:
            if (
                not self.pace.answered
            ):  # not one call was ever taken: it is the set-up, not the agent
                raise RunStopped(
                    f"{self.kind}:{model} does not take the first request. {trouble.detail}",
                    hint="Check the model's name and settings such as --temperature.",
                )
            raise AgentFault(FailureCategory.AGENT_ERROR, trouble.detail)
        busy = trouble.kind is Kind.BUSY
        asked = trouble.wait or 0.0
        if tried >= self.retries or asked > _LONGEST_ASKED:
            reason = MissingReason.RATE_LIMIT if busy else MissingReason.INFRASTRUCTURE
            given = f"asked to wait {asked:,.0f} s" if asked > _LONGEST_ASKED else "given up"
            raise ProviderFault(reason, f"{given} after {tried} retries; {trouble.detail}")

    async def _back_off(self, trouble: Trouble, tried: int, meter: Meter) -> None:
        """Wait as long as asked to, or longer each time; jitter keeps attempts from coming at once.

        A busy provider makes every attempt wait; a broken call only its own.
        """
        grown = 2.0 ** (tried - 1)
        if trouble.wait is None:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * grown) * self._dice.uniform(0.5, 1)
        else:  # "at once" is taken for soon: a provider that says so may say so for long
            pause = max(trouble.wait, min(_LONGEST_SOON, _SOON * grown))
        if trouble.kind is Kind.BUSY:
            self.pace.hold(pause)
        else:
            with meter.off_the_clock():
                await asyncio.sleep(pause)
