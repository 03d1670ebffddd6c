"""A task file for inspect, in a folder that passhat is called in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from passhat.integrations.inspect import inspect_suite
from passhat.integrations.inspect.inspect_suite import InspectProcess, InspectSuite

TASKS = '''
import asyncio
from pathlib import Path

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, match, scorer
from inspect_ai.solver import generate, solver

@scorer(metrics=[accuracy()])
def so_often():
    """The first epochs pass, as many as the target says."""
    async def score(state, target):
        if state.metadata.get("breaks"):
            raise RuntimeError("the judge model timed out")
        return Score(value=CORRECT if state.epoch <= int(target.text) else INCORRECT)
    return score

@task
def luck():
    samples = [
        Sample(input=f"{i}?", target=str(i), metadata={"kind": "odd" if i % 2 else "even"})
        for i in range(5)
    ]
    return Task(dataset=samples, solver=generate(), scorer=so_often(), message_limit=10)

@task
def broken():
    samples = [Sample(id="sound", input="?", target="9"),
               Sample(id="broken", input="?", target="9", metadata={"breaks": True})]
    return Task(dataset=samples, solver=generate(), scorer=so_often())

@task
def two_scorers():
    return Task(dataset=[Sample(id="a", input="?", target="1")], scorer=[so_often(), match()])

@solver
def until_told():
    """The first epoch ends; the others wait for a file that may never come."""
    async def solve(state, generate):
        while state.epoch > 1 and not Path("go").exists():
            await asyncio.sleep(0.05)
        return state
    return solve

@task
def waits():
    samples = [Sample(id=name, input="?", target="9") for name in "ab"]
    return Task(dataset=samples, solver=until_told(), scorer=so_often())
'''


@pytest.fixture(scope="module")
def tasks_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "my_tasks.py").write_text(TASKS)
    return folder


@pytest.fixture(scope="module")
def inspect_process(tasks_folder: Path) -> Iterator[InspectProcess]:
    """One real process for all tests of a module: loading inspect takes seconds."""
    with chdir(tasks_folder):
        process = InspectProcess()
    yield process
    process.close()


@pytest.fixture
def folder(
    tasks_folder: Path, inspect_process: InspectProcess, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder with the tasks, which passhat is called in; the process is not ended by a run."""
    monkeypatch.chdir(tasks_folder)
    monkeypatch.setattr(inspect_suite, "InspectProcess", lambda: inspect_process)
    monkeypatch.setattr(InspectSuite, "close_process", lambda _: None)
    return tasks_folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where this test's attempts are kept."""
    return tmp_path / "attempts.db"
