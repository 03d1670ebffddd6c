"""compare(): reference values, missing attempts, curves, forms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import passhat
from passhat import Outcomes, Run, compare
from passhat._serialize import to_data
from passhat.errors import InvalidValue, MetricError
from passhat.stats.compare import Claim
from passhat.stats.compare.paired_comparison import Use, Value, deployment_line
from passhat.stats.outcomes import Attempts

FORTY = (
    Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [0] * 8 + [1] * 5),
    Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [1] * 8 + [0] * 5),
)


def test_the_forty_task_example() -> None:
    found = compare(*FORTY).results[0]
    assert found.lift == pytest.approx(0.075)
    assert (found.low, found.high) == pytest.approx((-0.128, 0.273), abs=5e-4)
    assert (found.wins, found.losses, found.ties) == (8, 5, 27)
    assert found.p_value == pytest.approx(0.5811, abs=5e-5)
    assert found.claim is Claim.INCONCLUSIVE


def test_compare_is_the_public_function() -> None:
    assert passhat.compare is compare
    assert isinstance(passhat.compare(*FORTY), passhat.Comparison)


def test_json_has_exactly_the_promised_shape() -> None:
    data = compare(*FORTY, ["pass^1", "rate"]).to_dict()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["schema"] == "passhat.comparison/1"
    assert (again["a"], again["b"]) == ("A", "B")
    assert again["tasks"] == {"paired": 40, "only_a": 0, "only_b": 0}
    assert again["protocol_differences"] == []
    wanted = ["metric", "about", "lift", "low", "high", "level", "p_value", "alternative", "wins"]
    wanted += ["losses", "ties", "claim", "headline", "sentence", "method"]
    assert [list(result)[: len(wanted)] for result in again["results"]] == [wanted] * 2


def test_several_metrics_are_widened_together_and_say_so() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 1, 60)
    a = Outcomes.from_counts(8, rng.binomial(8, p))
    b = Outcomes.from_counts(8, rng.binomial(8, np.minimum(1, p + 0.1)))
    alone, several = compare(a, b, "pass^4").results[0], compare(a, b, ["pass^4", "pass@4"])
    both = several.find("pass^4")
    assert both is not None
    assert both.low < alone.low
    assert (both.low_alone, both.high_alone) == (alone.low, alone.high)
    assert "Adjusted for 2 metrics." in both.sentence
    assert "simultaneous over 2 metrics" in str(both.method)
    assert several.find("pass^8") is None


def test_results_are_the_same_every_time() -> None:
    rng = np.random.default_rng(3)
    a, b = (Outcomes.from_counts(8, rng.integers(0, 9, 50)) for _ in "ab")
    words = ["pass^1", "pass^4"]
    assert compare(a, b, words).to_dict() == compare(a, b, words).to_dict()


def test_missing_attempts_must_not_decide() -> None:
    """B passes everything; five missing attempts of A cannot turn that, twenty-eight could."""
    b = Outcomes.from_counts(1, [1] * 30)
    some = Outcomes.from_counts([1] * 25 + [0] * 5, [0] * 30, missing=[0] * 25 + [1] * 5)
    most = Outcomes.from_counts([1] * 2 + [0] * 28, [0] * 30, missing=[0] * 2 + [1] * 28)
    shown, open_ = compare(some, b).results[0], compare(most, b).results[0]
    assert shown.claim is Claim.IMPROVEMENT
    assert shown.lift == 1.0
    assert shown.lift_lowest == pytest.approx(25 / 30)
    assert "5 attempts without a verdict" in shown.sentence
    assert open_.claim is Claim.INCONCLUSIVE
    assert compare(most, b, missing="fail").results[0].claim is Claim.IMPROVEMENT


def test_missing_attempts_that_could_turn_the_lift_are_to_be_settled_first() -> None:
    a = Outcomes.from_counts([1] * 6 + [0] * 4, [0] * 10, missing=[0] * 6 + [1] * 4)
    b = Outcomes.from_counts(1, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    found = compare(a, b).results[0]
    assert found.p_value == 1.0
    assert found.lift_lowest < 0 < found.lift_highest
    assert "Judge or repeat those first" in found.sentence
    one_sided = compare(a, b, alternative="greater").results[0]
    assert "unfavorable extreme" in str(one_sided.method)
    assert one_sided.p_value is not None
    assert one_sided.p_value > 0.5


def test_missing_left_out_needs_the_attempts_that_are_left() -> None:
    a = Outcomes.from_counts([2, 1], [1, 1], missing=[0, 1])
    b = Outcomes.from_counts([2, 2], [2, 2])
    found = compare(a, b, missing="exclude")
    assert found.results[0].lift == pytest.approx(0.25)
    assert "missing left out" in str(found.results[0].method)
    dropped = compare(a, b, "pass^2", missing="exclude", drop_short=True)
    assert dropped.paired == 1
    assert any("left out" in note for note in dropped.notes)


def test_the_ranking_flips_over_k_and_the_curve_says_where() -> None:
    """Steady on every task wins at one try; always or never wins from two tries on."""
    steady = Outcomes.from_counts(8, [5] * 40)
    split = Outcomes.from_counts(8, [8] * 20 + [0] * 20)
    found = compare(steady, split, ["pass^1", "pass@2"])
    hat = next(curve for curve in found.curves if curve.family == "pass^k")
    assert [flip.family for flip in found.flips] == ["pass^k"]
    flip = hat.flips[0]
    assert (flip.last_k, flip.first_k) == (1, 2)
    assert (flip.leader_before, flip.leader_after) == ("A", "B")
    assert not flip.shown
    assert "the ranking flips over k: A leads up to k = 1" in str(flip)
    assert all(point.low <= point.lift <= point.high for point in hat.points)
    assert str(hat).startswith("lift of pass^k")


def test_a_flip_that_the_band_shows_on_both_sides() -> None:
    steady = Outcomes.from_counts(8, [6] * 400)
    split = Outcomes.from_counts(8, [8] * 200 + [0] * 200)
    flip = compare(steady, split).flips[0]
    assert flip.shown
    assert "shows both" in str(flip)


def test_one_attempt_has_no_curve_and_the_rate_has_that_of_pass_hat() -> None:
    assert compare(*FORTY).curves == ()
    outcomes = Outcomes.from_counts(4, [1, 2, 3])
    assert [curve.family for curve in compare(outcomes, outcomes, "rate").curves] == ["pass^k"]


def test_a_long_curve_is_thinned() -> None:
    outcomes = Outcomes.from_counts(100, [10, 50, 90])
    ks = [point.k for point in compare(outcomes, outcomes).curves[0].points]
    assert (len(ks), ks[0], ks[-1]) == (32, 1, 100)


def test_a_small_p_value_beside_an_open_interval_is_explained() -> None:
    a = Outcomes.from_counts(8, [4] * 20)
    b = Outcomes.from_counts(8, [5] * 12 + [4] * 8)
    found = compare(a, b)
    assert (found.results[0].p_value or 1) < 0.05
    assert found.results[0].claim is Claim.INCONCLUSIVE
    assert any("the interval decides" in note for note in found.notes)


def test_what_is_used_up_stands_apart_from_the_evidence() -> None:
    def run(name: str, cost: float, passed: list[int]) -> Run:
        rows = [
            {"task": f"t{i}", "trial": 0, "success": ok, "cost": cost}
            for i, ok in enumerate(passed)
        ]
        table = Outcomes.from_records(rows)
        attempts = Attempts(
            tuple(table.tasks),
            np.arange(len(rows) + 1),
            np.array(passed, np.int8),
            measures={"cost": np.array([cost] * (len(rows) - 1) + [np.nan])},
        )
        return Run(name, name, table, attempts=attempts)

    found = compare(run("old", 0.1, [1, 0, 1, 0]), run("new", 0.4, [0, 0, 0, 1]))
    value = found.deployment[0]
    assert value.a is not None
    assert value.b is not None
    assert value.a.attempts == 3
    assert value.a.per_attempt == pytest.approx(0.1)
    assert value.a.per_solved == pytest.approx(0.15)
    assert value.b.per_solved is None
    assert found.deployment_text.startswith(
        "cost per attempt 0.1 against 0.4, per solved task 0.15 against –"
    )
    assert "cost" not in found.results[0].sentence
    assert found.to_dict()["deployment"] == to_data([value])


def test_nothing_recorded_says_so() -> None:
    assert "neither cost" in deployment_line(compare(*FORTY).deployment)


def test_large_measures_are_written_with_thousands() -> None:
    use = Use(2, 12345.6, None)
    text = str(Value("tokens", use, None))
    assert text == "tokens per attempt 12,346 against –, per solved task – against –"


def test_runs_of_one_name_are_told_apart() -> None:
    a, b = (Run("same", "same", outcomes) for outcomes in FORTY)
    assert (compare(a, b).a, compare(a, b).b) == ("same (A)", "same (B)")


def test_tasks_in_one_run_only_are_counted_and_named() -> None:
    a = Outcomes.from_counts(1, [1, 0, 1], ["x", "y", "z"])
    b = Outcomes.from_counts(1, [1, 1], ["x", "y"])
    found = compare(a, b)
    assert found.pairing_text == "2 paired tasks; 1 task only in A (z)"
    assert found.to_dict()["tasks"] == {"paired": 2, "only_a": 1, "only_b": 0}


def test_shown_in_a_notebook() -> None:
    html = compare(*FORTY)._repr_html_()
    assert "<table>" in html
    assert "inconclusive" in html
    assert "<table>" in compare(*FORTY).results[0]._repr_html_()


def test_mistakes_are_refused() -> None:
    with pytest.raises(MetricError):
        compare(*FORTY, "pas^1")
    with pytest.raises(InvalidValue, match="level"):
        compare(*FORTY, level=95)
    with pytest.raises(InvalidValue, match="alternative"):
        compare(*FORTY, alternative="better")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="at least one metric"):
        compare(*FORTY, [])
    with pytest.raises(InvalidValue, match=r"a matrix of tasks x attempts .* shape \(2,\)"):
        compare([1, 0], FORTY[1])
    with pytest.raises(InvalidValue, match="got an int"):
        compare(7, FORTY[1])
