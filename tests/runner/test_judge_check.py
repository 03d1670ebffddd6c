"""Judges that are models: weak spots, drift, panels, and judging again by another one."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from passhat.runner.regrade import VARIANTS
from passhat.stats.labels.judge_error import AGAIN, CheckedAttempt, summarize_check
from passhat.store import open_store
from passhat.store.labels import load_votes

Passhat = Callable[..., Any]

MODELS = """
def answer(prompt, attempt):
    good = int(attempt.task[1:]) % 2 or attempt.number == 1
    return "It's fine.\\n- one\\n- two" if good else "It's bad."

def strict(prompt, attempt):
    text = prompt.partition("## Answer")[2].partition("## Rubric")[0]
    return "PASS" if "fine" in text and "I hope this helps" not in text else "FAIL"

def kind(prompt, attempt):
    return "PASS"

def mute(prompt, attempt):
    return "banana"

def fair(prompt, attempt):
    text = prompt.partition("## Answer")[2].partition("## Rubric")[0]
    return "PASS" if "fine" in text else "FAIL"
"""


@pytest.fixture
def write_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "panel_models.py").write_text(MODELS)

    def write(judge: str, name: str = "tasks.jsonl") -> None:
        rubric = {"rubric": "Is it fine?", "judge": judge, "repeats": 1}
        lines = [{"id": f"t{i}", "prompt": "well?", **rubric} for i in range(4)]
        Path(name).write_text("\n".join(map(json.dumps, lines)))

    yield write
    sys.modules.pop("panel_models", None)


def make_run(passhat: Passhat) -> None:
    agent = "python:panel_models:answer"
    assert passhat("run", "-s", "jsonl:tasks.jsonl", "-a", agent, "-n", "2").code == 0


def test_a_judge_that_dislikes_padding_is_found_out(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    write_suite("python:panel_models:strict")
    make_run(passhat)
    ended = passhat("judge-check", "latest", "--json")
    assert ended.code == 0
    check = json.loads(ended.out)
    assert (check["drift"]["attempts"], check["drift"]["rate"]) == (8, 0)
    flips = {row["variant"]: (row["to_failed"], row["to_passed"]) for row in check["variants"]}
    assert flips["padded"] == (6, 0)
    assert flips["reformatted"] == flips["reworded"] == flips["reordered"] == (0, 0)
    shown = " ".join(passhat("judge-check", "latest").out.split())
    assert "8 answers judged again as they are: 0 verdicts differ" in shown
    assert "padded 8 6 0" in shown


def test_a_judge_that_drifted_is_told_by_its_anchors(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    write_suite("python:panel_models:fair")
    make_run(passhat)
    rows = [f"t{i},{j},{'right' if i % 2 or j == 1 else 'wrong'}" for i in range(4) for j in (1, 2)]
    Path("labels.csv").write_text("task,attempt,label\n" + "\n".join(rows) + "\n")
    assert passhat("label", "latest", "--from", "labels.csv", "--person", "ada").code == 0
    write_suite("python:panel_models:kind")
    shown = " ".join(passhat("judge-check", "latest").out.split())
    assert "2 verdicts differ from those of the run (0 now failed, 2 now passed" in shown
    assert "Anchors: of 8 labeled attempts the judge got 8 right then and 6 now." in shown
    with open_store() as store:
        (run,) = store.runs()
        assert run.passed == 6  # nothing was stored


def test_every_run_judges_the_labeled_attempts_of_an_earlier_one_again(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    write_suite("python:panel_models:fair")
    make_run(passhat)
    rows = [f"t{i},{j},{'right' if i % 2 or j == 1 else 'wrong'}" for i in range(4) for j in (1, 2)]
    Path("labels.csv").write_text("task,attempt,label\n" + "\n".join(rows) + "\n")
    assert passhat("label", "latest", "--from", "labels.csv", "--person", "ada").code == 0
    run = ("run", "-s", "jsonl:tasks.jsonl", "-a", "python:panel_models:answer", "-n", 1, "--name")
    same = passhat(*run, "same")
    assert same.code == 0
    assert "Anchors:" not in same.out
    assert "0 verdicts differ" in " ".join(passhat("report", "latest", "--full").out.split())
    write_suite("python:panel_models:kind")
    shown = " ".join(passhat(*run, "drifted").out.split())
    assert (
        "Anchors: of 8 labeled attempts of an earlier run that this judge judged again, 2 verdicts "
        "differ (0 now failed, 2 now passed); 8 were right then, 6 are now." in shown
    )
    (data,) = json.loads(passhat("report", "latest", "--json").out)["runs"]
    assert data["sections"]["anchors"]["right_now"] == 6
    with open_store() as store:
        assert sorted(run.passed for run in store.runs()) == [4, 4, 6]


def test_a_panel_decides_by_the_majority_of_all_votes(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    words = [f"python:panel_models:{name}" for name in ("fair", "kind", "strict")]
    write_suite(" + ".join(words))
    make_run(passhat)
    with open_store() as store:
        (run,) = store.runs()
        assert run.passed == 6
        bad = store.attempt(run.id, "t0", 2)
        assert bad is not None
        assert "1 of 3 said pass" in bad.detail
        votes = load_votes(store._queries, store._key(run.id))
        assert [one.votes for one in votes if (one.task, one.number) == ("t0", 2)] == [
            (False,),
            (True,),
            (False,),
        ]
        calls = [call for call in store.calls(run.id, "t0", 2) if "votes" in call]
        assert [call["votes"] for call in calls] == [[False], [True], [False]]
        assert len({call["name"] for call in calls}) == 3


def test_a_judge_without_a_verdict_is_told_and_one_named_twice_refused(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    write_suite("python:panel_models:fair + python:panel_models:mute")
    make_run(passhat)
    with open_store() as store:
        (run,) = store.runs()
        bad = store.attempt(run.id, "t0", 2)
        assert bad is not None
        assert "0 of 1 said pass; python:panel_models:mute named no verdict in 1 of 1" in bad.detail
    full = " ".join(passhat("report", "latest", "--full").out.split())
    assert "python:panel_models:mute named no verdict in 8 of 8 votes" in full
    passhat("label", "latest", "--whole-tasks", 1, "-o", "l.csv")
    (row, *_) = csv.DictReader(Path("l.csv").read_text().splitlines())
    assert row["expected"] == "Is it fine?"
    assert row["conversation"].startswith("user: well?")
    write_suite("python:panel_models:fair + python:panel_models:fair")
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:panel_models:answer")
    assert "names python:panel_models:fair twice" in " ".join(ended.err.split())


def test_judging_again_by_another_model_keeps_both_verdicts(
    passhat: Passhat, write_suite: Callable[..., None]
) -> None:
    write_suite("python:panel_models:fair")
    make_run(passhat)
    write_suite("python:panel_models:kind", "kind.jsonl")
    assert "2 verdicts changed" in passhat("regrade", "latest", "-s", "jsonl:kind.jsonl").out
    with open_store() as store:
        (run,) = store.runs()
        said = store.judgements(run.id, "t0", 2)
        assert [int(word.verdict) for word in said] == [0, 1]


def test_forms_keep_the_content() -> None:
    text = "It's so:\n- one\n- two"
    assert VARIANTS[AGAIN](text) == text
    assert VARIANTS["reordered"](text) == "It's so:\n- two\n- one"
    assert VARIANTS["reworded"](text) == "it is so:\n- one\n- two"
    assert VARIANTS["reordered"]("plain") is None
    assert VARIANTS["reworded"]("plain") is None
    for name in ("padded", "reformatted"):
        assert text in str(VARIANTS[name](text))


def test_a_check_of_nothing_has_no_number() -> None:
    check = summarize_check("r", "j", [CheckedAttempt("a#1", True, {})], skipped=1)
    assert (check.drift.attempts, check.variants) == (0, ())
