"""Attempts per task from an earlier run: what is promised holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.plan import Allocation, Allocator, allocate, plan_attempts
from passhat.stats.plan.allocation import Offer, counts_digest, share_of_settled


def count_metric(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


def mixed(tasks: int = 60, n: int = 8, seed: int = 1) -> Outcomes:
    """Two thirds of the tasks are settled, the others anything."""
    rng = np.random.default_rng(seed)
    third = tasks // 3
    rates = np.concatenate([np.zeros(third), np.ones(third), rng.uniform(0.1, 0.9, third)])
    return Outcomes.from_counts(n, rng.binomial(n, rates))


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=30),
    st.sampled_from(["pass^1", "pass^4", "pass@2", "gpass@4:0.5"]),
    st.integers(4, 20),
    st.one_of(st.none(), st.integers(4, 40)),
)
@settings(max_examples=25, deadline=None)
def test_a_design_keeps_its_limits(
    passed: list[int], word: str, each: int, most: int | None
) -> None:
    outcomes = Outcomes.from_counts(8, np.array(passed))
    allocator = Allocator(outcomes, count_metric(word), most=most)
    total = each * len(passed)
    for floor in allocator.floors(total):
        design = allocator.allocate(total, floor)
        assert int(design.sum()) <= total
        assert int(design.min()) >= max(count_metric(word).k, 2)
        assert most is None or int(design.max()) <= max(most, floor)
        # Never worse than equal n by its own account; else it is not among the floors.
        assert allocator.noise(design) <= allocator.noise(allocator.uniform(total))
        same = np.array(passed)
        for count in set(passed):  # tasks with the same past differ by one step at most
            assert len(np.unique(design[same == count])) <= 2


def test_the_greedy_design_is_nearly_the_best_one() -> None:
    outcomes = Outcomes.from_counts(8, np.array([0, 4, 8]))
    allocator = Allocator(outcomes, count_metric("pass^2"))
    design = allocator.allocate(24, 2)
    steps = [2, 3, 4, 6, 8, 12, 16]
    every = [np.array([a, b, c]) for a in steps for b in steps for c in steps if a + b + c <= 24]
    # Steps of several attempts do not always fit into what is left.
    assert allocator.noise(design) <= 1.01 * min(map(allocator.noise, every))


def test_the_expected_standard_error_is_that_of_many_runs() -> None:
    outcomes = mixed(90)
    allocator = Allocator(outcomes, count_metric("pass^4"))
    design = allocator.allocate(720, 4)
    rng = np.random.default_rng(3)
    member, posterior = allocator._member, allocator._posterior
    errors = []
    for _ in range(200):
        rates = np.array([rng.choice(allocator._rates, p=posterior[cell]) for cell in member])
        c = rng.binomial(design, rates)
        u = np.array(
            [
                count_metric("pass^4").values(np.array([n]), np.array([k]))[0]
                for n, k in zip(design, c, strict=True)
            ]
        )
        errors.append(float((u - rates**4).mean()))
    assert np.std(errors) == pytest.approx(allocator.noise(design), rel=0.17)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 14


def test_settled_tasks_get_few_and_others_many() -> None:
    made = allocate(mixed(), metric="pass^4").allocation
    assert made is not None
    assert made.total <= 480
    assert 0.15 < made.saving < 0.8
    assert made.half_width < made.uniform_half_width
    by_share = {level.attempts: level for level in made.table}
    assert by_share[min(by_share)].passed_before[0] == 0
    low, high = by_share[max(by_share)].passed_before
    assert 0 < low <= high < 1
    assert made.others == round(made.total / 60)
    assert "saved" in made.sentence


def test_tasks_that_are_alike_get_the_same() -> None:
    rng = np.random.default_rng(4)
    outcomes = Outcomes.from_counts(8, rng.binomial(8, np.full(40, 0.5)))
    made = allocate(outcomes, metric="pass^1", budget=324).allocation
    assert made is not None
    assert made.is_uniform
    assert (made.total, made.saving) == (324, 0.0)
    assert any("equal attempts" in note for note in made.notes)


def test_a_half_width_needs_fewer_attempts_than_equal_ones() -> None:
    made = allocate(mixed(90), metric="pass^4", half_width=0.05)
    assert made.allocation is not None
    assert made.allocation.total < made.cheapest.total_attempts
    assert made.allocation.half_width <= 0.05
    assert "instead of" in made.sentence


def test_a_gate_takes_what_needs_fewer() -> None:
    made = plan_attempts(mixed(60), gate=True, metric="pass^4", detect=0.08)
    assert made.allocation is not None
    assert made.allocation.total < made.cheapest.attempts * made.cheapest.tasks
    rng = np.random.default_rng(4)
    alike = Outcomes.from_counts(8, rng.binomial(8, np.full(40, 0.5)))
    even = plan_attempts(alike, gate=True, metric="pass^1")
    assert even.allocation is None
    assert even.pilot_reaches == pytest.approx(even.target, abs=0.002)


def test_few_earlier_attempts_are_pointed_out() -> None:
    made = allocate(mixed(60, n=3), metric="pass^2", budget=300).allocation
    assert made is not None
    assert any("the gain is small" in note for note in made.notes)
    with pytest.raises(InvalidValue, match="at most one scored attempt"):
        allocate(mixed(60, n=1), metric="pass^1")


def test_a_task_without_a_verdict_has_the_rate_of_any_task() -> None:
    n = np.array([8, 8, 8, 8, 0])
    outcomes = Outcomes.from_counts(n, np.array([0, 0, 8, 4, 0]), missing=8 - n)
    made = allocate(outcomes, metric="pass^2", budget=40).allocation
    assert made is not None
    settled, unknown = made.attempts[0], made.attempts[4]
    assert unknown > settled


def test_a_plan_survives_json() -> None:
    run = Run("careful", "A", mixed(), Protocol(suite="desk", suite_fingerprint="ab"), id="x1")
    made = allocate(run, metric="pass^4")
    data = json.loads(json.dumps(made.to_dict()))
    assert made.allocation is not None
    again = Allocation.from_dict(data["allocation"])
    assert again.by_task == made.allocation.by_task
    assert again.earlier == made.allocation.earlier
    assert (again.earlier.id, again.earlier.suite) == ("x1", "desk")
    assert again.earlier.digest == counts_digest(run.outcomes)
    assert again.saving == pytest.approx(made.allocation.saving)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attempts": {}}, "names no task"),
        ({"attempts": {"a": 0}}, "'a' 0 attempts"),
        ({"attempts": {"a": True}}, "'a' True attempts"),
        ({"others": "8"}, "'others' '8' attempts"),
        ({"earlier": None}, "which run"),
    ],
)
def test_a_broken_plan_is_refused(change: dict[str, object], message: str) -> None:
    data = {"attempts": {"a": 4}, "others": 4, "earlier": {"id": "x"}, **change}
    with pytest.raises(InvalidValue, match=message):
        Allocation.from_dict(data)


def test_what_cannot_be_allocated_is_refused() -> None:
    with pytest.raises(InvalidValue, match="the budget is 100"):
        allocate(mixed(), metric="pass^4", budget=100)
    with pytest.raises(InvalidValue, match="most is 2"):
        allocate(mixed(), metric="pass^4", most=2)
    with pytest.raises(InvalidValue, match="one goal"):
        allocate(mixed(), budget=500, half_width=0.1)
    with pytest.raises(InvalidValue, match="budget must be a whole number"):
        allocate(mixed(), budget=0)


def test_the_share_of_settled_attempts() -> None:
    outcomes = Outcomes.from_counts(np.array([8, 4, 4, 1]), np.array([8, 2, 0, 1]))
    assert share_of_settled(outcomes) == pytest.approx(12 / 17)


def test_matrices_are_taken_as_well() -> None:
    matrix = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]] * 4
    made = passhat.allocate(matrix, metric="pass^2", budget=80)
    assert made.allocation is not None
    assert made.allocation.total <= 80


def test_an_offer_names_what_is_spent_on_settled_tasks() -> None:
    offer = Offer.of(mixed(90), count_metric("pass^4"))
    assert offer is not None
    assert offer.settled > 0.6
    assert 0.3 < offer.needed < 0.8
    assert "settled tasks" in str(offer)
    assert Offer.of(mixed(90, n=3), count_metric("pass^2")) is None  # too few to tell
    alike = Outcomes.from_counts(8, np.full(40, 4))
    assert Offer.of(alike, count_metric("pass^1")) is None
