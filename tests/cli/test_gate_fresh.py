"""Gates that make fresh attempts: --confirm and --settle, with agents in this process."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from passhat.cli.main import main
from passhat.dashboard.run_summaries import Summaries
from passhat.store import open_reading, open_store

OLD = "def answer(prompt):\n    return 'yes'\n"
NEW = "def answer(prompt):\n    return 'no' if 'question 3' in prompt else 'yes'\n"
TASKS = [{"id": f"t{i}", "prompt": f"question {i}", "answer": "yes"} for i in range(6)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an old and a new agent and a run of each, called old and new."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("passhat.runner.run_spec.can_have_workers", lambda agent: False)  # noqa: ARG005
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    for name, text in (("gate_old", OLD), ("gate_new", NEW)):
        Path(f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        words = f"run -a python:{name}:answer -s jsonl:tasks.jsonl -n 4 --name {name}"
        assert invoke(*words.split()).exit_code == 0
    return tmp_path


@dataclass
class Result:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def invoke(*words: str) -> Result:
    """The command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    return Result(int(code), out.getvalue(), err.getvalue())


def test_a_broken_task_is_confirmed_on_both_sides_and_asking_again_makes_no_more_attempts(
    folder: Path,
) -> None:
    first = invoke("gate", "latest", "--against", "gate_old", "--confirm")
    assert first.exit_code == 1, first.output
    stated = " ".join(first.stdout.split())
    assert "Broken, first and fresh attempts counted: t3 (12 of 12 passed, now 0 of 12)" in stated
    assert "16 fresh attempts" in first.stdout
    again = invoke("gate", "latest", "--against", "gate_old", "--confirm", "--json")
    data = json.loads(again.stdout)
    assert data["name"] == "gate_new"  # the fresh attempts are not the latest run
    assert [task["task"] for task in data["confirmation"]["confirmed"]] == ["t3"]
    with open_store(str(folder / ".passhat/passhat.db")) as store:
        names = [(run.name, run.attempts) for run in store.runs()]
    assert len(names) == 4
    assert [count for name, count in names if name.startswith("gate:confirm")] == [8, 8]
    listed = invoke("runs").stdout
    assert "gate:confirm" not in listed
    assert "2 runs of fresh attempts that gates and searches made" in listed
    assert len(json.loads(invoke("runs", "--json").stdout)["runs"]) == 4
    summaries = Summaries(open_reading(str(folder / ".passhat/passhat.db")))
    assert (len(summaries.all()), len(summaries.all(fresh=True))) == (2, 4)


def test_a_file_as_baseline_is_used_as_it_is_where_its_agent_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "base.jsonl").write_text(invoke("export", "gate_old").stdout)
    (folder / "gate_old.py").write_text(NEW)
    monkeypatch.delitem(sys.modules, "gate_old")
    result = invoke("gate", "latest", "--against", "base.jsonl", "--confirm")
    assert result.exit_code == 1, result.output
    assert "corrected for all tasks: fresh attempts would not be like those of" in (
        " ".join(result.stdout.split())
    )
    assert "the agent's code has changed" in " ".join(result.stdout.split())


def test_a_table_says_what_it_needs_and_takes_it(folder: Path) -> None:
    rows = [f"t{i},4,{0 if i == 3 else 4}" for i in range(6)]
    (folder / "new.csv").write_text("\n".join(["task,n,c", *rows]))
    (folder / "old.csv").write_text("\n".join(["task,n,c", *(f"t{i},4,4" for i in range(6))]))
    gate = ("gate", "new.csv", "--against", "old.csv", "--confirm")
    refused = invoke(*gate)
    assert refused.exit_code == 2
    assert "does not record what fresh attempts need" in refused.output
    assert "As in: passhat run " in " ".join(refused.output.split())
    assert "--again '-a python:agent:answer -s jsonl:tasks.jsonl'" in refused.output
    taken = invoke(*gate, "--again", "-a python:gate_new:answer -s jsonl:tasks.jsonl")
    assert taken.exit_code == 1, taken.output
    assert "t3 (4 of 4 passed, now 0 of" in taken.stdout


@pytest.mark.usefixtures("folder")
def test_undecided_tasks_get_more_attempts_until_they_are_decided() -> None:
    result = invoke("gate", "gate_old", "each pass^1 >= 0.8", "--settle", "64", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    # 20 passes of 20 are needed: 4 of the run, then rounds of 8 and 16.
    assert [fresh["attempts"] for fresh in data["settling"]] == [48, 96]
    capped = invoke("gate", "gate_new", "each pass^1 <= 0.7", "--settle", "3", "--json")
    assert capped.exit_code == 3, capped.output
    assert [fresh["attempts"] for fresh in json.loads(capped.stdout)["settling"]] == [15]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gate latest pass^1>=0.5 --confirm", "belongs to the gate without a rule"),
        ("gate latest pass^1>=0.5 --settle 8", "needs a rule on each task"),
        ("gate latest pass^1>=0.5 --again -n", "goes with --confirm or --settle"),
    ],
)
def test_fresh_attempts_that_would_answer_nothing_are_refused(words: str, expected: str) -> None:
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert expected in result.output
