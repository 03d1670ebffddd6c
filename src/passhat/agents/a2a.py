"""``a2a:URL``: an agent behind an A2A endpoint, of protocol version 1.0 or 0.3.

An attempt that ends by its time limit, by Ctrl-C or under a cap leaves its task working on the
other side. The agent is asked once to cancel it, within a short limit; its reaction
changes no verdict. A task whose id is not yet known cannot be named, so it continues.

For a coding task the message has a second part, the workspace as ``workspace.tar.gz``. The agent
returns inline files: each by its path in the workspace, or all of it as ``workspace.tar.gz``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

from passhat.agents.a2a_wire import (
    BUSY,
    FIX_CARD,
    LARGEST_REPLY,
    PAUSE,
    TRIES,
    CardFault,
    NoStreaming,
    NotReceived,
    Reply,
    await_agent,
    http_client,
    is_address,
    reachable,
    retry_while_busy,
    unreachable,
)
from passhat.agents.base import Agent, AgentFault, AttemptInfo, ProviderFault, Session
from passhat.errors import InvalidValue, MissingExtra, shorten
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Turn
from passhat.suites.workspace.handle import WORKSPACE_FILE

if TYPE_CHECKING:
    import httpx
    from a2a.client import Client
    from a2a.types import AgentCard, StreamResponse

_SECONDS = 2.0


async def _cancel(client: Client, task_id: str) -> None:
    from a2a.types import CancelTaskRequest

    # An agent that cannot cancel, or is gone, is none of this attempt's business.
    with suppress(AgentFault, ProviderFault, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            await await_agent(client.cancel_task(CancelTaskRequest(id=task_id)))


_CARD_SECONDS = 30.0


class A2AAgent(Agent):
    """An agent behind an A2A endpoint: a2a:http://localhost:9210; protocol versions 1.0 and 0.3."""

    def __init__(
        self,
        url: str,
        *,
        largest_reply: int = LARGEST_REPLY,
        token: str | None = None,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
        received: Callable[[int], object] | None = None,
    ) -> None:
        if not is_address(url):
            raise InvalidValue(
                f"a2a: takes the address of an agent, not {shorten(url)}.",
                hint="Write it as in a2a:http://localhost:9210",
            )
        try:
            import a2a.client  # noqa: F401 - the extra is there, or the user learns it now
        except ImportError:
            raise MissingExtra("a2a:URL", extra="a2a") from None
        self.url = url
        self.name = f"a2a:{url}"
        self._largest = largest_reply
        self._transport, self._received = transport, received
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._http: httpx.AsyncClient | None = None
        self._client: Client | None = None
        self._card: AgentCard | None = None
        self._starting = asyncio.Lock()
        self._cancelling: set[asyncio.Task[None]] = set()
        self._given: set[str] = set()

    async def check(self) -> None:
        """Read the agent's card before any attempt; a problem with it raises InvalidValue."""
        try:
            await self.connect()
        except CardFault as fault:
            raise InvalidValue(f"{self.name}: {fault.detail}.", hint=fault.hint) from None
        except AgentFault as fault:
            raise InvalidValue(
                f"{self.name}: {fault.detail}.",
                hint="Is the agent running? Its card should be at "
                f"{self.url.rstrip('/')}/.well-known/agent-card.json",
            ) from None

    async def session(self, attempt: AttemptInfo) -> _A2ASession:
        return _A2ASession(self, await self.connect(), attempt)

    async def close(self) -> None:
        """Close the connections; the next session opens new ones."""
        if self._cancelling:  # each is answered or given up within a moment
            await asyncio.wait(self._cancelling)
        http, self._http, self._client = self._http, None, None
        self._starting = asyncio.Lock()  # the next run may have another event loop
        if http is not None:
            await http.aclose()

    def cancel(self, client: Client, task_id: str) -> None:
        """Ask the agent to cancel a task, without waiting for its answer."""
        canceling = asyncio.create_task(_cancel(client, task_id))
        self._cancelling.add(canceling)
        canceling.add_done_callback(self._cancelling.discard)

    def first_context(self, context_id: str) -> None:
        """Record the context id of a new attempt; a repeated id means that attempts are mixed.

        An agent that answers one message needs none; a conversation cannot go on without.
        """
        if not context_id:
            return
        if context_id in self._given:
            raise AgentFault(
                FailureCategory.AGENT_ERROR,
                f"the context id {shorten(context_id)} was given to an earlier attempt, too: "
                "attempts are not fresh",
            )
        self._given.add(context_id)

    async def connect(self) -> Client:
        """The SDK's client for this agent, after its card was read and checked."""
        async with self._starting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    def _make_client(self, card: AgentCard) -> Client:
        from a2a.client import ClientConfig, ClientFactory

        self._card = card
        return ClientFactory(ClientConfig(httpx_client=self._http)).create(card)

    async def without_streams(self) -> Client:
        """The client, which asks for no streams from now on, whatever the card offers."""
        async with self._starting:
            assert self._client is not None
            assert self._card is not None
            if self._card.capabilities.streaming:
                self._card.capabilities.streaming = False
                self._client = self._make_client(self._card)
            return self._client

    async def _connect(self) -> Client:
        if self._http is None:
            self._http = http_client(
                self._largest,
                self._headers,
                transport=self._transport() if self._transport else None,
                received=self._received,
            )
        try:
            card = await asyncio.wait_for(self._read_card(self._http), _CARD_SECONDS)
        except TimeoutError:
            raise AgentFault(
                FailureCategory.COMMUNICATION_ERROR, f"no agent card within {_CARD_SECONDS:g} s"
            ) from None
        interfaces = list(card.supported_interfaces)
        spoken = [interface for interface in interfaces if interface.protocol_binding == "JSONRPC"]
        for interface in spoken:
            interface.url = reachable(interface.url, self.url)
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(spoken)
        try:
            return self._make_client(card)
        except ValueError:
            names = ", ".join(
                f"{interface.protocol_binding} {interface.protocol_version}"
                for interface in interfaces
            )
            raise CardFault(
                "the card offers no JSONRPC interface of version 1.0 or 0.3 "
                f"(it offers {names or 'none'})",
                hint="The agent answers, but passhat speaks A2A over JSON-RPC only: let the agent "
                "offer that binding, too, or put a small python: agent in front of it.",
            ) from None

    async def _read_card(self, http: httpx.AsyncClient) -> AgentCard:
        """The agent's card, at its place of today or at that of early agents."""
        import httpx
        from a2a.client.card_resolver import parse_agent_card

        place = f"{self.url.rstrip('/')}/.well-known/agent-card.json"
        try:
            response = await retry_while_busy(lambda: http.get(place))
            if response.status_code == 404:
                response = await http.get(f"{self.url.rstrip('/')}/.well-known/agent.json")
        except httpx.HTTPError as error:
            raise unreachable(error) from None
        if response.status_code in (401, 403):
            raise CardFault(
                f"{place} answered HTTP {response.status_code}: the agent asks for a key",
                hint="The agent runs, but its card is not public: let it show its card without a "
                "key, or put a small python: agent in front of it that has one.",
            )
        if response.status_code != 200:
            answered = f"{place} answered HTTP {response.status_code}, not an agent card"
            if response.status_code >= 500 and response.status_code not in BUSY:
                raise CardFault(answered, hint="The agent runs, but fails: its own log says why.")
            raise AgentFault(
                FailureCategory.COMMUNICATION_ERROR
                if response.status_code in BUSY
                else FailureCategory.AGENT_ERROR,
                answered,
            )
        try:
            card = parse_agent_card(response.json())
        except Exception as error:  # any error that hostile text causes in two parsers
            what = shorten(str(error), 120)
            raise CardFault(
                f"{place} is not an agent card ({what})",
                hint="Something answers there, but not as an A2A agent: check host and port.",
            ) from None
        if not card.supported_interfaces:
            raise CardFault(f"the card at {place} names no address to talk to", hint=FIX_CARD)
        return card


class _A2ASession(Session):
    """The conversation of a single attempt."""

    def __init__(self, agent: A2AAgent, client: Client, attempt: AttemptInfo) -> None:
        self._attempt = attempt
        self._agent = agent
        self._client = client
        self._reply = Reply()
        self._context_id = ""
        self._task_id = ""
        self._is_begun = False

    async def answer(self, turn: Turn) -> str:
        if self._is_begun and not self._context_id:
            raise AgentFault(
                FailureCategory.AGENT_ERROR,
                "the replies have no context id: the conversation cannot go on",
            )
        workspace = self._attempt.workspace
        try:
            archive = b"" if workspace is None else await asyncio.to_thread(workspace.pack)
        except InvalidValue as error:
            raise ProviderFault(MissingReason.UNSUPPORTED, error.message) from None
        reply = await self._send_with_retries(turn.text, archive)
        if not self._is_begun:
            self._is_begun = True
            self._agent.first_context(reply.context_id)
            self._context_id = self._attempt.meter.conversation = reply.context_id
        elif reply.context_id not in ("", self._context_id):
            raise AgentFault(
                FailureCategory.AGENT_ERROR,
                f"the agent answered in another conversation ({shorten(reply.context_id)})",
            )
        self._task_id = reply.open_task
        text = reply.text()
        if workspace is not None:
            try:
                await asyncio.to_thread(workspace.take_files, reply.files)
            except InvalidValue as error:
                raise AgentFault(FailureCategory.FORMAT_ERROR, error.message) from None
        return text

    async def close(self) -> None:
        if self._reply.task_id and not self._reply.settled:
            self._agent.cancel(self._client, self._reply.task_id)

    async def _send_with_retries(self, text: str, archive: bytes) -> Reply:
        """Send a message; retry only if the agent cannot have received it."""
        for left in reversed(range(TRIES)):
            reply = self._reply = Reply(takes_files=self._attempt.workspace is not None)
            try:
                await self._exchange(text, archive, reply)
            except NotReceived as fault:
                if not left or reply.context_id:
                    raise
                pause = PAUSE * 2 ** (TRIES - left) if fault.wait is None else fault.wait
                with self._attempt.meter.off_the_clock():
                    await asyncio.sleep(pause)
            except NoStreaming:
                client = await self._agent.without_streams()
                if client is self._client or reply.context_id:
                    raise
                self._client = client
            else:
                return reply
        raise AssertionError("unreachable")

    async def _exchange(self, text: str, archive: bytes, reply: Reply) -> None:
        async with aclosing(self._events(text, archive)) as events:
            while (event := await await_agent(anext(events, None))) is not None:
                reply.take(event)
                if reply.done:
                    return
        if not reply.settled:
            await self._wait_for(reply)

    def _events(self, text: str, archive: bytes) -> AsyncGenerator[StreamResponse]:
        from a2a.client import ClientCallContext
        from a2a.helpers import new_text_message
        from a2a.types import Part, Role, SendMessageRequest

        message = new_text_message(
            text,
            context_id=self._context_id or None,
            task_id=self._task_id or None,
            role=Role.ROLE_USER,
        )
        if archive:
            file = Part(raw=archive, media_type="application/gzip", filename=WORKSPACE_FILE)
            message.parts.append(file)
        traceparent = self._attempt.traceparent
        headers = {"traceparent": traceparent} if traceparent else None
        events = self._client.send_message(
            SendMessageRequest(message=message),
            context=ClientCallContext(service_parameters=headers),
        )
        return cast("AsyncGenerator[StreamResponse]", events)

    async def _wait_for(self, reply: Reply) -> None:
        """Poll a task that is still working until it is done; the runner sets the time limit."""
        from a2a.types import GetTaskRequest

        if not reply.task_id:
            raise AgentFault(FailureCategory.FORMAT_ERROR, "the reply holds no message and no task")
        pause = PAUSE
        while not reply.settled:
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)
            request = self._client.get_task(GetTaskRequest(id=reply.task_id))
            reply.take_task(await await_agent(request))
