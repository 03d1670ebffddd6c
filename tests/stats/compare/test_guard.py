"""What is refused before anything is computed."""

from __future__ import annotations

import pytest

from passhat import Outcomes, Protocol, Run, compare
from passhat.errors import NotComparable
from passhat.stats.compare.guard import same_metric
from passhat.stats.estimate import metric

COUNTS = Outcomes.from_counts(4, [1, 2, 3])


def _run(name: str, protocol: Protocol, outcomes: Outcomes = COUNTS) -> Run:
    return Run(name, name, outcomes, protocol)


def test_every_known_difference_is_named_and_refused() -> None:
    a = _run("old", Protocol(suite="s1", judge="j1", max_steps=10, decoding={"temperature": 0}))
    b = _run("new", Protocol(suite="s2", judge="j2", max_steps=20, decoding={"temperature": 1}))
    with pytest.raises(NotComparable) as caught:
        compare(a, b)
    for text in ("old and new", "suite: s1 against s2", "judge: j1 against j2", "max_steps"):
        assert text in caught.value.message
    assert caught.value.differences == ("suite", "decoding.temperature", "max_steps", "judge")
    assert "allow=True" in (caught.value.hint or "")


def test_allowed_differences_stand_beside_the_result() -> None:
    a, b = _run("old", Protocol(suite="s1")), _run("new", Protocol(suite="s2"))
    found = compare(a, b, allow=True)
    assert [str(entry) for entry in found.agreement.differences] == ["suite: s1 against s2"]
    assert "which differ in suite" in found.results[0].sentence
    assert "The protocols differ: suite: s1 against s2." in str(found)


def test_unknown_fields_are_listed_and_not_refused() -> None:
    found = compare(_run("a", Protocol(judge="j")), _run("b", Protocol()))
    fields = [entry.field for entry in found.agreement.unverified]
    assert "judge" in fields
    assert "decoding.temperature" in fields
    assert found.agreement.differences == ()


def test_unequal_attempts_are_no_unfairness_to_metrics_of_counts() -> None:
    other = Outcomes.from_counts([3, 5, 9], [1, 2, 3])
    for word in ("pass^1", "pass@2", "pass^2", "rate", "gpass@2:0.5"):
        result = compare(COUNTS, other, word)
        text = result.agreement.attempts_text or ""
        assert text.startswith("attempts per task differ (4 against 3 to 9)")
        assert result.agreement.differences == ()
        assert result.results[0].p_value is None
    recorded = (_run("a", Protocol(attempts=4)), _run("b", Protocol(allocation="by task"), other))
    assert compare(*recorded).agreement.attempts is not None


def test_unequal_attempts_are_refused_for_ordered_metrics() -> None:
    a = Outcomes.from_matrix([[1, 0, 1], [0, 1, 1]])
    b = Outcomes.from_matrix([[1, 0], [0, 1]])
    for metrics in ("first^2", ["pass^1", "first@2"]):
        with pytest.raises(NotComparable, match="attempts: 3 against 2"):
            compare(a, b, metrics)
    assert compare(a, b, "first^2", allow=True).agreement.differences[0].field == "attempts"


def test_attempts_are_counted_where_nobody_recorded_them() -> None:
    unverified = compare(COUNTS, COUNTS).agreement.unverified
    assert "attempts" not in [entry.field for entry in unverified]


def test_one_missing_policy_is_used_for_both() -> None:
    found = compare(_run("a", Protocol(missing="fail")), _run("b", Protocol(missing="exclude")))
    assert found.agreement.a == found.agreement.b


def test_pass_at_5_against_pass_at_1_is_refused_with_three_corrections() -> None:
    with pytest.raises(NotComparable) as caught:
        compare(COUNTS, COUNTS, "pass@1", metric_b="pass@5", allow=True)
    message = caught.value.message
    for text in ("(1)", "same n, tasks, tests", "decoding", "(2)", "paired lift", "(3)", "budget"):
        assert text in message
    assert caught.value.differences == ("metric",)


def test_another_question_of_the_same_k_is_refused_too() -> None:
    with pytest.raises(NotComparable, match="another question"):
        same_metric(metric("pass@4"), metric("pass^4"))


@pytest.mark.parametrize("word", ["pass^1", "pass@1", "rate"])
def test_three_names_of_one_quantity_are_the_same(word: str) -> None:
    same_metric(metric("pass^1"), metric(word))
