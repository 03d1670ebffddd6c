"""Claims parsed from a text: what is a share, of which metric, over how many tasks."""

from __future__ import annotations

import pytest

from passhat.reporting.review.claim_text import Passage, passages


def _passage(text: str) -> Passage:
    return Passage(text, 1, text)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("solves 62.5% of tasks", [0.625]),
        ("solves 62.5 per cent of tasks", [0.625]),
        ("pass@1 is 0.62", [0.62]),
        ("pass@1 is .62 and pass^4 is 1.0", [0.62, 1.0]),
        ("passes 3 of 4 tasks", [0.75]),
        ("passes 1,200 out of the 1,600 problems", [0.75]),
        ("scored 3/4 tasks", [0.75]),
        ("solves 60 to 65% of tasks", [0.60, 0.65]),
        ("solves 0% of tasks", [0.0]),
        ("solves 100% of tasks", [1.0]),
        # Not shares of tasks:
        ("62% (95% confidence interval)", [0.62]),
        ("pass@1 at temperature 0.7", []),
        ("pass@1 62% [55%, 70%]", [0.62]),
        ("solves tasks 30% faster", []),
        ("pass@1 rose by +3.2%", []),
        ("passes with Python 3.11", []),
        ("solved 5 of 4 tasks", []),  # no share
        ("passes 0 of 0 tasks", []),
        ("page 3 of 4", []),
    ],
)
def test_shares(text: str, shares: list[float]) -> None:
    assert [value.share for value in _passage(text).values] == pytest.approx(shares)


@pytest.mark.parametrize(
    ("text", "step"),
    [("62% of tasks", 0.01), ("62.5% of tasks", 0.001), ("0.62 pass@1", 0.01), ("1.000", 0.001)],
)
def test_the_step_is_that_of_the_last_digit(text: str, step: float) -> None:
    assert [value.step for value in _passage(text).values] == [pytest.approx(step)]


def test_metrics_and_their_numbers() -> None:
    passage = _passage("Pass@1 is 62%, pass ^ 4 is 30%, and pass@k grows.")
    assert [(mention.family, mention.k) for mention in passage.metrics] == [
        ("pass@", 1),
        ("pass^", 4),
        ("pass@", None),
    ]
    owners = [passage.metric_of(value) for value in passage.values]
    assert [owner.word for owner in owners if owner] == ["pass@1", "pass^4"]
    assert [mention.word for mention in passage.claimed_metrics] == ["pass@1", "pass^4"]
    assert _passage("62% for pass@2").metric_of(_passage("62% for pass@2").values[0]) is not None
    assert _passage("compass@1 and bypass^2").metrics == ()


@pytest.mark.parametrize(
    ("text", "tasks", "attempts"),
    [
        ("62% of 50 tasks", 50, None),
        ("62% on 1,000 held-out problems, 8 attempts each", 1000, 8),
        ("n = 16 samples of 164 coding problems", 164, 16),
        ("T=0, 4 attempts at 20 tasks", 20, 4),
        ("passes 3 of 5", 5, None),
        ("passes 3 of 5 attempts", None, 5),
        ("solves 62% of tasks", None, None),
    ],
)
def test_sizes(text: str, tasks: int | None, attempts: int | None) -> None:
    passage = _passage(text)
    assert (passage.tasks, passage.attempts) == (tasks, attempts)


@pytest.mark.parametrize(
    ("text", "compares", "equates"),
    [
        ("A beats B on pass@1", True, False),
        ("A is no worse than B", True, True),
        ("A and B are equally capable", False, True),
        ("A may beat B", False, False),
        ("A is better, but the result is inconclusive", False, False),
        ("Null hypothesis: A is better than B", False, False),
        ("we report the best run", False, False),
        ("A solves tasks", False, False),
    ],
)
def test_comparisons(text: str, compares: bool, equates: bool) -> None:
    passage = _passage(text)
    assert (passage.compares, passage.equates) == (compares, equates)


def test_intervals() -> None:
    assert _passage("62% ± 3").has_interval
    assert _passage("62% [55%, 70%]").has_interval
    assert not _passage("62% of tasks").has_interval
    assert _passage("the lift is −1.5 to 4.0 points").lift_interval == (-1.5, 4.0)
    assert _passage("the lift is 4 points").lift_interval is None


def test_code_and_markup_claim_nothing() -> None:
    text = (
        "# pass@1 of 90%\n\n| pass@1 | 90% |\n\n```\npass@1 = 90%\n```\n\n"
        "<p>pass@1 of 90%</p>\n\nThe agent solves\n**62%** of tasks.\n\n"
        "- pass@1 is 40%\n2. pass^2 is 20%\n\nNothing to see.\n"
    )
    found = passages(text)
    assert [(passage.line, [value.share for value in passage.values]) for passage in found] == [
        (1, [0.9]),
        (11, [0.62]),
        (14, [0.4]),
        (15, [0.2]),
    ]
    assert found[1].text == "The agent solves 62% of tasks."
    assert passages("") == []
