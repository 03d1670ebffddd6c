"""Worlds served by MCP, solved by the SDK's own client through its endpoint alone."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.errors import InvalidValue, RunStopped
from passhat.runner import run_attempts
from passhat.runner.mcp import McpSuite
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store import AttemptRecord, open_store
from passhat.suites import load_suite
from passhat.suites.base import Episode, Judgement, Suite, Task, ToolSpec, Turn
from passhat.suites.tool_calls import read_call

Calls = list[tuple[str, dict[str, object]]]

SOLVED: Calls = [
    ("find_customer_by_email", {"email": "ines.halden@mail.example"}),
    ("cancel_order", {"order": "R-2101", "reason": "mistake"}),
]
WORDS = "The order is cancelled and you get 48.00 back. Anything else?"


class McpAgent(Agent):
    """Calls tools by MCP, then says one sentence to the user, again and again."""

    name = "test:mcp"

    def __init__(self, calls: Calls, words: str = WORDS, mode: str = "auto") -> None:
        self.calls = calls
        self.words = words
        self.mode = mode
        self.endpoints: list[str] = []
        self.results: list[Any] = []
        self.tools: list[Any] = []

    async def session(self, _attempt: AttemptInfo) -> McpSession:
        return McpSession(self)


class McpSession(Session):
    def __init__(self, agent: McpAgent) -> None:
        self.agent = agent
        self.begun = False

    async def answer(self, turn: Turn) -> str:
        if not self.begun:
            self.begun = True
            found = re.search(r"http://\S+/mcp", turn.text)
            if found is None and turn.text.startswith("Be brief."):
                return self.agent.words  # a task without tools
            assert found is not None
            self.agent.endpoints.append(found[0])
            async with Client(found[0], mode=self.agent.mode) as client:
                self.agent.tools = (await client.list_tools()).tools
                for name, arguments in self.agent.calls:
                    self.agent.results.append(await client.call_tool(name, arguments))
        return self.agent.words


def attempted(
    agent: McpAgent, tmp_path: Path, inner: Suite | None = None, **limits: Any
) -> AttemptRecord:
    return asyncio.run(_attempted(agent, tmp_path, inner, **limits))[0]


async def _attempted(
    agent: McpAgent, tmp_path: Path, inner: Suite | None, **limits: Any
) -> list[AttemptRecord]:
    suite = McpSuite(inner or load_suite("orderdesk/retail"))
    plan = RunSpec(
        suite=suite, agent=agent, attempts=1, tasks=(suite.tasks[0].id,), **limits
    ).plan()
    made: list[AttemptRecord] = []
    with open_store(str(tmp_path / "store.db")) as store:
        await run_attempts(plan, store, Stop(), lambda record, _: made.append(record))
    return made


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdks_client_solves_a_task_with_nothing_but_the_endpoint(
    mode: str, tmp_path: Path
) -> None:
    agent = McpAgent(SOLVED, mode=mode)
    made = attempted(agent, tmp_path)
    assert made.judgement.verdict is Verdict.PASSED, made.judgement
    assert "cancel_order" in {tool.name for tool in agent.tools}
    roles = [entry["role"] for entry in made.transcript]
    assert roles[:6] == ["user", "agent", "tool", "agent", "tool", "agent"]
    assert '"name": "cancel_order"' in made.transcript[3]["text"]
    assert made.transcript[4]["text"].startswith("Tool result: ")
    # As many steps as by the text protocol: every call is one, every sentence to the user is one.
    assert made.steps == 2 + roles.count("user")


def test_a_finished_attempts_path_is_gone() -> None:
    """A second client gets an error while others still play, and so does a guessed path."""

    async def refused(url: str) -> bool:
        try:
            async with Client(url) as client:
                await client.list_tools()
        except Exception:
            return True
        return False

    async def whole() -> None:
        suite = McpSuite(load_suite("orderdesk/retail"))
        first = await suite.episode(suite.tasks[0], 1)
        second = await suite.episode(suite.tasks[0], 2)
        ends = [re.findall(r"http://\S+/mcp", str(await one.open()))[0] for one in (first, second)]
        assert ends[0] != ends[1]
        assert len(ends[0].split("/")[-2]) >= 32
        await first.close()
        async with Client(ends[1]) as client:
            assert (await client.list_tools()).tools
        for url in (ends[0], ends[1].replace("/mcp", "x/mcp"), f"{ends[1]}/more"):
            assert await refused(url)
        await second.close()
        await suite.close()
        assert await refused(ends[1])

    asyncio.run(whole())


def test_worlds_do_not_know_each_other() -> None:
    async def whole() -> None:
        suite = McpSuite(load_suite("orderdesk/retail"))
        first, second = [await suite.episode(suite.tasks[0], 1) for _ in range(2)]
        for world in (first, second):
            await world.open()
        for name, arguments in SOLVED:
            await first.call(name, arguments)
        found = [(await one.call("get_order", {"order": "R-2101"})).text for one in (first, second)]
        assert ['"status": "cancelled"' in one for one in found] == [True, False]
        await suite.close()

    asyncio.run(whole())


def test_steps_run_out_for_calls_as_well(tmp_path: Path) -> None:
    agent = McpAgent([("get_order", {"order": "R-2101"})] * 9, "May I have your name?")
    made = attempted(agent, tmp_path, max_steps=5)
    assert made.judgement.why == "timeout"
    assert "max_steps" in made.judgement.detail
    assert made.steps == 5
    assert [one.is_error for one in agent.results] == [False] * 4 + [True] * 5


def test_a_tools_error_is_an_error_to_the_client(tmp_path: Path) -> None:
    agent = McpAgent([("get_order", {"order": "nonsense"}), ("no_such_tool", {})])
    made = attempted(agent, tmp_path)
    assert [one.is_error for one in agent.results] == [True, True]
    assert "nonsense" in agent.results[0].content[0].text
    assert made.judgement.verdict is Verdict.FAILED


def test_handing_over_ends_the_conversation(tmp_path: Path) -> None:
    agent = McpAgent([("hand_over", {"topic": "legal"})] * 2)
    made = attempted(agent, tmp_path)
    assert [entry["role"] for entry in made.transcript] == ["user", "agent", "tool", "agent"]
    assert [one.is_error for one in agent.results] == [False, True]


def test_a_suite_without_tools_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "t", "prompt": "?", "answer": "yes"}')
    with pytest.raises(InvalidValue, match="no tools"):
        McpSuite(load_suite(f"jsonl:{tmp_path / 't.jsonl'}"))


class Lamp(Suite):
    """A suite of one's own, in the fewest lines: a lamp that is to be switched on."""

    name = "lamp"
    tasks = (Task("on", "Switch it on."),)
    fingerprint = judge_fingerprint = "1"

    def __init__(self, *, slow: bool = False, breaks: bool = False, tools: bool = True) -> None:
        self.slow_world, self.breaks, self.tools = slow, breaks, tools

    def episode(self, _task: Task, _seed: int) -> LampEpisode | SlowLampEpisode:
        return SlowLampEpisode(self) if self.slow_world else LampEpisode(self)


class LampEpisode(Episode):
    def __init__(self, suite: Lamp) -> None:
        self.suite = suite
        self.on = False
        self.words = ""

    def open(self) -> Turn:
        switch = ToolSpec("switch", "Switches.", {"properties": {"on": {"type": "boolean"}}})
        words = "Switch it on."
        return Turn(words, tools=(switch,) if self.suite.tools else ())

    def reply(self, answer: str) -> Turn | None:
        call = read_call(answer)
        if call.name == "switch":
            if self.suite.breaks:
                raise RuntimeError("the bulb burst")
            self.on = bool(call.arguments["on"])
            return Turn(f"Tool result: {self.on}", result=str(self.on))
        self.words = str(call.arguments["content"])
        return None

    def judge(self) -> Judgement:
        if self.on and self.words:
            return Judgement.passed()
        return Judgement.failed(FailureCategory.WRONG_STATE)


class SlowLampEpisode(LampEpisode):
    """The same, waiting for something in between, and with something to close."""

    closed = False

    async def open(self) -> Turn:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().open()

    async def reply(self, answer: str) -> Turn | None:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().reply(answer)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("slow", [False, True])
def test_a_suite_of_ones_own(slow: bool, tmp_path: Path) -> None:
    agent = McpAgent([("switch", {"on": True}), ("respond", {"content": "no"})], "Done.")
    made = attempted(agent, tmp_path, Lamp(slow=slow))
    assert made.judgement.verdict is Verdict.PASSED, made.judgement
    (tool,) = agent.tools
    assert tool.input_schema == {"type": "object", "properties": {"on": {"type": "boolean"}}}
    # The user is talked to in the conversation; there is no tool for it.
    assert [one.is_error for one in agent.results] == [False, True]
    assert agent.results[0].content[0].text == "True"
    assert made.transcript[0]["text"].endswith("User: Switch it on.")
    assert made.transcript[2]["text"] == "Tool result: True"


def test_a_world_that_breaks_under_a_call_is_not_the_agents_fault(tmp_path: Path) -> None:
    agent = McpAgent([("switch", {"on": True})] * 2, "Done.")
    made = attempted(agent, tmp_path, Lamp(breaks=True))
    assert made.judgement.verdict is Verdict.MISSING
    assert "the bulb burst" in made.judgement.detail
    assert [one.is_error for one in agent.results] == [True, True]


@pytest.mark.parametrize("slow", [False, True])
def test_a_suite_that_turns_out_to_have_no_tools_stops_the_run(tmp_path: Path, slow: bool) -> None:
    with pytest.raises(RunStopped, match="lamp has no tools"):
        attempted(McpAgent([]), tmp_path, Lamp(slow=slow, tools=False))


def test_from_the_command_line(passhat: Any, tmp_path: Path) -> None:
    """The demo agents know no MCP; they may still call tools in their answers."""
    store = tmp_path / "store.db"
    ended = passhat(
        *("run", "-s", "orderdesk/retail", "-a", "demo:careful", "--set", "tools=mcp", "-n", 1),
        *("--task", 0, "--store", store),
    )
    assert ended.code == 0, ended.err
    with open_store(str(store)) as kept:
        (run,) = kept.runs()
        assert run.suite == "orderdesk/retail+mcp"
        found = kept.attempt(run.id, "retail/001", 1)
    assert found is not None
    assert "MCP endpoint" in found.transcript[0]["text"]


BY_NAME = """
import re
from mcp import Client

class Agent:
    def __init__(self):
        self.begun = False

    async def __call__(self, prompt):
        if not self.begun:
            self.begun = True
            url = re.search(r"http://\\S+/mcp", prompt)[0]
            async with Client(url) as client:
                for name, arguments in CALLS:
                    await client.call_tool(name, arguments)
        return WORDS
"""


@pytest.mark.usefixtures("way")
def test_the_command_serves_worlds_wherever_attempts_are_made(
    passhat: Callable[..., Any], folder: Path
) -> None:
    (folder / "by_mcp.py").write_text(f"{BY_NAME}\nCALLS, WORDS = {SOLVED!r}, {WORDS!r}\n")
    ended = passhat(
        *("run", "-s", "orderdesk/retail", "--task", "0", "-n", "3", "--set", "tools=mcp"),
        *("-a", "python:by_mcp:Agent"),
    )
    sys.modules.pop("by_mcp")
    assert ended.code == 0, ended.err
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.passed, run.suite) == (3, 3, "orderdesk/retail+mcp")


class Oven(Suite):
    """A suite whose one tool takes until it is let go."""

    name = "oven"
    tasks = (Task("bake", "Bake it."),)
    fingerprint = judge_fingerprint = "1"

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        self.baked: list[object] = []

    def episode(self, _task: Task, _seed: int) -> OvenEpisode:
        return OvenEpisode(self)


class OvenEpisode(Episode):
    def __init__(self, suite: Oven) -> None:
        self.suite = suite

    async def open(self) -> Turn:
        degrees = {"type": "integer", "minimum": 50}
        schema = {"properties": {"degrees": degrees}, "required": ["degrees"]}
        return Turn("Bake it.", tools=(ToolSpec("bake", "Bakes.", schema),))

    async def reply(self, answer: str) -> Turn | None:
        self.suite.began.set()
        await self.suite.may_end.wait()
        self.suite.baked.append(read_call(answer).arguments["degrees"])
        return Turn("Tool result: done", result="done")

    def judge(self) -> Judgement:
        return Judgement.passed()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_the_inspector_checks(mode: str) -> None:
    """List, call, unknown tool, wrong arguments, progress, cancel: by the official client."""

    async def whole() -> None:
        oven = Oven()
        suite = McpSuite(oven)
        episode = await suite.episode(suite.tasks[0], 0)
        turn = await episode.open()
        assert turn is not None
        place = re.search(r"http://\S+/mcp", turn.text)
        assert place is not None
        async with Client(place[0], mode=mode) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.input_schema["required"] == ["degrees"]
            unknown = await client.call_tool("fry", {})
            assert unknown.is_error
            assert "there is no tool 'fry'" in str(unknown.content[0])
            for wrong in ({}, {"degrees": "hot"}, {"degrees": 7}):
                refused = await client.call_tool("bake", wrong)
                assert refused.is_error
                assert "are wrong" in str(refused.content[0])
            assert oven.baked == []
            canceled = asyncio.create_task(client.call_tool("bake", {"degrees": 100}))
            await oven.began.wait()
            canceled.cancel()
            await asyncio.gather(canceled, return_exceptions=True)
            oven.may_end.set()
            heard: list[float] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                assert total == 1
                assert message is not None
                heard.append(progress)

            done = await client.call_tool("bake", {"degrees": 200}, progress_callback=hear)
            assert not done.is_error
            # What had begun in the world was ended there, once; the client no longer waits for it.
            assert oven.baked == [100, 200]
            assert heard == [0, 1]
        await episode.close()
        await suite.close()

    asyncio.run(whole())


def test_a_jsonl_suite_with_tools_for_some_tasks(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"name": "weather", "description": "Of a city.", "result": "rain", "parameters": schema}
    earlier = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]
    rows = [
        {
            "id": "a",
            "prompt": "Rain in Oslo?",
            "answer": "yes",
            "tools": [tool],
            "messages": earlier,
        },
        {"id": "b", "prompt": "Is 2 even?", "answer": "yes", "system": "Be brief."},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    suite = McpSuite(load_suite(f"jsonl:{tmp_path / 't.jsonl'}"))
    agent = McpAgent([("weather", {"city": "Oslo"})], "yes")
    plan = RunSpec(suite=suite, agent=agent, attempts=1).plan()
    made: list[AttemptRecord] = []

    async def whole() -> None:
        with open_store(str(tmp_path / "store.db")) as store:
            await run_attempts(plan, store, Stop(), lambda record, _: made.append(record))

    asyncio.run(whole())
    assert [one.judgement.verdict for one in made] == [Verdict.PASSED] * 2, made
    texts = {one.task: one.transcript[0]["text"] for one in made}
    assert "assistant: Hello!" in texts["a"]
    assert "Be brief." in texts["b"]
    assert "MCP" not in texts["b"]
    assert [one.is_error for one in agent.results] == [False]
