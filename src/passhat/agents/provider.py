"""What went wrong with a call to a model's API, and whose business it is.

    the key, the account or the model is wrong   every attempt would end so: the run stops
    asked too often, or overloaded               ours: wait, all attempts of the provider together
    broken, unreachable, nonsense                ours: try again
    this request is not taken                    the agent's: its attempt fails

The official SDKs of OpenAI and Anthropic have the same shapes of errors, so one reading does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from types import ModuleType
from typing import Any, TypeVar

from passhat.agents.base import AgentFault, Meter, ProviderFault, Usage
from passhat.agents.pacing import Pace
from passhat.errors import RunStopped
from passhat.stats.outcomes import FailureCategory, MissingReason

__all__ = ["Kind", "Provider", "Trouble", "read_trouble", "retry_after"]

_REFUSED = (401, 402, 403, 404)
_BUSY = (429, 503, 529)
_AGAIN = (408, 409, 425)


class Kind(Enum):
    """What follows from a trouble."""

    REFUSED = "the run stops"
    BUSY = "wait"
    BROKEN = "try again"
    REJECTED = "the attempt fails"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One call that did not work.

    ``wait`` is how long the provider asks us to wait. ``may_be_billed`` is a call of which nobody
    knows whether it was served.
    """

    kind: Kind
    detail: str
    wait: float | None = None
    may_be_billed: bool = False


def read_trouble(sdk: ModuleType, error: Exception) -> Trouble:
    """Read an error of an SDK, or of reading what the SDK returned."""
    if isinstance(error, sdk.APIStatusError):
        return _from_status(error)
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        because = f": {cause}" if cause is not None and str(cause) else ""
        # Only a connection that never stood is sure to have cost nothing.
        never_stood = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
        detail = f"{str(error).rstrip('.')}{because}"
        return Trouble(Kind.BROKEN, detail, may_be_billed=not never_stood)
    detail = f"an answer that cannot be read ({type(error).__name__}: {error})"
    return Trouble(Kind.BROKEN, detail, may_be_billed=True)


def _from_status(error: Any) -> Trouble:
    status = int(error.status_code)
    detail = f"HTTP {status}: {_message(error)}"
    spent = "insufficient_quota" in str(getattr(error, "code", "") or "")
    if status in _REFUSED or spent:
        return Trouble(Kind.REFUSED, detail)
    if status in _BUSY:
        return Trouble(Kind.BUSY, detail, wait=retry_after(error.response.headers))
    if status in _AGAIN or status >= 500:
        return Trouble(Kind.BROKEN, detail, wait=retry_after(error.response.headers))
    return Trouble(Kind.REJECTED, detail)


def _message(error: Any) -> str:
    """The provider's own sentence, without the SDK's wrapping."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        if isinstance(inner, str):
            return inner
    return str(error.message)[:300]


def retry_after(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds to wait by a ``Retry-After`` header: seconds, or a date.

    Examples
    --------
    >>> retry_after({"retry-after": "1.5"})
    1.5
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> retry_after({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, noon)
    30.0
    >>> retry_after({"retry-after": "soon"}) is None
    True
    >>> retry_after({"retry-after-ms": "250"})
    0.25
    """
    word = headers.get("retry-after")
    if word is None:
        exact = headers.get("retry-after-ms", "")
        return float(exact) / 1000 if exact.isdecimal() else None
    try:
        seconds = float(word)
    except ValueError:
        try:
            when = parsedate_to_datetime(word)
        except ValueError:
            return None
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None


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
