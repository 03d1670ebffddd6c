"""The design effect of clusters: by its formula, its limits, and what it must not depend on."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import norm, t

from passhat.errors import InvalidValue
from passhat.stats.forecast import forecast
from passhat.stats.forecast.views import cells_for, countable, design_effect
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.terms import Terms

BY_REPO = Terms(cluster="repo")


def _suite(
    n: int | list[int], c: list[int], repos: str, missing: list[int] | None = None
) -> Outcomes:
    return Outcomes.from_counts(n, c, missing=missing, labels={"repo": list(repos)})


def _t_over_normal(clusters: int, level: float = 0.95) -> float:
    upper = (1 + level) / 2
    return float((t.ppf(upper, clusters - 1) / norm.ppf(upper)) ** 2)


def _by_hand(c: list[int], repos: str, value: list[Fraction]) -> float:
    """Variance of the mean over clusters with their sizes, over that of independent tasks."""
    own = [value[passes] for passes in c]
    mean = sum(own, Fraction(0)) / len(own)
    names = sorted(set(repos))
    sums = [
        sum(v - mean for v, repo in zip(own, repos, strict=True) if repo == name) for name in names
    ]
    groups, tasks = len(names), len(own)
    between = Fraction(groups, groups - 1) * sum(s * s for s in sums) / tasks**2
    alone = sum((v - mean) ** 2 for v in own) / (tasks - 1) / tasks
    return float(between / alone)


@pytest.mark.parametrize(
    ("n", "c", "repos"),
    [
        (4, [4, 4, 0, 1, 2, 3], "aabbcc"),
        (4, [4, 3, 0, 1, 2, 3, 3], "aaabbcd"),
        (2, [2, 2, 2, 0, 0, 1], "aaabbb"),
        (3, [0, 3, 1, 2, 2, 3, 0, 1], "abababcc"),
    ],
)
def test_it_is_the_largest_ratio_of_three_metrics(n: int, c: list[int], repos: str) -> None:
    single = [Fraction(j, n) for j in range(n + 1)]
    every = [Fraction(comb(j, n), comb(n, n)) for j in range(n + 1)]
    some = [1 - every[n - j] for j in range(n + 1)]
    ratios = [_by_hand(c, repos, value) for value in (single, every, some)]
    wanted = max(1.0, *ratios) * _t_over_normal(len(set(repos)))
    assert design_effect(_suite(n, c, repos), BY_REPO) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "c"),
    [
        (4, [4] * 6),
        (4, [0] * 6),
        (3, [1] * 6),  # 1/3 six times: a mean that rounds must not count as spread
        ([2, 3, 4, 2, 3, 4], [2, 3, 4, 2, 3, 4]),
        ([2, 3, 4, 2, 3, 4], [0] * 6),
        ([1, 9, 1, 9, 1, 9], [1, 9, 1, 9, 1, 9]),
    ],
)
def test_tasks_that_came_out_alike_are_taken_for_copies(n: int | list[int], c: list[int]) -> None:
    """All passed is all passed, whatever n each task has: clusters of 3, 2 and 1 of 6 tasks."""
    wanted = (9 + 4 + 1) / 6 * _t_over_normal(3)
    assert design_effect(_suite(n, c, "aaabbc"), BY_REPO) == pytest.approx(wanted, rel=1e-12)


def test_all_passed_with_unequal_attempts_gives_no_narrower_band_than_with_equal_ones() -> None:
    repos = "".join(letter * 5 for letter in "abcdefgh")
    even = forecast(_suite(4, [4] * 40, repos), "pass^8", cluster="repo")
    ragged = forecast(_suite([4, 3] * 20, [4, 3] * 20, repos), "pass^8", cluster="repo")
    plain = forecast(_suite([4, 3] * 20, [4, 3] * 20, repos), "pass^8")
    assert ragged.low <= even.low + 1e-4
    assert ragged.low < plain.low - 0.05


def test_clusters_of_one_task_leave_only_the_small_sample_factor() -> None:
    outcomes = _suite(4, [0, 1, 2, 4, 4, 3], "abcdef")
    for level in (0.5, 0.9, 0.95, 0.99):
        found = design_effect(outcomes, Terms(cluster="repo", level=level))
        assert found == pytest.approx(_t_over_normal(6, level), rel=1e-9)


def test_it_never_narrows() -> None:
    """Clusters that balance out, one pass and one failure each, are no more than tasks."""
    balanced = design_effect(_suite(2, [0, 2] * 4, "aabbccdd"), BY_REPO)
    assert balanced == pytest.approx(_t_over_normal(4))


def test_names_and_order_of_clusters_and_tasks_leave_no_trace() -> None:
    c, repos = [4, 3, 0, 1, 2, 3, 3], "aaabbcd"
    before = design_effect(_suite(4, c, repos), BY_REPO)
    renamed = design_effect(_suite(4, c, repos.translate(str.maketrans("abcd", "zxyw"))), BY_REPO)
    order = np.random.default_rng(0).permutation(7)
    moved = _suite(4, [c[i] for i in order], "".join(repos[i] for i in order))
    assert renamed == pytest.approx(before, rel=1e-12)
    assert design_effect(moved, BY_REPO) == pytest.approx(before, rel=1e-12)


def test_mirror_images_have_one_design_effect() -> None:
    """Passes and failures exchanged: pass@k and pass^k swap their parts."""
    c, repos = [4, 3, 0, 1, 2, 3, 3], "aaabbcd"
    mirrored = design_effect(_suite(4, [4 - passes for passes in c], repos), BY_REPO)
    assert mirrored == pytest.approx(design_effect(_suite(4, c, repos), BY_REPO), rel=1e-12)


def test_tasks_without_a_verdict_count_only_where_they_are_filled_in() -> None:
    lossy = _suite([4, 4, 4, 4, 0], [4, 4, 0, 1, 0], "aabbc", missing=[0, 0, 0, 0, 4])
    left_out = design_effect(lossy, Terms(cluster="repo", missing=MissingPolicy.EXCLUDE))
    assert left_out == pytest.approx(design_effect(_suite(4, [4, 4, 0, 1], "aabb"), BY_REPO))
    failed = design_effect(lossy, Terms(cluster="repo", missing=MissingPolicy.FAIL))
    assert failed == pytest.approx(design_effect(_suite(4, [4, 4, 0, 1, 0], "aabbc"), BY_REPO))


def test_one_cluster_is_refused_after_tasks_without_a_verdict_are_left_out() -> None:
    lossy = _suite([4, 4, 0], [4, 1, 0], "aab", missing=[0, 0, 2])
    with pytest.raises(InvalidValue, match="all tasks share one repo") as error:
        design_effect(lossy, Terms(cluster="repo", missing=MissingPolicy.EXCLUDE))
    assert "Leave out cluster" in str(error.value)
    assert design_effect(lossy, BY_REPO) > 1


def test_histograms_of_each_policy() -> None:
    lossy = Outcomes.from_counts([3, 4, 0], [1, 4, 0], missing=[1, 0, 4])
    failed, passed, *_ = cells_for(lossy, MissingPolicy.BOUND)
    assert (failed.n.tolist(), failed.c.tolist()) == ([4, 4, 4], [0, 1, 4])
    assert (passed.c.tolist(), passed.tasks.tolist()) == ([2, 4], [1, 2])
    (only,) = cells_for(lossy, MissingPolicy.EXCLUDE)
    assert (only.n.tolist(), only.c.tolist()) == ([3, 4], [1, 4])  # the third has no verdict
    (as_failed,) = cells_for(lossy, MissingPolicy.FAIL)
    assert as_failed.c.tolist() == lossy.histogram(Completion.AS_FAILED).c.tolist()
    (whole,) = cells_for(Outcomes.from_counts(4, [1, 4]), MissingPolicy.BOUND)
    assert whole.size == 2


def test_nothing_scored_is_refused_with_what_to_do() -> None:
    nothing = Outcomes.from_counts(0, [0, 0], missing=[3, 2])
    with pytest.raises(InvalidValue, match="no attempt has a verdict") as error:
        cells_for(nothing, MissingPolicy.EXCLUDE)
    assert "With missing='bound'" in str(error.value)


@pytest.mark.parametrize(
    ("word", "says", "instead"),
    [
        ("delta^4", "it is made of two averages", "pass^4"),
        ("first@3", "it depends on the order of attempts", "pass@3"),
        ("first^3", "it depends on the order of attempts", "pass^3"),
        ("window^2", "it depends on the order of attempts", "pass^2"),
        ("pass@2000000000", "at most 1,000,000,000 in a forecast", ""),
    ],
)
def test_words_that_cannot_be_forecast_name_one_that_can(
    word: str, says: str, instead: str
) -> None:
    with pytest.raises(InvalidValue) as error:
        countable(word)
    assert says in str(error.value)
    assert instead in str(error.value)
