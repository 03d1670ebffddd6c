"""A model behind an API as an agent: the parts that all such APIs have in common.

The conversation is kept in three plain kinds of entries; each API writes them in its own form. A
tool call of the model becomes the text that suites read, and plain words become ``respond``, so a
suite does not depend on the kind of agent.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

from passhat._display import counted
from passhat.agents.base import Agent, AttemptInfo, Meter, Session, StopReason, Usage
from passhat.agents.model_word import (
    OWN_SETTINGS,
    limit_of,
    parse_extra,
    read_model_word,
    read_response_format,
)
from passhat.agents.prices import Price
from passhat.agents.provider import (
    ModelReply,
    Provider,
    ReplyError,
    SmallerLimit,
    ToolCall,
    has_proxy,
    refuse_closed,
)
from passhat.errors import MissingExtra
from passhat.protocol import Scalar
from passhat.suites.base import ToolSpec, Turn
from passhat.suites.tool_calls import RESPOND, write_call

_STREAM_ABOVE = 8192
"""Longer answers are streamed: an SDK demands it, and proxies cut silent connections."""
_BAD_ARGUMENTS = 2
"""Calls with unreadable arguments that are returned to the model before the suite gets them."""


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A message to the model, perhaps with images (URLs or ``data:`` URLs)."""

    text: str
    images: tuple[str, ...] = ()
    role: str = "user"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call."""

    call: ToolCall
    text: str


Entry = UserEntry | ModelReply | ToolResult


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that an API's form is written from.

    Attributes
    ----------
    settings : mapping
        Settings that are sent unchanged: temperature, penalties, ``extra.`` settings and so on.
    limit : int
        The largest number of output tokens; ``limit_name`` is the field that the user named for
        it, empty for the API's usual one.
    seed : int, optional
        ``None`` where it is not to be sent.
    response_format : mapping, optional
        As OpenAI writes it: ``json_object``, or ``json_schema`` with a schema.
    """

    model: str
    system: str | None
    tools: tuple[ToolSpec, ...]
    entries: Sequence[Entry]
    settings: Mapping[str, Any]
    limit: int
    limit_name: str = ""
    seed: int | None = None
    stop: tuple[str, ...] = ()
    response_format: Mapping[str, Any] | None = None
    thinking: int = 0
    cache: bool = False


class ChatAgent(Agent, ABC):
    """A model behind an API: ``KIND:MODEL[@BASE_URL][?top_p=0.9&max_output_tokens=1000]``."""

    kind: ClassVar[str]
    module: ClassVar[str] = ""
    """The SDK's module, if it is not called as the kind."""
    extra: ClassVar[str] = ""
    """The extra that installs it, if it is not called as the module."""
    usual_url: ClassVar[str] = ""
    sends_seed: ClassVar[bool] = True

    def __init__(self, rest: str) -> None:
        word = read_model_word(self.kind, rest)
        self.model = word.model
        self.base_url = word.url
        try:
            self.sdk: Any = import_module(self.module or self.kind)
        except ImportError:
            raise MissingExtra(
                f"The agent {self.kind}:{self.model}", extra=self.extra or self.module or self.kind
            ) from None
        self.name = f"{self.kind}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")
        self.price: Price | None = None
        # A missing key is reported, and lazy imports of the SDK are loaded, before the run.
        self._client: Any = self.open_client()
        self.warm(self._client)
        address = self.address(self._client).rstrip("/")
        settings = dict(word.settings)
        if address and address != self.usual_url.rstrip("/"):
            # Also when it comes from the environment: another server is another run.
            settings["base_url"] = address
            self.name = f"{self.kind}:{self.model}@{self.base_url or address}"
        self.decoding: Mapping[str, Scalar] = settings
        self.provider = Provider(self.kind, address or "its usual address", self.errors)
        self._served: Counter[str] = Counter()
        self._smaller_limits: list[int] = []

    def notices(self) -> list[str]:
        """Name the models that answered, if others than asked for, and limits that were lowered."""
        notices = self._other_models()
        if lowered := self._smaller_limits:
            _, limit = limit_of(self.decoding)
            notices.append(
                f"{self.name}: {counted(len(lowered), 'call')} had to allow fewer than {limit:,} "
                f"tokens of answer (at least {min(lowered):,}): the conversation and the answer "
                "have to fit into the model's context together."
            )
        return notices

    def _other_models(self) -> list[str]:
        served = {name: count for name, count in self._served.items() if name}
        asked = self.model.rpartition("/")[2].lower()
        others = [name for name in served if asked not in name.lower()]
        if not others and len(served) < 2:
            return []
        counts = ", ".join(f"{name} ({counted(count, 'answer')})" for name, count in served.items())
        return [f"{self.name} was answered by {counts}."]

    async def check(self) -> None:
        """Refuse an address of its own at which nothing listens, before the first attempt.

        A closed port would otherwise be met by every attempt, after all its retries.
        """
        address = str(self.decoding.get("base_url") or "")
        if address and not has_proxy(address):
            await refuse_closed(address, self.name)

    @property
    def errors(self) -> Any:
        """The module with the SDK's error classes."""
        return self.sdk

    @abstractmethod
    def open_client(self) -> Any:
        """The SDK's client, configured by the SDK; without retries of its own."""

    @abstractmethod
    def warm(self, client: Any) -> None:
        """Load the SDK's lazy imports, so that no attempt pays for them."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """A request in the API's form."""

    @abstractmethod
    async def send(self, client: Any, body: dict[str, Any], *, stream: bool) -> ModelReply:
        """Send a request and read the answer, as a stream or whole.

        Raises
        ------
        ReplyError
            The answer is an error with a success status, or has no known shape.
        """

    def address(self, client: Any) -> str:
        """The URL that the client uses."""
        return str(client.base_url)

    async def session(self, attempt: AttemptInfo) -> ChatSession:
        sampling = {"temperature": attempt.temperature, "top_p": attempt.top_p}
        overrides = {name: value for name, value in sampling.items() if value is not None}
        return ChatSession(self, {**self.decoding, **overrides}, attempt)

    async def ask(self, request: Request, meter: Meter) -> ModelReply:
        """Make a call; again with a smaller limit where the model has no room."""
        try:
            return await self._call(request, meter)
        except SmallerLimit as refusal:
            self._smaller_limits.append(refusal.limit)
            return await self._call(replace(request, limit=refusal.limit), meter)

    async def _call(self, request: Request, meter: Meter) -> ModelReply:
        """Make a call: reserve its bound on the meter before, settle its usage after."""
        if self._client is None:
            self._client = self.open_client()
        body = self.body(request)

        stream = str(self.decoding.get("stream", ""))
        streams = stream == "on" or (stream != "off" and request.limit > _STREAM_ABOVE)

        async def work() -> tuple[ModelReply, Usage]:
            reply = await self.send(self._client, body, stream=streams)
            if reply.stop is StopReason.ERROR:
                raise ReplyError(f"the server ended the answer as {reply.stop_raw!r}")
            self._served[reply.model] += 1
            return reply, self._usage_of(reply)

        return await self.provider.call(
            work,
            meter,
            # No tokenizer makes more tokens than bytes, and JSON is longer than any chat template.
            self.worst_step(
                len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")), request.limit
            ),
            model=self.model,
            request=body,
            limit=request.limit,
            priced="" if self.price is None else self.price.source,
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def worst_step(self, inputs: int, outputs: int | None = None) -> Usage:
        """The most that one call with so many tokens of input can use."""
        limit = limit_of(self.decoding)[1] if outputs is None else outputs
        cost = None if self.price is None else self.price.at_most(inputs, limit)
        return Usage(inputs + limit, cost)

    def _usage_of(self, reply: ModelReply) -> Usage:
        """Tokens and cost of a call; the cost that the provider reports is preferred."""
        count, cost = reply.tokens, reply.cost
        if cost is None and count is not None and self.price is not None:
            cost = self.price.of(count)
        return Usage(None if count is None else count.all, cost)


class ChatSession(Session):
    """A conversation with the model."""

    def __init__(
        self, agent: ChatAgent, settings: Mapping[str, Scalar], attempt: AttemptInfo
    ) -> None:
        self._agent = agent
        self._settings = settings
        self._attempt = attempt
        self._system: str | None = None
        self._tools: tuple[ToolSpec, ...] = ()
        self._response_format: Mapping[str, Any] | None = None
        self._entries: list[Entry] = []
        self._open_calls: list[ToolCall] = []

    async def answer(self, turn: Turn) -> str:
        if not self._entries:
            self._begin(turn)
        if self._open_calls:
            call = self._open_calls.pop(0)
            self._entries.append(
                ToolResult(call, turn.text if turn.result is None else turn.result)
            )
        else:
            text = turn.text if turn.said is None else turn.said
            if text or turn.images or not turn.messages:  # else the last message is the question
                self._entries.append(UserEntry(text, turn.images))
        if not self._open_calls:
            reply = await self._send_request()
            self._open_calls = list(reply.calls)
            if not reply.calls:
                return self._as_response(reply.text)
        # Several calls at once are handed on one by one, in the order the model wrote them.
        return _write_call(self._open_calls[0])

    def _begin(self, turn: Turn) -> None:
        prompt = self._settings.get("system")
        parts = [str(part) for part in (prompt, turn.system) if part]
        self._system = "\n\n".join(parts) or None
        self._tools = turn.tools
        self._response_format = turn.response_format
        for message in turn.messages:
            role, text = str(message.get("role", "user")), text_of(message.get("content"))
            self._entries.append(ModelReply(text) if role == "assistant" else UserEntry(text))

    async def _send_request(self) -> ModelReply:
        """The model's reply; calls with unreadable arguments go back to it at first."""
        for left in reversed(range(_BAD_ARGUMENTS + 1)):
            reply = await self._agent.ask(self._request(), self._attempt.meter)
            self._entries.append(reply)
            bad = {call.id for call in reply.calls if arguments_of(call) is None}
            if not bad or not left:
                return reply
            for call in reply.calls:
                problem = (
                    f"Error: the arguments of {call.name} are not a JSON object: "
                    f"{call.arguments[:200]}. Call it again with valid JSON."
                    if call.id in bad
                    else "Not called: another call of the same message could not be read. "
                    "Call it again."
                )
                self._entries.append(ToolResult(call, problem))
        raise AssertionError("unreachable")

    def _request(self) -> Request:
        settings = self._settings
        limit_name, limit = limit_of(settings)
        # Servers reject seeds that do not fit into 31 bits.
        seed = None if settings.get("seed") == "off" else self._attempt.seed % 2**31
        if isinstance(settings.get("seed"), int):
            seed = int(settings["seed"])
        return Request(
            self._agent.model,
            self._system,
            self._tools,
            self._entries,
            {
                name.removeprefix("extra."): parse_extra(value) if "extra." in name else value
                for name, value in settings.items()
                if name not in OWN_SETTINGS
            },
            limit,
            limit_name,
            seed if self._agent.sends_seed else None,
            tuple(json.loads(str(settings["stop"]))) if "stop" in settings else (),
            self._response_format or read_response_format(settings.get("response_format")),
            int(settings.get("thinking", 0)),
            settings.get("cache") == "on",
        )

    def _as_response(self, text: str) -> str:
        """Text is the answer itself, or a call of ``respond`` where there are tools."""
        if not self._tools or not text.strip():
            return text
        return write_call(RESPOND, {"content": text})


# -- reading the answers of providers --------------------------------------------------------------


_ANSWER_FIELDS = {"choices", "content", "candidates", "output", "promptFeedback"}
"""One of them is in every answer, whichever API it is of."""


Merge = Callable[[list[dict[str, Any]]], dict[str, Any]]
"""Joins the events of a stream into the answer that would have come whole."""
_LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes, unpacked; more than this in one answer is never held in memory."""


async def read_whole(response: Any) -> str:
    """The text of a whole answer; bytes that are not text are the server's fault, not an answer."""
    return _decode(await _read_bytes(response), response.charset_encoding)


async def _read_bytes(response: Any, end: re.Pattern[bytes] | None = None) -> bytes:
    """The bytes of an answer, up to a line that ends it: the connection may stay open."""
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _LARGEST_ANSWER:
                raise ReplyError(f"an answer of over {_LARGEST_ANSWER:,} bytes")
            if end is not None and end.search(body, max(0, len(body) - len(chunk) - 20)):
                break
    finally:
        await response.aclose()
    return bytes(body)


def _decode(body: bytes, charset: str | None = None) -> str:
    try:
        return body.decode("utf-8-sig")  # some servers send a byte order mark
    except UnicodeDecodeError:
        if charset and charset.lower() not in ("utf-8", "utf8"):
            return body.decode(charset, "replace")
    raise ReplyError(f"an answer that is not UTF-8 text: {body[:200]!r}")


def json_reply(text: str) -> dict[str, Any]:
    """An answer's JSON object; an error that hides behind a success status is raised."""
    replies = json_replies(text)
    if len(replies) != 1:
        raise ReplyError(f"an answer that is not a JSON object: {text[:200]!r}")
    return replies[0]


def json_replies(text: str) -> list[dict[str, Any]]:
    """An answer's JSON object, or the objects of a list: Google's form of a stream."""
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except ValueError:
        is_page = text.lstrip()[:1] == "<"
        raise ReplyError(f"an answer that is not JSON: {text[:200]!r}", is_page=is_page) from None
    replies = data if isinstance(data, list) else [data]
    if not all(isinstance(reply, dict) for reply in replies):
        raise ReplyError(f"an answer that is not a JSON object: {text[:200]!r}")
    for reply in replies:
        error = reply.get("error")
        if not error and not reply.keys() & _ANSWER_FIELDS:
            # A gateway's own error is not wrapped: {"message": "Rate limit exceeded", "code": 429}
            error = reply if isinstance(reply.get("message") or reply.get("detail"), str) else None
        if error:
            raise ReplyError("an error with a success status", body={"error": error})
    return replies


async def read_answer(answer: Any, merge: Merge | None = None) -> dict[str, Any]:
    """An SDK's answer as one object: whole, or put together from a stream."""
    response = answer.http_response
    if merge is None:
        return json_reply(await read_whole(response))
    if "amazon" not in response.headers.get("content-type", ""):
        return await read_events(response, merge)
    async with await answer.parse() as stream:  # frames of AWS
        return merge([event.model_dump(warnings=False) async for event in stream])


_LAST_EVENT = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]\s*[\r\n]")
_LINE_END = re.compile("\r\n|\n|\r")


async def read_events(response: Any, merge: Merge) -> dict[str, Any]:
    """Collect server-sent events into one answer.

    The body tells what it is: servers call streams JSON and answers streams, or send objects in
    lines or in a list. The parsers of the SDKs lose the first event after a byte order mark.
    """
    text = _decode(await _read_bytes(response, _LAST_EVENT))
    lines = _LINE_END.split(text)
    if any(line.startswith(("data:", "event:", ":")) for line in lines):
        return merge([reply for data in _event_data(lines) for reply in json_replies(data)])
    if not text.strip() and "stream" in response.headers.get("content-type", ""):
        return merge([])
    objects = [line for line in lines if line.strip()]
    if len(objects) > 1 and all(map(_is_json, objects)):
        return merge([json_reply(line) for line in objects])
    replies = json_replies(text)
    return replies[0] if len(replies) == 1 else merge(replies)


def _event_data(lines: Iterable[str]) -> Iterator[str]:
    """The data of each event; an event ends with an empty line, or with the stream."""
    data: list[str] = []
    for line in (*lines, ""):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").strip())
        elif not line.strip() and data:
            data = [text for text in data if text != "[DONE]"]
            # Some servers leave out the empty lines: then every line is an event.
            yield from data if all(map(_is_json, data)) else ["\n".join(data)]
            data = []


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def text_of(content: object) -> str:
    """The text of a message: a string, or a list of parts of which only some are text.

    Examples
    --------
    >>> text_of([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}])
    'yes'
    >>> text_of(["yes", {"text": {"value": "!"}}]), text_of(None)
    ('yes!', '')
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        kind = str(content.get("type", "text"))
        if "text" not in kind and "refusal" not in kind:
            return ""
        text = content.get("text", content.get("refusal", content.get("content", "")))
        return text_of(text.get("value", "")) if isinstance(text, Mapping) else text_of(text)
    if isinstance(content, list | tuple):
        return "".join(text_of(part) for part in content)
    return ""


def tool_calls_of(calls: object, number: int = 0) -> tuple[ToolCall, ...]:
    """Tool calls in OpenAI's form, or close to it.

    Servers leave out ``type`` and ``id``, and write arguments as an object instead of JSON text.
    """
    read: list[ToolCall] = []
    for place, call in enumerate(calls if isinstance(calls, list | tuple) else ()):
        if not isinstance(call, Mapping):
            continue
        function = call.get("function", call)
        if not isinstance(function, Mapping) or not function.get("name"):
            continue
        arguments = function.get("arguments", function.get("input", function.get("args")))
        name = str(call.get("id") or call.get("call_id") or f"call_{number}_{place}")
        read.append(ToolCall(name, str(function["name"]), _as_text(arguments)))
    return tuple(read)


def merge_turns(messages: Iterable[dict[str, Any]], parts: str) -> list[dict[str, Any]]:
    """Join neighboring messages of one role: roles take turns, results of several calls are one."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1] = {**message, parts: [*turns[-1][parts], *message[parts]]}
        else:
            turns.append(message)
    return turns


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the data of a ``data:`` URL; ``None`` for any other URL."""
    if not url.startswith("data:"):
        return None
    head, _, data = url.partition(",")
    return head.removeprefix("data:").partition(";")[0], data


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """A call's arguments; ``None`` if they are not a JSON object."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _as_text(given: object) -> str:
    if given is None or given == "":
        return "{}"
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _write_call(call: ToolCall) -> str:
    arguments = arguments_of(call)
    if arguments is not None:
        return write_call(call.name, arguments)
    # Passed on unchanged: the suite reports the problem, and asks again.
    return f'<json>{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}</json>'
