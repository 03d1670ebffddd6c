"""An example white agent: any passhat agent behind an A2A endpoint. Needs passhat[a2a].

Copy it, and put your own agent where ``answer`` is called.
"""

import argparse
import sys
from urllib.parse import urlsplit

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentSkill
from starlette.types import ASGIApp

from passhat.agents import AttemptInfo, Session, load_agent
from passhat.dashboard.guard import Access, is_loopback
from passhat.integrations.agentbeats.a2a_server import a2a_application, agent_card, launcher_routes
from passhat.integrations.agentbeats.strangers import AllowedHosts
from passhat.suites.base import Turn


class WhiteAgent(AgentExecutor):
    """One session per context id; what a conversation remembers ends with it."""

    def __init__(self, agent: str, reply: str = "task") -> None:
        self.agent, self.reply, self.started = load_agent(agent), reply, 0
        self.sessions: dict[str, Session] = {}  # the one that was silent longest is first

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        own, text = str(context.context_id), context.get_user_input()
        if self.reply == "message":  # for evaluators that take nothing else
            await event_queue.enqueue_event(
                new_text_message(await self.answer(own, text), context_id=own)
            )
            return
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        try:
            answer = await self.answer(own, text)
        except Exception as error:  # of the agent; the server goes on
            why = new_text_message(f"{type(error).__name__}: {error}", context_id=own)
            await updater.failed(why)
            return
        await updater.add_artifact([new_text_part(answer)], name="answer")
        await updater.complete()

    async def answer(self, own: str, text: str) -> str:
        if '"battle_info"' in text:  # from a backend of AgentBeats 1
            return "ready"
        return str(await (await self.session(own)).answer(Turn(text)))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def session(self, own: str) -> Session:
        if own not in self.sessions:
            self.started = number = self.started + 1
            print(f"new conversation {number}: {own}", file=sys.stderr, flush=True)
            self.sessions[own] = await self.agent.session(AttemptInfo("", number, seed=number))
            await self.forget_all_but(100)
        self.sessions[own] = session = self.sessions.pop(own)
        return session

    async def forget_all_but(self, most: int) -> None:
        while len(self.sessions) > most:
            await self.sessions.pop(next(iter(self.sessions))).close()

    async def reset(self) -> dict[str, object]:
        await self.forget_all_but(0)
        return {}


def application(
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
        command="white_agent.py",
        name_option="--card-url",
        routes=routes,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", nargs="?", default="demo:careful", help="as in passhat run -a")
    parser.add_argument("--port", type=int, default=9210)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--card-url", help="the address on the card, where it differs")
    parser.add_argument("--reply", choices=["task", "message"], default="task")
    parser.add_argument("--backend", default="", metavar="HOST", help="may reset it from elsewhere")
    told = parser.parse_args()
    url = told.card_url or f"http://{told.host}:{told.port}/"
    access = Access(told.host, names=[urlsplit(url).hostname or ""])
    hosts = AllowedHosts.of(filter(None, [told.backend]), loopback=is_loopback(told.host))
    app = application(WhiteAgent(told.agent, told.reply), url, access, hosts)
    uvicorn.run(app, host=told.host, port=told.port, log_level="warning")
