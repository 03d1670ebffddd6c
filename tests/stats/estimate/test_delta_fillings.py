"""Missing attempts of which some passed and some failed: the bounds hold every filling."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import forecast, gate
from passhat.reporting.explanation import explain
from passhat.stats.estimate.estimator import Estimate, estimate
from passhat.stats.estimate.intervals.new_tasks_delta import bound_delta, gaffke_delta
from passhat.stats.estimate.metrics import Delta, PassHat
from passhat.stats.estimate.metrics.delta import Tangents
from passhat.stats.outcomes import Outcomes, Run

NEW, THESE = "new tasks", "these tasks"
# All failed and all passed are suites of equal tasks; with half of each delta^2 is largest.
ALL_OR_NOTHING = Outcomes.from_counts(0, [0] * 4, missing=2)


def _fillings(outcomes: Outcomes) -> list[Outcomes]:
    n, missing = outcomes.n + outcomes.missing, outcomes.missing.tolist()
    ways = itertools.product(*(range(count + 1) for count in missing))
    return [Outcomes.from_counts(n, outcomes.c + np.array(way)) for way in ways]


tasks = st.tuples(st.integers(2, 4), st.integers(0, 2), st.integers(0, 4))


@st.composite
def suites(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Attempts with a verdict, passes, and missing attempts of two to five tasks."""
    rows = sorted(draw(st.lists(tasks, min_size=2, max_size=5)))
    scored = [max(n - missing, 0) for n, missing, _ in rows]
    passes = [min(c, n) for (_, _, c), n in zip(rows, scored, strict=True)]
    missing = [n - left for (n, _, _), left in zip(rows, scored, strict=True)]
    return scored, passes, missing


@settings(max_examples=max_examples(60))
@given(suites(), st.sampled_from([2, 3]))
def test_the_range_is_that_of_all_fillings(
    suite: tuple[list[int], list[int], list[int]], k: int
) -> None:
    scored, c, missing = (np.array(column) for column in suite)
    n = scored + missing
    k = min(k, int(n.min()))
    values = []
    for way in itertools.product(*(range(count + 1) for count in missing.tolist())):
        rates = (c + np.array(way)) / n
        power = PassHat(k).values(n, c + np.array(way)).mean()
        values.append(max(float(power - rates.mean() ** k), 0.0))
    metric = Delta(k)
    assert metric.range_of_fillings(n, c, missing) == pytest.approx((min(values), max(values)))
    cells = np.stack([n, c, missing])
    bound = Tangents.of(k).bound_largest(cells, np.ones(len(n), int))
    assert max(bound, 0.0) >= max(values) - 1e-9


def test_half_of_the_tasks_passed_is_more_than_all_or_none() -> None:
    found = estimate(ALL_OR_NOTHING, "delta^2")
    assert (found.value, found.value_if_passed) == (0.0, 0.0)
    assert found.value_range == (0.0, 0.25)
    assert found.value_text() == "0.000 to 0.250"
    assert found.high == 0.25
    assert found.bounds == (0.0, 0.25)
    assert json.loads(json.dumps(found.to_dict()))["value_range"] == [0.0, 0.25]
    assert found.notes == ("delta^2 is between 0.000 and 0.250 as missing attempts come out",)


@pytest.mark.parametrize("about", [NEW, THESE])
@pytest.mark.parametrize(
    ("scored", "c", "missing"),
    [
        ([2] * 6, [0, 0, 1, 2, 2, 2], [0, 2, 0, 0, 0, 0]),
        ([2, 2, 0, 0, 2, 2, 2, 1], [2, 2, 0, 0, 0, 2, 1, 1], [0, 0, 2, 2, 0, 0, 0, 1]),
    ],
)
def test_the_interval_holds_that_of_every_filling(
    about: str, scored: list[int], c: list[int], missing: list[int]
) -> None:
    outcomes = Outcomes.from_counts(scored, c, missing=missing)
    found = estimate(outcomes, "delta^2", about=about)
    assert found.low is not None
    assert found.high is not None
    for filled in _fillings(outcomes):
        other = estimate(filled, "delta^2", about=about)
        assert found.low <= (other.low or 0.0) + 0.004  # draws of their own about new tasks
        assert found.high >= (other.high or 0.0) - 0.004


def test_without_missing_attempts_the_bound_is_the_interval() -> None:
    n, c = np.full(14, 4), np.array([0, 1, 2, 4, 4, 4, 3, 3, 2, 4, 4, 1, 0, 0])
    for k in (2, 4):
        wanted = gaffke_delta(PassHat(k).values(n, c), c / n, np.ones(14), [k])
        cells = np.stack([n, c, 0 * n])
        ends = float(wanted.lows[0]), float(wanted.highs[0])
        assert bound_delta(cells, k) == pytest.approx(ends, abs=0.006)
        alone = bound_delta(cells, k, clusters=np.arange(14))
        assert alone == pytest.approx(ends, abs=0.006)


def test_a_gate_shows_what_every_filling_shows() -> None:
    result = gate(ALL_OR_NOTHING, "delta^2 <= 0.2", max_missing=1).results[0]
    assert result.value_range == (0.0, 0.25)
    assert not result.verdict.startswith("shown")


def test_an_explanation_gives_the_range() -> None:
    lossy = Outcomes.from_counts([2, 2, 0, 0], [2, 0, 0, 0], missing=[0, 0, 2, 2])
    text = "\n".join(explain("delta^2", Run("s", "a", lossy)).lines())
    assert "range     0.0 to 0.25, however missing attempts come out" in text


# -- pass^k about these tasks ----------------------------------------------------------------------


def _hull(outcomes: Outcomes, word: str, level: float) -> tuple[float, float]:
    found = [estimate(one, word, about=THESE, level=level) for one in _fillings(outcomes)]
    return min(one.low or 0.0 for one in found), max(one.high or 0.0 for one in found)


def _ends(found: Estimate) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@pytest.mark.parametrize(
    ("scored", "c", "missing", "word", "level"),
    [
        # A task with 1 of 2 leaves lower rates possible than one with none: .367, not .411.
        ([0, 2, 2, 2, 2], [0, 2, 2, 2, 2], [2, 0, 0, 0, 0], "pass^2", 0.8),
        ([0, 0, 0, 2, 2, 2], [0, 0, 0, 2, 2, 2], [2, 2, 2, 0, 0, 0], "pass^2", 0.95),
        ([1, 4, 4, 4, 4, 4], [1, 4, 4, 4, 4, 3], [3, 0, 0, 0, 0, 0], "pass^4", 0.95),
        ([4, 4, 4, 2], [0, 0, 0, 0], [0, 0, 0, 2], "pass@4", 0.8),
    ],
)
def test_ends_about_these_tasks_hold_every_filling(
    scored: list[int], c: list[int], missing: list[int], word: str, level: float
) -> None:
    outcomes = Outcomes.from_counts(scored, c, missing=missing)
    low, high = _ends(estimate(outcomes, word, about=THESE, level=level))
    least, largest = _hull(outcomes, word, level)
    assert low <= least + 0.002
    assert high >= largest - 0.002


def test_a_forecast_holds_every_filling() -> None:
    scored, c, missing = [1, 4, 4, 4, 4, 4], [1, 4, 4, 4, 4, 3], [3, 0, 0, 0, 0, 0]
    outcomes = Outcomes.from_counts(scored, c, missing=missing)
    found = forecast(outcomes, "pass^16")
    bands = [forecast(filled, "pass^16") for filled in _fillings(outcomes)]
    assert found.low <= min(band.low for band in bands) + 1e-4  # .0022, not .0045
    assert found.high >= max(band.high for band in bands) - 1e-4


def test_the_order_of_tasks_does_not_change_the_fillings() -> None:
    scored, c, missing = [1, 2, 0, 2, 1], [1, 2, 0, 1, 0], [1, 0, 2, 0, 1]
    ends = [
        _ends(estimate(Outcomes.from_counts(*one[:2], missing=one[2]), "pass^2", about=THESE))
        for one in ((scored, c, missing), (scored[::-1], c[::-1], missing[::-1]))
    ]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(("k", "count", "gap"), [(2, 5, 1 / 64), (2, 129, 2**-16), (3, 5, 3 / 64)])
def test_the_gap_of_tangents_is_that_of_a_parabola(k: int, count: int, gap: float) -> None:
    """m^k lies above its tangents at distance h by at most k (k - 1) h^2 / 8."""
    tangents = Tangents.of(k, count)
    assert tangents.gap == pytest.approx(gap)
    means = np.linspace(0, 1, 4_001)
    envelope = (np.outer(means, tangents.slopes) - tangents.offsets).max(axis=1)
    assert float((means**k - envelope).max()) <= tangents.gap + 1e-12
