"""The gate without a rule: how often it is red, and for what.

    python benchmarks/gate.py [--repetitions 1000] [--markdown FILE]

A baseline and a new run of 30 tasks x 8 attempts are simulated for four shapes of difficulty:
nothing changed, every task lost some success (a mean drop of 15 points), and one task that was
always solved breaks outright. A second table counts false "shown" of ``pass^1 >= base - 0.05``
where the truth is a drop of 5 points, breakage included. The same settings with a tenth of the
repetitions run in the test suite.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from measuring import publish, study_parser
from passhat.errors import InvalidValue
from passhat.stats.gate import GateVerdict, gate
from passhat.stats.outcomes import Outcomes
from passhat.stats.plan import plan_attempts

Floats = npt.NDArray[np.float64]
TASKS, ATTEMPTS, DROP, MARGIN = 30, 8, 0.15, 0.05

SHAPES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "Beta(.8,.6)": lambda rng: rng.beta(0.8, 0.6, TASKS),
    "Beta(2,2)": lambda rng: rng.beta(2, 2, TASKS),
    "half solved, half at .5": lambda _: np.repeat([1.0, 0.5], TASKS // 2),
    "mostly solved: Beta(8,.8)": lambda rng: rng.beta(8, 0.8, TASKS),
}


def dropped(rates: Floats, drop: float) -> Floats:
    """Every rate lower by the same amount, as far as 0 allows, so that the mean falls by drop."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = float((rates - np.maximum(rates - middle, 0)).mean()) >= drop
        low, high = (low, middle) if enough else (middle, high)
    return np.maximum(rates - high, 0.0)


def simulated(rng: np.random.Generator, rates: Floats, n: int = ATTEMPTS) -> Outcomes:
    return Outcomes.from_counts(n, rng.binomial(n, rates))


def outcomes_of(shape: str, repetitions: int, seed: int = 0) -> dict[str, float]:
    """Shares of red builds, and of broken tasks that are named."""
    rng = np.random.default_rng([seed, *shape.encode()])
    counts = dict.fromkeys(("no change", "drop", "broken", "green", "unsettled", "false name"), 0)
    for _ in range(repetitions):
        rates = SHAPES[shape](rng)
        base = simulated(rng, rates)
        same = gate(simulated(rng, rates), against=base)
        counts["no change"] += same.exit_code == 1
        counts["green"] += same.verdict is GateVerdict.SHOWN
        counts["unsettled"] += same.verdict is GateVerdict.NOT_SETTLED
        counts["drop"] += gate(simulated(rng, dropped(rates, DROP)), against=base).exit_code == 1
        place = int(rng.integers(TASKS))
        before = rates.copy()
        before[place] = 1.0
        after = before.copy()
        after[place] = 0.0
        found = gate(simulated(rng, after), against=simulated(rng, before)).results[0]
        named = {change.task for change in found.broken}
        counts["broken"] += str(place) in named
        counts["false name"] += bool(named - {str(place)})
    return {name: count / repetitions for name, count in counts.items()}


def false_shown(n: int, tasks: int, broken: bool, repetitions: int, about: str) -> float:
    """How often ``pass^1 >= base - 0.05`` is shown where the truth lies just below."""
    rng = np.random.default_rng([n, tasks, broken])
    wrong = 0
    drop = MARGIN + 1e-9
    for _ in range(repetitions):
        rates = rng.beta(0.8, 0.6, tasks)
        if not broken:
            after = dropped(np.clip(rates, 0, 1), drop)
        elif about == "new tasks":
            hit = rng.random(tasks) < drop
            rates = np.where(hit, 1.0, rates)
            after = np.where(hit, 0.0, rates)
        else:
            count = int(np.ceil(drop * tasks))
            rates[:count] = 1.0
            after = rates.copy()
            after[:count] = 0.0
        base, new = simulated(rng, rates, n), simulated(rng, after, n)
        result = gate(new, f"pass^1 >= base - {MARGIN}", base, about=about)
        wrong += result.verdict is GateVerdict.SHOWN
    return wrong / repetitions


def promised(shape: str, drop: float, pilots: int, seed: int = 3) -> tuple[float, float]:
    """Attempts that ``plan --gate`` asks for, and how often the gate is then red."""
    rng = np.random.default_rng([seed, *shape.encode()])
    asked, red = [], 0
    for _ in range(pilots):
        rates = SHAPES[shape](rng)
        try:
            made = plan_attempts(simulated(rng, rates), detect=drop, gate=True)
        except InvalidValue:
            continue
        n = made.cheapest.attempts
        asked.append(n)
        base, new = simulated(rng, rates, n), simulated(rng, dropped(rates, drop), n)
        red += gate(new, against=base).exit_code == 1
    return float(np.mean(asked)), red / len(asked)


def promises(repetitions: int) -> Iterator[str]:
    yield ""
    yield (
        "`passhat plan PILOT --gate --detect D` promises 80% power. From pilots of "
        f"{TASKS} tasks x {ATTEMPTS} attempts, {repetitions:,} each:"
    )
    yield ""
    yield "| difficulty | drop | attempts planned, mean | attempts in all, both runs | red |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for shape in SHAPES:
        for drop in (0.05, 0.1):
            attempts, red = promised(shape, drop, repetitions)
            both = 2 * TASKS * attempts
            yield f"| {shape} | {drop:g} | {attempts:.0f} | {both:,.0f} | {red:.3f} |"
            print(shape, drop, attempts, red, file=sys.stderr, flush=True)


def table(repetitions: int) -> Iterator[str]:
    error = (0.05 * 0.95 / repetitions) ** 0.5
    yield "# The gate against a baseline: how often it is red, and for what"
    yield ""
    yield (
        f"Made by `python benchmarks/gate.py --repetitions {repetitions}`: `passhat gate NEW "
        f"--against BASELINE`, {TASKS} tasks x {ATTEMPTS} attempts each, level 95%. One Monte "
        f"Carlo standard error near 5%: {error:.3f}."
    )
    yield ""
    yield (
        "| difficulty | no change: red | no change: green | no change: unsettled | mean drop of "
        f"{100 * DROP:.0f} points: red | one broken task: named | another task named |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for shape in SHAPES:
        started = time.perf_counter()
        share = outcomes_of(shape, repetitions)
        yield (
            f"| {shape} | {share['no change']:.3f} | {share['green']:.3f} | "
            f"{share['unsettled']:.3f} | {share['drop']:.3f} | {share['broken']:.3f} | "
            f"{share['false name']:.3f} |"
        )
        print(shape, share, f"{time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    yield ""
    yield (
        "A rule with a margin, `pass^1 >= base - 0.05`, where the truth is a drop of 5 points or "
        "slightly more: how often it is shown by mistake (at most .055 is allowed). Broken: 5% of "
        "the tasks fall from always to never."
    )
    yield ""
    yield "| about | tasks | attempts | repetitions | drop everywhere | broken |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for about in ("these tasks", "new tasks"):
        for tasks, n in ((45, 1), (32, 8), (100, 4)):
            # One attempt needs no linear program, so more repetitions cost little.
            count = 4 * repetitions if n == 1 else repetitions
            shares = [false_shown(n, tasks, broken, count, about) for broken in (False, True)]
            yield f"| {about} | {tasks} | {n} | {count} | {shares[0]:.3f} | {shares[1]:.3f} |"
            print(about, tasks, n, shares, file=sys.stderr, flush=True)
    yield from promises(max(repetitions // 5, 20))


def main() -> None:
    options = study_parser(__doc__, 1000).parse_args()
    publish("\n".join(table(options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
