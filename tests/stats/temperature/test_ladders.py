"""Runs at several temperatures lined up: which tasks, which k, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes, Protocol, Run
from passhat.errors import InvalidValue, NotComparable
from passhat.stats.estimate import pass_at_k
from passhat.stats.outcomes import Completion, MissingPolicy
from passhat.stats.temperature import fit_temperatures
from passhat.stats.temperature.ladders import ladders_of

BOUND, EXCLUDE = MissingPolicy.BOUND, MissingPolicy.EXCLUDE


def _run(
    temperature: float | None,
    passes: dict[str, int],
    n: int | list[int] = 4,
    *,
    agent: str = "a",
    missing: int = 0,
    **settings: object,
) -> Run:
    decoding = {} if temperature is None else {"temperature": temperature}
    lost = [missing] * len(passes)
    outcomes = Outcomes.from_counts(n, list(passes.values()), list(passes), missing=lost)
    protocol = Protocol(decoding=decoding, **settings)  # type: ignore[arg-type]
    return Run(f"{agent} at {temperature}", agent, outcomes, protocol)


def test_rungs_ascend_and_agents_are_told_apart() -> None:
    runs = [
        _run(0.8, {"x": 1, "y": 2}),
        _run(0.2, {"y": 3, "x": 4}),
        _run(0.5, {"x": 0}, agent="b"),
        _run(0.0, {"x": 4, "y": 4}),
    ]
    a, b = ladders_of(runs, [], BOUND)
    assert (a.agent, a.temperatures, a.ks) == ("a", (0.0, 0.2, 0.8), (1, 2, 4))
    assert a.tasks == ("x", "y")
    assert [rung.c.tolist() for rung in a.rungs] == [[4, 4], [4, 3], [1, 2]]
    assert (b.agent, b.temperatures, len(b)) == ("b", (0.5,), 1)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=2, max_size=4),
    st.sampled_from([1, 2, 4]),
)
def test_values_are_pass_at_k_of_every_task_and_temperature(table: list[list[int]], k: int) -> None:
    runs = [
        _run(0.1 * (place + 1), dict(zip("xyz", row, strict=True)))
        for place, row in enumerate(table)
    ]
    (ladder,) = ladders_of(runs, [k], BOUND)
    values = ladder.values(Completion.AS_FAILED)
    assert values.shape == (len(table), 1, 3)
    for rung, row in zip(values[:, 0], table, strict=True):
        assert rung.tolist() == pytest.approx([pass_at_k(4, c, k) for c in row])


def test_only_tasks_of_every_temperature_are_used_and_the_rest_is_counted() -> None:
    runs = [_run(0.2, {"x": 1, "y": 2, "z": 3}), _run(0.8, {"y": 4, "w": 0})]
    (ladder,) = ladders_of(runs, [1], BOUND)
    assert ladder.tasks == ("y",)
    assert ladder.notes == ("3 results of tasks that not every temperature has left out",)
    runs = [_run(0.2, {"x": 1, "y": 2}), _run(0.8, {"y": 4})]
    (ladder,) = ladders_of(runs, [1], BOUND)
    assert ladder.notes == ("1 result of tasks that not every temperature has left out",)
    with pytest.raises(NotComparable, match="no task is in both runs"):
        ladders_of([_run(0.2, {"x": 1}), _run(0.8, {"y": 4})], [1], BOUND)


def test_k_beyond_the_attempts_is_not_answered_and_that_is_said() -> None:
    runs = [_run(0.2, {"x": 1, "y": 2}, [2, 8]), _run(0.8, {"x": 1, "y": 2}, [8, 8])]
    (ladder,) = ladders_of(runs, [1, 4, 8], BOUND)
    assert ladder.ks == (1,)
    assert ladder.notes == ("pass@4, 8 not answered: some task has 2 attempts",)
    (kept,) = ladders_of(runs, [1, 4, 8], BOUND, drop_short=True)
    assert (kept.ks, kept.tasks) == ((1, 4, 8), ("y",))
    assert kept.notes == ("1 task with fewer than 8 attempts left out",)
    (plain,) = ladders_of(runs, [], BOUND)
    assert plain.ks == (1, 2)


def test_missing_attempts_count_as_the_policy_says() -> None:
    runs = [_run(t, {"x": 1, "y": 1}, 2, missing=2) for t in (0.2, 0.8)]
    (filled,) = ladders_of(runs, [], BOUND)
    (dropped,) = ladders_of(runs, [], EXCLUDE)
    assert (filled.ks, dropped.ks) == ((1, 2, 4), (1, 2))
    assert filled.missing == dropped.missing == 8
    assert filled.values(Completion.AS_FAILED)[0, 0].tolist() == [0.25, 0.25]
    assert dropped.values(Completion.DROPPED)[0, 0].tolist() == [0.5, 0.5]


def test_what_cannot_be_lined_up_says_why() -> None:
    with pytest.raises(InvalidValue, match="no run records its temperature") as caught:
        ladders_of([_run(None, {"x": 1}), _run(None, {"x": 1}, agent="b")], [], BOUND)
    assert "columns={'temperature': 'COLUMN'}" in str(caught.value)
    twice = [_run(0.2, {"x": 1}), _run(0.2, {"x": 2})]
    with pytest.raises(InvalidValue, match=r"a has more than one run at temperature 0\.2"):
        ladders_of(twice, [], BOUND)
    other = [_run(0.2, {"x": 1}, suite="one"), _run(0.8, {"x": 1}, suite="two")]
    with pytest.raises(NotComparable, match="differ in more than temperature: suite") as differs:
        ladders_of(other, [], BOUND)
    assert tuple(differs.value.differences) == ("suite",)
    with pytest.raises(InvalidValue, match="no agent has enough attempts at every task for k = 9"):
        ladders_of([_run(0.2, {"x": 1})], [9], BOUND)
    with pytest.raises(InvalidValue, match="no task has 9 attempts at every temperature"):
        ladders_of([_run(0.2, {"x": 1})], [9], BOUND, drop_short=True)


def test_a_run_without_a_temperature_is_left_out_with_a_note() -> None:
    (ladder,) = ladders_of([_run(0.2, {"x": 1}), _run(None, {"x": 1})], [1], BOUND)
    assert ladder.temperatures == (0.2,)
    assert ladder.notes == ("left out, since no temperature is recorded: a at None",)


def test_different_numbers_of_attempts_are_no_difference() -> None:
    runs = [_run(0.2, {"x": 1}, 4, attempts=4), _run(0.8, {"x": 1}, 8, attempts=8)]
    (ladder,) = ladders_of(runs, [], BOUND)
    assert ladder.ks == (1, 2, 4)


def test_a_fit_does_not_depend_on_the_order_of_runs_tasks_or_ks() -> None:
    rng = np.random.default_rng(2)
    table = {
        t: dict(zip("vwxyz", rng.integers(0, 5, 5).tolist(), strict=True)) for t in (0.2, 0.5, 0.9)
    }
    one = fit_temperatures([_run(t, row) for t, row in table.items()], [1, 2, 4])
    back = fit_temperatures(
        [_run(t, dict(reversed(row.items()))) for t, row in reversed(table.items())], [4, 2, 1, 2]
    )
    for mine, other in zip(one.agents[0].cells, back.agents[0].cells, strict=True):
        assert (mine.k, mine.temperature) == (other.k, other.temperature)
        assert mine.estimate.value == pytest.approx(other.estimate.value)
        assert mine.estimate.low == pytest.approx(other.estimate.low)
    assert [best.tried for best in one.agents[0].best] == [
        best.tried for best in back.agents[0].best
    ]
    assert one.agents[0].find(2, 0.5) is not None
    assert one.agents[0].find(3, 0.5) is None
    assert one.find("a") is one.agents[0]
    assert one.find("b") is None
