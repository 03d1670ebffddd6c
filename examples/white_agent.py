"""An example white agent: any passhat agent behind an A2A endpoint. Needs passhat[a2a].

Copy it, and put your own agent where ``answer`` is called.
"""

import argparse
import sys

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCard
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from passhat.agents import AttemptInfo, Session, load_agent
from passhat.suites.base import Turn


class WhiteAgent(AgentExecutor):
    """One session per context id; what a conversation remembers ends with it."""

    def __init__(self, agent: str) -> None:
        self.agent, self.started = load_agent(agent), 0
        self.sessions: dict[str, Session] = {}  # the one that was silent longest is first

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        own, text = str(context.context_id), context.get_user_input()
        hello = '"battle_info"' in text  # from a backend of AgentBeats 1
        answer = "ready" if hello else await (await self.session(own)).answer(Turn(text))
        await event_queue.enqueue_event(new_text_message(answer, context_id=own))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError("an answer cannot be taken back")

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

    async def reset(self, _request: object) -> JSONResponse:
        await self.forget_all_but(0)
        return JSONResponse({"status": "reset"})


def application(agent: WhiteAgent, url: str) -> Starlette:
    """A2A at ``/`` for clients of protocol versions 1.0 and 0.3, and ``POST /reset``."""
    card = AgentCard(name=agent.agent.name, description="A passhat agent", version="1")
    card.default_input_modes[:] = card.default_output_modes[:] = ["text"]
    card.skills.add(id="work", name="work", description="Works at a desk", tags=["desk"])
    for version in ("1.0", "0.3"):
        card.supported_interfaces.add(protocol_binding="JSONRPC", protocol_version=version, url=url)
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True)
    return Starlette(routes=[*routes, Route("/reset", agent.reset, methods=["POST"])])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", nargs="?", default="demo:careful", help="as in passhat run -a")
    parser.add_argument("--port", type=int, default=9210)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--card-url", help="the address on the card, where it differs")
    told = parser.parse_args()
    app = application(WhiteAgent(told.agent), told.card_url or f"http://{told.host}:{told.port}/")
    uvicorn.run(app, host=told.host, port=told.port, log_level="warning")
