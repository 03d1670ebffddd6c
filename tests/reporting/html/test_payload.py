"""Data inside the page, decoded as the page does, against the attempts it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat import Outcomes, Run, read
from passhat.reporting.html.payload import Transcripts, attempts_data, choose_tasks, script_json
from passhat.stats.outcomes import Verdict

SIGNS = {"1": Verdict.PASSED, "0": Verdict.FAILED, "-": Verdict.MISSING}


@pytest.mark.parametrize(
    "name",
    [
        "</script><script>alert(1)</script>",
        "<!-- <script>",
        "]]>&amp;",
        "line\u2028and\u2029paragraph\nnew",
        'quote " and \\ backslash',
        "漢 \U0001f600 \x00 \x1b",
    ],
)
def test_json_in_a_script_element_is_safe_and_the_same(name: str) -> None:
    data = {name: [name, 1.5, None]}
    text = script_json(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029\n\x00\x1b")


def test_a_number_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json({"cost": float("nan")})


def _run(folder: Path, name: str, tasks: str, shift: int) -> Run:
    """Ragged attempts: task i has i + 1 of them, with every kind of ending."""
    endings = [(1, None), (0, "timeout: slow"), (None, "rate_limit: 429"), (0, "wrong_answer: no")]
    rows = []
    for place, task in enumerate(tasks):
        for number in range(1, place + 2):
            success, why = endings[(number + place + shift) % 4]
            cost = None if number == 2 else 0.123456 * number
            row = {"model": name, "task": task, "trial": number, "success": success}
            rows.append({**row, "failure": why, "cost": cost, "tokens": 12_345_678 * number})
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (run,) = read(path)
    return run


def _decoded(data: dict[str, Any], place: int) -> list[tuple[object, ...]]:
    """(task, verdict, why, detail, cost) of each attempt, as the page's script reads them."""
    run = data["runs"][place]
    found: list[tuple[object, ...]] = []
    for task, marks in zip(data["tasks"], run["marks"], strict=True):
        for mark in marks:
            code, cost = run["codes"][len(found)], run["measures"]["cost"][len(found)]
            words = run["words"][code - 1] if code else ["", ""]
            found.append((task, SIGNS[mark], words[0], words[1], cost))
    assert len(found) == len(run["codes"]) == len(run["measures"]["cost"])
    return found


def test_marks_words_and_measures_belong_to_the_same_attempt(tmp_path: Path) -> None:
    """Also where runs have other tasks, in another order."""
    runs = [_run(tmp_path, "first", "abcd", 0), _run(tmp_path, "second", "dbxa", 1)]
    data: dict[str, Any] = attempts_data(runs, ["A", "B"], [Transcripts(), Transcripts()])
    assert sorted(data["tasks"]) == list("abcdx")
    for place, run in enumerate(runs):
        known = list(run.attempts or ())
        expected = [
            (
                *(attempt.task, attempt.verdict, attempt.why or ""),
                "" if attempt.detail in (None, attempt.why) else attempt.detail,
                None if (cost := attempt.measures.get("cost")) is None else float(f"{cost:.4g}"),
            )
            for task in data["tasks"]
            for attempt in known
            if attempt.task == task
        ]
        assert _decoded(data, place) == expected
    assert json.loads(script_json(data)) == data


def test_measures_keep_four_digits_and_whole_numbers_stay_whole(tmp_path: Path) -> None:
    data: dict[str, Any] = attempts_data([_run(tmp_path, "r", "a", 0)], ["r"], [Transcripts()])
    assert data["runs"][0]["measures"] == {"cost": [0.1235], "tokens": [12_350_000]}


def test_counts_alone_have_marks_but_no_order() -> None:
    outcomes = Outcomes.from_counts([3, 1], [2, 0], ["a", "b"], missing=[1, 0])
    data: dict[str, Any] = attempts_data([Run("r", "r", outcomes)], ["r"], [Transcripts()])
    assert data["runs"] == [{"name": "r", "label": "r", "ordered": False, "marks": ["110-", "0"]}]
    assert (data["labels"], data["texts"]) == ([], [])


def test_labels_of_a_task_are_listed_once_over_all_runs() -> None:
    def run(tasks: list[str], **labels: list[str]) -> Run:
        return Run("r", "r", Outcomes.from_counts([1, 1], [1, 0], tasks, labels=labels))

    runs = [run(["a", "b"], level=["easy", ""]), run(["b", "a"], level=["hard", "easy"])]
    data = attempts_data(runs, ["1", "2"], [Transcripts(), Transcripts()])
    assert (data["tasks"], data["labels"]) == (["a", "b"], ["easy", "hard"])
    assert choose_tasks(runs) == ["a", "b"]


def test_a_text_that_is_said_often_is_embedded_once() -> None:
    outcomes = Outcomes.from_counts([2, 1], [1, 1], ["a", "b"])
    hello = ("user", "hello </script>")
    talk = Transcripts({"a": [1, 3], "b": [1]}, {"a": {1: [hello], 3: [hello, ("agent", "yes")]}})
    data: dict[str, Any] = attempts_data([Run("r", "r", outcomes)], ["r"], [talk])
    assert data["texts"] == ["hello </script>", "yes"]
    run = data["runs"][0]
    assert run["transcripts"] == {"0#1": [["user", 0]], "0#3": [["user", 0], ["agent", 1]]}
    assert run["numbers"] == {"0": [1, 3]}  # only where they are not 1, 2, 3 ...
    assert talk.size == len("hello </script>") + len("yes")
