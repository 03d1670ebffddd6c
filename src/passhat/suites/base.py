"""The contract of suites: tasks, a fresh :class:`Episode` per attempt, and a judge.

One attempt is a conversation between an agent and an episode: the episode opens it, the agent
answers, the episode replies or ends it, and then judges the outcome.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from passhat._plugins import Contract, not_written
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.stats.outcomes.rewards import REWARD_TOLERANCE

if TYPE_CHECKING:
    from passhat.judging.bench import JudgingChoice
    from passhat.suites.workspace.handle import Workspace

CallReport = Callable[[str, str], bool]
"""(a tool call, its result) to whether steps are left."""

_REFERENCE = "Reference of this conversation: "


@dataclass(frozen=True, slots=True)
class Task:
    """A task to solve."""

    id: str
    prompt: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """Result of checking a task before any attempt; one with problems cannot be attempted."""

    task: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as models with tool calling want it: a name, a sentence, a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


RUBRIC_BY = "rubric by"
"""Part of the name of a judge that is a model, followed by the words of the models."""


def _copy(data: Any) -> Any:
    """A copy of JSON data; read-only mappings, which ``deepcopy`` refuses, become dictionaries."""
    if isinstance(data, Mapping):
        return {key: _copy(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_copy, data))
    return data


@dataclass(frozen=True, slots=True)
class Turn:
    """A message to the agent: the user's text, or the result of a tool.

    Parameters
    ----------
    text : str
        Everything, for agents that read plain text.
    system : str, optional
        For agents with native tool calling, in the first turn: policy and instructions, without
        the rules of the text form.
    said : str, optional
        The user's message alone.
    result : str, optional
        The result of a tool, alone. ``text`` begins with ``Tool error: `` where it failed.
    messages : tuple of mapping
        In the first turn: an earlier conversation, as ``{"role", "content"}``; in ``text`` as well.
    images : tuple of str
        URLs or ``data:`` URLs of images that belong to the message.
    response_format : mapping, optional
        In the first turn: the form of the answer, as OpenAI writes it.
    tools : tuple of ToolSpec
        In the first turn: the tools. A suite that offers tools reads calls in the form of
        ``passhat.suites.tool_calls``, and messages to the user as a call of ``respond``.
    """

    text: str
    system: str | None = None
    said: str | None = None
    result: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    messages: tuple[Mapping[str, object], ...] = ()
    images: tuple[str, ...] = ()
    response_format: Mapping[str, object] | None = None

    def copy(self) -> Turn:
        """The message with tools and earlier messages of its own.

        An agent in this process may append to what it is given, and must not change what the next
        attempt at the task is given.
        """
        if not (self.tools or self.messages or self.response_format):
            return self
        tools = tuple(replace(tool, parameters=_copy(tool.parameters)) for tool in self.tools)
        messages = tuple(_copy(message) for message in self.messages)
        return replace(
            self, tools=tools, messages=messages, response_format=_copy(self.response_format)
        )

    def with_reference(self, reference: str) -> Turn:
        """The same message under a reference, such as a ticket number."""
        line = f"{_REFERENCE}{reference}\n\n"
        system = None if self.system is None else line + self.system
        return replace(self, text=line + self.text, system=system)

    def without_reference(self) -> Turn:
        """The message without its reference."""
        if not self.text.startswith(_REFERENCE):
            return self
        return replace(self, text=self.text.partition("\n\n")[2])


class WorldFault(Exception):
    """A fault that is not the agent's: the attempt is missing with this reason."""

    def __init__(self, reason: MissingReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Settings:
    """Options that only some suites use; ``None`` is not given."""

    tau2: str | None = None
    tau2_python: str | None = None
    user: str | None = None
    scorer: str | None = None
    max_steps: int | None = None
    attempt_seconds: float | None = None
    temperature: float | None = None
    keep_home: bool = False
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an attempt, with its category or reason and a detail.

    ``score`` is the graded result on [0, 1] beside the verdict; ``None`` where the verdict is all.
    ``expected`` is what the judge compared with, and ``got`` the part of the answer that it took,
    where that is not the whole last answer: text, or JSON for data and state. ``difference`` says
    what is wrong with it where ``expected`` is a rule (a schema, a pattern), not an answer.
    """

    verdict: Verdict
    why: str = ""
    detail: str = ""
    score: float | None = None
    expected: str = ""
    got: str = ""
    difference: str = ""

    def __post_init__(self) -> None:
        for name in ("why", "detail", "expected", "got", "difference"):
            if not isinstance(text := getattr(self, name), str):
                raise NoVerdict(
                    f"the judge returned a Judgement whose {name} is {_describe_result(text)}, "
                    "not text",
                    hint=f"Write str(...) around its {name}.",
                )

    @classmethod
    def passed(cls) -> Judgement:
        return _PASSED

    @classmethod
    def failed(cls, category: FailureCategory, detail: str = "") -> Judgement:
        return cls(Verdict.FAILED, str(category), detail)

    @classmethod
    def missing(cls, reason: MissingReason, detail: str = "") -> Judgement:
        return cls(Verdict.MISSING, str(reason), detail)

    @classmethod
    def from_result(cls, result: object, wrong: str = "") -> Judgement:
        """The judgement that a judge's function returns: itself, true or false, or a score.

        A number is a score on [0, 1], of which only 1 passes. ``wrong`` is the detail of a failure.

        Raises
        ------
        NoVerdict
            It is something else. Its truth value is no verdict: ``(False, "why")`` is true.
        """
        if isinstance(result, Judgement):
            return result
        if getattr(result, "dtype", None) is not None and getattr(result, "shape", None) == ():
            result = result.item()  # type: ignore[attr-defined] # a scalar of numpy
        if not isinstance(result, Real):
            raise NoVerdict(
                f"the judge returned {_describe_result(result)}; a verdict is True, False or a "
                "score from 0 to 1",
                hint="Return True or False from the judge.",
            )
        score = float(result)
        if not 0 <= score <= 1:
            raise NoVerdict(
                f"the judge returned {score:g}; a score lies between 0 and 1",
                hint="Divide it by the highest score, or return True or False.",
            )
        if score >= 1 - REWARD_TOLERANCE:
            return _PASSED
        failure = cls.failed(FailureCategory.WRONG_ANSWER, wrong)
        return failure if isinstance(result, Integral) else replace(failure, score=score)


class NoVerdict(InvalidValue):
    """A judge returned something that is neither a verdict nor a score."""


def _describe_result(result: object) -> str:
    """A judge's result in a message; a coroutine is closed, since it is never awaited."""
    if inspect.iscoroutine(result):
        result.close()
    if result is None:
        return "None"
    kind = type(result).__name__
    if isinstance(result, int | float | str | bytes | tuple | list | dict):
        return f"{shorten(result)} ({kind})"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


_PASSED = Judgement(Verdict.PASSED)

EXPECTED, GOT, DIFFERENCE = "expected", "got", "difference"
ANSWER_ROLES = (EXPECTED, GOT, DIFFERENCE)
DIFF, TEST_OUTPUT = "diff", "tests"
REMARKS = ("program", "plain judge", "split judge", DIFF, TEST_OUTPUT, *ANSWER_ROLES)
"""Roles in a transcript that are the judge's, and no part of the conversation."""


class Episode(Contract):
    """A fresh environment for one attempt, and its judge.

    Every hook may also be ``async``, so that an environment that waits for a process or a model
    does not hold up other attempts.

    Attributes
    ----------
    answer_hash : str
        Equal for answers that the suite considers the same; by default the runner hashes the text.
    remarks : tuple of (str, str)
        Remarks that the judge adds to the transcript, each under a role of ``REMARKS``.
    workspace : Workspace, optional
        The folder that the agent works in, for suites that have one.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ("open", "reply", "judge")
    answer_hash: str = ""
    remarks: tuple[tuple[str, str], ...] = ()
    workspace: Workspace | None = None

    def open(self) -> Turn | Awaitable[Turn | None] | None:
        """Return the first turn; ``None`` if there is nothing to ask. Required."""
        raise not_written(self, "open")

    def reply(self, answer: str) -> Turn | Awaitable[Turn | None] | None:  # noqa: ARG002
        """Return the turn after the agent's answer; ``None`` ends the conversation. Required."""
        raise not_written(self, "reply")

    def judge(self) -> Judgement | Awaitable[Judgement]:
        """Return the verdict, once the conversation is over. Required.

        An exception here is the judge's fault: the attempt is missing, not failed.
        """
        raise not_written(self, "judge")

    def close(self) -> Awaitable[None] | None:
        """Release resources of the episode. Always called, also after an error."""

    def join(self, attempt: object) -> None:
        """Called before ``open`` with the attempt's ``AttemptInfo``.

        For environments with a model in them, which spend on the attempt's meter.
        """

    def report_calls(self, report: CallReport) -> None:
        """Called before ``open``, for episodes whose tools the agent calls past the conversation.

        ``report(call, result)`` records a call as a step and returns whether steps are left.
        """


class SimulatedUser(Protocol):
    """A user played by a model, as ``with_user`` receives it."""

    @property
    def name(self) -> str:
        """The model with its settings; part of the protocol."""

    async def start(self, attempt: object) -> Speaker:
        """Start one attempt's conversation."""

    async def close(self) -> None:
        """Called when the run ends."""


class Speaker(Protocol):
    """The conversation of an attempt with a simulated user."""

    async def answer(self, turn: Turn) -> str: ...

    async def close(self) -> None: ...


class Suite(Contract):
    """Tasks, the environment they run in, and the judge.

    Attributes
    ----------
    name : str
        Part of the run's identity; the class name by default.
    tasks : sequence of Task
        The tasks to solve. Required.
    fingerprint : str
        Changes whenever a task changes; by default a hash of all tasks.
    judge_fingerprint : str
        Changes whenever the judge changes; by default a hash of the source of the suite's class.
    judge : str
        The judge's name in the protocol; the suite's name by default.
    max_steps : int
        The usual limit of turns per attempt.
    takes_reference : bool
        Whether first turns carry a reference by which a leak between attempts is detected.
        For conversations; prompts that are graded word for word should stay as they are.
    takes_user : bool
        Whether the suite starts the model of ``--user`` itself.
    user_simulator : str, optional
        The name of the simulated user, for suites that have one; part of the protocol.
    has_tools : bool, optional
        Whether first turns offer tools; ``None`` is not known before the first turn.
    single_turn : bool
        Whether the agent answers once per attempt, so that calls can be counted beforehand.
    judges_programs : bool
        Whether ``judge_with`` applies.
    has_workspaces : bool
        Whether the agent works in a folder, in a process of its own.
    step_seconds, attempt_seconds : float
        The usual limits of one answer and of an attempt.
    slow_reason : MissingReason
        Why an attempt is missing when the environment does not answer in time.
    harness : str
        The name of the harness that runs this suite by itself, such as ``inspect``.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ("tasks", "episode")
    max_steps: int = 30
    takes_reference: bool = False
    takes_user: bool = False
    user_simulator: str | None = None
    has_tools: bool | None = None
    single_turn: bool = False
    judges_programs: bool = False
    has_workspaces: bool = False
    step_seconds: float = 60.0
    attempt_seconds: float = 600.0
    slow_reason: MissingReason = MissingReason.INFRASTRUCTURE
    harness: str = ""

    @cached_property
    def name(self) -> str:
        return type(self).__name__

    @cached_property
    def judge(self) -> str:
        return self.name

    @cached_property
    def tasks(self) -> Sequence[Task]:
        raise not_written(self, "tasks")

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint([[task.id, task.prompt, dict(task.labels)] for task in self.tasks])

    @cached_property
    def judge_fingerprint(self) -> str:
        try:
            source = inspect.getsource(type(self))
        except (OSError, TypeError) as error:
            raise InvalidValue(
                f"the source of {type(self).__name__} cannot be read ({error}), so changes of its "
                "judge would go unnoticed.",
                hint="Set judge_fingerprint to a text that you change together with the judge.",
            ) from None
        return fingerprint(source)

    def episode(self, task: Task, seed: int) -> Episode | Awaitable[Episode]:  # noqa: ARG002
        """Return a new environment, with nothing in it of any earlier attempt. Required."""
        raise not_written(self, "episode")

    def configure(self, settings: Settings) -> None:
        """Called once after loading, with the options that only some suites use."""
        if settings.scorer:
            raise InvalidValue(f"scorer does not apply to {self.name}: it has one judge.")

    def judge_with(self, choice: JudgingChoice) -> None:
        """Called before the first episode with the sandbox and limits for judging programs."""
        raise InvalidValue(f"{self.name} has no programs to judge ({choice}).")

    def check(self, tasks: Sequence[Task]) -> Sequence[TaskCheck] | Awaitable[Sequence[TaskCheck]]:  # noqa: ARG002
        """Check tasks before the first attempt; a problem stops the run. Nothing by default."""
        return ()

    def with_user(self, user: SimulatedUser) -> Suite:
        """Return the same suite with its user played by a model."""
        raise InvalidValue(
            f"{self.name} has no user to simulate, so {user.name} cannot play one.",
            hint="--user works with suites that have a conversation, such as orderdesk/retail.",
        )

    def close(self) -> Awaitable[None] | None:
        """Called when the run ends, to release resources that all episodes share."""


def check_tasks(suite: Suite) -> None:
    """Refuse a suite without tasks, or with something else among them.

    Raises
    ------
    InvalidValue
        Names the suite and what it has instead.
    """
    if not suite.tasks:
        raise InvalidValue(
            f"suite {suite.name} has no tasks.", hint='As in tasks = [Task("a", "What is 2 + 2?")].'
        )
    for position, task in enumerate(suite.tasks, 1):
        if not isinstance(task, Task):
            raise InvalidValue(
                f"task {position} of suite {suite.name} is {_describe_result(task)}, not a Task.",
                hint='Write Task("a", "What is 2 + 2?"): an id, and what the agent is asked.',
            )


def fingerprint(data: object) -> str:
    """Sixteen hexadecimal digits over plain data."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
