"""Rank sets on simulated boards of ten agents: do they hold all true ranks, and how short are they?

    python benchmarks/leaderboard.py [--repetitions 300] [--markdown FILE]

Tasks are drawn anew for every board; agents differ in strength, and each finds some tasks harder
than the others do. Agents of equal strength are tied, and a tie may have any of its ranks. Beside
Holm stand Bonferroni, which holds too and is longer, and pairs without a correction, as boards with
"statistically significant" stars have them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from measuring import publish, study_parser
from passhat import Outcomes
from passhat.stats.compare.ranking import rank_agents, rank_sets
from passhat.stats.estimate import metric
from passhat.stats.terms import Terms

Floats = npt.NDArray[np.float64]
ATTEMPTS = 4
STRENGTHS = {
    "all alike": np.full(10, 0.6),
    "three tiers": np.repeat([0.8, 0.6, 0.4], [3, 4, 3]),
    "one leads": np.r_[0.8, np.full(9, 0.6)],
    "evenly spread": np.linspace(0.35, 0.85, 10),
    "near the top": np.r_[np.full(5, 0.97), np.full(5, 0.93)],
}


def draw_board(rng: np.random.Generator, strengths: Floats, tasks: int) -> list[Outcomes]:
    """Ten agents on the same tasks."""
    easiness = rng.normal(0, 0.25, tasks)
    sides = []
    for strength in strengths:
        own = rng.normal(0, 0.15, tasks)  # what this agent alone finds easy or hard
        rates = np.clip(strength + easiness + own, 0, 1)
        sides.append(Outcomes.from_matrix(rng.random((tasks, ATTEMPTS)) < rates[:, None]))
    return sides


def bonferroni_sets(p_values: Floats, alpha: float) -> tuple[list[int], list[int]]:
    """Best and worst ranks where every ordered pair is tested at a fixed level."""
    is_better = p_values <= alpha
    best = (1 + is_better.sum(axis=0)).tolist()
    return best, (len(p_values) - is_better.sum(axis=1)).tolist()


def holds(best: list[int], worst: list[int], strengths: Floats) -> bool:
    """Whether every agent's true ranks, all of those of a tie, lie in its set."""
    true_best = [1 + int((strengths > s).sum()) for s in strengths]
    true_worst = [int((strengths >= s).sum()) for s in strengths]
    return all(
        low <= first and last <= high
        for low, high, first, last in zip(best, worst, true_best, true_worst, strict=True)
    )


def study(strengths: Floats, tasks: int, word: str, repetitions: int, seed: int) -> list[float]:
    """Shares of boards held and mean lengths: Holm, Bonferroni, without a correction."""
    rng = np.random.default_rng(seed)
    held, lengths = np.zeros(3), np.zeros(3)
    pairs = len(strengths) * (len(strengths) - 1) / 2
    for _ in range(repetitions):
        p_values = rank_agents(draw_board(rng, strengths, tasks), metric(word), Terms()).p_values
        _, *holm = rank_sets(p_values, 0.05)
        sets = [
            tuple(holm),
            bonferroni_sets(p_values, 0.025 / pairs),
            bonferroni_sets(p_values, 0.025),
        ]
        for place, (best, worst) in enumerate(sets):
            held[place] += holds(best, worst, strengths)
            lengths[place] += float(np.mean(np.subtract(worst, best)) + 1)
    return [*(held / repetitions), *(lengths / repetitions)]


def page(repetitions: int) -> Iterator[str]:
    error = (0.95 * 0.05 / repetitions) ** 0.5
    yield "# Rank sets of leaderboards, measured"
    yield ""
    yield (
        f"Made by `python benchmarks/leaderboard.py --repetitions {repetitions}`. Ten agents with "
        f"{ATTEMPTS} attempts per task; nominal 95%, one Monte Carlo standard error of a share at "
        f".95: {error:.3f}. The share of boards on which all true ranks are in their sets, and the "
        "mean number of ranks in a set."
    )
    yield ""
    yield (
        "| agents | tasks | metric | all ranks held | ranks in a set | with Bonferroni | "
        "held without a correction | ranks then |"
    )
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    worst = 1.0
    seed = 0
    for name, strengths in STRENGTHS.items():
        for tasks, word in ((50, "pass^1"), (200, "pass^1"), (200, "pass^4")):
            seed += 1
            holm, _, plain, length, longer, shorter = study(
                strengths, tasks, word, repetitions, seed
            )
            worst = min(worst, holm)
            print(name, tasks, word, holm, plain, length, file=sys.stderr, flush=True)
            yield (
                f"| {name} | {tasks} | {word} | {holm:.3f} | {length:.2f} | {longer:.2f} | "
                f"{plain:.3f} | {shorter:.2f} |"
            )
    yield ""
    yield f"Worst cell: {worst:.3f}."


def main() -> None:
    options = study_parser(__doc__, 300).parse_args()
    publish("\n".join(page(options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
