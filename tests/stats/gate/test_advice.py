"""What is advised where a rule is not settled."""

from __future__ import annotations

import pytest

from passhat import Outcomes, gate
from passhat.stats.gate import LimitRule, parse_rule
from passhat.stats.gate.cases import Absent
from passhat.stats.gate.gate_result import Advice
from passhat.stats.gate.metric_rules import Sides, advise
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
) -> Advice | None:
    sides = Sides((outcomes,))
    return advise(
        limit_rule(rule),
        Absent(outcomes),
        sides,
        (value, value if best is None else best),
        (low, high),
        about,
    )


@pytest.mark.parametrize(
    ("rule", "value", "low", "high"),
    [
        ("pass^1 >= 0.5", 0.625, 0.49, 0.74),
        ("pass^1 >= 0.7", 0.625, 0.5, 0.72),
        ("pass^1 <= 0.5", 0.625, 0.49, 0.74),
    ],
)
@pytest.mark.parametrize("about", [NEW, THESE])
def test_more_tasks_or_attempts_are_advised_with_their_chance(
    rule: str, value: float, low: float, high: float, about: Population
) -> None:
    advice = _advise(rule, value, low, high, about=about)
    assert advice is not None
    assert advice.prospect is not None
    kind, now = ("tasks", 40) if about is NEW else ("attempts", 4)
    assert (advice.kind, advice.prospect.kind, advice.prospect.now) == (kind, kind, now)
    assert advice.text.endswith(f"it is settled in {advice.prospect.cases}")


def test_a_wider_reach_takes_more() -> None:
    near = _advise("pass^1 >= 0.5", 0.625, 0.49, 0.74)
    wide = _advise("pass^1 >= 0.5", 0.625, 0.4, 0.82)
    assert near is not None
    assert near.prospect is not None
    assert wide is not None
    assert wide.prospect is not None
    assert wide.prospect.total > near.prospect.total


def test_a_lift_is_advised_in_both_runs() -> None:
    base = Outcomes.from_counts(4, [2, 1, 2, 1] * 10)
    rule = limit_rule("pass^1 >= base")
    sides = Sides((base, FORTY))
    advice = advise(rule, Absent(FORTY), sides, (0.25, 0.25), (-0.02, 0.4), THESE)
    assert advice is not None
    assert "attempts per task in both runs (4 now)" in advice.text


def test_one_task_is_no_reason_to_advise_more_of_them() -> None:
    one = Outcomes.from_counts(8, [6])
    assert gate(one, "pass^1 >= 0.5", about="new tasks").results[0].advice is None
    assert "attempts per task" in str(gate(one, "pass^1 >= 0.5").results[0].advice)


def test_missing_attempts_decide_where_both_fills_read_differently() -> None:
    lossy = Outcomes.from_counts(3, [3] * 10, missing=1)
    advice = _advise("pass^1 >= 0.9", 0.75, 0.5, 1.0, best=1.0, outcomes=lossy)
    assert advice is not None
    assert advice.kind == "verdicts"
    assert advice.text == (
        "the 10 missing attempts decide: it reads between 0.750 and 1.000 as they come out"
    )


@pytest.mark.parametrize("value", [0.5, 0.5019, 0.4981])
def test_on_the_limit_no_number_is_promised(value: float) -> None:
    advice = _advise("pass^1 >= 0.5", value, 0.3, 0.7)
    assert advice is not None
    assert (advice.kind, advice.prospect) == ("limit", None)


def test_a_value_so_near_that_nothing_affordable_settles_it_has_no_advice() -> None:
    assert _advise("pass^1 >= 0.62", 0.625, 0.3, 0.7) is None


def test_a_run_that_was_not_finished_is_finished_first() -> None:
    absent = Absent(FORTY, attempts=1, tasks=0)
    rule = limit_rule("pass^1 >= 0.5")
    sides = Sides((FORTY,))
    assert str(advise(rule, absent, sides, (0.6, 0.6), (0.4, 0.7))) == (
        "finish the run first: 1 planned attempt is absent, and the bounds count them both ways"
    )
    more = Absent(FORTY, attempts=8, tasks=2)
    assert str(advise(rule, more, sides, (0.6, 0.6), (0.4, 0.7))).startswith(
        "finish the run first: 8 planned attempts and 2 tasks are absent"
    )


def test_planned_tasks_that_are_absent_count_with_all_their_attempts() -> None:
    ragged = Outcomes.from_counts([2, 5], [2, 5])
    result = gate(ragged, "pass^1 >= 0.1", tasks=4)
    assert result.absent == 10  # two tasks, each with as many attempts as the fullest one
    assert result.notes == ("2 tasks of the 4 planned are absent",)
    stated = gate(ragged, "pass^1 >= 0.1", tasks=3, attempts=6)
    assert stated.absent == 4 + 1 + 6
    assert stated.notes[1] == "1 task of the 3 planned is absent"
    assert gate(ragged, "pass^1 >= 0.1", tasks=2, attempts=2).absent == 0
