"""Sequences of attempts: filled in, closed up, and cut to the first k."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.outcomes import Completion, Order

ragged = st.lists(
    st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=6), min_size=1, max_size=8
)


def _order(rows: list[list[int]]) -> Order:
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    return Order(np.array([v for row in rows for v in row], np.int8), starts)


@given(ragged)
def test_completions_agree_with_lists(rows: list[list[int]]) -> None:
    order = _order(rows)
    for completion, expected in (
        (Completion.AS_FAILED, [[v == 1 for v in row] for row in rows]),
        (Completion.AS_PASSED, [[v != 0 for v in row] for row in rows]),
        (Completion.DROPPED, [[v == 1 for v in row if v != -1] for row in rows]),
    ):
        done = order.completed(completion)
        found = [
            done.passed[a:b].tolist()
            for a, b in zip(done.starts[:-1], done.starts[1:], strict=True)
        ]
        assert found == expected
        shortest = int(done.lengths.min())
        assert done.first(shortest).tolist() == [row[:shortest] for row in expected]


@given(ragged, st.data())
def test_take_keeps_each_task_whole(rows: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    taken = _order(rows).take(np.array(chosen))
    assert [list(map(int, taken.of(i))) for i in range(len(chosen))] == [rows[i] for i in chosen]


def test_absent_attempts_stand_in_the_gaps_of_the_numbers() -> None:
    order = Order(
        np.array([1, 0, 1, 1, 0, 1], np.int8), np.array([0, 2, 3, 6]), np.array([0, 2, 1, 4, 9, 11])
    )
    filled = order.filled(4)
    assert [filled.of(task) for task in range(3)] == [
        (1, -1, 0, -1),
        (-1, 1, -1, -1),
        (1, 0, 1, -1),  # numbers beyond the plan do not count its attempts
    ]
    assert order.take(np.array([1])).filled(2).of(0) == (-1, 1)
    assert (order.gaps_before(1), order.gaps_before(2), order.gaps_before()) == (2, 3, 3)
    whole = _order([[1, 0], [1]])
    assert whole.filled(3).of(1) == (1, -1, -1)
    assert whole.gaps_before() == 0
