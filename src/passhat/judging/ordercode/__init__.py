"""ordercode: thirty small programs of order operations, in three bands.

Every task has a canonical solution, a visible example, hidden tests, and wrong solutions that a
reader in a hurry would write. The tests kill all of those, and every test kills one.
"""

from __future__ import annotations

import numpy as np

from passhat.judging.ordercode.programs import EASY, HARD, MIDDLE, OrderTask
from passhat.judging.tasks import CodeSuite

__all__ = ["ORDER_TASKS", "OrderTask", "demo_samples", "ordercode"]

ORDER_TASKS: tuple[OrderTask, ...] = (*EASY, *MIDDLE, *HARD)
_LIKELY = {"easy": 2.5, "middle": 1.2, "hard": 0.2}
"""How much likelier a demo coder finds the right program than each wrong one, as a logarithm."""


def ordercode() -> CodeSuite:
    """The suite."""
    return CodeSuite.of("code:ordercode", (order_task.task for order_task in ORDER_TASKS))


def demo_samples(
    generator: np.random.Generator, temperature: float = 1.0, attempts: int = 4
) -> list[dict[str, str]]:
    """Samples of a coder that needs no model: right or plausibly wrong, by temperature.

    At temperature 0 it always writes what it finds likeliest, the right program; the higher the
    temperature, the less it prefers it.
    """
    samples: list[dict[str, str]] = []
    for order_task in ORDER_TASKS:
        programs = [order_task.task.canonical, *order_task.wrong]
        odds = np.zeros(len(programs))
        odds[0] = _LIKELY[order_task.band] / max(temperature, 1e-9)
        chances = np.exp(odds - odds.max())
        chosen = generator.choice(len(programs), attempts, p=chances / chances.sum())
        samples += [
            {"task_id": order_task.task.id, "completion": programs[choice]}
            for choice in chosen.tolist()
        ]
    return samples
