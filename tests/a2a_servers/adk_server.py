# mypy: ignore-errors
"""An agent behind the A2A server of google-adk: run by that package's interpreter, never imported.

It answers with how many messages this conversation has had, and with what was said now. Prints its
address, then serves until it is ended.
"""

import socket
import sys
import warnings

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

warnings.simplefilter("ignore")


class Counts(BaseLlm):
    """A model that needs no server."""

    async def generate_content_async(self, llm_request, stream=False):  # noqa: ARG002
        users = [content for content in llm_request.contents if content.role == "user"]
        said = "".join(part.text or "" for part in users[-1].parts)
        part = types.Part(text=f"{len(users)} {said}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def main():
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    port = sock.getsockname()[1]
    agent = LlmAgent(name="counts", model=Counts(model="counts"), description="counts messages")
    app = to_a2a(agent, host="127.0.0.1", port=port)
    sys.stdout.write(f"http://127.0.0.1:{port}/\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[sock])


if __name__ == "__main__":
    main()
