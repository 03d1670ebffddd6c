"""Sentences about single tasks, ranks, lists, changes of k and counts of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Check, Support, review

SOURCES = json.loads(Path(__file__).with_name("named_tasks.json").read_text(encoding="utf-8"))


def _runs(source: str) -> list[Run]:
    tasks = SOURCES[source]["tasks"].split()
    return [
        Run(
            name,
            name,
            Outcomes.from_matrix([list(map(int, task)) for task in words.split()], tasks=tasks),
        )
        for name, words in SOURCES[source]["runs"].items()
    ]


def _checks(source: str, sentences: list[str]) -> list[list[Check]]:
    """The checks of each sentence; one review, so that every metric is estimated once."""
    starts, text = [], ""
    for sentence in sentences:
        starts.append(text.count("\n") + 1)
        text += f"{sentence}\n\n"
    checks: list[list[Check]] = [[] for _ in sentences]
    for claim in review(text, _runs(source)).claims:
        at = max(at for at, start in enumerate(starts) if start <= claim.line)
        checks[at] += claim.checks
    return checks


@pytest.mark.parametrize("source", SOURCES)
def test_a_true_sentence_is_supported(source: str) -> None:
    sentences = SOURCES[source]["supported"]
    found = zip(sentences, _checks(source, sentences), strict=True)
    open_sentences = [
        sentence
        for sentence, checks in found
        if {check.support for check in checks} != {Support.SUPPORTED}
    ]
    assert open_sentences == []


@pytest.mark.parametrize("source", SOURCES)
def test_a_fabrication_is_contradicted(source: str) -> None:
    sentences = SOURCES[source]["contradicted"]
    wrong = {Support.CONTRADICTED, Support.NOT_SHOWN}
    found = zip(sentences, _checks(source, sentences), strict=True)
    missed = [
        sentence for sentence, checks in found if not wrong & {check.support for check in checks}
    ]
    assert missed == []


@pytest.mark.parametrize(
    "sentence",
    [
        "argus somehow vexed billing-01 twice.",
        "On refund-01, borealis and argus diverge by 3.",
        "The passes on refund-01 and billing-01 add up to 9.",
        "borealis gets another 17.2.",
        "Does borealis solve 90% of the tasks?",
    ],
)
def test_a_sentence_that_is_not_understood_is_no_finding(sentence: str) -> None:
    supports = {check.support for checks in _checks("two", [sentence]) for check in checks}
    assert supports <= {Support.NOT_CHECKABLE}
