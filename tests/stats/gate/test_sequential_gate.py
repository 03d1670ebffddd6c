"""Watched gates on small suites: wrong verdicts by enumeration, and what is said at the end."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.gate import GateOptions, GateVerdict
from passhat.stats.gate.sequential_gate import Look, Watcher
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.sequential import consumption_order
from passhat.stats.terms import Population, Terms


def _run(counts: dict[str, int], n: int, missing: dict[str, int] | None = None) -> Run:
    lost = missing or {}
    names = list(counts)
    return Run(
        "bot",
        "bot",
        Outcomes.from_counts(
            [n - lost.get(name, 0) for name in names],
            [counts[name] for name in names],
            names,
            missing=[lost.get(name, 0) for name in names],
        ),
    )


def _end(
    rule: str, counts: dict[str, int], n: int, level: float = 0.95, against: Outcomes | None = None
) -> Look:
    """Look after every task, in the drawn order, until it is settled."""
    terms = Terms(level=level, population=Population.THIS_RUN)
    watcher = Watcher(
        [rule],
        tasks=list(counts),
        attempts=n,
        options=GateOptions(terms),
        against=against,
        seed=0,
    )
    done: dict[str, int] = {}
    look = None
    for task in consumption_order(counts, 0):
        done[task] = counts[task]
        look = watcher.look(_run(done, n))
        if look.settled:
            break
    assert look is not None
    return look


@pytest.mark.parametrize("passes", range(8))
def test_a_wrong_verdict_in_no_more_orders_than_the_level_allows(passes: int) -> None:
    """Seven tasks, one attempt each: every way to hand the passes to the drawn order."""
    names = [f"t{i}" for i in range(7)]
    order = consumption_order(names, 0)
    truth = passes / 7
    for limit in (0.4, 0.6):
        wrong = total = 0
        for row in product((0, 1), repeat=7):
            if sum(row) != passes:
                continue
            total += 1
            look = _end(f"pass^1 >= {limit}", dict(zip(order, row, strict=True)), 1, level=0.75)
            shown = look.result.verdict is GateVerdict.SHOWN
            wrong += look.settled and shown != (truth >= limit)
        assert wrong <= 0.25 * total


@settings(max_examples=max_examples(20))
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_a_complete_suite_without_missing_attempts_is_always_settled(
    passes: list[int], limit: float
) -> None:
    """About these tasks the mean of all is known: the verdict is what it reads."""
    counts = {f"t{i}": c for i, c in enumerate(passes)}
    mean = float(np.mean(passes)) / 4
    for sign, holds in ((">=", mean >= limit), (">", mean > limit), ("<", mean < limit)):
        look = _end(f"pass^1 {sign} {limit}", counts, 4, level=0.99)
        assert look.settled
        assert (look.result.verdict is GateVerdict.SHOWN) is holds


def test_missing_attempts_decide_at_the_end_and_that_is_advised() -> None:
    """ "Only more tasks would settle it" was said of a suite that was complete."""
    counts = {"a": 1, "b": 1}
    watcher = Watcher(["pass^1 >= 0.75"], tasks=["a", "b"], attempts=2, seed=0)
    look = watcher.look(_run(counts, 2, missing={"a": 1, "b": 1}))
    (found,) = look.result.results
    assert look.complete
    assert found.verdict is GateVerdict.NOT_SETTLED
    assert (found.low, found.high) == pytest.approx((0.5, 1.0))
    assert found.advice is not None
    assert found.advice.kind == "verdicts"
    assert "the 2 attempts without a verdict decide" in found.advice.text
    new = Watcher(
        ["pass^1 >= 0.75"],
        tasks=["a", "b"],
        attempts=2,
        options=GateOptions(Terms(population=Population.NEW_TASKS)),
        seed=0,
    )
    (open_rule,) = new.look(_run(counts, 2)).result.results
    assert open_rule.advice is not None
    assert "only more tasks" in open_rule.advice.text


def test_how_tasks_arrive_changes_nothing() -> None:
    """One at a time, all at once, or in another order: the same tasks are used."""
    rng = np.random.default_rng(1)
    names = [f"t{i}" for i in range(12)]
    counts = {name: int(rng.integers(3, 5)) for name in names}
    step = _end("pass^2 >= 0.2", counts, 4)
    for order in (names, names[::-1]):
        watcher = Watcher(["pass^2 >= 0.2"], tasks=names, attempts=4, seed=0)
        at_once = watcher.look(_run({name: counts[name] for name in order}, 4))
        assert (at_once.used, at_once.result.verdict) == (step.used, step.result.verdict)
        assert at_once.result.results[0].low == pytest.approx(step.result.results[0].low)


def test_a_settled_gate_takes_no_more_tasks() -> None:
    names = [f"t{i}" for i in range(30)]
    watcher = Watcher(["pass^1 >= 0.3"], tasks=names, attempts=1, seed=4)
    first = watcher.look(_run(dict.fromkeys(names, 1), 1))
    assert first.settled
    assert first.used < 30
    again = watcher.look(_run(dict.fromkeys(names, 1), 1))
    assert again.used == first.used
    assert "in an order drawn beforehand (seed 4)" in again.result.notes[0]
    assert again.result.order_seed == 4


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_a_lift_is_followed_task_by_task(order: tuple[int, ...]) -> None:
    names = ["a", "b", "c"]
    base = Outcomes.from_counts(2, [0, 1, 2], names)
    counts = {names[i]: 2 for i in order}
    look = _end("pass^1 >= base + 0.2", counts, 2, against=base)
    (found,) = look.result.results
    # Lifts of 1, 1/2 and 0: after all three the mean is known.
    if look.complete:
        assert found.value == pytest.approx(0.5)
        assert (found.low, found.high) == pytest.approx((0.5, 0.5))
        assert found.verdict is GateVerdict.SHOWN
    assert found.low is not None
    assert found.low <= 0.5 + 1e-9


def test_one_task_planned_reads_in_the_singular() -> None:
    watcher = Watcher(["pass^1 >= 0.5", "missing <= 10%"], tasks=["only"], attempts=2, seed=0)
    nothing = watcher.look(_run({"only": 1}, 1))
    assert str(nothing) == (
        "0 of 1 task used, not settled; waiting for only, which has 1 of 2 attempts"
    )
    done = watcher.look(_run({"only": 2}, 2))
    assert str(done) == "1 of 1 task used, shown"
    missing = done.result.results[1]
    assert missing.verdict is GateVerdict.SHOWN
    assert missing.about == "the tasks used so far"


def test_tasks_beyond_the_plan_are_refused() -> None:
    watcher = Watcher(["pass^1 >= 0.5"], tasks=["a"], attempts=1, seed=0)
    with pytest.raises(InvalidValue, match=r"not planned: b \(2 tasks, 1 planned\)"):
        watcher.look(_run({"a": 1, "b": 1}, 1))
    by_number = Watcher(["pass^1 >= 0.5"], tasks=1, attempts=1, seed=0)
    with pytest.raises(InvalidValue, match="2 tasks, 1 planned"):
        by_number.look(_run({"a": 1, "b": 1}, 1))
    with pytest.raises(InvalidValue, match="clusters cannot be watched"):
        Watcher(
            ["rate >= 0.5"],
            tasks=["a"],
            attempts=1,
            options=GateOptions(Terms(cluster="repo")),
            seed=0,
        )
