"""The same data asked through every function: one number, one interval, one story."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, compare, estimate, forecast, gate
from passhat._serialize import as_json, to_data
from passhat.errors import TooFewAttempts
from passhat.stats.compare import compare_all
from passhat.stats.estimate import default_ks, estimate_all, missing_effect
from passhat.stats.estimate.diagnostics import diagnose

verdicts = st.sampled_from([1, 0, -1])
tables = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(verdicts, min_size=n, max_size=n), min_size=1, max_size=5)
)
scored = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([1, 0]), min_size=n, max_size=n), min_size=1, max_size=6
    )
)


def _fillings(table: list[list[int]]) -> list[list[list[int]]]:
    """Every way in which the missing attempts could have ended."""
    places = [(i, j) for i, row in enumerate(table) for j, v in enumerate(row) if v == -1]
    filled = []
    for ends in product((0, 1), repeat=len(places)):
        copy = [list(row) for row in table]
        for (i, j), end in zip(places, ends, strict=True):
            copy[i][j] = end
        filled.append(copy)
    return filled


@given(tables)
def test_bounds_hold_every_way_in_which_missing_attempts_could_have_ended(
    table: list[list[int]],
) -> None:
    missing = sum(row.count(-1) for row in table)
    if missing > 6:
        return
    n = len(table[0])
    words = ["pass^1", f"pass^{n}", f"pass@{n}", f"first@{n}", f"first^{n}", f"window^{n}"]
    bounds = estimate_all(Outcomes.from_matrix(table), words, level=None)
    values = [
        [made.value for made in estimate_all(Outcomes.from_matrix(way), words, level=None)]
        for way in _fillings(table)
    ]
    for place, bound in enumerate(bounds):
        own = [row[place] for row in values]
        assert bound.value == pytest.approx(min(own), abs=1e-12)
        assert bound.value_if_passed == pytest.approx(max(own), abs=1e-12)
        effect = missing_effect(Outcomes.from_matrix(table), words[place])
        assert effect["as failed"] == bound.value
        assert effect["as passed"] == bound.value_if_passed


@settings(max_examples=max_examples(10))
@given(tables)
def test_estimate_forecast_gate_and_diagnosis_give_one_number(table: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(table)
    n = len(table[0])
    for word in ("pass^1", f"pass@{n}"):
        made = estimate(outcomes, word)
        assert made.low is not None
        assert made.high is not None
        assert made.low <= made.value <= (made.value_if_passed or 0.0) <= made.high
        seen = forecast(outcomes, word)
        assert seen.observed == pytest.approx(made.value, abs=1e-12)
        assert seen.low <= made.value <= seen.high
        judged = gate(outcomes, f"{word} >= 0.5").results[0]
        assert judged.value == made.value
        assert judged.low is not None
        assert judged.high is not None
        assert judged.low <= judged.value <= judged.high
    if outcomes.m is None:
        assert diagnose(outcomes).task_average == pytest.approx(
            estimate(outcomes, "rate", level=None).value
        )


@settings(max_examples=max_examples(20))
@given(scored, st.randoms(use_true_random=False))
def test_tasks_and_attempts_in_another_order_change_nothing(
    table: list[list[int]], random: object
) -> None:
    n = len(table[0])
    moved = [list(row) for row in table]
    for row in moved:
        random.shuffle(row)  # type: ignore[attr-defined]
    random.shuffle(moved)  # type: ignore[attr-defined]
    words = ["rate", f"pass@{n}", f"pass^{n}", f"gpass@{n}:0.5", *([f"delta^{n}"] if n > 1 else [])]
    one = estimate_all(Outcomes.from_matrix(table), words)
    other = estimate_all(Outcomes.from_matrix(moved), words)
    assert [to_data(made) for made in one] == [to_data(made) for made in other]


@settings(max_examples=max_examples(10))
@given(scored, st.integers(2, 4))
def test_a_suite_of_copies_has_the_same_value_and_a_narrower_interval(
    table: list[list[int]], copies: int
) -> None:
    n = len(table[0])
    # One task has the exact interval of its rate; two may have different rates.
    for about in ("new tasks", "these tasks") if len(table) > 1 else ("new tasks",):
        once = estimate(Outcomes.from_matrix(table), f"pass^{n}", about=about)
        more = estimate(Outcomes.from_matrix(table * copies), f"pass^{n}", about=about)
        assert more.value == pytest.approx(once.value, abs=1e-12)
        assert once.low is not None
        assert once.high is not None
        assert more.low is not None
        assert more.high is not None
        assert more.high - more.low <= once.high - once.low + 1e-6


@settings(max_examples=max_examples(20))
@given(scored, st.data())
def test_one_more_pass_never_lowers_an_end(table: list[list[int]], data: st.DataObject) -> None:
    failed = [(i, j) for i, row in enumerate(table) for j, v in enumerate(row) if v == 0]
    if not failed:
        return
    i, j = data.draw(st.sampled_from(failed))
    better = [list(row) for row in table]
    better[i][j] = 1
    n = len(table[0])
    for word in ("rate", f"pass@{n}", f"pass^{n}"):
        before = estimate(Outcomes.from_matrix(table), word)
        after = estimate(Outcomes.from_matrix(better), word)
        assert before.low is not None
        assert before.high is not None
        assert after.low is not None
        assert after.high is not None
        assert after.value >= before.value - 1e-12
        assert after.low >= before.low - 1e-9
        assert after.high >= before.high - 1e-9


@settings(max_examples=max_examples(15))
@given(scored)
def test_levels_are_nested(table: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(table)
    for about in ("new tasks", "these tasks"):
        ends = [estimate(outcomes, "pass^1", about=about, level=p) for p in (0.5, 0.8, 0.95, 0.99)]
        lows, highs = [made.low for made in ends], [made.high for made in ends]
        assert lows == sorted(lows, reverse=True)  # type: ignore[type-var]
        assert highs == sorted(highs)  # type: ignore[type-var]


def test_default_ks_are_powers_of_two_that_every_task_supports() -> None:
    for smallest in range(1, 20):
        outcomes = Outcomes.from_counts([smallest, 40], [0, 1])
        ks = default_ks(outcomes)
        assert list(ks) == [1 << i for i in range(6) if 1 << i <= smallest]
    lossy = Outcomes.from_counts([2, 8], [0, 1], missing=[6, 0])
    assert default_ks(lossy) == (1, 2, 4, 8)
    assert default_ks(lossy, "exclude") == (1, 2)


@settings(max_examples=max_examples(8))
@given(scored, st.data())
def test_a_comparison_of_two_and_one_of_three_runs_agree(
    table: list[list[int]], data: st.DataObject
) -> None:
    n = len(table[0])
    rows = st.lists(st.sampled_from([1, 0]), min_size=n, max_size=n)
    others = [data.draw(st.lists(rows, min_size=len(table), max_size=len(table))) for _ in range(2)]
    runs = [
        Run(name, name, Outcomes.from_matrix(matrix))
        for name, matrix in zip("abc", (table, *others), strict=True)
    ]
    together = compare_all(runs, f"pass@{n}")
    assert [(pair.a, pair.b) for pair in together.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in together.pairs:
        a, b = (next(run for run in runs if run.name == name) for name in (pair.a, pair.b))
        (alone,) = compare(a, b, f"pass@{n}", about="new tasks").results
        (found,) = pair.results
        assert (found.lift, found.value_a, found.value_b) == (
            alone.lift,
            alone.value_a,
            alone.value_b,
        )
        assert (found.wins, found.losses, found.ties) == (alone.wins, alone.losses, alone.ties)
        assert found.p_value == alone.p_value
        assert (found.low_alone, found.high_alone) == (alone.low, alone.high)
        assert found.low <= alone.low
        assert found.high >= alone.high
    # The lifts of three runs add up around the triangle.
    ab, ac, bc = (pair.results[0].lift for pair in together.pairs)
    assert ab + bc == pytest.approx(ac, abs=1e-12)


EDGES = {
    "one attempt at one task, passed": Outcomes.from_matrix([[1]]),
    "one attempt at one task, failed": Outcomes.from_matrix([[0]]),
    "one task, some passed": Outcomes.from_matrix([[1, 0, 1, 1]]),
    "all passed": Outcomes.from_counts(4, [4] * 6),
    "all failed": Outcomes.from_counts(4, [0] * 6),
    "one attempt each": Outcomes.from_counts(1, [1, 0, 1, 1, 0]),
    "ragged": Outcomes.from_counts([1, 2, 5, 8], [1, 0, 5, 3]),
    "some missing": Outcomes.from_counts([2, 3, 4], [1, 3, 0], missing=[2, 1, 0]),
    "one task without a verdict": Outcomes.from_counts([0, 4], [0, 2], missing=[4, 0]),
}


@pytest.mark.parametrize("name", list(EDGES))
def test_everything_can_be_asked_of_edge_tables_and_written_down(name: str) -> None:
    """No crash, no infinite or missing number, and what is written is what is read back."""
    outcomes = EDGES[name]
    made: list[object] = [outcomes, diagnose(outcomes)]
    for about in ("new tasks", "these tasks"):
        made += estimate_all(outcomes, ["rate", "pass^1", "delta^1"], about=about)
    made.append(forecast(outcomes, "pass^8"))
    made.append(gate(outcomes, ["pass^1 >= 0.5", "missing <= 50%"]))
    made.append(gate(outcomes, (), outcomes))
    made.append(compare(outcomes, outcomes, ["pass^1"]))
    if outcomes.n.max() > 1:
        made.append(passhat.plan_tasks(outcomes, half_width=0.2))
    for result in made:
        text = as_json(result)
        assert json.loads(text) == to_data(result)
        assert "NaN" not in text
        assert "Infinity" not in text
        assert str(result)


@pytest.mark.parametrize("name", list(EDGES))
def test_a_run_against_itself_is_never_better_or_worse(name: str) -> None:
    outcomes = EDGES[name]
    found = compare(outcomes, outcomes, "pass^1")
    for result in (*found.results, *found.these_tasks):
        assert (result.lift, str(result.claim)) == (0.0, "inconclusive")
        assert result.low <= 0 <= result.high
    same = gate(outcomes, "pass^1 >= base", outcomes).results[0]
    assert str(same.verdict) == "not settled"
    assert found.task_changes == ()
    default = gate(outcomes, (), outcomes)
    assert str(default.verdict) != "refuted"


@pytest.mark.parametrize("name", [name for name, edge in EDGES.items() if edge.n.min() > 0])
@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_k_beyond_the_attempts_is_refused_with_the_tasks_or_answered(name: str, k: int) -> None:
    outcomes = EDGES[name]
    n = outcomes.n + outcomes.missing
    if k <= n.min():
        assert 0 <= estimate(outcomes, f"pass^{k}", level=None).value <= 1
        return
    with pytest.raises(TooFewAttempts) as caught:
        estimate(outcomes, f"pass^{k}")
    short = [task for task, size in zip(outcomes.tasks, n, strict=True) if size < k]
    assert list(caught.value.tasks) == short
    assert (caught.value.k, caught.value.largest_k) == (k, int(n.min()))
    if len(short) < len(outcomes):
        kept = estimate(outcomes, f"pass^{k}", drop_short=True)
        assert kept.tasks == len(outcomes) - len(short)
        assert kept.value == pytest.approx(
            estimate(outcomes.take(np.flatnonzero(n >= k)), f"pass^{k}").value
        )
        assert "left out" in kept.notes[0]
