"""passhat export: every attempt, in order, and nothing lost on the way back."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read

Passhat = Callable[..., Any]


def _same(run: Run, again: Run) -> None:
    assert again.agent == run.agent
    assert again.outcomes.to_dict() == run.outcomes.to_dict()
    assert again.missing_by_reason == run.missing_by_reason
    assert again.protocol.digest == run.protocol.digest
    mine, theirs = list(run.attempts or ()), list(again.attempts or ())
    assert [a.to_dict() for a in mine] == [a.to_dict() for a in theirs]


def test_a_row_per_attempt(passhat: Passhat) -> None:
    ended = passhat("export", "example:helpdesk")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert len(rows) == 2 * 24 * 8
    assert list(rows[0])[:7] == ["run", "agent", "task", "attempt", "passed", "category", "reason"]
    (lost,) = [row for row in rows if row["passed"] is None and row["run"] == "careful"]
    assert (lost["category"], lost["reason"], lost["cost"]) == (None, "rate_limit", None)
    assert [row["attempt"] for row in rows[:8]] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert isinstance(rows[0]["steps"], int)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_what_is_exported_reads_back_the_same(passhat: Passhat, tmp_path: Path, form: str) -> None:
    path = tmp_path / "out"
    if form == "parquet":
        assert passhat("export", "example:helpdesk", "-o", f"parquet:{path}").code == 0
    else:
        path.write_text(passhat("export", "example:helpdesk", "-o", form).out, encoding="utf-8")
    for run, again in zip(read("example:helpdesk"), read(path), strict=True):
        _same(run, again)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_that_is_cut_off_keeps_its_sound_rows(
    passhat: Passhat, tmp_path: Path, form: str
) -> None:
    text = passhat("export", "example:helpdesk", "-o", form, "--run", "hasty").out
    path = tmp_path / "cut"
    path.write_text(text[:-60], encoding="utf-8")
    (run,) = read(path)
    assert run.outcomes.attempts == 24 * 8 - 1
    assert [loss.rows for loss in run.losses] == [1]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_export_holds_the_labels_of_tasks(passhat: Passhat, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"hasty.{form}"
    assert passhat("export", "example:helpdesk", "-o", path, "--run", "hasty").code == 0
    (run,), (_, hasty) = read(path), read("example:helpdesk")
    assert run.outcomes.labels == hasty.outcomes.labels
    assert set(run.outcomes.labels) == {"band"}


def test_csv_cells(passhat: Passhat) -> None:
    ended = passhat("export", "example:helpdesk", "-o", "csv", "--run", "hasty")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert {row["passed"] for row in rows} == {"true", "false", ""}
    assert rows[0]["slice:band"] == "easy"


def test_counts_become_attempts_without_an_order(
    passhat: Passhat, table: Callable[..., Path]
) -> None:
    path = table("model,task,n,c,missing\nm,a,3,1,1\n")
    out = passhat("export", path).out
    assert [json.loads(line)["passed"] for line in out.splitlines()] == [True, False, False, None]
    (again,) = read(table(out, "again.jsonl"))
    assert again.outcomes.order is None
    assert again.outcomes.to_dict() == read(path)[0].outcomes.to_dict()


def test_tau2(passhat: Passhat, table: Callable[..., Path]) -> None:
    ended = passhat("export", "example:helpdesk", "-o", "tau2")
    assert ended.code == 2
    assert "holds one run, and there are 2" in ended.err
    out = passhat("export", "example:helpdesk", "-o", "tau2", "--run", "careful").out
    (again,) = read(table(out, "results.json"))
    (run, _) = read("example:helpdesk")
    assert again.agent == "careful"
    for mine, theirs in ((run.outcomes.n, again.outcomes.n), (run.outcomes.c, again.outcomes.c)):
        assert mine.tolist() == theirs.tolist()
    assert again.outcomes.total_missing == run.outcomes.total_missing


def test_a_run_that_is_not_there(passhat: Passhat) -> None:
    ended = passhat("export", "example:helpdesk", "--run", "nobody")
    assert ended.code == 2
    assert "There are: careful, hasty" in ended.err


def test_parquet_that_cannot_be_written(passhat: Passhat, tmp_path: Path) -> None:
    ended = passhat("export", "example:helpdesk", "-o", tmp_path / "no" / "x.parquet")
    assert ended.code == 2
    assert "cannot be written" in ended.err


def test_a_tau2_log_goes_back_with_its_conversations(
    passhat: Passhat, table: Callable[..., Path]
) -> None:
    criteria = {"actions": [{"name": "refund"}], "reward_basis": ["DB"]}
    simulations = [
        {
            "id": f"simulation-{trial}-0000",
            "task_id": "a",
            "trial": trial,
            "termination_reason": "user_stop",
            "reward_info": {"reward": float(trial)},
            "messages": [{"role": "assistant", "content": "Done."}],
        }
        for trial in (0, 1)
    ]
    data = {
        "info": {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "retail"}},
        "tasks": [{"id": "a", "evaluation_criteria": criteria}],
        "simulations": simulations,
    }
    log = table(json.dumps(data), "log.json")
    packed = log.with_name("log.json.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    # The other form of tau2's results: an index, and one file per simulation.
    folder = log.parent / "kept"
    (folder / "simulations").mkdir(parents=True)
    index = [{k: s[k] for k in ("id", "task_id", "trial")} | {"reward": 1.0} for s in simulations]
    about = {"info": data["info"], "tasks": data["tasks"], "simulation_index": index}
    (folder / "results.json").write_text(json.dumps(about))
    for simulation in simulations:
        path = folder / "simulations" / f"{simulation['id']}.json"
        path.write_text(json.dumps(simulation))
    for source in (log, packed, folder, folder / "results.json"):
        out = json.loads(passhat("export", source, "-o", "tau2").out)
        assert out["simulations"] == simulations
        assert out["tasks"] == data["tasks"]


def test_an_export_without_conversations_cannot_be_regraded(passhat: Passhat) -> None:
    """tau2 grades an empty conversation without criteria as perfect, so there are criteria."""
    out = json.loads(passhat("export", "example:helpdesk", "-o", "tau2", "--run", "careful").out)
    for task in out["tasks"]:
        criteria = task["evaluation_criteria"]
        assert criteria["reward_basis"] == ["ENV_ASSERTION"]
        assert "without_conversations" in criteria["env_assertions"][0]["func_name"]
    assert len({s["id"] for s in out["simulations"]}) == len(out["simulations"])


def test_a_run_of_the_store_keeps_detail_retries_and_answers(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [{"id": name, "prompt": name, "answer": '{"number": 4}'} for name in ("four", "five")]
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    Path("export_agent.py").write_text(
        "def answer(prompt):\n    return {'four': 'It is 4', 'five': 'no 5'}[prompt]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("-s", "jsonl:tasks.jsonl", "-a", "python:export_agent:answer", "-n", "2")
    assert passhat("run", *words, "--store", "s.db").code == 0
    rows = [json.loads(line) for line in passhat("export", "s.db").out.splitlines()]
    assert [(row["task"], row["answer"], row["retries"]) for row in rows] == [
        *[("four", "It is 4", 0)] * 2,
        *[("five", "no 5", 0)] * 2,
    ]
    assert rows[2]["category"] == "wrong_answer"
    assert "5" in rows[2]["detail"]
    assert rows[2]["detail"] != "wrong_answer"
    for form in ("jsonl", "csv"):
        Path("out").write_text(passhat("export", "s.db", "-o", form).out)
        (again,) = read("out")
        assert again.outcomes.to_dict() == read("s.db")[0].outcomes.to_dict()
        assert [one.detail for one in again.attempts or ()] == [row["detail"] for row in rows]
    Path("out.jsonl").write_text(passhat("export", "s.db").out)
    assert passhat("validate", "out.jsonl").code == 0


def test_ids_and_commands_can_be_pasted_back(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may be a subclass of str, and a task's id longer than the screen."""
    monkeypatch.chdir(tmp_path)
    task = f"it's {'long ' * 20}end"
    line = {"id": task, "prompt": "yes?", "answer": "yes"}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(line))
    (tmp_path / "text_agents.py").write_text(
        "class Text(str):\n    pass\n\ndef answer(prompt):\n    return Text('no')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = ("run", "-s", "jsonl:tasks.jsonl", "-a", "python:text_agents:answer", "-n", "2")
    first, second = passhat(*command), passhat(*command)
    (line,) = [line for line in first.out.splitlines() if line.startswith("Read a failure: ")]
    words = shlex.split(line.removeprefix("Read a failure: "))
    assert words[:2] == ["passhat", "show"]
    assert f"{task}#1 failed" in " ".join(passhat(*words[1:]).out.split())
    assert "nothing to make" not in first.err
    assert "nothing to make: all 2 attempts of this run are stored" in second.err
    for name in (words[2], words[2][:6]):
        assert len(passhat("export", ".passhat/passhat.db", "--run", name).out.splitlines()) == 2
