"""Spans become calls: how long they took."""

from __future__ import annotations

import pytest

from passhat.runner.spans import Span, calls_in


@pytest.mark.parametrize(("ended", "seconds"), [(10.25, 0.25), (10.0, 0.0), (9.0, 0.0)])
def test_a_call_takes_as_long_as_its_span_and_never_less_than_nothing(
    ended: float, seconds: float
) -> None:
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
    }
    (call,) = calls_in([Span("t", "1", "", "chat", 10.0, ended, about)], None)
    assert call.seconds == seconds
    assert (call.input_tokens, call.output_tokens) == (3, 2)
