"""What attempts take, against sums and quantiles in plain Python."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from passhat.reporting.measures import measures_of
from passhat.stats.outcomes import Attempts, MeasureColumns, Run
from passhat.stats.outcomes.table import Outcomes

rows = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from([1, 0, -1]),
            st.sampled_from([0.5, 1.0, 2.25, 10.0, math.nan]),
            st.sampled_from([3.0, 7.0, math.nan]),
        ),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)
Table = list[list[tuple[int, float, float]]]


def _attempts(table: Table) -> Attempts:
    flat = [attempt for row in table for attempt in row]
    return Attempts(
        tuple(f"t{place}" for place in range(len(table))),
        np.cumsum([0, *map(len, table)]),
        np.array([verdict for verdict, _, _ in flat], np.int8),
        measures={
            "steps": np.array([steps for _, _, steps in flat]),
            "cost": np.array([cost for _, cost, _ in flat]),
        },
    )


@given(rows, st.sampled_from([0.8, 0.95]))
def test_sums_ratios_and_quantiles_by_hand(table: Table, level: float) -> None:
    found = {measure.name: measure for measure in measures_of(_attempts(table), level)}
    for name, place in (("cost", 1), ("steps", 2)):
        known = [a for row in table for a in row if not math.isnan(a[place])]
        if not known:
            assert name not in found
            continue
        made = found[name]
        solved = [a for a in known if a[0] == 1]
        total = sum(a[place] for a in known)
        assert (made.attempts, made.passed) == (len(known), len(solved))
        assert made.mean == pytest.approx(fmean(a[place] for a in known))
        if solved:
            assert made.per_solved == pytest.approx(total / len(solved))
        else:
            assert made.per_solved is None
        # Missing attempts cost money, too, and are neither passed nor failed.
        shown = {part.verdict: part for part in made.spread}
        for word, verdict in (("passed", 1), ("failed", 0)):
            own = sorted(a[place] for a in known if a[0] == verdict)
            assert (word in shown) is bool(own)
            if own:
                part = shown[word]
                assert part.attempts == len(own)
                assert own[0] <= part.p5 <= part.p25 <= part.median <= part.p75 <= part.p95
                assert part.p95 <= own[-1]
                middle = (own[(len(own) - 1) // 2] + own[len(own) // 2]) / 2
                assert part.median == pytest.approx(middle)
    assert [*found] == [name for name in ("cost", "steps") if name in found]


@given(rows)
def test_the_interval_of_a_ratio_by_the_delta_method(table: Table) -> None:
    cost = next((m for m in measures_of(_attempts(table), 0.9) if m.name == "cost"), None)
    if cost is None:
        return
    used = [sum(c for _, c, _ in row if not math.isnan(c)) for row in table]
    solved = [sum(v == 1 and not math.isnan(c) for v, c, _ in row) for row in table]
    size = len(table)
    if size < 2 or sum(solved) == 0:
        assert (cost.low, cost.high) == (None, None)
        return
    ratio = sum(used) / sum(solved)
    squares = sum((u - ratio * s) ** 2 for u, s in zip(used, solved, strict=True))
    error = math.sqrt(squares / (size * (size - 1))) / (sum(solved) / size)
    reach = float(t.ppf(0.95, size - 1)) * error / ratio
    assert cost.low == pytest.approx(ratio * math.exp(-reach), rel=1e-9)
    assert cost.high == pytest.approx(ratio * math.exp(reach), rel=1e-9)


@given(rows)
def test_columns_counted_in_a_store_read_like_attempts(table: Table) -> None:
    attempts = _attempts(table)
    columns = MeasureColumns(attempts.starts, attempts.verdicts, attempts.measures)
    assert measures_of(columns, 0.95) == measures_of(attempts, 0.95)


def test_one_success_in_one_attempt_is_singular() -> None:
    (cost,) = measures_of(_attempts([[(1, 2.0, math.nan)]]), 0.95)
    assert cost.counts_text() == "1 success in 1 attempt"
    (two, *_) = measures_of(_attempts([[(1, 2.0, 1.0), (1, 2.0, 1.0), (0, 1.0, 1.0)]]), 0.95)
    assert two.counts_text() == "2 successes in 3 attempts"


@given(rows)
def test_a_run_sums_what_its_attempts_recorded(table: Table) -> None:
    attempts = _attempts(table)
    matrix = [[v for v, _, _ in row] for row in table]
    outcomes = Outcomes.from_counts(
        [sum(v != -1 for v in row) for row in matrix],
        [sum(v == 1 for v in row) for row in matrix],
        missing=[row.count(-1) for row in matrix],
    )
    run = Run("r", "r", outcomes, attempts=attempts)
    known = [a for row in table for a in row if not math.isnan(a[1])]
    summed = run.measured("cost")
    if not known:
        assert summed is None
    else:
        assert summed is not None
        assert summed.recorded == len(known)
        assert summed.total == pytest.approx(sum(a[1] for a in known))
        assert summed.passed == sum(a[0] == 1 for a in known)
    assert run.measured("tokens") is None


def _cost(tasks: list[list[tuple[int, float | None]]]) -> MeasureColumns:
    cells = [cell for task in tasks for cell in task]
    starts = np.cumsum([0, *map(len, tasks)])
    costs = [np.nan if cost is None else cost for _, cost in cells]
    return MeasureColumns(
        starts, np.array([v for v, _ in cells], np.int8), {"cost": np.array(costs)}
    )


def test_an_interval_of_a_ratio_by_hand() -> None:
    """Used 3, 5 and 4 for 1, 1 and 2 successes: 12 / 4 = 3 each; residuals 0, 2 and -2."""
    columns = _cost([[(1, 1.0), (0, 2.0)], [(1, 5.0)], [(1, 2.0), (1, 2.0)]])
    (measure,) = measures_of(columns, 0.95)
    error = (8 / 6) ** 0.5 / (4 / 3)
    reach = np.exp(4.302652729911275 * error / 3)  # Student's t with 2 degrees of freedom
    assert measure.per_solved == 3
    assert measure.low == pytest.approx(3 / reach)
    assert measure.high == pytest.approx(3 * reach)
    assert (measure.attempts, measure.passed, measure.mean) == (5, 4, 12 / 5)


def test_no_interval_where_there_is_none() -> None:
    nothing_solved = _cost([[(0, 1.0)], [(0, 2.0)]])
    (measure,) = measures_of(nothing_solved, 0.95)
    assert (measure.per_solved, measure.low, measure.high) == (None, None, None)
    (single,) = measures_of(_cost([[(1, 1.0), (0, 1.0)]]), 0.95)
    assert (single.per_solved, single.low, single.high) == (2, None, None)
    (free,) = measures_of(_cost([[(1, 0.0)], [(1, 0.0)]]), 0.95)
    assert (free.per_solved, free.low) == (0, None)
    (credit,) = measures_of(_cost([[(1, -1.0)], [(1, 0.5)]]), 0.95)
    assert (credit.per_solved, credit.low) == (-0.25, None)
    assert measures_of(_cost([[(1, None)], [(0, None)]]), 0.95) == ()
    assert measures_of(None, 0.95) == ()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999, 0.99999])
def test_an_interval_is_finite_at_every_level(level: float) -> None:
    """All is used at one of two tasks and solved at the other."""
    (measure,) = measures_of(_cost([[(1, 0.001)] * 2, [(0, 1000.0)] * 2]), level)
    ends = (measure.low, measure.high)
    assert ends == (None, None) or all(end is not None and 0 < end < np.inf for end in ends)
    assert (ends == (None, None)) == (level > 0.99)


def test_attempts_without_a_record_are_not_free() -> None:
    some = measures_of(_cost([[(1, 2.0), (1, None)], [(0, 4.0), (-1, None)]]), 0.95)[0]
    without = measures_of(_cost([[(1, 2.0)], [(0, 4.0)]]), 0.95)[0]
    assert (some.attempts, some.passed, some.mean, some.per_solved) == (2, 1, 3.0, 6.0)
    assert (some.low, some.high) == (without.low, without.high)
