"""The lift on exactly these tasks, and the single tasks that changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import beta, binom, norm

from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, compare
from passhat.errors import InvalidValue
from passhat.stats.compare import Claim
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.task_changes import find_changed_tasks, fisher_tests
from passhat.stats.compare.these_tasks import _rates, lift_on_these_tasks
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy
from passhat.stats.terms import Population


def _cells(n: int | list[int], c: list[int]) -> Histogram:
    return Outcomes.from_counts(n, c).histogram(Completion.AS_FAILED)


def _count_metric(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=25
)


@settings(max_examples=max_examples(25))
@given(rows, st.sampled_from(["pass^1", "pass@2", "pass^2"]), st.sampled_from([0.0125, 0.05]))
def test_it_holds_its_point_has_width_and_mirrors(
    counts: list[tuple[int, int, int]], word: str, tail: float
) -> None:
    a = _cells([5 + e for _, _, e in counts], [x for x, _, _ in counts])
    b = _cells([5] * len(counts), [y for _, y, _ in counts])
    chosen = _count_metric(word)
    up, down = lift_on_these_tasks(a, b, chosen, tail), lift_on_these_tasks(b, a, chosen, tail)
    lift = sum(
        sign * float(cells.tasks @ chosen.values(cells.n, cells.c)) / len(counts)
        for sign, cells in ((1, b), (-1, a))
    )
    assert -1 <= up.low <= lift + 1e-12
    assert lift - 1e-12 <= up.high <= 1
    assert up.high > up.low
    assert (-down.high, -down.low) == pytest.approx((up.low, up.high), abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "n", "word"),
    [
        ([0.3] * 10 + [1.0] * 10, [0.3] * 10 + [1.0] * 10, 8, "pass^4"),
        ([0.95] * 24, [0.95] * 24, 4, "pass^4"),
        ([1.0] * 43 + [1.0, 1.0], [1.0] * 43 + [0.0, 0.0], 1, "pass^1"),
        ([0.5] * 8, [0.5] * 8, 1, "pass^1"),
        (np.linspace(0.05, 1, 30).tolist(), np.linspace(0, 0.95, 30).tolist(), 8, "pass^1"),
    ],
)
def test_fixed_rates_are_covered(a: list[float], b: list[float], n: int, word: str) -> None:
    """At least .93, less three Monte Carlo errors; benchmarks/these_tasks_lift.py has the study."""
    rng = np.random.default_rng(n + len(a))
    chosen = _count_metric(word)
    truth = float((chosen.value_at_rate(np.array(b)) - chosen.value_at_rate(np.array(a))).mean())
    repetitions = 40
    held = 0
    for _ in range(repetitions):
        before, after = (_cells(n, rng.binomial(n, rates).tolist()) for rates in (a, b))
        interval = lift_on_these_tasks(before, after, chosen, 0.025)
        held += interval.low - 1e-9 <= truth <= interval.high + 1e-9
    assert held / repetitions >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / repetitions)


@pytest.mark.parametrize(
    ("a", "b", "n", "word"),
    [
        ([0, 2, 2, 4, 3, 1], [1, 4, 2, 4, 4, 0], 4, "pass^2"),
        ([0] * 5 + [5] * 7, [0] * 3 + [5] * 9, 5, "pass@3"),
        ([3, 6, 6, 6], [6, 1, 0, 6], 6, "pass^1"),
    ],
)
@pytest.mark.parametrize("tail", [0.025, 0.1])
def test_the_linear_program_written_out(
    a: list[int], b: list[int], n: int, word: str, tail: float
) -> None:
    """Every limit on every count, and every tilt, with the formulas of the module's docstring."""
    chosen, tasks = _count_metric(word), len(a)
    rates = _rates(n)
    counts = np.arange(n + 1)
    chance: Any = binom.pmf(counts, n, rates[:, None])
    u = chosen.values(np.full(n + 1, n), counts)
    lift = float(u[b].mean() - u[a].mean())
    step = float(np.abs(np.diff(u)).max())
    rows, limits = [], []
    for s in [sign * tilt for tilt in np.geomspace(0.05, 40, 14) for sign in (-1, 1)]:
        moments_a, moments_b = (np.log(chance @ np.exp(x * u)) for x in (-s, s))
        rows.append(-np.concatenate([moments_a, moments_b]))
        share = 0.5 + 0.25 * min(1.0, 10 / tasks)
        room = norm.ppf(tail) ** 2 / 2 + abs(s) * step * share
        limits.append(room / tasks - s * lift)
    zero = np.zeros(len(rates))
    for side, passed in enumerate((a, b)):
        for j in range(n):
            seen = sum(c <= j for c in passed)
            below = chance[:, : j + 1].sum(axis=1)
            row = np.concatenate([below, zero] if side == 0 else [zero, below])
            rows += [row, -row]
            error = min(2 * tail / 3, 0.05)
            low = beta.ppf(error, seen, tasks - seen + 1) if seen else 0.0
            high = beta.ppf(1 - error, seen + 1, tasks - seen) if seen < tasks else 1.0
            limits += [high, -low]
    value = np.concatenate([-chosen.value_at_rate(rates), chosen.value_at_rate(rates)])
    one = np.ones(len(rates))
    equal = np.array([np.concatenate([one, zero]), np.concatenate([zero, one])])
    found = lift_on_these_tasks(_cells(n, a), _cells(n, b), chosen, tail)
    for sign, end in ((1, found.low), (-1, found.high)):
        solved = linprog(sign * value, np.array(rows), np.array(limits), equal, np.ones(2))
        assert solved.fun is not None
        smallest = sign * float(solved.fun)
        wanted = min(smallest, lift) if sign == 1 else max(smallest, lift)
        assert end == pytest.approx(wanted, abs=1e-6)


def test_a_run_against_itself_is_symmetric_about_zero() -> None:
    cells = _cells(8, [0, 8, 8, 5, 3, 8, 8, 8, 7, 1] * 3)
    interval = lift_on_these_tasks(cells, cells, _count_metric("pass^4"), 0.025)
    assert -0.3 < interval.low < 0 < interval.high < 0.3
    assert interval.low == pytest.approx(-interval.high, abs=1e-6)


def test_what_broke_is_seen() -> None:
    before, after = _cells(8, [8] * 30), _cells(8, [8] * 20 + [0] * 10)
    interval = lift_on_these_tasks(before, after, _count_metric("pass^1"), 0.025)
    assert interval.low < -1 / 3 < interval.high < -0.2


def test_thousands_of_attempts_per_task_are_answered() -> None:
    """Limits on counts that say nothing are left out: 3,000 attempts took a minute."""
    rng = np.random.default_rng(9)
    rates = np.linspace(0.1, 0.9, 12)
    before, after = (_cells(3000, rng.binomial(3000, rates).tolist()) for _ in range(2))
    interval = lift_on_these_tasks(before, after, _count_metric("pass^2"), 0.025)
    assert interval.low < 0 < interval.high
    assert interval.high - interval.low < 0.03


def test_it_is_narrower_than_the_lift_on_new_tasks_and_both_are_named() -> None:
    rng = np.random.default_rng(1)
    rates = np.linspace(0.05, 0.9, 40)
    a = Outcomes.from_counts(16, rng.binomial(16, rates))
    b = Outcomes.from_counts(16, rng.binomial(16, rates + 0.06))
    found = compare(a, b)
    (new,), (these,) = found.results, found.these_tasks
    assert (new.population, these.population) == (Population.NEW_TASKS, Population.THESE_TASKS)
    assert these.high - these.low < new.high - new.low
    assert (new.claim, these.claim) == (Claim.INCONCLUSIVE, Claim.IMPROVEMENT)
    assert found.differing == (these,)
    assert new.sentence.startswith("Inconclusive on new tasks")
    assert these.sentence.startswith("Evidence of improvement on these tasks")
    assert "For new tasks a rise is not shown" in " ".join(str(found).split())
    only = compare(a, b, about="these tasks")
    assert only.results[0].claim is Claim.IMPROVEMENT
    assert only.these_tasks == ()
    assert compare(a, b, about="re-runs").results[0].population is Population.THESE_TASKS


def test_one_broken_task_of_thirty_is_named() -> None:
    a = Outcomes.from_counts(8, [8] * 30)
    b = Outcomes.from_counts(8, [8] * 29 + [0])
    found = compare(Run("A", "A", a), Run("B", "B", b))
    assert [(c.task, c.change) for c in found.task_changes] == [("29", "broke")]
    assert "1 task broke: 29." in found.these_tasks[0].remarks
    assert found.differing  # the mean alone shows nothing, the task does


def test_fisher_reference_values_and_symmetry() -> None:
    less, more = fisher_tests(*(np.array(x) for x in ([8, 3, 0], [8, 4, 1], [0, 1, 1], [8, 4, 1])))
    # R: fisher.test(matrix(c(3,1,1,3),2))$p.value is 0.4857; one-sided 0.2429
    assert less == pytest.approx([1 / 12870, 0.242857, 1.0], abs=1e-6)
    assert more == pytest.approx([1.0, 0.985714, 0.5], abs=1e-6)


def test_missing_attempts_never_break_a_task() -> None:
    a = Outcomes.from_counts([8], [8])
    b = Outcomes.from_counts([0], [0], missing=[8])
    pairing = pair(a, b)
    assert find_changed_tasks(pairing, MissingPolicy.BOUND, 0.05) == ()
    assert find_changed_tasks(pairing, MissingPolicy.FAIL, 0.05)[0].change == "broke"


def test_false_alarms_over_tasks_stay_below_alpha() -> None:
    rng = np.random.default_rng(6)
    rates = rng.beta(0.8, 0.6, 30)
    alarms = 0
    for _ in range(200):
        a, b = (Outcomes.from_counts(8, rng.binomial(8, rates)) for _ in range(2))
        alarms += bool(find_changed_tasks(pair(a, b), MissingPolicy.BOUND, 0.05))
    assert alarms / 200 <= 0.05


def test_unequal_attempts_have_no_p_value() -> None:
    a = Outcomes.from_counts(1, [1, 0, 1, 1])
    b = Outcomes.from_counts(50, [30, 20, 40, 10])
    result = compare(a, b, allow=True).results[0]
    assert result.p_value is None
    assert result.p_text() == "–"
    assert "different numbers of attempts" in str(result.method)


def test_clusters_widen_the_lift_and_few_are_pointed_out() -> None:
    rng = np.random.default_rng(2)
    effect = np.repeat(rng.choice([-4, 4], 10), 10)
    labels = {"repo": [f"r{i // 10}" for i in range(100)]}
    a = Outcomes.from_counts(8, [4] * 100, labels=labels)
    b = Outcomes.from_counts(8, (4 + effect).tolist(), labels=labels)
    plain, clustered = compare(a, b), compare(a, b, cluster="repo")
    assert clustered.results[0].high > plain.results[0].high
    assert "only 10 clusters of repo" in "".join(clustered.notes)
    assert "weights per repo" in str(clustered.results[0].method)
    p_plain, p_clustered = plain.results[0].p_value, clustered.results[0].p_value
    assert p_plain is not None
    assert p_clustered is not None
    assert p_clustered > p_plain
    with pytest.raises(InvalidValue, match="clusters matter for new tasks only"):
        compare(a, b, cluster="repo", about="these tasks")


def test_counts_less_spread_than_any_rates_still_have_an_interval() -> None:
    """Seven of eight on each of 60 tasks is odd under every rate, and still far above two."""
    a, b = Outcomes.from_counts(8, [2] * 60), Outcomes.from_counts(8, [7] * 60)
    result = compare(a, b, about="these tasks").results[0]
    assert result.claim is Claim.IMPROVEMENT
    assert result.high < 0.75


@pytest.mark.parametrize("level", [0.2, 0.5, 0.6])
def test_low_levels_in_one_direction_are_answered(level: float) -> None:
    """A one-sided level of one half leaves half of the error beyond the bound."""
    a, b = Outcomes.from_counts(4, [1, 2, 3]), Outcomes.from_counts(4, [2, 2, 4])
    for alternative in ("greater", "less"):
        (found,) = compare(a, b, level=level, alternative=alternative, about="these tasks").results
        assert found.low <= found.lift <= found.high


def test_missing_attempts_reach_over_the_worst_fill_of_either_side() -> None:
    """The low end is that with A's missing attempts passed, the high end that with B's passed."""
    a = Outcomes.from_counts([3, 4, 3, 4], [3, 2, 1, 4], missing=[1, 0, 1, 0])
    b = Outcomes.from_counts([4, 2, 4, 4], [4, 2, 3, 4], missing=[0, 2, 0, 0])
    a_passed, b_passed = (Outcomes.from_counts(4, c) for c in ([4, 2, 2, 4], [4, 4, 3, 4]))
    a_failed, b_failed = (Outcomes.from_counts(4, c) for c in ([3, 2, 1, 4], [4, 2, 3, 4]))
    (found,) = compare(a, b, about="these tasks").results
    (worst,) = compare(a_passed, b_failed, about="these tasks").results
    (best,) = compare(a_failed, b_passed, about="these tasks").results
    assert (found.low, found.high) == pytest.approx((worst.low, best.high), abs=1e-6)
    assert (found.lift_lowest, found.lift_highest) == pytest.approx((worst.lift, best.lift))


def test_hundreds_of_thousands_of_attempts_take_no_table_of_them() -> None:
    """200,000 attempts per task asked for gigabytes; what is said is that of a few thousand."""
    rates = np.array([0.1, 0.5, 0.9, 0.97])
    a, b = (
        _cells(200_000, (200_000 * side).astype(int).tolist()) for side in (rates, rates + 0.02)
    )
    chosen = _count_metric("pass^2")
    interval = lift_on_these_tasks(a, b, chosen, 0.025)
    lift = float(np.mean((rates + 0.02) ** 2 - rates**2))
    assert interval.low < lift < interval.high
    fewer = [_cells(2_000, (2_000 * side).astype(int).tolist()) for side in (rates, rates + 0.02)]
    same = lift_on_these_tasks(fewer[0], fewer[1], chosen, 0.025)
    assert (interval.low, interval.high) == pytest.approx((same.low, same.high), abs=1e-3)
