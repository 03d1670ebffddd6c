"""The second reading of a sentence: what is false is not called right, on any kind of runs."""

from __future__ import annotations

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Support, review


def _run(name: str, passes: list[int], attempts: int = 4, missing: list[int] | None = None) -> Run:
    outcomes = Outcomes.from_counts(
        attempts, passes, missing=missing, tasks=list(map(str, range(len(passes))))
    )
    return Run(name, name, outcomes)


# Fir passes 60 of 80 attempts, Elm 36.
PAIR = [_run("Fir", [4, 3, 2, 3, 3] * 4), _run("Elm", [0, 1, 2, 2, 4] * 4)]


def _supports(text: str, runs: list[Run]) -> set[Support]:
    return {check.support for claim in review(text, runs).claims for check in claim.checks}


@pytest.mark.parametrize(
    "text",
    [
        "Elm leads Fir by 30 points (45% vs. 75%).",
        "Elm beats Fir by 30 points: 45% against 75%.",
        "Fir loses 30 points to Elm.",
        "In total, 64 of 160 attempts passed.",
        "Elm costs twice as much as Fir and is twice as reliable.",
        "Elm solves 16 of the 20 tasks in some attempts but not all, and 4 in every attempt.",
    ],
)
def test_a_false_sentence_is_not_supported(text: str) -> None:
    assert _supports(text, PAIR) != {Support.SUPPORTED}


@pytest.mark.parametrize(
    "text",
    [
        "Fir leads Elm by 30 points (75% vs. 45%).",
        "In total, 96 of 160 attempts passed.",
        "In total, 64 of 160 attempts failed.",
        "Elm solves 12 of the 20 tasks in some attempts but not all, and 4 in every attempt.",
        "Of the 20 tasks, Fir solves 4 in every attempt and 16 in some attempts but not all.",
    ],
)
def test_a_true_sentence_is_supported_though_tasks_are_called_by_numbers(text: str) -> None:
    assert _supports(text, PAIR) == {Support.SUPPORTED}


def test_a_number_is_never_taken_for_another_of_many_runs() -> None:
    runs = [_run(f"agent{place:02}x", [place % 5] * 10) for place in range(40)]
    assert _supports("agent38x passes 75% of attempts.", runs) == {Support.SUPPORTED}
    assert Support.SUPPORTED not in _supports("agent38x passes 100% of attempts.", runs)


def test_missing_attempts_leave_room() -> None:
    """Two tasks of four pass in some attempts, and in a third one an attempt is missing."""
    runs = [_run("Yew", [3, 2, 1, 4], missing=[0, 0, 1, 0], attempts=4)]
    for count in (2, 3, 4):
        text = f"Yew solves {count} of the 4 tasks in some attempts but not all."
        wrong = Support.CONTRADICTED in _supports(text, runs)
        assert wrong == (count == 4 or count == 2)


@pytest.mark.parametrize("attempts", [1, 2])
def test_one_task_and_one_attempt(attempts: int) -> None:
    (claim,) = review("Ash passes 100% of attempts.", [_run("Ash", [attempts], attempts)]).claims
    assert [check.support for check in claim.checks] == [Support.SUPPORTED]
