"""k files with one attempt each become k attempts, when asked and never by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.report.source_check import check_source

Samples = Any


def _one_trial(samples: Samples, name: str, rewards: dict[str, float], llm: str = "gpt") -> Path:
    agent = {**samples.tau2_info["agent_info"], "llm": llm}
    rows = [samples.simulation(task, 0, reward) for task, reward in rewards.items()]
    info = {**samples.tau2_info, "agent_info": agent}
    path: Path = samples.write("", {"info": info, "tasks": [], "simulations": rows}, name)
    return path


def test_files_stay_apart_until_they_are_joined(samples: Samples) -> None:
    files = [
        _one_trial(samples, "1.json", {"a": 1.0, "b": 0.0}),
        _one_trial(samples, "2.json", {"b": 1.0, "a": 1.0}),
        _one_trial(samples, "3.json", {"a": 0.0}),
    ]
    apart = read(files)
    assert [run.outcomes.attempts_text() for run in apart] == ["1 attempt"] * 3
    assert len({run.name for run in apart}) == 3
    (run,) = read(files, join=True)
    assert run.name == "gpt"
    assert run.outcomes.tasks == ("a", "b")
    assert run.outcomes.n.tolist() == [3, 2]
    assert run.outcomes.order is not None
    assert [int(v) for v in run.outcomes.order.of(0)] == [1, 1, 0]
    assert run.tally is not None
    assert run.tally.attempts == 5
    assert [a.extras["transcript"] for a in (run.attempts or ()).of(1)] == [  # type: ignore[union-attr]
        "simulation b-0",
        "simulation b-0",
    ]
    assert "3 runs of the same agent joined" in run.reading[0]
    assert run.protocol.attempts is None


def test_what_differs_is_not_joined(samples: Samples) -> None:
    files = [
        _one_trial(samples, "1.json", {"a": 1.0}),
        _one_trial(samples, "2.json", {"a": 1.0}, llm="other"),
    ]
    assert [run.agent for run in read(files, join=True)] == ["gpt", "other"]


def test_tables_join_with_their_slices(tmp_path: Path) -> None:
    for name, verdict in (("one", 1), ("two", 0)):
        (tmp_path / f"{name}.csv").write_text(
            f"model,task,trial,success,cost,slice:band\nm,a,0,{verdict},0.5,easy\n"
        )
    (run,) = read(str(tmp_path / "*.csv"), join=True)
    assert run.outcomes.n.tolist() == [2]
    assert run.outcomes.labels == {"band": ("easy",)}
    assert [attempt.measures["cost"] for attempt in run.attempts or ()] == [0.5, 0.5]


def test_counts_cannot_be_joined_and_stay_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("model,task,n,c\nm,a,5,2\n")
    assert len(read(str(tmp_path / "*.csv"), join=True)) == 2


@pytest.mark.parametrize("join", [True, False])
def test_a_joined_run_no_longer_shows_the_number_of_one_file(samples: Samples, join: bool) -> None:
    files = [samples.write("cruxeval", file=f"{i}/m_temp0.2_output.json") for i in (1, 2)]
    runs = read(files, join=join)
    assert [bool(check_source(run)) for run in runs] == ([False] if join else [True, True])


def test_files_numbered_by_name_are_the_same_agent(samples: Samples) -> None:
    for number in (1, 2):
        samples.write("human_eval", file=f"mine_run{number}_results.jsonl")
    samples.write("human_eval", file="gpt-4_results.jsonl")
    samples.write("human_eval", file="gpt-5_results.jsonl")
    runs = read(samples.folder, join=True)
    assert {run.agent: run.outcomes.n.tolist() for run in runs} == {
        "gpt-4": [2, 2],
        "gpt-5": [2, 2],
        "mine": [4, 4],
    }


def test_two_prompts_of_one_file_are_not_two_attempts(samples: Samples) -> None:
    data = json.loads(samples.content("promptfoo"))
    rows = data["results"]["results"]
    rows.append({**rows[0], "promptIdx": 1, "prompt": {"raw": "y", "label": "beg"}})
    files = [samples.write("", data, f"{i}.json") for i in (1, 2)]
    runs = read(files, join=True)
    assert [(run.name, run.outcomes.attempts) for run in runs] == [
        ("p prompt 1", 4),
        ("p prompt 2", 2),
    ]
