"""The tests against brute force, published values and their own symmetries."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom, norm

from passhat.errors import InvalidCounts, InvalidValue
from passhat.protocol import Alternative
from passhat.stats.compare import holm, max_t, sign_flip_test, sign_test
from passhat.stats.compare import significance as module
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import MissingPolicy, Outcomes

SIDES: tuple[Alternative, ...] = ("two-sided", "greater", "less")


@pytest.mark.parametrize(
    ("wins", "losses", "alternative", "expected"),
    [
        (13, 3, "greater", 0.0106),
        (13, 3, "two-sided", 0.0213),
        (1, 0, "greater", 0.5),
        (1, 0, "two-sided", 1.0),
        (0, 0, "two-sided", 1.0),
        (0, 0, "greater", 1.0),
        (0, 5, "less", 1 / 32),
    ],
)
def test_sign_test_gives_the_published_values(
    wins: int, losses: int, alternative: Alternative, expected: float
) -> None:
    assert sign_test(wins, losses, alternative).p_value == pytest.approx(expected, abs=5e-5)


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_is_the_binomial_sum(wins: int, losses: int) -> None:
    n = wins + losses
    expected = sum(comb(n, j) for j in range(wins, n + 1)) / 2**n
    assert sign_test(wins, losses, "greater").p_value == pytest.approx(expected)
    assert sign_test(losses, wins, "less").p_value == pytest.approx(expected)


def test_sign_test_refuses_negative_counts() -> None:
    with pytest.raises(InvalidCounts, match="counts"):
        sign_test(-1, 2)


def _by_brute_force(d: list[float], alternative: Alternative) -> float:
    sums = np.array(list(product((1, -1), repeat=len(d)))) @ np.array(d)
    seen = sum(d)
    hits = {
        "greater": sums >= seen - 1e-9,
        "less": sums <= seen + 1e-9,
        "two-sided": np.abs(sums) >= abs(seen) - 1e-9,
    }[alternative]
    return float(hits.mean())


@given(
    st.lists(st.integers(-8, 8).map(lambda x: x / 8), min_size=1, max_size=10),
    st.sampled_from(SIDES),
)
def test_sign_flip_of_fractions_is_exact(d: list[float], alternative: Alternative) -> None:
    tested = sign_flip_test(d, alternative)
    assert tested.method == "exact sign-flip test"
    assert tested.p_value == pytest.approx(_by_brute_force(d, alternative))


@given(
    st.lists(st.integers(-999, 999).map(lambda x: x / 999 / np.pi), min_size=1, max_size=9),
    st.sampled_from(SIDES),
)
def test_sign_flip_of_any_numbers_is_exact_when_there_are_few(
    d: list[float], alternative: Alternative
) -> None:
    assert sign_flip_test(d, alternative).p_value == pytest.approx(
        _by_brute_force(d, alternative), abs=1e-12
    )


def test_sign_flip_by_draws_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(1).integers(-60, 71, 80) / 70
    exact = sign_flip_test(d)
    monkeypatch.setattr(module, "_MOST_STEPS", 0)
    drawn = sign_flip_test(d)
    assert "exact" in exact.method
    assert "19,999 draws" in drawn.method
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.012)
    assert drawn == sign_flip_test(d)


def test_drawn_p_values_are_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_STEPS", 0)
    d = np.concatenate((np.full(60, 1.0), np.full(60, 0.5)))
    assert sign_flip_test(d, "greater").p_value == pytest.approx(1 / 20_000)


def test_no_disagreement_gives_one() -> None:
    assert sign_flip_test([0.0, 0.0]).p_value == 1.0


def test_differences_too_small_for_a_fraction_are_still_flipped() -> None:
    assert sign_flip_test([1e-190, 2e-190], "greater").p_value == 0.25


def test_sign_flip_refuses_nan() -> None:
    with pytest.raises(InvalidValue, match="numbers"):
        sign_flip_test([0.1, float("nan")])


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]).round(3).tolist() == [0.03, 0.06, 0.06]
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_helps_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_max_t_of_one_comparison_is_the_sign_flip_test() -> None:
    d = np.random.default_rng(2).integers(-3, 5, 40) / 4
    assert max_t(d[:, None])[0] == pytest.approx(sign_flip_test(d).p_value, abs=0.01)


def test_max_t_costs_nothing_for_copies_and_something_for_strangers() -> None:
    rng = np.random.default_rng(3)
    d = rng.integers(-3, 5, 40) / 4
    alone = max_t(d[:, None])[0]
    copies = max_t(np.stack([d] * 5, axis=1))
    strangers = max_t(np.stack([d, *(rng.integers(-4, 5, 40) / 4 for _ in range(4))], axis=1))
    assert copies == pytest.approx(np.full(5, alone), abs=0.012)
    assert strangers[0] > alone


def test_max_t_takes_sides_and_empty_columns() -> None:
    d = np.stack([np.ones(12), np.zeros(12)], axis=1)
    assert max_t(d, "greater")[0] < 0.01
    assert max_t(d, "less")[0] == pytest.approx(1.0)
    assert max_t(d)[1] == 1.0
    assert max_t(np.zeros((3, 2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("tasks", "method"),
    [
        (20, "exact sign-flip test"),
        (21, f"sign-flip test, 19,999 draws, seed {module.SEED}"),
    ],
)
def test_differences_without_a_common_unit_are_enumerated_up_to_20(tasks: int, method: str) -> None:
    assert sign_flip_test(np.sqrt(np.arange(2, tasks + 2)) / 9).method == method


def test_the_deviation_of_a_lift_is_that_of_hypergeometric_draws() -> None:
    """Task by task: given the passes of both sides, B's are a draw of n out of 2n attempts."""
    c_a, c_b, n = [3, 1, 2, 4], [2, 4, 0, 3], 4
    pairing = pair(Outcomes.from_counts(n, c_a), Outcomes.from_counts(n, c_b))
    variance = sum(
        float(hypergeom(2 * n, passes, n).var()) for passes in map(sum, zip(c_a, c_b, strict=True))
    )
    expected = 2 * variance**0.5 / (n * len(c_a))
    found = module.lift_deviation(pairing, PassHat(1), MissingPolicy.BOUND)
    assert found == pytest.approx(expected)


def test_there_is_no_deviation_of_a_lift_for_unequal_attempts() -> None:
    pairing = pair(Outcomes.from_counts(4, [3, 1]), Outcomes.from_counts(3, [2, 1]))
    assert module.lift_deviation(pairing, PassHat(1), MissingPolicy.BOUND) is None
    assert module.longer_drop_p_value(pairing, PassHat(1), MissingPolicy.BOUND) is not None
    single = pair(Outcomes.from_counts(1, [1, 0]), Outcomes.from_counts(3, [2, 1]))
    assert module.longer_drop_p_value(single, PassHat(1), MissingPolicy.BOUND) is None


def test_signs_that_are_drawn_are_even() -> None:
    """Sums of 30 differences of one size and one of another: mean 0, variance sum d^2."""
    sizes, counts = np.array([0.5, 2.0]), np.array([30, 1])
    sums = module._draw_sums(sizes, counts, np.random.default_rng(1))
    deviation = float(np.sqrt((counts * sizes**2).sum()))
    assert abs(float(sums.mean())) < 4 * deviation / len(sums) ** 0.5
    assert float(sums.std()) == pytest.approx(deviation, rel=0.03)
    assert float(np.abs(sums).max()) <= 17
    assert set(np.unique(sums % 1)) <= {0.0}


def test_a_drawn_sign_flip_test_of_a_clear_lift_is_near_the_normal_one() -> None:
    d = np.sqrt(np.arange(2, 32)) * np.array([1, 1, -1] * 10)
    found = sign_flip_test(d, "greater").p_value
    normal = float(norm.sf(d.sum() / np.sqrt((d**2).sum())))
    assert found == pytest.approx(normal, rel=0.15)
