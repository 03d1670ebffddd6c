"""Attempts in columns, and runs: every attempt can be looked at, every count adds up."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from passhat import Outcomes, Run
from passhat.stats.outcomes import Attempts, Verdict
from passhat.stats.outcomes.attempts import (
    Aggregates,
    Attempt,
    Categorical,
    MeasureColumns,
    MeasureSum,
)
from passhat.stats.outcomes.run import Loss, Tally

WORDS = ("", "timeout: max_steps", "rate_limit", "AssertionError", "odd")


def _attempts() -> Attempts:
    return Attempts(
        ("a", "b"),
        np.array([0, 3, 5]),
        np.array([1, 0, -1, 0, 0], np.int8),
        Categorical(WORDS, np.array([0, 1, 2, 3, 4])),
        MappingProxyType({"seconds": np.array([1.5, 2.5, np.nan, 4.0, 8.0])}),
        None,
        MappingProxyType({"seed": Categorical(("", "7"), np.array([1, 0, 1, 1, 1]))}),
    )


def test_attempts_come_back_one_by_one() -> None:
    listed = list(_attempts())
    assert [attempt.id for attempt in listed] == ["a#1", "a#2", "a#3", "b#1", "b#2"]
    assert [str(attempt.verdict) for attempt in listed] == [
        *("passed", "failed", "missing", "failed", "failed"),
    ]
    assert [attempt.why for attempt in listed] == [
        *(None, "timeout", "rate_limit", "wrong_answer", "unknown_failure"),
    ]
    assert [attempt.detail for attempt in listed] == [
        *(None, "max_steps", "rate_limit", "AssertionError", "odd"),
    ]
    assert dict(listed[0].measures) == {"seconds": 1.5}
    assert dict(listed[2].measures) == {}  # not recorded is not zero
    assert dict(listed[0].extras) == {"seed": "7"}
    assert dict(listed[1].extras) == {}
    assert str(listed[1]) == "a#2 failed (timeout)"


def test_an_attempt_as_data() -> None:
    failed = Attempt("t", 2, Verdict.FAILED, "timeout", "slow", MappingProxyType({"steps": 3.0}))
    assert failed.to_dict() == {
        "task": "t",
        "attempt": 2,
        "passed": False,
        "category": "timeout",
        "reason": None,
        "detail": "slow",
        "seconds": None,
        "steps": 3.0,
        "score": None,
        "tokens": None,
        "cost": None,
    }
    missing = Attempt("t", 1, Verdict.MISSING, "budget").to_dict()
    assert (missing["passed"], missing["category"], missing["reason"]) == (None, None, "budget")


def test_reasons_are_counted_by_verdict() -> None:
    attempts = _attempts()
    assert attempts.reasons(Verdict.FAILED) == {
        "timeout": 1,
        "unknown_failure": 1,
        "wrong_answer": 1,
    }
    assert attempts.reasons(Verdict.MISSING) == {"rate_limit": 1}
    bare = Attempts(("a",), np.array([0, 2]), np.array([0, -1], np.int8))
    assert bare.reasons(Verdict.FAILED) == {"unknown_failure": 1}
    assert bare.reasons(Verdict.MISSING) == {"not_recorded": 1}


def test_aggregates_count_words_of_the_vocabulary_together() -> None:
    sums = Aggregates({Verdict.FAILED: {"timeout": 2, "timed out": 3, "x": 1}}, {})
    assert sums.by_reason(Verdict.FAILED) == {"timeout": 5, "unknown_failure": 1}
    assert sums.by_reason(Verdict.MISSING) == {}


def test_a_measure_is_summed_over_what_was_recorded() -> None:
    attempts = _attempts()
    run = Run("r", "a", Outcomes.from_counts([2, 2], [1, 0], missing=[1, 0]), attempts=attempts)
    assert run.measured("seconds") == MeasureSum(4, 16.0, 1)
    assert run.measured("cost") is None
    assert run.missing_by_reason == {"rate_limit": 1}
    assert sum(run.failures_by_category.values()) == 3
    counted = Run("r", "a", Outcomes.from_counts([2, 2], [1, 0], missing=[1, 0]))
    assert counted.measured("seconds") is None
    assert counted.missing_by_reason == {"not_recorded": 1}
    assert counted.failures_by_category == {}
    columns = MeasureColumns(
        np.array([0, 2]), np.array([1, 0], np.int8), {"cost": np.array([np.nan, np.nan])}
    )
    summed = Run(
        "r",
        "a",
        Outcomes.from_counts(2, [1]),
        aggregates=Aggregates({}, {"steps": MeasureSum(2, 9.0, 1)}),
    )
    assert summed.measured("steps") == MeasureSum(2, 9.0, 1)
    nothing = Run(
        "r", "a", Outcomes.from_counts(2, [1]), aggregates=Aggregates({}, {}, columns=columns)
    )
    assert nothing.measured("cost") is None


def test_a_run_shows_itself_and_its_losses() -> None:
    tally = Tally(
        10, 6, {"a copy": 3}, (Loss("line 4", "no task", 1), Loss("", "ends early", 0)), absent=2
    )
    assert tally.rows == tally.attempts + sum(tally.skipped.values()) + tally.lost
    assert tally.sentences() == (
        "10 rows, 6 attempts read",
        "3 rows skipped: a copy",
        "2 planned attempts without a row: missing",
        "LOST 1 row: line 4: no task; ends early",
    )
    run = Run("bot", "bot", Outcomes.from_counts(3, [1, 2]), tally=tally)
    assert run.losses == tally.losses
    assert repr(run) == "<Run bot: 2 tasks x 3 attempts, 3 passed>"
    data = run.to_dict()
    assert data["name"] == "bot"
    assert "<table>" in run._repr_html_()
    assert Run("x", "x", Outcomes.from_counts(1, [1])).losses == ()


@pytest.mark.parametrize(
    ("n", "missing", "text"),
    [
        ([4, 4], None, "2 tasks x 4 attempts"),
        ([1], None, "1 task x 1 attempt,"),
        ([2, 8], None, "2 tasks x 2 to 8 attempts"),
        ([2, 3], [2, 1], "2 tasks x 4 attempts, 1 passed, 3 missing"),
    ],
)
def test_outcomes_say_their_shape(n: list[int], missing: list[int] | None, text: str) -> None:
    outcomes = Outcomes.from_counts(n, [1] + [0] * (len(n) - 1), missing=missing)
    assert text in repr(outcomes)
    assert outcomes.attempts == outcomes.scored + outcomes.total_missing


def test_reasons_come_from_attempts_or_aggregates_or_the_counts() -> None:
    outcomes = Outcomes.from_counts([1, 1], [0, 0], missing=[2, 1])
    aggregates = Aggregates(
        {Verdict.FAILED: {"timeout": 2}, Verdict.MISSING: {"rate_limit": 3}}, {}
    )
    counted = Run("r", "r", outcomes)
    assert counted.missing_by_reason == {"not_recorded": 3}
    assert counted.failures_by_category == {}
    assert Run("r", "r", Outcomes.from_counts(2, [1])).missing_by_reason == {}
    summed = Run("r", "r", outcomes, aggregates=aggregates)
    assert list(summed.missing_by_reason.values()) == [3]
    assert summed.failures_by_category == {"timeout": 2}
    attempts = _attempts()
    both = Run("r", "r", outcomes, attempts=attempts, aggregates=aggregates)
    assert both.failures_by_category == attempts.reasons(Verdict.FAILED)
    assert both.missing_by_reason == attempts.reasons(Verdict.MISSING)


def test_outcomes_have_binary_scores_only_where_they_are_stated() -> None:
    assert Outcomes.from_counts(2, [1]).binary_scores is False
    assert Outcomes.from_matrix([[1, 0]]).binary_scores is False
