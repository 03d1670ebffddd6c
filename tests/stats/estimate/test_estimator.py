"""Estimates in words, diagnoses by hand, and what must not change a number."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, estimate, estimate_all
from passhat._serialize import to_data
from passhat.errors import InvalidValue
from passhat.stats.estimate import exact
from passhat.stats.estimate.diagnostics import diagnose, icc1

WORDS = ["pass^1", "pass^2", "pass@2", "gpass@2:0.5", "rate"]
suites = st.lists(
    st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=12,
)


@settings(max_examples=max_examples(15))
@given(suites, st.randoms(use_true_random=False))
def test_neither_tasks_nor_attempts_have_an_order_that_counts(
    tasks: list[tuple[int, int]], random: object
) -> None:
    """Rows of attempts, shuffled within and between tasks, against plain counts."""
    n = max(size for size, _ in tasks)
    rows = [[1] * min(c, n) + [0] * (n - min(c, n)) for _, c in tasks]
    shuffled = [list(row) for row in rows]
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    plain = estimate_all(Outcomes.from_counts(n, [sum(row) for row in rows]), WORDS)
    for one, other in zip(plain, estimate_all(Outcomes.from_matrix(shuffled), WORDS), strict=True):
        assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


@settings(max_examples=max_examples(15))
@given(suites)
def test_twice_the_suite_has_the_same_value_and_a_narrower_interval(
    tasks: list[tuple[int, int]],
) -> None:
    n, c = zip(*tasks, strict=True)
    once = estimate_all(Outcomes.from_counts(n, c), WORDS, about="new tasks")
    twice = estimate_all(Outcomes.from_counts(n * 2, c * 2), WORDS, about="new tasks")
    for one, two in zip(once, twice, strict=True):
        assert two.value == pytest.approx(one.value)
        assert one.low is not None and one.high is not None  # noqa: PT018
        assert two.low is not None and two.high is not None  # noqa: PT018
        assert two.high - two.low < one.high - one.low + 1e-9


@settings(max_examples=max_examples(15))
@given(suites)
def test_a_suite_split_in_two_averages_to_the_whole(tasks: list[tuple[int, int]]) -> None:
    if len(tasks) < 2:
        return
    n, c = (np.array(part) for part in zip(*tasks, strict=True))
    half = len(tasks) // 2
    for word in WORDS:
        whole = estimate(Outcomes.from_counts(n, c), word, level=None).value
        first = estimate(Outcomes.from_counts(n[:half], c[:half]), word, level=None).value
        second = estimate(Outcomes.from_counts(n[half:], c[half:]), word, level=None).value
        joined = (half * first + (len(tasks) - half) * second) / len(tasks)
        assert whole == pytest.approx(joined)


@pytest.mark.parametrize(
    ("n", "c", "missing", "text"),
    [
        (1, 1, 0, "1.000 [0.025, 1.000] (95%, these tasks; 1 task, 1 attempt)"),
        (1, 0, 0, "0.000 [0.000, 0.975] (95%, these tasks; 1 task, 1 attempt)"),
        (1, 1, 1, "0.500 to 1.000 [0.013, 1.000] (95%, these tasks; 1 task, 2 attempts)"),
    ],
)
def test_one_task_in_words(n: int, c: int, missing: int, text: str) -> None:
    outcomes = Outcomes.from_counts([n], [c], missing=[missing])
    assert str(estimate(outcomes, "rate")) == f"rate = {text}"


def test_no_level_means_no_interval_and_no_percentage() -> None:
    found = estimate(Outcomes.from_counts(2, [1, 2]), "rate", level=None)
    assert str(found) == "rate = 0.750 no interval (new tasks; 2 tasks, 4 attempts)"
    assert found.level is None
    assert "no interval" in found.method


@pytest.mark.parametrize("level", [0.5, 0.9, 0.975, 0.995, 0.9999])
def test_a_level_reads_as_it_was_asked_for(level: float) -> None:
    text = str(estimate(Outcomes.from_counts(2, [1, 2]), "rate", level=level))
    assert f"({100 * level:g}%, new tasks" in text


def test_an_estimate_as_plain_data_names_its_policy() -> None:
    outcomes = Outcomes.from_counts([2, 3], [1, 3], missing=[1, 0])
    for policy, value in (("bound", 2 / 3), ("fail", 2 / 3), ("exclude", 0.75)):
        data = json.loads(json.dumps(to_data(estimate(outcomes, "rate", missing=policy))))
        assert data["missing_policy"] == policy
        assert data["value"] == pytest.approx(value)
        assert (data["value_if_passed"] is not None) is (policy == "bound")
        assert data["low"] <= data["value"] <= data["high"]


def test_known_rates_against_sums_over_all_choices() -> None:
    """pass@k of tasks with known rates is one minus the average chance that none passes."""
    rates = [0.0, 0.1, 0.5, 0.9, 1.0]
    for k in (1, 2, 5):
        none = [(1 - p) ** k for p in rates]
        assert exact(rates, f"pass@{k}") == pytest.approx(1 - np.mean(none))
        assert exact(rates, f"pass^{k}") == pytest.approx(np.mean([p**k for p in rates]))
    chosen = [len(passed) for r in (2, 3) for passed in combinations(range(3), r)]
    enough = [sum(p**size * (1 - p) ** (3 - size) for size in chosen) for p in rates]
    assert exact(rates, "gpass@3:0.5") == pytest.approx(np.mean(enough))
    with pytest.raises(InvalidValue, match="at least one success rate"):
        exact([], "pass^1")


# -- diagnoses -------------------------------------------------------------------------------------


def _one_way(rows: list[list[int]]) -> float | None:
    """ICC(1) from the table of a one-way analysis of variance, equal sizes."""
    m, n = len(rows), len(rows[0])
    grand = sum(map(sum, rows)) / (m * n)
    means = [sum(row) / n for row in rows]
    between = n * sum((mean - grand) ** 2 for mean in means) / (m - 1)
    within = sum((x - mean) ** 2 for row, mean in zip(rows, means, strict=True) for x in row)
    within /= m * (n - 1)
    total = between + (n - 1) * within
    return None if total == 0 else (between - within) / total


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=2, max_size=8
        )
    )
)
def test_icc_is_that_of_the_analysis_of_variance(rows: list[list[int]]) -> None:
    outcomes = Outcomes.from_matrix(rows)
    found, wanted = icc1(outcomes.n, outcomes.c), _one_way(rows)
    if wanted is None:
        assert found is None
    else:
        assert found == pytest.approx(wanted, abs=1e-12)


@given(suites)
def test_kinds_of_tasks_add_up(tasks: list[tuple[int, int]]) -> None:
    n, c = zip(*tasks, strict=True)
    found = diagnose(Outcomes.from_counts(n, c))
    assert found.always + found.never + found.flaky == len(tasks)
    assert found.attempt_average == pytest.approx(sum(c) / sum(n))
    assert found.task_average == pytest.approx(np.mean(np.array(c) / np.array(n)))
    assert found.all_alike is (found.flaky == 0)
    assert any("passed sometimes" in note for note in found.notes) is (found.flaky > 0)


def test_one_attempt_and_one_task_are_diagnosed_without_a_claim() -> None:
    once = diagnose(Outcomes.from_counts(1, [1, 0, 1]))
    assert (once.icc, once.all_alike, once.flaky) == (None, False, 0)
    assert once.notes == ()
    single = diagnose(Outcomes.from_counts(8, [3]))
    assert single.icc is None
    assert single.notes == ("1 of 1 task passed sometimes and failed sometimes",)
    sure = diagnose(Outcomes.from_counts(8, [8]))
    assert "do not show why" in " ".join(sure.notes)
    assert "cached" not in " ".join(sure.notes)
