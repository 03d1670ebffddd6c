"""What every metric says about itself: its question, its formula and its name."""

from __future__ import annotations

import re

import pytest

from passhat.stats.estimate import metric
from passhat.stats.estimate.grammar import GRAMMAR
from passhat.stats.estimate.metrics import Metric

FAMILIES = [*GRAMMAR]


def _metric(family: str, k: int) -> Metric:
    return metric(f"{family}{k}:0.5" if family == "gpass@" else f"{family}{k}")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_question_of_one_attempt_is_in_the_singular(family: str) -> None:
    """pass@1 asked "If every task gets 1 tries"."""
    asks = _metric(family, 1).asks
    assert not re.search(r"\b1 (tries|times|attempts)\b", asks)
    assert "{" not in asks


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [2, 8, 100])
def test_a_question_names_its_k_and_ends_as_one(family: str, k: int) -> None:
    asks = _metric(family, k).asks
    assert asks.endswith("?")
    assert re.search(rf"(?<!\d){k}(?!\d)", asks)
    assert "{" not in asks


def test_three_names_of_one_quantity_ask_the_same() -> None:
    questions = {metric(word).asks for word in ("rate", "pass@1", "pass^1", "gpass@1:1")}
    assert questions == {"How often does one attempt at a task succeed?"}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_formula_a_source_and_an_estimator(family: str) -> None:
    made = _metric(family, 3)
    assert made.name.startswith(family)
    assert made.formula.startswith(family[:-1])
    assert made.paper
    assert made.estimator
    assert metric(made.name) == made
    assert made.lowest < made.highest == 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_k_is_the_same_metric_and_another_k_is_not(family: str) -> None:
    assert _metric(family, 3) == _metric(family, 3)
    assert hash(_metric(family, 3)) == hash(_metric(family, 3))
    assert len({_metric(family, k) for k in (1, 2, 3, 3)}) == 3
    others = {_metric(other, 3) for other in FAMILIES}
    assert len(others) == len(FAMILIES)
