"""The text protocol: an agent's answer is one call, to a tool or, by ``respond``, to the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["RESPOND", "TOOL_ERROR", "Call", "Unreadable", "read_call", "write_call"]

RESPOND = "respond"
"""The name that talks to the user, with ``{"content": ...}``."""

TOOL_ERROR = "Tool error: "
"""How the result of a tool begins in a transcript where the tool failed."""

_TAGGED = re.compile(r"<json>(.*?)</json>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


class Unreadable(Exception):
    """An answer that is not a call; the message describes the problem."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's name and its arguments."""

    name: str
    arguments: Mapping[str, object]


def read_call(answer: str) -> Call:
    """The call that an answer carries.

    Examples
    --------
    >>> read_call('<json>{"name": "get_order", "arguments": {"order": "R-1"}}</json>')
    Call(name='get_order', arguments={'order': 'R-1'})
    """
    match = _TAGGED.search(answer) or _FENCED.search(answer)
    text = match[1] if match else answer.strip()
    if not match and not text.startswith("{"):
        raise Unreadable("there is no <json>...</json> in it")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"what stands there is not JSON ({error})") from None
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise Unreadable('it should be an object with "name" and "arguments"')
    arguments = data.get("arguments", data.get("kwargs", {}))
    if not isinstance(arguments, dict):
        raise Unreadable('"arguments" should be an object')
    if data["name"] == RESPOND and not isinstance(arguments.get("content"), str):
        raise Unreadable('respond takes {"content": "what you say to the user"}')
    return Call(data["name"], arguments)


def write_call(name: str, arguments: Mapping[str, object]) -> str:
    """A call as the answer that carries it.

    Examples
    --------
    >>> write_call("get_order", {"order": "R-1"})
    '<json>{"name": "get_order", "arguments": {"order": "R-1"}}</json>'
    """
    call = {"name": name, "arguments": arguments}
    # "<\\/" is the same text in JSON, and cannot end the call before its end.
    text = json.dumps(call, ensure_ascii=False).replace("</", "<\\/")
    return f"<json>{text}</json>"
