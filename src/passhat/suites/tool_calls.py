"""The text protocol: an agent's answer is one call, to a tool or, by ``respond``, to the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from passhat._display import counted
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Judgement, Turn

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


FORM = f"""Answer every message with exactly one call, in this form:
{write_call("tool_name", {"parameter": "value"})}
To talk to the user, call respond:
{write_call(RESPOND, {"content": "What you say."})}
You see either the user's words ("User: ...") or what a tool gave back ("Tool result: ..." or \
"Tool error: ...")."""
NATIVE_FORM = """Use the tools you have, one call at a time. What you write without a call \
is said to the user."""
_RETRIES = 2
"""Answers that cannot be read and are asked for again; the next one ends the attempt."""


class UnreadableAnswers:
    """The answers of an attempt that are not calls; ``form`` is how to answer."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._problems: list[str] = []

    def ask_again(self, problem: str) -> Turn | None:
        """The turn that asks for the answer again; ``None`` after too many."""
        self._problems.append(problem)
        if len(self._problems) > _RETRIES:
            return None
        words = f"Your answer could not be read: {problem}. Please try again."
        return Turn(f"{words}\n{self._form}", said=words, result=words)

    def failure(self) -> Judgement | None:
        """The verdict, where they ended the attempt."""
        if len(self._problems) <= _RETRIES:
            return None
        answers = counted(len(self._problems), "answer")
        detail = f"{answers} could not be read: {self._problems[-1]}"
        return Judgement.failed(FailureCategory.FORMAT_ERROR, detail)
