"""Rules on little data: what is shown, what is advised, and that gate and report agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, estimate, gate
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.stats.gate import GateVerdict
from passhat.stats.gate.gate_result import GateResult, RuleResult

ORDER = {GateVerdict.REFUTED: 0, GateVerdict.NOT_SETTLED: 1, GateVerdict.SHOWN: 2}


def _only(result: GateResult) -> RuleResult:
    (found,) = result.results
    return found


suites = st.integers(1, 5).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=12))
)


@settings(max_examples=max_examples(25))
@given(suites, st.floats(0, 1), st.floats(0, 1))
def test_a_stricter_rule_is_never_shown_before_a_weaker_one(
    suite: tuple[int, list[int]], one: float, other: float
) -> None:
    outcomes = Outcomes.from_counts(*suite)
    weak, strict = sorted((one, other))
    verdicts = [_only(gate(outcomes, f"pass^1 >= {x!r}")).verdict for x in (weak, strict)]
    assert ORDER[verdicts[0]] >= ORDER[verdicts[1]]
    upper = [_only(gate(outcomes, f"pass^1 <= {x!r}")).verdict for x in (weak, strict)]
    assert ORDER[upper[0]] <= ORDER[upper[1]]


@settings(max_examples=max_examples(25))
@given(suites, st.sampled_from(["pass^1", "pass@1", "rate"]), st.sampled_from([0.6, 0.9, 0.99]))
def test_gate_and_report_give_the_same_number_and_nested_bounds(
    suite: tuple[int, list[int]], word: str, level: float
) -> None:
    outcomes = Outcomes.from_counts(*suite)
    found = _only(gate(outcomes, f"{word} >= 0.5", level=level))
    report = estimate(outcomes, word, level=2 * level - 1)
    assert found.value == report.value
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    assert (found.low, found.high) == pytest.approx((report.low, report.high))


@settings(max_examples=max_examples(20))
@given(suites, st.sampled_from([0.6, 0.8, 0.95]))
def test_a_higher_level_settles_no_more(suite: tuple[int, list[int]], level: float) -> None:
    outcomes = Outcomes.from_counts(*suite)
    for rule in ("pass^1 >= 0.4", "pass@1 < 0.7"):
        low, high = (_only(gate(outcomes, rule, level=at)).verdict for at in (level, 0.99))
        assert high in (low, GateVerdict.NOT_SETTLED)


@pytest.mark.parametrize("rule", ["pass^1 >= 0.5", "pass^1 > 0.01", "pass^1 <= 0.99"])
def test_one_attempt_at_one_task_shows_nothing_strong(rule: str) -> None:
    for passed in (0, 1):
        found = _only(gate(Outcomes.from_counts(1, [passed]), rule))
        assert found.verdict is (
            # One pass shows a rate above 1% at 95%: the bound is .05.
            GateVerdict.SHOWN
            if (rule, passed) in (("pass^1 > 0.01", 1), ("pass^1 <= 0.99", 0))
            else GateVerdict.NOT_SETTLED
        )
        assert found.tasks == found.attempts == 1


def test_one_pass_bounds_the_rate_by_the_tail_itself() -> None:
    found = _only(gate(Outcomes.from_counts(1, [1]), "pass^1 >= 0.5", level=0.95))
    assert (found.low, found.high) == pytest.approx((0.05, 1.0))
    assert "95% one-sided each; about these tasks" in found.evidence
    precise = _only(gate(Outcomes.from_counts(1, [1]), "pass^1 >= 0.5", level=0.995))
    assert "99.5% one-sided each" in precise.evidence


def test_about_these_tasks_attempts_are_advised_and_never_tasks() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2, 3] * 4)
    found = _only(gate(outcomes, "pass^1 >= 0.4", about="these tasks"))
    assert found.advice is not None
    assert found.advice.kind == "attempts"
    assert "in both runs" not in found.advice.text
    assert "tasks like these" not in found.sentence
    new = _only(gate(outcomes, "pass^1 >= 0.4"))
    assert new.advice is not None
    assert new.advice.kind == "tasks"
    base = _only(gate(outcomes, "pass^1 >= base - 0.05", outcomes))
    assert base.advice is not None
    assert "in both runs" in base.advice.text


def test_the_advised_attempts_settle_it_if_the_value_stays() -> None:
    found = _only(
        gate(Outcomes.from_counts(4, [1, 2, 3] * 4), "pass^1 >= 0.4", about="these tasks")
    )
    assert found.advice is not None
    assert found.advice.prospect is not None
    n = found.advice.prospect.total
    more = Outcomes.from_counts(n, [round(n * share) for share in (0.25, 0.5, 0.75)] * 4)
    assert _only(gate(more, "pass^1 >= 0.4", about="these tasks")).verdict is GateVerdict.SHOWN


def test_missing_attempts_decide_and_that_is_said() -> None:
    outcomes = Outcomes.from_counts([2] * 10, [2] * 10, missing=[2] * 10)
    found = _only(gate(outcomes, "pass^1 >= 0.6"))
    assert found.verdict is GateVerdict.NOT_SETTLED
    assert found.advice is not None
    assert found.advice.kind == "verdicts"
    assert "it reads between 0.500 and 1.000" in found.advice.text
    assert "20 attempts missing: the bounds reach from" in found.notes[-1]
    assert _only(gate(outcomes, "pass^1 >= 0.6", missing="fail")).verdict is not GateVerdict.SHOWN
    assert _only(gate(outcomes, "pass^1 >= 0.6", missing="exclude")).value == 1.0


def test_a_label_of_the_baseline_alone_names_the_clusters() -> None:
    """The run has no labels: the warning was looked up there, and refused the gate."""
    labels = {"repo": [f"r{i // 2}" for i in range(12)]}
    plain = Outcomes.from_counts(4, [1, 2, 3] * 4)
    labeled = Outcomes.from_counts(4, [1, 2, 3] * 4, labels=labels)
    results = [
        _only(gate(run, "pass^1 >= base - 0.05", base, about="new tasks", cluster="repo"))
        for run, base in ((plain, labeled), (labeled, plain), (labeled, labeled))
    ]
    assert len({(found.low, found.high) for found in results}) == 1
    for found in results:
        assert any("only 6 clusters of repo" in note for note in found.notes)


def test_short_tasks_left_out_never_put_the_value_outside_its_bounds() -> None:
    """The bounds count absent attempts on all tasks, the value is that of the complete one."""
    outcomes = Outcomes.from_counts([4] + [3] * 19, [4] + [0] * 19)
    run = Run("half", "half", outcomes, Protocol(attempts=4))
    found = _only(gate(run, "pass^4 >= 0.5", drop_short=True))
    assert found.value == 1.0
    assert found.high is not None
    assert found.low is not None
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(("absent", "verb"), [(1, "is"), (2, "are")])
def test_one_absent_attempt_is_singular(absent: int, verb: str) -> None:
    outcomes = Outcomes.from_counts([4, 4 - absent], [4, 4 - absent])
    result = gate(outcomes, "pass^1 >= 0.4", attempts=4)
    noun = "attempt" if absent == 1 else "attempts"
    assert f"{absent} planned {noun} of 8 {verb} absent" in result.headline
    assert f"{absent} {noun} of the 4 planned per task {verb} absent" in result.notes[0]
    assert result.exit_code == 4


def test_several_rules_are_one_verdict() -> None:
    outcomes = Outcomes.from_counts(8, [8] * 40 + [7] * 10)
    shown, refuted, open_rule = "pass^1 >= 0.8", "pass^1 <= 0.5", "pass^1 >= 0.97"
    assert gate(outcomes, [shown, shown]).exit_code == 0
    assert gate(outcomes, [shown, open_rule]).exit_code == 3
    assert gate(outcomes, [open_rule, refuted, shown]).exit_code == 1
    text = str(gate(outcomes, [open_rule, refuted, shown]))
    assert "1 shown, 1 refuted, 1 not settled" in text
    assert [line[2] for line in text.splitlines() if line[:2] == "  " and line[2] in "✓✗?"] == [
        "?",
        "✗",
        "✓",
    ]


# -- without a rule --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "run"), [([1], [0]), ([1, 1, 1], [0, 0, 0]), ([1] * 5, [1, 0, 0, 0, 0]), ([1], [1])]
)
def test_data_that_resolve_nothing_are_not_green(base: list[int], run: list[int]) -> None:
    """Four of five tasks broke and the gate said "no regression beyond 100 points"."""
    result = gate(Outcomes.from_counts(1, run), against=Outcomes.from_counts(1, base))
    found = _only(result)
    assert found.verdict is GateVerdict.NOT_SETTLED
    assert result.warning
    assert "no regression beyond" not in str(result).lower()
    assert found.advice is not None
    assert "these data cannot show a drop, however large it is" in found.advice.text


@settings(max_examples=max_examples(20))
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=10),
        )
    )
)
def test_what_is_called_no_regression_is_within_its_margin(
    suite: tuple[int, list[tuple[int, int]]],
) -> None:
    n, counts = suite
    base, run = (Outcomes.from_counts(n, [pair[i] for pair in counts]) for i in (0, 1))
    found = _only(gate(run, against=base))
    lift = float(np.mean([(y - x) / n for x, y in counts]))
    assert found.value == pytest.approx(lift)
    assert found.low is not None
    assert found.high is not None
    assert found.margin is not None
    assert found.low <= found.value <= found.high
    if found.verdict is GateVerdict.SHOWN:
        assert found.margin <= 0.5
        assert found.low >= -found.margin
        assert -lift <= found.margin
    if found.verdict is GateVerdict.REFUTED:
        assert found.high < 0 or found.broken
        assert lift < 0


def test_an_improvement_is_never_a_regression() -> None:
    result = gate(Outcomes.from_counts(8, [8] * 12), against=Outcomes.from_counts(8, [2] * 12))
    assert result.exit_code == 0
    assert _only(result).verdict is GateVerdict.SHOWN
    assert _only(result).broken == ()


def test_a_stated_margin_is_taken_as_it_is() -> None:
    base = run = Outcomes.from_counts(1, [1] * 4)
    assert _only(gate(run, against=base, margin=0.9)).verdict is GateVerdict.SHOWN
    found = _only(gate(run, against=base, margin=0.05))
    assert found.verdict is GateVerdict.NOT_SETTLED
    assert str(found.rule) == "no regression of pass^1 beyond 5 points"


def test_levels_outside_a_gates_range_are_refused() -> None:
    for level in (0.5, 0.2):
        with pytest.raises(InvalidValue, match="one-sided"):
            gate(Outcomes.from_counts(1, [1]), "rate >= 0.5", level=level)


def test_missing_attempts_make_the_value_a_range_as_in_a_report() -> None:
    run = Outcomes.from_counts([3, 2, 3], [3, 1, 2], missing=[0, 1, 0])
    base = Outcomes.from_counts(3, [3, 2, 2])
    (alone,) = gate(run, ["pass^1 >= 0.5"], max_missing=1.0).results
    assert alone.value_range == pytest.approx((2 / 3, 7 / 9))
    assert alone.evidence.startswith("pass^1 is between 0.667 and 0.778, at least ")
    (lift,) = gate(run, ["pass^1 >= base - 0.5"], base, max_missing=1.0).results
    assert lift.evidence.startswith("lift over base between -0.111 and 0.000, at least ")
    (whole,) = gate(base, ["pass^1 >= 0.5"]).results
    assert whole.value_range is None
