"""The claim follows from the interval, and the sentence leaves nothing out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, compare
from passhat.protocol import Alternative
from passhat.stats.compare import Claim, Interval
from passhat.stats.compare.claims import decide, points


@pytest.mark.parametrize(
    ("low", "high", "claim"),
    [
        (0.01, 0.2, Claim.IMPROVEMENT),
        (-0.2, -0.01, Claim.REGRESSION),
        (0.0, 0.2, Claim.INCONCLUSIVE),
        (-0.2, 0.0, Claim.INCONCLUSIVE),
    ],
)
def test_only_strictly_above_or_below_zero_is_a_claim(
    low: float, high: float, claim: Claim
) -> None:
    assert decide(Interval(low, high)) is claim


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.075, "+7.5"), (-0.1, "-10.0"), (0.0, "0.0"), (0.0004, "+0.04"), (-1e-12, "0.000000")],
)
def test_points_never_hide_a_sign(share: float, text: str) -> None:
    assert points(share) == text


def _six() -> tuple[Outcomes, Outcomes]:
    return Outcomes.from_counts(1, [1, 1, 1, 0, 0, 0]), Outcomes.from_counts(1, [1, 1, 1, 1, 0, 0])


def test_six_tasks_with_one_win_show_nothing() -> None:
    found = compare(*_six(), alternative="greater").results[0]
    assert (found.wins, found.losses, found.ties) == (1, 0, 5)
    assert found.p_value == pytest.approx(0.5)
    assert found.claim is Claim.INCONCLUSIVE


def test_an_inconclusive_sentence_says_size_interval_and_tasks() -> None:
    text = compare(*_six()).results[0].sentence
    for part in (
        "Inconclusive on new tasks: pass^1 of B is 16.7 points above that of A",
        "95% interval of the lift, -39.3 to +64.1 points, includes zero",
        "6 paired tasks, protocol ",
    ):
        assert part in text


def test_clear_differences_are_claimed_either_way() -> None:
    low, high = Outcomes.from_counts(1, [0] * 30), Outcomes.from_counts(1, [1] * 30)
    up, down = compare(low, high).results[0], compare(high, low).results[0]
    assert up.claim is Claim.IMPROVEMENT
    assert up.sentence.startswith(
        "Evidence of improvement on new tasks: pass^1 of B is 100.0 points above"
    )
    assert down.claim is Claim.REGRESSION
    assert "100.0 points below that of A" in down.sentence
    assert "lies below zero" in down.sentence


def test_a_one_sided_alternative_never_claims_the_other_side() -> None:
    low, high = Outcomes.from_counts(1, [0] * 30), Outcomes.from_counts(1, [1] * 30)
    found = compare(high, low, alternative="greater").results[0]
    assert found.claim is Claim.INCONCLUSIVE
    assert "does not exclude zero" in found.sentence
    assert "settled" not in found.sentence
    assert compare(high, low, alternative="less").results[0].claim is Claim.REGRESSION
    assert compare(low, high, alternative="greater").results[0].interval_text().startswith("at lea")


def test_equal_results_are_level_and_no_number_of_tasks_is_promised() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2, 3, 4])
    found = compare(outcomes, outcomes).results[0]
    assert found.lift == 0
    assert "level with that of A" in found.sentence
    assert found.tasks_needed is None
    assert found.p_value == 1.0


@settings(max_examples=max_examples(12))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30),
    st.sampled_from(["two-sided", "greater", "less"]),
)
def test_claim_and_interval_always_agree(
    rows: list[tuple[int, int]], alternative: Alternative
) -> None:
    a = Outcomes.from_counts(4, [x for x, _ in rows])
    b = Outcomes.from_counts(4, [y for _, y in rows])
    for found in compare(a, b, ["pass^1", "pass^4"], alternative=alternative).results:
        assert found.claim is decide(Interval(found.low, found.high))
        assert found.low <= found.low_alone <= found.lift <= found.high_alone <= found.high
        assert found.lift == pytest.approx(found.value_b - found.value_a)
        assert found.p_value is not None
        assert 0 < found.p_value <= 1


def test_a_name_with_a_period_stays_whole_in_every_part() -> None:
    """The page of version 0.1.0 split the sentence after ``base (v1). ``."""
    name = "base (v1). old"
    a = Run(name, name, Outcomes.from_counts(1, [0] * 30))
    b = Run("new", "new", Outcomes.from_counts(1, [1] * 30))
    result = compare(a, b, ["pass^1"]).results[0]
    assert name in result.claim_sentence
    assert result.claim_sentence.endswith(").")
    assert result.remarks == ()
    assert result.headline == (
        f"new beats {name}: pass^1 100% against 0%, +100 points (77 to 100), 30 tasks."
    )


def test_the_headline_names_who_is_worse_and_what_is_not_shown() -> None:
    low, high = Outcomes.from_counts(1, [0] * 30), Outcomes.from_counts(1, [1] * 30)
    assert compare(high, low).results[0].headline.startswith("B is worse than A: pass^1 0% against")
    assert compare(*_six()).results[0].headline.startswith("No difference shown between B and A")
