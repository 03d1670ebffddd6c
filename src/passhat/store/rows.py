"""Records of a run and of its attempts, as they are stored."""

from __future__ import annotations

import functools
import json
import operator
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from passhat._serialize import Plain
from passhat.errors import PasshatError, ReadError
from passhat.protocol import Protocol, Question
from passhat.stats.outcomes import Verdict
from passhat.store.database import without_password
from passhat.suites.base import Judgement, Task, fingerprint


@contextmanager
def damage_reported(place: str) -> Iterator[None]:
    """Turn errors from a damaged value (bad JSON, an unknown verdict) into ReadError."""
    try:
        yield
    except PasshatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, zlib.error) as error:
        raise ReadError(
            f"holds a value that cannot be read ({type(error).__name__}: {error}).",
            source=without_password(place),
            hint="The store is damaged. Run passhat store check for details, or restore a backup.",
        ) from None


GATE_PREFIX, BISECT_PREFIX = "gate:", "bisect:"
FRESH_PREFIXES = (GATE_PREFIX, BISECT_PREFIX)
"""Names of runs that a gate or a search made begin with one; ``latest`` is none of them."""


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
    revision: str = ""
    """The state of the code, such as a commit; no part of the id."""
    started: str = ""
    """When it began, in UTC, if that was not now: of a run that is imported."""

    @property
    def id(self) -> str:
        parts = [self.agent, self.protocol.digest, self.name]
        return fingerprint(parts + [self.selection] * bool(self.selection))[:10]


@dataclass(frozen=True, slots=True)
class PlannedAttempts:
    """How many attempts are planned: the same number at every task, or a number for each.

    Attributes
    ----------
    each : int
        Attempts at every task; where they differ, the most at one task.
    by_task : mapping
        Attempts at each task, where they differ.
    source : mapping
        The run that they were taken from, and the metric they were chosen for.
    """

    each: int
    by_task: Mapping[str, int] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)

    def of(self, task: str) -> int:
        """Attempts at one task."""
        return self.by_task.get(task, self.each) if self.by_task else self.each

    @property
    def fewest(self) -> int:
        """The fewest attempts at one task."""
        return min(self.by_task.values(), default=self.each)

    def total(self, tasks: Iterable[str]) -> int:
        """Attempts at all of these tasks."""
        return sum(map(self.of, tasks))

    @property
    def text(self) -> str:
        """As JSON, for the store; empty where all tasks have the same number, of no source."""
        if not (self.by_task or self.source):
            return ""
        return json.dumps({"source": dict(self.source), "attempts": dict(self.by_task)})

    @classmethod
    def from_text(cls, text: str, each: int) -> PlannedAttempts:
        """Read the output of ``text``."""
        data = json.loads(text) if text else {}
        return cls(each, data.get("attempts", {}), data.get("source", {}))

    def add_to_protocol(self, protocol: Protocol) -> Protocol:
        """The protocol with the attempts: one number, or that they differ by task, and why."""
        attempts = None if self.by_task else self.each
        return replace(protocol, attempts=attempts, allocation=self.protocol_text)

    @property
    def protocol_text(self) -> str | None:
        """The protocol's entry on attempts that differ by task."""
        if not self.by_task:
            return None
        low, high = min(self.by_task.values()), max(self.by_task.values())
        earlier = self.source.get("id") or self.source.get("name") or "an earlier run"
        metric = self.source.get("metric")
        why = f" for {metric}" if metric else ""
        return f"{low} to {high} by task{why}, from run {earlier}"


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
        attempts = cls()
        attempts._numbers = numbers
        return attempts

    def __contains__(self, attempt: tuple[str, int]) -> bool:
        task, number = attempt
        return bool(self._numbers.get(task, 0) >> number & 1)

    def __len__(self) -> int:
        return sum(numbers.bit_count() for numbers in self._numbers.values())

    def common(self, tasks: Iterable[str]) -> int:
        """The numbers that all of these tasks have, as bits."""
        # ~0 has every bit: the start that takes none away.
        return functools.reduce(operator.and_, (self._numbers.get(task, 0) for task in tasks), ~0)

    def left(self, tasks: Iterable[str], planned: PlannedAttempts) -> int:
        """How many of the attempts planned for these tasks are not there."""
        # Attempts are numbered from 1: bits 1 to n are planned, and bit 0 is never set.
        return sum(
            ((1 << planned.of(task) + 1) - 2 & ~self._numbers.get(task, 0)).bit_count()
            for task in tasks
        )


class AttemptRecord(msgspec.Struct, frozen=True):
    """A finished attempt; ``None`` is "not recorded", never zero.

    A struct, because one is made for every attempt: a frozen dataclass with as many fields takes
    ten times as long, a twentieth of all that the runner does for an instant agent.
    """

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
    retry_reason: str = ""
    """Why a call was made again last; shown while the run goes on, not stored."""
    leak: str = ""
    """The id of another attempt whose reference the agent said; empty when there was none."""
    transcript: Sequence[Mapping[str, str]] = ()
    calls: CallRecords | None = None
    conversation: str = ""
    """The id that the agent gave to the conversation, or the reference that we put into it."""
    is_judged: bool = True
    """Whether a judge saw the attempt to its end; not stored."""


@dataclass(frozen=True, slots=True)
class CallRecords:
    """The calls to models of an attempt: counts for reports, and all calls as JSON.

    Attributes
    ----------
    answers : int
        Answers of the agent's models.
    cut, refused, filtered, empty : int
        How many of them ended at the token limit, refused, were filtered, or had no text.
    cut_at : int, optional
        The token limit at which answers were cut; the smallest of them.
    body : bytes
        All calls as a JSON array, redacted and size-capped.
    """

    answers: int
    cut: int
    cut_at: int | None
    refused: int
    filtered: int
    empty: int
    body: bytes
    served: tuple[tuple[str, str], ...] = ()
    """Name and fingerprint of each model that answered the agent, as its server states them."""


# The index attempts_ended has the word, and PostgreSQL refuses B-tree entries of over 2,704 bytes.
_LONGEST_WORD = 200


def finished_cells(record: AttemptRecord, now: str, run: int, task: int) -> tuple[Any, ...]:
    """The columns of a finished attempt, its place, and its packed transcript."""
    judgement = record.judgement
    why, detail = judgement.why, judgement.detail
    if len(why) > _LONGEST_WORD:  # cut for the index and continued in the detail
        why, detail = why[:_LONGEST_WORD], f"{why} {detail}"
    # A plain tuple: one that is put together of several takes twice as long.
    return (
        int(judgement.verdict),
        why,
        detail,
        record.seed,
        record.seconds,
        record.steps,
        record.tokens,
        record.cost,
        record.retries,
        record.answer_hash,
        now,
        record.leak or None,
        judgement.score,
        run,
        task,
        record.number,
        pack_transcript(record.transcript) if record.transcript else None,
    )


def call_cells(record: AttemptRecord) -> tuple[object, ...]:
    """The columns of an attempt's calls; empty where none are recorded."""
    calls = record.calls
    if calls is None:
        return ()
    return (
        *(calls.answers, calls.cut, calls.cut_at, calls.refused),
        *(calls.filtered, calls.empty, zlib.compress(calls.body, 1)),
    )


def origin_cells(record: AttemptRecord) -> tuple[object, ...]:
    """The models that answered an attempt and its conversation; empty where neither is known."""
    served = () if record.calls is None else record.calls.served
    if not served and not record.conversation:
        return ()
    return json.dumps(served) if served else "", record.conversation


@dataclass(frozen=True, slots=True)
class Origins:
    """Where a run's answers came from.

    Attributes
    ----------
    served : mapping
        Attempts by the models that answered them: pairs of name and fingerprint.
    contexts, distinct_contexts : int
        Attempts whose agent named its conversation, and how many names there are.
    references : int
        Attempts that carried a reference by which a leak is found out, and have no such name.
    """

    served: Mapping[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    contexts: int = 0
    distinct_contexts: int = 0
    references: int = 0


@dataclass(frozen=True, slots=True)
class CallCounts:
    """How the answers of a run's models ended."""

    answers: int = 0
    cut: int = 0
    cut_at: int | None = None
    cut_at_most: int | None = None
    refused: int = 0
    filtered: int = 0
    empty: int = 0


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as a list of runs shows it."""

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
    name: str = ""
    total: int = 0
    """Attempts that are planned, over all tasks."""
    allocation: str = ""
    """Attempts by task as JSON, where they differ; see :class:`PlannedAttempts`."""
    revision: str = ""
    """The state of the code that it was begun with; empty where it is not known."""

    @property
    def plan(self) -> PlannedAttempts:
        return PlannedAttempts.from_text(self.allocation, self.planned)

    @property
    def title(self) -> str:
        """How reports call it: its name (``passhat run --name``), or agent and id."""
        return self.name or f"{self.agent} {self.id}"

    @property
    def is_fresh(self) -> bool:
        """Whether a gate or a search made it: attempts at a few tasks, not a run of the suite."""
        return self.name.startswith(FRESH_PREFIXES)


def protocol_from(data: Mapping[str, object]) -> Protocol:
    """Read a protocol from the output of ``to_dict``."""
    # Fields that a protocol of an older version lacks get their defaults.
    fields = dict(data)
    question = fields.pop("question", None)
    decoding = fields.pop("decoding", None)
    return Protocol(
        **fields,  # type: ignore[arg-type]
        decoding=decoding if isinstance(decoding, dict) else {},
        question=Question(**question) if isinstance(question, dict) else Question(),
    )


class JudgementSource(StrEnum):
    """Source of a judgement: the judge at the time, the judge again, or a person."""

    JUDGE = "judge"
    REGRADE = "regrade"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class StoredJudgement:
    """A judgement of an attempt; later judgements are added, earlier ones stay."""

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


Place = tuple[int, int]
"""A task's short number and an attempt's number: the place of an attempt in the order of a run."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """A run without its counts; ``version`` changes when anything of the run may have changed."""

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
    total: int | None = None
    """Attempts planned over all tasks, where they differ by task."""
    revision: str = ""
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


def summarize_run(head: RunHead, counts: RunCounts, allocation: str = "") -> StoredRun:
    """A run with its counts and its status, as ``passhat runs`` lists it."""
    finished_count = counts.attempts
    # A run of which every attempt is missing shows nothing, however many were made.
    shows_something = not 0 < finished_count == counts.missing
    total = head.planned * counts.tasks if head.total is None else head.total
    if finished_count >= total and shows_something:
        status = "complete"
    else:
        status = "in progress" if head.open else "stopped"
    return StoredRun(
        *(
            head.id,
            head.agent,
            head.suite,
            counts.tasks,
            head.planned,
            finished_count,
            counts.missing,
        ),
        *(counts.passed, head.started, status, head.name, total, allocation, head.revision),
    )


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Counts of a task: attempts with a verdict, passed, and without a verdict."""

    key: int
    task: str
    labels: str
    n: int
    c: int
    missing: int


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts that ended in the same way, and their total measures; None is not recorded."""

    verdict: Verdict
    why: str
    attempts: int
    seconds: float | None
    steps: float | None
    tokens: float | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class AttemptLine(Plain):
    """A finished attempt as a line."""

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

    def _as_dict(self) -> dict[str, object]:
        """The attempt under the names that ``passhat export`` uses."""
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
class AttemptFilter:
    """A choice of attempts: all, by verdict or category, or those of a task."""

    verdict: Verdict | None = None
    why: str = ""
    task: int | None = None


_WORTH_PACKING = 400
"""Bytes; what is smaller takes longer to compress than to write."""


_encode = msgspec.json.Encoder().encode


def pack_transcript(transcript: Sequence[Mapping[str, str]]) -> bytes:
    """JSON; compressed, as lightly as SQLite's own pages make sensible, when it is not small."""
    body = _encode(transcript)
    return body if len(body) < _WORTH_PACKING else zlib.compress(body, level=1)


_TRANSCRIPT = msgspec.json.Decoder(list[dict[str, str]])


def unpack_transcript(body: bytes) -> Sequence[Mapping[str, str]]:
    """The transcript that :func:`pack_transcript` made these bytes of.

    Raises
    ------
    ReadError
        The bytes are damaged.
    """
    try:
        # No zlib stream begins with "[": the low half of its first byte is 8 (RFC 1950, 2.2).
        text = body if body.startswith(b"[") else zlib.decompress(body)
        return _TRANSCRIPT.decode(text)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ReadError(
            f"a transcript is damaged ({error}).",
            source="store",
            hint="Run passhat store check for details. Verdicts are stored separately.",
        ) from None
