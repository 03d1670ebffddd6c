"""What a run will need, as ranges that hold what comes."""

from __future__ import annotations

import random

import pytest

from passhat.runner.preview import Range, Spread, preview_run, sum_of, time_left


def spread(*values: float | None) -> Spread:
    found = Spread()
    for value in values:
        found.add(value)
    return found


def test_what_is_not_recorded_is_not_zero() -> None:
    assert spread(2.0, None, 4.0).mean == 3.0
    assert sum_of(5, spread(None)) is None
    assert time_left(5, 2, spread()) is None


def test_little_seen_makes_a_wide_range_and_much_a_narrow_one() -> None:
    few, many = sum_of(100, spread(1.0, 1.0)), sum_of(100, spread(*[0.9, 1.1] * 200))
    assert few is not None
    assert many is not None
    assert few.low < many.low <= 100 <= many.high < few.high


def test_nothing_left_takes_no_time() -> None:
    assert time_left(0, 4, spread(1.0, 2.0)) == Range(0.0, 0.0)


def test_the_range_holds_most_runs_that_are_simulated() -> None:
    luck = random.Random(4)
    held = 0
    for _ in range(200):
        seen = spread(*(luck.expovariate(1.0) for _ in range(20)))
        lanes = [0.0] * 8
        for _ in range(100):  # the next free lane takes the next attempt
            lanes.sort()
            lanes[0] += luck.expovariate(1.0)
        found = time_left(100, 8, seen)
        assert found is not None
        held += found.low <= max(lanes) <= found.high
    assert held >= 180


def test_a_slow_pace_widens_the_range() -> None:
    seen = spread(*[1.0] * 20)
    calm, slow = time_left(20, 4, seen, 5.0), time_left(20, 4, seen, 100.0)
    assert calm is not None
    assert slow is not None
    assert slow.high > calm.high >= 5.0
    assert slow.low == calm.low


def test_before_a_run_a_pilot_decides_where_there_is_one() -> None:
    needs = preview_run(40, 4, 30, [(2.0, 5.0, 0.01)] * 20)
    assert needs.pilot == 20
    assert needs.seconds is not None
    assert needs.seconds.low <= 20.0 <= needs.seconds.high
    assert 100.0 < needs.calls.low < 200.0 < needs.calls.high < 400.0
    assert needs.cost is not None
    assert 0.2 < needs.cost.low < 0.4 < needs.cost.high < 0.8


def test_without_a_pilot_limits_and_prices_are_all_there_is() -> None:
    needs = preview_run(40, 4, 30, price_per_call=Range(0.001, 0.01))
    assert (needs.pilot, needs.seconds) == (0, None)
    assert needs.calls == Range(40.0, 1200.0)
    assert needs.cost == Range(0.04, 12.0)
    assert preview_run(40, 4, 30).cost is None


def test_one_costly_attempt_among_very_many_is_a_range_of_numbers() -> None:
    seen = Spread(count=200_000, total=5.0, squares=25.0)
    found = sum_of(1, seen)
    assert found is not None
    assert 0 < found.low < 5.0 / 200_000 < found.high < float("inf")


def test_a_cost_that_was_seen_is_preferred_to_the_price_table() -> None:
    seen = preview_run(40, 4, 30, [(2.0, 5.0, 0.01)] * 20, Range(5.0, 9.0))
    assert seen == preview_run(40, 4, 30, [(2.0, 5.0, 0.01)] * 20)


@pytest.mark.parametrize(
    ("left", "jobs", "values", "elapsed", "expected"),
    [
        (4, 1, [2.0], 0.0, (8 / 9.356, 8 * 9.356)),
        (4, 2, [2.0], 0.0, (4 / 9.356, 4 * 9.356 + 2 + 2 * 2)),
        (4, 9, [2.0], 0.0, (2 / 9.356, 2 * 9.356 + 2 + 2 * 2)),
        (4, 1, [2.0], 99.0, (8 / 9.356, 99 * 4)),
        (4, 1, [2.0], 0.1, (0.4, 8 * 9.356)),
        (1, 4, [2.0, 4.0, 6.0], 0.0, (4 / 6.207, 4 * 6.207)),
        (8, 4, [2.0, 4.0, 6.0], 6.0, (8 / 2.916, 8 * 2.916 + 4 + 2 * 3.162)),
        (8, 1, [2.0, 4.0, 6.0], 300.0, (32 / 2.916, 100 * 8)),
        (4, 1, [], 0.0, None),
        (0, 1, [2.0], 9.0, (0.0, 0.0)),
        (3, 1, [0.0], 0.0, (0.0, 0.0)),
    ],
)
def test_ranges_by_hand(
    left: int,
    jobs: int,
    values: list[float],
    elapsed: float,
    expected: tuple[float, float] | None,
) -> None:
    """A factor both ways: exp(2 * deviation / mean * sqrt(1 / left + 1 / seen)).

    Of one attempt of 2 s the deviation is taken for 2 s, of 2, 4 and 6 s for 3.162 s.
    """
    seen = Spread()
    for value in (*values, None):
        seen.add(value)
    found = time_left(left, jobs, seen, elapsed)
    pair = None if found is None else (found.low, found.high)
    assert pair == (None if expected is None else pytest.approx(expected, rel=2e-3))
