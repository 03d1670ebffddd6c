"""Small rules of the readers, each with the case that tells the rule from its neighbor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat import Outcomes, Run, read
from passhat.readers.parsing import numbers_in, sum_numbers
from passhat.reporting.source_checks import check_source
from passhat.stats.outcomes.rewards import RewardWords, verdicts_from_rewards


def _lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_not_equal_holds_where_the_field_is_absent_and_equal_does_not(tmp_path: Path) -> None:
    rows = [{"task": "a", "ok": 1}, {"task": "b", "ok": 1, "root": False}]
    path = _lines(tmp_path / "x.jsonl", *rows, {"task": "c", "ok": 0, "root": True})
    own = tmp_path / "own.toml"
    counts = {"root != false": ("a", "c"), "root == true": ("c",), "root == false": ("b",)}
    for rule, tasks in counts.items():
        own.write_text(f'where = "{rule}"\n[fields]\ntask = "task"\nsuccess = "ok"\n')
        (run,) = read(path, mapping=own)
        assert run.outcomes.tasks == tasks
        assert run.tally is not None
        assert run.tally.rows == 3
        assert sum(run.tally.skipped.values()) == 3 - len(tasks)


@pytest.mark.parametrize(
    ("score", "rule", "passes"),
    [
        (0.7 + 0.1 + 0.1, "score >= 0.9", 1),  # 0.8999999999999999
        (0.9 - 1e-7, "score >= 0.9", 0),
        (0.1 + 0.2, "score <= 0.3", 1),  # 0.30000000000000004
        (0.3 + 1e-7, "score <= 0.3", 0),
        (0.9, "score > 0.9", 0),
        (0.9, "score != 0.9", 0),
    ],
)
def test_the_tolerance_of_a_rule_is_for_sums_of_floats(
    tmp_path: Path, score: float, rule: str, passes: int
) -> None:
    path = _lines(tmp_path / "x.jsonl", {"task": "a", "score": score})
    (run,) = read(path, passes=rule, columns={"task": "task"})
    assert run.outcomes.passes == passes


def test_the_tolerance_of_a_reward() -> None:
    import numpy as np

    rewards = np.array([1 - 1e-7, 1 - 1e-5, 1.0, 0.0])
    assert verdicts_from_rewards(rewards, None).verdicts.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("says", "agrees"),
    [(2 / 3, True), (0.6667, True), (0.667, True), (0.666, False), (0.6672, False), (0.7, False)],
)
def test_the_tolerance_of_a_source_check(says: float, agrees: bool) -> None:
    outcomes = Outcomes.from_counts(1, [1, 1, 0])
    run = Run("x", "x", outcomes, source_says={"accuracy": says})
    (check,) = check_source(run)
    assert check.agrees is agrees


def test_a_total_holds_every_result(samples: Any) -> None:
    data = json.loads(samples.content("deepeval"))
    data |= {"testPassed": 3, "testFailed": 1}
    (run, *_) = read(samples.write("", data, "deepeval.json"))
    assert run.source_says["accuracy"] == 0.75
    text = (
        '<testsuites><testsuite tests="3" failures="1" errors="1" skipped="0">'
        '<testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><error/></testcase></testsuite>'
        '<testsuite tests="2" failures="0" errors="0" skipped="1">'
        '<testcase name="d"/><testcase name="e"><skipped/></testcase></testsuite></testsuites>'
    )
    (run,) = read(samples.write("", text.encode(), "tests.xml"))
    assert run.source_says["accuracy"] == 2 / 4
    assert (run.outcomes.passes, run.outcomes.scored) == (2, 4)


def test_sums_and_numbers_leave_out_what_is_none() -> None:
    assert sum_numbers((1, None, "2", True, float("nan"))) == 3
    assert sum_numbers((None, "x")) is None
    assert numbers_in({"a": 1, "b": None, "c": "inf", "d": 0}) == {"a": 1.0, "d": 0.0}


@pytest.mark.parametrize(
    ("cell", "reward"), [("✅ PASS", 1.0), ("❌ fail", 0.0), ("not ok", 0.0), ("Pass", 1.0)]
)
def test_words_with_a_sign(cell: str, reward: float) -> None:
    assert RewardWords()[cell] == reward


def test_a_sign_and_a_word_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="fail"):
        RewardWords()["✅ fail"]


def test_the_later_edit_of_a_log_counts_whatever_its_file_is_called(samples: Any) -> None:
    data = json.loads(samples.content("inspect_ai"))
    for name, at, value in (
        ("z_original", None, "I"),
        ("a_edited", "2026-02-02T00:00:00+00:00", "C"),
        ("m_edited", "2026-01-01T00:00:00+00:00", "I"),
    ):
        for sample in data["samples"]:
            for score in sample["scores"].values():
                score["value"] = value
                score["history"] = [{"provenance": {"timestamp": at}}] if at else []
        samples.write("", data, f"logs/{name}.json")
    (run,) = read(samples.folder / "logs")
    assert run.source.endswith("a_edited.json")
    assert run.outcomes.passes == run.outcomes.scored
    assert any("edited earlier" in line for line in run.decisions)


def test_categories_and_headers_alone_get_a_message_of_their_own(samples: Any) -> None:
    data = json.loads(samples.content("inspect_ai"))
    for number, sample in enumerate(data["samples"]):
        for score in sample["scores"].values():
            score["value"] = ("helpful", "harmless")[number % 2]
    with pytest.raises(Exception, match=r"gives categories \(helpful, harmless\), not verdicts"):
        read(samples.write("", data, "categories.json"))
    data["samples"] = None
    data["results"] = {"total_samples": 7, "scores": []}
    with pytest.raises(Exception, match="holds the header of a log and none of its 7 samples"):
        read(samples.write("", data, "header.json"))
