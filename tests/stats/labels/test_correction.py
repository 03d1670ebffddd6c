"""Numbers corrected by labels: exact cases, refusals, and a small study with a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.estimate import estimate, metric
from passhat.stats.labels.agreement import cohen_kappa, krippendorff_alpha, share_noise
from passhat.stats.labels.correction import correct
from passhat.stats.labels.drawing import draw_attempts, draw_whole_tasks
from passhat.stats.labels.error_rates import ErrorPair, corrected_values
from passhat.stats.labels.judge_error import alikeness, judge_error
from passhat.stats.labels.label_plan import plan_labels
from passhat.stats.labels.task_choice import refuse_choice
from passhat.stats.labels.whole_tasks import WholeTasks
from passhat.stats.outcomes import Outcomes
from passhat.stats.outcomes.labels import LabelCounts

Matrix = list[list[bool]]


def simulate(
    seed: int, error: float = 0.05, tasks: int = 50, n: int = 8, *, by_task: bool = False
) -> tuple[Outcomes, Matrix, Matrix]:
    """Outcomes by a judge, the truth, and the verdicts."""
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random(tasks) < 0.8, 0.98, rng.random(tasks))
    true = rng.random((tasks, n)) < rates[:, None]
    mistakes = rng.random((tasks, n)) < error
    if by_task:
        mistakes = np.repeat(rng.random((tasks, 1)) < error, n, axis=1)
    judged = true ^ mistakes
    return Outcomes.from_matrix(judged.astype(int)), true.tolist(), judged.tolist()


def label(tasks: int, true: Matrix, judged: Matrix, first: int = 0, **more: object) -> LabelCounts:
    """Labels of all attempts at some tasks, which outcomes call by their places."""
    rows = [
        (str(i), passed, right)
        for i in range(first, first + tasks)
        for passed, right in zip(judged[i], true[i], strict=True)
    ]
    return LabelCounts.from_rows(rows, **{"draws": ("drawn",), **more})


def test_a_choice_of_whole_tasks_is_told_from_a_draw() -> None:
    outcomes = Outcomes.from_counts(4, [4] * 5 + [0] * 20)
    labels = LabelCounts.from_rows([("0", True, True)])
    with pytest.raises(InvalidValue, match=r"100% of attempts at the 5 tasks.*hardly drawn"):
        refuse_choice(outcomes, labels, np.arange(5))
    refuse_choice(outcomes, labels, np.arange(4))  # too few to tell
    refuse_choice(outcomes, replace(labels, draws=("drawn",)), np.arange(5))


def test_with_every_task_labeled_it_is_the_estimate_of_the_labels() -> None:
    outcomes, true, judged = simulate(1)
    labels = label(50, true, judged)
    truth = Outcomes.from_matrix(np.array(true).astype(int))
    for word in ("pass^1", "pass^4", "pass@2", "delta^4"):
        found = correct(outcomes, labels, word)
        assert found.estimate.value == pytest.approx(estimate(truth, word).value)
        assert found.weight == 0 or word.startswith("delta")
        again = correct(outcomes, labels, word, about="these tasks").estimate
        wanted = estimate(truth, word, about="these tasks")
        assert (again.low, again.high) == pytest.approx((wanted.low, wanted.high), abs=1e-4)


def test_a_judge_without_error_gets_a_weight_and_moves_nothing() -> None:
    outcomes, true, _ = simulate(2, error=0.0)
    found = correct(outcomes, label(25, true, true), "pass^4")
    assert found.weight == pytest.approx(0.5)
    assert found.estimate.value == pytest.approx(found.judged.value)


def test_a_judge_that_is_always_wrong_has_no_weight() -> None:
    _, true, _ = simulate(3)
    reversed_verdicts = (~np.array(true)).tolist()
    outcomes = Outcomes.from_matrix(np.array(reversed_verdicts).astype(int))
    found = correct(outcomes, label(25, true, reversed_verdicts), "pass^1")
    assert found.weight == 0
    assert found.estimate.value == pytest.approx(np.mean(true[:25]))


def test_the_order_of_tasks_leaves_no_trace() -> None:
    outcomes, true, judged = simulate(4)
    labels = label(20, true, judged)
    turned = Outcomes.from_counts(
        outcomes.n[::-1].tolist(), outcomes.c[::-1].tolist(), list(outcomes.tasks)[::-1]
    )
    for word in ("pass^4", "delta^2"):
        one, other = correct(outcomes, labels, word), correct(turned, labels, word)
        assert one.estimate.low == other.estimate.low
        assert one.estimate.high == other.estimate.high


@pytest.mark.parametrize(
    ("word", "by_task", "least"), [("pass^8", False, 37), ("pass^4", True, 37), ("rate", False, 37)]
)
def test_whole_tasks_hold_the_truth(word: str, by_task: bool, least: int) -> None:
    """40 suites; with a chance of .93 each, fewer than 34 would be rare."""
    rng = np.random.default_rng(0)
    rates = np.where(rng.random(200_000) < 0.8, 0.98, rng.random(200_000))
    truth = float(np.mean(metric(word).value_at_rate(rates)))
    hits, ratio = 0, []
    for seed in range(40):
        outcomes, true, judged = simulate(100 + seed, by_task=by_task)
        found = correct(outcomes, label(25, true, judged), word)
        low, high = found.estimate.low, found.estimate.high
        assert low is not None
        assert high is not None
        hits += low <= truth <= high
        assert found.judged.low is not None
        assert found.judged.high is not None
        ratio.append((high - low) / (found.judged.high - found.judged.low))
    assert hits >= least
    assert np.mean(ratio) < 1.5


def test_error_rates_hold_the_truth_where_errors_are_alike() -> None:
    truth = 0.8 * 0.98**8 + 0.2 / 9
    hits = count = 0
    for seed in range(30):
        outcomes, true, judged = simulate(200 + seed)
        labels = label(25, true, judged)
        try:
            found = correct(outcomes, labels, "pass^8", correction="errors")
        except InvalidValue:
            continue
        count += 1
        assert found.estimate.low is not None
        assert found.estimate.high is not None
        hits += found.estimate.low <= truth <= found.estimate.high
        assert any("alike" in note for note in found.estimate.notes)
    assert count >= 20
    assert hits >= count - 2


def test_the_gain_of_tasks_by_error_rates_lies_within_its_ends() -> None:
    """delta^2 is E[p^2] - E[p]^2: 80% of tasks at .98, the others spread evenly."""
    mean = 0.8 * 0.98 + 0.2 / 2
    truth = 0.8 * 0.98**2 + 0.2 / 3 - mean**2
    hits = count = 0
    for seed in range(12):
        outcomes, true, judged = simulate(300 + seed)
        try:
            found = correct(outcomes, label(25, true, judged), "delta^2", correction="errors")
        except InvalidValue:
            continue
        count += 1
        low, high = found.estimate.low, found.estimate.high
        assert low is not None
        assert high is not None
        assert 0 <= low <= found.estimate.value <= high <= 0.25
        hits += low <= truth <= high
    assert count >= 6
    assert hits >= count - 1


def test_error_rates_are_refused_where_errors_belong_to_tasks() -> None:
    outcomes, true, judged = simulate(5, error=0.1, by_task=True)
    with pytest.raises(InvalidValue, match="depend on the task"):
        correct(outcomes, label(30, true, judged), "pass^8", correction="errors")


def test_corrected_values_are_unbiased() -> None:
    """Over the binomial distribution of judged passes the mean is the metric at the true rate."""
    from scipy.stats import binom

    pair, n, p = ErrorPair(0.04, 0.1), 8, 0.7
    q = pair.a + (1 - pair.a - pair.b) * p
    c = np.arange(n + 1)
    for word in ("pass^4", "pass@3", "rate"):
        parsed = metric(word)
        values = corrected_values(parsed, np.full(n + 1, n), c, pair)  # type: ignore[arg-type]
        wanted = float(parsed.value_at_rate(np.array([p]))[0])
        assert float(values @ binom.pmf(c, n, q)) == pytest.approx(wanted)


def test_refusals_say_what_to_do() -> None:
    outcomes, true, judged = simulate(6)
    with pytest.raises(InvalidValue, match="4 tasks have a label on every attempt"):
        correct(outcomes, label(4, true, judged), "pass^2")
    single = LabelCounts.from_rows([(str(i), judged[i][0], true[i][0]) for i in range(20)])
    with pytest.raises(InvalidValue, match="0 tasks have"):
        correct(outcomes, single, "pass^2")
    with pytest.raises(InvalidValue, match="not a number of passes"):
        correct(outcomes, label(10, true, judged), "first@2")
    few = LabelCounts.from_rows([("0", True, True), ("1", True, True), ("2", False, False)])
    with pytest.raises(InvalidValue, match="1 wrong attempt is labeled, and at least 8"):
        correct(outcomes, few, "pass^2", correction="errors")
    poor = [(str(i), j < 4, i % 2 == 0) for i in range(20) for j in range(8)]
    coin = Outcomes.from_counts([8] * 20, [4] * 20)
    with pytest.raises(InvalidValue, match="too near to a coin"):
        correct(coin, LabelCounts.from_rows(poor), "pass^2", correction="errors")
    passes_only = LabelCounts.from_rows([("0", True, True)] * 5)
    with pytest.raises(InvalidValue, match="no attempt that the judge failed"):
        correct(outcomes, passes_only, "pass^2", correction="errors")
    too_many = LabelCounts.from_rows([("0", True, True)] * 9)
    with pytest.raises(InvalidValue, match="more labels than attempts"):
        correct(outcomes, too_many, "pass^2")


def test_whole_tasks_count_only_where_all_had_the_same_chance() -> None:
    outcomes, true, judged = simulate(6)
    few = frozenset(map(str, range(4, 12)))
    for name in ("by_verdict", "by_attempts"):
        labels = replace(label(12, true, judged), **{name: few})  # type: ignore[arg-type]
        if name == "by_attempts":  # with 8 attempts at every task the chances are the same
            assert correct(outcomes, labels, "pass^2").labeled_tasks == 12
            sizes = [*outcomes.n.tolist()[:-1], 9]
            outcomes = Outcomes.from_counts(sizes, outcomes.c.tolist())
        with pytest.raises(InvalidValue, match="4 tasks of a fair choice") as refusal:
            correct(outcomes, labels, "pass^2")
        assert "draw_whole_tasks" in str(refusal.value.hint)
        assert "RUN" not in str(refusal.value.hint)
    whole = label(50, true, judged, by_verdict=few)
    assert correct(outcomes.take(np.arange(49)), whole.take(np.arange(49)), "pass^2").weight == 0


def test_skipped_labels_and_missing_attempts_widen() -> None:
    outcomes, true, judged = simulate(7)
    plain = correct(outcomes, label(20, true, judged), "pass^2").estimate
    rows = [(str(i), judged[i][j], true[i][j]) for i in range(20) for j in range(8)]
    with_gaps = [(*row[:2], None if j % 9 == 0 else row[2]) for j, row in enumerate(rows)]
    found = correct(outcomes, LabelCounts.from_rows(with_gaps), "pass^2").estimate
    assert found.value < plain.value < (found.value_if_passed or 0)
    assert found.low is not None
    assert plain.low is not None
    assert found.low < plain.low
    counts = (outcomes.n.tolist(), outcomes.c.tolist())
    missing = Outcomes.from_counts(*counts, list(outcomes.tasks), missing=[1] * 50)
    wider = correct(missing, label(20, true, judged), "pass^2").estimate
    assert wider.low is not None
    assert wider.high is not None
    assert wider.low < plain.low
    assert wider.value < (wider.value_if_passed or 0)


def test_unequal_attempts_and_clusters() -> None:
    rng = np.random.default_rng(8)
    n = rng.integers(3, 9, 40)
    rows, labels = [], []
    for i, size in enumerate(n.tolist()):
        right = (rng.random(size) < 0.8).tolist()
        verdicts = [(not r) if rng.random() < 0.05 else r for r in right]
        rows.append(sum(verdicts))
        if i < 20:
            labels += [(str(i), v, r) for v, r in zip(verdicts, right, strict=True)]
    slices = {"part": [str(i % 20) for i in range(40)]}
    outcomes = Outcomes.from_counts(n.tolist(), rows, labels=slices)
    counts = LabelCounts.from_rows(labels)
    for correction in ("whole tasks", "errors"):
        plain = correct(outcomes, counts, "pass^3", correction=correction).estimate
        clustered = correct(
            outcomes, counts, "pass^3", correction=correction, cluster="part"
        ).estimate
        for found in (plain, clustered):
            assert found.low is not None
            assert found.high is not None
            assert 0 <= found.low <= found.value <= found.high <= 1
        assert plain.value == clustered.value


def test_the_error_of_a_judge() -> None:
    rows = [("a", True, True)] * 8 + [("b", False, True)] * 2 + [("c", False, False)] * 9
    labels = LabelCounts.from_rows([*rows, ("d", True, False)])
    slices = {"kind": ["x", "x", "y", "y"]}
    outcomes = Outcomes.from_counts([10] * 4, [10, 0, 0, 8], list("abcd"), labels=slices)
    error = judge_error(outcomes, labels)
    assert error.false_failures.rate == pytest.approx(0.2)
    assert error.false_passes.rate == pytest.approx(0.1)
    assert (error.false_failures.errors, error.false_failures.labeled) == (2, 10)
    assert error.false_failures.low < 0.2 < error.false_failures.high
    assert set(error.groups["kind"]) == {"x", "y"}
    assert error.groups["kind"]["x"][0].rate is None
    timeouts = LabelCounts.from_rows([("b", False, True), ("c", False, False)])
    by_category = judge_error(outcomes, replace(labels, categories={"timeout": timeouts}))
    assert by_category.categories["timeout"].rate == pytest.approx(0.5)


def test_single_labels_give_the_exact_interval_of_a_share() -> None:
    """One attempt per task: Clopper and Pearson's interval, 2 of 40."""
    labels = LabelCounts.from_rows([(str(i), i >= 2, True) for i in range(40)])
    outcomes = Outcomes.from_counts([1] * 40, [0] * 2 + [1] * 38)
    rate = judge_error(outcomes, labels).false_failures
    assert (rate.low, rate.high) == pytest.approx((0.0061, 0.1692), abs=1e-4)


def test_failures_that_were_labeled_more_often_are_weighted() -> None:
    """100 of 900 passes and all of 100 failures: a tenth of the passes is worth as much."""
    rows = [(str(i), True, i >= 10) for i in range(100)]
    rows += [(str(900 + i), False, i < 20) for i in range(100)]
    outcomes = Outcomes.from_counts([1] * 1000, [1] * 900 + [0] * 100)
    error = judge_error(outcomes, LabelCounts.from_rows(rows))
    assert error.weighted
    assert error.false_passes.rate == pytest.approx(90 / (90 + 80))
    assert error.false_failures.rate == pytest.approx(20 / (20 + 810))


def test_alikeness() -> None:
    spread = LabelCounts.from_rows(
        [(str(i), not (i < 10 and j == 0), True) for i in range(20) for j in range(4)]
    )
    gathered = LabelCounts.from_rows([(str(i), i >= 3, True) for i in range(20) for _ in range(4)])
    none = LabelCounts.from_rows([(str(i), True, True) for i in range(5)])
    assert not alikeness(spread).is_doubtful
    assert alikeness(gathered).is_rejected
    assert alikeness(none).p_value is None


def test_agreement() -> None:
    assert krippendorff_alpha([[1, 1], [0, 0]]) == 1
    assert krippendorff_alpha([[1], [0]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert cohen_kappa([]) is None
    assert cohen_kappa([(1, 1), (0, 0)]) == 1
    assert cohen_kappa([(1, 0), (0, 1)]) == -1


def test_draws_are_random_repeatable_and_as_asked() -> None:
    attempts = [(f"t{i}", j) for i in range(20) for j in range(1, 5)]
    one, again = (draw_whole_tasks(attempts, 5, seed=3) for _ in range(2))
    assert one == again != draw_whole_tasks(attempts, 5, seed=4)
    assert len(one.attempts) == 20
    assert len({task for task, _ in one.attempts}) == 5
    passed, failed = attempts[:60], attempts[60:]
    drawn = draw_attempts(passed, failed, 30, seed=1, failures=15)
    assert len(set(drawn.attempts) & set(failed)) == 15
    assert len(draw_attempts(passed, failed, 500, seed=1).attempts) == 80
    with pytest.raises(InvalidValue, match="cannot be failures"):
        draw_attempts(passed, failed, 10, seed=1, failures=11)
    with pytest.raises(InvalidValue, match="no attempt with a verdict"):
        draw_attempts([], [], 10, seed=1)


def test_noise_is_split_between_judge_and_attempts() -> None:
    """Votes that always agree: the attempts. Votes that flip a coin at every attempt: the judge."""
    steady = [(f"t{i}", 3 * (j % 2), 3) for i in range(8) for j in range(4)]
    shares = share_noise(steady)
    assert shares is not None
    assert (shares.judge, shares.contradicted) == (0, 0)
    rng = np.random.default_rng(1)
    coin = [(f"t{i}", int(rng.binomial(5, 0.5)), 5) for i in range(30) for _ in range(6)]
    shares = share_noise(coin)
    assert shares is not None
    assert shares.low < 1 <= shares.high
    assert shares.judge > 0.85
    mixed = [
        (f"t{i}", int(rng.binomial(4, 0.9 if rng.random() < 0.5 else 0.1)), 4)
        for i in range(60)
        for _ in range(6)
    ]
    shares = share_noise(mixed)
    assert shares is not None
    assert shares.low < 0.18 / 0.5 < shares.high
    assert share_noise([("a", 1, 1)] * 9) is None
    assert share_noise([]) is None


def test_a_plan_of_labels_says_what_comes_true() -> None:
    """From 12 of 50 whole tasks, the width at 25 is foreseen to about a fifth, on average."""
    foreseen, real = [], []
    for seed in range(12):
        outcomes, true, judged = simulate(300 + seed)
        plan = plan_labels(outcomes, label(12, true, judged), "pass^4", half_width=0.02)
        step = next(step for step in plan.steps if step.more_labels == 96)
        foreseen.append(step.half_width)
        found = correct(outcomes, label(24, true, judged), "pass^4").estimate
        assert found.low is not None
        assert found.high is not None
        real.append((found.high - found.low) / 2)
        assert plan.goal_labels is None
        assert plan.goal_tasks is None or plan.goal_tasks > 50
    assert np.mean(foreseen) == pytest.approx(np.mean(real), rel=0.2)


def test_a_plan_of_labels_reaches_a_goal_and_refuses_nonsense() -> None:
    outcomes, true, judged = simulate(9)
    labels = label(12, true, judged)
    plan = plan_labels(outcomes, labels, "pass^1", half_width=0.3)
    assert plan.goal_labels == 0
    assert 0 < plan.label_share < 1
    for metric_word, goal in (("delta^2", None), ("pass^1", 0.7)):
        with pytest.raises(InvalidValue):
            plan_labels(outcomes, labels, metric_word, half_width=goal)


def test_a_plan_of_labels_for_error_rates_says_what_comes_true() -> None:
    """Twice the labels: the width that was foreseen from half of them, on average."""
    foreseen, real = [], []
    for seed in range(5):
        outcomes, true, judged = simulate(400 + seed, error=0.08)
        order = np.random.default_rng(seed).permutation(400).tolist()
        rows = [(str(i // 8), judged[i // 8][i % 8], true[i // 8][i % 8]) for i in order]
        parts = [LabelCounts.from_rows(rows[:count], draws=("drawn",)) for count in (150, 250)]
        try:
            goal = None if seed else 0.01
            plan = plan_labels(outcomes, parts[0], "pass^4", half_width=goal, correction="errors")
            found = correct(outcomes, parts[1], "pass^4", correction="errors").estimate
        except InvalidValue:
            continue
        assert found.low is not None
        assert found.high is not None
        foreseen.append(next(one.half_width for one in plan.steps if one.more_labels == 100))
        real.append((found.high - found.low) / 2)
        assert plan.correction == "errors"
        assert plan.labels == 150
        assert plan.goal_labels is None
        assert 0 < plan.label_share < 1
    assert len(real) >= 3
    assert np.mean(foreseen) == pytest.approx(np.mean(real), rel=0.2)


def test_skipped_attempts_are_work_of_a_plan_of_labels() -> None:
    """Whole tasks have 4 attempts each, of which one was looked at and skipped."""
    outcomes = Outcomes.from_counts(4, [i % 5 for i in range(30)])
    rows = [
        (str(i), place < i % 5, None if place == 0 else place < i % 5)
        for i in range(12)
        for place in range(4)
    ]
    plan = plan_labels(outcomes, LabelCounts.from_rows(rows), "pass^1")
    whole = [step for step in plan.steps if step.more_attempts == 0][-1]
    assert whole.more_labels == 4 * (30 - 12)


def test_a_slice_with_one_value_has_no_groups() -> None:
    counts, labels = [1, 2, 3, 4], {"domain": ["x", "x", "y", "y"], "all": ["z"] * 4}
    outcomes = Outcomes.from_counts(4, counts, [str(i) for i in range(4)], labels=labels)
    rows = [(str(i), place < c, place < 2) for i, c in enumerate(counts) for place in range(4)]
    found = judge_error(outcomes, LabelCounts.from_rows(rows))
    assert list(found.groups) == ["domain"]
    assert list(found.groups["domain"]) == ["x", "y"]
    passes, failures = found.groups["domain"]["y"]
    assert (passes.errors, passes.labeled) == (3, 4)
    assert (failures.errors, failures.labeled) == (0, 4)


def test_values_of_labeled_tasks_lie_between_0_and_1_unless_stated() -> None:
    rng = np.random.default_rng(8)
    a, b, c = (rng.integers(0, 5, (1, tasks)) / 4 for tasks in (12, 12, 30))
    plain, stated = WholeTasks(a, b, c), WholeTasks(a, b, c, lowest=0.0, highest=1.0)
    assert plain.interval(0.9) == stated.interval(0.9)
    assert plain.interval(0.9) != WholeTasks(a, b, c, highest=2.0).interval(0.9)
    ones = np.ones((1, 4))
    assert WholeTasks(ones, ones, ones).points.tolist() == [1.0]


def test_a_plan_of_labels_for_error_rates_ends_at_its_goal() -> None:
    outcomes, true, judged = simulate(3, error=0.08)
    labels = label(25, true, judged)
    plan = plan_labels(outcomes, labels, "pass^1", correction="errors")
    assert [step.more_labels for step in plan.steps[:-1]] == sorted(
        step.more_labels for step in plan.steps[:-1]
    )
    step = plan.steps[1]
    goal = plan_labels(outcomes, labels, "pass^1", half_width=step.half_width, correction="errors")
    assert goal.goal_labels is not None
    assert goal.goal_labels == pytest.approx(step.more_labels, rel=0.1, abs=3)
    assert goal.goal_tasks is None
    reached = plan_labels(
        outcomes, labels, "pass^1", half_width=plan.half_width + 0.01, correction="errors"
    )
    assert reached.goal_labels == 0
    beyond = plan_labels(outcomes, labels, "pass^1", half_width=0.001, correction="errors")
    assert beyond.goal_labels is None
