"""A model behind an API as an agent: what all such APIs have in common.

The conversation is kept in three plain kinds of entries; each API writes them in its own dialect. A
tool call of the model becomes the text that suites read, and plain words become ``respond``, so a
suite never knows which kind of agent it talks to.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from passhat.agents.base import Agent, AttemptInfo, Meter, Session, Usage
from passhat.agents.prices import Price, TokenCount
from passhat.agents.provider import Provider
from passhat.errors import InvalidValue, MissingExtra
from passhat.suites.base import ToolSpec, Turn
from passhat.suites.orderdesk.calls import RESPOND, write_call

__all__ = ["ChatAgent", "Entry", "Heard", "Replied", "Request", "Returned", "ToolCall"]

_WORD = re.compile(r"(?P<model>[^?]+?)(?:@(?P<url>https?://[^?]+))?(?:\?(?P<query>.*))?")
_OPTIONS: Mapping[str, type] = MappingProxyType(
    {"temperature": float, "top_p": float, "max_output_tokens": int, "reasoning_effort": str}
)
_MOST_OUTPUT = 4096
"""Tokens of one answer, unless ``?max_output_tokens=`` says otherwise. A cap needs a bound."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model makes; the arguments are JSON as it wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Heard:
    """Words to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Replied:
    """What the model said and called for."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call gave back."""

    call: ToolCall
    text: str


Entry = Heard | Replied | Returned


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a dialect writes into one request."""

    model: str
    system: str | None
    tools: tuple[ToolSpec, ...]
    entries: Sequence[Entry]
    settings: Mapping[str, Any]
    seed: int


class ChatAgent(Agent, ABC):
    """A model behind an API: ``KIND:MODEL[@BASE_URL][?top_p=0.9&max_output_tokens=1000]``."""

    kind: ClassVar[str]

    def __init__(self, rest: str) -> None:
        found = _WORD.fullmatch(rest)
        if found is None or re.search(r"@[\w.-]+:\d+", found["model"]):
            raise InvalidValue(
                f"{self.kind}:{rest} names no model.",
                hint=f"Write {self.kind}:MODEL or {self.kind}:MODEL@http://HOST:PORT/v1",
            )
        if found["url"] and "@" in found["url"]:
            raise InvalidValue(
                f"the address of {self.kind}:{found['model']} holds a name or a key.",
                hint="Addresses are written down with the run; keys belong into the environment.",
            )
        self.model = found["model"]
        self.base_url: str | None = found["url"]
        self.decoding = _settings(found["query"] or "")
        self.name = f"{self.kind}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")
        self.price: Price | None = None
        try:
            self.sdk: ModuleType = import_module(self.kind)
        except ImportError:
            raise MissingExtra(f"The agent {self.name}", extra=self.kind) from None
        # A key that is absent is missed, and what the SDK loads late is loaded, before the run.
        self._client: Any = self.open_client()
        self.warm(self._client)
        self.provider = Provider(self.kind, self.base_url or "its usual address", self.sdk)

    @abstractmethod
    def open_client(self) -> Any:
        """The SDK's client, configured by the SDK; without retries of its own."""

    @abstractmethod
    def warm(self, client: Any) -> None:
        """Touch what the SDK imports only when it is used, so that no attempt pays for it."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """A request in the API's dialect."""

    @abstractmethod
    async def send(self, client: Any, body: dict[str, Any]) -> tuple[Replied, TokenCount | None]:
        """Send it; what the model replied, and the tokens if the server counted them."""

    async def session(self, attempt: AttemptInfo) -> _ChatSession:
        given = {"temperature": attempt.temperature, "top_p": attempt.top_p}
        chosen = {name: value for name, value in given.items() if value is not None}
        return _ChatSession(self, {**self.decoding, **chosen}, attempt)

    async def ask(self, request: Request, meter: Meter) -> Replied:
        """One call, with its bound on the meter before and its use after."""
        if self._client is None:
            self._client = self.open_client()
        body = self.body(request)

        async def work() -> tuple[Replied, Usage]:
            reply, count = await self.send(self._client, body)
            return reply, self._used(count)

        worst = self._bound(body, int(request.settings["max_output_tokens"]))
        return await self.provider.call(work, meter, worst, model=self.model)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def worst_step(self, inputs: int) -> Usage:
        """The most that one call with so many tokens of input can use."""
        outputs = int(self.decoding["max_output_tokens"])
        cost = None if self.price is None else self.price.at_most(inputs, outputs)
        return Usage(inputs + outputs, cost)

    def _bound(self, body: dict[str, Any], outputs: int) -> Usage:
        # No tokeniser makes more tokens than bytes, and JSON is longer than any chat template.
        inputs = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        cost = None if self.price is None else self.price.at_most(inputs, outputs)
        return Usage(inputs + outputs, cost)

    def _used(self, count: TokenCount | None) -> Usage:
        if count is None:
            return Usage()
        return Usage(count.all, None if self.price is None else self.price.of(count))


class _ChatSession(Session):
    """One conversation with the model."""

    def __init__(self, agent: ChatAgent, settings: Mapping[str, Any], attempt: AttemptInfo) -> None:
        self._agent = agent
        self._settings = settings
        self._attempt = attempt
        self._system: str | None = None
        self._tools: tuple[ToolSpec, ...] = ()
        self._entries: list[Entry] = []
        self._open_calls: list[ToolCall] = []

    async def answer(self, turn: Turn) -> str:
        if not self._entries:
            self._system, self._tools = turn.system, turn.tools
        if self._open_calls:
            done = self._open_calls.pop(0)
            self._entries.append(Returned(done, turn.text if turn.result is None else turn.result))
        else:
            self._entries.append(Heard(turn.text if turn.said is None else turn.said))
        if not self._open_calls:
            reply = await self._agent.ask(self._request(), self._attempt.meter)
            self._entries.append(reply)
            self._open_calls = list(reply.calls)
            if not reply.calls:
                return self._spoken(reply.text)
        # Several calls at once are handed on one by one, in the order the model wrote them.
        return _written(self._open_calls[0])

    def _request(self) -> Request:
        return Request(
            self._agent.model,
            self._system,
            self._tools,
            self._entries,
            self._settings,
            self._attempt.seed,
        )

    def _spoken(self, text: str) -> str:
        """Words are the answer itself, or where there are tools, a call of ``respond``."""
        if not self._tools or not text.strip():
            return text
        return write_call(RESPOND, {"content": text})


def _written(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        return write_call(call.name, arguments)
    # Handed on as it is: the suite says what is wrong with it, and asks again.
    return f'<json>{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}</json>'


def _settings(query: str) -> dict[str, float | int | str]:
    """What the word after ``?`` sets."""
    settings: dict[str, float | int | str] = {"max_output_tokens": _MOST_OUTPUT}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise InvalidValue(
                f"a model has no setting {name!r}.", hint=f"Settings: {', '.join(_OPTIONS)}."
            )
        try:
            settings[name] = _OPTIONS[name](text)
        except ValueError:
            raise InvalidValue(f"{name} should be a number, not {text!r}.") from None
    if int(settings["max_output_tokens"]) < 1:
        raise InvalidValue("max_output_tokens must be at least 1.")
    return settings
