"""ICC and notes of a diagnosis, against analysis of variance with SciPy and counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway

from passhat import Outcomes
from passhat.stats.estimate.diagnostics import diagnose, icc1
from passhat.stats.outcomes import Attempts

tables = st.lists(st.lists(st.sampled_from([1, 0]), min_size=1, max_size=6), min_size=2, max_size=8)


@given(tables)
def test_icc_is_that_of_the_f_statistic(table: list[list[int]]) -> None:
    """ICC(1) = (F - 1) / (F + n0 - 1), with n0 the average size of unequal groups."""
    n = np.array([len(row) for row in table])
    c = np.array([sum(row) for row in table])
    found = icc1(n, c)
    attempts, tasks = n.sum(), len(n)
    if attempts <= tasks:
        assert found is None
        return
    within = sum(((np.array(row) - np.mean(row)) ** 2).sum() for row in table)
    if within == 0:
        assert found is None or found == pytest.approx(1.0)
        return
    f = float(f_oneway(*[np.array(row, float) for row in table]).statistic)
    n0 = (attempts - (n**2).sum() / attempts) / (tasks - 1)
    assert found == pytest.approx((f - 1) / (f + n0 - 1), abs=1e-9)


@given(tables)
def test_tasks_are_always_never_or_flaky(table: list[list[int]]) -> None:
    n = [len(row) for row in table]
    c = [sum(row) for row in table]
    found = diagnose(Outcomes.from_counts(n, c))
    assert found.always == sum(all(row) for row in table)
    assert found.never == sum(not any(row) for row in table)
    assert found.flaky == len(table) - found.always - found.never
    assert found.attempt_average == pytest.approx(sum(c) / sum(n))
    assert found.task_average == pytest.approx(np.mean([sum(row) / len(row) for row in table]))
    assert found.all_alike == (found.flaky == 0 and min(n) >= 2)
    gap = abs(found.attempt_average - found.task_average)
    told = any("averaging over attempts" in note for note in found.notes)
    assert told == (gap > 0.005)
    uneven = any("fewer scored attempts" in note for note in found.notes)
    assert uneven == (min(n) < max(n))


def test_attempts_that_ended_alike_are_counted_with_their_range() -> None:
    (note, *_) = diagnose(Outcomes.from_counts([2, 5], [2, 0])).notes
    assert note.startswith(
        "on every task the 2 to 5 attempts ended alike (1 always passed, 1 always failed)"
    )
    (note, *_) = diagnose(Outcomes.from_counts([3, 3], [3, 3])).notes
    assert note.startswith("on every task the 3 attempts ended alike (2 always passed, 0 always")


def _attempts(answers: list[list[int]], seconds: list[list[float]] | None = None) -> Attempts:
    starts = np.cumsum([0, *map(len, answers)])
    flat = np.array([answer for row in answers for answer in row], np.int64)
    measures = {}
    if seconds is not None:
        measures = {"seconds": np.array([value for row in seconds for value in row])}
    return Attempts(
        tuple(map(str, range(len(answers)))),
        starts,
        np.ones(len(flat), np.int8),
        measures=measures,
        answers=flat,
    )


def _notes(attempts: Attempts) -> list[str]:
    outcomes = Outcomes.from_counts(np.diff(attempts.starts), np.diff(attempts.starts))
    return [note for note in diagnose(outcomes, attempts).notes if "identical" in note]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([[7, 7], [8, 8]], "on all tasks with several answers all answers are identical"),
        ([[7, 7], [8, 9]], "on 1 of 2 tasks with several answers all answers are identical"),
        ([[7, 6], [8, 9]], None),
        ([[7], [8]], None),  # one answer has no other to be like
        ([[7, 0], [8, 9]], None),  # an answer that is not known
        ([[7, 7], [0, 0]], "on all tasks with several answers all answers are identical"),
    ],
)
def test_identical_answers_are_counted_where_all_are_known(
    answers: list[list[int]], says: str | None
) -> None:
    assert _notes(_attempts(answers)) == ([] if says is None else [says])


@pytest.mark.parametrize(
    ("seconds", "cached"),
    [
        ([[1.25, 1.25], [2.5, 3.5]], 1),
        ([[1.25, 1.25], [2.5, 2.5]], 2),
        ([[1.0, 1.0], [2.0, 2.0]], 0),  # whole seconds are equal by rounding
        ([[0.0, 0.0], [2.5, 3.5]], 0),
        ([[1.25, 1.26], [2.5, 3.5]], 0),
    ],
)
def test_a_cache_is_named_by_equal_fractions_of_seconds(
    seconds: list[list[float]], cached: int
) -> None:
    (note,) = _notes(_attempts([[7, 7], [8, 8]], seconds))
    if cached:
        assert note.endswith(
            f"; on {cached} of them the recorded seconds are identical, too: the answers look "
            "cached"
        )
    else:
        assert "cached" not in note


def test_short_tasks_are_those_below_their_own_plan() -> None:
    outcomes = Outcomes.from_counts([2, 4, 8], [1, 2, 3], ["a", "b", "c"])
    planned = diagnose(outcomes, planned=np.array([2, 6, 8])).notes
    (note,) = [note for note in planned if "than planned" in note]
    assert note == "1 task with fewer scored attempts than planned: b"
    assert not any("than the" in text for text in planned)
    (uneven,) = [note for note in diagnose(outcomes).notes if "fewer scored" in note]
    assert uneven == ("2 tasks with fewer scored attempts than the 8 of the rest, down to 2: a, b")


def test_flaky_tasks_come_with_the_tasks_share_of_the_variance() -> None:
    found = diagnose(Outcomes.from_counts(4, [2, 4, 0]))
    assert found.icc is not None
    assert found.notes[-1] == (
        "1 of 3 tasks passed sometimes and failed sometimes; the task's share of the variance, "
        f"ICC(1), is {found.icc:.3f}"
    )
