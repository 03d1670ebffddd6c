"""Real servers of MLflow and Phoenix on loopback: `make test-platforms`.

Run in an environment of its own (tests/platforms/requirements.txt): the servers bring 1.5 GB. The
other platforms run only as services; tests/readers/test_platforms.py has stand-ins for them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from passhat import estimate, read

BIN = Path(sys.executable).parent
TASKS, REPEATS = 45, 3  # more traces than one page of MLflow holds


@contextmanager
def running(command: list[str], folder: Path, url: str, **settings: str) -> Iterator[str]:
    """A server, once it answers."""
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=log,
            stderr=log,
        )
        try:
            while True:
                assert server.poll() is None, (folder / "server.log").read_text()
                try:
                    if httpx.get(url, timeout=5).is_success:
                        break
                except httpx.HTTPError:
                    time.sleep(0.5)
            yield url.rpartition("/")[0]
        finally:
            server.terminate()
            server.wait()


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _passed(task: int, repeat: int) -> bool:
    return (task + repeat) % 3 > 0


@pytest.fixture
def mlflow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    port = _port()
    command = ["mlflow", "server", "--backend-store-uri", "sqlite:///mlflow.db", "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with running(command, tmp_path, f"http://127.0.0.1:{port}/health") as url:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
        monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        yield url


def test_mlflow_traces_are_read(mlflow_server: str) -> None:
    import mlflow

    mlflow.set_tracking_uri(mlflow_server)
    mlflow.set_experiment("helpdesk")
    for repeat in range(REPEATS):
        with mlflow.start_run(run_name=f"eval-{repeat}"):
            for task in range(TASKS):
                with mlflow.start_span(name="answer") as span:
                    # Longer than what MLflow keeps in its list of traces.
                    padding = "x" * 2_000 if task < 3 else ""
                    span.set_inputs({"question": f"{padding}{task}"})
                if (task, repeat) != (3, 1):
                    mlflow.log_feedback(
                        trace_id=span.trace_id, name="correct", value=_passed(task, repeat)
                    )
                mlflow.log_expectation(trace_id=span.trace_id, name="expected", value="x")
    apart = read("mlflow:helpdesk")
    assert sorted(run.name for run in apart) == ["eval-0", "eval-1", "eval-2"]
    (joined,) = read("mlflow:helpdesk", join=True, agent="bot")
    outcomes = joined.outcomes
    counts = (len(outcomes), outcomes.attempts, outcomes.passes, outcomes.total_missing)
    assert counts == (TASKS, TASKS * REPEATS, TASKS * REPEATS * 2 // 3 - 1, 1)


def test_scores_are_logged_to_mlflow(mlflow_server: str) -> None:
    import mlflow

    command = [str(BIN / "passhat"), "report", "example:helpdesk", "-o", "mlflow:scores"]
    subprocess.run(command, check=True)
    mlflow.set_tracking_uri(mlflow_server)
    found = mlflow.search_runs(experiment_names=["scores"], output_format="list")
    logged = {run.info.run_name: run for run in found}
    for run in read("example:helpdesk"):
        expected = estimate(run.outcomes, "pass^4")
        metrics = logged[run.name].data.metrics
        assert metrics["pass_hat_4"] == pytest.approx(expected.value)
        assert metrics["pass_hat_4_low"] == pytest.approx(expected.low)
        assert logged[run.name].info.status == "FINISHED"
        assert logged[run.name].data.params["tasks"] == "24"


def test_phoenix_experiments_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = _port()
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}/healthz"
    with running(["phoenix", "serve"], tmp_path, url, **settings) as address:
        monkeypatch.setenv("PHOENIX_BASE_URL", address)
        _make_experiments(address)
        runs = {run.name: run.outcomes for run in read("phoenix:helpdesk")}
        assert sorted(runs) == ["careful", "hasty"]
        assert (len(runs["careful"]), runs["careful"].attempts, runs["careful"].passes) == (
            5,
            15,
            10,
        )
        assert (runs["hasty"].attempts, runs["hasty"].total_missing) == (15, 1)
        assert [run.name for run in read("phoenix:helpdesk/careful")] == ["careful"]


def _make_experiments(address: str) -> None:
    """Two experiments on a dataset, through Phoenix's own API."""
    now = datetime.now(UTC).isoformat()
    times = {"start_time": now, "end_time": now}
    with httpx.Client(base_url=address, timeout=60) as client:

        def post(path: str, body: Mapping[str, object]) -> dict[str, str]:
            answer = client.post(path, params={"sync": "true"}, json=body)
            answer.raise_for_status()
            data: dict[str, str] = (answer.json() or {}).get("data") or {}
            return data

        inputs = [{"q": task} for task in range(5)]
        upload = {"action": "create", "name": "helpdesk", "inputs": inputs, "outputs": inputs}
        dataset = post("/v1/datasets/upload", upload)["dataset_id"]
        examples = client.get(f"/v1/datasets/{dataset}/examples").json()["data"]["examples"]
        for name in ("careful", "hasty"):
            path = f"/v1/datasets/{dataset}/experiments"
            experiment = post(path, {"name": name, "repetitions": 3})["id"]
            for task, example in enumerate(examples):
                for repeat in range(3):
                    broken = (name, task, repeat) == ("hasty", 0, 0)
                    run = post(
                        f"/v1/experiments/{experiment}/runs",
                        {
                            "dataset_example_id": example["id"],
                            "output": None if broken else "x",
                            "error": "rate limit exceeded" if broken else None,
                            "repetition_number": repeat + 1,
                            **times,
                        },
                    )["id"]
                    if not broken:
                        result = {"score": float(_passed(task, repeat))}
                        scored = {"experiment_run_id": run, "name": "correct", "result": result}
                        post(
                            "/v1/experiment_evaluations",
                            {**scored, "annotator_kind": "CODE", **times},
                        )
