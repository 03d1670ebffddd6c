"""A model with tool calling works at orderdesk through the official SDKs, and solves its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passhat.runner.attempt import seed_of
from passhat.store import open_store
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.scenarios import Scenario
from passhat.suites.tool_calls import RESPOND, Call

if TYPE_CHECKING:
    from tests.agents.conftest import Answer, Body

Passhat = Callable[..., Any]
Serve = Callable[..., Any]


def gold(scenario: Scenario) -> list[Call]:
    """What a perfect agent does: look the customer up, make the changes, say what came of it."""
    customer = retail().desk().find("customers", scenario.customer)
    look_up = Call("find_customer_by_email", {"email": customer["email"]})
    told = " and ".join(one.split("|")[0] for one in scenario.outputs)
    ends = [call for call in scenario.goals[0] if call.name == "hand_over"]
    calls = [call for call in scenario.goals[0] if call.name != "hand_over"]
    return [look_up, *calls, Call(RESPOND, {"content": f"Done: {told}."}), *ends]


def next_move(scenario: Scenario, body: Body, answer: Callable[..., Answer]) -> Answer:
    """The model's part: as many moves as it has made lie behind it."""
    moves = gold(scenario)
    made = sum(message["role"] == "assistant" for message in body["messages"])
    if made >= len(moves):
        return answer("Is there anything else?")
    move = moves[made]
    if move.name == RESPOND:
        return answer(str(move.arguments["content"]))
    return answer(calls=((move.name, move.arguments),))


def verdicts(folder: Path) -> list[Any]:
    with open_store(str(folder / ".passhat/passhat.db")) as store:
        (run,) = store.runs()
        return [row for block in store.rows(run.id) for row in block]


def test_gold_calls_through_openai_solve_every_retail_task(
    passhat: Passhat, serve: Serve, answer: Callable[..., Answer], questions: Path
) -> None:
    scenarios = {seed_of(0, one.id, 1) % 2**31: one for one in retail().scenarios}
    with serve(lambda body: next_move(scenarios[body["seed"]], body, answer)) as (url, server):
        ended = passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"openai:small@{url}/v1", "-n", "1")
        )
    assert ended.code == 0
    rows = verdicts(questions)
    assert [row[2] for row in rows] == [1] * 24
    first = server.requests[0]
    tools = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert set(tools) == set(retail().tools)
    items = tools["return_items"]["parameters"]["properties"]["items"]
    assert (items["type"], items["items"]) == ("array", {"type": "string"})
    assert "<json>" not in json.dumps(first["messages"])
    results = [m for body in server.requests for m in body["messages"] if m["role"] == "tool"]
    assert results
    assert all(result["tool_call_id"].startswith("call_") for result in results)
    assert sum(row[6] for row in rows) == 110 * len(server.served)


@pytest.mark.parametrize("place", [0, 9, 16])
def test_gold_calls_through_anthropic_solve_a_task(
    passhat: Passhat, serve: Serve, answer: Callable[..., Answer], questions: Path, place: int
) -> None:
    scenario = retail().scenarios[place]
    with serve(lambda body: next_move(scenario, body, answer)) as (url, server):
        ended = passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"anthropic:small@{url}", "-n", "2"),
            *("--task", str(place), "--temperature", "0.3"),
        )
    assert ended.code == 0
    rows = verdicts(questions)
    assert [row[2] for row in rows] == [1, 1]
    assert sum(row[7] for row in rows) == pytest.approx(140e-6 * len(server.served))
    body = server.requests[-1]
    assert body["temperature"] == 0.3
    assert "retail desk" in body["system"]
    assert [message["role"] for message in body["messages"]][:3] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"][0]["type"] == "tool_result"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_several_calls_at_once_are_made_one_by_one(
    passhat: Passhat, serve: Serve, answer: Callable[..., Answer], questions: Path, kind: str
) -> None:
    moves = gold(retail().scenarios[0])
    together = tuple((move.name, move.arguments) for move in moves if move.name != RESPOND)

    def model(body: Body) -> Answer:
        made = sum(message["role"] == "assistant" for message in body["messages"])
        if made == 0:
            return answer("Let me see.", calls=together)
        return answer(str(moves[-1].arguments["content"]) + " Anything else?")

    with serve(model) as (url, server):
        base = f"{url}/v1" if kind == "openai" else url
        passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"{kind}:small@{base}", "-n", "1"),
            *("--task", "0"),
        )
    assert [row[2] for row in verdicts(questions)] == [1]
    assert len(server.requests) < len(verdicts(questions)[0]) + len(together)
    text = json.dumps(server.requests[1]["messages"])
    assert text.count("tool_call_id" if kind == "openai" else "tool_result") >= len(together)


def test_arguments_that_are_no_json_are_asked_for_again_and_then_fail(
    passhat: Passhat, serve: Serve, answer: Callable[..., Answer], questions: Path
) -> None:
    broken = answer(calls=(("get_order", '{"order": '),))
    with serve(lambda _body: broken) as (url, server):
        passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--task", "0"),
        )
    ((_, _, verdict, why, *_),) = verdicts(questions)
    assert (verdict, why) == (0, "format_error")
    # Three times told in the model's own protocol, before each of the suite's three looks.
    assert len(server.requests) == 9
    told = server.requests[1]["messages"][-1]
    assert (told["role"], told["tool_call_id"]) == ("tool", "call_1_0")
    assert "not a JSON object" in told["content"]
    sent = server.requests[1]["messages"][-2]["tool_calls"][0]["function"]
    assert sent["arguments"] == "{}"  # servers that parse the history would fail on broken JSON


def test_a_function_may_ask_for_the_tools(passhat: Passhat, questions: Path) -> None:
    seen = questions / "seen.jsonl"  # the function runs in a process of its own
    (questions / "tooled.py").write_text(
        "import json\n"
        "calls = []\n"
        "def agent(prompt, attempt):\n"
        "    calls.append([tool.name for tool in attempt.tools])\n"
        f"    with open({str(seen)!r}, 'w') as file:\n"
        "        json.dump(calls, file)\n"
        '    return \'<json>{"name": "hand_over", "arguments": {"topic": "legal"}}</json>\' if '
        'len(calls) > 1 else \'<json>{"name": "get_order", "arguments": {"order": "R-2101"}}'
        "</json>'\n"
    )
    passhat(
        *("run", "-s", "orderdesk/retail", "-a", "python:tooled:agent", "-n", "1", "--task", "0")
    )
    assert json.loads(seen.read_text()) == [list(retail().tools)] * 2
