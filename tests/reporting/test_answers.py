"""Expected beside got: kept with the attempt, and where they differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passhat as api
from passhat.reporting.answers import drop_answers, find_answers, find_differences
from passhat.stats.outcomes import FailureKind, summarize_failures
from passhat.store import open_store
from passhat.suites.graders import GRADERS


@pytest.mark.parametrize(
    ("expected", "got", "lines"),
    [
        ("4", "4 ", []),
        ("4", "5", ["off by +1, +25%"]),
        ("1,000", "990", ["off by -10, -1%"]),
        ("0", "0.5", ["off by +0.5"]),
        ('{"a": 1, "b": [2, 1]}', '{"b":[2,0],"a":1}', ["b[1] is 0, expected 1"]),
        ('{"a": 1}', '{"c": 2}', ["a is absent, expected 1", "c is 2, not expected"]),
        ("[1, 2]", "[1]", ["it is [1], expected [1, 2]"]),
        ("Paris", "paris", ["only upper and lower case differ"]),
        ("Paris", "It is Paris.", ["the answer has the expected text, and more"]),
        ("Paris", "Rome", []),  # both are short enough to be read beside each other
        ("a\nb\nc", "a\nX\nc", ["@@ -1,3 +1,3 @@", " a", "-b", "+X", " c"]),
        (
            "x" * 60 + "one",
            "x" * 60 + "two",
            [f"- …{'x' * 24}one", f"+ …{'x' * 24}two"],
        ),
    ],
)
def test_the_difference_is_told_by_value_path_or_place(
    expected: str, got: str, lines: list[str]
) -> None:
    assert list(find_differences(expected, got)) == lines


def test_expected_and_the_part_that_was_judged_are_kept_with_the_attempt(tmp_path: Path) -> None:
    tasks: list[dict[str, object]] = [
        {"id": "sum", "prompt": "?", "answer": 4, "grader": "numeric"},
        {"id": "data", "prompt": "?", "answer": {"a": 1}, "grader": "json"},
        {"id": "choice", "prompt": "?", "answer": "B", "choices": ["red", "blue"]},
    ]
    place = str(tmp_path / "s.db")
    run = api.run(lambda _prompt: "I say A or 5", tasks, n=1, store=place, progress=False)
    with open_store(place) as store:
        pairs = {}
        for task in ("sum", "data", "choice"):
            attempt = store.attempt(run.id, task, 1)
            assert attempt is not None
            answers = find_answers(attempt.transcript)
            pairs[task] = (answers.expected, answers.got)
            roles = [entry["role"] for entry in drop_answers(attempt.transcript)]
            assert roles == ["user", "agent"]
    assert pairs == {
        "sum": ("4", "5"),
        "data": ('{"a":1}', "I say A or 5"),
        "choice": ("B", "A"),
    }


def test_orderdesk_names_the_rows_that_differ(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    tasks = ["retail/003"]
    run = api.run("demo:hasty", "orderdesk/retail", n=2, store=place, tasks=tasks, progress=False)
    failures = summarize_failures(run)
    assert failures.count(FailureKind.EXCEPTION) == 0
    with open_store(place) as store:
        number = store.first_failure(run.id, "retail/003")
        attempt = store.attempt(run.id, "retail/003", number or 0)
    assert attempt is not None
    differences = find_answers(attempt.transcript).differences
    assert 'orders.R-2103.items[0].state is "bought", expected "returned"' in differences


@pytest.mark.parametrize(
    ("grader", "expected", "answer", "line"),
    [
        ("json-schema", {"type": "object", "required": ["z"]}, '{"y": 1}', "'z' is a required"),
        ("json-schema", {"type": "object"}, "no JSON", "the answer is not JSON"),
        ("regex", "^a+$", "b" * 60, "the pattern does not match"),
        ("contains", "a" * 60, "b" * 60, "the expected text is not in"),
    ],
)
def test_the_difference_from_a_rule_is_the_words_of_its_grader(
    grader: str, expected: object, answer: str, line: str
) -> None:
    judgement = GRADERS[grader](answer, expected)
    texts = {"expected": json.dumps(expected), "got": answer, "difference": judgement.difference}
    answers = find_answers([{"role": role, "text": text} for role, text in texts.items()])
    (difference,) = answers.differences
    assert line in difference
