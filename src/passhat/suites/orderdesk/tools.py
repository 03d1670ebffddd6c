"""Tools: functions on a desk, with a name, a description and parameters an agent can read."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any

from passhat.suites.base import ToolSpec
from passhat.suites.tool_calls import Call

Record = dict[str, Any]


class ToolError(Exception):
    """A tool cannot do its work; the agent reads the message and may try otherwise."""


@dataclass(slots=True)
class Desk:
    """The records of an attempt. Tools always obey; broken rules are recorded.

    A real desk's tools would not stop an agent from refunding what must not be refunded, so these
    do not either: keeping to the policy is part of the task.
    """

    data: Record
    today: date
    customer: str | None = None
    changes: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    closed: bool = False

    def find(self, table: str, key: str) -> Record:
        """The record by its key, in any case and spacing."""
        records: dict[str, Record] = self.data[table]
        record = records.get(key.strip()) or records.get(key.strip().upper())
        if record is None:
            raise ToolError(f"there is no {key!r} among the {table}.")
        return record

    def rule(self, kept: bool, text: str) -> None:
        """Write down a rule of the policy that an action breaks."""
        if not kept:
            self.violations.append(text)

    def change(self, what: str, owner: str) -> None:
        """Record a change; it must belong to the identified customer."""
        self.rule(
            self.customer == owner,
            f"{what}: identify the customer first, and change only what is theirs",
        )
        self.changes.append(what)

    def days_since(self, day: str) -> int:
        return (self.today - date.fromisoformat(day)).days


_SCHEMAS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "str": {"type": "string"},
        "int": {"type": "integer"},
        "float": {"type": "number"},
        "list[str]": {"type": "array", "items": {"type": "string"}},
    }
)


@dataclass(frozen=True, slots=True)
class Tool:
    """An action of the agent."""

    name: str
    description: str
    parameters: Mapping[str, str]
    kinds: Mapping[str, str]
    function: Callable[..., object]


def tool(description: str, **parameters: str) -> Callable[[Callable[..., object]], Tool]:
    """Make a tool of a function whose first parameter is the desk."""

    def make_tool(function: Callable[..., object]) -> Tool:
        signature = list(inspect.signature(function).parameters.values())[1:]
        if [parameter.name for parameter in signature] != list(parameters):
            raise TypeError(f"{function.__name__}: describe every parameter, in order")
        kinds = {parameter.name: str(parameter.annotation) for parameter in signature}
        return Tool(
            function.__name__,
            description,
            MappingProxyType(parameters),
            MappingProxyType(kinds),
            function,
        )

    return make_tool


def toolbox(values: Iterable[object]) -> Mapping[str, Tool]:
    """The tools among the values of a module, in the order in which it defines them."""
    return MappingProxyType({tool.name: tool for tool in values if isinstance(tool, Tool)})


def list_tools(tools: Mapping[str, Tool]) -> str:
    """The list that the agent reads: one tool a line."""
    lines = []
    for tool in tools.values():
        parameters = ", ".join(f"{name} ({what})" for name, what in tool.parameters.items())
        lines.append(f"- {tool.name}: {tool.description} Parameters: {parameters or 'none'}.")
    return "\n".join(lines)


def tool_specs(tools: Mapping[str, Tool]) -> tuple[ToolSpec, ...]:
    """The same list for models with tool calling."""
    return tuple(ToolSpec(tool.name, tool.description, _schema(tool)) for tool in tools.values())


def _schema(tool: Tool) -> dict[str, object]:
    properties = {
        name: {**_SCHEMAS[tool.kinds[name]], "description": what}
        for name, what in tool.parameters.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def invoke(tools: Mapping[str, Tool], desk: Desk, call: Call) -> str:
    """Call a tool and return its result as text; an error is text as well."""
    try:
        tool = tools.get(call.name)
        if tool is None:
            raise ToolError(f"there is no tool {call.name!r}.")
        arguments = _arguments(tool, call.arguments)
        result = tool.function(desk, **arguments)
    except ToolError as error:
        return f"Tool error: {error}"
    return f"Tool result: {json.dumps(result, ensure_ascii=False)}"


def _arguments(tool: Tool, given: Mapping[str, object]) -> dict[str, object]:
    expected = set(tool.parameters)
    if set(given) != expected:
        raise ToolError(
            f"{tool.name} takes {', '.join(tool.parameters) or 'nothing'}; "
            f"it was given {', '.join(given) or 'nothing'}."
        )
    return {name: _convert(tool.kinds[name], name, value) for name, value in given.items()}


def _convert(kind: str, name: str, value: object) -> object:
    """The value as the tool's type: agents write numbers as text, and integers as 2.0."""
    try:
        if kind == "list[str]":
            values = value if isinstance(value, list) else str(value).split(",")
            return [str(item).strip() for item in values]
        if kind in ("int", "float"):
            number = round(float(str(value).strip().lstrip("$€£")), 2)
            if not math.isfinite(number) or (kind == "int" and not number.is_integer()):
                raise ValueError(value)
            return int(number) if kind == "int" else number
    except (ValueError, OverflowError):
        what = "a whole number" if kind == "int" else "a number"
        raise ToolError(f"{name} should be {what}, not {value!r}.") from None
    return str(value).strip()


def one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ToolError(f"{name} should be one of {', '.join(choices)}, not {value!r}.")


def hand_over(desk: Desk, topic: str, topics: Sequence[str]) -> object:
    """Give the customer to a colleague: the conversation is over."""
    one_of("topic", topic, topics)
    desk.change(f"hand_over {topic}", desk.customer or "")
    desk.data["handover"] = topic
    desk.closed = True
    return {"handed_over": topic}
