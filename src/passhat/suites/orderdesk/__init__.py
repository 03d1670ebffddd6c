"""orderdesk: a service desk with its own customers, policy, tools and records.

Two domains, ``retail`` and ``airline``. Every attempt gets a fresh copy of the records and a
scripted user; the reward looks at what has become of the records and at what the user was told.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

from passhat.errors import InvalidValue
from passhat.suites.base import SimulatedUser, Suite, Task, fingerprint
from passhat.suites.orderdesk.airline import airline
from passhat.suites.orderdesk.episode import JUDGE_VERSION, OrderdeskEpisode, goals_of
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.orderdesk.tools import list_tools
from passhat.suites.orderdesk.user import ScriptedUser, SimulatedEpisode, instructions

__all__ = ["OrderdeskSuite"]


_DOMAINS: Mapping[str, Callable[[], Domain]] = MappingProxyType(
    {"retail": retail, "airline": airline}
)


class OrderdeskSuite(Suite):
    """A service desk to work at: orderdesk/retail, orderdesk/airline, or orderdesk for both."""

    user_simulator = "scripted"
    takes_reference = True
    has_tools = True
    _user: SimulatedUser | None = None

    def __init__(self, rest: str = "") -> None:
        if rest and rest not in _DOMAINS:
            raise InvalidValue(
                f"orderdesk has no domain {rest!r}.",
                hint="There are: orderdesk/retail, orderdesk/airline, and orderdesk for both.",
            )
        self.name = f"orderdesk/{rest}" if rest else "orderdesk"
        self._domains = [make() for name, make in _DOMAINS.items() if rest in ("", name)]
        self._known = {
            scenario.id: (domain, scenario)
            for domain in self._domains
            for scenario in domain.scenarios
        }
        self._goals = {
            name: goals_of(domain, scenario) for name, (domain, scenario) in self._known.items()
        }
        self.tasks = tuple(_task(domain, scenario) for domain, scenario in self._known.values())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything the agent can meet: records, policy, tools, tasks and phrases."""
        return fingerprint(
            [
                [
                    domain.policy,
                    list_tools(domain.tools),
                    domain.records,
                    dict(domain.phrases),
                    str(domain.today),
                ]
                + [str(scenario) for scenario in domain.scenarios]
                for domain in self._domains
            ]
        )

    @cached_property
    def judge_fingerprint(self) -> str:
        """Over the goals and the rules that compare with them."""
        outputs = [list(scenario.outputs) for _, scenario in self._known.values()]
        goals = [[goal.records for goal in goals] for goals in self._goals.values()]
        return fingerprint([JUDGE_VERSION, outputs, goals])

    def with_user(self, user: SimulatedUser) -> OrderdeskSuite:
        other = copy.copy(self)
        other.user_simulator = user.name
        other._user = user
        return other

    async def close(self) -> None:
        if self._user is not None:
            await self._user.close()

    def episode(self, task: Task, seed: int) -> OrderdeskEpisode | SimulatedEpisode:
        domain, scenario = self._known[task.id]
        facts = domain.introduce(json.loads(domain.records), scenario)
        if self._user is not None:
            role = instructions(domain, scenario, facts, seed)
            goals = self._goals[task.id]
            return SimulatedEpisode(domain, scenario, goals, role, self._user)
        user = ScriptedUser(domain, scenario, facts, seed)
        return OrderdeskEpisode(domain, scenario, self._goals[task.id], user)


def _task(domain: Domain, scenario: Scenario) -> Task:
    words = [domain.phrases[wish.kind][0].format(thing=wish.thing) for wish in scenario.wishes]
    prompt = " ".join(word[0].upper() + word[1:] for word in words)
    return Task(
        scenario.id, prompt, MappingProxyType({"band": scenario.band, "kind": scenario.kind})
    )
