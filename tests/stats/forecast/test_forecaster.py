"""forecast(): the band, the lines inside it, and what a reader is told."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue, TooFewAttempts
from passhat.stats.forecast import FORMULAS, forecast, forecast_all, forecast_curve, keeps
from passhat.stats.outcomes import Outcomes, Run

SUITE = Outcomes.from_counts(8, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8] * 4)


def test_beyond_n_a_band_and_lines() -> None:
    found = forecast(SUITE, "pass@80")
    assert 0.5 < found.low < found.high <= 1
    assert found.observed is None
    assert set(found.lines) == {
        *("power law", "beta-binomial", "zero-inflated beta-binomial"),
        *("logit-normal", "log-logit"),
    }
    drawn = [value for value in found.lines.values() if value is not None]
    assert all(found.low <= value <= found.high for value in drawn)
    assert str(found).startswith("pass@80 in [0.")
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["metric"] == "pass@80"


def test_lines_of_pass_hat_are_those_of_the_mirrored_suite() -> None:
    mirrored = Outcomes.from_counts(8, 8 - SUITE.c)
    hat, at = forecast(SUITE, "pass^80"), forecast(mirrored, "pass@80")
    assert set(hat.lines) == {
        *("power law", "beta-binomial", "one-inflated beta-binomial", "logit-normal"),
    }
    for name in ("power law", "beta-binomial", "logit-normal"):
        there = at.lines[name]
        assert there is not None
        assert hat.lines[name] == pytest.approx(1 - there, abs=1e-9)
    assert set(hat.lines) | set(at.lines) <= set(FORMULAS)


def test_only_distributions_of_p_speak_about_gpass() -> None:
    assert set(forecast(SUITE, "gpass@50:0.5").lines) == {
        *("beta-binomial", "zero-inflated beta-binomial", "logit-normal"),
    }


def test_the_lines_find_their_own_family() -> None:
    rng = np.random.default_rng(7)
    outcomes = Outcomes.from_counts(20, rng.binomial(20, rng.beta(0.6, 1.4, 20_000)))
    truth = passhat.exact(rng.beta(0.6, 1.4, 10**6), "pass@200")
    assert forecast(outcomes, "pass@200").lines["beta-binomial"] == pytest.approx(truth, abs=0.01)
    logits = rng.normal(-2, 1.5, 1_000_000)
    rates = 1 / (1 + np.exp(-logits))
    outcomes = Outcomes.from_counts(20, rng.binomial(20, rates[:20_000]))
    normal = forecast(outcomes, "pass@200").lines["logit-normal"]
    assert normal == pytest.approx(passhat.exact(rates, "pass@200"), abs=0.01)


def test_a_line_outside_the_band_is_not_drawn() -> None:
    """5,000 tasks, half of them impossible: a beta-binomial climbs where nothing can."""
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(5000) < 2500, 0.0, 0.6)
    found = forecast(Outcomes.from_counts(16, rng.binomial(16, rates)), "pass@32")
    outside = [name for name, value in found.lines.items() if value is None]
    assert outside
    assert all(any(f"the {name} line says" in note for note in found.notes) for name in outside)


@settings(max_examples=max_examples(12))
@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.integers(1, 6))
def test_within_n_the_band_holds_what_was_observed(passed: list[int], k: int) -> None:
    outcomes = Outcomes.from_counts(6, passed)
    for found in forecast_all(outcomes, [f"pass@{k}", f"pass^{k}"]):
        seen = passhat.estimate(outcomes, found.metric, level=None).value
        assert found.observed == pytest.approx(seen)
        assert found.low - 1e-9 <= seen <= found.high + 1e-9


def test_within_n_the_band_tells_the_story_of_the_interval() -> None:
    for word in ("pass@1", "pass^4", "pass@8"):
        band, interval = forecast(SUITE, word), passhat.estimate(SUITE, word)
        assert interval.low is not None
        assert interval.high is not None
        assert band.low == pytest.approx(interval.low, abs=0.05)
        assert band.high == pytest.approx(interval.high, abs=0.05)


def test_attempts_that_repel_each_other_extend_the_band() -> None:
    found = forecast(Outcomes.from_counts(8, [4] * 1000), "pass^2")
    assert found.low == pytest.approx(6 / 28)
    assert any("extended to the observed value" in note for note in found.notes)


def test_one_attempt_and_all_alike_draw_no_line() -> None:
    once = forecast(Outcomes.from_counts(1, [0, 1, 1]), "pass^3")
    assert not once.lines
    assert any("one attempt per task" in note for note in once.notes)
    alike = forecast(Outcomes.from_counts(4, [4, 4, 4]), "pass^30")
    assert alike.high == 1
    assert any("ended alike" in note for note in alike.notes)


def test_far_beyond_n_it_warns() -> None:
    assert not forecast(SUITE, "pass@80").warnings
    far = forecast(SUITE, "pass@81")
    assert far.warnings[0].startswith("k = 81 is 10 times the 8 attempts per task")


def test_missing_attempts_widen_the_band() -> None:
    bound, whole = (
        forecast(Outcomes.from_counts(6, [5, 6, 0, 3] * 5, missing=lost), "pass^12")
        for lost in ([2] * 20, None)
    )
    assert bound.low <= whole.low + 0.05
    assert bound.high >= whole.high - 0.05
    outcomes = Outcomes.from_counts(6, [5, 6, 0, 3] * 5, missing=[2] * 20)
    single = [forecast(outcomes, "pass^12", missing=policy) for policy in ("fail", "exclude")]
    assert bound.low <= min(one.low for one in single) + 1e-3
    assert bound.high >= max(one.high for one in single) - 1e-3
    assert any("lines count them as failed" in note for note in bound.notes)


def test_nothing_scored_is_refused_with_the_way_out() -> None:
    outcomes = Outcomes.from_counts([0, 0], [0, 0], missing=[3, 3])
    assert forecast(outcomes, "pass^9").high == 1
    with pytest.raises(InvalidValue, match=r"no attempt has a verdict.*missing='bound'"):
        forecast(outcomes, "pass^9", missing="exclude")


def test_a_curve_and_several_at_once() -> None:
    curve = forecast_curve(SUITE, "pass@20")
    assert [one.metric.name for one in curve] == [
        "pass@1",
        *(f"pass@{k}" for k in (2, 4, 8, 16, 20)),
    ]
    assert np.all(np.diff([one.low for one in curve]) > -1e-3)
    assert [one.metric.name for one in forecast_curve(SUITE, "rate")] == ["rate"]
    assert forecast_all(SUITE, []) == ()


def test_a_higher_level_is_wider_and_a_run_will_do() -> None:
    narrow = forecast(Run("r", "a", SUITE), "pass^16", level=0.8)
    wide = forecast(SUITE, "pass^16", level=0.99)
    assert wide.low <= narrow.low < narrow.high <= wide.high


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("delta^4", "two averages.*Forecast pass\\^4"),
        ("first@9", "order of attempts.*Forecast pass@9"),
        ("window^3", "order of attempts.*Forecast pass\\^3"),
        ("pass@10000000000", "at most 1,000,000,000"),
    ],
)
def test_what_cannot_be_forecast(word: str, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        forecast(SUITE, word)


def test_a_refused_estimate_names_the_forecast() -> None:
    with pytest.raises(TooFewAttempts, match=r"or forecast pass@10"):
        passhat.estimate(SUITE, "pass@10")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("pass^8", "of 10,000 users who each come 8 times, .* never see a failure"),
        ("pass@8", "of 10,000 users who each try 8 times, .* succeed at least once"),
        ("gpass@8:0.5", "of 10,000 users who each come 8 times, .* at least 4 times"),
        ("rate", "who each come once"),
    ],
)
def test_in_words(word: str, says: str) -> None:
    assert re.search(says, forecast(SUITE, word).users())


# -- on real data ----------------------------------------------------------------------------------


def test_humaneval_from_ten_samples(shared_data: Path) -> None:
    passed: dict[str, int] = {}
    with gzip.open(shared_data / "humaneval_codegen16b_t08.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            if int(row["trial"]) < 10:
                passed[row["task"]] = passed.get(row["task"], 0) + int(row["success"])
    found = forecast(Outcomes.from_counts(10, list(passed.values())), "pass@100")
    assert found.low < 0.7378 < found.high


def test_evalperf_from_ten_of_a_hundred(shared_data: Path) -> None:
    counts: dict[str, list[int]] = {}
    with (shared_data / "evalperf_counts.csv").open() as lines:
        for row in csv.DictReader(lines):
            if row["n"] == "100":
                counts.setdefault(row["model"], []).append(int(row["c"]))
    rng = np.random.default_rng(10)
    assert len(counts) > 30
    for model, passed in counts.items():
        thinned = rng.hypergeometric(passed, 100 - np.array(passed), 10)
        whole = Outcomes.from_counts(100, passed)
        for found in forecast_all(Outcomes.from_counts(10, thinned), ["pass@100", "pass^100"]):
            truth = passhat.estimate(whole, found.metric, level=None).value
            assert found.low <= truth <= found.high, (model, found.metric)


def test_clusters_widen_the_band() -> None:
    passed = [4] * 10 + [0] * 10 + [4] * 10 + [0] * 10 + [2] * 10 + [0] * 10
    labels = {"repo": [f"r{i // 10}" for i in range(60)], "own": [f"t{i}" for i in range(60)]}
    outcomes = Outcomes.from_counts(4, passed, labels=labels)
    alone = forecast(outcomes, "pass^16")
    together = forecast(outcomes, "pass^16", cluster="repo")
    single = forecast(outcomes, "pass^16", cluster="own")
    assert together.low < alone.low
    assert together.high > alone.high
    assert together.high - together.low > 2 * (alone.high - alone.low)
    # Clusters of one task each are the tasks themselves.
    assert (single.low, single.high) == pytest.approx((alone.low, alone.high), abs=0.01)
    assert any("only 6 clusters of repo" in text for text in together.warnings)
    assert "clusters by repo" in together.method
    assert keeps(outcomes, 0.2, cluster="repo").surely is None
    with pytest.raises(InvalidValue, match="has no effect"):
        forecast(outcomes, "pass^16", drop_short=True)
    alike = Outcomes.from_counts(4, [1, 2], labels={"same": ["x", "x"]})
    with pytest.raises(InvalidValue, match="share one same"):
        forecast(alike, "pass^8", cluster="same")
