"""What an agent is to the runner: a session for every attempt, turns exchanged, then closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from passhat.outcomes import FailureCategory
from passhat.suites.base import Turn

__all__ = ["Agent", "AgentFault", "AttemptInfo", "Session"]


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """What an agent may know of the attempt it is in."""

    task: str
    number: int
    seed: int
    temperature: float | None = None


class AgentFault(Exception):
    """The agent did something that fails its attempt; the category says what."""

    def __init__(self, category: FailureCategory, detail: str) -> None:
        super().__init__(detail)
        self.category = category
        self.detail = detail


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
