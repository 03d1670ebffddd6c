"""One attempt: a fresh desk, a user on the line, and the agent between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from passhat.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Judgement, Turn
from passhat.suites.orderdesk.calls import RESPOND, Call, Unreadable, read_call, write_call
from passhat.suites.orderdesk.judging import Goal, decide
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.orderdesk.tools import Tool, invoke, listed

__all__ = ["OrderdeskEpisode", "User"]

_RETRIES = 2
"""Answers that cannot be read and are asked for again; the next one ends the attempt."""

_FORM = f"""Answer every message with exactly one call, in this form:
{write_call("tool_name", {"parameter": "value"})}
To talk to the user, call respond:
{write_call(RESPOND, {"content": "What you say."})}
You see either the user's words ("User: ...") or what a tool gave back ("Tool result: ..." or \
"Tool error: ..."). The conversation is over when the user leaves or you hand over."""


class User(Protocol):
    """Who is on the line: scripted, or simulated by a model."""

    def first(self) -> str:
        """The words that open the conversation."""

    def hear(self, text: str) -> str | None:
        """What the user says to this; ``None`` when they leave."""


class OrderdeskEpisode:
    """A conversation at the desk."""

    def __init__(
        self, domain: Domain, scenario: Scenario, goals: Sequence[Goal], user: User
    ) -> None:
        self._domain = domain
        self._scenario = scenario
        self._goals = goals
        self._user = user
        self._desk = domain.desk()
        self._said: list[str] = []
        self._unreadable: list[str] = []
        self._user_fault: str | None = None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What the agent can do here."""
        return self._domain.tools

    def open(self) -> Turn:
        return self.opened(f"## Tools\n\n{listed(self.tools)}\n\n## How to answer\n\n{_FORM}")

    def opened(self, how: str) -> Turn:
        """The first words, with another way to reach the tools."""
        return Turn(
            f"{self._domain.policy}\nToday is {self._domain.today}.\n\n{how}\n\n"
            f"User: {self._user.first()}"
        )

    def call(self, call: Call) -> str:
        """Call a tool; its result as text, or what went wrong."""
        return invoke(self.tools, self._desk, call)

    @property
    def closed(self) -> bool:
        """Whether the user has been handed over: nothing more can be done."""
        return self._desk.closed

    def reply(self, answer: str) -> Turn | None:
        try:
            call = read_call(answer)
        except Unreadable as error:
            return self._ask_again(str(error))
        if call.name == RESPOND:
            return self._hear(str(call.arguments["content"]))
        result = self.call(call)
        return None if self.closed else Turn(result)

    def judge(self) -> Judgement:
        if self._user_fault is not None:
            return Judgement.missing(MissingReason.USER_ERROR, self._user_fault)
        if len(self._unreadable) > _RETRIES:
            return Judgement.failed(
                FailureCategory.FORMAT_ERROR,
                f"{len(self._unreadable)} answers could not be read: {self._unreadable[-1]}",
            )
        return decide(self._scenario, self._goals, self._desk, self._said)

    def _ask_again(self, problem: str) -> Turn | None:
        self._unreadable.append(problem)
        if len(self._unreadable) > _RETRIES:
            return None
        return Turn(f"Your answer could not be read: {problem}. Please try again.\n{_FORM}")

    def _hear(self, text: str) -> Turn | None:
        self._said.append(text)
        try:
            words = self._user.hear(text)
        except Exception as error:  # a broken user is our fault, whatever broke
            self._user_fault = f"{type(error).__name__}: {error}"
            return None
        return None if words is None else Turn(f"User: {words}")
