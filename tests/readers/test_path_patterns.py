"""A file per attempt, found by a pattern of paths."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from passhat import PasshatError, read
from passhat.errors import ReadError


def test_a_reward_that_is_no_number_is_missing(tmp_path: Path) -> None:
    rewards = {"t1/1": "1", "t1/2": "0", "t2/1": "nan", "t2/2": "1.0"}
    for place, reward in rewards.items():
        file = tmp_path / "m" / place / "reward.txt"
        file.parent.mkdir(parents=True)
        file.write_text(reward)
    (run,) = read(tmp_path, records="{model}/{task}/{trial}/reward.txt")
    assert run.agent == "m"
    assert (run.outcomes.passes, run.outcomes.total_missing) == (2, 1)
    assert run.missing_by_reason == {"not_recorded": 1}


_VERDICTS = {"a": ("good", "bad"), "b": ("bad", "bad"), "c": ("good", "good"), "d": ("good", "bad")}
"""The words of two attempts at four tasks."""


def _write_attempts(folder: Path, names: tuple[str, str]) -> None:
    """Write a table per attempt whose verdicts have words of their own."""
    for place, name in enumerate(names):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{prompt},{words[place]}\n" for prompt, words in _VERDICTS.items()]
        file.write_text("prompt,kappa\n" + "".join(rows))


def _command_of(error: PasshatError) -> dict[str, str]:
    """The first command that a refusal prints, as columns."""
    (line, *_) = [part for part in str(error.hint).splitlines() if "passhat report" in part]
    words = shlex.split(line.partition("passhat report ")[2])
    return dict(pair.split("=", 1) for pair in words[words.index("--map") + 1].split(","))


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("s_1.csv", "s_2.csv"), "s_{trial}.csv"),
        (("ours/run 1/out.csv", "ours/run 2/out.csv"), "ours/run {trial}/out.csv"),
        (("gpt-4.1 run1.csv", "gpt-4.1 run2.csv"), "gpt-4.1 run{trial}.csv"),
    ],
)
def test_tables_that_differ_in_a_number_are_offered_as_attempts(
    tmp_path: Path, names: tuple[str, str], pattern: str
) -> None:
    _write_attempts(tmp_path / "f", names)
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "f")
    columns = _command_of(refused.value)
    assert columns["records"] == pattern
    (run,) = read(tmp_path / "f", columns=columns)
    assert run.outcomes.c.tolist() == [1, 0, 2, 1]
    assert run.outcomes.n.tolist() == [2, 2, 2, 2]
    assert any(f"2 files that fit {pattern} are one table" in line for line in run.decisions)


def test_the_number_of_a_version_is_no_attempt(tmp_path: Path) -> None:
    _write_attempts(tmp_path / "f", ("kite-4.csv", "wren-3.csv"))
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "f")
    columns = _command_of(refused.value)
    assert columns["records"] == "{model}.csv"
    runs = read(tmp_path / "f", columns=columns)
    assert {run.agent: run.outcomes.passes for run in runs} == {"kite-4": 3, "wren-3": 1}


def test_tables_of_models_and_attempts(tmp_path: Path) -> None:
    names = {"kite-4": ("kite-4_run1.csv", "kite-4_run2.csv"), "wren": ("wren_run1.csv",) * 2}
    for pair in names.values():
        _write_attempts(tmp_path / "f", (pair[0], pair[1]))
    (tmp_path / "f/wren_run2.csv").write_text("prompt,kappa\na,bad\nb,bad\nc,bad\nd,bad\n")
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "f")
    columns = _command_of(refused.value)
    assert columns["records"] == "{model}_run{trial}.csv"
    runs = read(tmp_path / "f", columns=columns)
    assert {run.agent: run.outcomes.passes for run in runs} == {"kite-4": 4, "wren": 1}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("x_{trial}.csv", "no file fits the pattern 'x_{trial}.csv'"),
        ("s_{zeta}.csv", "may name model, suite, trial, seed, each once"),
        ("{trial}_{trial}.csv", "may name model, suite, trial, seed, each once"),
    ],
)
def test_a_pattern_for_tables_that_does_not_fit(tmp_path: Path, pattern: str, said: str) -> None:
    _write_attempts(tmp_path / "f", ("s_1.csv", "s_2.csv"))
    with pytest.raises(ReadError, match=re.escape(said)):
        read(tmp_path / "f", records=pattern, passes="kappa == good")


def test_a_column_that_the_pattern_names_too(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f/s_1.csv").write_text("model,prompt,ok\nkite,a,1\n")
    with pytest.raises(ReadError, match="has a column 'model' of its own") as refused:
        read(tmp_path / "f", records="{model}.csv")
    assert refused.value.hint == "Write * in place of {model} in the pattern."


def _write_right(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir(exist_ok=True)
    for place, name in enumerate(names):
        rows = [f"{task},{int((len(task) + place) % 3 > 0)}\n" for task in ("a", "bb", "ccc")]
        (folder / name).write_text("question,is_right\n" + "".join(rows))


def test_tables_that_are_read_say_how_they_are_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    days = zip(("kite_s1", "kite_s2", "wren-2_s1", "wren-2_s2"), range(1, 5), strict=True)
    _write_right(folder, [f"eval_{name}_2025-03-0{day}.csv" for name, day in days])
    (folder / "summary.csv").write_text("model,mean\nkite,0.5\n")
    runs = read(folder)
    assert len(runs) == 4
    (said,) = [line for line in runs[0].decisions if "attempts of models" in line]
    pattern = "eval_{model}_s{trial}_*.csv"
    assert said.endswith(f"passhat report {folder} --map 'records={pattern}'")
    runs = read(folder, records=pattern)
    assert {run.agent: run.outcomes.n.tolist() for run in runs} == {
        "kite": [2, 2, 2],
        "wren-2": [2, 2, 2],
    }


def test_a_table_of_each_day_is_an_attempt(tmp_path: Path) -> None:
    _write_attempts(tmp_path / "f", ("out_2025-03-01.csv", "out_2025-03-02.csv"))
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "f")
    assert _command_of(refused.value)["records"] == "out_{trial}.csv"


def test_a_table_of_another_kind_is_left_out_and_said(tmp_path: Path) -> None:
    _write_right(tmp_path / "f", ["kite.csv", "wren.csv"])
    (tmp_path / "f/summary.csv").write_text("model,mean\nkite,0.5\n")
    runs = read(tmp_path / "f", records="{model}.csv")
    assert [run.agent for run in runs] == ["kite", "wren"]
    assert any("without summary.csv" in line for line in runs[0].decisions)


def test_a_pattern_whose_tables_need_more_prints_commands_with_the_pattern(tmp_path: Path) -> None:
    _write_attempts(tmp_path / "f", ("s_1.csv", "s_2.csv"))
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "f", records="s_{trial}.csv")
    columns = _command_of(refused.value)
    assert columns["records"] == "s_{trial}.csv"
    assert read(tmp_path / "f", columns=columns)[0].outcomes.passes == 4


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("{model}/seed_{trial}/{task}.json", "{model}/seed_{trial}/{task}.json"),
        ("{model}/{trial}/{task}.json", "{model}/{trial}/{task}.json"),
        ("run{trial}/{model}/{task}/out.json", "run{trial}/{model}/{task}/out.json"),
        ("e1/{task}/{model}/{trial}.json", "e1/{task}/{model}/{trial}.json"),
    ],
)
def test_the_command_for_a_document_for_each_attempt_names_model_attempt_and_task(
    tmp_path: Path, form: str, pattern: str
) -> None:
    ends = {
        (m, t, n): (m, t) != ("gpt-5", "b")
        for m in ("gpt-5", "phi-4")
        for t in "abcde"
        for n in (1, 2)
    }
    for (model, task, number), passed in ends.items():
        path = tmp_path / "out" / form.format(model=model, task=task, trial=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if (model, task, number) != ("phi-4", "c", 2):  # an attempt without a file
            path.write_text(json.dumps({"grade": {"is_correct": passed}, "usage": {"in": 1}}))
            path.with_name("summary.json").write_text('{"accuracy": 0.5}')
    with pytest.raises(PasshatError) as refused:
        read(tmp_path / "out")
    command = str(refused.value.hint).partition("--map 'records=")[2].partition("'")[0]
    assert command == pattern
    found = {
        r.agent: (r.outcomes.attempts, r.outcomes.passes)
        for r in read(tmp_path / "out", records=pattern)
    }
    assert found == {"gpt-5": (10, 8), "phi-4": (9, 9)}


def test_a_status_at_a_limit_is_a_failure_in_a_document_of_an_attempt(tmp_path: Path) -> None:
    for task, status in {"a": "success", "b": "max_steps_reached", "c": "failed"}.items():
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / f"{task}.json").write_text(json.dumps({"status": status, "log": ["x"]}))
    (run,) = read(tmp_path, records="{model}/{task}.json")
    assert (run.outcomes.scored, run.outcomes.passes) == (3, 1)
    assert "counted as failed: 'max_steps_reached'" in run.decisions


def test_documents_that_state_model_task_and_seed_are_one_table(tmp_path: Path) -> None:
    for model in "xy":
        for task in "ab":
            for seed in (1, 2):
                row = {"model": model, "task": task, "seed": seed, "passed": True, "log": ["x"]}
                path = tmp_path / model / f"seed_{seed}" / f"{task}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(row))
    assert {run.agent: run.outcomes.attempts for run in read(tmp_path)} == {"x": 4, "y": 4}
