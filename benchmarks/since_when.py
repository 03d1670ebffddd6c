"""Does the search name the revision that broke it, and does a nightly series stay quiet?

    python benchmarks/since_when.py                      # 40 histories a row, 10 minutes of CPU
    python benchmarks/since_when.py --repetitions 10     # a rough look
    python benchmarks/since_when.py --markdown docs/benchmarks/since_when.md

Histories have 30 tasks with rates from Beta(.8, .6); the good and the bad revision have 8 attempts
at each task before the search begins. It begins in every history here, also where these attempts do
not show a drop and `passhat bisect` would not begin: that is the harder question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from measuring import machine, markdown, publish, study_parser
from passhat.stats.arrays import FloatArray
from passhat.stats.changes import Found, Probe, Search, find_changes, in_order
from passhat.stats.outcomes import Outcomes

TASKS = 30
ATTEMPTS = 8
CAP = 4000
SEED = 2047
"""Not the seeds that the methods were developed with."""
Rates = FloatArray
Breaking = Callable[[np.random.Generator, Rates], Rates]


def fixed(count: int, good: float, bad: float) -> Breaking:
    """``count`` tasks that pass at one rate before and at another one after."""

    def apply(rng: np.random.Generator, rates: Rates) -> Rates:
        places = rng.choice(TASKS, count, replace=False)
        rates[places] = good
        after = rates.copy()
        after[places] = bad
        return after

    return apply


def drop(points: float, share: float = 1.0) -> Breaking:
    """A share of the tasks that drop by so many points."""

    def apply(rng: np.random.Generator, rates: Rates) -> Rates:
        places = rng.choice(TASKS, round(share * TASKS), replace=False)
        after = rates.copy()
        after[places] = np.clip(after[places] - points / 100, 0, 1)
        return after

    return apply


def nothing(_rng: np.random.Generator, rates: Rates) -> Rates:
    return rates


BREAKING: dict[str, Breaking] = {
    "1 task, always to never": fixed(1, 1.0, 0.0),
    "2 tasks, .95 to 0": fixed(2, 0.95, 0.0),
    "5 tasks, .9 to .3": fixed(5, 0.9, 0.3),
    "10 tasks, 30 points": drop(30, 1 / 3),
    "all tasks, 20 points": drop(20),
    "all tasks, 10 points": drop(10),
    "all tasks, 5 points": drop(5),
    "nothing": nothing,
}
AROUND = (
    "a fifth cannot run",
    "six in a row cannot run",
    "10 other tasks improve by 30 points elsewhere",
    "all tasks improve by 10 points elsewhere",
    "2 other tasks break elsewhere",
    "repaired and broken again",
)


@dataclass(frozen=True, slots=True)
class History:
    """Rates of every revision; the last row is the good one, the row before it the bad one."""

    rates: FloatArray
    cannot_run: frozenset[int]

    @property
    def breaking(self) -> frozenset[int]:
        """Revisions at which a task passes less often than before."""
        count = len(self.rates) - 1
        before = self.rates[[count, *range(count - 1)]]
        return frozenset(np.flatnonzero((self.rates[:count] < before - 1e-9).any(axis=1)).tolist())


def make_history(
    rng: np.random.Generator, revisions: int, breaking: Breaking, around: str = ""
) -> History:
    good = rng.beta(0.8, 0.6, TASKS)
    bad = breaking(rng, good)
    change = int(rng.integers(revisions))
    rates = np.tile(good, (revisions + 1, 1))
    rates[change:revisions] = bad
    other = int(rng.integers(revisions))
    cannot_run: set[int] = set()
    free = np.flatnonzero(good == bad)
    if around.startswith("a fifth"):
        cannot_run = set(np.flatnonzero(rng.random(revisions) < 0.2).tolist())
    elif around.startswith("six"):
        first = max(0, change - int(rng.integers(6)))
        cannot_run = set(range(first, first + 6))
    elif around.startswith("10 other"):
        rates[other:revisions, rng.choice(free, 10, replace=False)] += 0.3
    elif around.startswith("all tasks improve"):
        rates[other:revisions] += 0.1
    elif around.startswith("2 other"):
        rates[other:revisions, rng.choice(free, 2, replace=False)] = 0.0
    elif around.startswith("repaired"):
        middle = (change + revisions) // 2
        rates[(change + middle) // 2 : middle] = good
    cannot_run -= {revisions - 1, revisions}
    return History(np.clip(rates, 0, 1), frozenset(cannot_run))


def search(rng: np.random.Generator, history: History) -> tuple[Found, int, int]:
    """The answer, the attempts that it took, and the revisions that were tried."""
    count = len(history.rates) - 1
    contains = np.zeros((count, count + 1), np.bool_)
    contains[:, :count] = in_order(count)
    n = np.zeros(history.rates.shape, np.int64)
    c = np.zeros_like(n)
    for end in (count - 1, count):
        n[end], c[end] = ATTEMPTS, rng.binomial(ATTEMPTS, history.rates[end])
    state = Search(contains, [count, *range(count - 1)], n, c, np.ones(count + 1, np.bool_))
    attempts, tried = 0, set[int]()
    while isinstance(step := state.next(), Probe):
        if attempts + step.total > CAP:
            return state.settle(), attempts, len(tried)
        broken = [revision for revision in step.revisions if revision in history.cannot_run]
        if broken:
            state.skip(broken[0])
            continue
        attempts += step.total
        tried |= set(step.revisions)
        verdicts = [
            rng.random((step.attempts, len(step.tasks))) < history.rates[revision, step.tasks]
            for revision in step.revisions
        ]
        if step.confirms:
            state.confirm(step, *(side.T.tolist() for side in verdicts))
        else:
            size = np.full(len(step.tasks), step.attempts)
            state.add(step.revisions[0], step.tasks, size, verdicts[0].sum(axis=0))
    return step, attempts, len(tried)


Row = tuple[str, ...]


def search_row(
    seeds: tuple[int, ...], name: str, revisions: int, around: str, repetitions: int
) -> tuple[Row, list[bool]]:
    """A row of the table, and for every named revision whether it was right."""
    named, right, held, used, tried = [], [], [], [], []
    for repetition in range(repetitions):
        rng = np.random.default_rng([SEED, *seeds, repetition])
        history = make_history(rng, revisions, BREAKING[name], around)
        found, attempts, revisions_tried = search(rng, history)
        hit = bool(history.breaking & set(found.candidates))
        named.append(found.is_confirmed)
        if found.is_confirmed:
            right.append(hit)
        elif history.breaking:
            held.append(hit)
        used.append(attempts)
        tried.append(revisions_tried)
    return (
        name if not around else f"{name}; {around}",
        str(revisions),
        f"{np.mean(named):.2f}",
        f"{np.mean(right):.3f}" if right else "-",
        f"{np.mean(held):.2f}" if held else "-",
        f"{np.mean(used):,.0f} ({np.quantile(used, 0.9):,.0f})",
        f"{np.mean(tried):.1f}",
    ), right


def make_series(
    rng: np.random.Generator, nights: int, at: int, points: float, *, ragged: bool, even: bool
) -> list[Outcomes]:
    """Nightly runs; with ``ragged`` tasks come and go, and attempts differ in number and miss."""
    rates = np.full(TASKS, 0.5) if even else rng.beta(0.8, 0.6, TASKS)
    runs = []
    for night in range(nights):
        now = np.clip(rates - (points / 100 if night >= at else 0), 0, 1)
        planned = np.full(TASKS, ATTEMPTS)
        missing = np.zeros(TASKS, np.int64)
        places = np.arange(TASKS)
        if ragged:
            planned = np.full(TASKS, int(rng.integers(4, 13)))
            missing = rng.binomial(planned, 0.01)
            places = np.flatnonzero((np.arange(TASKS) * 7 + night // 20) % 5 != 0)
        n = planned - missing
        c = rng.binomial(n, now)
        names = [f"t{place}" for place in places]
        runs.append(Outcomes.from_counts(n[places], c[places], names, missing=missing[places]))
    return runs


def study_searches(repetitions: int) -> tuple[list[Row], list[bool]]:
    """A row per kind of history, and for every named revision whether it was right."""
    cells = [
        ((0, place, revisions), name, revisions, "")
        for place, name in enumerate(BREAKING)
        for revisions in ((16, 64) if place not in (1, 2, 4) else (16, 64, 256))
    ]
    cells += [
        ((1, place, len(name)), name, 64, around)
        for place, around in enumerate(AROUND)
        for name in ("5 tasks, .9 to .3", "all tasks, 20 points")
        # Where all tasks drop, there is no other task.
        if not (name.startswith("all") and around.startswith(("10 other", "2 other")))
    ]
    rows, all_right = [], []
    for seeds, name, revisions, around in cells:
        row, right = search_row(seeds, name, revisions, around, repetitions)
        print(row, flush=True)
        rows.append(row)
        all_right += right
    return rows, all_right


def study_quiet(repetitions: int) -> list[Row]:
    """Series of a year without a change, and how many of them show one."""
    rows: list[Row] = []
    for place, (label, ragged, even) in enumerate(
        (
            ("30 tasks x 8", False, False),
            ("30 tasks x 8, all rates .5", False, True),
            ("tasks come and go, 4 to 12 attempts, 1% missing", True, False),
        )
    ):
        alarms = []
        for repetition in range(repetitions):
            rng = np.random.default_rng([SEED, 2, place, repetition])
            series = make_series(rng, 365, 10**6, 0, ragged=ragged, even=even)
            alarms.append(bool(find_changes(series)))
        rows.append((label, f"{sum(alarms)} of {repetitions}"))
        print(rows[-1], flush=True)
    return rows


def study_varying(repetitions: int, nights: int = 120) -> list[Row]:
    """Series whose nights differ by themselves, and how many of them show a change."""
    rows: list[Row] = []
    kinds = ("a common shift each night, sd 3 points", "8 points more at weekends")
    for place, label in enumerate(kinds):
        alarms = 0
        for repetition in range(repetitions):
            rng = np.random.default_rng([SEED, 5, place, repetition])
            rates = rng.beta(0.8, 0.6, TASKS)
            shifts = rng.normal(0, 0.03, nights)
            if place:
                shifts = np.where(np.arange(nights) % 7 >= 5, 0.08, 0.0)
            counts = [rng.binomial(ATTEMPTS, np.clip(rates + shift, 0, 1)) for shift in shifts]
            names = [f"t{task}" for task in range(TASKS)]
            planned = np.full(TASKS, ATTEMPTS)
            alarms += bool(find_changes([Outcomes.from_counts(planned, c, names) for c in counts]))
        rows.append((label, f"{alarms} of {repetitions}"))
        print(rows[-1], flush=True)
    return rows


def study_many(series: int = 20_000, nights: int = 365) -> float:
    """The share of years in which the sum over tasks alone raises an alarm, by normal draws."""
    from scipy.special import ndtri

    sums = np.random.default_rng([SEED, 4]).standard_normal((series, nights)).cumsum(axis=1)
    sums = np.hstack([np.zeros((series, 1)), sums])
    limit = -ndtri(0.05 / nights / 20)
    alarms = np.zeros(series, np.bool_)
    for length in (1, 2, 4, 8, 16):
        for end in range(length + 1, nights + 1):
            since, first = end - length, max(0, end - length - 120)
            difference = (sums[:, end] - sums[:, since]) / length
            difference -= (sums[:, since] - sums[:, first]) / (since - first)
            alarms |= np.abs(difference) > limit * np.sqrt(1 / length + 1 / (since - first))
    return float(alarms.mean())


def study_drops(repetitions: int) -> list[Row]:
    """How often a drop of 10 points is shown within 5 nights, by the nights before it."""
    rows: list[Row] = []
    for place, (label, even) in enumerate((("Beta(.8, .6)", False), ("all .5", True))):
        for at in (3, 7, 14, 60):
            results = []
            for repetition in range(repetitions):
                rng = np.random.default_rng([SEED, 3, place, at, repetition])
                series = make_series(rng, at + 5, at, 10, ragged=False, even=even)
                drops = [change for change in find_changes(series) if change.direction == "drop"]
                held = bool(drops) and drops[0].earliest <= at <= drops[0].latest
                results.append((bool(drops), held))
            found = [held for is_shown, held in results if is_shown]
            share = np.mean([is_shown for is_shown, _ in results])
            rows.append((label, str(at), f"{share:.2f}", f"{np.mean(found):.2f}"))
            print(rows[-1], flush=True)
    return rows


def page(repetitions: int) -> str:
    rows, all_right = study_searches(repetitions)
    quiet, shown = study_quiet(repetitions), study_drops(5 * repetitions)
    parts = [
        "# Which revision broke it, and since when",
        f"Made by `python benchmarks/since_when.py --repetitions {repetitions} --markdown "
        f"docs/benchmarks/since_when.md`. {TASKS} tasks, {ATTEMPTS} attempts at each with the good "
        f"and with the bad revision before the search begins, at most {CAP:,} attempts in it; "
        f"{repetitions:,} histories a row. {machine()}.",
        "*Named* is confirmed by fresh attempts at the revision and its parent; *right* is the "
        "share of those in which the revision (or those that cannot be told apart) breaks a task. "
        "Where none is named, the range that is left should hold one.",
        markdown(
            (
                "what broke",
                "revisions",
                "named",
                "right where named",
                "range right otherwise",
                "attempts, mean (p90)",
                "revisions tried",
            ),
            rows,
        ),
        f"Over all rows {np.mean(all_right):.3f} of {len(all_right):,} named revisions are right.",
        "Nightly series of 365 runs without a change: in how many is any change shown?",
        markdown(("series", "series with a false alarm"), quiet),
        "The error is shared out over looks, windows, directions and tests, so it is at most .05 "
        f"by construction. The sum over tasks alone alarms in {study_many():.3f} of 20,000 such "
        "years, by normal draws.",
        "That holds where attempts are independent. Series of 120 nights that differ by themselves "
        "and have no change; what earlier nights show of it is allowed for:",
        markdown(("series", "series with an alarm"), study_varying(repetitions)),
        "A drop of 10 points at 30 tasks x 8, looked at every night: how often is it shown within "
        "5 nights, and how often is its first run then in the range that is named? "
        f"{5 * repetitions:,} series a row.",
        markdown(("rates", "nights before", "shown within 5", "range right"), shown),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the study and print it."""
    options = study_parser(__doc__, 40).parse_args()
    publish(page(options.repetitions), options.markdown)


if __name__ == "__main__":
    main()
