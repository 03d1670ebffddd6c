"""An agent that reaches every state that the A2A project's test kit asks for.

The kit tells an agent by the beginning of a message's id what to do. Its JSON-RPC is served by the
same server as `passhat serve` and `passhat white`, so that the kit's requirements on artifacts,
states and streams are tested with it. HTTP+JSON and gRPC, which passhat does not offer, are the
SDK's.

    python tools/a2a_kit_agent.py PORT          all that the kit knows
    python tools/a2a_kit_agent.py PORT --bare   no streams, no push, no extended card: what such
                                                an agent has to refuse
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import grpc.aio  # type: ignore[import-untyped]
import httpx
import uvicorn
from a2a.helpers import (
    new_data_part,
    new_raw_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
    new_url_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    ExtensionSupportRequiredError,
)
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from starlette.applications import Starlette

from kept_ports import kept_port
from passhat.dashboard.guard import Access
from passhat.integrations.agentbeats.a2a_server import a2a_application, agent_card

LONG_SECONDS = 10
"""How long a task works that the kit subscribes to again."""

EXTENSION = "urn:a2a:tck:required-extension"
"""Announced as required; missed only where the kit asks for it, as its other calls omit it, too."""

FILE = {"filename": "output.txt", "media_type": "text/plain"}


def artifact_parts(kind: str) -> list[Any]:
    """The parts that the kit asks for by the rest of an id; the longest name first."""
    if kind.startswith("file-url"):
        return [new_url_part("https://example.com/output.txt", **FILE)]
    if kind.startswith("file"):
        return [new_raw_part(b"Generated file content", **FILE)]
    if kind.startswith("data"):
        return [new_data_part({"key": "value", "count": 42})]
    return [new_text_part("Generated text content")]


class KitAgent(AgentExecutor):
    """Does what the id of a message asks for; any other text is completed with an answer."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        name = context.message.message_id
        if name.startswith("tck-cap-ext") and EXTENSION not in context.requested_extensions:
            raise ExtensionSupportRequiredError(message=f"{EXTENSION} is required.")
        if name.startswith("tck-message-response"):
            reply = new_text_message("Direct message response", context_id=context.context_id)
            await event_queue.enqueue_event(reply)
            return
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        await self.work(name, TaskUpdater(event_queue, task.id, task.context_id))

    async def work(self, name: str, updater: TaskUpdater) -> None:
        """Bring a task into the states that the id of its message asks for."""
        if name.startswith("tck-reject-task"):
            await updater.reject(new_text_message("rejected", context_id=updater.context_id))
            return
        if name.startswith("tck-input-required"):
            await updater.requires_input()
            return
        if not name.startswith("tck-stream-002"):
            await updater.start_work()
        if name.startswith("test-resubscribe"):
            await asyncio.sleep(LONG_SECONDS)
        elif name.startswith("tck-stream-artifact-chunked"):
            await updater.add_artifact([new_text_part("chunk-1 ")], artifact_id="a", append=False)
            last = [new_text_part("chunk-2")]
            await updater.add_artifact(last, artifact_id="a", append=True, last_chunk=True)
        elif "artifact-" in name:
            await updater.add_artifact(artifact_parts(name.partition("artifact-")[2]))
        elif name.startswith("tck-stream-") and not name.startswith("tck-stream-002"):
            await updater.add_artifact([new_text_part("Stream hello from TCK")])
        await updater.complete(new_text_message("Hello from TCK", context_id=updater.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.cancel()


def kit_card(url: str, rest_url: str, grpc_address: str, *, bare: bool) -> AgentCard:
    """A card of version 1.0 alone, which is what the kit's schema allows."""
    skill = AgentSkill(id="kit", name="kit", description="does what the kit asks", tags=["kit"])
    card = agent_card(url, name="kit", description="For the test kit.", version="1", skill=skill)
    del card.supported_interfaces[1:]
    can = card.capabilities
    can.extended_agent_card = can.streaming = can.push_notifications = not bare
    can.extensions.append(AgentExtension(uri=EXTENSION, required=True))
    for binding, place in (("HTTP+JSON", rest_url), ("GRPC", grpc_address)):
        card.supported_interfaces.append(
            AgentInterface(protocol_binding=binding, protocol_version="1.0", url=place)
        )
    return card


async def serve(port: int, *, bare: bool) -> None:
    """Serve JSON-RPC on the port, HTTP+JSON and gRPC on free ones."""
    with kept_port() as rest_port, kept_port() as grpc_port:
        card = kit_card(
            *(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{rest_port}"),
            f"127.0.0.1:{grpc_port}",
            bare=bare,
        )
        pushes = InMemoryPushNotificationConfigStore()
        async with httpx.AsyncClient(trust_env=False) as http:
            handler = DefaultRequestHandler(
                *(KitAgent(), InMemoryTaskStore(), card),
                push_config_store=None if bare else pushes,
                push_sender=None if bare else BasePushNotificationSender(http, pushes),
                extended_agent_card=None if bare else card,
            )
            app = a2a_application(
                *(handler, card, Access()),
                server="the kit agent",
                command="tools/a2a_kit_agent.py",
            )
            over_grpc = grpc.aio.server()
            over_grpc.add_insecure_port(f"127.0.0.1:{grpc_port}")
            add_A2AServiceServicer_to_server(GrpcHandler(handler), over_grpc)  # type: ignore[no-untyped-call]
            await over_grpc.start()
            apps: dict[int, Any] = {
                rest_port: Starlette(routes=create_rest_routes(handler)),
                port: app,
            }
            servers = [
                uvicorn.Server(uvicorn.Config(app, "127.0.0.1", place, log_level="error"))
                for place, app in apps.items()
            ]
            await asyncio.gather(*(server.serve() for server in servers))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--bare", action="store_true")
    told = parser.parse_args()
    asyncio.run(serve(told.port, bare=told.bare))


if __name__ == "__main__":
    main()
