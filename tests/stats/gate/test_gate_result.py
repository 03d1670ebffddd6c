"""Verdicts, exit codes and sentences of a gate, over every combination of its rules."""

from __future__ import annotations

import json
from itertools import product

import pytest

from passhat import Outcomes, Run, compare, gate
from passhat._serialize import as_json
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import LimitRule, parse_rule, verdict_of
from passhat.stats.gate.cases import Unsettled
from passhat.stats.gate.gate_result import (
    Advice,
    GateResult,
    GateVerdict,
    RuleResult,
)
from passhat.stats.gate.regression import NoRegression
from passhat.stats.gate.rules import Sign


def limit_rule(text: str) -> LimitRule:
    rule = parse_rule(text)
    assert isinstance(rule, LimitRule)
    return rule


SHOWN, REFUTED, OPEN = GateVerdict.SHOWN, GateVerdict.REFUTED, GateVerdict.NOT_SETTLED
VERDICTS = (SHOWN, REFUTED, OPEN)


def _found(verdict: GateVerdict, rule: str = "pass^4 >= 0.6", **more: object) -> RuleResult:
    values: dict[str, object] = {
        "value": 0.7,
        "low": 0.61,
        "high": 0.8,
        "level": 0.95,
        "about": "new tasks",
        "tasks": 40,
        "attempts": 320,
    }
    return RuleResult(parse_rule(rule), verdict, **(values | more))  # type: ignore[arg-type]


def _gate(*results: RuleResult, absent: int = 0, unsettled: Unsettled | None = None) -> GateResult:
    return GateResult("run", None, results, "bound", absent=absent, unsettled=unsettled)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_refuted_rule_refutes_and_all_must_be_shown(count: int) -> None:
    for verdicts in product(VERDICTS, repeat=count):
        whole = _gate(*map(_found, verdicts))
        if REFUTED in verdicts:
            wanted, code = REFUTED, 1
        elif OPEN in verdicts:
            wanted, code = OPEN, 3
        else:
            wanted, code = SHOWN, 0
        assert (whole.verdict, whole.exit_code) == (wanted, code)
        # The headline counts every kind there is, and no other.
        counts = [f"{verdicts.count(kind)} {kind}" for kind in VERDICTS if kind in verdicts]
        named = "pass^4 >= 0.6" if count == 1 else ", ".join(counts)
        assert whole.headline == f"{str(wanted).capitalize()}: {named}."


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("unsettled", ["pass", "warn", "fail", None])
@pytest.mark.parametrize("absent", [0, 1, 7])
def test_exit_codes_of_every_ending(
    verdict: GateVerdict, unsettled: Unsettled | None, absent: int
) -> None:
    whole = _gate(_found(verdict), absent=absent, unsettled=unsettled)
    if absent:
        assert whole.exit_code == 4
    elif verdict is OPEN:
        assert whole.exit_code == (0 if unsettled in ("pass", "warn") else 3)
    else:
        assert whole.exit_code == (0 if verdict is SHOWN else 1)
    assert whole.warning == (verdict is OPEN and unsettled == "warn" and not absent)
    if absent == 1:
        assert "1 planned attempt is absent" in whole.headline
    if absent == 7:
        assert "7 planned attempts are absent" in whole.headline


def test_too_many_missing_attempts_make_a_run_incomplete_and_too_few_do_not() -> None:
    for verdict, code in ((REFUTED, 4), (SHOWN, 0)):
        missing = _found(verdict, "missing <= 2%", low=None, high=None, level=None)
        whole = _gate(_found(SHOWN), missing)
        assert whole.exit_code == code
        assert whole.incomplete is (verdict is REFUTED)
        assert whole.headline.startswith("Incomplete: missing is") is (verdict is REFUTED)


@pytest.mark.parametrize(
    ("rule", "low", "high", "verdict"),
    [
        ("pass^4 >= 0.6", 0.6, 0.7, SHOWN),
        ("pass^4 > 0.6", 0.6, 0.7, OPEN),
        ("pass^4 >= 0.6", 0.5, 0.6, OPEN),
        ("pass^4 > 0.6", 0.5, 0.6, REFUTED),
        ("pass^4 <= 0.6", 0.5, 0.6, SHOWN),
        ("pass^4 < 0.6", 0.5, 0.6, OPEN),
        ("pass^4 <= 0.6", 0.6, 0.7, OPEN),
        ("pass^4 < 0.6", 0.6, 0.7, REFUTED),
    ],
)
def test_ends_on_the_limit_itself(rule: str, low: float, high: float, verdict: GateVerdict) -> None:
    assert verdict_of(limit_rule(rule), low, high) is verdict


def test_a_rule_and_its_denial_have_opposite_verdicts() -> None:
    deny = {
        Sign.AT_LEAST: Sign.BELOW,
        Sign.BELOW: Sign.AT_LEAST,
        Sign.ABOVE: Sign.AT_MOST,
        Sign.AT_MOST: Sign.ABOVE,
    }
    ends = [0.2, 0.4, 0.5, 0.6]
    for sign, other in deny.items():
        for low, high in product(ends, repeat=2):
            if low <= high:
                one = verdict_of(limit_rule(f"rate {sign} 0.5"), low, high)
                two = verdict_of(limit_rule(f"rate {other} 0.5"), low, high)
                assert {one, two} in ({SHOWN, REFUTED}, {OPEN})


def test_evidence_names_number_bounds_level_and_population() -> None:
    assert _found(SHOWN).evidence == (
        "pass^4 is 0.700, at least 0.610 and at most 0.800 (95% one-sided each; about new tasks)"
    )
    lift = _found(OPEN, "pass^4 >= base - 0.03", value=-0.01, low=-0.05, high=0.03)
    assert lift.evidence == (
        "lift over base -0.010, at least -0.050 and at most +0.030 (95% one-sided each; about new "
        "tasks)"
    )
    counted = {"low": None, "high": None, "level": None, "about": "this run as it was"}
    cost = _found(SHOWN, "cost <= 2000", value=1234.5, **counted)
    assert cost.evidence == "cost is 1,234 (this run as it was)"
    tokens = _found(SHOWN, "tokens <= 20000", value=12345.6, **counted)
    assert tokens.evidence == "tokens is 12,346 (this run as it was)"
    missing = _found(SHOWN, "missing <= 2%", value=0.0125, **counted)
    assert missing.evidence == "missing is 1.2% (this run as it was)"


def test_a_sentence_ends_with_what_to_do_where_there_is_something_to_do() -> None:
    open_rule = _found(OPEN, advice=Advice("tasks", "with 5 tasks"))
    assert open_rule.sentence.startswith("not settled: pass^4 >= 0.6; pass^4 is 0.700")
    assert open_rule.sentence.endswith("; with 5 tasks")
    assert _found(SHOWN).sentence.endswith("(95% one-sided each; about new tasks)")


@pytest.mark.parametrize(
    ("passes", "margin", "outcome", "start"),
    [
        (
            [7] * 12,
            None,
            "no regression",
            "No regression: No change of pass^1 is shown on these 12",
        ),
        ([1] * 12, None, "regression", "Regression: pass^1 dropped by "),
        ([6, 8] * 6, 0.001, "unsettled", "Unsettled (warning): No change of pass^1 is shown on"),
    ],
)
def test_the_gate_without_a_rule_says_what_compare_says(
    passes: list[int], margin: float | None, outcome: str, start: str
) -> None:
    base, run = Outcomes.from_counts(8, [7] * 12), Outcomes.from_counts(8, passes)
    whole = gate(run, against=base, margin=margin)
    (result,) = whole.results
    assert result.outcome == outcome
    assert whole.headline.startswith(start)
    assert result.pair is not None
    assert result.evidence == result.pair.sentence
    assert f"\n  {result.verdict.sign} {result.outcome}  " in str(whole)
    (verdict,) = compare(Run("base", "", base), Run("outcomes", "", run)).verdicts
    assert verdict.sentence == result.evidence
    assert result.to_dict()["verdict_sentence"] == result.evidence


def test_a_shown_improvement_reads_as_one() -> None:
    base, run = (Outcomes.from_counts(8, [c] * 20) for c in (2, 7))
    whole = gate(run, against=base)
    assert whole.headline.startswith("Improvement: pass^1 rose by ")
    assert whole.exit_code == 0


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, 5.0])
def test_a_margin_is_a_share_and_is_refused_in_points(margin: float) -> None:
    with pytest.raises(ValueError, match=f"a share between 0 and 1, not {margin:g}"):
        NoRegression(PassHat(1), margin)


def test_text_and_data_hold_every_rule_with_its_notes() -> None:
    whole = GateResult(
        "run",
        "base",
        (_found(SHOWN), _found(OPEN, "pass@2 >= 0.9", notes=("2 attempts missing",))),
        "bound",
        notes=("a note of the gate",),
        order_seed="r1",
    )
    lines = str(whole).splitlines()
    assert "  ✓ shown  pass^4 >= 0.6" in lines
    assert "  ? not settled  pass@2 >= 0.9" in lines
    assert "      2 attempts missing" in lines
    assert lines[-1] == "a note of the gate"
    data = json.loads(as_json(whole))
    assert data["schema"] == "passhat.gate/1"
    assert [rule["verdict"] for rule in data["rules"]] == ["shown", "not settled"]
    assert data["rules"][1]["notes"] == ["2 attempts missing"]
    assert (data["exit_code"], data["order_seed"], data["base"]) == (3, "r1", "base")
    shown = whole._repr_html_()
    assert shown.count("<tr>") == 3
    assert "pass@2 &gt;= 0.9" in shown


@pytest.mark.parametrize(
    ("missing", "text"), [(0, "0.0%"), (1, "0.02%"), (50, "1.0%"), (4_999, "99.98%")]
)
def test_missing_attempts_read_as_none_or_all_only_when_they_are(missing: int, text: str) -> None:
    scored = 5_000 - missing
    outcomes = Outcomes.from_counts(scored, [scored], missing=[missing])
    result = gate(outcomes, "missing <= 2%").results[0]
    assert result.evidence == f"missing is {text} (this run as it was)"
