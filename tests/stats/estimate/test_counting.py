"""The estimators against rational arithmetic, and what they refuse."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import g_pass_at_k, pass_at_k, pass_hat_k
from passhat.errors import InvalidCounts, InvalidValue
from passhat.stats.estimate.counting import as_share, passes_needed

SHARES = ("0.01", "0.28", "0.5", "0.75", "1")


def _any(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def _all(n: int, c: int, k: int) -> Fraction:
    return Fraction(comb(c, k), comb(n, k))


def _at_least(n: int, c: int, k: int, needed: int) -> Fraction:
    ways = sum(comb(c, j) * comb(n - c, k - j) for j in range(needed, k + 1))
    return Fraction(ways, comb(n, k))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 31, 60])
def test_exact_to_1e_12_against_rational_arithmetic(n: int) -> None:
    c = np.arange(n + 1)
    for k in range(1, n + 1):
        expected_any = [float(_any(n, int(x), k)) for x in c]
        expected_all = [float(_all(n, int(x), k)) for x in c]
        np.testing.assert_allclose(pass_at_k(n, c, k), expected_any, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(pass_hat_k(n, c, k), expected_all, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [1, 4, 13, 60])
@pytest.mark.parametrize("share", SHARES)
def test_g_pass_is_exact_to_1e_12(n: int, share: str) -> None:
    c = np.arange(n + 1)
    for k in range(1, n + 1):
        needed = -(-Fraction(share) * k).__floor__()
        expected = [float(_at_least(n, int(x), k, needed)) for x in c]
        np.testing.assert_allclose(g_pass_at_k(n, c, k, share), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("c", "k"), [(10, 10**5), (5000, 137), (999_990, 10**5), (950_000, 20)])
def test_stable_for_a_million_attempts(c: int, k: int) -> None:
    n = 10**6
    with localcontext() as context:
        context.prec = 60
        # The shorter of two equal products: over k draws, or over the n - c failures.
        terms = (
            [(c - i, n - i) for i in range(k)]
            if k <= n - c
            else [(n - k - j, n - j) for j in range(n - c)]
        )
        exact_all = Decimal(1)
        for top, bottom in terms:
            exact_all *= Decimal(max(top, 0)) / Decimal(bottom)
    assert pass_hat_k(n, c, k) == pytest.approx(float(exact_all), rel=1e-9, abs=1e-300)
    assert pass_at_k(n, n - c, k) == pytest.approx(1 - float(exact_all), rel=1e-9)


def test_a_billion_attempts_need_no_table() -> None:
    n, c = 10**9, 10**8
    assert pass_hat_k(n, c, 5) == pytest.approx(float(_all(n, c, 5)), rel=1e-12)
    assert pass_at_k(n, c, 5) == pytest.approx(float(_any(n, c, 5)), rel=1e-12)


def test_g_pass_is_stable_for_a_million_attempts() -> None:
    # Half of the attempts pass: by symmetry at least half of k pass a bit more than half the time.
    assert 0.5 < float(g_pass_at_k(10**6, 5 * 10**5, 10**5, 0.5)) < 0.502
    assert g_pass_at_k(10**6, 10**6, 10**5, 1) == 1.0
    assert g_pass_at_k(10**6, 0, 10**5, 0.5) == 0.0


counts = st.integers(1, 80).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


@given(counts)
def test_invariants(found: tuple[int, int, int]) -> None:
    n, c, k = found
    hat, at = pass_hat_k(n, c, k), pass_at_k(n, c, k)
    assert isinstance(hat, float)
    assert 0 <= hat <= at + 1e-15 <= 1 + 1e-15
    assert pass_hat_k(n, c, 1) == pass_at_k(n, c, 1) == c / n
    assert at == pytest.approx(1 - float(pass_hat_k(n, n - c, k)), abs=1e-15)
    assert g_pass_at_k(n, c, k, 1) == pytest.approx(hat, abs=1e-13)
    assert g_pass_at_k(n, c, k, Fraction(1, k)) == pytest.approx(at, abs=1e-13)
    if k < n:
        assert pass_at_k(n, c, k + 1) >= at - 1e-15
        assert pass_hat_k(n, c, k + 1) <= hat + 1e-15
    if c == 0:
        assert at == 0.0


@given(st.lists(counts, min_size=1, max_size=20))
def test_arrays_are_the_scalars_side_by_side(found: list[tuple[int, int, int]]) -> None:
    n, c, k = (list(values) for values in zip(*found, strict=True))
    assert np.asarray(pass_at_k(n, c, k)).tolist() == [pass_at_k(*one) for one in found]
    assert np.asarray(pass_hat_k(n, c, k)).tolist() == [pass_hat_k(*one) for one in found]


def test_shapes_are_kept() -> None:
    assert np.shape(pass_at_k(10, np.zeros((2, 3), int), 5)) == (2, 3)
    assert np.shape(pass_hat_k(10, 5, [1, 2, 3])) == (3,)


def test_the_share_is_the_decimal_that_was_written() -> None:
    assert passes_needed(as_share(0.28), 25) == 7  # 0.28 * 25 is 7.000000000000001 in floats
    assert passes_needed(as_share("0.28"), 25) == 7
    assert passes_needed(as_share(Fraction(1, 3)), 3) == 1
    assert g_pass_at_k(50, 20, 25, 0.28) == pytest.approx(float(_at_least(50, 20, 25, 7)))


@pytest.mark.parametrize("t", [0, -0.1, 1.01, "half", "1/0", float("nan")])
def test_shares_outside_are_refused(t: float | str) -> None:
    with pytest.raises(InvalidValue, match="t must"):
        g_pass_at_k(10, 5, 4, t)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (5, 0, 10, "n = 5, c = 0, k = 10: k must not exceed n"),
        (5, 6, 1, "c must lie between 0 and n"),
        (5, -1, 1, "c must lie between 0 and n"),
        (0, 0, 1, "n must be at least 1"),
        (5, 2, 0, "k must be at least 1"),
        (5, 2.5, 1, "c = 2.5 is not a whole number"),
        ("five", 2, 1, "n must be whole numbers"),
        (5, None, 1, "c must be whole numbers"),
        ([5, 5, 5], [0, 1, 9], 2, "n = 5, c = 9, k = 2 at element 2"),
        ([5, 5], [0, 1], [2, 6], "n = 5, c = 1, k = 6 at element 1"),
        ([5, 5], [1, 2, 3], 1, r"shapes are \(2,\), \(3,\), \(\)"),
    ],
)
def test_what_cannot_be_counts_is_refused(n: object, c: object, k: object, message: str) -> None:
    for function in (pass_at_k, pass_hat_k, partial(g_pass_at_k, t=0.5)):
        with pytest.raises(InvalidCounts, match=message):
            function(n, c, k)  # type: ignore[arg-type]
