"""Tasks of a domain, read from its TOML files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.resources import files
from typing import Any

import msgspec

from passhat.suites.orderdesk.tools import Desk, Record, Tool
from passhat.suites.tool_calls import Call


@dataclass(frozen=True, slots=True)
class Wish:
    """A request of the user, and facts that the user gives only when asked.

    ``otherwise`` is what the user wants instead when told that it cannot be done; ``insists`` is
    a user who tries once more first.
    """

    kind: str
    thing: str
    facts: Mapping[str, str] = field(default_factory=dict)
    ask: str = ""
    insists: bool = False
    otherwise: Wish | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A task: the customer, their requests, and the expected records afterwards.

    ``goals`` holds lists of calls, any of which leads to a right end; ``outputs`` what the user
    must have been told, alternatives parted by ``|``.
    """

    id: str
    band: str
    customer: str
    identity: str
    wishes: tuple[Wish, ...]
    goals: tuple[tuple[Call, ...], ...]
    outputs: tuple[str, ...]
    in_order: bool = False

    @property
    def kind(self) -> str:
        return "+".join(dict.fromkeys(wish.kind for wish in self.wishes))


@dataclass(frozen=True, slots=True)
class Domain:
    """One of the two domains: records, policy, tools, phrases, and tasks."""

    name: str
    today: date
    policy: str
    tools: Mapping[str, Tool]
    records: str
    phrases: Mapping[str, list[str]]
    topics: Mapping[str, str]
    introduce: Callable[[Record, Scenario], Mapping[str, str]]
    scenarios: tuple[Scenario, ...]

    def desk(self) -> Desk:
        """A fresh copy of the records: nothing in it of any earlier attempt."""
        return Desk(json.loads(self.records), self.today)


def read_domain(
    name: str,
    tools: Mapping[str, Tool],
    complete: Callable[[Record], None],
    introduce: Callable[[Record, Scenario], Mapping[str, str]],
) -> Domain:
    """A domain from its folder.

    ``complete`` fills in values of the records that the file leaves out; ``introduce`` returns the
    facts that a customer can give about themselves.
    """
    folder = files(__package__) / name

    def text(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    records = tomllib.loads(text("records.toml"))
    talk = tomllib.loads(text("talk.toml"))
    today = date.fromisoformat(records.pop("today"))
    complete(records)
    tasks = tomllib.loads(text("tasks.toml"))["task"]
    return Domain(
        name=name,
        today=today,
        policy=text("policy.md"),
        tools=tools,
        records=json.dumps(records),
        phrases=talk["phrases"],
        topics=talk["topics"],
        introduce=introduce,
        scenarios=tuple(_scenario(name, place, task) for place, task in enumerate(tasks, 1)),
    )


def _scenario(domain: str, place: int, data: Mapping[str, Any]) -> Scenario:
    goals = [data["gold"], *data.get("alternatives", [])]
    return Scenario(
        id=f"{domain}/{place:03}",
        band=data["band"],
        customer=data["customer"],
        identity=data["identity"],
        wishes=msgspec.convert(data["wish"], tuple[Wish, ...]),
        goals=tuple(tuple(_call(call) for call in goal) for goal in goals),
        outputs=tuple(data.get("outputs", ())),
        in_order=data.get("in_order", False),
    )


def _call(data: Mapping[str, Any]) -> Call:
    arguments = dict(data)
    return Call(arguments.pop("tool"), arguments)
