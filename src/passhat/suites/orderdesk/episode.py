"""An attempt at the desk: fresh records, a simulated user, and the agent between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Episode, Judgement, Turn
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.orderdesk.tools import Desk, Tool, invoke, list_tools, tool_specs
from passhat.suites.tool_calls import (
    FORM,
    NATIVE_FORM,
    RESPOND,
    Call,
    Unreadable,
    UnreadableAnswers,
    read_call,
)

JUDGE_VERSION = 1
"""Raised whenever the rules below change."""

_STOPS = re.compile(r"[.,;]+(?=\s|$)")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Goal:
    """How the records should look at the end, and whether that takes a change at all."""

    records: object
    asks_for_change: bool


def goals_of(domain: Domain, scenario: Scenario) -> tuple[Goal, ...]:
    """The right ends of a task: its gold calls, made on a fresh desk."""
    return tuple(_goal(domain, scenario, calls) for calls in scenario.goals)


def _goal(domain: Domain, scenario: Scenario, calls: Sequence[Call]) -> Goal:
    desk = domain.desk()
    desk.customer = scenario.customer
    for call in calls:
        result = invoke(domain.tools, desk, call)
        if result.startswith("Tool error") or desk.violations:
            raise ValueError(f"{scenario.id}: {call} is not gold: {result} {desk.violations}")
    return Goal(desk.data, bool(desk.changes))


def decide(scenario: Scenario, goals: Sequence[Goal], desk: Desk, said: Sequence[str]) -> Judgement:
    """Judge a conversation that has ended. The first rule that applies decides."""
    if desk.violations:
        return Judgement.failed(FailureCategory.POLICY_VIOLATION, desk.violations[0])
    if not any(_same(desk.data, goal.records) for goal in goals):
        places = list(_differences(desk.data, goals[0].records))
        path, is_now, wanted = places[0]
        first = f"{path} is {is_now!r}, it should be {wanted!r}"
        failure = Judgement.failed(FailureCategory.WRONG_STATE, first)
        if not desk.changes and all(goal.asks_for_change for goal in goals):
            detail = f"nothing was done: {first}"
            failure = Judgement.failed(FailureCategory.TASK_INCOMPLETE, detail)
        return replace(
            failure,
            expected=json.dumps({path: wanted for path, _, wanted in places}),
            got=json.dumps({path: is_now for path, is_now, _ in places}),
        )
    untold = [output for output in scenario.outputs if not is_told(output, said)]
    if not untold:
        return Judgement.passed()
    all_of_them = len(untold) == len(scenario.outputs)
    category = (
        FailureCategory.MISSING_OUTPUTS if all_of_them else FailureCategory.INCOMPLETE_OUTPUTS
    )
    failure = Judgement.failed(category, f"the user was not told {', '.join(untold)}")
    got = [output for output in scenario.outputs if output not in untold]
    return replace(
        failure,
        expected=json.dumps({"told to the user": list(scenario.outputs)}),
        got=json.dumps({"told to the user": got}),
    )


def is_told(output: str, said: Sequence[str]) -> bool:
    """Whether the user was told an output: any of its alternatives, a number by its value.

    Examples
    --------
    >>> is_told("1240.50|free", ["That makes $1,240.5 in all."])
    True
    """
    text = " ".join(said).casefold()
    numbers = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    for alternative in output.split("|"):
        if _NUMBER.fullmatch(alternative):
            if float(alternative) in numbers:
                return True
        elif alternative.casefold() in text:
            return True
    return False


def _same(value: object, wanted: object) -> bool:
    """Whether two values are equal, ignoring case, punctuation and spaces in text."""
    if value == wanted:
        return True
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(
            _same(value[key], wanted[key]) for key in value
        )
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    if isinstance(value, str) and isinstance(wanted, str):
        return _plain(value) == _plain(wanted)
    return False


def _plain(text: str) -> str:
    return " ".join(_STOPS.sub(" ", text).casefold().split())


def _differences(
    value: object, wanted: object, where: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Every place where the records differ: its path, the value, and the value it should have."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        for key in sorted(set(value) | set(wanted)):
            if not _same(value.get(key), wanted.get(key)):
                path = f"{where}.{key}" if where else str(key)
                yield from _differences(value.get(key), wanted.get(key), path)
    elif isinstance(value, list) and isinstance(wanted, list) and len(value) == len(wanted):
        for place, (record, other) in enumerate(zip(value, wanted, strict=True)):
            if not _same(record, other):
                yield from _differences(record, other, f"{where}[{place}]")
    else:
        yield where, value, wanted


_END = "The conversation is over when the user leaves or you hand over."
_FORM = f"{FORM} {_END}"


class User(Protocol):
    """The user of a conversation, as simulated in ``passhat.suites.orderdesk.user``."""

    def first(self) -> str:
        """The first message of the conversation."""

    def reply_to(self, text: str) -> str | None:
        """The user's reply; ``None`` when they leave."""


class DeskEpisode(Episode):
    """The desk's side of a conversation: messages to the agent, and effects of its calls."""

    def __init__(self, domain: Domain, scenario: Scenario, goals: Sequence[Goal]) -> None:
        self._domain = domain
        self._scenario = scenario
        self._goals = goals
        self._desk = domain.desk()
        self._messages: list[str] = []
        self._unreadable = UnreadableAnswers(_FORM)
        self._user_fault: str | None = None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools of the agent."""
        return self._domain.tools

    @property
    def closed(self) -> bool:
        """Whether the user has been handed over: nothing more can be done."""
        return self._desk.closed

    def call(self, call: Call) -> str:
        """Call a tool; its result or its error as text."""
        return invoke(self.tools, self._desk, call)

    def first_turn(self, words: str) -> Turn:
        """The first turn, with the user's first message."""
        policy = f"{self._domain.policy}\nToday is {self._domain.today}."
        return Turn(
            f"{policy}\n\n## Tools\n\n{list_tools(self.tools)}\n\n"
            f"## How to answer\n\n{_FORM}\n\nUser: {words}",
            system=f"{policy}\n\n## How to answer\n\n{NATIVE_FORM} {_END}",
            said=words,
            tools=tool_specs(self.tools),
        )

    def heard(self, words: str | None) -> Turn | None:
        """A later turn with a message of the user; ``None`` when they left."""
        return None if words is None else Turn(f"User: {words}", said=words)

    def work(self, answer: str) -> Turn | str | None:
        """Perform the call in an answer; text is a message to the user."""
        try:
            call = read_call(answer)
        except Unreadable as error:
            return self._unreadable.ask_again(str(error))
        if call.name == RESPOND:
            self._messages.append(str(call.arguments["content"]))
            return self._messages[-1]
        result = self.call(call)
        if self.closed:
            return None
        return Turn(result, result=result.removeprefix("Tool result: "))

    def judge(self) -> Judgement:
        if self._user_fault is not None:
            return Judgement.missing(MissingReason.USER_ERROR, self._user_fault)
        return self._unreadable.failure() or decide(
            self._scenario, self._goals, self._desk, self._messages
        )

    def user_broke(self, error: Exception) -> None:
        """Note an error of the user simulator, which is our fault and ends the conversation."""
        self._user_fault = f"{type(error).__name__}: {error}"


class OrderdeskEpisode(DeskEpisode):
    """A conversation at the desk with a scripted user."""

    def __init__(
        self, domain: Domain, scenario: Scenario, goals: Sequence[Goal], user: User
    ) -> None:
        super().__init__(domain, scenario, goals)
        self._user = user

    def open(self) -> Turn:
        return self.first_turn(self._user.first())

    def reply(self, answer: str) -> Turn | None:
        result = self.work(answer)
        if not isinstance(result, str):
            return result
        try:
            return self.heard(self._user.reply_to(result))
        except Exception as error:
            self.user_broke(error)
            return None
