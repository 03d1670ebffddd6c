"""The gate on a growing run: the drawn order, early verdicts, and waiting."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.errors import InvalidValue, TooFewAttempts
from passhat.stats.gate import GateOptions, GateVerdict
from passhat.stats.gate.sequential_gate import Watcher
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.sequential import consumption_order
from passhat.stats.terms import Population, Terms

IDS = [f"task-{i:03}" for i in range(164)]
ORDER = consumption_order(IDS, 0)


def run_of(passes: dict[str, int], n: int = 8, missing: int = 0) -> Run:
    names = list(passes)
    counts = [passes[name] for name in names]
    lost = missing or None
    return Run("agent", "agent", Outcomes.from_counts(n, counts, names, missing=lost))


def suite(share: float) -> dict[str, int]:
    """Passes of 8 per task; a share of the tasks passes always, the others never."""
    rng = np.random.default_rng(11)
    return {task: 8 * int(rng.random() < share) for task in IDS}


def looks(watcher: Watcher, passes: dict[str, int], order: tuple[str, ...]) -> tuple[str, int]:
    """Let tasks finish one by one in an order, and look after each."""
    done: dict[str, int] = {}
    look = None
    for task in order:
        done[task] = passes[task]
        look = watcher.look(run_of(done))
        if look.settled:
            break
    assert look is not None
    return str(look.result.verdict), look.used


@pytest.mark.parametrize(("share", "verdict"), [(0.9, "shown"), (0.4, "refuted")])
def test_it_ends_early_when_the_truth_is_far_from_the_limit(share: float, verdict: str) -> None:
    watcher = Watcher(["pass^4 >= 0.65"], tasks=IDS, attempts=8, seed=0)
    found, used = looks(watcher, suite(share), ORDER)
    assert found == verdict
    assert used < 0.55 * len(IDS)


def test_tasks_are_taken_in_the_drawn_order_however_they_finish() -> None:
    passes = suite(0.5)
    by_luck = tuple(sorted(IDS, key=lambda task: -passes[task]))
    drawn = Watcher(["pass^4 >= 0.65"], tasks=IDS, attempts=8, seed=0)
    lucky = Watcher(["pass^4 >= 0.65"], tasks=IDS, attempts=8, seed=0)
    assert looks(drawn, passes, ORDER) == looks(lucky, passes, by_luck)


def test_a_task_counts_once_all_its_attempts_are_in() -> None:
    watcher = Watcher(["pass^4 >= 0.5"], tasks=IDS, attempts=8, seed=0)
    first, second = ORDER[:2]
    look = watcher.look(run_of({second: 8}))
    assert (look.used, look.waiting) == (0, f"{first}, which has 0 of 8 attempts")
    look = watcher.look(Run("a", "a", Outcomes.from_counts([5, 8], [5, 8], [first, second])))
    assert (look.used, look.waiting) == (0, f"{first}, which has 5 of 8 attempts")
    look = watcher.look(run_of({first: 8, second: 8}))
    assert look.used == 2
    assert "2 of 164 tasks used, not settled; waiting for" in str(look)


def test_with_a_number_the_order_is_known_once_all_tasks_are_seen() -> None:
    watcher = Watcher(["pass^4 >= 0.5"], tasks=3, attempts=2 * 4, seed=0)
    look = watcher.look(run_of({"a": 8, "b": 8}))
    assert look.used == 0
    assert "ids of all 3 tasks, of which 2 have been seen" in str(look)
    look = watcher.look(run_of({"a": 8, "b": 8, "c": 8}))
    assert (look.used, look.settled) == (2, True)  # two of three passed: at least half will have


def test_all_tasks_settle_what_this_suite_reads_and_not_what_new_tasks_would() -> None:
    passes = {str(i): 8 * (i % 3 > 0) for i in range(24)}
    here = Watcher(["pass^4 >= 0.6"], tasks=list(passes), attempts=8, seed=0).look(run_of(passes))
    assert here.result.verdict is GateVerdict.SHOWN
    assert here.used <= 24
    there = Watcher(
        ["pass^4 >= 0.6"],
        tasks=list(passes),
        attempts=8,
        options=GateOptions(Terms(population=Population.NEW_TASKS)),
        seed=0,
    ).look(run_of(passes))
    assert (there.complete, there.result.exit_code) == (True, 3)
    assert "only more tasks" in str(there.result)


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("rate >= 0.5", "shown"),
        ("rate > 0.5", "refuted"),
        ("rate <= 0.5", "shown"),
        ("rate < 0.5", "refuted"),
    ],
)
def test_signs_at_the_limit_itself(rule: str, verdict: str) -> None:
    passes = {str(i): 8 * (i % 2) for i in range(10)}
    look = Watcher([rule], tasks=10, attempts=8, seed=0).look(run_of(passes))
    assert str(look.result.verdict) == verdict


def test_missing_attempts_keep_it_open() -> None:
    passes = dict.fromkeys(IDS, 4)
    options = {
        way: GateOptions(Terms.from_options({"missing": way}))
        for way in ("bound", "fail", "exclude")
    }
    verdicts = {
        way: str(
            Watcher(["rate >= 0.8"], tasks=IDS, attempts=8, options=chosen, seed=0)
            .look(run_of(passes, n=4, missing=4))
            .result.verdict
        )
        for way, chosen in options.items()
    }
    assert verdicts == {"bound": "not settled", "fail": "refuted", "exclude": "shown"}
    with pytest.raises(TooFewAttempts):
        Watcher(["pass^8 >= 0.5"], tasks=IDS, attempts=8, options=options["exclude"], seed=0).look(
            run_of(passes, n=4, missing=4)
        )


def test_too_many_missing_end_it_as_incomplete() -> None:
    watcher = Watcher(["pass^4 >= 0.5", "missing <= 2%"], tasks=IDS, attempts=8, seed=0)
    few = dict.fromkeys(ORDER[:10], 7)
    look = watcher.look(run_of(few, n=7, missing=1))
    assert not look.result.incomplete
    many = dict.fromkeys(ORDER[:60], 7)
    look = watcher.look(run_of(many, n=7, missing=1))
    assert (look.settled, look.result.exit_code) == (True, 4)


def test_the_lift_over_a_base_is_watched_task_by_task() -> None:
    base = Outcomes.from_counts(8, [2] * len(IDS), IDS)
    this_run = GateOptions(Terms(population=Population.THIS_RUN))

    def watcher() -> Watcher:
        rules = ["pass^1 >= base - 0.03"]
        return Watcher(rules, tasks=IDS, attempts=8, options=this_run, against=base, seed=0)

    found, used = looks(watcher(), dict.fromkeys(IDS, 7), ORDER)
    assert found == "shown"
    assert used < 30
    assert looks(watcher(), dict.fromkeys(IDS, 0), ORDER)[0] == "refuted"


def test_what_cannot_be_watched_is_refused_at_once() -> None:
    with pytest.raises(InvalidValue, match="no upper limit"):
        Watcher(["cost <= 1"], tasks=3, attempts=8, seed=0)
    with pytest.raises(InvalidValue, match="against=SOURCE"):
        Watcher(["rate >= base"], tasks=3, attempts=8, seed=0)
    with pytest.raises(InvalidValue, match="4 are planned"):
        Watcher(["pass^8 >= 0.5"], tasks=3, attempts=4, seed=0)
    with pytest.raises(InvalidValue, match="at least 1"):
        Watcher(["rate >= 0.5"], tasks=0, attempts=4, seed=0)
    with pytest.raises(InvalidValue, match="were not planned: x"):
        Watcher(["rate >= 0.5"], tasks=["a"], attempts=8, seed=0).look(run_of({"x": 8}))
    with pytest.raises(InvalidValue, match="2 tasks, 1 planned"):
        Watcher(["rate >= 0.5"], tasks=1, attempts=8, seed=0).look(run_of({"x": 8, "y": 8}))
    alone = Outcomes.from_counts(8, [1], ["b"])
    with pytest.raises(InvalidValue, match="base has no attempts at a"):
        Watcher(["rate >= base"], tasks=["a"], attempts=8, against=alone, seed=0).look(
            run_of({"a": 8})
        )


def test_attempts_that_differ_by_task_cannot_be_watched() -> None:
    outcomes = Outcomes.from_counts([2, 3], [1, 2], ["a", "b"])
    run = Run("new", "new", outcomes, planned=np.array([2, 3]))
    with pytest.raises(InvalidValue, match="of its own for every task"):
        Watcher(["pass^1 >= 0.5"], tasks=["a", "b"], attempts=2, seed=1).look(run)


def test_a_watch_names_its_population() -> None:
    """A rule against a baseline is about these tasks, as in the gate of a complete run."""
    outcomes = Outcomes.from_counts(2, [2, 2], ["a", "b"])
    rules = ["rate >= 0.5", "rate >= base - 0.5"]
    watcher = Watcher(rules, tasks=["a", "b"], attempts=2, against=outcomes, seed=1)
    look = watcher.look(Run("r", "r", outcomes))
    assert [result.about for result in look.result.results] == ["this run", "these tasks"]
    assert str(look).startswith("2 of 2 rounds used")


@pytest.mark.parametrize(
    ("lost", "used", "verdict"),
    [
        (0, 0, "not settled"),
        (0, 1, "shown"),
        (1, 2, "not settled"),  # half of those so far, and at most a fifth of all in the end
        (1, 5, "shown"),
        (2, 2, "not settled"),
        (3, 3, "refuted"),
    ],
)
def test_a_share_of_missing_attempts_is_open_while_later_tasks_could_change_it(
    lost: int, used: int, verdict: str
) -> None:
    names = [f"m{i}" for i in range(10)]
    watcher = Watcher(["missing <= 0.2"], tasks=names, attempts=1, seed=1)
    done = consumption_order(names, seed=1)[:used] or [names[0]]
    missing = [int(place < lost) for place in range(len(done))]
    counts = [1 - one for one in missing]
    if not used:  # what comes first is not the first in the drawn order
        done = consumption_order(names, seed=1)[-1:]
    run = Run("agent", "agent", Outcomes.from_counts(counts, counts, done, missing=missing))
    look = watcher.look(run)
    assert str(look.result.results[0].verdict) == verdict
    assert look.used == used
