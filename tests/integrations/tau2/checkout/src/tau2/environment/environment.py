"""A list of things, and tools to change it."""

from __future__ import annotations

import os
from typing import Any

from tau2.data_model.message import ToolCall, ToolMessage


class Tool:
    def __init__(self, name: str, description: str, parameters: list[str]) -> None:
        self.name = name
        self.openai_schema = {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {"type": "object", "required": parameters},
            },
        }


class Database:
    def __init__(self) -> None:
        self.things: list[str] = []

    def model_dump(self, mode: str) -> dict[str, list[str]]:
        assert mode == "json"
        return {"things": list(self.things)}


class ToolKit:
    def __init__(self) -> None:
        self.db = Database()


class Environment:
    def __init__(self, domain_name: str, policy: str) -> None:
        self.domain_name, self.policy = domain_name, policy
        self.tools = ToolKit()

    @property
    def things(self) -> list[str]:
        return self.tools.db.things

    def get_policy(self) -> str:
        return self.policy

    def get_tools(self) -> list[Tool]:
        return [Tool("add", "Add a thing.", ["thing"]), Tool("crash", "Ends everything.", [])]

    def get_user_tools(self, include: list[str] | None = None) -> list[Tool]:
        raise ValueError("User tools not available")

    def make_tool_call(self, tool_name: str, requestor: str = "assistant", **given: Any) -> str:
        if tool_name == "crash":
            os._exit(3)
        if tool_name not in ("add", "agree"):
            raise ValueError(f"Tool '{tool_name}' not found.")
        self.things.append(given.get("thing", f"agreed by {requestor}"))
        return f"{len(self.things)} things"

    def get_response(self, call: ToolCall) -> ToolMessage:
        try:
            content = self.make_tool_call(call.name, call.requestor, **call.arguments)
            failed = False
        except Exception as error:
            content, failed = f"Error: {error}", True
        return ToolMessage(call.id, "tool", content, call.requestor, failed)
