"""An agent that reaches every state that the A2A project's test kit asks for.

The kit tells an agent by the beginning of a message's id what to do. It is served by the same
server as `passhat serve` and `passhat white`, so that the kit's requirements on artifacts, states
and streams are tested with it: python tools/a2a_kit_agent.py PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

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
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentSkill

from passhat.dashboard.guard import Access
from passhat.integrations.agentbeats.a2a_server import a2a_application, agent_card

LONG_SECONDS = 10
"""How long a task works that the kit subscribes to again."""

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
        if name.startswith("tck-message-response"):
            reply = new_text_message("Direct message response", context_id=context.context_id)
            await event_queue.enqueue_event(reply)
            return
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if name.startswith("tck-reject-task"):
            await updater.reject(new_text_message("rejected", context_id=task.context_id))
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
        await updater.complete(new_text_message("Hello from TCK", context_id=task.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.cancel()


def main() -> None:
    port = int(sys.argv[1])
    skill = AgentSkill(id="kit", name="kit", description="does what the kit asks", tags=["kit"])
    url = f"http://127.0.0.1:{port}"
    card = agent_card(url, name="kit", description="For the test kit.", version="1", skill=skill)
    app = a2a_application(
        *(KitAgent(), card, Access()),
        server="the kit agent",
        command="tools/a2a_kit_agent.py",
        name_option="none",
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
