"""Where the ranking of two agents depends on k and on the temperature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from passhat._display import percent
from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray
from passhat.stats.outcomes import MissingPolicy
from passhat.stats.temperature.ladders import Ladder

SEED = 20_250_601
DRAWS = 2_000
_BLOCK = 500
_REDRAW_TIE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Redraws:
    """Means over tasks: as seen (temperatures x k) and redrawn (draws x temperatures x k)."""

    seen: FloatArray
    drawn: FloatArray

    def shares_best(self) -> FloatArray:
        """The share of draws in which each temperature is best at each k; ties are split.

        A share is not the chance of being right: with 30 tasks x 5 attempts, shares above .85 named
        the truly best temperature in .54 of cases (docs/benchmarks/temperature.md).
        """
        tops = self.drawn >= self.drawn.max(axis=1, keepdims=True) - _REDRAW_TIE
        shares: FloatArray = (tops / tops.sum(axis=1, keepdims=True)).mean(axis=0)
        return shares

    def share_of_change(self, k_before: int, k_after: int, rungs: tuple[int, int]) -> float:
        """The share of draws in which one rung is best at one k and another at another k."""
        before = self.drawn[:, :, k_before].argmax(axis=1) == rungs[0]
        after = self.drawn[:, :, k_after].argmax(axis=1) == rungs[1]
        return float((before & after).mean())


def redraw_tasks(values: FloatArray, *, seed: int = SEED, draws: int = DRAWS) -> Redraws:
    """Redraw tasks with replacement; ``values`` are temperatures x k x tasks."""
    rng = np.random.default_rng(seed)
    *shape, tasks = values.shape
    flat = values.reshape(-1, tasks).T
    blocks = []
    for start in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - start)
        counts = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=size)
        blocks.append(counts @ flat / tasks)
    return Redraws(values.mean(axis=-1), np.concatenate(blocks).reshape(-1, *shape))


_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Lead(Plain):
    """The leading agent at one k and temperature, and the share of redraws in which it leads."""

    WRITTEN = ("k", "temperature", "leader", "lead", ("share_of_redraws", "share"))

    k: int
    temperature: float
    leader: str
    lead: float
    share: float


@dataclass(frozen=True, slots=True)
class RankingFlip(Plain):
    """Two agents whose order is not the same at every (k, T)."""

    WRITTEN = ("a", "b", "shown", "leads", "sentence")

    a: str
    b: str
    leads: tuple[Lead, ...]

    def surest(self, leader: str) -> Lead:
        """Where this agent leads most surely."""
        return max((x for x in self.leads if x.leader == leader), key=lambda x: x.share)

    @property
    def shown(self) -> float:
        """The share of redraws at the surest lead of each agent, the smaller of the two."""
        return min(self.surest(self.a).share, self.surest(self.b).share)

    def __str__(self) -> str:
        parts = [
            f"{name} leads at T = {lead.temperature:g}, k = {lead.k} "
            f"({percent(lead.share, 0)} of redraws)"
            for name in (self.a, self.b)
            for lead in (self.surest(name),)
        ]
        return "the ranking depends on k and T: " + "; ".join(parts)

    @property
    def sentence(self) -> str:
        """The result in words."""
        return str(self)


def ranking_flips(
    ladders: Sequence[Ladder], policy: MissingPolicy, *, seed: int = SEED
) -> tuple[RankingFlip, ...]:
    """All pairs whose order flips over the (k, T) that both have, the surest first."""
    flips = []
    for a, b in combinations(ladders, 2):
        leads = _leads(a, b, policy, seed)
        if {lead.leader for lead in leads} >= {a.agent, b.agent}:
            flips.append(RankingFlip(a.agent, b.agent, leads))
    return tuple(sorted(flips, key=lambda flip: -flip.shown))


def _leads(a: Ladder, b: Ladder, policy: MissingPolicy, seed: int) -> tuple[Lead, ...]:
    temperatures = [t for t in a.temperatures if t in b.temperatures]
    ks = [k for k in a.ks if k in b.ks]
    tasks = set(a.tasks) & set(b.tasks)
    if not temperatures or not ks or not tasks:
        return ()
    difference = _select_values(a, temperatures, ks, tasks, policy) - _select_values(
        b, temperatures, ks, tasks, policy
    )
    redraws = redraw_tasks(difference, seed=seed)
    is_tied = np.abs(redraws.drawn) <= _TIE
    share = (redraws.drawn > _TIE).mean(axis=0) + 0.5 * is_tied.mean(axis=0)
    return tuple(
        Lead(
            k,
            temperature,
            a.agent if lead > _TIE else b.agent if lead < -_TIE else "",
            abs(lead),
            float(share[i, j] if lead >= 0 else 1 - share[i, j]),
        )
        for i, temperature in enumerate(temperatures)
        for j, k in enumerate(ks)
        for lead in (float(redraws.seen[i, j]),)
    )


def _select_values(
    ladder: Ladder,
    temperatures: Sequence[float],
    ks: Sequence[int],
    tasks: set[str],
    policy: MissingPolicy,
) -> FloatArray:
    """The values at these temperatures and k, of these tasks in the order of their names."""
    place = {task: at for at, task in enumerate(ladder.tasks)}
    rows = [ladder.temperatures.index(t) for t in temperatures]
    columns = [ladder.ks.index(k) for k in ks]
    return ladder.values(policy.completion)[
        np.ix_(rows, columns, [place[task] for task in sorted(tasks)])
    ]
