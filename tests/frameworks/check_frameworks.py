"""Agents of thirteen real frameworks, run by passhat: `make test-frameworks`.

Each group of frameworks has an environment of its own (tests/frameworks/requirements/), since
they need different versions of the same packages; a framework that is not installed is left to the
other environment. The user's code is at most five lines each.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import model_server
import pytest

from passhat.store import open_store

TOOL = """
def multiply(a: int, b: int) -> int:
    '''Multiply two numbers.

    Args:
        a: One of them.
        b: The other.
    '''
    return a * b


async def multiply_for_claude(numbers):
    return {"content": [{"type": "text", "text": str(numbers["a"] * numbers["b"])}]}
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
    "smolagents": """
        from smolagents import OpenAIServerModel, ToolCallingAgent, tool
        agent = ToolCallingAgent([tool(multiply)], OpenAIServerModel("gpt-4o-mini"))
    """,
    "dspy": """
        import dspy
        dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))
        agent = dspy.ReAct("question -> answer", tools=[multiply])
    """,
    "llama_index": """
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.llms.openai import OpenAI
        agent = FunctionAgent(tools=[multiply], llm=OpenAI("gpt-4o-mini"), streaming=False)
    """,
    "autogen_agentchat": """
        from autogen_agentchat.agents import AssistantAgent
        from autogen_ext.models.openai import OpenAIChatCompletionClient
        model = OpenAIChatCompletionClient(model="gpt-4o-mini")
        agent = AssistantAgent("clerk", model, tools=[multiply], reflect_on_tool_use=True)
    """,
    "ag2": """
        from ag2 import Agent
        from ag2.config import OpenAIConfig
        agent = Agent("clerk", config=OpenAIConfig(model="gpt-4o-mini"), tools=[multiply])
    """,
    "agno": """
        from agno.agent import Agent
        from agno.models.openai import OpenAIChat
        agent = Agent(model=OpenAIChat("gpt-4o-mini"), tools=[multiply], telemetry=False)
    """,
    "strands": """
        from strands import Agent, tool
        from strands.models.openai import OpenAIModel
        agent = Agent(OpenAIModel(model_id="gpt-4o-mini"), tools=[tool(multiply)])
    """,
    "google.adk": """
        from google.adk.agents import LlmAgent
        from google.adk.models.lite_llm import LiteLlm
        agent = LlmAgent(name="clerk", model=LiteLlm("openai/gpt-4o-mini"), tools=[multiply])
    """,
    "claude_agent_sdk": """
        from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool
        times = tool("multiply", "Multiply.", {"a": int, "b": int})(multiply_for_claude)
        desk = {"desk": create_sdk_mcp_server("desk", tools=[times])}
        agent = ClaudeAgentOptions(model="claude-sonnet-4-5", mcp_servers=desk, tools=[],
                                   allowed_tools=["mcp__desk__multiply"])
    """,
}
PACKAGES = {
    "openai agents sdk": "agents",
    "pydantic-ai": "pydantic_ai",
    "crewai agent": "crewai",
    "crewai crew": "crewai",
}
"""Packages that are not called as their framework is here."""
CALLS = {"dspy": 3, "claude_agent_sdk": 3}
"""Model calls of an attempt, where they are not two: a program of DSPy has a last one, and Claude's
SDK asks for a title of the conversation, which costs as well."""


def is_installed(name: str) -> bool:
    try:
        return find_spec(PACKAGES.get(name, name)) is not None
    except ModuleNotFoundError:  # of a package within another
        return False


HERE = [name for name in AGENTS if is_installed(name)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "t", "prompt": "What is 6 times 7?", "answer": 42, "grader": "numeric"}\n'
    )
    url = model_server.start()
    for name, value in {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "DISABLE_TELEMETRY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
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


def test_some_framework_is_installed() -> None:
    assert HERE, "an environment without a framework checks nothing"


@pytest.mark.parametrize("name", HERE)
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
            roles = [entry["role"] for entry in attempt.transcript]
            assert roles == ["user", "agent", "tool", "agent", "expected", "got"]
            assert attempt.transcript[2]["text"] == "42"
            calls = store.calls(run.id, "t", number)
            (tool,) = [call["name"] for call in calls if call.get("role") == "tool"]
            assert tool.endswith("multiply")
    # Calls of 100 and 10 tokens each, at the price of gpt-4o-mini or of Claude's SDK.
    count = CALLS.get(name, 2)
    assert {row[6] for row in rows} == {count * 110.0}
    prices = (3e-6, 15e-6) if "claude" in name else (0.15e-6, 0.6e-6)
    cost = count * (100 * prices[0] + 10 * prices[1])
    assert {round(float(str(row[7])), 9) for row in rows} == {round(cost, 9)}


@pytest.mark.skipif("pydantic-ai" not in HERE, reason="checked in the environment of pydantic-ai")
def test_a_cap_holds_for_a_framework(folder: Path) -> None:
    (folder / "my_agent.py").write_text(TOOL + dedent(AGENTS["pydantic-ai"]))
    done = _run(folder, "--set", "max_tokens=500")
    with open_store() as store:
        (run,) = store.runs()
        rows = [row for block in store.rows(run.id) for row in block]
    assert sum(float(str(row[6])) for row in rows) <= 500
    assert done.returncode == 4, done.stderr


@pytest.mark.skipif("claude_agent_sdk" not in HERE, reason="checked where Claude's SDK is")
@pytest.mark.usefixtures("folder")
def test_a_second_turn_counts_its_own_use_only() -> None:
    """The SDK reports the sum of the conversation after every turn."""
    from claude_agent_sdk import ClaudeAgentOptions

    from passhat.agents.base import AttemptInfo
    from passhat.agents.function import agent_from_object
    from passhat.suites.base import Turn

    async def talk() -> AttemptInfo:
        attempt = AttemptInfo("t", 1, seed=1)
        options = ClaudeAgentOptions(model="claude-sonnet-4-5", tools=[])
        session = await agent_from_object(options).session(attempt)
        for text in ("What is 6 times 7?", "And again?"):
            assert await session.answer(Turn(text)) == "42"
        await session.close()
        return attempt

    first, second = asyncio.run(talk()).meter.calls
    assert first.input_tokens == second.input_tokens
    assert first.cost == pytest.approx(second.cost)
