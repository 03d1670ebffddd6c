"""What a pilot's clusters, short tasks and second agent do to the variance that is planned for."""

from __future__ import annotations

import numpy as np
import pytest

from passhat import Outcomes, plan_tasks
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.plan.difficulty import Components, PilotVariance, pilot_values
from passhat.stats.plan.plan_result import Detect, Goal, HalfWidth, _smallest

WIDTH, LIFT = HalfWidth(0.1, 0.95), Detect(0.1, 0.95, 0.8)


def _pilot(
    c: list[int], repos: str, n: int | list[int] = 4, missing: list[int] | None = None
) -> Outcomes:
    names = [f"t{i}" for i in range(len(c))]
    return Outcomes.from_counts(n, c, names, missing=missing, labels={"repo": list(repos)})


def _basis(pilot: Outcomes, metric: CountMetric, *, cluster: str | None = "repo") -> PilotVariance:
    return PilotVariance.redraw(lambda _n: Components(1.0, 0.0), pilot, None, metric, cluster)


def test_the_design_is_the_ratio_of_two_sums_of_squares() -> None:
    """Rates 1, 1, 0, .25 with mean .5625: cluster sums of deviations .875 and -.875."""
    found = _basis(_pilot([4, 4, 0, 1], "aabb"), PassHat(1))
    squares = 2 * 0.4375**2 + 0.5625**2 + 0.3125**2
    assert found.design == pytest.approx(2 * 0.875**2 / squares)
    assert found.total(4) == pytest.approx(found.design)


def test_clusters_of_one_task_have_no_design_effect() -> None:
    assert _basis(_pilot([4, 2, 0, 1], "abcd"), PassHat(1)).design == pytest.approx(1.0)
    plain = _basis(_pilot([4, 2, 0, 1], "aabb"), PassHat(1), cluster=None)
    assert plain.design == pytest.approx(1.0)


def test_clusters_that_balance_out_are_no_better_than_tasks() -> None:
    assert _basis(_pilot([0, 4, 0, 4, 0, 4], "aabbcc"), PassHat(1)).design == 1.0


@pytest.mark.parametrize("c", [[4] * 6, [0] * 6, [1] * 6])
def test_tasks_that_came_out_alike_are_taken_for_copies(c: list[int]) -> None:
    found = _basis(_pilot(c, "aaabbc"), PassHat(1))
    assert found.design == pytest.approx((9 + 4 + 1) / 6)
    assert not found.has_redraws


def test_all_passed_in_few_clusters_asks_for_more_tasks_than_without() -> None:
    """Eight copies of five tasks: as little is known of others as from five tasks."""
    pilot = _pilot([4] * 40, "".join(repo * 8 for repo in "abcde"))
    plain, by_repo = (
        plan_tasks(pilot, half_width=0.1, cluster=cluster) for cluster in (None, "repo")
    )
    assert by_repo.fewest_tasks > 4 * plain.fewest_tasks
    assert by_repo.tasks_range is None
    text = " ".join(by_repo.remarks())
    assert "5 clusters of repo cannot say how uncertain it is" in text
    assert "redraws" not in text


def test_a_short_task_does_not_switch_clusters_and_caution_off() -> None:
    """One of 40 tasks has 2 attempts and pass^3 was asked: 91 tasks were planned, not 225."""
    rng = np.random.default_rng(6)
    c = np.repeat(rng.binomial(4, 0.5, 5), 8)
    repos = "".join(repo * 8 for repo in "abcde")
    whole = plan_tasks(_pilot(c.tolist(), repos), metric="pass^3", half_width=0.1, cluster="repo")
    n = [4] * 39 + [2]
    short = _pilot(np.minimum(c, n).tolist(), repos, n)
    found = plan_tasks(short, metric="pass^3", half_width=0.1, cluster="repo")
    assert found.cheapest.tasks == pytest.approx(whole.cheapest.tasks, rel=0.15)
    assert found.tasks_range is not None
    assert found.tasks_range[0] < found.cheapest.tasks < found.tasks_range[1]
    alone = plan_tasks(short, metric="pass^3", half_width=0.1)
    assert alone.cheapest.tasks < found.cheapest.tasks / 2
    assert alone.tasks_range is not None
    assert alone.tasks_range[0] < alone.tasks_range[1]


def _values(pilot: Outcomes, metric: CountMetric, against: Outcomes | None = None) -> FloatArray:
    return pilot_values(pilot, against, metric, None)[0]


def test_tasks_with_enough_attempts_are_those_that_are_redrawn() -> None:
    pilot = _pilot([4, 2, 1, 3, 0], "aabbb", [4, 4, 2, 4, 4])
    assert _values(pilot, PassHat(3)).tolist() == pytest.approx([1.0, 0.0, 0.25, 0.0])
    assert _values(pilot, PassAt(2)).tolist() == pytest.approx([1.0, 5 / 6, 1.0, 1.0, 0.0])
    _, labels = pilot_values(pilot, None, PassHat(3), "repo")
    assert labels == ("a", "a", "b", "b")


def test_the_pass_rate_represents_a_metric_that_too_few_tasks_support() -> None:
    """Two attempts each, and pass^8 is planned: how rates differ is all that was seen."""
    pilot = _pilot([2, 0, 1, 2, 2, 0], "aabbcc", 2)
    assert _values(pilot, PassHat(8)).tolist() == pytest.approx([1.0, 0.0, 0.5, 1.0, 1.0, 0.0])
    assert _basis(pilot, PassHat(8)).has_redraws
    two = _pilot([2, 0, 1], "abc", [8, 8, 2])
    assert _values(two, PassHat(8)).tolist() == pytest.approx([0.25, 0.0, 0.5])


def test_differences_are_b_minus_a_on_shared_tasks_by_name() -> None:
    a = _pilot([4, 2, 0, 1], "aabb")
    b = Outcomes.from_counts([4, 4, 4, 4], [4, 4, 3, 0], ["t3", "t1", "t2", "other"])
    found = _values(a, PassHat(1), b)
    assert found.tolist() == pytest.approx([0.5, 0.75, 0.75])  # t1, t2, t3
    _, labels = pilot_values(a, b, PassHat(1), "repo")
    assert labels == ("a", "b", "b")
    assert _values(a, PassHat(1)).tolist() == pytest.approx([1.0, 0.5, 0.0, 0.25])


def test_missing_attempts_count_as_failed_in_the_redraws() -> None:
    lossy = _pilot([2, 3, 1], "abc", [2, 4, 4], missing=[2, 0, 0])
    assert _values(lossy, PassHat(1)).tolist() == pytest.approx([0.5, 0.75, 0.25])


def test_one_cluster_is_refused_with_what_to_do() -> None:
    pilot = _pilot([4, 2, 0, 1], "aaaa")
    with pytest.raises(InvalidValue, match="all tasks share one repo") as error:
        plan_tasks(pilot, half_width=0.1, cluster="repo")
    assert "Leave cluster out" in str(error.value)


def test_redraws_are_one_on_average_but_for_the_unseen_task_and_the_sample() -> None:
    """A Dirichlet weight is 1 / (T + 1) on average; the unseen task is as far off as any."""
    pilot = _pilot([0, 1, 2, 3, 4, 4, 0, 2, 1, 3], "abcdefghij")
    found = _basis(pilot, PassHat(1))
    rates = np.array([0, 1, 2, 3, 4, 4, 0, 2, 1, 3]) / 4
    squares = (rates - rates.mean()) ** 2
    wanted = (squares.sum() + squares.max()) / squares.mean() * 10 / (11 * 9)
    assert found.factors.mean() == pytest.approx(wanted, rel=0.03)
    assert len(found.factors) > 100
    again = _basis(pilot, PassHat(1))
    assert again.factors.tolist() == found.factors.tolist()  # the same plan every time


def test_the_order_of_tasks_and_the_names_of_clusters_change_no_design() -> None:
    c, repos = [4, 4, 0, 1, 2, 3, 3], "aabbccd"
    before = _basis(_pilot(c, repos), PassHat(2))
    after = _basis(
        _pilot(c[::-1], repos[::-1].translate(str.maketrans("abcd", "wzyx"))), PassHat(2)
    )
    assert after.design == pytest.approx(before.design)


@pytest.mark.parametrize("turn", [2, 3, 7, 64, 65, 1_000_003])
def test_the_smallest_number_that_is_enough(turn: int) -> None:
    assert _smallest(lambda tasks: tasks >= turn) == turn


def test_a_power_that_no_number_of_tasks_gives_ends_the_search() -> None:
    assert _smallest(lambda _tasks: False) >= 10**9


@pytest.mark.parametrize("variance", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("goal", [WIDTH, LIFT], ids=["half-width", "detect"])
def test_tasks_and_what_they_reach_are_inverse(goal: Goal, variance: float) -> None:
    tasks = goal.tasks(variance)
    assert goal.reach(variance, tasks) <= goal.target * (1 + 1e-9)
    if tasks > 4:
        assert goal.reach(variance, tasks - 1) > goal.target * (1 - 1e-9)
    assert goal.reach(2 * variance, tasks) > goal.reach(variance, tasks)
    assert goal.tasks(2 * variance) > tasks


def test_no_variance_is_seen_at_once_or_never() -> None:
    """Every task the same lift: the bound alone decides, and needs room for an unseen task."""
    tasks = Detect(0.1, 0.95, 0.8).tasks(0.0)
    assert Detect(0.1, 0.95, 0.8).power_at(0.0, tasks) == 1.0
    assert Detect(0.1, 0.95, 0.8).power_at(0.0, tasks - 1) == 0.0
