"""Where the ranking of two agents depends on k and on the temperature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.outcomes import MissingPolicy
from passhat.stats.temperature.ladders import Ladder
from passhat.stats.temperature.redraws import SEED, resample

__all__ = ["Lead", "RankingFlip", "ranking_flips"]

_LEVEL = 1e-12


@dataclass(frozen=True, slots=True)
class Lead:
    """Who leads at one k and temperature, by how much, and the chance that it does."""

    k: int
    temperature: float
    leader: str
    lead: float
    chance: float

    def to_dict(self) -> dict[str, object]:
        return {
            "k": self.k,
            "temperature": self.temperature,
            "leader": self.leader,
            "lead": self.lead,
            "chance": self.chance,
        }


@dataclass(frozen=True, slots=True)
class RankingFlip:
    """Two agents whose order is not the same at every (k, T)."""

    a: str
    b: str
    leads: tuple[Lead, ...]

    def surest(self, leader: str) -> Lead:
        """Where this agent leads most surely."""
        return max((x for x in self.leads if x.leader == leader), key=lambda x: x.chance)

    @property
    def shown(self) -> float:
        """The smaller of the two chances: how sure it is that the order flips at all."""
        return min(self.surest(self.a).chance, self.surest(self.b).chance)

    def __str__(self) -> str:
        parts = [
            f"{name} leads at T = {found.temperature:g}, k = {found.k} ({found.chance:.2f})"
            for name in (self.a, self.b)
            for found in (self.surest(name),)
        ]
        return "the ranking depends on k and T: " + "; ".join(parts)

    def to_dict(self) -> dict[str, object]:
        return {
            "a": self.a,
            "b": self.b,
            "shown": self.shown,
            "leads": [lead.to_dict() for lead in self.leads],
            "sentence": str(self),
        }


def ranking_flips(
    ladders: Sequence[Ladder], policy: MissingPolicy, *, seed: int = SEED
) -> tuple[RankingFlip, ...]:
    """All pairs whose order flips over the (k, T) that both have, the surest first."""
    found = []
    for a, b in combinations(ladders, 2):
        leads = _leads(a, b, policy, seed)
        if {lead.leader for lead in leads} >= {a.agent, b.agent}:
            found.append(RankingFlip(a.agent, b.agent, leads))
    return tuple(sorted(found, key=lambda flip: -flip.shown))


def _leads(a: Ladder, b: Ladder, policy: MissingPolicy, seed: int) -> tuple[Lead, ...]:
    heats = [t for t in a.temperatures if t in b.temperatures]
    ks = [k for k in a.ks if k in b.ks]
    tasks = set(a.tasks) & set(b.tasks)
    if not heats or not ks or not tasks:
        return ()
    difference = _chosen(a, heats, ks, tasks, policy) - _chosen(b, heats, ks, tasks, policy)
    drawn = resample(difference, seed=seed)
    chance = (drawn.drawn > _LEVEL).mean(axis=0) + 0.5 * (np.abs(drawn.drawn) <= _LEVEL).mean(
        axis=0
    )
    return tuple(
        Lead(
            k,
            heat,
            a.agent if lead > _LEVEL else b.agent if lead < -_LEVEL else "",
            abs(lead),
            float(max(chance[i, j], 1 - chance[i, j])),
        )
        for i, heat in enumerate(heats)
        for j, k in enumerate(ks)
        for lead in (float(drawn.seen[i, j]),)
    )


def _chosen(
    ladder: Ladder,
    heats: Sequence[float],
    ks: Sequence[int],
    tasks: set[str],
    policy: MissingPolicy,
) -> FloatArray:
    """The values at these temperatures and k, of these tasks in the order of their names."""
    place = {task: at for at, task in enumerate(ladder.tasks)}
    rows = [ladder.temperatures.index(t) for t in heats]
    columns = [ladder.ks.index(k) for k in ks]
    return ladder.values(policy.completion)[
        np.ix_(rows, columns, [place[task] for task in sorted(tasks)])
    ]
