"""The exact conditional test in strata, against scipy, and its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from scipy.stats.contingency import odds_ratio

from hypothesis_profiles import max_examples
from passhat.stats.why.stratified import Stratified, Stratum, choose_testable


@st.composite
def strata(draw: st.DrawFn) -> Stratum:
    n = draw(st.integers(2, 12))
    failed, with_event = draw(st.integers(1, n - 1)), draw(st.integers(1, n - 1))
    low, high = max(0, failed + with_event - n), min(failed, with_event)
    return Stratum(n, failed, with_event, draw(st.integers(low, high)))


@settings(max_examples=max_examples(25), deadline=None)
@given(strata())
def test_one_stratum_is_fishers_conditional_table(stratum: Stratum) -> None:
    test = Stratified((stratum,))
    chances = hypergeom(stratum.attempts, stratum.failed, stratum.with_event)
    at_most = chances.cdf(stratum.failed_with_event)
    at_least = chances.sf(stratum.failed_with_event - 1)
    assert test.p_value == pytest.approx(min(1.0, 2 * min(at_most, at_least)))
    others = stratum.attempts - stratum.with_event
    table = [
        [stratum.failed_with_event, stratum.with_event - stratum.failed_with_event],
        [
            stratum.failed - stratum.failed_with_event,
            others - stratum.failed + stratum.failed_with_event,
        ],
    ]
    if stratum.low < stratum.failed_with_event < stratum.high:
        peer = odds_ratio(table, kind="conditional")
        interval = peer.confidence_interval(0.95)
        assert test.odds_ratio == pytest.approx(peer.statistic, rel=1e-3)
        assert test.interval(0.95) == pytest.approx((interval.low, interval.high), rel=1e-3)


@settings(max_examples=max_examples(20), deadline=None)
@given(st.lists(strata(), min_size=1, max_size=6), st.sampled_from([0.8, 0.95]))
def test_the_interval_leaves_out_one_exactly_where_the_test_rejects(
    tables: list[Stratum], level: float
) -> None:
    test = Stratified(tuple(tables))
    low, high = test.interval(level)
    ratio = test.odds_ratio
    assert low <= (np.inf if ratio is None else ratio * (1 + 1e-6))
    assert high is None or (ratio is not None and ratio <= high * (1 + 1e-6))
    if abs(test.p_value - (1 - level)) > 1e-6:
        assert (low > 1 or (high is not None and high < 1)) == (test.p_value < 1 - level)
    assert test.smallest_p_value <= test.p_value + 1e-12


def test_p_values_are_uniform_or_larger_without_a_cause() -> None:
    """Exactly: over all ways to deal out the failures, P(p <= a) <= a for every a."""
    margins = [(8, 4, 3), (8, 2, 5), (6, 3, 2)]
    outcomes: list[tuple[tuple[Stratum, ...], float]] = [((), 1.0)]
    for n, failed, with_event in margins:
        chances = hypergeom(n, failed, with_event)
        counts = range(max(0, failed + with_event - n), min(failed, with_event) + 1)
        outcomes = [
            ((*done, Stratum(n, failed, with_event, count)), chance * chances.pmf(count))
            for done, chance in outcomes
            for count in counts
        ]
    p_values = np.array([Stratified(tables).p_value for tables, _ in outcomes])
    weights = np.array([chance for _, chance in outcomes])
    assert weights.sum() == pytest.approx(1)
    for p_value in np.unique(p_values):
        assert weights[p_values <= p_value + 1e-12].sum() <= p_value + 1e-9


def test_tarone_leaves_out_what_no_verdicts_could_show() -> None:
    assert choose_testable([0.5, 0.2], 0.05) == []
    assert choose_testable([0.04], 0.05) == [0]
    # Two that could be shown at 0.05, but not at 0.025 each: only a smaller one is left.
    assert choose_testable([0.04, 0.04, 0.001], 0.05) == [2]
    assert choose_testable([], 0.05) == []
