"""Write the example table that ships with passhat: two agents, 24 help-desk tasks, 8 attempts.

The agents are made up: each task has a difficulty, each agent a skill, and an attempt is a coin
weighted by both. A few attempts have no verdict, as happens in practice.

    python tools/make_example.py > src/passhat/examples/helpdesk.csv
"""

from __future__ import annotations

import csv
import io
import math
import random

TOPICS = ("refund", "address", "invoice", "return", "delivery", "warranty", "login", "coupon")
BANDS = (("easy", -1.6), ("medium", 0.1), ("hard", 1.7))
AGENTS = (("careful", 1.3, 1.5), ("hasty", 0.7, 0.5))
"""Name, skill, and how sharply difficulty decides: a sharp agent is all or nothing per task."""
ATTEMPTS = 8
MISSING = {("careful", "hard/coupon", 5): "rate_limit", ("hasty", "medium/login", 2): "judge_error"}


def table() -> str:
    """The table as CSV text; the same every time."""
    rng = random.Random(20240601)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *("model", "task", "trial", "success", "failure", "slice:band"),
            *("duration", "steps", "cost", "temperature"),
        ]
    )
    tasks = [(band, topic, level + rng.gauss(0, 0.8)) for band, level in BANDS for topic in TOPICS]
    for agent, skill, sharpness in AGENTS:
        for band, topic, difficulty in tasks:
            chance = 1 / (1 + math.exp(-sharpness * (skill - difficulty) * 1.8))
            for trial in range(ATTEMPTS):
                writer.writerow(_row(rng, agent, band, topic, trial, chance))
    return out.getvalue()


def _row(
    rng: random.Random, agent: str, band: str, topic: str, trial: int, chance: float
) -> list[object]:
    task = f"{band}/{topic}"
    passed = rng.random() < chance
    steps = max(2, round(rng.gauss(9 if agent == "careful" else 6, 2)))
    failure = "" if passed else rng.choice(["wrong_state", "missing_outputs", "timeout"])
    lost = MISSING.get((agent, task, trial))
    verdict = "" if lost else int(passed)
    seconds = round(steps * rng.uniform(1.2, 2.6), 1)
    cost = "" if lost else f"{steps * 0.0013:.4f}"
    return [agent, task, trial, verdict, lost or failure, band, seconds, steps, cost, 0.7]


if __name__ == "__main__":
    print(table(), end="")
