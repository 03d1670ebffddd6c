"""mean, best@k and worst@k: by hand, without bias, and through every place that takes a metric."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import passhat
from passhat.errors import InvalidValue, MetricError
from passhat.reporting.explanation import explain
from passhat.stats.compare import compare
from passhat.stats.compare.ranking import rank_agents
from passhat.stats.estimate import estimate, estimate_all, metric
from passhat.stats.estimate.intervals.score_levels import cells_at, choose_thresholds
from passhat.stats.estimate.metrics import BestOf, Mean, ScoreMetric, WorstOf
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.outcomes.order import Scores
from passhat.stats.outcomes.rewards import Unscored
from passhat.stats.plan import plan_attempts, plan_tasks
from passhat.stats.terms import Population, Terms

LEVELS = [0.0, 0.25, 0.5, 0.75, 1.0]
RNG = np.random.default_rng(30)
SCORES = RNG.choice(LEVELS, (24, 5), p=[0.1, 0.1, 0.2, 0.2, 0.4])
GRADED = Outcomes.from_scores(SCORES)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_value_of_a_task_is_the_mean_over_all_draws_of_k(k: int) -> None:
    draws = [list(places) for places in combinations(range(5), k)]
    best = [np.mean([row[places].max() for places in draws]) for row in SCORES]
    worst = [np.mean([row[places].min() for places in draws]) for row in SCORES]
    assert values_by_task(GRADED, BestOf(k)) == pytest.approx(best)
    assert values_by_task(GRADED, WorstOf(k)) == pytest.approx(worst)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_it_is_unbiased_at_every_n_from_k_on(n: int) -> None:
    """Every sequence of n scores with its chance: the mean of the estimates is the truth."""
    levels, chances = (0.2, 0.5, 0.9), (0.3, 0.5, 0.2)
    pairs = list(product(zip(levels, chances, strict=True), repeat=2))
    for word, pick in (("best@2", max), ("worst@2", min)):
        truth = sum(a[1] * b[1] * pick(a[0], b[0]) for a, b in pairs)
        rows = list(product(levels, repeat=n))
        weights = [np.prod([chances[levels.index(score)] for score in row]) for row in rows]
        values = values_by_task(Outcomes.from_scores(rows), metric(word))
        assert float(np.dot(weights, values)) == pytest.approx(truth)


def test_scores_of_0_and_1_are_verdicts() -> None:
    verdicts = Outcomes.from_matrix(SCORES == 1)
    graded = Outcomes.from_scores((SCORES == 1).astype(float))
    for word, twin in (("mean", "pass^1"), ("best@3", "pass@3"), ("worst@3", "pass^3")):
        for about in ("new tasks", "these tasks"):
            expected = estimate(verdicts, twin, about=about)
            for outcomes in (verdicts, graded):
                found = estimate(outcomes, word, about=about)
                assert found.value == pytest.approx(expected.value)
                assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert "it is pass^3" in estimate(verdicts, "worst@3").notes[0]


def test_tasks_with_different_numbers_of_attempts_count_once_each() -> None:
    ragged = SCORES.copy()
    ragged[::2, 3:] = np.nan
    outcomes = Outcomes.from_scores(ragged)
    means = np.nanmean(ragged, axis=1)
    assert estimate(outcomes, "mean", missing="exclude").value == pytest.approx(means.mean())
    bounds = estimate(outcomes, "mean")
    assert bounds.value == pytest.approx(np.nan_to_num(ragged, nan=0.0).mean())
    assert bounds.value_if_passed == pytest.approx(np.nan_to_num(ragged, nan=1.0).mean())


@pytest.mark.parametrize("about", ["new tasks", "these tasks"])
@pytest.mark.parametrize("word", ["mean", "best@4", "worst@4"])
def test_an_interval_holds_its_value_has_width_and_ignores_the_order(about: str, word: str) -> None:
    found = estimate(GRADED, word, about=about)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low < found.value < found.high <= 1
    turned = estimate(Outcomes.from_scores(SCORES[::-1, ::-1]), word, about=about)
    assert (turned.low, turned.high) == (found.low, found.high)
    perfect = estimate(Outcomes.from_scores(np.full((9, 4), 1.0)), word, about=about)
    assert perfect.low is not None
    assert perfect.low < perfect.value == perfect.high == 1


def test_clusters_widen_the_interval_about_new_tasks() -> None:
    labels = {"template": [str(i // 4) for i in range(24)]}
    rows = np.repeat(SCORES[:6], 4, axis=0)
    alone, together = (
        estimate(Outcomes.from_scores(rows, labels=labels), "mean", cluster=cluster)
        for cluster in (None, "template")
    )
    assert together.high - together.low > 1.3 * (alone.high - alone.low)  # type: ignore[operator]


def test_thresholds_integrate_to_the_metric() -> None:
    for scores in (SCORES, RNG.beta(2, 1, (30, 4))):
        graded = Outcomes.from_scores(scores).graded()
        thresholds = choose_thresholds(graded)
        assert sum(threshold.weight for threshold in thresholds) == pytest.approx(1)
        assert len(thresholds) <= 16
        area = 0.0
        for threshold in thresholds:
            cells = cells_at(graded, threshold)
            values = WorstOf(2).verdict_metric.values(cells.n, cells.c)
            area += threshold.weight * float(values @ cells.tasks) / cells.size
        truth = values_by_task(Outcomes.from_scores(scores), WorstOf(2)).mean()
        assert area == pytest.approx(truth, abs=1e-12 if scores is SCORES else 0.01)


def test_a_paired_lift_about_both_populations() -> None:
    other = Outcomes.from_scores(np.clip(SCORES + 0.25, 0, 1))
    found = compare(GRADED, other, "worst@2")
    (new,), (these,) = found.results, found.these_tasks
    expected = values_by_task(other, WorstOf(2)) - values_by_task(GRADED, WorstOf(2))
    assert new.lift == these.lift == pytest.approx(expected.mean())
    for result in (new, these):
        assert 0 < result.low < result.lift < result.high
    assert compare(GRADED, GRADED, "mean").results[0].lift == 0
    assert [curve.family for curve in found.curves] == ["worst@k"]


def test_a_missing_score_can_be_any_in_a_lift() -> None:
    rows = SCORES.copy()
    rows[0, 0] = np.nan
    found = compare(Outcomes.from_scores(rows), GRADED, "mean")
    (result,) = found.results
    assert result.lift_highest - result.lift_lowest == pytest.approx(1 / SCORES.size)
    assert found.these_tasks[0].low < result.lift_lowest


def test_a_gate_takes_a_limit_on_scores() -> None:
    run = Run("a", "a", GRADED)
    assert passhat.gate(run, ["worst@4 >= 0.05"]).results[0].verdict == "shown"
    assert passhat.gate(run, ["mean >= 0.95"]).results[0].verdict == "refuted"
    high = Run("b", "b", Outcomes.from_scores(np.clip(SCORES + 0.3, 0, 1)))
    assert passhat.gate(high, ["mean >= base"], against=run).results[0].verdict == "shown"


def test_a_plan_for_scores_follows_their_variance() -> None:
    fine = plan_tasks(GRADED, metric="mean", half_width=0.1)
    coarse = plan_tasks(Outcomes.from_matrix(SCORES > 0.5), metric="pass^1", half_width=0.1)
    assert fine.value == pytest.approx(SCORES.mean())
    assert fine.cheapest.tasks < coarse.cheapest.tasks
    within = SCORES.var(axis=1, ddof=1).mean()
    assert plan_attempts(GRADED, metric="mean", half_width=0.05).within == pytest.approx(
        within / plan_attempts(GRADED, metric="mean", half_width=0.05).cheapest.attempts, rel=0.2
    )
    with pytest.raises(InvalidValue, match="not allocated by mean"):
        passhat.allocate(GRADED, metric="mean")


@pytest.mark.parametrize("word", ["mean", "best@3", "worst@3"])
def test_the_python_of_an_explanation_gives_the_same_number(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = explain(word, Run("a", "a", GRADED))
    assert explained.estimate is not None
    exec(explained.python, {})
    assert float(capsys.readouterr().out) == pytest.approx(explained.estimate.value)
    code = f"{explained.python}\n{explained.interval_python}".replace("50_000", "4_000")
    exec(code, {})
    low, high = map(float, capsys.readouterr().out.split()[-2:])
    assert (low, high) == pytest.approx((explained.estimate.low, explained.estimate.high), abs=0.02)
    exec(explain(word).python, {})


def test_the_grammar_knows_them() -> None:
    assert metric("mean") == Mean()
    assert metric("BEST@4") == BestOf(4)
    assert isinstance(metric("worst@2"), ScoreMetric)
    for wrong, right in (("maen", "mean"), ("wrst@3", "worst@3")):
        with pytest.raises(MetricError) as refused:
            metric(wrong)
        assert f"Did you mean {right}?" in str(refused.value.hint)


def test_scores_that_were_not_kept_are_not_replaced_by_verdicts() -> None:
    reason = Unscored.of(None, ("no score range was stated",))
    lost = replace(Outcomes.from_matrix([[1, 0]]), unscored=reason)
    with pytest.raises(InvalidValue, match="not kept: no score range"):
        estimate(lost, "mean")
    with pytest.raises(InvalidValue, match="between 0 and 1; here they go from 1 to 5"):
        Outcomes.from_scores([[1, 5]])


def test_a_matrix_of_scores_is_taken_everywhere() -> None:
    assert passhat.estimate([[0.5, 1.0], [0.0, 0.5]], "mean").value == 0.5
    assert GRADED.graded(Completion.AS_PASSED).values.sum() == pytest.approx(SCORES.sum())


@pytest.mark.parametrize(("word", "twin"), [("mean", "pass^1"), ("worst@2", "pass^2")])
def test_scores_that_are_the_verdicts_have_the_intervals_of_verdicts(word: str, twin: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (Outcomes.from_scores((rng.random((9, 3)) < 0.6).astype(float)) for _ in range(2))
    said = f"that of {twin}: every score is its verdict"
    names = (word, twin)
    for about in ("new tasks", "these tasks"):
        graded, judged = estimate_all(a, names, about=about)
        assert (graded.value, graded.low, graded.high) == (judged.value, judged.low, judged.high)
        assert graded.interval_method.endswith(said)
        lifts = [compare(a, b, name, about=about).results[0] for name in names]
        assert len({(lift.lift, lift.low, lift.high, lift.p_value) for lift in lifts}) == 1
        assert said in str(lifts[0].method)
        rules = [passhat.gate(b, f"{name} >= base", against=a, about=about) for name in names]
        assert len({(one.results[0].low, one.results[0].high) for one in rules}) == 1
        terms = Terms(population=Population(about))
        ranks = [rank_agents([a, b], metric(name), terms) for name in names]
        assert (ranks[0].p_values == ranks[1].p_values).all()
    assert a.scores is not None
    halves = replace(a, scores=Scores(a.scores.values / 2, a.scores.starts))
    assert said not in estimate(halves, word).interval_method
