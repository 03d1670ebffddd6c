"""Claims of a comparison at a drop of ten points and at none, beside common tests.

30 tasks x 8 attempts, rates of A from Beta(2.2, 0.7), those of B lower by a factor that takes ten
points from the mean: how often is a drop claimed, and how often where there is none? The reduced
size runs in a minute; ``--runs 300`` is the published one. ``evalstats`` and ``statgate`` are rows
of the table where they are installed (``pip install evalstats statgate``).

    python benchmarks/compare_power.py --runs 20
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable

import numpy as np
from scipy import stats

from passhat import Outcomes, compare, gate
from passhat.stats.compare.claims import Claim

TASKS, ATTEMPTS = 30, 8


def by_compare(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """Claims of ``compare`` about both populations, and of the gate."""
    found = compare(a, b)
    return {
        "passhat compare, these tasks": found.verdicts[0].claim is Claim.REGRESSION,
        "passhat compare, new tasks": found.results[0].claim is Claim.REGRESSION,
        "passhat gate": gate(b, (), a).exit_code == 1,
    }


def by_tests(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """Two-sided tests at 5%, counted where they point down."""
    d = b.c / b.n - a.c / a.n
    down = float(d.mean()) < 0
    rng = np.random.default_rng(1)
    means = rng.choice(d, (4000, len(d))).mean(axis=1)
    changes = d[d != 0]
    flips = rng.choice([-1.0, 1.0], (4000, len(d))) @ d / len(d)
    return {
        "paired t test": down and float(stats.ttest_1samp(d, 0).pvalue) < 0.05,
        "bootstrap over tasks, percentile": float(np.quantile(means, 0.975)) < 0,
        "sign test (McNemar on tasks)": down
        and len(changes) > 0
        and stats.binomtest(int((changes < 0).sum()), len(changes)).pvalue < 0.05,
        "sign-flip test": down and float((np.abs(flips) >= abs(d.mean())).mean()) < 0.05,
    }


def attempts_of(side: Outcomes) -> np.ndarray:
    """Tasks x attempts of 0 and 1; the order within a task says nothing to either peer."""
    return (np.arange(ATTEMPTS) < np.asarray(side.c)[:, None]).astype(float)


def by_evalstats(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """``pairwise_differences`` with its default method: the interval below zero."""
    import evalstats

    scores = np.stack([attempts_of(a), attempts_of(b)])
    rng = np.random.default_rng(1)
    # A before B: a drop is a difference above zero.
    found = evalstats.pairwise_differences(scores, 0, 1, rng=rng)
    return {"evalstats, default": found.ci_low > 0}


def by_statgate(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """``evaluate_gate`` without a margin: BLOCK."""
    import statgate

    sides = [
        [
            statgate.EvalRecord(case_id=str(task), passed=bool(passes), run_index=number)
            for task, row in enumerate(attempts_of(side))
            for number, passes in enumerate(row)
        ]
        for side in (a, b)
    ]
    report = statgate.evaluate_gate(*sides, statgate.GateSettings(metric="pass_rate", margin=0.0))
    return {"statgate, margin 0": report.verdict is statgate.Verdict.BLOCK}


def count_claims(drop: float, runs: int, seed: int) -> dict[str, int]:
    """How many of the simulated pairs each method calls a drop."""
    rng = np.random.default_rng(seed)
    totals: dict[str, int] = {}
    methods: list[Callable[[Outcomes, Outcomes], dict[str, bool]]] = [by_compare, by_tests]
    peers = {"evalstats": by_evalstats, "statgate": by_statgate}
    methods += [peer for name, peer in peers.items() if importlib.util.find_spec(name)]
    for _ in range(runs):
        rates = rng.beta(2.2, 0.7, TASKS)
        lower = rates * (1 - drop / rates.mean())
        a, b = (Outcomes.from_counts(ATTEMPTS, rng.binomial(ATTEMPTS, p)) for p in (rates, lower))
        for method in methods:
            for name, claims in method(a, b).items():
                totals[name] = totals.get(name, 0) + bool(claims)
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    drops, none = count_claims(0.1, runs, 1), count_claims(0.0, runs, 2)
    print(f"| {TASKS} tasks x {ATTEMPTS}, {runs} pairs | drop of 10 points | no change |")
    print("| --- | ---: | ---: |")
    for name, claims in drops.items():
        print(f"| {name} | {claims} | {none[name]} |")


if __name__ == "__main__":
    main()
