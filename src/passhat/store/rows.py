"""What is written down about a run and about an attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from passhat.protocol import Protocol, Question
from passhat.stats.outcomes import Verdict
from passhat.suites.base import Judgement, Task, fingerprint

__all__ = [
    "AttemptRecord",
    "AttemptSet",
    "Ended",
    "JudgementSource",
    "RunRecord",
    "StoredJudgement",
    "StoredRun",
    "protocol_from",
]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run before its first attempt: never changed afterwards.

    The planned number of attempts is kept beside the protocol, since a run may be extended. The
    ``id`` follows from agent, protocol and the choice of tasks, so that the same command finds the
    same run again, and a run of some tasks is not mixed with one of all.
    """

    agent: str
    protocol: Protocol
    tasks: Sequence[Task]
    name: str = ""
    selection: str = ""

    @property
    def id(self) -> str:
        parts = [self.agent, self.protocol.digest, self.name]
        return fingerprint(parts + [self.selection] * bool(self.selection))[:10]


class AttemptSet:
    """Which attempts there are; a bit for each, so that a million of them stay small."""

    __slots__ = ("_numbers",)

    def __init__(self, attempts: Iterable[tuple[str, int]] = ()) -> None:
        numbers: dict[str, int] = {}
        for task, number in attempts:
            numbers[task] = numbers.get(task, 0) | 1 << number
        self._numbers = numbers

    @classmethod
    def of_bits(cls, numbers: dict[str, int]) -> AttemptSet:
        """From bits: bit i of a task's number is attempt i."""
        made = cls()
        made._numbers = numbers
        return made

    def __contains__(self, attempt: tuple[str, int]) -> bool:
        task, number = attempt
        return bool(self._numbers.get(task, 0) >> number & 1)

    def __len__(self) -> int:
        return sum(numbers.bit_count() for numbers in self._numbers.values())

    def left(self, tasks: Iterable[str], attempts: int) -> int:
        """How many of so many attempts at each of these tasks are not there."""
        planned = (1 << attempts + 1) - 2
        return sum((planned & ~self._numbers.get(task, 0)).bit_count() for task in tasks)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A finished attempt; ``None`` is "not recorded", never zero."""

    task: str
    number: int
    judgement: Judgement
    seed: int | None = None
    seconds: float | None = None
    steps: float | None = None
    tokens: float | None = None
    cost: float | None = None
    retries: int = 0
    answer_hash: str = ""
    leak: str = ""
    """The id of another attempt whose reference the agent said; empty when there was none."""
    transcript: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a list of runs shows of one."""

    id: str
    agent: str
    suite: str
    tasks: int
    planned: int
    attempts: int
    missing: int
    passed: int
    started: str
    status: str

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def protocol_from(data: Mapping[str, object]) -> Protocol:
    """A protocol from what ``to_dict`` wrote."""
    fields = dict(data)
    question = fields.pop("question", None)
    decoding = fields.pop("decoding", None)
    return Protocol(
        **fields,  # type: ignore[arg-type]
        decoding=decoding if isinstance(decoding, dict) else {},
        question=Question(**question) if isinstance(question, dict) else Question(),
    )


class JudgementSource(StrEnum):
    """Who said it: the judge at the time, the judge again, or a person."""

    JUDGE = "judge"
    REGRADE = "regrade"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """One word on an attempt; later ones stand beside the first, never in its place."""

    verdict: Verdict
    why: str
    detail: str
    source: JudgementSource
    at: str = ""
    judge_fingerprint: str = ""

    def __str__(self) -> str:
        reason = ": ".join(part for part in (self.why, self.detail) if part)
        return f"{self.verdict}, {reason}" if reason else str(self.verdict)


@dataclass(frozen=True, slots=True)
class Ended:
    """How one stored attempt ended, for showing it.

    ``verdict``, ``why`` and ``detail`` are the newest word; ``said`` holds all of them, the first
    one first.
    """

    task: str
    number: int
    verdict: Verdict
    why: str
    detail: str
    seconds: float | None
    steps: float | None
    transcript: Sequence[Mapping[str, str]] = ()
    said: Sequence[StoredJudgement] = ()
    seed: int | None = None
