"""``demo:coder`` and ``demo:hasty-coder``: they write ordercode programs, right or plausibly wrong.

Each knows the right program of every task and the wrong ones that a reader in a hurry would write.
Which one it writes is a matter of liking and temperature, as with a model: at temperature 0 always
the one it likes best, which on some tasks is a wrong one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import MappingProxyType

from passhat.agents.base import AgentFault, AttemptInfo, Session
from passhat.judging.ordercode import ORDER_TASKS, OrderTask
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn

__all__ = ["CODERS", "CoderSession"]

CODERS: Mapping[str, float] = MappingProxyType({"coder": 1.0, "hasty-coder": 0.4})
"""Every coder with its skill: how much of the liking for the right program it has."""

_RIGHT = {"easy": 3.0, "middle": 2.0, "hard": 1.0}
_USUAL_TEMPERATURE = 0.7
_UNEVENNESS = 0.8


class CoderSession(Session):
    """One attempt at one program."""

    def __init__(self, coder: str, attempt: AttemptInfo) -> None:
        self._coder = coder
        temperature = attempt.temperature
        self._heat = _USUAL_TEMPERATURE if temperature is None else max(0.0, temperature)
        self._random = random.Random(f"coder/{coder}/{attempt.seed}")

    async def answer(self, turn: Turn) -> str:
        task = next((one for one in ORDER_TASKS if one.task.prompt.rstrip() in turn.text), None)
        if task is None:
            raise AgentFault(
                FailureCategory.AGENT_ERROR, "the demo coders only work at code:ordercode"
            )
        body = self._chosen(task)
        # Models answer in either form; so do these.
        if self._random.random() < 0.5:
            return body
        return f"Here it is:\n\n```python\n{task.task.prompt}{body}```\n"

    def _chosen(self, task: OrderTask) -> str:
        programs = [task.task.canonical, *task.wrong]
        taste = random.Random(f"taste/{self._coder}/{task.task.id}")
        liking = [taste.gauss(0.0, _UNEVENNESS) for _ in programs]
        liking[0] += CODERS[self._coder] * _RIGHT[task.band]
        best = max(liking)
        if self._heat == 0:
            return programs[liking.index(best)]
        weights = [math.exp((one - best) / self._heat) for one in liking]
        return self._random.choices(programs, weights)[0]
