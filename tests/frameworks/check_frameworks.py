"""Agents of four real frameworks, run by passhat: `make test-frameworks`.

Run in an environment of its own (tests/frameworks/requirements.txt): CrewAI needs older versions of
packages than the rest of passhat's tests. The user's code is at most five lines each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import model_server
import pytest

from passhat.store import open_store

TOOL = """
def multiply(a: int, b: int) -> int:
    "Multiply two numbers."
    return a * b
"""

AGENTS = {
    "langgraph": """
        from langchain_openai import ChatOpenAI
        from langgraph.prebuilt import create_react_agent
        agent = create_react_agent(ChatOpenAI(model="gpt-4o-mini"), [multiply])
    """,
    "openai agents sdk": """
        from agents import Agent, function_tool
        agent = Agent(name="clerk", tools=[function_tool(multiply)], model="gpt-4o-mini")
    """,
    "pydantic-ai": """
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        agent = Agent(OpenAIChatModel("gpt-4o-mini"), tools=[multiply])
    """,
    "crewai agent": """
        from crewai import Agent
        from crewai.tools import tool
        agent = Agent(role="-", goal="-", backstory="-", tools=[tool(multiply)], llm="gpt-4o-mini")
    """,
    "crewai crew": """
        from crewai import Agent, Crew, Task
        from crewai.tools import tool
        clerk = Agent(role="-", goal="-", backstory="-", tools=[tool(multiply)], llm="gpt-4o-mini")
        task = Task(description="{prompt}", expected_output="a number", agent=clerk)
        agent = Crew(agents=[clerk], tasks=[task])
    """,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "t", "prompt": "What is 6 times 7?", "answer": 42, "grader": "numeric"}\n'
    )
    url = model_server.start()
    for name, value in {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_BASE": url,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_DISABLE_TELEMETRY": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = ["run", "-s", "jsonl:tasks.jsonl", "-a", "python:my_agent:agent", "-n", "3", *more]
    return subprocess.run(
        [sys.executable, "-m", "passhat", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", AGENTS)
def test_tokens_cost_and_tool_steps_are_recorded(folder: Path, name: str) -> None:
    code = dedent(AGENTS[name]).strip()
    assert len(code.splitlines()) <= 5
    (folder / "my_agent.py").write_text(TOOL + code + "\n")
    done = _run(folder, "--budget", "1")
    assert done.returncode == 0, done.stderr
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.passed) == (3, 3)
        rows = [row for block in store.rows(run.id) for row in block]
        for number in (1, 2, 3):
            attempt = store.attempt(run.id, "t", number)
            assert attempt is not None
            assert [entry["role"] for entry in attempt.transcript] == [
                *("user", "agent", "tool", "agent")
            ]
            assert attempt.transcript[2]["text"] == "42"
            calls = store.calls(run.id, "t", number)
            assert [call["name"] for call in calls if call.get("role") == "tool"] == ["multiply"]
    # Two calls of 100 and 10 tokens each, at the price of gpt-4o-mini.
    assert {row[6] for row in rows} == {220.0}
    assert {round(float(str(row[7])), 9) for row in rows} == {round(200 * 0.15e-6 + 20 * 0.6e-6, 9)}


def test_a_cap_holds_for_a_framework(folder: Path) -> None:
    (folder / "my_agent.py").write_text(TOOL + dedent(AGENTS["pydantic-ai"]))
    done = _run(folder, "--set", "max_tokens=500")
    with open_store() as store:
        (run,) = store.runs()
        rows = [row for block in store.rows(run.id) for row in block]
    assert sum(float(str(row[6])) for row in rows) <= 500
    assert done.returncode == 4, done.stderr
