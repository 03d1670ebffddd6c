"""The other side of a green agent: send it a request, follow it, take its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from passhat.agents.a2a_client import A2AAgent
from passhat.agents.a2a_replies import whole_numbers
from passhat.agents.a2a_wire import theirs
from passhat.agents.base import AgentFault
from passhat.errors import InvalidValue

if TYPE_CHECKING:
    from a2a.types import Artifact, Task, TaskStatus

__all__ = ["Answered", "request_assessment"]

_LARGEST_STREAM = 64 * 1024 * 1024


@dataclass(slots=True)
class Answered:
    """What a green agent came to: its last state, and the artifacts' texts and data."""

    state: str = ""
    said: str = ""
    texts: list[str] = field(default_factory=list)
    data: list[Any] = field(default_factory=list)

    @property
    def completed(self) -> bool:
        return self.state == "completed"

    def take_task(self, task: Task) -> None:
        self.take_status(task.status)
        for artifact in task.artifacts:
            self.take_artifact(artifact)

    def take_artifact(self, artifact: Artifact) -> None:
        from a2a.helpers import get_data_parts, get_text_parts

        self.texts += get_text_parts(artifact.parts)
        self.data += [whole_numbers(one) for one in get_data_parts(artifact.parts)]

    def take_status(self, status: TaskStatus) -> str:
        from a2a.helpers import get_message_text
        from a2a.types import TaskState

        self.state = TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()
        self.said = get_message_text(status.message) if status.HasField("message") else ""
        return self.said


async def request_assessment(
    url: str, text: str, say: Callable[[str], object], *, token: str | None = None
) -> Answered:
    """Send the request and say every status update as it comes."""
    from a2a.helpers import get_message_text, new_text_message
    from a2a.types import Role, SendMessageRequest

    agent = A2AAgent(url, largest_reply=_LARGEST_STREAM, token=token)
    found = Answered()
    try:
        client = await agent.connected()
        message = new_text_message(text, role=Role.ROLE_USER)
        events = client.send_message(SendMessageRequest(message=message))
        while (event := await theirs(anext(events, None))) is not None:
            kind = event.WhichOneof("payload")
            if kind == "message":
                found.state, found.said = "message", get_message_text(event.message)
            elif kind == "task":
                found.take_task(event.task)
            elif kind == "artifact_update":
                found.take_artifact(event.artifact_update.artifact)
            elif found.take_status(event.status_update.status):
                say(found.said)
    except AgentFault as fault:
        raise InvalidValue(
            f"the green agent at {url}: {fault.detail}.", hint="Start one with: passhat serve"
        ) from None
    finally:
        await agent.close()
    return found
