# mypy: ignore-errors
"""An agent written for a2a-sdk 0.3.26: run by that version's own interpreter, never imported.

python agent.py message|task|question|works yes|no

Prints its address, then serves until it is ended; "works" goes on until it is cancelled.
"""

import asyncio
import socket
import sys
from collections import Counter

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


class Counts(AgentExecutor):
    """Answers with how many messages this conversation has had, and with what was said now."""

    def __init__(self, kind):
        self.kind = kind
        self.heard = Counter()

    async def execute(self, context, event_queue):
        self.heard[context.context_id] += 1
        text = f"{self.heard[context.context_id]} {context.get_user_input()}"
        if self.kind == "message":
            await event_queue.enqueue_event(new_agent_text_message(text, context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(new_agent_text_message("one moment", task.context_id, task.id))
        if self.kind == "works":
            await asyncio.Event().wait()
        if self.kind == "question":
            words = new_agent_text_message(text, task.context_id, task.id)
            await updater.requires_input(words, final=True)
            return
        await updater.add_artifact([Part(root=TextPart(text=text))], name="answer")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        sys.stdout.write("cancelled\n")
        sys.stdout.flush()


def main(kind, streaming):
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
    card = AgentCard(
        name="counts",
        description="counts messages",
        url=url,
        version="1",
        capabilities=AgentCapabilities(streaming=streaming == "yes"),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="count", name="count", description="counts", tags=["count"])],
    )
    handler = DefaultRequestHandler(Counts(kind), InMemoryTaskStore())
    app = A2AStarletteApplication(card, handler).build()
    sock.listen(64)
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[sock])


if __name__ == "__main__":
    main(*sys.argv[1:])
