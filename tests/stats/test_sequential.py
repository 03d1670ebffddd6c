"""passhat.stats.sequential: right at every look, exact at the last, and honest about its order."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.stats.sequential import ConfidenceSequence, consumption_order

UNIT = st.floats(0, 1, allow_nan=False)


def first_verdict(
    values: list[float], threshold: float, *, strict: bool, total: int | None
) -> tuple[str, int]:
    sequence = ConfidenceSequence(0.9, total=total, thresholds=[threshold], points=2)
    for count, value in enumerate(values, 1):
        sequence.update(value)
        if (verdict := sequence.decide(threshold, strict=strict)) != "open":
            return verdict, count
    return "open", len(values)


@given(st.lists(UNIT, min_size=1, max_size=40), st.booleans())
@settings(max_examples=max_examples(60))
def test_the_interval_never_widens_and_stays_in_range(values: list[float], fixed: bool) -> None:
    sequence = ConfidenceSequence(total=len(values) if fixed else None, points=50)
    low, high = 0.0, 1.0
    for value in values[:-1]:
        bounds = sequence.update(value)
        assert 0 <= bounds.low <= bounds.high + 1e-9 <= 1 + 1e-9
        assert low <= bounds.low
        assert bounds.high <= high
        low, high = bounds.low, bounds.high


@given(st.lists(UNIT, min_size=1, max_size=40))
@settings(max_examples=max_examples(60))
def test_a_whole_suite_leaves_nothing_open(values: list[float]) -> None:
    bounds = ConfidenceSequence(total=len(values), points=50).update_many(values)
    assert bounds.low == bounds.high == pytest.approx(np.mean(values))


@given(st.lists(UNIT, min_size=1, max_size=30), st.booleans())
@settings(max_examples=max_examples(60))
def test_turning_the_values_round_turns_the_interval_round(
    values: list[float], fixed: bool
) -> None:
    total = len(values) + 5 if fixed else None
    straight = ConfidenceSequence(total=total, points=50).update_many(values)
    turned = ConfidenceSequence(total=total, points=50).update_many([1 - v for v in values])
    assert turned.low == pytest.approx(1 - straight.high, abs=0.021)
    assert turned.high == pytest.approx(1 - straight.low, abs=0.021)


def test_one_sided_is_sharper_than_two_sided_and_leaves_the_other_end_alone() -> None:
    values = [1.0, 0.0, 1.0, 1.0, 1.0] * 10
    both = ConfidenceSequence(0.95).update_many(values)
    lower = ConfidenceSequence(0.95, sides="lower").update_many(values)
    upper = ConfidenceSequence(0.95, sides="upper").update_many(values)
    assert both.low < lower.low < 0.8 < upper.high < both.high
    assert lower.high == 1
    assert upper.low == 0


def test_all_alike_still_leaves_room() -> None:
    bounds = ConfidenceSequence().update_many([1.0] * 50)
    assert 0.85 < bounds.low < 1
    assert bounds.high == 1


def test_a_fixed_suite_is_settled_by_what_is_certain() -> None:
    sequence = ConfidenceSequence(total=10, thresholds=[0.5])
    assert sequence.update_many([1.0] * 5).low >= 0.5
    assert sequence.decide(0.5) == "shown"


@pytest.mark.parametrize(
    ("strict", "expected"), [(False, "shown"), (True, "refuted")], ids=["at least", "above"]
)
def test_a_mean_on_the_threshold(strict: bool, expected: str) -> None:
    sequence = ConfidenceSequence(total=3, thresholds=[0.6])
    sequence.update_many([0.2, 0.8, 0.8])  # the float sum is 1.8 or a hair beside it
    assert sequence.decide(0.6, strict=strict) == expected


def _suite(seed: int, tasks: int) -> Callable[[], list[float]]:
    rng = np.random.default_rng(seed)
    table = np.array([0, 0, 0, 0, 1, 5, 15, 35, 70]) / 70  # pass^4 of c passes in 8

    def draw() -> list[float]:
        values: list[float] = table[rng.binomial(8, rng.beta(0.5, 0.5, tasks))].tolist()
        return values

    return draw


def test_errors_with_a_look_after_every_task_stay_below_five_percent() -> None:
    draw, tasks, repetitions = _suite(3, 100), 100, 300
    wrong = [0, 0]
    for _ in range(repetitions):
        values = draw()
        truth = float(np.mean(values))
        wrong[0] += first_verdict(values, truth, strict=True, total=tasks)[0] == "shown"
        wrong[1] += first_verdict(values, truth, strict=False, total=tasks)[0] == "refuted"
    # 5% plus two standard errors of 300 repetitions
    assert max(wrong) / repetitions <= 0.05 + 2 * (0.05 * 0.95 / repetitions) ** 0.5


@pytest.mark.parametrize(("tasks", "most"), [(164, 0.55), (500, 0.25)])
def test_what_is_saved_when_the_truth_is_far_from_the_threshold(tasks: int, most: float) -> None:
    draw = _suite(5, tasks)
    used = []
    for _ in range(25):
        values = draw()
        for away in (-0.15, 0.15):
            threshold = float(np.mean(values)) + away
            verdict, count = first_verdict(values, threshold, strict=False, total=tasks)
            assert verdict in ("shown", "refuted")
            used.append(count / tasks)
    assert np.mean(used) <= most


def test_slow_failures_mislead_in_order_of_completion_and_not_in_the_drawn_order() -> None:
    ids = [f"task-{i:03}" for i in range(200)]
    passes = {task: float(i % 2) for i, task in enumerate(ids)}
    by_completion = sorted(ids, key=lambda task: -passes[task])
    drawn = consumption_order(ids, seed=1)
    threshold = 0.6  # the truth is .5
    order_of = {"completion": by_completion, "drawn": drawn}
    verdicts = {
        name: first_verdict([passes[t] for t in order], threshold, strict=False, total=200)[0]
        for name, order in order_of.items()
    }
    assert verdicts == {"completion": "shown", "drawn": "refuted"}


@given(st.sets(st.text(max_size=8), min_size=1, max_size=30), st.integers(0, 5), st.randoms())
@settings(max_examples=max_examples(50))
def test_the_order_depends_on_ids_and_seed_alone(ids: set[str], seed: int, random: Random) -> None:
    shuffled = sorted(ids)
    random.shuffle(shuffled)
    order = consumption_order(shuffled, seed)
    assert order == consumption_order(sorted(ids), seed)
    assert sorted(order) == sorted(ids)


def test_a_seed_gives_another_order() -> None:
    ids = [str(i) for i in range(50)]
    assert consumption_order(ids, 0) != consumption_order(ids, 1)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidValue, match="level"):
        ConfidenceSequence(1.0)
    with pytest.raises(InvalidValue, match="sides"):
        ConfidenceSequence(sides="left")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="at least 1 task"):
        ConfidenceSequence(total=0)
    with pytest.raises(InvalidValue, match=r"value 1 is 1\.5"):
        ConfidenceSequence().update(1.5)
    with pytest.raises(InvalidValue, match="value 1 is nan"):
        ConfidenceSequence().update(float("nan"))
    with pytest.raises(InvalidValue, match="already in"):
        ConfidenceSequence(total=1).update_many([0, 1])
    with pytest.raises(InvalidValue, match="unique"):
        consumption_order(["a", "a"], 0)


def test_ends_that_would_cross_are_told_and_not_shown() -> None:
    bounds = ConfidenceSequence().update_many([1.0] * 60 + [0.0] * 400)
    assert bounds.crossed
    assert bounds.low <= bounds.high
    assert "the ends crossed" in str(bounds)
    whole = ConfidenceSequence(total=460).update_many([1.0] * 60 + [0.0] * 400)
    assert whole.low == whole.high == pytest.approx(60 / 460)


def test_bounds_show_themselves() -> None:
    bounds = ConfidenceSequence().bounds
    assert str(bounds) == "[0.000, 1.000] (95% at every look; no task yet, 0 seen)"
    assert bounds.to_dict()["count"] == 0


def test_a_look_keeps_nothing_of_the_values_before_it() -> None:
    """So it costs the same after two thousand tasks as after ten."""
    sequence = ConfidenceSequence(total=10_000)
    sizes = []
    for count, value in enumerate(np.random.default_rng(0).random(2_000).tolist(), start=1):
        sequence.update(value)
        if count in (10, 2_000):
            sizes.append(len(pickle.dumps(sequence)))
    assert sizes[1] - sizes[0] < 100  # a larger number may need another byte


# -- suites of 0 and 1 ------------------------------------------------------------------------


def _chance_of_error(total: int, passes: int, level: float) -> float:
    """The exact chance that a random order of this suite ever shows more passes than it has.

    Every path of (tasks seen, passes seen) is followed with its chance. A bound depends on the path
    only through what was refuted before, so paths that have erred are taken out as they go.
    """
    chances = {0: 1.0}
    erred = 0.0
    for seen in range(total - 1):
        after: dict[int, float] = {}
        for passed, chance in chances.items():
            left = (passes - passed) / (total - seen)
            for step, share in ((1, left), (0, 1 - left)):
                if share > 0:
                    after[passed + step] = after.get(passed + step, 0.0) + chance * share
        chances = {}
        for passed, chance in after.items():
            # A fresh sequence with these counts, failures first: only its last look matters here,
            # because earlier errors have been taken out along every path.
            if _shows_more(total, passes, passed, seen + 1 - passed, level):
                erred += chance
            else:
                chances[passed] = chance
    return erred


def _shows_more(total: int, passes: int, passed: int, failed: int, level: float) -> bool:
    urn = ConfidenceSequence(level, sides="lower", total=total, binary=True, points=2)
    values = [0.0] * failed + [1.0] * passed
    return urn.update_many(values).low > passes / total + 1e-9


@pytest.mark.parametrize(("total", "passes"), [(12, 6), (12, 10), (16, 4), (16, 15)])
def test_a_binary_suite_errs_at_most_as_often_as_it_says(total: int, passes: int) -> None:
    """Exact, over all orders, with a look after every task."""
    assert _chance_of_error(total, passes, 0.95) <= 0.05


def test_a_binary_suite_is_settled_with_fewer_tasks() -> None:
    rng = np.random.default_rng(3)
    used = {True: 0, False: 0}
    suite = np.array([1.0] * 58 + [0.0] * 2)
    for _ in range(25):
        rng.shuffle(suite)
        for binary in (True, False):
            sequence = ConfidenceSequence(0.9, total=60, thresholds=[0.9], points=2, binary=binary)
            for value in suite.tolist():
                used[binary] += sequence.decide(0.9) == "open"
                sequence.update(value)
    assert used[True] <= 0.85 * used[False]


def test_a_binary_sequence_refuses_what_lies_between() -> None:
    with pytest.raises(InvalidValue, match="takes 0 and 1"):
        ConfidenceSequence(total=5, binary=True).update(0.5)


@given(st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=40))
@settings(max_examples=max_examples(40))
def test_a_binary_sequence_narrows_to_the_mean(values: list[float]) -> None:
    sequence = ConfidenceSequence(total=len(values), binary=True, points=2)
    low, high = 0.0, 1.0
    for value in values:
        bounds = sequence.update(value)
        assert bounds.low >= low - 1e-12
        assert bounds.high <= high + 1e-12
        low, high = bounds.low, bounds.high
    assert low == pytest.approx(high) == pytest.approx(np.mean(values))
