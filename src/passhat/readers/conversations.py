"""Messages of a log as entries of a transcript, in the form that passhat stores itself.

An entry is a role and a text. A tool call is an entry of the agent in the form of
:mod:`passhat.suites.tool_calls`; the result of a failed tool begins with ``Tool error:``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec

from passhat.suites.base import EXPECTED, GOT
from passhat.suites.tool_calls import TOOL_ERROR, Unreadable, read_call, write_call

__all__ = [
    "action_entries",
    "conversation_text",
    "message_text",
    "read_conversation",
    "transcript_entries",
    "with_answers",
]

_ROLES = {"assistant": "agent", "user": "user", "system": "system", "tool": "tool"}
_ERRORS = (TOOL_ERROR, "Error:", "Error ")
"""How results of tools begin that did nothing; the second form is tau-bench's."""
_ATTACHMENT = "attachment://"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def conversation_text(entries: Iterable[tuple[str, str]]) -> str:
    """A conversation as the text of one column; empty where there is none."""
    pairs = list(entries)
    return msgspec.json.encode(pairs).decode() if pairs else ""


def read_conversation(text: str) -> list[tuple[str, str]]:
    """The (role, text) pairs of such a column."""
    return msgspec.json.decode(text, type=list[tuple[str, str]]) if text else []


def with_answers(
    entries: Iterable[tuple[str, str]], answer: object, expected: object
) -> Iterator[tuple[str, str]]:
    """The entries, the answer where there are none, and the expected answer at the end."""
    has_entries = False
    for entry in entries:
        has_entries = True
        yield entry
    if not has_entries and isinstance(answer, str):
        yield "agent", answer
    if isinstance(expected, list) and len(expected) == 1:
        expected = expected[0]
    if expected not in (None, "", [], {}):
        yield EXPECTED, expected if isinstance(expected, str) else _json_text(expected)


def action_entries(
    entries: Iterable[tuple[str, str]], actions: object, arguments: str
) -> Iterator[tuple[str, str]]:
    """The entries, then the expected actions and the agent's own calls of the same tools.

    ``arguments`` is the key under which an action has its arguments. Other tools look things up,
    and how often is up to the agent; a call that returned an error changed nothing.
    """
    actions = [action for action in _as_list(actions) if isinstance(action, dict)]
    wanted = [(str(action.get("name")), action.get(arguments) or {}) for action in actions]
    names = {name for name, _ in wanted}
    calls: list[tuple[str, object]] = []
    is_last_a_call = False
    for role, text in entries:
        yield role, text
        if role == "tool" and is_last_a_call and text.startswith(_ERRORS):
            calls.pop()
        is_last_a_call = False
        if wanted and role == "agent":
            with suppress(Unreadable):
                call = read_call(text)
                if is_last_a_call := call.name in names:
                    calls.append((call.name, call.arguments))
    if wanted:
        yield EXPECTED, _number_calls(wanted)
        yield GOT, _number_calls(calls)


def _number_calls(calls: Iterable[tuple[str, object]]) -> str:
    """Calls by the name of their tool, so that they are compared argument by argument."""
    counts: Counter[str] = Counter()
    numbered = {}
    for name, arguments in calls:
        counts[name] += 1
        numbered[name if counts[name] == 1 else f"{name} {counts[name]}"] = arguments
    return _json_text(numbered)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def transcript_entries(
    messages: object, attachments: Mapping[str, Any] = _NOTHING
) -> Iterator[tuple[str, str]]:
    """(role, text) of messages as OpenAI, inspect, tau-bench and tau2 write them.

    Every tool call of a message is an entry of its own. Tools of a simulated user (tau2's
    telecom) are not the agent's, and are left out.
    """
    for message in _as_list(messages):
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
