"""How often a gate with --confirm is red without a change, and what it names.

    python benchmarks/gate_confirm.py --pairs 200

No agent runs: attempts are drawn from rates, fresh ones too, and judged as `passhat gate --confirm`
judges them. `plain` is the gate without --confirm, `both` makes fresh attempts at the suspects on
both sides, `kept` uses the baseline's first attempts with a correction over all tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.significance import pair_drop_p_value
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import (
    Confirmation,
    FreshRun,
    GateOptions,
    GateVerdict,
    confirm_suspects,
    find_suspects,
    judge,
)
from passhat.stats.gate.confirm import count_mean_attempts
from passhat.stats.outcomes import MissingPolicy, Outcomes, Run

DIFFICULTIES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "Beta(2.2,.7)": lambda rng, tasks: rng.beta(2.2, 0.7, tasks),
    "Beta(.5,.5)": lambda rng, tasks: rng.beta(0.5, 0.5, tasks),
    "Beta(1,1)": lambda rng, tasks: rng.beta(1, 1, tasks),
    "from .5 to 1": lambda rng, tasks: rng.uniform(0.5, 1, tasks),
    "all .9": lambda _, tasks: np.full(tasks, 0.9),
}


@dataclass(frozen=True)
class Cell:
    name: str
    tasks: int
    attempts: int
    change: str

    def rates(self, rng: np.random.Generator, difficulty: str) -> tuple[FloatArray, FloatArray]:
        before = DIFFICULTIES[difficulty](rng, self.tasks)
        after = before.copy()
        if self.change == "one task":
            before[0], after[0] = 1.0, 0.0
        elif self.change == "10 points":
            after *= 1 - 0.1 / before.mean()
        return before, after


CELLS = (
    Cell("all rates lowered, 10 points", 30, 8, "10 points"),
    Cell("none", 30, 8, "none"),
    Cell("one task always to never", 60, 4, "one task"),
    Cell("none", 60, 4, "none"),
)
BASELINES = ("plain", "kept", "both")


def draw(rng: np.random.Generator, rates: FloatArray, n: int, names: list[str]) -> Outcomes:
    return Outcomes.from_counts(n, rng.binomial(n, rates), names)


def gate_pair(
    cell: Cell, difficulty: str, baseline: str, rng: np.random.Generator, *, whole: bool
) -> tuple[bool, bool, int]:
    """Whether it is red, whether the broken task is named, and how many fresh attempts it took."""
    names = [f"t{i}" for i in range(cell.tasks)]
    before, after = cell.rates(rng, difficulty)
    base = Run("base", "base", draw(rng, before, cell.attempts, names))
    new = Run("new", "new", draw(rng, after, cell.attempts, names))
    confirmation = None
    spent = 0
    suspects = find_suspects(new, base, GateOptions()) if baseline != "plain" else None
    if suspects is not None and suspects.tasks:
        places = [names.index(name) for name in suspects.names]
        n = 8 if baseline == "both" else suspects.attempts_to_confirm()
        sides = [
            FreshRun("fresh", side, draw(rng, rates[places], n, list(suspects.names)))
            for side, rates in (("new", after), ("baseline", before))
        ]
        fresh_base = sides[1] if baseline == "both" else None
        everywhere = None
        if more := count_mean_attempts(suspects.pairing, PassHat(1), suspects.policy, 0.05):
            everywhere = FreshRun("fresh", "new", draw(rng, after, more, names))
        confirmation = confirm_suspects(suspects, sides[0], fresh_base, everywhere=everywhere)
        spent = confirmation.attempts
    if not whole:
        pairing = pair(base.outcomes, new.outcomes)
        broken = [*(confirmation.confirmed if confirmation else _find_broken(pairing))]
        is_red = bool(broken) or _is_mean_red(pairing, confirmation)
        return is_red, "t0" in [task.task for task in broken], spent
    result = judge(new, (), base, GateOptions(confirmation=confirmation))
    named = [task.task for task in result.results[0].broken]
    return result.verdict is GateVerdict.REFUTED, "t0" in named, spent


def _find_broken(pairing: Pairing) -> Sequence[TaskChange]:
    return find_changed_tasks(pairing, MissingPolicy.BOUND, 0.025, "less")


def _is_mean_red(pairing: Pairing, confirmation: Confirmation | None) -> bool:
    """The decisions of the gate on the mean, without the intervals that it prints beside them."""
    p_first = pair_drop_p_value(pairing, PassHat(1), MissingPolicy.BOUND)
    assert p_first is not None
    is_second = confirmation is not None and confirmation.shows_drop(
        pairing, PassHat(1), MissingPolicy.BOUND, 0.05
    )
    return p_first <= 0.025 or bool(is_second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="with all intervals; 20 times slower")
    options = parser.parse_args()
    print("| change | tasks x attempts | difficulty | baseline | red | named | fresh attempts |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: |")
    for cell, difficulty, baseline in product(CELLS, DIFFICULTIES, BASELINES):
        rng = np.random.default_rng(options.seed)
        results = [
            gate_pair(cell, difficulty, baseline, rng, whole=options.whole)
            for _ in range(options.pairs)
        ]
        red, named, spent = (sum(column) for column in zip(*results, strict=True))
        named_text = f"{named} of {options.pairs}" if cell.change == "one task" else "–"
        print(
            f"| {cell.name} | {cell.tasks} x {cell.attempts} | {difficulty} | {baseline} "
            f"| {red} of {options.pairs} | {named_text} | {spent / options.pairs:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
