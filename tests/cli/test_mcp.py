"""passhat mcp, asked by the official client over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

READING = {"read", "report", "compare", "gate", "plan", "why", "review"}
Call = Callable[..., Awaitable[tuple[bool, str]]]


def _ask(
    folder: Path, *options: str, then: Callable[[ClientSession, Call], Awaitable[None]]
) -> None:
    async def ask() -> None:
        words = ["-m", "passhat", "mcp", *options]
        server = StdioServerParameters(command=sys.executable, args=words, cwd=folder)
        async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
            await session.initialize()

            async def call(tool: str, **arguments: object) -> tuple[bool, str]:
                answer = await session.call_tool(tool, arguments)
                return bool(answer.is_error), getattr(answer.content[0], "text", "")

            await then(session, call)

    asyncio.run(ask())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    rows = [
        f"{agent},t{task},{int((task + attempt) % 5 > (agent == 'old'))}"
        for agent in ("old", "new")
        for task in range(10)
        for attempt in range(4)
    ]
    (tmp_path / "runs.csv").write_text("\n".join(["agent,task,passed", *rows]) + "\n")
    return tmp_path


def test_an_assistant_reads_reports_and_decides(runs: Path) -> None:
    async def then(session: ClientSession, call: Call) -> None:
        tools = (await session.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        is_error, text = await call("report", source="runs.csv", metrics=["pass^2"])
        assert not is_error
        assert text.startswith("2 runs  10 tasks each")
        assert "pass^2" in text
        is_error, text = await call("gate", source="runs.csv", rules=["pass^1 >= 0.99"], run="old")
        assert not is_error
        assert "(exit 1: a rule is refuted" in text
        is_error, text = await call("gate", source="runs.csv", rules=["pass^1 >= 0.5"])
        assert is_error  # there are two runs, and the message names them
        assert "old, new" in text
        is_error, text = await call("review", claim="Our agent reaches 80% on 40 tasks.")
        assert "missing-interval" in text

    _ask(runs, then=then)


def test_no_argument_is_an_option_and_nothing_is_run_unasked(runs: Path) -> None:
    async def then(_session: ClientSession, call: Call) -> None:
        for source in ("-oout.html", "--out=out.html"):
            is_error, text = await call("report", source=source)
            assert is_error
            assert "there is no such file" in text
        is_error, _ = await call("report", source="runs.csv", metrics=["pass^1 -o out.html"])
        assert is_error
        is_error, _ = await call("run", agent="demo:careful", suite="orderdesk/retail")
        assert is_error

    _ask(runs, then=then)
    assert [path.name for path in runs.iterdir()] == ["runs.csv"]


def test_with_permission_an_agent_is_run(tmp_path: Path) -> None:
    (tmp_path / "four.py").write_text("def answer(prompt):\n    return '4'\n")
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "prompt": "2 + 2?", "answer": "4"}\n')

    async def then(_session: ClientSession, call: Call) -> None:
        is_error, text = await call(
            "run", agent="python:four:answer", suite="tasks.jsonl", attempts=2
        )
        assert not is_error
        assert "2 of 2" in text

    _ask(tmp_path, "--allow-run", then=then)


def test_a_mistake_of_the_assistant_is_answered_in_its_own_words(runs: Path) -> None:
    (runs / "README.md").write_text("The agent new reaches 12% pass@1 on 10 tasks.\n")

    async def then(_session: ClientSession, call: Call) -> None:
        is_error, text = await call("report", source="runs.csv", metric="pass^2")
        assert is_error
        assert "report has no argument metric. It takes: source, metrics, full." in text
        for source in ("", "a\0b"):
            is_error, text = await call("report", source=source)
            assert is_error
            assert "is no source. Name a file" in text
        is_error, text = await call("report", source="latest")
        assert is_error
        assert "there is no store" in text
        is_error, text = await call("why", source="runs.csv")
        assert is_error
        assert "with the argument run: old, new" in text
        assert "--run" not in text
        _, text = await call("report", source="runs.csv")
        assert "--full" not in text
        # A file of claims is read, as on the command line.
        _, text = await call("review", claim="README.md", sources=["runs.csv"])
        assert "1 claim" in text
        _, text = await call("review", claim="The weather is fine.")
        assert "no claim about pass rates was recognised" in text

    _ask(runs, then=then)
