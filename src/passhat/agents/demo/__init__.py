"""Agents that need no key and no network: clerks for orderdesk, coders for ordercode.

``demo:careful`` and ``demo:hasty`` are clerks.

They read the policy's name, the user's words and the tools' results, and follow the rules of the
policy; they never see a goal. Now and then they slip, as their habits, the temperature and the
difficulty of the case make likely.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.agents.demo.clerks import AirlineClerk, RetailClerk
from passhat.agents.demo.talking import HABITS, Clerk, Mind, Steps
from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn
from passhat.suites.ordercode import ORDER_TASKS, OrderTask
from passhat.suites.tool_calls import write_call

__all__ = ["CODERS", "CoderSession", "DemoAgent"]


CODERS: Mapping[str, float] = MappingProxyType({"coder": 1.0, "hasty-coder": 0.4})
"""Every coder with its skill: how much of the liking for the right program it has."""

_RIGHT = {"easy": 3.0, "middle": 2.0, "hard": 1.0}
_USUAL_TEMPERATURE = 0.7
_UNEVENNESS = 0.8


class CoderSession(Session):
    """An attempt at a single program."""

    def __init__(self, coder: str, attempt: AttemptInfo) -> None:
        self._coder = coder
        temperature = attempt.temperature
        self._heat = _USUAL_TEMPERATURE if temperature is None else max(0.0, temperature)
        self._random = random.Random(f"coder/{coder}/{attempt.seed}")

    async def answer(self, turn: Turn) -> str:
        task = next(
            (
                order_task
                for order_task in ORDER_TASKS
                if order_task.task.prompt.rstrip() in turn.text
            ),
            None,
        )
        if task is None:
            raise AgentFault(
                FailureCategory.AGENT_ERROR, "the demo coders only work at code:ordercode"
            )
        body = self._choose_program(task)
        # Models answer in either form; so do these.
        if self._random.random() < 0.5:
            return body
        return f"Here it is:\n\n```python\n{task.task.prompt}{body}```\n"

    def _choose_program(self, task: OrderTask) -> str:
        programs = [task.task.canonical, *task.wrong]
        taste = random.Random(f"taste/{self._coder}/{task.task.id}")
        liking = [taste.gauss(0.0, _UNEVENNESS) for _ in programs]
        liking[0] += CODERS[self._coder] * _RIGHT[task.band]
        best = max(liking)
        if self._heat == 0:
            return programs[liking.index(best)]
        weights = [math.exp((score - best) / self._heat) for score in liking]
        return self._random.choices(programs, weights)[0]


_CLERKS: Mapping[str, type[Clerk]] = {
    "# The retail desk": RetailClerk,
    "# The airline desk": AirlineClerk,
}
_UNREAD = "Your answer could not be read"


class DemoAgent(Agent):
    """A program without a model: demo:careful or demo:hasty (orderdesk), demo:coder (ordercode)."""

    def __init__(self, kind: str) -> None:
        if kind not in HABITS and kind not in CODERS:
            names = ", ".join(f"demo:{name}" for name in (*HABITS, *CODERS))
            raise InvalidValue(f"there is no demo agent {kind!r}.", hint=f"There are {names}.")
        self.name = f"demo:{kind}"
        self._kind = kind
        self._habits = HABITS.get(kind)

    async def session(self, attempt: AttemptInfo) -> Session:
        if self._habits is None:
            return CoderSession(self._kind, attempt)
        return _DemoSession(Mind(self._habits, attempt))


class _DemoSession(Session):
    """A conversation as a generator: it yields the clerk's moves and is sent the replies."""

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._answer = ""
        self._steps: Steps[None] | None = None

    async def answer(self, turn: Turn) -> str:
        if not turn.text.startswith(_UNREAD):
            self._answer = self._next(turn.text)
        # Prose instead of a call; asked again, the clerk usually remembers the form.
        return "Let me see to that for you." if self._mind.forgets_the_form() else self._answer

    def _next(self, text: str) -> str:
        if self._steps is None:
            clerk = next((kind for title, kind in _CLERKS.items() if title in text), None)
            if clerk is None:
                raise AgentFault(
                    FailureCategory.AGENT_ERROR,
                    "the demo agents only work at orderdesk/retail and orderdesk/airline",
                )
            today = date.fromisoformat(text.partition("\nToday is ")[2][:10])
            self._steps = clerk(self._mind, today).work(text.rpartition("\nUser: ")[2])
            move = next(self._steps)
        else:
            move = self._steps.send(text)
        return write_call(move.name, move.arguments)
