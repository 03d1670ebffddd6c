"""Messages of a log as entries of a transcript, in the form that passhat stores itself.

An entry is a role and a text. A tool call is an entry of the agent in the form of
:mod:`passhat.suites.tool_calls`; the result of a failed tool begins with ``Tool error:``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from passhat.suites.tool_calls import TOOL_ERROR, write_call

__all__ = ["conversation_text", "message_text", "transcript_entries"]

_ROLES = {"assistant": "agent", "user": "user", "system": "system", "tool": "tool"}
_ATTACHMENT = "attachment://"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def conversation_text(entries: Iterable[tuple[str, str]]) -> str:
    """A conversation as the text of one column; empty where there is none."""
    pairs = list(entries)
    return msgspec.json.encode(pairs).decode() if pairs else ""


def transcript_entries(
    messages: object, attachments: Mapping[str, Any] = _NOTHING
) -> Iterator[tuple[str, str]]:
    """(role, text) of messages as OpenAI, inspect, tau-bench and tau2 write them.

    Every tool call of a message is an entry of its own. Tools of a simulated user (tau2's
    telecom) are not the agent's, and are left out.
    """
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield from _entries(message, attachments)


def _entries(
    message: Mapping[str, Any], attachments: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    role = _ROLES.get(str(message.get("role")), "other")
    text = message_text(message.get("content"), attachments)
    if role == "tool":
        if message.get("requestor") == "user":
            role = "other"
        elif error := message.get("error"):
            words = error.get("message") if isinstance(error, dict) else None
            text = f"{TOOL_ERROR}{text or words or ''}"
    calls = list(_calls(message)) if role == "agent" else []
    if text or not calls:
        yield role, text
    for name, arguments in calls:
        yield role, write_call(name, arguments)


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, object]]]:
    calls = message.get("tool_calls")
    old = message.get("function_call")
    for call in [*(calls if isinstance(calls, list) else []), *([old] if old else [])]:
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        body = function if isinstance(function, dict) else call
        name = function if isinstance(function, str) else body.get("name")
        yield str(name), _arguments(body.get("arguments"))


def _arguments(value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"text": value}
    return value if isinstance(value, dict) else {}


def message_text(content: object, attachments: Mapping[str, Any] = _NOTHING) -> str:
    """The text of a message: a string, or parts; inspect keeps long ones beside the sample."""
    if isinstance(content, str):
        if content.startswith(_ATTACHMENT):
            return str(attachments.get(content.removeprefix(_ATTACHMENT), content))
        return content
    return "\n".join(_part_texts(content if isinstance(content, list) else (), attachments))


def _part_texts(parts: Iterable[object], attachments: Mapping[str, Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "text":
            yield message_text(part.get("text"), attachments)
        else:
            yield f"[{part.get('type') if isinstance(part, dict) else None}]"
