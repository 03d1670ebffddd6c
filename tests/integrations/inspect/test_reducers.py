"""Reducers and metrics for inspect's own reports."""

from __future__ import annotations

import math
from typing import Any

import pytest
from inspect_ai.scorer import SampleScore, Score, pass_at, pass_k, score_reducer

import passhat
from passhat.errors import InvalidValue
from passhat.integrations.inspect.reducers import (
    interval,
    pass_at_estimate,
    pass_hat,
    pass_hat_estimate,
)
from passhat.integrations.inspect.reducers import pass_at as our_pass_at
from passhat.stats.outcomes import Outcomes


def _scores(*values: Any) -> list[Score]:
    return [Score(value=value) for value in values]


@pytest.mark.parametrize("passed", range(7))
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_the_reducers_agree_with_inspects(passed: int, k: int) -> None:
    scores = _scores(*["C"] * passed, *["I"] * (6 - passed))
    assert pass_hat(k)(scores).as_float() == pytest.approx(pass_k(k)(scores).as_float(), abs=1e-12)
    theirs = pass_at(k)(scores).as_float()
    assert our_pass_at(k)(scores).as_float() == pytest.approx(theirs, abs=1e-12)


def test_too_few_scored_epochs_stay_unscored() -> None:
    assert math.isnan(pass_hat(3)(_scores("C", "C", float("nan"))).as_float())
    assert pass_hat(2)(_scores("C", "C", float("nan"))).as_float() == 1
    assert math.isnan(pass_hat(1)(_scores(float("nan"))).as_float())
    with pytest.raises(InvalidValue, match="at least 1"):
        pass_hat(0)


def test_scores_of_several_values_are_reduced_each() -> None:
    both = _scores({"a": 1, "b": 0}, {"a": 1, "b": 1})
    assert pass_hat(2)(both).value == {"a": 1.0, "b": 0.0}
    assert pass_hat(1)(_scores([1, 0], [1, 1])).value == [1.0, 0.5]
    assert pass_hat(1, value=0.5)(_scores("P", "I")).as_float() == 0.5


def test_they_are_found_by_name() -> None:
    from inspect_ai.scorer._reducer.registry import create_reducers, reducer_log_name

    (found,) = create_reducers("passhat/pass_hat_4")
    assert reducer_log_name(found) == "passhat/pass_hat_4"
    assert found(_scores("C", "C", "C", "C")).as_float() == 1
    assert score_reducer is not None


def _epochs(*counts: tuple[int, int]) -> list[SampleScore]:
    return [
        SampleScore(score=Score(value="C" if i < c else "I"), sample_id=sample)
        for sample, (n, c) in enumerate(counts)
        for i in range(n)
    ]


def test_the_estimate_is_passhats_own() -> None:
    counts = [(4, 4), (4, 3), (4, 0), (4, 2)]
    outcomes = Outcomes.from_counts(4, [4, 3, 0, 2])
    for metric, word in ((pass_hat_estimate(2), "pass^2"), (pass_at_estimate(2), "pass@2")):
        expected = passhat.estimate(outcomes, word)
        found: Any = metric(_epochs(*counts))  # type: ignore[arg-type]
        assert found == {
            word: expected.value,
            "low": expected.low,
            "high": expected.high,
            "samples": 4,
        }
    few: Any = pass_hat_estimate(3)(_epochs((4, 4), (2, 2)))  # type: ignore[arg-type]
    assert (few["pass^3"], few["samples"]) == (1.0, 1)
    none: Any = pass_hat_estimate(9)(_epochs((4, 4)))  # type: ignore[arg-type]
    assert math.isnan(none["pass^9"])


def test_the_interval_of_reduced_scores_is_that_of_the_estimate() -> None:
    values = [1.0, 0.5, 0.0, 1 / 6]  # pass^2 of 4, 3, 0 and 2 out of 4
    reduced = [SampleScore(score=Score(value=one), sample_id=i) for i, one in enumerate(values)]
    expected = passhat.estimate(Outcomes.from_counts(4, [4, 3, 0, 2]), "pass^2")
    found: Any = interval()(reduced)  # type: ignore[arg-type]
    assert (found["low"], found["high"]) == (expected.low, expected.high)
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        interval()([SampleScore(score=Score(value=3.0), sample_id=1)])  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="level"):
        interval(level=95)
