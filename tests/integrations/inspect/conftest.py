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
from inspect_ai.model import ChatMessageSystem, ModelOutput, ModelUsage, execute_tools, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, match, scorer
from inspect_ai.solver import generate, solver
from inspect_ai.tool import tool

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

@tool
def add():
    async def execute(x: int, y: int):
        """Add two numbers.

        Args:
            x: The first.
            y: The second.
        """
        return x + y
    return execute

def counted(output, inputs, outputs, reasoning=None):
    output.usage = ModelUsage(
        input_tokens=inputs, output_tokens=outputs, total_tokens=inputs + outputs,
        input_tokens_cache_read=2, reasoning_tokens=reasoning)
    return output

@solver
def talks():
    """A model that calls a tool, and is cut when it answers."""
    async def solve(state, generate):
        model = get_model("mockllm/model", memoize=False, custom_outputs=[
            counted(ModelOutput.for_tool_call("mockllm/model", "add", {"x": 2, "y": 3}), 30, 4),
            counted(ModelOutput.from_content(
                "mockllm/model", "It is" + " five" * 60, stop_reason="max_tokens"), 40, 6, 1),
        ])
        state.messages.insert(0, ChatMessageSystem(content="Be brief. sk-abcdefghijklmnopqrst"))
        while True:
            state.output = await model.generate(state.messages, tools=[add()])
            state.messages.append(state.output.message)
            if not state.output.message.tool_calls:
                return state
            state.messages.extend((await execute_tools(state.messages, [add()])).messages)
    return solve

@scorer(metrics=[accuracy()])
def asks_a_model():
    async def score(state, target):
        judge = get_model("mockllm/model", memoize=False, custom_outputs=[
            counted(ModelOutput.from_content("mockllm/model", "too long"), 9, 1)])
        said = await judge.generate("Is it right?")
        return Score(value=INCORRECT, answer="five", explanation=f"the judge: {said.completion}")
    return score

@task
def talk():
    return Task(dataset=[Sample(id="sum", input="2 + 3?", target="5")], solver=talks(),
                scorer=asks_a_model())
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
