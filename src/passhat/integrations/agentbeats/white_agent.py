"""A white agent: any passhat agent behind an A2A endpoint, to be evaluated by others."""

from __future__ import annotations

from collections.abc import Callable

from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentSkill
from starlette.types import ASGIApp

from passhat.agents import AttemptInfo, Session, load_agent
from passhat.agents.command import ALL_VARIABLES, CommandAgent
from passhat.dashboard.guard import Access
from passhat.integrations.agentbeats.a2a_server import a2a_application, agent_card, launcher_routes
from passhat.integrations.agentbeats.strangers import AllowedHosts
from passhat.suites.base import Turn

_MOST_CONVERSATIONS = 10_000
"""Conversations that are remembered: an evaluator keeps thousands of attempts open at most."""


class WhiteAgent(AgentExecutor):
    """One session per context id; what a conversation remembers ends with it.

    ``agent`` is a word as in ``passhat run -a``, ``reply`` is ``task``, or ``message`` for
    evaluators that take nothing else. ``say`` is called with a line for every new conversation.
    """

    def __init__(
        self,
        agent: str,
        reply: str = "task",
        say: Callable[[str], object] = lambda _line: None,
        most_conversations: int = _MOST_CONVERSATIONS,
    ) -> None:
        self.agent, self.reply, self.started = load_agent(agent), reply, 0
        if isinstance(self.agent, CommandAgent):
            self.agent.pass_variables((ALL_VARIABLES,))  # the user's own program, on its own
        self._say, self._most = say, most_conversations
        self.sessions: dict[str, Session] = {}  # the one that was silent longest is first

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        context_id, text = str(context.context_id), context.get_user_input()
        if self.reply == "message":
            await event_queue.enqueue_event(
                new_text_message(await self.answer(context_id, text), context_id=context_id)
            )
            return
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        try:
            answer = await self.answer(context_id, text)
        except Exception as error:  # of the agent; the server goes on
            why = new_text_message(f"{type(error).__name__}: {error}", context_id=context_id)
            await updater.failed(why)
            return
        await updater.add_artifact([new_text_part(answer)], name="answer")
        await updater.complete()

    async def answer(self, context_id: str, text: str) -> str:
        """Answer a message of a conversation."""
        if '"battle_info"' in text:  # from a backend of AgentBeats 1
            return "ready"
        return str(await (await self.session(context_id)).answer(Turn(text)))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def session(self, context_id: str) -> Session:
        """Return the session of a conversation; a new one begins with its first message."""
        if context_id not in self.sessions:
            self.started = number = self.started + 1
            self._say(f"new conversation {number}: {context_id}")
            info = AttemptInfo("", number, seed=number)
            self.sessions[context_id] = await self.agent.session(info)
            await self.forget_all_but(self._most)
        self.sessions[context_id] = session = self.sessions.pop(context_id)
        return session

    async def forget_all_but(self, most: int) -> None:
        """Close the sessions that were silent longest."""
        while len(self.sessions) > most:
            await self.sessions.pop(next(iter(self.sessions))).close()

    async def reset(self) -> dict[str, object]:
        """Forget every conversation."""
        await self.forget_all_but(0)
        return {}


def white_application(
    agent: WhiteAgent, url: str, access: Access | None = None, hosts: AllowedHosts | None = None
) -> ASGIApp:
    """A2A at ``/`` for clients of protocol versions 1.0 and 0.3, and ``POST /reset``."""
    skill = AgentSkill(id="work", name="work", description="Works at a desk", tags=["desk"])
    name = agent.agent.name
    card = agent_card(url, name=name, description="A passhat agent", version="1", skill=skill)
    routes = launcher_routes(
        agent.reset, lambda: {"conversations": len(agent.sessions)}, hosts or AllowedHosts()
    )
    return a2a_application(
        agent,
        card,
        access or Access(),
        server="agent",
        command="passhat white",
        routes=routes,
    )
