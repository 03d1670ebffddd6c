"""Verdicts: shown, refuted, not settled; and what missing, absent and unrecorded do to them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from hypothesis_profiles import max_examples
from passhat.cli.shared.exits import ExitCode
from passhat.errors import InvalidValue, NotComparable, TooFewAttempts
from passhat.protocol import Protocol
from passhat.stats.estimate import Estimate, metric
from passhat.stats.gate import (
    GateOptions,
    GateResult,
    GateVerdict,
    LimitRule,
    Tools,
    gate,
    judge,
    parse_rule,
    verdict_of,
)
from passhat.stats.outcomes import Attempts, Outcomes, Run
from passhat.stats.terms import Population, Terms

NEW = Population.NEW_TASKS


def limit_rule(text: str) -> LimitRule:
    rule = parse_rule(text)
    assert isinstance(rule, LimitRule)
    return rule


SOLID = Outcomes.from_counts(8, [8] * 45 + [6] * 5)
POOR = Outcomes.from_counts(8, [1] * 50)
MIXED = Outcomes.from_counts(8, [8] * 14 + [5] * 4 + [0] * 7)


def judged(
    tools: Tools,
    run: Run | Outcomes,
    *rules: str,
    base: Run | Outcomes | None = None,
    **how: object,
) -> GateResult:
    planned = {name: how.pop(name) for name in ("tasks", "attempts", "max_missing") if name in how}
    options = GateOptions(Terms.from_options(how), tools=tools, **planned)  # type: ignore[arg-type]
    return judge(run, rules, base, options)


def fixed(low: float, high: float, value: float = 0.5) -> Tools:
    """An estimator that always answers the same."""

    def estimate(outcomes: Outcomes, word: str, terms: Terms) -> Estimate:
        level = terms.level
        return Estimate(metric(word), value, None, low, high, level, NEW, "", "", len(outcomes), 8)

    return Tools(estimate=estimate)


@pytest.mark.parametrize(
    ("rule", "low", "high", "verdict", "code"),
    [
        ("pass^4 >= 0.6", 0.6, 0.9, "shown", 0),
        ("pass^4 > 0.6", 0.6, 0.9, "not settled", 3),
        ("pass^4 >= 0.6", 0.3, 0.6, "not settled", 3),
        ("pass^4 > 0.6", 0.3, 0.6, "refuted", 1),
        ("pass^4 >= 0.6", 0.3, 0.59, "refuted", 1),
        ("pass^4 <= 0.6", 0.3, 0.6, "shown", 0),
        ("pass^4 < 0.6", 0.3, 0.6, "not settled", 3),
        ("pass^4 < 0.6", 0.6, 0.9, "refuted", 1),
    ],
)
def test_the_bounds_decide(rule: str, low: float, high: float, verdict: str, code: int) -> None:
    result = judged(fixed(low, high), SOLID, rule)
    assert (str(result.verdict), result.exit_code) == (verdict, code)


def test_a_one_sided_level_is_the_end_of_a_two_sided_interval() -> None:
    seen = []

    def estimate(_outcomes: Outcomes, _word: str, terms: Terms) -> Estimate:
        seen.append(terms.level)
        return Estimate(metric("pass^4"), 0.5, None, 0.4, 0.6, 0.9, NEW, "", "", 1, 1)

    judged(Tools(estimate=estimate), SOLID, "pass^4 >= 0.1", level=0.95)
    judged(Tools(estimate=estimate), SOLID, "pass^4 >= 0.1", level=0.99)
    assert seen == pytest.approx([0.90, 0.98])
    with pytest.raises(InvalidValue, match="one-sided"):
        GateOptions(Terms(level=0.5))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_rule_and_its_denial_never_agree(limit: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    yes = verdict_of(limit_rule(f"rate >= {limit!r}"), low, high)
    no = verdict_of(limit_rule(f"rate < {limit!r}"), low, high)
    opposite = {
        GateVerdict.SHOWN: GateVerdict.REFUTED,
        GateVerdict.REFUTED: GateVerdict.SHOWN,
        GateVerdict.NOT_SETTLED: GateVerdict.NOT_SETTLED,
    }
    assert no is opposite[yes]


def test_end_to_end_with_an_interval() -> None:
    assert judged(Tools(), SOLID, "pass^4 >= 0.6").verdict is GateVerdict.SHOWN
    assert judged(Tools(), POOR, "pass^4 >= 0.6").verdict is GateVerdict.REFUTED
    assert judged(Tools(), MIXED, "pass^4 >= 0.6").verdict is GateVerdict.NOT_SETTLED


def test_missing_attempts_count_against_the_rule() -> None:
    all_there = Outcomes.from_counts(8, [8] * 50)
    lost = Outcomes.from_counts(6, [6] * 50, missing=2)
    assert judged(Tools(), all_there, "pass^4 >= 0.8").verdict is GateVerdict.SHOWN
    bound = judged(Tools(), lost, "pass^4 >= 0.8")
    assert bound.verdict is GateVerdict.NOT_SETTLED
    assert "100 missing attempts decide" in str(bound)
    excluded = judged(Tools(), lost, "pass^4 >= 0.8", missing="exclude", max_missing=1.0)
    assert excluded.verdict is GateVerdict.SHOWN
    beyond = judged(Tools(), lost, "pass^4 >= 0.8", missing="exclude")
    assert (beyond.verdict, beyond.exit_code) == (GateVerdict.NOT_SETTLED, 4)
    assert judged(Tools(), lost, "pass^4 >= 0.8", missing="fail").verdict is GateVerdict.REFUTED


def test_not_settled_says_what_would_settle_it() -> None:
    result = judged(Tools(), MIXED, "pass^4 >= 0.45")
    assert result.verdict is GateVerdict.NOT_SETTLED
    advice = str(result.results[0].advice)
    assert "tasks like these" in advice
    assert "it is settled in" in advice


def test_the_advice_is_about_right() -> None:
    """Follow it, with tasks like those seen, and the rule is settled."""
    found = judged(Tools(), MIXED, "pass^4 >= 0.45").results[0]
    assert found.advice is not None
    assert found.advice.prospect is not None
    more = found.advice.prospect.more
    assert more is not None
    times = -(-(len(MIXED) + more) // len(MIXED))
    larger = Outcomes.from_counts(8, np.tile(MIXED.c, times))
    assert judged(Tools(), larger, "pass^4 >= 0.45").verdict is GateVerdict.SHOWN


def test_a_value_on_the_limit_cannot_be_settled() -> None:
    result = judged(fixed(0.4, 0.6, value=0.5), SOLID, "pass^4 >= 0.5")
    assert "lies on the limit" in str(result.results[0].advice)
    result = judged(fixed(0.1, 0.9, value=0.503), Outcomes.from_counts(8, [4] * 50), "rate >= 0.5")
    assert result.results[0].advice is None


def test_k_beyond_n_cannot_be_asked() -> None:
    with pytest.raises(TooFewAttempts):
        gate(SOLID, "pass^9 >= 0.5")


def test_without_an_interval_nothing_is_settled() -> None:
    result = judged(Tools(estimate=_no_interval), SOLID, "pass^4 >= 0.1")
    assert result.exit_code == 3
    assert "no interval" in str(result)


def _no_interval(outcomes: Outcomes, word: str, _terms: Terms) -> Estimate:
    return Estimate(metric(word), 0.5, None, None, None, None, NEW, "", "", len(outcomes), 8)


# -- compared with base ----------------------------------------------------------------------


def test_the_paired_rule() -> None:
    better = Outcomes.from_counts(8, [7] * 60)
    worse = Outcomes.from_counts(8, [2] * 60)
    assert gate(better, "pass^1 >= base - 0.03", worse).exit_code == 0
    assert gate(worse, "pass^1 >= base - 0.03", better).exit_code == 1
    assert gate(worse, "pass^1 >= base", worse).exit_code == 3


def test_the_forty_task_example() -> None:
    """17 both, 10 neither, 8 only B, 5 only A: +7.5 points, from -.128 to +.273."""
    a = Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [0] * 8 + [1] * 5)
    b = Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [1] * 8 + [0] * 5)
    (found,) = gate(b, "pass^1 >= base", a, level=0.975).results
    assert (found.low, found.value, found.high) == pytest.approx((-0.128, 0.075, 0.273), abs=5e-4)


def test_only_shared_tasks_are_compared() -> None:
    a = Outcomes.from_counts(2, [2, 2, 2], ["x", "y", "z"])
    b = Outcomes.from_counts(2, [0, 0], ["y", "w"])
    result = gate(a, "rate >= base", b)
    assert "1 task in both runs; left out: 2 only in the run, 1 only in base" in str(result)
    with pytest.raises(NotComparable, match="no task is in both runs"):
        gate(a, "rate >= base", Outcomes.from_counts(2, [1], ["q"]))


def test_missing_attempts_of_either_run_count_against_the_rule() -> None:
    run = Outcomes.from_counts(4, [4] * 40)
    base = Outcomes.from_counts(4, [3] * 40)
    lossy = Outcomes.from_counts(2, [1] * 40, missing=2)
    assert gate(run, "rate >= base", base).exit_code == 0
    with_lost = gate(run, "rate >= base", lossy)
    assert with_lost.results[0].low is not None
    assert gate(lossy, "rate >= base", base).exit_code == 4
    assert gate(lossy, "rate >= base", base, max_missing=0.5).exit_code == 3
    assert gate(lossy, "rate >= base", base, missing="fail", max_missing=0.5).exit_code == 1
    assert gate(run, "rate >= base", lossy, missing="exclude", max_missing=0.5).exit_code == 0


def test_base_needs_a_second_run() -> None:
    with pytest.raises(InvalidValue, match="against=SOURCE"):
        gate(SOLID, "pass^4 >= base")


def test_runs_made_differently_are_not_compared_unless_allowed() -> None:
    hot = Run("a", "a", SOLID, Protocol(decoding={"temperature": 1.0}))
    cold = Run("b", "b", POOR, Protocol(decoding={"temperature": 0.0}))
    with pytest.raises(NotComparable, match=r"temperature: 0\.0 against 1\.0"):
        gate(hot, "pass^1 >= base", cold)
    allowed = gate(hot, "pass^1 >= base", cold, allow=True)
    assert "compared although they differ" in str(allowed)


def test_ordered_metrics_are_compared_too_missing_attempts_both_ways() -> None:
    lossy = Outcomes.from_matrix([[-1, 1], [1, 0], [0, 1]])
    whole = Outcomes.from_matrix([[1, 1], [1, 0], [0, 1]])
    (sure,) = gate(whole, "first@1 >= base", whole).results
    (open_,) = gate(lossy, "first@1 >= base", whole).results
    assert sure.value == 0.0
    assert open_.value == pytest.approx(-1 / 3)
    assert open_.low is not None
    assert sure.low is not None
    assert open_.low < sure.low


# -- counted, not estimated ------------------------------------------------------------------


def run_with(**measures: list[float]) -> Run:
    verdicts = np.array([1, 0, 1, 1, 0, 0], np.int8)
    attempts = Attempts(
        ("a", "b", "c"),
        np.array([0, 2, 4, 6]),
        verdicts,
        measures=MappingProxyType({name: np.array(cells) for name, cells in measures.items()}),
    )
    return Run("r", "r", Outcomes.from_counts(2, [1, 2, 0], ["a", "b", "c"]), attempts=attempts)


def test_cost_per_attempt_and_per_solved_task() -> None:
    run = run_with(cost=[1, 1, 1, 1, 1, 1])
    assert gate(run, ["cost <= 1", "cost/solved <= 2"]).exit_code == 0
    assert gate(run, "cost < 1").exit_code == 1
    assert gate(run, "cost/solved <= 1.9").results[0].value == 2


@pytest.mark.parametrize("name", ["seconds", "steps", "tokens"])
def test_other_measures(name: str) -> None:
    run = run_with(**{name: [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]})
    assert gate(run, f"{name} <= 35").exit_code == 0
    assert gate(run, f"{name}/solved <= 69").exit_code == 1


def test_a_measure_relative_to_base() -> None:
    result = gate(run_with(cost=[2] * 6), "cost <= base + 0.5", run_with(cost=[1] * 6))
    assert result.exit_code == 1
    assert result.results[0].value == 1


@pytest.mark.parametrize("price", [0.1, 0.7, 1e-7, 3.3])
def test_attempts_at_exactly_the_limit_meet_it_whatever_their_sum_rounds_to(price: float) -> None:
    """Three attempts of 0.1 each were "refuted: cost <= 0.1; cost is 0.1" once."""
    for count in (3, 6):
        run = run_with(cost=[price] * count + [float("nan")] * (6 - count))
        assert gate(run, f"cost <= {price}").exit_code == 0
        assert gate(run, f"cost < {price}").exit_code == 1
        assert gate(run, f"cost <= {price * 0.999999}").exit_code == 1
        same = gate(run, ["cost <= base", "cost >= base"], run_with(cost=[price] * 6)).results
        assert {str(found.verdict) for found in same} == {"shown"}
        assert "lift over base 0 (" in same[0].sentence


def test_not_recorded_is_not_zero() -> None:
    nan = float("nan")
    for run in (run_with(), run_with(cost=[nan] * 6), SOLID):
        with pytest.raises(InvalidValue, match="not recorded is not zero"):
            gate(run, "cost <= 100")
    some = gate(run_with(cost=[2, nan, nan, nan, nan, nan]), "cost <= 1")
    assert some.exit_code == 1
    assert "recorded on 1 of 6 attempts" in str(some)


def test_nothing_solved_has_no_price() -> None:
    run = run_with(cost=[1] * 6)
    nothing = Attempts(
        run.attempts.tasks if run.attempts else (),
        np.array([0, 2, 4, 6]),
        np.zeros(6, np.int8),
        measures=MappingProxyType({"cost": np.ones(6)}),
    )
    broke = Run("r", "r", Outcomes.from_counts(2, [0, 0, 0], ["a", "b", "c"]), attempts=nothing)
    with pytest.raises(InvalidValue, match="nothing was solved"):
        gate(broke, "cost/solved <= 2")


def test_too_many_missing_is_incomplete_before_anything_else() -> None:
    lossy = Outcomes.from_counts(3, [3] * 20, missing=1)
    assert gate(lossy, "missing <= 25%").exit_code == ExitCode.OK
    too_many = gate(lossy, "missing <= 2%")
    assert (too_many.exit_code, too_many.incomplete) == (ExitCode.INCOMPLETE, True)
    assert judged(fixed(0, 0.1), lossy, "pass^2 >= 0.9", "missing <= 2%").exit_code == 4


def test_absent_attempts_are_counted_and_count_as_missing() -> None:
    ragged = Outcomes.from_counts([8] * 48 + [5, 4], [8] * 48 + [5, 4])
    assert judged(Tools(), ragged, "pass^4 >= 0.8").exit_code == 0
    few = judged(Tools(), ragged, "pass^4 >= 0.8", attempts=8)
    assert (few.exit_code, few.absent) == (ExitCode.OK, 7)  # 7 of 400, as if they were missing
    assert "48, 49" in few.notes[0]
    result = judged(Tools(), ragged, "pass^4 >= 0.8", attempts=8, max_missing=0.01)
    assert (result.exit_code, result.absent) == (ExitCode.INCOMPLETE, 7)
    promised = Run("r", "r", ragged, Protocol(attempts=9))
    assert judged(Tools(), promised, "pass^4 >= 0.8").exit_code == ExitCode.INCOMPLETE


def test_absent_tasks_are_counted() -> None:
    result = judged(Tools(), SOLID, "pass^4 >= 0.6", tasks=60, attempts=8)
    assert (result.exit_code, result.absent) == (ExitCode.INCOMPLETE, 80)
    assert "10 tasks of the 60 planned are absent" in result.notes


# -- showing itself ---------------------------------------------------------------------------


def test_the_public_function_and_its_forms() -> None:
    result = passhat.gate(SOLID, ["missing <= 2%", "rate >= base - 0.5"], against=SOLID)
    assert isinstance(result, passhat.GateResult)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["schema"] == "passhat.gate/1"
    assert [rule["verdict"] for rule in data["rules"]] == ["shown", "shown"]
    assert str(result).startswith("outcomes against base  Shown: 2 shown.\n")
    assert "<table>" in result._repr_html_()
    assert ExitCode(result.exit_code) is ExitCode.OK


def test_exit_codes_are_those_of_the_command_line() -> None:
    codes = {
        judged(fixed(0.9, 1), SOLID, "rate >= 0.5").exit_code: ExitCode.OK,
        judged(fixed(0, 0.1), SOLID, "rate >= 0.5").exit_code: ExitCode.REFUTED,
        judged(fixed(0, 1), SOLID, "rate >= 0.5").exit_code: ExitCode.NOT_SETTLED,
    }
    assert all(code == meaning for code, meaning in codes.items())
    assert len(codes) == 3


def test_a_gate_needs_a_rule() -> None:
    with pytest.raises(InvalidValue, match="needs a rule"):
        gate(SOLID, [])


@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.floats(0.01, 0.99))
@settings(max_examples=max_examples(40))
def test_the_order_of_tasks_does_not_matter(passes: list[int], limit: float) -> None:
    rule = f"pass^2 >= base - {limit:.3f}"
    base = [2] * len(passes)
    names = [str(i) for i in range(len(passes))]
    one = gate(
        Outcomes.from_counts(4, passes, names), rule, Outcomes.from_counts(4, base, names)
    ).results[0]
    two = gate(
        Outcomes.from_counts(4, passes[::-1], names[::-1]),
        rule,
        Outcomes.from_counts(4, base, names),
    ).results[0]
    assert one.verdict is two.verdict
    assert one.low == pytest.approx(two.low)


def test_attempts_that_differ_by_task_are_absent_by_task() -> None:
    outcomes = Outcomes.from_counts([4, 12, 3], [4, 6, 3])
    planned = np.array([4, 12, 8])
    run = Run("new", "new", outcomes, Protocol(allocation="4 to 12 by task"), planned=planned)
    result = gate(run, "pass^2 >= 0.1")
    assert (result.absent, result.exit_code) == (5, 4)
    whole = replace(run, planned=np.array([4, 12, 3]))
    assert gate(whole, "pass^2 >= 0.1").absent == 0
