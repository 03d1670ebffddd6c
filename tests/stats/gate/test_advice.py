"""What is advised where a rule is not settled, by the formula in words and by trying it."""

from __future__ import annotations

import math

import pytest

from passhat import Outcomes, gate
from passhat.stats.gate import LimitRule, parse_rule
from passhat.stats.gate.cases import Absent
from passhat.stats.gate.gate_result import Advice
from passhat.stats.gate.metric_rules import advise
from passhat.stats.terms import Population


def limit_rule(text: str) -> LimitRule:
    rule = parse_rule(text)
    assert isinstance(rule, LimitRule)
    return rule


FORTY = Outcomes.from_counts(4, [4, 2, 3, 1] * 10)
NEW, THESE = Population.NEW_TASKS, Population.THESE_TASKS


def _advise(
    rule: str,
    value: float,
    low: float,
    high: float,
    *,
    best: float | None = None,
    about: Population = NEW,
    outcomes: Outcomes = FORTY,
) -> Advice:
    return advise(limit_rule(rule), Absent(outcomes), value, best, (low, high), about)


@pytest.mark.parametrize(
    ("rule", "value", "low", "high", "more"),
    [
        # The lower bound must rise to the limit: (value - low) / (value - limit), squared.
        ("pass^1 >= 0.5", 0.6, 0.4, 0.7, 4.0),
        ("pass^1 >= 0.5", 0.6, 0.45, 0.7, 2.25),
        # Below the limit it is the upper bound that must fall.
        ("pass^1 >= 0.5", 0.4, 0.2, 0.6, 4.0),
        ("pass^1 <= 0.5", 0.4, 0.2, 0.6, 4.0),
        ("pass^1 <= 0.5", 0.6, 0.4, 0.8, 4.0),
    ],
)
def test_tasks_grow_with_the_square_of_the_reach(
    rule: str, value: float, low: float, high: float, more: float
) -> None:
    advice = _advise(rule, value, low, high)
    needed = math.ceil(round(40 * more, 9)) - 40
    assert (advice.kind, advice.tasks) == ("tasks", needed)
    assert advice.text.startswith(f"about {needed} more tasks x 4 attempts should settle it; ")


def test_attempts_are_advised_about_these_tasks_and_at_least_one_more() -> None:
    advice = _advise("pass^1 >= 0.5", 0.6, 0.4, 0.7, about=THESE)
    assert (advice.kind, advice.attempts) == ("attempts", 16)
    assert advice.text == "about 16 attempts per task should settle it (4 now)"
    lift = _advise("pass^1 >= base", 0.1, -0.1, 0.3, about=THESE)
    assert lift.text == "about 16 attempts per task in both runs should settle it (4 now)"
    nearly = _advise("pass^1 >= 0.5", 0.6, 0.4999, 0.7, about=THESE)
    assert nearly.attempts == 5


def test_one_more_task_is_singular() -> None:
    advice = _advise("pass^1 >= 0.5", 0.6, 0.4995, 0.7)
    assert (advice.tasks, advice.text.partition(" x ")[0]) == (1, "about 1 more task")


def test_missing_attempts_decide_where_both_fills_read_differently() -> None:
    lossy = Outcomes.from_counts(3, [3] * 10, missing=1)
    advice = _advise("pass^1 >= 0.9", 0.75, 0.5, 1.0, best=1.0, outcomes=lossy)
    assert advice.kind == "verdicts"
    assert advice.text == (
        "the 10 missing attempts decide: it reads 0.750 if they failed, 1.000 if they passed"
    )


def test_of_both_fills_the_one_nearer_to_the_limit_counts() -> None:
    """Both below the limit: that with the missing passed has less room."""
    advice = _advise("pass^1 >= 0.8", 0.4, 0.2, 0.9, best=0.6)
    assert advice.tasks == pytest.approx(40 * ((0.9 - 0.6) / (0.8 - 0.6)) ** 2 - 40, abs=1)
    above = _advise("pass^1 >= 0.2", 0.4, 0.1, 0.9, best=0.6)
    assert above.tasks == pytest.approx(40 * ((0.4 - 0.1) / (0.4 - 0.2)) ** 2 - 40, abs=1)


@pytest.mark.parametrize("value", [0.5, 0.5019, 0.4981])
def test_on_the_limit_no_number_is_promised(value: float) -> None:
    assert _advise("pass^1 >= 0.5", value, 0.3, 0.7).kind == "limit"
    assert _advise("pass^1 >= 0.5", value, 0.3, 0.7).tasks is None


def test_a_hundred_thousand_tasks_are_no_advice() -> None:
    advice = _advise("pass^1 >= 0.5", 0.504, 0.3, 0.7)
    assert advice.kind == "limit"
    assert "over 100,000 tasks" in advice.text


def test_a_run_that_was_not_finished_is_finished_first() -> None:
    absent = Absent(FORTY, attempts=1, tasks=0)
    rule = limit_rule("pass^1 >= 0.5")
    assert advise(rule, absent, 0.6, None, (0.4, 0.7)).text == (
        "finish the run first: 1 planned attempt is absent, and the bounds count them both ways"
    )
    more = Absent(FORTY, attempts=8, tasks=2)
    assert advise(rule, more, 0.6, None, (0.4, 0.7)).text.startswith(
        "finish the run first: 8 planned attempts and 2 tasks are absent"
    )


@pytest.mark.parametrize(
    ("passes", "says"),
    [
        # Tasks that always or never pass: nothing within tasks that attempts could lower.
        ([4, 0] * 20, "more attempts at the same tasks would not"),
        # Coins: everything is within tasks.
        ([2] * 40, "so should "),
    ],
)
def test_attempts_help_where_tasks_are_alike(passes: list[int], says: str) -> None:
    outcomes = Outcomes.from_counts(4, passes)
    advice = _advise("pass^1 >= 0.4", 0.5, 0.35, 0.65, outcomes=outcomes)
    assert says in advice.text


def test_planned_tasks_that_are_absent_count_with_all_their_attempts() -> None:
    ragged = Outcomes.from_counts([2, 5], [2, 5])
    result = gate(ragged, "pass^1 >= 0.1", tasks=4)
    assert result.absent == 10  # two tasks, each with as many attempts as the fullest one
    assert result.notes == ("2 tasks of the 4 planned are absent",)
    stated = gate(ragged, "pass^1 >= 0.1", tasks=3, attempts=6)
    assert stated.absent == 4 + 1 + 6
    assert stated.notes[1] == "1 task of the 3 planned is absent"
    assert gate(ragged, "pass^1 >= 0.1", tasks=2, attempts=2).absent == 0
