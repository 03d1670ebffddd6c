"""A watch about these tasks: rounds of attempts, and how often it is wrong at the threshold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import GateOptions
from passhat.stats.gate.rounds import Rounds, attempts_in_order
from passhat.stats.gate.sequential_gate import Look, Watcher
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.outcomes.order import Order
from passhat.stats.sequential import ConfidenceSequence
from passhat.stats.terms import Population, Terms

THESE = GateOptions(Terms(population=Population.THESE_TASKS))
RATES = np.array([0.05] * 2 + [0.5] * 4 + [0.95] * 6)
"""Twelve tasks with a mean rate of .65."""
IDS = [f"task-{i}" for i in range(len(RATES))]


def _look(rule: str, passed: np.ndarray, against: Outcomes | None = None) -> Look:
    watcher = Watcher(
        [rule], tasks=IDS, attempts=passed.shape[1], options=THESE, against=against, seed=1
    )
    return watcher.look(Run("r", "r", Outcomes.from_matrix(passed.astype(int), IDS)))


def test_at_the_threshold_itself_it_is_shown_in_no_more_runs_than_the_level_allows() -> None:
    """The mean of the run is at the threshold or above in half of these runs."""
    rng = np.random.default_rng(4)
    shown = sum(
        str(_look("pass^1 >= 0.65", rng.random((12, 8)) < RATES[:, None]).result.verdict) == "shown"
        for _ in range(60)
    )
    assert shown <= 3


def test_far_from_the_threshold_it_ends_before_the_last_round() -> None:
    rng = np.random.default_rng(5)
    look = _look("pass^1 >= 0.2", rng.random((12, 12)) < RATES[:, None])
    (found,) = look.result.results
    assert (str(found.verdict), found.about, found.tasks) == ("shown", "these tasks", 12)
    assert found.attempts < 12 * 12
    assert found.low is not None
    assert found.low >= 0.2 - 1e-9
    worse = _look("pass^1 >= 0.95", rng.random((12, 12)) < RATES[:, None])
    assert str(worse.result.verdict) == "refuted"


@pytest.mark.parametrize("second", [0.1, 0.5, 0.9])
def test_rounds_of_unequal_tasks_err_no_more_than_the_level_allows(second: float) -> None:
    """Exact: one task that always passes, one of a given rate, eight rounds, all outcomes."""
    mean, wrong = (1 + second) / 2, 0.0
    for passes in product([0, 1], repeat=8):
        sequence = ConfidenceSequence(0.8, sides="lower", thresholds=[mean])
        low = max(sequence.update_round([1.0, float(passed)]).low for passed in passes)
        chance = second ** sum(passes) * (1 - second) ** (8 - sum(passes))
        wrong += chance * (low >= mean)
    assert wrong <= 0.2


def test_rounds_are_no_draws_from_a_suite() -> None:
    with pytest.raises(InvalidValue, match="attempted again"):
        ConfidenceSequence(total=5).update_round([1.0])


def test_a_lift_uses_every_attempt_of_the_baseline_in_one_round() -> None:
    rounds = Rounds.split(PassHat(2), 5, 9)
    assert [(block.start, block.stop) for block in rounds.blocks] == [(0, 2), (2, 5)]
    assert [(block.start, block.stop) for block in rounds.base_blocks] == [(0, 4), (4, 9)]
    passed, base = np.ones((1, 5), bool), np.array([[True] * 4 + [False] * 5])
    assert rounds.values(0, passed, base).tolist() == [0.0]
    assert rounds.values(1, passed, base).tolist() == [1.0]
    with pytest.raises(InvalidValue, match="needs 2 attempts"):
        Rounds.split(PassHat(2), 5, 1)


def test_a_shown_lift_and_one_at_its_margin() -> None:
    rng = np.random.default_rng(6)
    base = Outcomes.from_counts(8, rng.binomial(8, RATES), IDS)
    better = _look("pass^1 >= base - 0.5", rng.random((12, 8)) < RATES[:, None], base)
    assert str(better.result.verdict) == "shown"
    same = _look("pass^1 >= base", rng.random((12, 8)) < RATES[:, None], base)
    assert str(same.result.verdict) == "not settled"
    (found,) = same.result.results
    assert found.advice is not None
    assert "gate of the complete run" in found.advice.text


def test_an_attempt_after_a_gap_waits_for_it() -> None:
    order = Order(np.array([1, 1, 0, 1], np.int8), np.array([0, 3, 4]), np.array([0, 2, 3, 0]))
    outcomes = Outcomes(("a", "b"), np.array([3, 1]), np.array([2, 1]), None, order)
    _, ready = attempts_in_order(outcomes, 4, Completion.AS_FAILED, np.random.default_rng(0))
    assert ready.tolist() == [1, 1]


def test_without_an_order_rounds_wait_for_all_attempts() -> None:
    watcher = Watcher(["pass^1 >= 0.1"], tasks=["a", "b"], attempts=4, options=THESE, seed=1)
    some = watcher.look(Run("r", "r", Outcomes.from_counts([4, 3], [4, 3], ["a", "b"])))
    assert str(some).startswith("0 of 4 rounds used, not settled; waiting for")
    whole = watcher.look(Run("r", "r", Outcomes.from_counts([4, 4], [4, 4], ["a", "b"])))
    assert str(whole.result.verdict) == "shown"


@pytest.mark.parametrize(
    ("rule", "missing", "words"),
    [("delta^2 >= 0.1", "bound", "no mean over tasks"), ("rate >= 0.5", "exclude", "left out")],
)
def test_what_has_no_rounds_is_refused(rule: str, missing: str, words: str) -> None:
    options = GateOptions(Terms.from_options({"missing": missing, "about": "these tasks"}))
    with pytest.raises(InvalidValue, match=words):
        Watcher([rule], tasks=2, attempts=4, options=options, seed=0)
