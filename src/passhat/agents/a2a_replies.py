"""What an A2A agent sent back, put together: a message, or a task that grows event by event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from passhat.agents.base import AgentFault
from passhat.stats.outcomes import FailureCategory

if TYPE_CHECKING:
    from a2a.types import Message, Part, StreamResponse, Task, TaskStatus

__all__ = ["Reply", "whole_numbers"]

_REFUSED = ("FAILED", "REJECTED", "CANCELED", "AUTH_REQUIRED")
_CLOSED = ("COMPLETED", *_REFUSED)


class Reply:
    """One answer of the agent, from all that came for one message.

    An agent answers with a Message, or with a Task that is complete at once, or with events that
    complete it bit by bit. ``done`` says when nothing more will come. A question that stands in
    a task as it is (``settled``) may be the one that was just answered: more may come.
    """

    def __init__(self) -> None:
        self.context_id = ""
        self.task_id = ""
        self._message: str | None = None
        self._state = ""
        self._asks_now = False
        self._status_text = ""
        self._artifacts: dict[str, list[str]] = {}

    @property
    def done(self) -> bool:
        return self._message is not None or self._asks_now or self._state in _CLOSED

    @property
    def settled(self) -> bool:
        return self.done or self._state == "INPUT_REQUIRED"

    @property
    def open_task(self) -> str:
        """The task that the next message goes on with; empty when this one is closed."""
        return self.task_id if self._state == "INPUT_REQUIRED" else ""

    def take(self, event: StreamResponse) -> None:
        """Add what one event says."""
        kind = event.WhichOneof("payload")
        if kind == "message":
            self._belongs_to(event.message.context_id, "")
            self._message = _text(event.message.parts)
        elif kind == "task":
            self.take_task(event.task)
        elif kind == "status_update":
            update = event.status_update
            self._belongs_to(update.context_id, update.task_id)
            self._take_status(update.status)
            self._asks_now = self._state == "INPUT_REQUIRED"
        elif kind == "artifact_update":
            change = event.artifact_update
            self._belongs_to(change.context_id, change.task_id)
            earlier = self._artifacts.get(change.artifact.artifact_id, []) if change.append else []
            self._artifacts[change.artifact.artifact_id] = [
                *earlier,
                _text(change.artifact.parts, between=""),  # pieces of one text
            ]

    def take_task(self, task: Task) -> None:
        """Replace what is known by the task as it stands."""
        self._belongs_to(task.context_id, task.id)
        self._artifacts = {
            one.artifact_id: [_text(one.parts, between="")] for one in task.artifacts
        }
        self._take_status(task.status)

    def text(self) -> str:
        """The agent's words; what is not an answer is the agent's fault."""
        if self._message is not None:
            return _spoken(self._message)
        if self._state in _REFUSED:
            why = f": {self._status_text[:300]}" if self._status_text else ""
            raise AgentFault(
                FailureCategory.AGENT_ERROR,
                f"the agent's task ended as {self._state.lower()}{why}",
            )
        made = "\n".join("".join(parts) for parts in self._artifacts.values())
        # A question stands in the status; a result stands in the artifacts, if there are any.
        return _spoken(self._status_text or made if self.open_task else made or self._status_text)

    def _take_status(self, status: TaskStatus) -> None:
        from a2a.types import TaskState

        self._state = TaskState.Name(status.state).removeprefix("TASK_STATE_")
        if status.HasField("message"):
            self._status_text = _message_text(status.message)

    def _belongs_to(self, context_id: str, task_id: str) -> None:
        self.context_id = context_id or self.context_id
        self.task_id = task_id or self.task_id


def _spoken(text: str) -> str:
    if not text.strip():
        raise AgentFault(FailureCategory.FORMAT_ERROR, "the agent's reply holds no text")
    return text


def _message_text(message: Message) -> str:
    return _text(message.parts)


def _text(parts: Iterable[Part], between: str = "\n") -> str:
    """The words in some parts; a data part is shown as JSON, where a call may be written as one."""
    from a2a.helpers import get_data_parts

    found = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            found.append(part.text)
        elif kind == "data":
            found.append(json.dumps(whole_numbers(get_data_parts([part])[0]), ensure_ascii=False))
    return between.join(found)


def whole_numbers(value: Any) -> Any:
    """Numbers as they were sent: the wire makes 2 a 2.0."""
    if isinstance(value, dict):
        return {key: whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
