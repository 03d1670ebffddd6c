"""The vocabulary of endings."""

from __future__ import annotations

import pytest

from passhat.errors import InvalidValue
from passhat.stats.outcomes import Completion, FailureCategory, MissingPolicy, MissingReason
from passhat.stats.outcomes.vocabulary import failure_category, missing_reason


def test_only_a_timeout_is_both_a_failure_and_a_reason_for_missing() -> None:
    # Of the agent it is a failure, of a provider or a judge it is ours.
    assert set(map(str, FailureCategory)) & set(map(str, MissingReason)) == {"timeout"}


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("wrong_state", "wrong_state"),
        (" Timeout ", "timeout"),
        ("white_agent_error", "agent_error"),
        ("AssertionError", "wrong_answer"),
        ("ZeroDivisionError", "exception"),
        ("IndentationError", "syntax_error"),
        ("timed out", "timeout"),
        ("something odd", "unknown_failure"),
        ("", "unknown_failure"),
    ],
)
def test_failure_categories(word: str, category: str) -> None:
    assert failure_category(word) == category


def test_missing_reasons() -> None:
    assert missing_reason("RATE_LIMIT") == "rate_limit"
    assert missing_reason("gremlins") == "not_recorded"


def test_policies() -> None:
    assert MissingPolicy.of("bound").completion is Completion.AS_FAILED
    assert MissingPolicy.of("fail").completion is Completion.AS_FAILED
    assert MissingPolicy.of("exclude").completion is Completion.DROPPED
    with pytest.raises(InvalidValue, match="one of fail, exclude, bound, not 'drop'"):
        MissingPolicy.of("drop")
