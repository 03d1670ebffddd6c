# mypy: ignore-errors
"""A client of a2a-sdk 0.3.26: sends standard input to an agent, writes what comes as JSON lines.

python client.py URL           as AgentBeats' clients of version 2 do
python client.py URL early     as the backend of version 1 does: early card, early client class
"""

import asyncio
import json
import sys
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, A2AClient, ClientConfig, ClientFactory
from a2a.types import (
    Message,
    MessageSendParams,
    Part,
    Role,
    SendStreamingMessageRequest,
    TextPart,
)


def show(**line):
    sys.stdout.write(json.dumps(line) + "\n")


def texts(parts):
    return [part.root.text for part in parts if isinstance(part.root, TextPart)]


def show_event(event):
    if event.kind == "status-update":
        said = texts(event.status.message.parts) if event.status.message else []
        show(kind="status", state=event.status.state.value, text="".join(said))
    elif event.kind == "artifact-update":
        data = [part.root.data for part in event.artifact.parts if part.root.kind == "data"]
        show(
            kind="artifact", name=event.artifact.name, texts=texts(event.artifact.parts), data=data
        )
    else:
        show(kind=event.kind)


def message(text):
    return Message(role=Role.user, parts=[Part(TextPart(text=text))], message_id=uuid4().hex)


async def modern(url, text):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
        async for event in client.send_message(message(text)):
            task, update = event if isinstance(event, tuple) else (event, None)
            show_event(update or task)


async def early(url, text):
    async with httpx.AsyncClient(timeout=60) as http:
        resolver = A2ACardResolver(http, url)
        card = await resolver.get_agent_card(relative_card_path="/.well-known/agent.json")
        client = A2AClient(httpx_client=http, agent_card=card)
        params = MessageSendParams(message=message(text))
        request = SendStreamingMessageRequest(id=str(uuid4()), params=params)
        async for chunk in client.send_message_streaming(request):
            show_event(chunk.root.result)


if __name__ == "__main__":
    how = early if sys.argv[2:] == ["early"] else modern
    asyncio.run(how(sys.argv[1], sys.stdin.read()))
