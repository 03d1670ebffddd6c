"""What a suite is: tasks, a fresh world for every attempt, and a judge.

The runner knows nothing else. One attempt is a conversation between an agent and an
:class:`Episode`: the episode speaks first, the agent answers, the episode replies or ends, and then
judges what has become of its world.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict

__all__ = [
    "Episode",
    "Judgement",
    "Suite",
    "Task",
    "ToolSpec",
    "Turn",
    "WorldFault",
    "fingerprint",
]


_REFERENCE = "Reference of this conversation: "


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to solve."""

    id: str
    prompt: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as models with tool calling want it: a name, a sentence, a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent hears: the user's words, or what a tool gave back.

    Parameters
    ----------
    text : str
        Everything, for agents that read plain text.
    system : str, optional
        For agents with native tool calling, in the first turn: policy and instructions, without
        the rules of the text form.
    said : str, optional
        The user's words alone.
    result : str, optional
        What a tool gave back, alone. ``text`` begins with ``Tool error: `` where it failed.
    tools : tuple of ToolSpec
        In the first turn: what can be called. A suite that offers tools reads calls in the form of
        ``passhat.suites.orderdesk.calls``, and words to the user as a call of ``respond``.
    """

    text: str
    system: str | None = None
    said: str | None = None
    result: str | None = None
    tools: tuple[ToolSpec, ...] = ()

    def with_reference(self, reference: str) -> Turn:
        """The same words under a reference, as a desk's tickets have one."""
        line = f"{_REFERENCE}{reference}\n\n"
        system = None if self.system is None else line + self.system
        return replace(self, text=line + self.text, system=system)

    def without_reference(self) -> Turn:
        """The words as the episode said them, if a reference stands above them."""
        if not self.text.startswith(_REFERENCE):
            return self
        return replace(self, text=self.text.partition("\n\n")[2])


class WorldFault(Exception):
    """Something of ours broke, and a suite or an agent knows which: the attempt is missing."""

    def __init__(self, reason: MissingReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


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
    One whose tools the agent calls by itself, past the conversation, may have
    ``report_calls(report)``: ``report(call, result)`` puts a call on record as a step, and says
    whether there are steps left.
    """

    def open(self) -> Turn | Awaitable[Turn | None] | None:
        """The first words to the agent; ``None`` when it was over before it was asked."""

    def reply(self, answer: str) -> Turn | Awaitable[Turn | None] | None:
        """What follows the agent's answer; ``None`` when the conversation is over."""

    def judge(self) -> Judgement | Awaitable[Judgement]:
        """Decide, once it is over. An exception here is the judge's fault, not the agent's."""


class Suite(Protocol):
    """A set of tasks with their world and their judge.

    A suite whose tasks are conversations may set ``takes_reference``: its first turns then carry a
    reference by which a leak between attempts is found out.
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
