"""What both agents used: sums by hand, only over the tasks that both attempted."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from passhat import Outcomes, Run, compare
from passhat.stats.compare.paired_comparison import Use, Value, deployment, deployment_line
from passhat.stats.outcomes import Aggregates, Attempts, MeasureSum

NAN = float("nan")


def _run(name: str, tasks: dict[str, list[tuple[int, float]]], measure: str = "cost") -> Run:
    flat = [attempt for rows in tasks.values() for attempt in rows]
    attempts = Attempts(
        tuple(tasks),
        np.cumsum([0, *map(len, tasks.values())]),
        np.array([verdict for verdict, _ in flat], np.int8),
        measures=MappingProxyType({measure: np.array([value for _, value in flat])}),
    )
    n = [len(rows) for rows in tasks.values()]
    c = [sum(verdict == 1 for verdict, _ in rows) for rows in tasks.values()]
    return Run(name, name, Outcomes.from_counts(n, c, list(tasks)), attempts=attempts)


A = _run("a", {"x": [(1, 2.0), (0, 4.0)], "y": [(1, 6.0), (1, NAN)], "only a": [(0, 100.0)]})
B = _run("b", {"y": [(0, 1.0), (0, 1.0)], "x": [(0, 1.0), (0, 3.0)]})


def test_only_shared_tasks_and_recorded_attempts_count() -> None:
    (cost,) = deployment(A, B, ["x", "y"])
    assert cost.measure == "cost"
    # 2 + 4 + 6 over three recorded attempts, two of which passed.
    assert cost.a == Use(3, 4.0, 6.0)
    # Nothing passed: there is no price of a solved task.
    assert cost.b == Use(4, 1.5, None)
    assert str(cost) == "cost per attempt 4 against 1.5, per solved task 6 against –"


def test_a_measure_that_one_side_recorded_is_shown_with_a_dash() -> None:
    seconds = _run("c", {"x": [(1, 7.5)], "y": [(1, NAN)]}, "seconds")
    cost, slow = deployment(A, seconds, ["x", "y"])
    assert (cost.b, slow.a) == (None, None)
    assert str(slow) == "seconds per attempt – against 7.5, per solved task – against 7.5"
    line = deployment_line([cost, slow])
    assert line.startswith("cost per attempt 4 against –")
    assert line.endswith("(A against B)")
    assert deployment_line([]) == "neither cost, seconds, steps nor tokens are recorded"


def test_sums_of_a_store_count_where_all_its_tasks_are_shared() -> None:
    """Sums are over all tasks of a run; for some of them they would be wrong."""
    sums = Aggregates(MappingProxyType({}), MappingProxyType({"cost": MeasureSum(4, 10.0, 2)}))
    outcomes = Outcomes.from_counts(2, [1, 1], ["x", "y"])
    counted = Run("s", "s", outcomes, aggregates=sums)
    (cost,) = deployment(counted, B, ["x", "y"])
    assert cost.a == Use(4, 2.5, 5.0)
    (cost,) = deployment(counted, B, ["x"])
    assert cost.a is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.012345, "0.0123"),
        (999.6, "1,000"),
        (999.4, "999"),
        (1234.5, "1,234"),
        (1e6, "1,000,000"),
        (0.0, "0"),
    ],
)
def test_figures_have_three_digits_and_large_ones_thousands(value: float, shown: str) -> None:
    text = str(Value("tokens", Use(1, value, None), None))
    assert text.startswith(f"tokens per attempt {shown} against –")


def test_what_was_used_is_never_part_of_the_evidence() -> None:
    found = compare(A, B, "pass^1")
    dear = _run("a", {"x": [(1, 1e6), (0, 1e6)], "y": [(1, 1e6), (1, 1e6)], "only a": [(0, 1.0)]})
    other = compare(dear, B, "pass^1")
    assert [result.to_dict() for result in found.results] == [
        result.to_dict() for result in other.results
    ]
    assert found.deployment != other.deployment
    assert found.pairing_text == "2 paired tasks; 1 task only in a (only a)"
