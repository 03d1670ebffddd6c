"""The bootstrap over tasks: how pass@k at every temperature moves with the choice of tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import FloatArray

__all__ = ["DRAWS", "SEED", "Redraws", "redraw_tasks"]

SEED = 20_250_601
DRAWS = 2_000
_BLOCK = 500
_TIE = 1e-12


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
        tops = self.drawn >= self.drawn.max(axis=1, keepdims=True) - _TIE
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
