"""Messages, as far as the adapter makes and reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ToolCall:
    name: str
    arguments: dict[str, Any]
    id: str = ""
    requestor: str = "assistant"


@dataclass
class _Spoken:
    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    cost: float | None = None

    def is_tool_call(self) -> bool:
        return bool(self.tool_calls)

    def validate(self) -> None:
        if not self.content and not self.tool_calls:
            raise ValueError("must have either content or tool_calls")


@dataclass
class AssistantMessage(_Spoken):
    pass


@dataclass
class UserMessage(_Spoken):
    pass


@dataclass
class ToolMessage:
    id: str
    role: str
    content: str | None = None
    requestor: str = "assistant"
    error: bool = False


@dataclass
class MultiToolMessage:
    role: str
    tool_messages: list[ToolMessage] = field(default_factory=list)
