"""Which revision broke it, and since which run: on histories with a known answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import hypergeom

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.changes import (
    Evidence,
    Found,
    Probe,
    Search,
    find_changes,
    in_order,
    locate_change,
)
from passhat.stats.changes.search import pair_capital
from passhat.stats.compare.significance import drop_p_value, unequal_drop_p_value
from passhat.stats.outcomes import MissingPolicy, Outcomes

TASKS = 12


def search_of(rates: FloatArray, seed: int, broken: frozenset[int] = frozenset()) -> Found:
    """Search a history: rows of rates are revisions in order, the first is the good one."""
    rng = np.random.default_rng(seed)
    count = len(rates) - 1
    order = [*range(1, count + 1), 0]  # candidates first, the good revision last
    rates = rates[order]
    contains = np.zeros((count, count + 1), np.bool_)
    contains[:, :count] = in_order(count)
    n = np.zeros(rates.shape, np.int64)
    c = np.zeros_like(n)
    for end in (count - 1, count):
        n[end], c[end] = 8, rng.binomial(8, rates[end])
    search = Search(contains, [count, *range(count - 1)], n, c, np.ones(count + 1, np.bool_))
    total = 0
    while isinstance(step := search.next(), Probe):
        total += step.total
        if total > 1500:
            return search.settle()
        failing = [revision for revision in step.revisions if revision in broken]
        for revision in failing:
            search.skip(revision)
        if failing:
            continue
        verdicts = [
            rng.random((step.attempts, len(step.tasks))) < rates[revision, list(step.tasks)]
            for revision in step.revisions
        ]
        if step.confirms:
            search.confirm(step, *(side.T.tolist() for side in verdicts))
        else:
            size = np.full(len(step.tasks), step.attempts)
            search.add(step.revisions[0], step.tasks, size, verdicts[0].sum(axis=0))
    return step


def history(revisions: int, change: int, drop: float, tasks: int = TASKS) -> FloatArray:
    """Rates of revisions 0 to ``revisions``; some tasks drop at ``change``."""
    rates = np.tile(np.linspace(0.2, 1.0, TASKS), (revisions + 1, 1))
    rates[change:, TASKS - tasks :] -= drop
    return np.clip(rates, 0, 1)


@pytest.mark.parametrize(("change", "seed"), [(1, 1), (17, 2), (32, 3)])
def test_a_few_broken_tasks_are_found_and_confirmed(change: int, seed: int) -> None:
    found = search_of(history(32, change, 0.7, tasks=2), seed)
    assert found.candidates == (change - 1,)
    assert found.is_confirmed
    assert found.capital >= 20
    assert found.chance >= 0.95


def test_revisions_that_cannot_run_leave_those_that_none_can_tell_apart() -> None:
    found = search_of(history(16, 8, 0.8, tasks=3), 4, broken=frozenset({6, 7}))
    assert found.candidates == (6, 7, 8)  # revision 8 is candidate 7
    assert found.is_confirmed


def test_a_history_without_a_change_ends_with_a_range() -> None:
    found = search_of(history(16, 5, 0.0), 5)
    assert not found.is_confirmed
    assert len(found.candidates) > 1


def test_an_improvement_in_between_is_not_taken_for_the_change() -> None:
    rates = history(32, 21, 0.6, tasks=3)
    rates[9:, :4] += 0.5  # other tasks, another revision
    found = search_of(np.clip(rates, 0, 1), 6)
    assert found.candidates == (20,)
    assert found.is_confirmed


def test_on_branches_only_revisions_that_contain_the_change_are_after_it() -> None:
    #        0 - 1 - 2 -- 5 (merge)        the good revision is before 0
    #         \- 3 - 4 --/
    ancestors = [{0}, {0, 1}, {0, 1, 2}, {0, 3}, {0, 3, 4}, {0, 1, 2, 3, 4, 5}]
    contains = np.array([[x in ancestors[r] for r in range(6)] for x in range(6)])
    n = np.zeros((6, 1), np.int64)
    c = np.zeros_like(n)
    n[[5, 2, 3], 0] = 12
    c[[2, 3], 0] = 12  # good on both branches, bad after the merge: 4 or the merge itself
    posterior = locate_change(contains, n, c)
    assert posterior.smallest_set(0.95) == (4, 5)
    assert posterior.chances[4] == pytest.approx(posterior.chances[5])


def test_the_posterior_knows_the_rates_on_both_sides() -> None:
    n = np.full((4, 3), 20)
    c = np.array([[20, 10, 0], [20, 10, 0], [2, 10, 0], [2, 10, 0]])
    posterior = locate_change(in_order(4)[1:], n, c)
    assert posterior.best == 1  # the third run
    assert posterior.chances.sum() == pytest.approx(1)
    assert posterior.before[0] > 0.9
    assert posterior.after[0] < 0.3
    assert posterior.before[1] == pytest.approx(posterior.after[1], abs=0.05)


def test_the_capital_of_pairs_is_a_fair_game() -> None:
    # Over all ways that six pairs can end, each as likely as any other, its mean is at most 1.
    capitals, alternatives = [], []
    for verdicts in itertools.product([True, False], repeat=6):
        evidence = Evidence()
        evidence.add(verdicts, [not verdict for verdict in verdicts], 0.9, 0.2)
        capitals.append(evidence.capital)
        alternatives.append(pair_capital(evidence.parent_only, evidence.child_only))
    assert np.mean(capitals) <= 1 + 1e-9
    assert np.mean(alternatives) == pytest.approx(1)
    assert max(capitals) > 18


def test_the_exact_test_takes_unequal_numbers_of_attempts() -> None:
    rng = np.random.default_rng(0)
    c_a, c_b = rng.integers(0, 5, 6), rng.integers(0, 5, 6)
    four = np.full(6, 4)
    assert unequal_drop_p_value(four, c_a, four, c_b) == pytest.approx(drop_p_value(4, c_a, c_b))
    # Of one task it is the hypergeometric tail.
    cells = (np.array([value]) for value in (30, 24, 8, 3))
    assert unequal_drop_p_value(*cells) == pytest.approx(hypergeom.cdf(3, 38, 27, 8))
    large = tuple(np.full(60, value) for value in (400, 200, 400, 185))
    assert unequal_drop_p_value(*large) == pytest.approx(0.0, abs=1e-6)


# -- series of runs -------------------------------------------------------------------------------


def nightly(
    nights: int, at: int = 10**6, drop: float = 0.0, seed: int = 0, tasks: IntArray | None = None
) -> list[Outcomes]:
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.3, 1.0, 30)
    runs = []
    for night in range(nights):
        now = np.clip(rates - (drop if night >= at else 0), 0, 1)
        places = np.arange(30) if tasks is None else tasks
        names = [f"t{place}" for place in places]
        runs.append(Outcomes.from_counts([8] * len(places), rng.binomial(8, now[places]), names))
    return runs


def test_a_drop_of_ten_points_is_shown_within_five_nights() -> None:
    (change,) = find_changes(nightly(25, at=20, drop=0.1))
    assert change.direction == "drop"
    assert change.earliest <= 20 <= change.latest
    assert 20 <= change.shown_at < 25
    assert change.before - change.after == pytest.approx(0.1, abs=0.05)


def test_a_probe_counts_its_attempts() -> None:
    assert Probe((2, 5), (0, 1, 3), 4).total == 24


def test_what_the_newest_run_shows_is_shown_at_it() -> None:
    broken = Outcomes.from_counts(8, [0] * 30, [f"t{place}" for place in range(30)])
    (change,) = find_changes([*nightly(12), broken])
    assert (change.earliest, change.latest, change.shown_at) == (12, 12, 12)


def test_a_quiet_series_shows_nothing_and_a_rise_is_a_rise() -> None:
    assert find_changes(nightly(60, seed=3)) == ()
    (change,) = find_changes(nightly(24, at=16, drop=-0.15, seed=4))
    assert change.direction == "rise"
    assert change.earliest <= 16 <= change.latest


def test_new_and_removed_tasks_are_no_change() -> None:
    easy, hard = np.arange(15, 30), np.arange(15)
    runs = nightly(10, seed=1, tasks=easy) + nightly(10, seed=2)
    assert find_changes(runs) == ()
    assert find_changes(nightly(10, seed=1, tasks=easy) + nightly(10, seed=2, tasks=hard)) == ()


def test_one_broken_task_of_thirty_is_shown_and_named() -> None:
    runs = nightly(12)
    after = []
    for run in nightly(4, seed=9):
        c = run.c.copy()
        c[-1] = 0
        after.append(Outcomes.from_counts(run.n, c, run.tasks))
    (change,) = find_changes(runs + after)
    assert change.since == 12
    assert [(task.task, task.change) for task in change.tasks] == [("t29", "broke")]


def test_missing_attempts_count_against_a_change() -> None:
    runs = nightly(12)
    after = [
        Outcomes.from_counts(np.full(30, 4), np.minimum(run.c, 4), run.tasks, missing=[4] * 30)
        for run in nightly(4, at=0, drop=0.15, seed=9)
    ]
    assert find_changes(runs + after) == ()
    zeros = [
        Outcomes.from_counts(run.n * 0, run.c * 0, run.tasks, missing=[8] * 30) for run in after
    ]
    assert find_changes(runs + zeros, MissingPolicy.BOUND) == ()
    (change,) = find_changes(runs + zeros, MissingPolicy.FAIL)
    assert change.direction == "drop"


def test_tasks_that_broke_and_improved_are_not_called_a_drop() -> None:
    rng = np.random.default_rng(3)
    rates = np.full((24, 10), 0.5)
    rates[12:, 0], rates[12:, 1] = 1.0, 0.0
    names = [f"t{i}" for i in range(10)]
    runs = [Outcomes.from_counts(np.full(10, 8), rng.binomial(8, row), names) for row in rates]
    (change,) = find_changes(runs)
    assert change.direction == "mixed"
    assert {task.change for task in change.tasks} == {"broke", "improved"}


def test_a_change_begins_before_it_is_shown() -> None:
    rng = np.random.default_rng(4)  # a slow drift, told as steps
    names = [f"t{i}" for i in range(30)]
    runs = [
        Outcomes.from_counts(np.full(30, 8), rng.binomial(8, 0.85 - 0.004 * night, 30), names)
        for night in range(60)
    ]
    changes = find_changes(runs)
    assert changes
    assert all(change.since <= change.latest <= change.shown_at for change in changes)


def test_nights_that_differ_by_themselves_are_no_change() -> None:
    names = [f"t{i}" for i in range(30)]
    alarms = 0
    for seed in range(4):
        rng = np.random.default_rng([6, seed])
        nights = np.clip(0.6 + rng.normal(0, 0.03, 60), 0, 1)
        runs = [
            Outcomes.from_counts(np.full(30, 8), rng.binomial(8, rate, 30), names)
            for rate in nights
        ]
        alarms += bool(find_changes(runs))
    assert alarms == 0
