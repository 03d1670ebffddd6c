"""Failures by cause: exceptions, refusals, cut and wrong answers apart, with their messages."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.stats.gate import gate
from passhat.stats.outcomes import (
    FailureKind,
    Outcomes,
    Run,
    summarize_failures,
)
from passhat.stats.outcomes.attempts import Attempts, Categorical
from passhat.stats.outcomes.causes import group_failures


def _run(*words: str) -> Run:
    """A run of one task whose attempts failed for these reasons; an empty word passed."""
    verdicts = np.array([0 if word else 1 for word in words], np.int8)
    values = tuple(dict.fromkeys(words))
    codes = np.array([values.index(word) for word in words], np.int64)
    starts = np.array([0, len(words)], np.int64)
    attempts = Attempts(("t",), starts, verdicts, Categorical(values, codes))
    outcomes = Outcomes.from_counts([len(words)], [int(verdicts.sum())], ["t"])
    return Run("r", "a", outcomes, attempts=attempts)


def test_kinds_are_apart_and_each_has_its_most_common_message() -> None:
    failures = summarize_failures(
        _run(
            *("exception: KeyError: 'A' (agent.py:3)",) * 2,
            "exception: KeyError: 'B' (agent.py:3)",
            "truncated: cut at the token limit (64 tokens)",
            *("wrong_answer: answered '5'", "wrong_answer: answered '6'"),
            "wrong_answer: answered '5'",
            "wrong_state: orders.1 differs",
            "",
        )
    )
    assert (failures.attempts, failures.total) == (9, 8)
    assert [failures.count(kind) for kind in FailureKind] == [3, 0, 1, 4]
    # The input in an exception's message does not make it another cause.
    assert failures.groups[0].message == "KeyError: 'A' (agent.py:3)"
    assert failures.groups[0].message_count == 3
    assert failures.sentence() == (
        "3 exceptions (KeyError: 'A' (agent.py:3)), "
        "1 cut answer (truncated: cut at the token limit (64 tokens)), "
        "4 wrong answers (3 wrong answer, 1 wrong state; such as answered '5')"
    )
    assert not failures.all_raised


@pytest.mark.parametrize(("words", "all_raised"), [(("exception: E",) * 2, True), (("",), False)])
def test_all_raised_only_where_nothing_else_happened(
    words: tuple[str, ...], all_raised: bool
) -> None:
    assert summarize_failures(_run(*words)).all_raised is all_raised


def test_a_source_without_reasons_has_no_causes() -> None:
    run = Run("r", "a", Outcomes.from_counts([4], [1], ["t"]))
    assert summarize_failures(run).sentence() == ""
    assert gate(run, "pass^1 >= 0.1").failures is None


def test_a_category_alone_is_no_message() -> None:
    failures = group_failures({"timeout": 2}, {"timeout": {"timeout": 2}}, 2)
    assert failures.sentence() == "2 cut answers (timeout)"


def test_a_gate_carries_the_causes_of_the_run_it_judges() -> None:
    result = gate(_run("exception: KeyError: 'A'", ""), "pass^1 >= 0.1")
    assert result.failures is not None
    assert result.to_dict()["failures"]["exception"] == 1
