"""The laws of the study, to the digits they are known to."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.temperature import (
    SHAPES,
    Study,
    best_temperatures,
    family,
    fit_law,
    head_or_tail,
    shape,
    study,
    sweep,
)


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    return {name: study(name) for name in ("gaussian", "exponential", "power")}


OWN = [
    ("gaussian", (0.263854, 0.727799, 1.282679, 0.99963), 158),
    ("exponential", (0.117620, 1.052995, 0.956916, 0.99918), 170),
]
PUBLISHED = [
    ("gaussian", (0.264, 0.728, 1.283, 0.9996)),
    ("exponential", (0.117, 1.054, 0.957, 0.9989)),
]


@pytest.mark.parametrize(("name", "expected", "count"), OWN)
def test_the_laws_to_every_digit(
    studies: dict[str, Study], name: str, expected: tuple[float, ...], count: int
) -> None:
    law = studies[name].law
    found = (law.factor, law.k_exponent, law.spread_exponent, law.r_squared)
    assert found == pytest.approx(expected, abs=1e-5)
    assert law.points == count


@pytest.mark.parametrize(("name", "expected"), PUBLISHED)
def test_the_laws_as_published(
    studies: dict[str, Study], name: str, expected: tuple[float, ...]
) -> None:
    law = studies[name].law
    assert law.factor == pytest.approx(expected[0], abs=0.001)
    assert law.k_exponent == pytest.approx(expected[1], abs=0.002)
    assert law.spread_exponent == pytest.approx(expected[2], abs=0.002)
    assert law.r_squared == pytest.approx(expected[3], abs=0.0005)


def test_the_law_of_power_law_tasks(studies: dict[str, Study]) -> None:
    law = studies["power"].law
    assert law.factor == pytest.approx(0.0128, abs=5e-5)
    assert law.k_exponent == pytest.approx(1.708, abs=5e-4)
    assert law.spread_exponent == pytest.approx(0.155, abs=5e-4)
    assert law.r_squared == pytest.approx(0.998, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "expected"), [("gaussian", 0.982), ("exponential", 0.985), ("power", 0.995)]
)
def test_log_k_against_logit(studies: dict[str, Study], name: str, expected: float) -> None:
    assert studies[name].median_r_squared == pytest.approx(expected, abs=5e-4)
    misses = [line.misses_by for line in studies[name].log_logit if line.misses_by is not None]
    assert misses
    if name != "power":
        assert 0.05 < float(np.median(misses)) < 0.13


def test_the_collapse(studies: dict[str, Study]) -> None:
    for name in ("gaussian", "exponential"):
        assert studies[name].law.exponent_sum == pytest.approx(2, abs=0.015)
    # Far from the grain of the integers, only k/s and T/s^2 count.
    for name in ("gaussian", "exponential"):
        small, large = (
            best_temperatures(family(name, s), [4 * int(s)])[0].temperature / s**2
            for s in (64.0, 512.0)
        )
        assert small == pytest.approx(large, rel=0.01)


def test_the_head_of_the_difficulties_sets_the_exponent() -> None:
    found = {law.name: round(law.k_exponent, 3) for law in head_or_tail()}
    assert found == {
        "Laplace": 1.051,
        "Laplace, tail cut off": 1.024,
        "hyperbolic secant": 0.841,
        "Student t3": 0.859,
        "Gaussian": 0.728,
    }


def test_the_tail_decides_only_where_almost_nothing_fails() -> None:
    exponent = {}
    for name in SHAPES:
        found = best_temperatures(shape(name, 8), [1 << i for i in range(4, 17)])
        rare = [best for best in found if 1e-9 < 1 - best.value < 1e-3]
        logs = np.log([(best.k, best.temperature) for best in rare])
        exponent[name] = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    assert exponent["hyperbolic secant"] == pytest.approx(exponent["Laplace"], abs=0.02)
    assert exponent["Laplace, tail cut off"] < 0.5
    assert exponent["Student t3"] > 1.4


def test_shapes_have_the_spread_they_say() -> None:
    for name in SHAPES:
        # Student's t3 loses some variance beyond where it is followed.
        assert shape(name, 64).spread == pytest.approx(64, rel=0.01 if "t3" in name else 0.001)


def test_too_little_for_a_law() -> None:
    with pytest.raises(InvalidValue, match="several k and spreads"):
        fit_law(sweep([(8.0, family("gaussian", 8))], [2, 4]))


def test_a_study_as_plain_data(studies: dict[str, Study]) -> None:
    data = studies["gaussian"].to_dict()
    assert data["family"] == "gaussian"
    assert len(studies["gaussian"].points) == 290
    assert str(studies["gaussian"].law).startswith("T* = 0.2639 k^0.728 s^1.283")
