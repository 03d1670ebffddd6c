"""How a demo agent slips: its habits, its dice, and what weighs on it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from passhat.agents.base import AttemptInfo

__all__ = ["CARE", "HABITS", "HARD", "PLAIN", "Habits", "Mind"]

PLAIN, CARE, HARD = 0.7, 2.0, 4.0
"""How much a decision asks of the clerk: reading, minding a rule, keeping to it under pressure."""

_USUAL_TEMPERATURE = 0.7
_MOST = 0.9


@dataclass(frozen=True, slots=True)
class Habits:
    """How often a plain decision goes wrong, and how unevenly over tasks."""

    slip: float
    unevenness: float


HABITS: Mapping[str, Habits] = MappingProxyType(
    {"careful": Habits(0.009, 0.7), "hasty": Habits(0.032, 0.9)}
)


class Mind:
    """The dice of one attempt.

    Every task suits an agent more or less, which is why some tasks fail again and again and others
    never. Temperature scales the slips; at temperature 0 the dice are the same in every attempt.
    """

    def __init__(self, habits: Habits, attempt: AttemptInfo) -> None:
        temperature = attempt.temperature
        heat = _USUAL_TEMPERATURE if temperature is None else max(0.0, temperature)
        aptitude = random.Random(f"{habits}/{attempt.task}").gauss(0.0, habits.unevenness)
        self._rate = habits.slip * math.exp(aptitude) * (0.4 + 0.6 * heat / _USUAL_TEMPERATURE)
        own = attempt.seed if heat > 0 else attempt.task
        # Not the seed itself: the user's dice come from it, and the two must not move together.
        self._random = random.Random(f"mind/{habits}/{own}")
        self._wording = random.Random(f"wording/{habits}/{own}")
        self._load = 1.0

    def slips(self, weight: float = PLAIN) -> bool:
        """Whether this decision goes wrong; harder ones, and late ones in a long case, do more."""
        return self._random.random() < min(_MOST, self._rate * weight * self._load)

    def gets_harder(self) -> None:
        """Another wish, a refusal, a user who insists: from here on everything weighs more."""
        self._load *= 1.4

    def worded(self, *ways: str) -> str:
        """One of several ways to say the same: nobody speaks from a tape."""
        return self._wording.choice(ways)

    def forgets_the_form(self) -> bool:
        return self.slips(0.25)
