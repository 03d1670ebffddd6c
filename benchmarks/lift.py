"""Intervals for the lift on new tasks: coverage, misses of breakage, width and power.

    python benchmarks/lift.py --repetitions 400 --markdown docs/benchmarks/lift.md

The truth of every simulated suite is known. Bootstrap weights and Gaffke's weights are drawn once
for every cell and used on all of its repetitions: each repetition still sees proper weights, and
one matrix product does the work. passhat computes Gaffke's quantiles exactly, and the draws stand
in for them. The largest of hundreds of noisy cells is too large, so those in which it missed most
are repeated with fresh data, ten times as often, and with passhat's own bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from measuring import publish, study_parser
from passhat.stats.arrays import FloatArray
from passhat.stats.compare import compare
from passhat.stats.compare.claims import Claim
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.new_tasks import gaffke as exact_gaffke
from passhat.stats.outcomes import Outcomes

TAILS = (0.025, 0.05)
RESAMPLES = 500
PASSHAT = "**Gaffke on [-1, 1]** (passhat)"
CONFIRMED, TIMES = 12, 10
Rates = Callable[[np.random.Generator, tuple[int, int]], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated situation."""

    group: str
    name: str
    shift: float
    rates: Rates
    truth: Callable[[str], float]
    tasks: int
    n: int
    metric: str


# -- situations ------------------------------------------------------------------------------------


def beta(a: float, b: float) -> Callable[[FloatArray], FloatArray]:
    """Success rates from uniform numbers."""
    return lambda u: np.asarray(betaincinv(a, b, u), np.float64)


def two_point(
    low: float, high: float, share_low: float = 0.5
) -> Callable[[FloatArray], FloatArray]:
    return lambda u: np.where(u < share_low, low, high)


def shifted(
    prior: Callable[[FloatArray], FloatArray], shift: float
) -> tuple[Rates, Callable[[str], float]]:
    """B succeeds more often by ``shift`` on every task, as far as 1 allows."""
    grid = prior((np.arange(200_000) + 0.5) / 200_000)

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        # A table of quantiles stands in for the prior: drawing by inversion would be slow.
        p = grid[rng.integers(0, len(grid), shape)]
        return p, np.minimum(1.0, p + shift)

    def truth(word: str) -> float:
        known = metric(word).value_at_rate
        return float(np.mean(known(np.minimum(1.0, grid + shift)) - known(grid)))

    return rates, truth


def exchanged(prior: Callable[[FloatArray], FloatArray]) -> tuple[Rates, Callable[[str], float]]:
    """No lift on average, though A and B are good at different tasks."""
    grid = prior((np.arange(200_000) + 0.5) / 200_000)

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        return grid[rng.integers(0, len(grid), shape)], grid[rng.integers(0, len(grid), shape)]

    return rates, lambda _word: 0.0


def rare_flips(share: float, up: float) -> tuple[Rates, Callable[[str], float]]:
    """Both always agree, but for a small share of tasks that only one of them ever solves."""

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        p = (rng.random(shape) < 0.5).astype(float)
        u = rng.random(shape)
        gained, lost = u < share * up, u > 1 - share * (1 - up)
        a = np.where(gained, 0.0, np.where(lost, 1.0, p))
        b = np.where(gained, 1.0, np.where(lost, 0.0, p))
        return a, b

    return rates, lambda _word: share * (2 * up - 1)


def broken(
    prior: Callable[[FloatArray], FloatArray], share: float, gain: float
) -> tuple[Rates, Callable[[str], float]]:
    """B gains a little everywhere, but for a share of tasks that A always solves and B never."""
    grid = prior((np.arange(200_000) + 0.5) / 200_000)

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        p = grid[rng.integers(0, len(grid), shape)]
        hit = rng.random(shape) < share
        return np.where(hit, 1.0, p), np.where(hit, 0.0, np.minimum(1.0, p + gain))

    def truth(word: str) -> float:
        known = metric(word).value_at_rate
        lift = float(np.mean(known(np.minimum(1.0, grid + gain)) - known(grid)))
        return (1 - share) * lift - share

    return rates, truth


def broken_cells() -> Iterator[Cell]:
    """Expected breaks from 1 to half of the tasks, on suites with and without noise."""
    priors = {
        "Beta(.5,.5)": beta(0.5, 0.5),
        "Beta(8,.8)": beta(8, 0.8),
        "all solved": lambda u: np.ones_like(u),
    }
    for name, prior in priors.items():
        for tasks in (20, 32, 60, 200):
            for breaks in (1, 2, 4, 5.2, 7.2, 10):
                for n in (1, 8):
                    share = min(breaks / tasks, 0.5)
                    rates, truth = broken(prior, share, 0.03 if breaks == 2 else 0.0)
                    label = f"{name}, {share:.0%} broken"
                    yield Cell("broken", label, np.nan, rates, truth, tasks, n, "pass^1")


def main_cells() -> Iterator[Cell]:
    priors = {"Beta(.5,.5)": beta(0.5, 0.5), "Beta(2,2)": beta(2, 2), "5/95": two_point(0.05, 0.95)}
    for name, prior in priors.items():
        for shift in (0.0, 0.05, 0.15):
            rates, truth = shifted(prior, shift)
            for tasks, n, word in _sizes():
                yield Cell("main", f"{name} {shift:+.2f}", shift, rates, truth, tasks, n, word)


def stress_cells() -> Iterator[Cell]:
    situations = {
        "rare flips 1%, both ways": rare_flips(0.01, 0.5),
        "rare flips 3%, both ways": rare_flips(0.03, 0.5),
        "rare flips 3%, B only": rare_flips(0.03, 1.0),
        "rare flips 10%, both ways": rare_flips(0.10, 0.5),
        "null, different tasks, Beta(.5,.5)": exchanged(beta(0.5, 0.5)),
        "null, different tasks, 5/95": exchanged(two_point(0.05, 0.95)),
        "near 1, null": shifted(beta(8, 0.8), 0.0),
        "near 1, +.05": shifted(beta(8, 0.8), 0.05),
        "near 0, null": shifted(beta(0.3, 6), 0.0),
        "near 0, different tasks": exchanged(beta(0.3, 6)),
    }
    for name, (rates, truth) in situations.items():
        for tasks, n, word in _sizes():
            yield Cell("stress", name, np.nan, rates, truth, tasks, n, word)


def _sizes() -> Iterator[tuple[int, int, str]]:
    for tasks in (20, 50, 164):
        for n in (1, 4, 8):
            for word in ("pass^1", "pass^4") if n >= 4 else ("pass^1",):
                yield tasks, n, word


# -- methods: differences (repetitions x tasks) to two ends for each of TAILS ----------------------

Ends = tuple[FloatArray, FloatArray]
Method = Callable[[FloatArray, np.random.Generator], list[Ends]]


def pseudo_tasks(d: FloatArray, h: FloatArray | float, quantile: FloatArray | float) -> Ends:
    size = d.shape[1] + 2 * h
    mean = d.sum(axis=1) / size
    variance = ((d**2).sum(axis=1) + 2 * h) / size - mean**2
    reach = quantile * np.sqrt(variance / size)
    return np.clip(mean - reach, -1, 1), np.clip(mean + reach, -1, 1)


def version_010(d: FloatArray, _rng: np.random.Generator) -> list[Ends]:
    """Half a pseudo-task and t, or one and z where every difference is -1, 0 or 1."""
    graded = ((d != 0) & (np.abs(d) != 1)).any(axis=1)
    return [
        pseudo_tasks(
            d,
            np.where(graded, 0.5, 1.0),
            np.where(graded, -stdtrit(d.shape[1] - 1, tail), -ndtri(tail)),
        )
        for tail in TAILS
    ]


def more_pseudo_tasks(d: FloatArray, _rng: np.random.Generator) -> list[Ends]:
    return [pseudo_tasks(d, 1.66, -float(ndtri(tail))) for tail in TAILS]


def paired_t(d: FloatArray, _rng: np.random.Generator) -> list[Ends]:
    mean, error = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])
    reaches = [-stdtrit(d.shape[1] - 1, tail) * error for tail in TAILS]
    return [(np.clip(mean - r, -1, 1), np.clip(mean + r, -1, 1)) for r in reaches]


def percentile(d: FloatArray, rng: np.random.Generator) -> list[Ends]:
    tasks = d.shape[1]
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES) / tasks
    return _outer(d @ weights.T, d @ weights.T)


def gaffke(d: FloatArray, rng: np.random.Generator) -> list[Ends]:
    weights = rng.exponential(size=(RESAMPLES, d.shape[1]))
    unseen = rng.exponential(size=RESAMPLES)
    total = weights.sum(axis=1) + unseen
    inner = ((d + 1) / 2) @ weights.T
    ends = _outer(inner / total, (inner + unseen) / total)
    return [(2 * low - 1, 2 * high - 1) for low, high in ends]


def _outer(low: FloatArray, high: FloatArray) -> list[Ends]:
    """Quantiles of the draws for each tail; draws need not be sorted."""
    places = [int(tail * RESAMPLES) for tail in TAILS]
    tops = [RESAMPLES - 1 - place for place in places]
    lows, highs = np.partition(low, places, axis=1), np.partition(high, tops, axis=1)
    return [(lows[:, i], highs[:, j]) for i, j in zip(places, tops, strict=True)]


METHODS: dict[str, Method] = {
    PASSHAT: gaffke,
    "pseudo-tasks h=1.66": more_pseudo_tasks,
    "pseudo-tasks (0.1.0)": version_010,
    "paired t": paired_t,
    "percentile bootstrap": percentile,
}


# -- the study -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """Averages over the repetitions of one cell, by method."""

    cell: Cell
    missed: dict[str, float]
    missed_one_sided: dict[str, float]
    coverage: dict[str, float]
    width: dict[str, float]
    claims: dict[str, float]


def differences(cell: Cell, repetitions: int, rng: np.random.Generator) -> FloatArray:
    """Value of B less value of A on every task of every repetition."""
    values = metric(cell.metric).values(  # type: ignore[attr-defined]
        np.full(cell.n + 1, cell.n), np.arange(cell.n + 1)
    )
    a, b = cell.rates(rng, (repetitions, cell.tasks))
    return np.asarray(values[rng.binomial(cell.n, b)] - values[rng.binomial(cell.n, a)])


def study(cell: Cell, repetitions: int, seed: int) -> Result:
    rng = np.random.default_rng(seed)
    truth = cell.truth(cell.metric)
    d = differences(cell, repetitions, rng)
    columns: list[dict[str, float]] = [{} for _ in range(5)]
    for name, method in METHODS.items():
        (low, high), (lower, upper) = method(d, rng)
        below, above = (low > truth + 1e-9), (high < truth - 1e-9)
        one_sided = max((lower > truth + 1e-9).mean(), (upper < truth - 1e-9).mean())
        found = (
            max(below.mean(), above.mean()),
            one_sided,
            1 - (below | above).mean(),
            (high - low).mean(),
            (low > 1e-9).mean(),
        )
        for column, share in zip(columns, found, strict=True):
            column[name] = float(share)
    return Result(cell, *columns)


def exact_misses(cell: Cell, repetitions: int, seed: int) -> list[tuple[float, float]]:
    """Shares of lower and upper bounds beyond the truth, for each of TAILS, by passhat's bounds."""
    d = np.round(differences(cell, repetitions, np.random.default_rng(seed)), 9)
    truth = cell.truth(cell.metric)
    seen, place = np.unique(d, return_inverse=True)
    counts = np.zeros((repetitions, len(seen)))
    np.add.at(counts, (np.arange(repetitions)[:, None], place.reshape(d.shape)), 1)
    tables, times = np.unique(counts, axis=0, return_counts=True)
    shares = []
    for tail in TAILS:
        ends = [exact_gaffke(seen, t, level=1 - 2 * tail, lowest=-1, highest=1) for t in tables]
        low, high = (np.array([getattr(e, side)[0] for e in ends]) for side in ("lows", "highs"))
        below = np.average(low > truth + 1e-9, weights=times)
        above = np.average(high < truth - 1e-9, weights=times)
        shares.append((float(below), float(above)))
    return shares


def again(results: list[Result], repetitions: int) -> Iterator[str]:
    """The cells in which passhat missed most, with fresh data."""

    def excess(r: Result) -> float:
        return max(r.missed[PASSHAT] / TAILS[0], r.missed_one_sided[PASSHAT] / TAILS[1])

    chosen = sorted(results, key=excess, reverse=True)
    yield "| cell | tasks | n | metric | miss at 2.5%: below, above | miss at 5%: below, above |"
    yield "|" + " --- |" * 6
    for index, r in enumerate(chosen[:CONFIRMED]):
        shares = exact_misses(r.cell, TIMES * repetitions, seed=10_000 + index)
        words = " | ".join(f"{low:.3f}, {high:.3f}" for low, high in shares)
        yield f"| {r.cell.name} | {r.cell.tasks} | {r.cell.n} | {r.cell.metric} | {words} |"
        print(f"\r{index + 1} of {CONFIRMED} again", end="", file=sys.stderr)
    print(file=sys.stderr)


def table(results: list[Result]) -> Iterator[str]:
    yield (
        "| method | mean coverage | worst two-sided | worst miss at 2.5% | worst miss at 5% | "
        "the same with breakage | width / paired t | power at +.05, +.15 |"
    )
    yield "|" + " --- |" * 8
    hard = [r for r in results if r.cell.group == "broken"]
    main = [r for r in results if r.cell.group == "main"]
    for name in METHODS:
        covered = np.array([r.coverage[name] for r in results])
        ratio = sum(r.width[name] for r in main) / sum(r.width["paired t"] for r in main)
        powers = [
            np.mean([r.claims[name] for r in main if r.cell.shift == shift])
            for shift in (0.05, 0.15)
        ]
        rest = [r for r in results if r.cell.group != "broken"]
        yield (
            f"| {name} | {covered.mean():.3f} | {covered.min():.3f} | "
            f"{max(r.missed[name] for r in rest):.3f} | "
            f"{max(r.missed_one_sided[name] for r in rest):.3f} | "
            f"{max(r.missed[name] for r in hard):.3f}, "
            f"{max(r.missed_one_sided[name] for r in hard):.3f} | {ratio:.2f} | "
            f"{powers[0]:.2f}, {powers[1]:.2f} |"
        )


def worst(results: list[Result]) -> Iterator[str]:
    """The cells in which each method misses one side most often."""
    yield "| method | worst cell | tasks | n | metric | miss at 2.5% | miss at 5% |"
    yield "|" + " --- |" * 7
    for name in METHODS:
        r = max(results, key=lambda r: r.missed[name])
        yield (
            f"| {name} | {r.cell.name} | {r.cell.tasks} | {r.cell.n} | {r.cell.metric} | "
            f"{r.missed[name]:.3f} | {r.missed_one_sided[name]:.3f} |"
        )


def page(results: list[Result], repetitions: int) -> Iterator[str]:
    groups = [sum(r.cell.group == name for r in results) for name in ("main", "stress", "broken")]
    error = np.sqrt(0.03 * 0.97 / repetitions)
    yield "# Intervals for the lift on new tasks, measured"
    yield ""
    yield f"Made by `python benchmarks/lift.py --repetitions {repetitions} --markdown FILE`."
    yield ""
    yield (
        f"**Main** ({groups[0]} cells): success rates p from Beta(.5,.5), Beta(2,2) or half each "
        "at .05 and .95; B succeeds with min(1, p + shift), shift 0, .05 or .15; 20, 50 or 164 "
        f"tasks; 1, 4 or 8 attempts; pass^1 and pass^4. **Stress** ({groups[1]}): rare flips, "
        "equal agents that are good at different tasks, rates near 0 and 1. **Broken** "
        f"({groups[2]}): B equal to A (or 3 points better), but for 1 to 10 expected tasks, up to "
        "half of the suite, that A always solves and B never. A miss is a bound that lies beyond "
        "the truth, the worse of the "
        f"two sides; {repetitions:,} repetitions a cell, Monte Carlo standard error {error:.3f} at "
        ".03, so the largest of hundreds of cells lies about three errors above its true value."
    )
    yield ""
    yield from table(results)
    yield ""
    yield from worst(results)
    yield ""
    yield (
        f"The {CONFIRMED} cells in which passhat missed most, once more: fresh data, "
        f"{TIMES * repetitions:,} repetitions (standard error "
        f"{np.sqrt(0.025 * 0.975 / (TIMES * repetitions)):.4f} at .025), passhat's own bounds "
        "instead of draws."
    )
    yield ""
    yield from again(results, repetitions)
    yield ""
    yield from unpaired(repetitions // 2)


def unpaired(repetitions: int) -> Iterator[str]:
    """Runs on different tasks of one pool: misses of either end, and false claims."""
    yield "## Without pairs"
    yield ""
    yield (
        "Two runs on different tasks of one pool (`--unpaired`), 4 attempts each; B succeeds with "
        f"min(1, p + shift). {repetitions:,} pairs of runs a cell, Monte Carlo standard error "
        f"{np.sqrt(0.025 * 0.975 / repetitions):.3f} at .025. Where the lift is 0, what is shown "
        "is a false claim. Made by `python benchmarks/lift.py --unpaired --repetitions "
        f"{repetitions}`."
    )
    yield ""
    yield (
        "| rates | shift | tasks | metric | lift is below the interval | above | shown, "
        "rightly or not | median width |"
    )
    yield "|" + " --- |" * 8
    priors = {
        "Beta(.5,.5)": beta(0.5, 0.5),
        "Beta(2,2)": beta(2, 2),
        "Beta(8,.8)": beta(8, 0.8),
        "5/95": two_point(0.05, 0.95),
    }
    cells = [
        (name, shift, sizes, word)
        for name in priors
        for shift, word in ((0.0, "pass^1"), (0.15, "pass^1"), (0.0, "pass^4"))
        for sizes in ((20, 30), (100, 100))
    ]
    for seed, (name, shift, sizes, word) in enumerate(cells):
        rng = np.random.default_rng(seed)
        rates, truth = shifted(priors[name], shift)
        lift = truth(word)
        below, above, shown, widths = 0, 0, 0, []
        for _ in range(repetitions):
            sides = []
            for side, tasks in enumerate(sizes):
                passes = rng.binomial(4, rates(rng, (1, tasks))[side][0])
                ids = [f"{side}-{i}" for i in range(tasks)]
                sides.append(Outcomes.from_counts(4, passes, ids))
            (found,) = compare(sides[0], sides[1], word, unpaired=True).results
            below, above = below + (lift < found.low), above + (lift > found.high)
            shown += found.claim is not Claim.INCONCLUSIVE
            widths.append(found.high - found.low)
        yield (
            f"| {name} | {shift:g} | {sizes[0]}, {sizes[1]} | {word} | {below / repetitions:.3f} | "
            f"{above / repetitions:.3f} | {shown / repetitions:.3f} | {np.median(widths):.2f} |"
        )


def main() -> None:
    parser = study_parser(__doc__, 400)
    parser.add_argument("--unpaired", action="store_true", help="only the table without pairs")
    options = parser.parse_args()
    if options.unpaired:
        for line in unpaired(options.repetitions):
            print(line, flush=True)
        return
    cells = [*main_cells(), *stress_cells(), *broken_cells()]
    results = []
    for index, cell in enumerate(cells, 1):
        results.append(study(cell, options.repetitions, seed=index))
        print(f"\r{index} of {len(cells)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)
    publish("\n".join(page(results, options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
