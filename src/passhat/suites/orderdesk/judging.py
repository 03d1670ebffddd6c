"""The reward: the records are as they should be, and the user was told what they need to know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Judgement
from passhat.suites.orderdesk.calls import Call
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.orderdesk.tools import Desk, invoke

__all__ = ["JUDGE_VERSION", "Goal", "decide", "goals_of", "told"]

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
    """Judge a conversation that has ended. The first rule that speaks decides."""
    if desk.violations:
        return Judgement.failed(FailureCategory.POLICY_VIOLATION, desk.violations[0])
    if not any(_same(desk.data, goal.records) for goal in goals):
        first = next(_differences(desk.data, goals[0].records))
        if not desk.changes and all(goal.asks_for_change for goal in goals):
            return Judgement.failed(FailureCategory.TASK_INCOMPLETE, f"nothing was done: {first}")
        return Judgement.failed(FailureCategory.WRONG_STATE, first)
    untold = [one for one in scenario.outputs if not told(one, said)]
    if not untold:
        return Judgement.passed()
    all_of_them = len(untold) == len(scenario.outputs)
    category = (
        FailureCategory.MISSING_OUTPUTS if all_of_them else FailureCategory.INCOMPLETE_OUTPUTS
    )
    return Judgement.failed(category, f"the user was not told {', '.join(untold)}")


def told(output: str, said: Sequence[str]) -> bool:
    """Whether the user heard it: one of the alternatives, a number by its value.

    Examples
    --------
    >>> told("1240.50|free", ["That makes $1,240.5 in all."])
    True
    """
    text = " ".join(said).casefold()
    numbers = {float(one.replace(",", "")) for one in _NUMBER.findall(text)}
    for alternative in output.split("|"):
        if _NUMBER.fullmatch(alternative):
            if float(alternative) in numbers:
                return True
        elif alternative.casefold() in text:
            return True
    return False


def _same(found: object, wanted: object) -> bool:
    """Equal but for what makes no difference: case, punctuation and spaces in text."""
    if found == wanted:
        return True
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            _same(found[key], wanted[key]) for key in found
        )
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if isinstance(found, str) and isinstance(wanted, str):
        return _plain(found) == _plain(wanted)
    return False


def _plain(text: str) -> str:
    return " ".join(_STOPS.sub(" ", text).casefold().split())


def _differences(found: object, wanted: object, where: str = "") -> Iterator[str]:
    """Every place where the records differ, as a path and both values."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted(set(found) | set(wanted)):
            if not _same(found.get(key), wanted.get(key)):
                path = f"{where}.{key}" if where else str(key)
                yield from _differences(found.get(key), wanted.get(key), path)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            if not _same(one, other):
                yield from _differences(one, other, f"{where}[{place}]")
    else:
        yield f"{where} is {found!r}, it should be {wanted!r}"
