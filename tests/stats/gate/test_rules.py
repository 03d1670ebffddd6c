"""The rule grammar, and what it says to what it does not understand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import PasshatError, RuleError
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate import gate
from passhat.stats.gate.rules import LimitRule, MeasureRule, MissingRule, Sign, parse_rule
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.attempts import Aggregates, MeasureSum


def limit_rule(text: str) -> LimitRule:
    rule = parse_rule(text)
    assert isinstance(rule, LimitRule)
    return rule


@pytest.mark.parametrize(
    ("text", "shown", "limit", "relative"),
    [
        ("pass^4 >= 0.6", "pass^4 >= 0.6", 0.6, False),
        ("pass@8 > 0.9", "pass@8 > 0.9", 0.9, False),
        ("PASS^4>=60%", "pass^4 >= 0.6", 0.6, False),
        ("pass^4 ≥ .6", "pass^4 >= 0.6", 0.6, False),
        ("pass^4 => .6", "pass^4 >= 0.6", 0.6, False),
        ("rate >= 1", "rate >= 1", 1.0, False),
        ("gpass@8:0.5 >= 0.5", "gpass@8:0.5 >= 0.5", 0.5, False),
        ("delta^4 >= 0.1", "delta^4 >= 0.1", 0.1, False),
        ("pass^4 >= base - 0.03", "pass^4 >= base - 0.03", -0.03, True),
        ("pass^4 >= base-3%", "pass^4 >= base - 0.03", -0.03, True),
        ("pass^4 > base", "pass^4 > base", 0.0, True),
        ("pass^1 >= base + 0.02", "pass^1 >= base + 0.02", 0.02, True),
        ("cost <= 0.5", "cost <= 0.5", 0.5, False),
        ("cost / solved <= 2", "cost/solved <= 2", 2.0, False),
        ("tokens < 1e4", "tokens < 10000", 10_000.0, False),
        ("steps <= base + 3", "steps <= base + 3", 3.0, True),
        ("seconds/solved <= 120.", "seconds/solved <= 120", 120.0, False),
        ("missing <= 2%", "missing <= 2%", 0.02, False),
        ("missing < .02", "missing < 2%", 0.02, False),
    ],
)
def test_rules_are_read(text: str, shown: str, limit: float, relative: bool) -> None:
    rule = limit_rule(text)
    assert str(rule) == shown
    assert rule.limit == pytest.approx(limit)
    assert rule.relative is relative
    assert parse_rule(str(rule)) == rule
    assert parse_rule(rule) is rule


def test_subjects_have_their_kind() -> None:
    assert isinstance(parse_rule("pass^4 >= 0.6").subject, Metric)
    assert parse_rule("cost/solved <= 2") == MeasureRule("cost", True, Sign.AT_MOST, 2.0)
    assert parse_rule("missing <= 2%") == MissingRule(Sign.AT_MOST, 0.02)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pass^4", "needs a subject, a sign and a limit"),
        (">= 0.6", "needs a subject"),
        ("pas^4 >= 0.6", r"Did you mean pass\^4\?"),
        ("coste <= 0.5", r"Did you mean cost\?"),
        ("latency <= 3", r"Did you mean seconds\?"),
        ("mising <= 2%", r"Did you mean missing\?"),
        ("cost/task <= 2", "cost/solved"),
        ("pass^4 = 0.6", "exactly equal"),
        ("pass^4 == 0.6", "exactly equal"),
        ("pass^4 >= bsae", r"Did you mean base\?"),
        ("pass^4 >= good", "is not a limit"),
        ("pass^4 >= base * 2", "is not a limit"),
        ("pass^4 >= 60", r"Did you mean 60%\?"),
        ("pass^4 >= 1.2", "between 0 and 1"),
        ("pass^4 >= -0.2", "between 0 and 1"),
        ("pass^4 >= base - 2", "between -1 and 1"),
        ("cost <= -1", "never negative"),
        ("cost <= 1e999", "too large"),
        ("missing >= 2%", "upper limit"),
        ("missing <= base", "upper limit"),
    ],
)
def test_mistakes_say_what_was_probably_meant(text: str, says: str) -> None:
    with pytest.raises(RuleError, match=says):
        parse_rule(text)


def test_a_rule_is_text() -> None:
    with pytest.raises(RuleError, match="a rule is text"):
        parse_rule(7)  # type: ignore[arg-type]


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_passhat_error(text: str) -> None:
    try:
        rule = parse_rule(text)
    except PasshatError:
        return
    assert parse_rule(str(rule)) == rule


@given(
    st.sampled_from(["pass^4", "pass@2", "rate", "cost", "tokens/solved", "missing"]),
    st.sampled_from(list(Sign)),
    st.floats(0, 1),
    st.booleans(),
)
def test_what_is_printed_is_read_back(
    subject: str, sign: Sign, limit: float, relative: bool
) -> None:
    if subject == "missing" and (sign.wants_more or relative):
        return
    text = f"{subject} {sign} {'base - ' if relative else ''}{limit!r}"
    rule = limit_rule(text)
    again = limit_rule(str(rule))
    assert (again.subject, again.sign, again.relative) == (rule.subject, sign, relative)
    assert math.isclose(again.limit, rule.limit, rel_tol=1e-9, abs_tol=1e-12)


@given(st.floats(0, 1), st.floats(0, 1))
def test_signs_deny_each_other(value: float, limit: float) -> None:
    assert Sign.AT_LEAST.holds(value, limit) is not Sign.BELOW.holds(value, limit)
    assert Sign.ABOVE.holds(value, limit) is not Sign.AT_MOST.holds(value, limit)


def test_a_rule_can_be_built_by_hand() -> None:
    assert str(MissingRule(Sign.AT_MOST, 0.05)) == "missing <= 5%"


@pytest.mark.parametrize(
    ("rule", "total", "holds"),
    [
        ("cost <= 0.1", 0.1 + 0.1 + 0.1, True),  # 0.30000000000000004
        ("cost <= 0.1", 0.3 * (1 + 0.9e-9), True),
        ("cost <= 0.1", 0.3 * (1 + 1.5e-9), False),
        ("cost < 0.1", 0.3 * (1 - 0.9e-9), False),
        ("cost < 0.1", 0.3 * (1 - 1.5e-9), True),
        ("cost >= 0.1", 0.3 * (1 - 0.9e-9), True),
        ("cost > 0.1", 0.3, False),
        ("cost/solved <= 0.15", 0.3, True),
        ("cost/solved < 0.15", 0.3, False),
    ],
)
def test_the_last_bits_of_a_sum_break_no_limit(rule: str, total: float, holds: bool) -> None:
    sums = Aggregates({}, {"cost": MeasureSum(3, total, 2)})
    run = Run("r", "r", Outcomes.from_counts(3, [2]), aggregates=sums)
    (result,) = gate(run, rule, details=False).results
    assert (result.verdict == "shown") is holds
