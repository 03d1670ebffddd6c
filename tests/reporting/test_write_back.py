"""Scores of a report handed on: to MLflow, as JSON for W&B and Langfuse, into an inspect log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from tests.readers.platform_stand_ins import Tracking, langfuse_4, serving

from passhat import estimate, read

Passhat = Callable[..., Any]

_METRICS = ("--metric", "pass^2", "--metric", "pass^4")
TABLE = "model,task,trial,success\n" + "".join(
    f"{model},{task},{trial},{int((task + trial) % 3 > 0)}\n"
    for model in ("careful", "hasty")
    for task in range(4)
    for trial in range(4)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return path


def test_mlflow_gets_a_finished_run_with_every_number(
    passhat: Passhat, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = Tracking()
    with serving(tracking.routes()) as (url, _):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
        ended = passhat("report", str(table), "--metric", "pass^4", "-o", "mlflow:scores")
    assert ended.code == 0, ended.err
    assert list(tracking.experiments) == ["helpdesk", "scores"]
    assert [run["run_name"] for run in tracking.runs.values()] == ["careful", "hasty"]
    run = tracking.runs["r0"]
    assert run["status"] == "FINISHED"
    assert run["params"]["attempts_per_task"] == "4 attempts"
    expected = estimate(read(table)[0].outcomes, "pass^4")
    assert run["metrics"]["pass_hat_4"] == expected.value
    assert run["metrics"]["pass_hat_4_low"] == expected.low
    assert run["metrics"]["pass_hat_4_high"] == expected.high
    assert "pass_hat_4_low_these_tasks" in run["metrics"]
    assert f"{url}/#/experiments/2/runs/r0" in ended.err


def test_mlflow_that_is_not_there(
    passhat: Passhat, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    ended = passhat("report", str(table), "--metric", "rate", "-o", "mlflow:scores")
    assert ended.code == 2
    assert "MLflow cannot be reached at http://127.0.0.1:1" in ended.err


def test_wandb_gets_name_config_and_summary(passhat: Passhat, table: Path) -> None:
    ended = passhat("report", str(table), "--metric", "pass^2", "-o", "wandb:-")
    data = json.loads(ended.out)
    assert data["schema"] == "passhat.wandb/1"
    first = data["runs"][0]
    assert (first["name"], first["config"]["tasks"], first["config"]["passed"]) == (
        "careful",
        4,
        10,
    )
    assert first["summary"]["pass_hat_2"] == estimate(read(table)[0].outcomes, "pass^2").value
    assert all(name.replace("_", "").isalnum() for name in first["summary"])


def _langfuse(ended: Any) -> list[dict[str, Any]]:
    bodies: list[dict[str, Any]] = json.loads(ended.out)
    for body in bodies:  # what POST /api/public/scores requires
        assert body["name"]
        assert 0 <= body["value"] <= 1
        assert body["dataType"] == "NUMERIC"
        assert ("traceId" in body) != ("sessionId" in body)
    assert len({body["id"] for body in bodies}) == len(bodies)
    return bodies


def test_langfuse_gets_scores_of_sessions(passhat: Passhat, table: Path) -> None:
    arguments = ("report", str(table), "--metric", "pass^2", "-o", "langfuse:-")
    bodies = _langfuse(passhat(*arguments))
    assert [body["sessionId"] for body in bodies] == ["careful", "hasty"]
    assert "95% interval for new tasks" in bodies[0]["comment"]
    assert _langfuse(passhat(*arguments)) == bodies  # the same ids: sent twice, stored once


def test_what_came_from_langfuse_gets_scores_on_its_traces(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(langfuse_4()) as (url, _):
        monkeypatch.setenv("LANGFUSE_BASE_URL", url)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-test")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-secret-of-the-test")
        runs = tmp_path / "runs.jsonl"
        read = passhat("read", "langfuse:helpdesk", "--join", "--agent", "bot", "-o", runs)
        assert read.code == 0
        ended = passhat("report", runs, "--metric", "pass^2", "-o", "langfuse:-")
    run, *traces = _langfuse(ended)
    assert (run["sessionId"], run["value"]) == ("bot", 1 / 3)
    assert {body["traceId"]: body["value"] for body in traces} == {
        f"trace-{task}-{trial}": float(task == 0) for task in range(3) for trial in range(2)
    }
    # Langfuse averages over an experiment: that is the value of the run.
    assert sum(body["value"] for body in traces) / len(traces) == pytest.approx(run["value"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that inspect_ai itself wrote: 3 samples x 4 epochs, 4, 3 and 0 passed."""
    samples = [
        {
            "id": number,
            "epoch": epoch,
            "input": "x",
            "target": "y",
            "scores": {"match": {"value": "C" if epoch <= passed else "I"}},
        }
        for number, passed in ((1, 4), (2, 3), (3, 0))
        for epoch in range(1, 5)
    ]
    about = {
        "eval_id": "e",
        "run_id": "r",
        "created": "2026-01-01T00:00:00+00:00",
        "task": "quiz",
        "task_id": "i",
        "model": "m/m",
        "config": {"epochs": 4},
        "dataset": {"name": "d", "samples": 3, "sample_ids": [1, 2, 3]},
    }
    scores = [{"name": "match", "scorer": "match", "metrics": {"a": {"name": "a", "value": 0.5}}}]
    data = {"version": 2, "status": "success", "eval": about, "samples": samples}
    path = tmp_path / "quiz.eval"
    write_eval_log(EvalLog.model_validate({**data, "results": {"scores": scores}}), str(path))
    return path


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_an_inspect_log_gets_a_column_of_pass_hat_k(
    passhat: Passhat, log: Path, ending: str
) -> None:
    before, copy = log.read_bytes(), log.with_name(f"copy.{ending}")
    ended = passhat("report", str(log), *_METRICS, "-o", f"inspect:{copy}")
    assert ended.code == 0, ended.err
    assert log.read_bytes() == before
    assert copy.stat().st_mode & 0o077 == 0
    # Read again by inspect_ai itself.
    scored = read_eval_log(str(copy))
    assert scored.results is not None
    assert scored.results.scores[0].metrics["a"].value == 0.5
    rows = {row.reducer: row for row in scored.results.scores[1:]}
    expected = estimate(read(log)[0].outcomes, "pass^4")
    metrics = {name: metric.value for name, metric in rows["pass_hat_4"].metrics.items()}
    assert metrics == {"pass^4": expected.value, "low": expected.low, "high": expected.high}
    reduced = {row.reducer: row.samples for row in scored.reductions or ()}
    assert {s.sample_id: s.value for s in reduced["pass_hat_2"]} == {1: 1.0, 2: 0.5, 3: 0.0}
    assert len(scored.samples or ()) == 12
    assert read(copy)[0].outcomes.c.tolist() == [4, 3, 0]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("runs.csv", "inspect:copy.eval", "copies one inspect log"),
        ("quiz.eval", "inspect:quiz.eval", "is the log itself"),
        ("quiz.eval", "inspect:copy.txt", "ends in .eval or .json"),
        ("quiz.eval", "inspect:no/such/folder/copy.eval", "cannot be written"),
        ("quiz.eval", "neptune:x", "with one of html, md, csv, json, mlflow"),
        ("quiz.eval", "mlflow:", "with one of html, md, csv, json, mlflow"),
    ],
)
def test_targets_that_cannot_be(
    passhat: Passhat,
    table: Path,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    target: str,
    expected: str,
) -> None:
    assert table.parent == log.parent
    monkeypatch.chdir(log.parent)
    ended = passhat("report", source, "--metric", "rate", "-o", target)
    assert ended.code == 2
    assert expected in ended.err
