"""Intervals as a user meets them: through estimate(), for every metric and both questions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Estimate, Outcomes, estimate, estimate_all
from passhat.errors import InvalidValue
from passhat.stats.estimate.metrics import Delta

WORDS = [
    *(
        "pass^1",
        "pass^2",
        "pass@2",
        "pass@4",
        "pass^4",
        "gpass@4:0.5",
        "rate",
        "delta^2",
        "delta^4",
    ),
    *("first@2", "first^2", "window^2"),
]
matrices = st.lists(
    st.lists(st.sampled_from([1, 0, -1]), min_size=4, max_size=4), min_size=1, max_size=15
)


def assert_sound(found: Estimate) -> None:
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    assert found.value_if_passed is None or found.low <= found.value_if_passed <= found.high
    assert found.low < found.high
    assert 0 <= found.low <= found.high <= 1


@settings(max_examples=max_examples(25))
@given(matrices, st.sampled_from(["new tasks", "these tasks"]))
def test_every_interval_contains_its_point_has_width_and_stays_in_range(
    matrix: list[list[int]], about: str
) -> None:
    for found in estimate_all(Outcomes.from_matrix(matrix), WORDS, about=about):
        if found.low is None:
            # delta of a single task: said so rather than made up.
            assert about == "these tasks"
            assert isinstance(found.metric, Delta)
            assert "no interval" in found.method
        else:
            assert_sound(found)


@settings(max_examples=max_examples(6))
@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_tasks_never_matters(matrix: list[list[int]], random: object) -> None:
    shuffled = list(matrix)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for about in ("new tasks", "these tasks"):
        one = estimate_all(Outcomes.from_matrix(matrix), WORDS, about=about)
        two = estimate_all(Outcomes.from_matrix(shuffled), WORDS, about=about)
        for a, b in zip(one, two, strict=True):
            if a.low is not None and a.high is not None:
                assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-9)


def test_all_passed_contains_one_and_has_width() -> None:
    outcomes = Outcomes.from_counts(8, [8] * 50)
    for about in ("new tasks", "these tasks"):
        found = estimate(outcomes, "pass^4", about=about)
        assert (found.value, found.high) == (1.0, 1.0)
        assert found.low is not None
        assert 0.9 < found.low < 1


def test_missing_attempts_widen_the_interval_to_both_extremes() -> None:
    outcomes = Outcomes.from_counts([3, 4, 4, 4], [3, 2, 4, 0], missing=[1, 0, 0, 0])
    bound = estimate(outcomes, "pass^2")
    failed = estimate(outcomes, "pass^2", missing="fail")
    passed = estimate(Outcomes.from_counts(4, [4, 2, 4, 0]), "pass^2")
    assert (bound.low, bound.high) == (failed.low, passed.high)
    assert failed.high is not None
    assert bound.high is not None
    assert bound.high > failed.high


def test_re_runs_are_narrower_and_named() -> None:
    outcomes = Outcomes.from_counts(4, [0] * 14 + [1] * 12 + [2] * 10 + [3] * 4 + [4] * 10)
    new, again = (estimate(outcomes, "pass^1", about=a) for a in ("new tasks", "these tasks"))
    assert (new.population, again.population) == ("new tasks", "these tasks")
    width = [found.high - found.low for found in (new, again)]  # type: ignore[operator]
    assert 0.3 < width[1] / width[0] < 0.6
    assert "Gaffke" in new.method
    assert "saddlepoint frontier" in again.method


def test_an_ordered_metric_names_its_twin() -> None:
    outcomes = Outcomes.from_matrix([[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]])
    assert (
        "of pass^2, its unordered twin" in estimate(outcomes, "first^2", about="these tasks").method
    )
    assert (
        "of pass@2, its unordered twin" in estimate(outcomes, "first@2", about="these tasks").method
    )


def test_a_higher_level_is_wider() -> None:
    outcomes = Outcomes.from_counts(8, [1, 5, 7, 8, 0, 3])
    for about in ("new tasks", "these tasks"):
        narrow, wide = (estimate(outcomes, "pass^2", about=about, level=x) for x in (0.5, 0.99))
        assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


def test_no_level_no_interval() -> None:
    found = estimate(Outcomes.from_counts(4, [2]), "pass^2", level=None)
    assert (found.low, found.high, found.level) == (None, None, None)
    assert "no interval" in str(found)


def test_draws_come_from_a_fixed_seed_or_from_the_caller() -> None:
    outcomes = Outcomes.from_counts(8, [1, 5, 7, 8, 0, 3])
    first, second = (estimate(outcomes, "delta^4") for _ in range(2))
    assert first == second
    assert "seed" in first.method
    own = estimate(outcomes, "delta^4", rng=np.random.default_rng(1))
    assert own.low == pytest.approx(first.low, abs=0.01)
    assert "the caller's generator" in own.method


def test_clusters_widen_the_interval_when_tasks_resemble_each_other() -> None:
    same = ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    outcomes = Outcomes.from_counts(4, [4] * 10 + [0] * 10 + [3] * 10, labels={"repo": same})
    alone, grouped = (estimate(outcomes, "pass^2", cluster=c) for c in (None, "repo"))
    assert grouped.value == alone.value
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]
    assert "weights per repo (3 clusters; sizes not seen are not covered)" in grouped.method
    alone, grouped = (estimate(outcomes, "delta^2", cluster=c) for c in (None, "repo"))
    assert_sound(grouped)
    assert grouped.value == alone.value
    assert grouped.high - grouped.low > alone.high - alone.low  # type: ignore[operator]
    assert "; sizes not seen are not covered), seed" in grouped.method
    with pytest.raises(InvalidValue, match="no slice called 'file'; slices here: repo"):
        estimate(outcomes, "pass^2", cluster="file")


def test_many_metrics_at_once_are_the_same_as_one_at_a_time() -> None:
    outcomes = Outcomes.from_counts([4, 6, 8, 8], [1, 6, 3, 8], missing=[0, 1, 0, 0])
    for about in ("new tasks", "these tasks"):
        words = ["pass^1", "pass@4", "gpass@4:0.5"]
        together = estimate_all(outcomes, words, about=about)
        for found, word in zip(together, words, strict=True):
            alone = estimate(outcomes, word, about=about)
            assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=1e-9)


def test_large_and_ragged_suites_are_answered() -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(4, 16, 20_000)
    outcomes = Outcomes.from_counts(n, rng.binomial(n, rng.random(20_000)))
    for about in ("new tasks", "these tasks"):
        for found in estimate_all(outcomes, ["pass^4", "pass@4", "delta^4"], about=about):
            assert_sound(found)
    big = Outcomes.from_counts(10**6, [3, 10**5, 10**6])
    for about in ("new tasks", "these tasks"):
        assert_sound(estimate(big, "pass^1000", about=about))


def test_few_clusters_are_warned_about() -> None:
    def notes(labels: list[str], about: str = "new tasks") -> tuple[str, ...]:
        outcomes = Outcomes.from_counts(2, [1] * len(labels), labels={"repo": labels})
        return estimate(outcomes, "pass^1", cluster="repo", about=about).notes

    assert "only 3 clusters of repo" in notes(["a", "b", "c"] * 10)[0]
    assert (
        "repo r0 holds 57% of the tasks" in notes(["r0"] * 40 + [f"r{i}" for i in range(1, 31)])[0]
    )
    assert notes([f"r{i % 25}" for i in range(50)]) == ()
    assert notes(["a", "b", "c"] * 10, "these tasks") == ()
