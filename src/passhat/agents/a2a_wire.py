"""The HTTP side of A2A: a guarded client, and failed exchanges as faults of the agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from passhat._display import counted
from passhat.agents.base import AgentFault, ProviderFault
from passhat.agents.provider import retry_after
from passhat.errors import shorten
from passhat.stats.outcomes import FailureCategory, MissingReason

if TYPE_CHECKING:
    import httpx
    from a2a.types import Part, StreamResponse, Task, TaskStatus

_REFUSED = ("FAILED", "REJECTED", "CANCELED")
_CLOSED = ("COMPLETED", "AUTH_REQUIRED", *_REFUSED)


class Reply:
    """The agent's answer to a message, assembled from all of its events.

    An agent answers with a Message, or with a Task that is complete at once, or with events that
    complete it bit by bit. ``done`` is true when nothing more will come. A question that is in
    a task as it is (``settled``) may be the one that was just answered: more may come.
    With ``takes_files`` inline files that have a name are no part of its text.
    """

    def __init__(self, *, takes_files: bool = False) -> None:
        self.context_id = ""
        self._takes_files = takes_files
        self._files: dict[str, list[tuple[str, bytes]]] = {}
        self.task_id = ""
        self._message: str | None = None
        self._state = ""
        self._asks_now = False
        self._status_text = ""
        self._artifacts: dict[str, list[str]] = {}

    @property
    def done(self) -> bool:
        return self._message is not None or self._asks_now or self._state in _CLOSED

    @property
    def settled(self) -> bool:
        return self.done or self._state == "INPUT_REQUIRED"

    @property
    def open_task(self) -> str:
        """The task that the next message continues; empty when this task is closed."""
        return self.task_id if self._state == "INPUT_REQUIRED" else ""

    def take(self, event: StreamResponse) -> None:
        """Add the content of an event."""
        kind = event.WhichOneof("payload")
        if kind == "message":
            self._belongs_to(event.message.context_id, "")
            self._message = _text(self._read_files("", event.message.parts))
        elif kind == "task":
            self.take_task(event.task)
        elif kind == "status_update":
            update = event.status_update
            self._belongs_to(update.context_id, update.task_id)
            self._take_status(update.status)
            self._asks_now = self._state == "INPUT_REQUIRED"
        elif kind == "artifact_update":
            change = event.artifact_update
            self._belongs_to(change.context_id, change.task_id)
            name = change.artifact.artifact_id
            # Without append an update replaces the artifact of the same id.
            earlier = self._artifacts.get(name, []) if change.append else []
            parts = self._read_files(name, change.artifact.parts, adds=change.append)
            self._artifacts[name] = [*earlier, _text(parts, between="")]  # pieces of one text

    def take_task(self, task: Task) -> None:
        """Replace the current state by the task's."""
        self._belongs_to(task.context_id, task.id)
        self._artifacts = {
            artifact.artifact_id: [
                _text(self._read_files(artifact.artifact_id, artifact.parts), between="")
            ]
            for artifact in task.artifacts
        }
        self._take_status(task.status)

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """Name and content of each inline file, in the order in which they came."""
        return [file for files in self._files.values() for file in files]

    def _read_files(self, name: str, parts: Iterable[Part], *, adds: bool = False) -> list[Part]:
        """Keep the files of an artifact, or of the message; the other parts."""
        if not self._takes_files:
            return list(parts)
        earlier = self._files.get(name, []) if adds else []
        is_file = [part.WhichOneof("content") == "raw" and bool(part.filename) for part in parts]
        pairs = list(zip(parts, is_file, strict=True))
        self._files[name] = [*earlier, *((part.filename, part.raw) for part, yes in pairs if yes)]
        return [part for part, yes in pairs if not yes]

    def text(self) -> str:
        """The agent's answer; raises AgentFault if there is none."""
        if self._message is not None:
            return self._nonempty(self._message)
        why = f": {self._status_text[:300]}" if self._status_text else ""
        if self._state == "AUTH_REQUIRED":  # it waits for a person to log in somewhere
            raise ProviderFault(
                MissingReason.UNSUPPORTED,
                f"the agent asks for authentication, which an attempt cannot give{why}",
            )
        if self._state in _REFUSED:
            raise AgentFault(
                FailureCategory.AGENT_ERROR,
                f"the agent's task ended as {self._state.lower()}{why}",
            )
        artifacts = "\n".join("".join(parts) for parts in self._artifacts.values())
        # A question is in the status; a result is in the artifacts, if there are any.
        return self._nonempty(
            self._status_text or artifacts if self.open_task else artifacts or self._status_text
        )

    def _nonempty(self, text: str) -> str:
        if not text.strip() and self.files:
            return f"[{counted(len(self.files), 'file')}]"
        if not text.strip():
            raise AgentFault(FailureCategory.FORMAT_ERROR, "the agent's reply holds no text")
        return text

    def _take_status(self, status: TaskStatus) -> None:
        from a2a.types import TaskState

        self._state = TaskState.Name(status.state).removeprefix("TASK_STATE_")
        if status.HasField("message"):
            self._status_text = _text(status.message.parts)

    def _belongs_to(self, context_id: str, task_id: str) -> None:
        """Note the ids of an event; a second id is that of another conversation's event."""
        for current, new in ((self.context_id, context_id), (self.task_id, task_id)):
            if current and new and new != current:
                raise AgentFault(
                    FailureCategory.AGENT_ERROR,
                    f"the reply mixes {shorten(current)} with {shorten(new)}: "
                    "an event of another task or conversation",
                )
        self.context_id = context_id or self.context_id
        self.task_id = task_id or self.task_id


def _text(parts: Iterable[Part], between: str = "\n") -> str:
    """The text of some parts; a data part is shown as JSON, since it may hold a tool call."""
    from a2a.helpers import get_data_parts

    texts = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            texts.append(part.text)
        elif kind == "data":
            texts.append(json.dumps(whole_numbers(get_data_parts([part])[0]), ensure_ascii=False))
        elif kind == "raw" and _is_text(part.media_type):
            texts.append(part.raw.decode("utf-8", "replace"))
    return between.join(texts)


def _is_text(media_type: str) -> bool:
    """Whether a file is text: an agent may answer in one."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in ("application/json", "application/xml")


def whole_numbers(value: Any) -> Any:
    """Numbers as they were sent: the wire makes 2 a 2.0."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


T = TypeVar("T")

LARGEST_REPLY = 4 * 1024 * 1024
"""Bytes; more than this in one reply is never held in memory."""
# 521 to 523 are Cloudflare's: the server behind it refuses, does not answer, or cannot be reached.
BUSY = (429, 502, 503, 504, 521, 522, 523)
"""Answers of a server in front of the agent: the message has not reached it."""
_KEY = (401, 402, 403, 407)
"""Answers of a server that asks for a key or for money, which an attempt cannot give."""
_LONGEST_WAIT = 60.0
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")
"""Names that one agent and its card may use for the same machine."""
TRIES = 3
PAUSE = 0.2

_CONNECT_SECONDS = 20.0
_READ_SECONDS = 600.0
"""No byte for so long is a dead agent, whatever limits the runner sets on top."""


def http_client(
    largest: int = LARGEST_REPLY,
    headers: Mapping[str, str] | None = None,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    received: Callable[[int], object] | None = None,
) -> httpx.AsyncClient:
    """A client that follows no redirects and reads no more than ``largest`` bytes of a reply.

    ``transport`` decides where connections go, then past all proxies. ``received`` is called with
    the number of bytes of every block that came.
    """
    import httpx

    async def guard_response(response: httpx.Response) -> None:
        _refuse_redirects(response)
        response.stream = _limit_stream(response.stream, largest, received)

    return httpx.AsyncClient(
        timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS, write=30.0, pool=None),
        # Connections are given up before servers do it: a message is not sent into a closing door.
        limits=httpx.Limits(max_connections=None, keepalive_expiry=2.0),
        follow_redirects=False,
        # The limit counts bytes as they come: a compressed reply would grow behind it.
        headers={"accept-encoding": "identity", **(headers or {})},
        event_hooks={"response": [guard_response]},
        transport=transport,
        trust_env=transport is None,
    )


def _refuse_redirects(response: httpx.Response) -> None:
    """Refuse redirects and compressed replies."""
    if response.is_redirect:
        raise AgentFault(
            FailureCategory.AGENT_ERROR,
            f"HTTP {response.status_code} leads to "
            f"{shorten(response.headers.get('location', ''), 80)}; redirects are not followed",
        )
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AgentFault(FailureCategory.FORMAT_ERROR, "the reply is compressed, unasked")


def _limit_stream(
    stream: Any, largest: int, received: Callable[[int], object] | None
) -> httpx.AsyncByteStream:
    """The same bytes, up to the largest reply."""
    import httpx

    class Bounded(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if received is not None:
                    received(len(chunk))
                if size > largest:
                    raise AgentFault(
                        FailureCategory.FORMAT_ERROR, f"a reply of over {largest:,} bytes"
                    )
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def is_address(url: str) -> bool:
    """Whether this is an ``http`` address with a host."""
    # urlsplit drops line breaks and tabs, and accepts spaces: it would read a URL that is not sent.
    if any(char <= " " or char == "\x7f" for char in url):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


FIX_CARD = "Let the card name the address at which the agent is asked, or ask it where it says."


def reachable(named: str, given: str) -> str:
    """The address on the card as seen from here; only the host that the user named is talked to."""
    here = urlsplit(given)
    try:
        target = urlsplit(urljoin(given, named))
        port = f":{target.port}" if target.port else ""
    except ValueError:
        raise CardFault(
            f"the card names {shorten(named, 80)}, which is no address", hint=FIX_CARD
        ) from None
    if target.hostname == here.hostname:
        return urlunsplit(target)
    if target.hostname in LOOPBACK and here.hostname in LOOPBACK:
        host = f"[{here.hostname}]" if ":" in str(here.hostname) else here.hostname
        return urlunsplit(target._replace(netloc=f"{host}{port}"))
    raise CardFault(
        f"the card sends us to {shorten(named, 80)}, not to {here.hostname}; "
        "an agent is only talked to where the user said it is",
        hint=FIX_CARD,
    )


async def retry_while_busy(get: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """Retry while the connection is refused: agents take a moment to start."""
    import httpx

    for left in reversed(range(TRIES)):
        try:
            response = await get()
        except httpx.ConnectError:
            if not left:
                raise
        else:
            if response.status_code not in BUSY or not left:
                return response
        await asyncio.sleep(PAUSE)
    raise AssertionError("unreachable")


class CardFault(AgentFault):
    """An agent that answers, but cannot be talked to; ``hint`` says what to do."""

    def __init__(self, detail: str, hint: str) -> None:
        super().__init__(FailureCategory.AGENT_ERROR, detail)
        self.hint = hint


class NotReceived(AgentFault):
    """The agent cannot have seen the message, so that it may be sent again after ``wait``."""

    def __init__(self, fault: AgentFault, wait: float | None = None) -> None:
        super().__init__(fault.category, fault.detail)
        self.wait = None if wait is None else min(wait, _LONGEST_WAIT)


class NoStreaming(AgentFault):
    """The card offers streams, the agent does not know the method."""


async def await_agent(work: Awaitable[T]) -> T:
    """Await the agent; errors of HTTP, of the SDK and of its parsers become AgentFault."""
    try:
        return await work
    except AgentFault:
        raise
    except Exception as error:
        import httpx
        from a2a.utils.errors import MethodNotFoundError, UnsupportedOperationError

        fault = _fault_of(error)
        cause = error.__cause__ or error
        status, wait = 0, None
        if isinstance(cause, httpx.HTTPStatusError):
            status, wait = cause.response.status_code, retry_after(cause.response.headers)
        if status in _KEY:
            raise ProviderFault(
                MissingReason.UNSUPPORTED,
                f"the agent asks for a key or a payment (HTTP {status}), which an attempt "
                "cannot give",
            ) from None
        if status in BUSY or isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
            raise NotReceived(fault, wait) from None
        if isinstance(error, MethodNotFoundError | UnsupportedOperationError):
            raise NoStreaming(fault.category, fault.detail) from None
        raise fault from None


def _fault_of(error: Exception) -> AgentFault:
    """The fault for a failed exchange: unreachable, failing, or not A2A."""
    import httpx
    from a2a.utils.errors import A2AError

    cause = error.__cause__ or error
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        if status in BUSY:
            return AgentFault(FailureCategory.COMMUNICATION_ERROR, f"HTTP {status}, {TRIES} times")
        return AgentFault(FailureCategory.AGENT_ERROR, f"the agent answered HTTP {status}")
    if isinstance(cause, httpx.ReadTimeout):
        return AgentFault(FailureCategory.TIMEOUT, f"no byte within {_READ_SECONDS:g} s")
    if isinstance(cause, httpx.HTTPError):
        return unreachable(cause)
    if isinstance(error, A2AError) and cause is error and "Invalid JSON-RPC" not in str(error):
        return AgentFault(
            FailureCategory.AGENT_ERROR, f"the agent answered an error: {shorten(str(error), 300)}"
        )
    what = shorten(f"{type(cause).__name__}: {error}", 160)
    return AgentFault(FailureCategory.FORMAT_ERROR, f"the reply is not A2A ({what})")


def unreachable(error: Exception) -> AgentFault:
    what = str(error) or type(error).__name__
    return AgentFault(
        FailureCategory.COMMUNICATION_ERROR, f"the agent cannot be reached ({shorten(what, 120)})"
    )
