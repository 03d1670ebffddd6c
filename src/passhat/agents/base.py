"""The contract of agents: a fresh :class:`Session` per attempt that answers turn by turn.

Derive from :class:`Agent` and :class:`Session`; every hook has a default except ``Agent.session``
and ``Session.answer``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from passhat._plugins import Contract, not_written
from passhat.protocol import Scalar
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import ToolSpec, Turn, WorldFault
from passhat.suites.workspace.handle import Workspace

if TYPE_CHECKING:
    from passhat.agents.prices import Price


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money; ``None`` is "not recorded", never zero.

    Give ``tokens``, or input and output tokens with the ``model`` they are of: the cost then
    follows from the price table.
    """

    tokens: float | None = None
    cost: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cached_tokens: float | None = None
    reasoning_tokens: float | None = None
    model: str = ""

    @property
    def total(self) -> float | None:
        """All tokens: as given, or input and output."""
        return _sum(self.input_tokens, self.output_tokens) if self.tokens is None else self.tokens


_NO_USAGE = Usage()


class StopReason(StrEnum):
    """Why a model ended its answer, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    REFUSED = "refused"
    FILTERED = "filtered"
    ERROR = "error"  # the server's fault: the call is made again
    OTHER = "other"


class ModelCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of one call to a model, or to a tool by a framework; ``None`` is not recorded.

    Attributes
    ----------
    name : str
        The model or tool that was called: ``openai:gpt-5``, or the name of a tool.
    model : str
        The model that the server reports.
    role : str
        ``agent``, ``user`` (a simulated user), ``judge`` or ``tool``.
    stop, stop_raw : str
        Why the answer ended: a :class:`StopReason`, and the provider's own word.
    empty : str
        Why there is no text, where there is none: ``empty``, ``thinking only`` or
        ``no valid call``.
    limit : int, optional
        The largest number of output tokens that was allowed.
    retries : list of str
        The causes of earlier tries of the same call.
    request, reply
        The request and the reply, as plain data.
    started : float, optional
        When it began, in seconds since 1970.
    priced : str
        The table that the cost comes from, with the date or version of its data.
    votes : list of bool, optional
        Verdicts of a model that judged several times; only of the record that sums them up.
    lost_votes : int
        Answers of that model that named no verdict.
    fingerprint : str
        The configuration of the server that answered, as it states it.
    source : str
        ``spans`` where the record comes from OpenTelemetry spans of the agent.
    """

    name: str
    model: str = ""
    role: str = "agent"
    stop: str = ""
    stop_raw: str = ""
    empty: str = ""
    input_tokens: float | None = None
    output_tokens: float | None = None
    cached_tokens: float | None = None
    reasoning_tokens: float | None = None
    cost: float | None = None
    limit: int | None = None
    seconds: float | None = None
    retries: list[str] = []
    request_id: str = ""
    error: str = ""
    request: Any = None
    reply: Any = None
    started: float | None = None
    priced: str = ""
    votes: list[bool] | None = None
    lost_votes: int = 0
    source: str = ""
    fingerprint: str = ""


class Clock(Protocol):
    """The clock of an attempt's limits."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Meter:
    """Tokens, money and retries that an attempt uses.

    Around every call: ``reserve`` the most it can use, then ``settle`` its actual usage, or
    ``forgo`` it when it was refused and cost nothing. This one only counts; the runner's, under a
    cap, may let ``reserve`` wait or refuse.
    """

    __slots__ = (
        *("_clock", "_cost", "_tokens", "_used", "by_agent", "calls", "conversation"),
        *("retries", "role"),
    )

    def __init__(self) -> None:
        self.retries = 0
        self.calls: list[ModelCall] = []
        self.role = "agent"
        self.conversation = ""  # the id that the agent itself gave to it
        self.by_agent = (
            False  # whether the agent's own use was counted, not only a user's or judge's
        )
        self._used = False
        self._tokens: float | None = 0
        self._cost: float | None = 0.0
        self._clock: Clock | None = None

    async def reserve(self, worst: Usage) -> None:
        """Before a call: the most it can use. May raise :class:`ProviderFault`."""
        del worst

    def settle(self, used: Usage) -> None:
        """After a call: its usage. An unknown value makes the attempt's sum unknown."""
        self._used = True
        self.by_agent |= self.role == "agent"
        self._tokens = _sum(self._tokens, used.total)
        self._cost = _sum(self._cost, used.cost)

    def forgo(self) -> None:
        """After a call that was refused: it used nothing."""
        self._used = True

    def record(self, call: ModelCall) -> None:
        """Keep the record of a call; does not count its use."""
        self.calls.append(call)

    @contextmanager
    def acting_as(self, role: str) -> Iterator[None]:
        """Calls recorded in here are made by another party: ``user`` or ``judge``."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self.role = before

    @property
    def usage(self) -> Usage:
        """The attempt's sum so far; nothing recorded when nothing was ever reported."""
        return Usage(self._tokens, self._cost) if self._used else _NO_USAGE

    def use_clock(self, clock: Clock) -> None:
        """Called by the runner with the clock that is paused while the attempt waits for us."""
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
    """The attempt's task, number, seed and sampling settings, as an agent sees them.

    ``tools`` are those that the suite offers. ``traceparent`` is the W3C trace context of the
    attempt, and ``otlp_endpoint`` the address that takes its OpenTelemetry spans; both are empty
    where there are none. ``workspace`` is the folder of a coding task.
    """

    task: str
    number: int
    seed: int
    temperature: float | None = None
    top_p: float | None = None
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    traceparent: str = field(default="", compare=False)
    otlp_endpoint: str = field(default="", compare=False)
    tools: tuple[ToolSpec, ...] = field(default=(), compare=False)
    workspace: Workspace | None = field(default=None, compare=False)

    def with_workspace(self, workspace: Workspace) -> AttemptInfo:
        """The attempt with a workspace; commands that are run in it count as tools."""

        def note(command: str, output: str) -> None:
            request = {"command": command}
            self.meter.record(
                ModelCall("run", role="tool", request=request, reply=output[-20_000:])
            )

        return replace(self, workspace=replace(workspace, note=note))


ENDED = "ended without an answer"
"""Beginning of the detail where a program ended."""


class AgentFault(Exception):
    """The agent did something that fails its attempt, in the given failure category."""

    def __init__(self, category: FailureCategory, detail: str) -> None:
        super().__init__(detail)
        self.category = category
        self.detail = detail


class ProviderFault(WorldFault):
    """The model's provider could not serve the call: the attempt is missing, not failed."""


class Session(Contract):
    """The conversation of a single attempt; nothing of it outlives ``close``.

    Attributes
    ----------
    usage : Usage, optional
        Usage of the attempt, for a session that does not write to the attempt's
        :class:`Meter` itself. Read once, when the conversation is over.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ("answer",)
    usage: Usage | None = None

    async def answer(self, turn: Turn) -> str:  # noqa: ARG002
        """Return the agent's answer to a turn. Required.

        Raise :class:`AgentFault` to fail the attempt with a category, :class:`ProviderFault` to
        make it missing. Any other exception fails the attempt as ``exception``.
        """
        raise not_written(self, "answer")

    async def close(self) -> None:
        """End the conversation in any state. Must not wait for the agent."""


class Agent(Contract):
    """The agent under evaluation: makes one :class:`Session` per attempt.

    Attributes
    ----------
    name : str
        Part of the run's identity. The class name by default; an agent loaded by a word such as
        ``python:my_agents:Clerk`` gets that word unless the class sets its own name.
    decoding : mapping
        Settings that the agent sends to its model; part of the protocol.
    harness : str
        The name of another harness whose models this agent stands for, such as ``inspect``.
    price : Price, optional
        Dollars per million tokens, where the agent has a price: the cost is then estimated before
        the run.
    source_files : tuple of Path
        The files that hold the agent's own code. A run belongs to their content: attempts of
        changed code are another run.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ("session",)
    source_files: tuple[Path, ...] = ()
    decoding: Mapping[str, Scalar] = MappingProxyType({})
    harness: str = ""
    price: Price | None = None

    @cached_property
    def name(self) -> str:
        return type(self).__name__

    async def session(self, attempt: AttemptInfo) -> Session:  # noqa: ARG002
        """Return a new conversation that shares nothing with earlier ones. Required."""
        raise not_written(self, "session")

    async def check(self) -> None:
        """Called once before the first attempt: an exception stops the run before it begins."""

    def notices(self) -> list[str]:
        """Return sentences that the user should read when the run ends; none by default."""
        return []

    async def close(self) -> None:
        """Called once when the run ends, to release resources that all sessions share."""
