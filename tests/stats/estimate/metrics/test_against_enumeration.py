"""Every metric against its definition: all attempt patterns, all draws, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes
from passhat.stats.estimate import exact, metric
from passhat.stats.estimate.metrics import CountMetric, Delta, GPass, PassAt, PassHat, Rate
from passhat.stats.estimate.metrics.ordered import ShuffledWindow
from passhat.stats.estimate.task_values import values_by_task

SMALL = [(n, c, k) for n in range(1, 7) for c in range(n + 1) for k in range(1, n + 1)]


def _value(word: str, n: int, c: int) -> float:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return float(chosen.values(np.array([n]), np.array([c]))[0])


def _share_of_draws(n: int, c: int, k: int, needed: int) -> Fraction:
    """How many of all ways to draw k of the n attempts hold at least so many passes."""
    attempts = [1] * c + [0] * (n - c)
    drawn = list(combinations(attempts, k))
    return Fraction(sum(sum(chosen) >= needed for chosen in drawn), len(drawn))


@pytest.mark.parametrize(("n", "c", "k"), SMALL)
def test_a_task_value_is_the_share_of_all_draws(n: int, c: int, k: int) -> None:
    assert _value(f"pass@{k}", n, c) == pytest.approx(float(_share_of_draws(n, c, k, 1)), abs=1e-15)
    assert _value(f"pass^{k}", n, c) == pytest.approx(float(_share_of_draws(n, c, k, k)), abs=1e-15)
    for share in ("0.25", "0.5", "0.75", "1/3", "2/3", "1"):
        needed = -((-Fraction(share).numerator * k) // Fraction(share).denominator)
        wanted = float(_share_of_draws(n, c, k, needed))
        assert _value(f"gpass@{k}:{share}", n, c) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_the_average_over_all_patterns_is_the_known_value(n: int, rate: Fraction) -> None:
    """Unbiased: weighted by its chance, the value over all 2^n patterns gives the truth."""
    for k in range(1, n + 1):
        words = [f"pass@{k}", f"pass^{k}", f"gpass@{k}:0.5", f"gpass@{k}:1"]
        for word in words:
            expected = sum(
                (
                    rate ** sum(row)
                    * (1 - rate) ** (n - sum(row))
                    * Fraction(_value(word, n, sum(row))).limit_denominator(10**6)
                )
                for row in product((0, 1), repeat=n)
            )
            assert exact([float(rate)], word) == pytest.approx(float(expected), abs=1e-12), word


@pytest.mark.parametrize(("w", "n"), [(1, 4), (2, 4), (2, 6), (3, 6), (3, 7), (5, 5)])
def test_windows_over_all_patterns(w: int, n: int) -> None:
    """The value of each pattern by its longest streak, and the shuffled twin by its average."""
    rows = list(product((0, 1), repeat=n))
    streaks = []
    for row in rows:
        longest = run = 0
        for passed in row:
            run = run + 1 if passed else 0
            longest = max(longest, run)
        streaks.append(longest)
    values = values_by_task(Outcomes.from_matrix(rows), metric(f"window^{w}"))
    assert values.tolist() == [float(streak >= w) for streak in streaks]
    twin = ShuffledWindow(w, n)
    for c in range(n + 1):
        own = [
            Fraction(int(streak >= w))
            for row, streak in zip(rows, streaks, strict=True)
            if sum(row) == c
        ]
        shuffled = float(twin.values(np.array([n]), np.array([c]))[0])
        assert shuffled == pytest.approx(float(sum(own) / len(own)), abs=1e-15)
    for rate in (0.0, 0.2, 0.9, 1.0):
        chance = [rate ** sum(row) * (1 - rate) ** (n - sum(row)) for row in rows]
        truth = sum(p * (s >= w) for p, s in zip(chance, streaks, strict=True))
        assert float(twin.value_at_rate(np.array([rate]))[0]) == pytest.approx(truth, abs=1e-14)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_first_attempts_over_all_patterns(n: int) -> None:
    rows = list(product((0, 1), repeat=n))
    outcomes = Outcomes.from_matrix(rows)
    for k in range(1, n + 1):
        any_of = values_by_task(outcomes, metric(f"first@{k}"))
        all_of = values_by_task(outcomes, metric(f"first^{k}"))
        assert any_of.tolist() == [float(any(row[:k])) for row in rows]
        assert all_of.tolist() == [float(all(row[:k])) for row in rows]
        # Each pattern once is a fair coin.
        assert any_of.mean() == exact([0.5], f"pass@{k}")
        assert all_of.mean() == exact([0.5], f"pass^{k}")


suites = st.lists(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=12,
)


@given(suites, st.data())
def test_passes_and_failures_are_mirrored(
    tasks: list[tuple[int, int]], data: st.DataObject
) -> None:
    n = np.array(sorted(n for n, _ in tasks))
    k = data.draw(st.integers(1, int(n.min())))
    c = np.array([data.draw(st.integers(0, int(size))) for size in n])
    assert PassHat(k).values(n, n - c) == pytest.approx(1 - PassAt(k).values(n, c), abs=1e-14)
    half = GPass(k, Fraction(1, 2))
    # At least m of k pass exactly where fewer than k - m + 1 fail.
    fails_needed = k - half.needed + 1
    other = GPass(k, Fraction(fails_needed, k))
    assert half.values(n, c) == pytest.approx(1 - other.values(n, n - c), abs=1e-12)


@given(suites)
def test_values_move_one_way_in_k_and_in_c(tasks: list[tuple[int, int]]) -> None:
    for n, c in tasks:
        hats = [_value(f"pass^{k}", n, c) for k in range(1, n + 1)]
        ats = [_value(f"pass@{k}", n, c) for k in range(1, n + 1)]
        assert hats == sorted(hats, reverse=True)
        assert ats == sorted(ats)
        assert hats[0] == ats[0] == c / n
        for k in (1, n):
            passes = np.arange(n + 1)
            sizes = np.full(n + 1, n)
            for values in (PassHat(k).values(sizes, passes), PassAt(k).values(sizes, passes)):
                assert (np.diff(values) >= -1e-15).all()
                assert values[0] == 0.0
                assert values[-1] == 1.0


@given(st.integers(1, 40), st.data())
def test_gpass_lies_between_its_two_ends(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    c = data.draw(st.integers(0, n))
    sizes, passes = np.array([n]), np.array([c])
    by_share = [
        float(GPass(k, Fraction(needed, k)).values(sizes, passes)[0]) for needed in range(1, k + 1)
    ]
    assert (np.diff(by_share) <= 1e-14).all()
    sure = max(0, k - (n - c))  # so many of any k drawn passed
    assert by_share[:sure] == [1.0] * sure
    assert by_share[c:] == [0.0] * (k - c if k > c else 0)
    assert by_share[0] == pytest.approx(float(PassAt(k).values(sizes, passes)[0]), abs=1e-12)
    assert by_share[-1] == pytest.approx(float(PassHat(k).values(sizes, passes)[0]), abs=1e-12)
    # E[passes among k] = k c / n, and a whole number's mean is the sum of its upper tails.
    assert sum(by_share) == pytest.approx(k * c / n, abs=1e-10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 12))
def test_known_delta_lies_between_its_bounds(rates: list[float], k: int) -> None:
    """Jensen below, and mu - mu^k above, where every task always or never passes."""
    p = np.array(rates)
    (value,) = Delta(k).value_at_rate(p)
    assert 0 <= value <= Delta(k).largest(float(p.mean()), float(p.mean())) + 1e-12
    same = float(Delta(k).value_at_rate(np.full(3, float(p.mean())))[0])
    assert same == pytest.approx(0.0, abs=1e-12)


def test_delta_reaches_its_upper_bound_with_sure_tasks() -> None:
    p = np.array([1.0] * 3 + [0.0] * 7)
    for k in (2, 3, 8):
        assert Delta(k).value_at_rate(p)[0] == pytest.approx(Delta(k).largest(0.3, 0.3))
        assert Delta(k).largest(0.2, 0.9) == Delta(k).largest(0.0, 1.0)
    assert Delta(1).combine(0.7, 0.7) == 0.0


@pytest.mark.parametrize("word", ["pass@4", "pass^4", "gpass@4:0.75", "rate", "pass^1"])
def test_a_huge_n_agrees_with_the_binomial(word: str) -> None:
    """Drawing 4 of 10^9 attempts is drawing with replacement, to nine digits."""
    n, c = 10**9, 3 * 10**8
    assert _value(word, n, c) == pytest.approx(exact([0.3], word), abs=1e-8)


@pytest.mark.parametrize(("n", "k"), [(16_383, 200), (16_384, 200), (16_385, 200), (50_000, 3)])
def test_both_ways_to_multiply_agree_with_whole_numbers(n: int, k: int) -> None:
    """Around the size at which the shorter product is taken, cell by cell."""
    for c in (0, k - 1, k, k + 1, n // 2, n - k - 1, n - k, n - 1, n):
        wanted = Fraction(comb(c, k), comb(n, k))
        assert _value(f"pass^{k}", n, c) == pytest.approx(float(wanted), rel=1e-10, abs=1e-300)
        mirrored = 1 - Fraction(comb(n - c, k), comb(n, k))
        assert _value(f"pass@{k}", n, c) == pytest.approx(float(mirrored), abs=1e-10)


def test_the_python_that_a_report_prints_gives_the_same_value() -> None:
    outcomes = Outcomes.from_counts([4, 4, 6, 9], [0, 3, 6, 4])
    cells = list(
        zip(*(part.tolist() for part in _parts(outcomes)), strict=True)  # n, c, tasks
    )
    for word in ("pass@3", "pass^3", "gpass@4:0.5", "delta^3", "rate"):
        scope: dict[str, object] = {"cells": cells}
        exec(metric(word).python(), scope)
        chosen = metric(word)
        if isinstance(chosen, Delta):
            power, mean = (values_by_task(outcomes, part).mean() for part in chosen.parts)
            assert scope["value"] == pytest.approx(power - mean**3)
        else:
            assert scope["value"] == pytest.approx(values_by_task(outcomes, chosen).mean())
    rows = [[1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]]
    for word, wanted in (("first@2", 2 / 3), ("first^2", 1 / 3), ("window^3", 1 / 3)):
        scope = {"rows": rows}
        exec(metric(word).python(), scope)
        assert scope["value"] == pytest.approx(wanted)
    twin = ShuffledWindow(2, 4)
    scope = {"cells": [(4, 2, 1)]}
    exec(twin.python(), scope)
    assert scope["value"] == pytest.approx(0.5)


def _parts(outcomes: Outcomes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cells = outcomes.histogram()
    return cells.n, cells.c, cells.tasks


def test_rate_is_pass_hat_one_under_another_name() -> None:
    assert Rate().k == 1
    assert str(Rate()) == "rate"
    n, c = np.array([3, 7]), np.array([1, 7])
    assert Rate().values(n, c).tolist() == PassHat(1).values(n, c).tolist() == [1 / 3, 1.0]
