"""An example white agent: any passhat agent behind an A2A endpoint, on your own machine.

    python examples/white_agent.py demo:careful --port 9210

Needs passhat[a2a]. Copy it and put your own agent where ``session.answer`` is called.
"""

from __future__ import annotations

import argparse
import sys
from collections import OrderedDict

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from passhat.agents import AttemptInfo, Session, load_agent
from passhat.suites.base import Turn

MOST_CONTEXTS = 100


class WhiteAgent(AgentExecutor):
    """One session per context id; what a conversation remembers ends with it."""

    def __init__(self, agent: str, seed: int = 0) -> None:
        self.agent = load_agent(agent)
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        self.started = seed

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        if '"battle_info"' in text:  # a backend of AgentBeats 1 says hello
            text = "ready"
        else:
            text = await (await self.session(str(context.context_id))).answer(Turn(text))
        await event_queue.enqueue_event(new_text_message(text, context_id=context.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError("an answer cannot be taken back")

    async def session(self, context_id: str) -> Session:
        """The conversation with this id, or a new one; the longest silent ones are forgotten."""
        if context_id not in self.sessions:
            self.started += 1
            print(f"new conversation {self.started}: {context_id}", file=sys.stderr, flush=True)
            info = AttemptInfo(task="", number=self.started, seed=self.started)
            self.sessions[context_id] = await self.agent.session(info)
        self.sessions.move_to_end(context_id)
        while len(self.sessions) > MOST_CONTEXTS:
            _, forgotten = self.sessions.popitem(last=False)
            await forgotten.close()
        return self.sessions[context_id]

    async def reset(self, _request: Request) -> JSONResponse:
        """Forget every conversation."""
        while self.sessions:
            _, forgotten = self.sessions.popitem()
            await forgotten.close()
        return JSONResponse({"status": "reset"})


def card(name: str, url: str) -> AgentCard:
    """What the agent says about itself, for clients of both protocol versions."""
    return AgentCard(
        name=name,
        description="A passhat agent behind A2A",
        version="1",
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="work", name="work", description="Works at a desk", tags=["desk"])],
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version=version, url=url)
            for version in ("1.0", "0.3")
        ],
    )


def application(agent: WhiteAgent, url: str) -> Starlette:
    own = card(agent.agent.name, url)
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), own)
    routes = create_agent_card_routes(own)
    routes += create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True)
    return Starlette(routes=[*routes, Route("/reset", agent.reset, methods=["POST"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", nargs="?", default="demo:careful", help="as in passhat run -a")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9210)
    parser.add_argument("--card-url", help="the address on the card, where it differs")
    told = parser.parse_args()
    url = told.card_url or f"http://{told.host}:{told.port}/"
    app = application(WhiteAgent(told.agent), url)
    uvicorn.run(app, host=told.host, port=told.port, log_level="warning")


if __name__ == "__main__":
    main()
