"""The metric grammar."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import metric
from passhat.errors import MetricError
from passhat.stats.estimate.metrics import GPass, PassAt, PassHat

WORDS = ["pass@4", "pass^4", "delta^4", "gpass@8:0.5", "first@3", "first^3", "window^2", "rate"]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_names_itself(word: str) -> None:
    assert str(metric(word)) == word
    assert metric(metric(word)) is metric(word) or metric(metric(word)) == metric(word)
    assert metric(word).asks.endswith("?")


def test_words_become_metrics() -> None:
    assert metric(" PASS^8 ") == PassHat(8)
    assert metric("pass@10") == PassAt(10)
    assert metric("gpass@25:0.28") == GPass(25, Fraction(7, 25))
    assert metric("gpass@25:.28") == metric("gpass@25:0.280")
    assert str(metric("gpass@3:1/3")) == "gpass@3:1/3"


@pytest.mark.parametrize(
    ("wrong", "suggestion"),
    [
        ("pas^4", "Did you mean pass^4?"),
        ("pass-hat-4", "Did you mean pass^4?"),
        ("pass_at_5", "Did you mean pass@5?"),
        ("passhat@3", "Did you mean pass^3?"),
        ("windw^2", "Did you mean window^2?"),
        ("dleta^4", "Did you mean delta^4?"),
        ("accuracy", "Did you mean rate?"),
        ("gpass@4", "gpass@4:0.5"),
        ("pass@4:0.5", "Did you mean gpass@4:0.5?"),
        ("qqq", "Metrics look like: pass@4"),
        ("", "Metrics look like"),
        ("pass^", "Did you mean pass^4?"),
    ],
)
def test_a_wrong_word_gets_did_you_mean(wrong: str, suggestion: str) -> None:
    with pytest.raises(MetricError) as caught:
        metric(wrong)
    assert suggestion in str(caught.value)


@pytest.mark.parametrize("wrong", ["pass^0", "pass@0", "window^0", "gpass@4:0", "gpass@4:2"])
def test_numbers_outside_are_refused(wrong: str) -> None:
    with pytest.raises(MetricError, match="must"):
        metric(wrong)


@given(st.text(max_size=30))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found = metric(text)
    except MetricError as error:
        assert len(str(error)) < 300  # noqa: PT017 - most texts are no metric, and some are
    else:
        assert metric(str(found)) == found


def test_other_things_than_words_are_refused() -> None:
    with pytest.raises(MetricError, match="a metric is a word"):
        metric(4)  # type: ignore[arg-type]
