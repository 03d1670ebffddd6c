"""Forecasts on little data: one quantity under three names, sentences, clusters, inverses."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, estimate
from passhat.errors import InvalidValue
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.forecast import forecast, forecast_all, forecast_curve, keeps, reaches
from passhat.stats.forecast.band import cutoff_for, rare_tasks
from passhat.stats.forecast.inverse import _first
from passhat.stats.forecast.lines import lines_of
from passhat.stats.forecast.views import design_effect
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms


def _count(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


@settings(max_examples=max_examples(8))
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=12))
    )
)
def test_one_quantity_under_three_names_has_one_band(suite: tuple[int, list[int]]) -> None:
    """The cutoff depended on the name: never passed for pass@1, always passed for pass^1."""
    outcomes = Outcomes.from_counts(*suite)
    bands = [forecast(outcomes, word) for word in ("pass^1", "pass@1", "rate")]
    for band in bands[1:]:
        assert (band.low, band.high) == pytest.approx((bands[0].low, bands[0].high), abs=1e-6)
    seen = estimate(outcomes, "pass^1", level=None).value
    assert bands[0].low <= seen <= bands[0].high
    assert bands[0].observed == pytest.approx(seen)


def test_rare_tasks_by_hand() -> None:
    cells = Histogram(np.array([4, 4, 4]), np.array([0, 2, 4]), np.array([2, 5, 9]))
    assert rare_tasks(cells, _count("pass@8")) == 2  # never passed, against 14 others
    assert rare_tasks(cells, _count("pass^8")) == 7  # not always passed, against 9
    assert rare_tasks(cells, _count("gpass@8:0.5")) == 2
    for word in ("pass@1", "pass^1", "rate"):
        assert rare_tasks(cells, _count(word)) == 2


def test_the_cutoff_between_its_two_ends() -> None:
    assert cutoff_for(0.95, 0) == pytest.approx(3.0)
    assert cutoff_for(0.95) == pytest.approx(2.5)
    values = [cutoff_for(0.95, rare) for rare in (0, 1, 3, 10, 100)]
    assert values == sorted(values, reverse=True)
    assert cutoff_for(0.95, 3) == pytest.approx(2.75)
    # A share of tasks of which none was seen in T: (1 - share)^T >= e^-3 holds in .9502.
    assert 1 - math.exp(-cutoff_for(0.95, 0)) == pytest.approx(0.95, abs=1e-3)


@pytest.mark.parametrize("tasks", [1, 3, 20])
@pytest.mark.parametrize("word", ["pass@1", "pass@50", "pass^50"])
def test_nothing_but_failures_or_passes(tasks: int, word: str) -> None:
    """Beyond what one kind of task shows, the band knows only how rare the other kind is."""
    none = forecast(Outcomes.from_counts(2, [0] * tasks), word)
    assert none.low == pytest.approx(0.0, abs=1e-6)
    everything = forecast(Outcomes.from_counts(2, [2] * tasks), word)
    assert everything.high == pytest.approx(1.0, abs=1e-6)
    if word == "pass@50":
        # Rates too small to be seen in two attempts may still add up in fifty.
        assert none.high > 1 - math.exp(-2.5 / tasks) - 1e-6
    assert none.lines == {}
    assert any("all attempts ended alike" in note for note in none.notes)


def test_one_attempt_at_one_task_is_answered_without_a_claim() -> None:
    found = forecast(Outcomes.from_counts(1, [1]), "pass^100")
    assert (found.low, found.high) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert "one attempt per task does not tell one shape from another" in " ".join(found.notes)
    assert "k = 100 is 100 times the 1 attempt per task" in found.warnings[0]
    assert str(found) == "pass^100 in [0.000, 1.000] (95% band, new tasks; 1 task, 1 attempt)"
    assert (
        found.users() == "of 10,000 users who each come 100 times, 0 to 10,000 never see a failure"
    )
    precise = forecast(Outcomes.from_counts(1, [1]), "pass^2", level=0.995)
    assert "(99.5% band" in str(precise)


@settings(max_examples=max_examples(6))
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12))
def test_bands_follow_k_and_nest_in_the_level(passes: list[int]) -> None:
    outcomes = Outcomes.from_counts(4, passes)
    ats = forecast_all(outcomes, ["pass@2", "pass@8", "pass@64"])
    hats = forecast_all(outcomes, ["pass^2", "pass^8", "pass^64"])
    for curve, sign in ((ats, 1), (hats, -1)):
        for before, after in pairwise(curve):
            # The cutoff is one for all k, so both ends move one way.
            assert sign * (after.low - before.low) >= -2e-4
            assert sign * (after.high - before.high) >= -2e-4
    narrow = forecast(outcomes, "pass@8", level=0.5)
    assert ats[1].low <= narrow.low + 2e-4
    assert narrow.high <= ats[1].high + 2e-4


def test_missing_attempts_reach_over_both_fills() -> None:
    lost = Outcomes.from_counts([3, 3, 4], [1, 3, 2], missing=[1, 1, 0])
    found = forecast(lost, "pass@16")
    for fill in (0, 1):
        filled = Outcomes.from_counts(4, [1 + fill, 3 + fill, 2])
        band = forecast(filled, "pass@16")
        assert found.low <= band.low + 2e-4
        assert band.high <= found.high + 2e-4
    assert "missing attempts: bound" in found.method
    assert any("count them as failed" in note for note in found.notes)
    left_out = forecast(lost, "pass@16", missing="exclude")
    same = forecast(Outcomes.from_counts([3, 3, 4], [1, 3, 2]), "pass@16")
    assert (left_out.low, left_out.high) == pytest.approx((same.low, same.high), abs=1e-6)


def test_the_design_effect_of_copies_and_of_clusters_of_one() -> None:
    rng = np.random.default_rng(1)
    passes = rng.binomial(4, rng.beta(0.7, 0.7, 30))
    labels = {"copy": [f"c{i}" for i in range(30) for _ in range(5)]}
    copied = Outcomes.from_counts(4, np.repeat(passes, 5), labels=labels)
    # Five copies of each: the variance of the mean is five times as large, t(29) a little more.
    assert 5 < design_effect(copied, Terms(cluster="copy")) < 6
    single = Outcomes.from_counts(4, passes, labels={"own": [f"t{i}" for i in range(30)]})
    assert 1 <= design_effect(single, Terms(cluster="own")) < 1.2
    assert design_effect(single, Terms()) == 1.0


@pytest.mark.parametrize("word", ["pass@", "pass^"])
def test_lines_through_a_known_distribution(word: str) -> None:
    """Difficulty from Beta(2, 3), many tasks: the beta-binomial line finds the truth."""
    rng = np.random.default_rng(2)
    cells = Outcomes.from_counts(10, rng.binomial(10, rng.beta(2, 3, 4000))).histogram()
    (line,) = lines_of(cells, [_count(f"{word}40")])
    k = np.arange(40)
    failed = float(np.prod((3 + k) / (5 + k)))
    passed = float(np.prod((2 + k) / (5 + k)))
    truth = 1 - failed if word == "pass@" else passed
    assert line["beta-binomial"] == pytest.approx(truth, abs=0.02)


def test_a_line_at_an_observed_k_is_near_what_was_observed() -> None:
    outcomes = Outcomes.from_counts(8, list(range(9)) * 20)
    words = ("pass@1", "pass@4")
    lines = lines_of(outcomes.histogram(), [_count(word) for word in words])
    for word, line in zip(words, lines, strict=True):
        value = estimate(outcomes, word, level=None).value
        assert set(line) >= {"power law", "beta-binomial", "logit-normal", "log-logit"}
        for drawn in line.values():
            assert drawn == pytest.approx(value, abs=0.05)


def test_no_line_where_the_data_tell_no_shape() -> None:
    for outcomes in (
        Outcomes.from_counts(1, [0, 1, 1]),
        Outcomes.from_counts(4, [4, 4]),
        Outcomes.from_counts(4, [0]),
    ):
        assert lines_of(outcomes.histogram(), [_count("pass@9"), _count("pass^9")]) == [{}, {}]


def test_curves_end_at_their_own_k() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2, 3])
    assert [f.metric.name for f in forecast_curve(outcomes, "pass@6")] == [
        *("pass@1", "pass@2", "pass@4", "pass@6"),
    ]
    assert [f.metric.name for f in forecast_curve(outcomes, "rate")] == ["rate"]
    assert [f.metric.name for f in forecast_curve(outcomes, "pass^1")] == ["pass^1"]


@pytest.mark.parametrize("target", [0.3, 0.7])
def test_both_inverses_agree_with_the_band_on_each_side(target: float) -> None:
    outcomes = Outcomes.from_counts(6, [0, 1, 3, 4, 5, 6, 6, 2] * 4)
    at = reaches(outcomes, target)
    assert at.possibly is not None
    assert forecast(outcomes, f"pass@{at.possibly}").high >= target - 2e-4
    if at.possibly > 1:
        assert forecast(outcomes, f"pass@{at.possibly - 1}").high < target + 2e-4
    if at.surely is not None and at.surely < 100:
        assert at.surely >= at.possibly
        assert forecast(outcomes, f"pass@{at.surely}").low >= target - 2e-4
    hat = keeps(outcomes, target)
    if hat.surely is not None:
        assert forecast(outcomes, f"pass^{hat.surely}").low >= target - 2e-4
        assert hat.possibly is not None
        assert hat.possibly >= hat.surely


@pytest.mark.parametrize("turn", [1, 2, 99, 101, 12_345, 999_999, 1_000_000])
def test_a_large_k_is_rounded_to_the_side_that_is_asked_for(turn: int) -> None:
    """To one in a hundred beyond 100, exactly below."""
    later, sooner = (_first(lambda k: k >= turn, careful=careful) for careful in (True, False))
    assert later is not None
    assert sooner is not None
    assert sooner <= turn <= later
    if turn <= 99:
        assert sooner == later == turn
    else:
        assert later <= 1.02 * turn
        assert sooner >= turn / 1.02
    assert _first(lambda _k: False, careful=True) is None


def test_a_sure_agent_keeps_its_promise_to_the_furthest_k_only_possibly() -> None:
    found = keeps(Outcomes.from_counts(8, [8] * 20), 0.8)
    assert found.possibly == found.furthest
    assert "possibly up to k = 1,000,000 and beyond" in str(found)
    assert found.surely is not None
    assert found.surely < 1000
    never = reaches(Outcomes.from_counts(8, [0] * 20), 0.9)
    assert "surely at no k up to 1,000,000" in str(never)


@pytest.mark.parametrize("target", [0.0, 1.0, -1, math.nan])
def test_targets_outside_are_refused(target: float) -> None:
    for inverse in (reaches, keeps):
        with pytest.raises(InvalidValue, match="between 0 and 1"):
            inverse(Outcomes.from_counts(2, [1]), target)
