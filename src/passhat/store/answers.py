"""What the store answers to pages: a run, a task, an attempt, each with no more than is shown."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.stats.outcomes import Verdict

__all__ = [
    "AttemptLine",
    "Group",
    "Place",
    "RunCounts",
    "RunHead",
    "TaskCounts",
    "Wanted",
    "Word",
]

Place = tuple[int, int]
"""A task's short number and an attempt's number: where an attempt stands in the order of a run."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """What is known of a run without counting; ``version`` changes when anything else may have."""

    key: int
    id: str
    agent: str
    suite: str
    name: str
    planned: int
    started: str
    last: str
    """When its newest attempt finished; empty before the first."""
    open: bool
    """Whether attempts are being made, or were left behind by a runner that is gone."""
    judged: int = 0
    """The newest later judgement of any of its attempts; 0 when there is none."""

    @property
    def version(self) -> str:
        return f"{self.planned}/{self.last}/{int(self.open)}/{self.judged}"


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many tasks and finished attempts a run has."""

    tasks: int = 0
    attempts: int = 0
    passed: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """One task: attempts with a verdict, passed, and without a verdict."""

    key: int
    task: str
    labels: str
    n: int
    c: int
    missing: int


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts that ended in the same way, and what they took together; None is not recorded."""

    verdict: Verdict
    why: str
    attempts: int
    seconds: float | None
    steps: float | None
    tokens: float | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One finished attempt as a line."""

    place: Place
    task: str
    number: int
    verdict: Verdict
    why: str
    detail: str
    steps: float | None
    seconds: float | None
    tokens: float | None
    cost: float | None
    seed: int | None
    finished: str

    def to_dict(self) -> dict[str, object]:
        """The words that ``passhat export`` uses."""
        failed, missing = self.verdict is Verdict.FAILED, self.verdict is Verdict.MISSING
        return {
            "task": self.task,
            "attempt": self.number,
            "verdict": str(self.verdict),
            "category": self.why if failed else None,
            "reason": self.why if missing else None,
            "detail": self.detail or None,
            "steps": self.steps,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "cost": self.cost,
            "seed": self.seed,
            "finished": self.finished,
        }


@dataclass(frozen=True, slots=True)
class Word:
    """One judgement of an attempt: by the judge, by the judge again (regrade), or by a person."""

    source: str
    verdict: Verdict
    why: str
    detail: str
    at: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which attempts of a run: all, those with a verdict or a word, or those of one task."""

    verdict: Verdict | None = None
    why: str = ""
    task: int | None = None
