"""The bootstrap over tasks: how pass@k at every temperature moves with the choice of tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.temperature.peak import vertices

__all__ = ["DRAWS", "SEED", "Resampled", "resample"]

SEED = 20_250_601
DRAWS = 2_000
_BLOCK = 500
_TIE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """Means over tasks: as seen (temperatures x k) and redrawn (draws x temperatures x k)."""

    seen: FloatArray
    drawn: FloatArray

    def chance_best(self) -> FloatArray:
        """For each temperature and k, the share of draws in which it is best; ties are shared."""
        tops = self.drawn >= self.drawn.max(axis=1, keepdims=True) - _TIE
        found: FloatArray = (tops / tops.sum(axis=1, keepdims=True)).mean(axis=0)
        return found

    def chance_of_change(self, k_before: int, k_after: int, rungs: tuple[int, int]) -> float:
        """The share of draws in which one rung is best at one k and another at another k."""
        before = self.drawn[:, :, k_before].argmax(axis=1) == rungs[0]
        after = self.drawn[:, :, k_after].argmax(axis=1) == rungs[1]
        return float((before & after).mean())

    def tops(self, log_t: FloatArray, first: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        """ln T* for every k: as seen, whether at an edge, and redrawn (draws x k).

        Rungs before ``first`` have no logarithm and are left out.
        """
        seen, edge = vertices(log_t, self.seen[first:].T)
        drawn, _ = vertices(log_t, self.drawn[:, first:].transpose(0, 2, 1))
        return seen, edge, drawn


def resample(values: FloatArray, *, seed: int = SEED, draws: int = DRAWS) -> Resampled:
    """Redraw tasks with replacement; ``values`` are temperatures x k x tasks."""
    rng = np.random.default_rng(seed)
    *shape, tasks = values.shape
    flat = values.reshape(-1, tasks).T
    blocks = []
    for at in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - at)
        counts = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=size)
        blocks.append(counts @ flat / tasks)
    return Resampled(values.mean(axis=-1), np.concatenate(blocks).reshape(-1, *shape))
