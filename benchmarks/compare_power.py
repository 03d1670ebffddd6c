"""Claims of a comparison at a drop of ten points and at none, beside common tests.

30 tasks x 8 attempts, rates of A from Beta(2.2, 0.7), those of B lower by a factor that takes ten
points from the mean: how often is a drop claimed, and how often where there is none? Tests that
claim falsely more often claim more often at all, so the last column gives the claims of the exact
test within tasks with its limit set to as many false claims as the row's. Runs in a minute with 20
pairs; ``--runs 1200 --null-runs 3000`` is the published size. evalstats and statgate are rows
of the table where they are installed (``pip install evalstats statgate``).

    python benchmarks/compare_power.py --runs 20
"""

from __future__ import annotations

import argparse
import importlib.util
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from passhat import Outcomes, compare, gate
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.claims import Claim
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.significance import drop_p_value, split_drop_p_value
from passhat.stats.compare.task_changes import find_changed_tasks
from passhat.stats.outcomes import MissingPolicy

TASKS, ATTEMPTS = 30, 8
Method = Callable[[Outcomes, Outcomes], dict[str, bool]]


def by_compare(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """Claims of ``compare`` about both populations, and of the gate."""
    found = compare(a, b)
    return {
        "passhat compare, these tasks (whole)": found.verdicts[0].claim is Claim.REGRESSION,
        "passhat compare, new tasks": found.results[0].claim is Claim.REGRESSION,
        "passhat gate": gate(b, (), a).exit_code == 1,
    }


def by_parts(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """What decides the claim of ``compare`` about these tasks: its mean, or a task that broke."""
    mean = split_drop_p_value(ATTEMPTS, a.c, b.c) <= 0.025
    broken = find_changed_tasks(pair(a, b), MissingPolicy.BOUND, 0.025, "less")
    return {
        "passhat compare, these tasks": mean or bool(broken),
        "its mean alone": mean,
        "its mean alone, ties not split": drop_p_value(ATTEMPTS, a.c, b.c) <= 0.025,
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


def attempts_of(side: Outcomes) -> FloatArray:
    """Tasks x attempts of 0 and 1; the order within a task says nothing to either peer."""
    return (np.arange(ATTEMPTS) < np.asarray(side.c)[:, None]).astype(float)


def by_evalstats(a: Outcomes, b: Outcomes) -> dict[str, bool]:
    """``pairwise_differences`` with its default method: the interval below zero."""
    import evalstats

    scores = np.stack([attempts_of(a), attempts_of(b)])
    rng = np.random.default_rng(1)
    # A before B: a drop is a difference above zero.
    found = evalstats.pairwise_differences(scores, 0, 1, rng=rng)
    return {
        "evalstats, default interval": found.ci_low > 0,
        "evalstats, default p-value": found.point_diff > 0 and found.p_value < 0.05,
    }


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


@dataclass(frozen=True, slots=True)
class Judged:
    """The p-values of the exact test within tasks, and how often each method claims a drop."""

    p_values: FloatArray
    claims: dict[str, int]

    @classmethod
    def of(cls, drop: float, runs: int, seed: int, methods: Sequence[Method]) -> Judged:
        rng = np.random.default_rng(seed)
        p_values, claims = [], Counter[str]()
        for _ in range(runs):
            rates = rng.beta(2.2, 0.7, TASKS)
            lower = rates * (1 - drop / rates.mean())
            counts = [rng.binomial(ATTEMPTS, p) for p in (rates, lower)]
            a, b = (Outcomes.from_counts(ATTEMPTS, c) for c in counts)
            p_values.append(split_drop_p_value(ATTEMPTS, a.c, b.c))
            for method in methods:
                claims.update({name: int(claim) for name, claim in method(a, b).items()})
        return cls(np.sort(p_values), dict(claims))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="pairs with a drop")
    parser.add_argument("--null-runs", type=int, default=40, help="pairs without one")
    parser.add_argument("--whole", action="store_true", help="call compare and gate, too")
    options = parser.parse_args()
    methods: list[Method] = [by_parts, by_tests]
    methods += [by_compare] if options.whole else []
    peers = {"evalstats": by_evalstats, "statgate": by_statgate}
    methods += [peer for name, peer in peers.items() if importlib.util.find_spec(name)]
    drops = Judged.of(0.1, options.runs, 101, methods)
    nulls = Judged.of(0.0, options.null_runs, 202, methods)
    print("| 30 tasks x 8 | drop of 10 points | no change | exact test at as many false claims |")
    print("| --- | ---: | ---: | ---: |")
    for name, claims in drops.claims.items():
        false = nulls.claims[name]
        # The largest limit with no more false claims than the row's.
        limit = nulls.p_values[false] if false < options.null_runs else 1.1
        equal = int(np.searchsorted(drops.p_values, limit))
        shares = show(claims, options.runs), show(false, options.null_runs)
        print(f"| {name} | {' | '.join(shares)} | {show(equal, options.runs)} |")


def show(count: int, total: int) -> str:
    """A share in percent with its standard error."""
    share = count / total
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / total):.1f}%"


if __name__ == "__main__":
    main()
