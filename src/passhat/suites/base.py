"""What a suite is: tasks, a fresh world for every attempt, and a judge.

The runner knows nothing else. One attempt is a conversation between an agent and an
:class:`Episode`: the episode speaks first, the agent answers, the episode replies or ends, and then
judges what has become of its world.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from passhat.outcomes import FailureCategory, MissingReason, Verdict

__all__ = ["Episode", "Judgement", "Suite", "Task", "Turn", "fingerprint"]


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to solve."""

    id: str
    prompt: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent hears: the user's words, or what a tool gave back."""

    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an attempt came to, and why."""

    verdict: Verdict
    why: str = ""
    detail: str = ""

    @classmethod
    def passed(cls) -> Judgement:
        return cls(Verdict.PASSED)

    @classmethod
    def failed(cls, category: FailureCategory, detail: str = "") -> Judgement:
        return cls(Verdict.FAILED, str(category), detail)

    @classmethod
    def missing(cls, reason: MissingReason, detail: str = "") -> Judgement:
        return cls(Verdict.MISSING, str(reason), detail)


class Episode(Protocol):
    """A fresh world for one attempt.

    Each method may also be ``async``: a world that waits for a process or a model does not hold up
    other attempts. An episode that holds something open may have ``close()``; it is always called.
    """

    def open(self) -> Turn | Awaitable[Turn]:
        """The first words to the agent."""

    def reply(self, answer: str) -> Turn | Awaitable[Turn | None] | None:
        """What follows the agent's answer; ``None`` when the conversation is over."""

    def judge(self) -> Judgement | Awaitable[Judgement]:
        """Decide, once it is over. An exception here is the judge's fault, not the agent's."""


class Suite(Protocol):
    """A set of tasks with their world and their judge.

    It may also have ``settle(settings)``, to be told what was asked for; ``max_steps``, its usual
    limit; ``slow``, the missing reason when its world gives no answer in time; and an async
    ``close()``, called when a run ends.
    """

    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> Sequence[Task]: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever a task changes."""

    @property
    def judge_fingerprint(self) -> str:
        """Changes whenever the judge does."""

    def episode(self, task: Task, seed: int) -> Episode | Awaitable[Episode]:
        """A new world, with nothing in it of any earlier attempt."""


def fingerprint(data: object) -> str:
    """Sixteen hexadecimal digits over plain data."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
