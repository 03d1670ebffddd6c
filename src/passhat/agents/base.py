"""What an agent is to the runner: a session for every attempt, turns exchanged, then closed.

A session that knows what it uses says so on the attempt's :class:`Meter`, before and after every
call that costs something. Others may simply have a ``usage``. An agent that holds something open
for all its sessions may have ``async def close()``; the runner calls it once at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn, WorldFault

__all__ = [
    "Agent",
    "AgentFault",
    "AttemptInfo",
    "Clock",
    "Meter",
    "ProviderFault",
    "Session",
    "Usage",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money; ``None`` is "not recorded", never zero."""

    tokens: float | None = None
    cost: float | None = None


class Clock(Protocol):
    """The clock of an attempt's limits."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Meter:
    """What one attempt uses: tokens, money, and calls made again for faults that are ours.

    Around every call: ``reserve`` the most it can use, then ``settle`` what it did use, or
    ``forgo`` it when it was refused and cost nothing. This one only counts; the runner's, under a
    cap, may let ``reserve`` wait or refuse.
    """

    __slots__ = ("_clock", "_cost", "_tokens", "_used", "retries")

    def __init__(self) -> None:
        self.retries = 0
        self._used = False
        self._tokens: float | None = 0
        self._cost: float | None = 0.0
        self._clock: Clock | None = None

    async def reserve(self, worst: Usage) -> None:
        """Before a call: the most it can use. May raise :class:`ProviderFault`."""
        del worst

    def settle(self, used: Usage) -> None:
        """After a call: what it used. What is not known makes the attempt's sum unknown."""
        self._used = True
        self._tokens = _sum(self._tokens, used.tokens)
        self._cost = _sum(self._cost, used.cost)

    def forgo(self) -> None:
        """After a call that was refused: it used nothing."""
        self._used = True

    @property
    def usage(self) -> Usage:
        """The attempt's sum so far; nothing recorded when nothing was ever reported."""
        return Usage(self._tokens, self._cost) if self._used else Usage()

    def timed_by(self, clock: Clock) -> None:
        """Called by the runner: whose clock stands still while the attempt waits for us."""
        self._clock = clock

    @contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """Time in here is not the agent's: a rate limit, a cap, another party's turn."""
        if self._clock is None:
            yield
            return
        self._clock.pause()
        try:
            yield
        finally:
            self._clock.resume()


def _sum(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """What an agent may know of the attempt it is in."""

    task: str
    number: int
    seed: int
    temperature: float | None = None
    top_p: float | None = None
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)


class AgentFault(Exception):
    """The agent did something that fails its attempt; the category says what."""

    def __init__(self, category: FailureCategory, detail: str) -> None:
        super().__init__(detail)
        self.category = category
        self.detail = detail


class ProviderFault(WorldFault):
    """Whoever runs the model could not serve us: the attempt is missing, not failed."""


class Session(Protocol):
    """One attempt's conversation; nothing of it outlives ``close``."""

    async def answer(self, turn: Turn) -> str:
        """The agent's answer. May raise AgentFault; anything else it raises is an exception."""

    async def close(self) -> None:
        """End it, whatever state it is in. Must not wait for the agent."""


class Agent(Protocol):
    """What is being evaluated.

    An agent may have ``async check()``, called once before the first attempt: what it raises ends
    the run before it begins. One that holds something open for a whole run may have
    ``async close()``, called when the run ends.
    """

    @property
    def name(self) -> str: ...

    async def session(self, attempt: AttemptInfo) -> Session:
        """A new conversation that knows nothing of any earlier one."""
