"""Tasks that dropped, with the causes of their failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat.readers import read
from passhat.reporting.document import Level
from passhat.reporting.documents.verdicts import gate_document
from passhat.reporting.markdown import render_markdown
from passhat.stats.gate import GateOptions, judge
from passhat.stats.outcomes import Failures, Run, summarize_task_failures

PASSES = {"a": 8, "b": 8, "c": 4}


def table(path: Path, broken: str = "") -> Run:
    lines = ["task,trial,success,failure"]
    for task, passes in PASSES.items():
        for number in range(8):
            ok = number < passes and task != broken
            why = "exception: KeyError: 'x'" if task == broken else "wrong_answer"
            lines.append(f"{task},{number + 1},{int(ok)},{'' if ok else why}")
    path.write_text("\n".join(lines) + "\n")
    (run,) = read(str(path))
    return run


def test_a_broken_task_has_its_exception_everywhere(tmp_path: Path) -> None:
    base, new = table(tmp_path / "old.csv"), table(tmp_path / "new.csv", "b")
    result = judge(new, (), base, GateOptions())
    (first, *_) = result.dropped
    assert (first.task, first.status) == ("b", "broken")
    assert first.cause == "8 exceptions (KeyError: 'x')"
    data = result.to_dict()["dropped"][0]
    assert (data["task"], data["failures"]["failed"]) == ("b", 8)
    document = gate_document(result)
    short = [getattr(block, "text", "") for block in document.blocks(Level.SHORT)]
    assert "b broke: 8 exceptions (KeyError: 'x')" in short
    assert "| b | broken | 8 of 8 | 0 of 8 | 8 exceptions (KeyError: 'x') |" in render_markdown(
        document
    )


def test_without_a_drop_none_is_listed(tmp_path: Path) -> None:
    base, new = table(tmp_path / "old.csv"), table(tmp_path / "new.csv")
    assert judge(new, (), base, GateOptions()).dropped == ()
    assert judge(new, "pass^1 >= 0.1", base, GateOptions()).dropped == ()


def test_messages_of_a_store_stand_in_where_attempts_have_none(tmp_path: Path) -> None:
    run = table(tmp_path / "new.csv", "b")
    assert summarize_task_failures(run, "c").sentence() == "4 wrong answers"
    told = summarize_task_failures(run, "c", {"wrong_answer": {"last number: 1.": 4}})
    assert "last number: 1." in told.sentence()
    assert summarize_task_failures(run, "absent") == Failures((), 0)


@pytest.mark.parametrize("rule", ["pass^1 >= 0.6", "pass^1 >= base - 0.05", "pass@2 >= 0.9"])
def test_rules_say_what_they_would_refute(tmp_path: Path, rule: str) -> None:
    base, new = table(tmp_path / "old.csv"), table(tmp_path / "new.csv")
    against = base if "base" in rule else None
    (power,) = judge(new, rule, against, GateOptions(details=True)).rule_powers
    assert power.rule == rule
    assert 0 <= power.caught <= power.runs
    assert f"{rule} would have been refuted in" in power.sentence
    assert judge(new, "missing <= 2%", None, GateOptions(details=True)).rule_powers == ()
