"""A user played by a model: it wants what the scripted one wants, and its faults are ours."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passhat.runner.attempt import seed_of
from passhat.store import open_store
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.user import STOP, ScriptedUser, instructions

if TYPE_CHECKING:
    from tests.agents.conftest import Answer, Body, Refusal

Passhat = Callable[..., Any]
Serve = Callable[..., Any]
RETAIL = ("run", "-s", "orderdesk/retail")
SCENARIOS = {
    seed_of(0, one.id, number) % 2**31: one for one in retail().scenarios for number in range(1, 4)
}


def plays_the_user(answer: Callable[..., Answer]) -> Callable[[Body], Answer]:
    """A model that speaks like the scripted user: the conversation so far is played again."""

    def script(body: Body) -> Answer:
        scenario = SCENARIOS[body["seed"]]
        facts = retail().introduce(retail().desk().data, scenario)
        user = ScriptedUser(retail(), scenario, facts, body["seed"])
        words: str | None = user.first()
        _, *heard = [one["content"] for one in body["messages"] if one["role"] == "user"]
        for text in heard:
            words = user.reply_to(text)
        return answer(STOP if words is None else words, inputs=50, outputs=5)

    return script


def rows() -> list[Any]:
    with open_store() as store:
        return [row for run in store.runs() for block in store.rows(run.id) for row in block]


@pytest.mark.usefixtures("questions", "way")
def test_a_model_plays_the_user_and_its_cost_counts(
    passhat: Passhat, serve: Serve, answer: Any
) -> None:
    with serve(plays_the_user(answer)) as (url, server):
        user = f"openai:small@{url}/v1"
        ended = passhat(
            *(*RETAIL, "-a", "demo:careful", "--user", user, "--temperature", "0"),
            *("--task", "0", "--task", "1", "-n", "3"),
        )
        assert ended.code == 0
    assert [row[2] for row in rows()] == [1] * 6
    assert sum(row[6] for row in rows()) == 55 * len(server.served)
    assert sum(row[7] for row in rows()) == pytest.approx(70e-6 * len(server.served))
    with open_store() as store:
        (run,) = store.runs()
        simulator = store.protocol(run.id).user_simulator
    assert simulator == f"{user} max_output_tokens=4096"
    # The temperature of the run is the agent's; the user's own stands in its word.
    assert "temperature" not in server.requests[0]
    role = server.requests[0]["messages"][0]
    assert role["role"] == "system"
    assert STOP in role["content"]
    assert "tools" not in server.requests[0]


@pytest.mark.usefixtures("questions", "way")
def test_a_model_at_both_ends(passhat: Passhat, serve: Serve, answer: Any) -> None:
    """Agent and user at one address share its rate and its pauses, and the cap counts both."""

    def both(body: Body) -> Answer:
        if "tools" in body:
            made = sum(message["role"] == "assistant" for message in body["messages"])
            said = "48.00 goes back to your card. Is there anything else?"
            email = {"email": "ines.halden@mail.example"}
            cancel = {"order": "R-2101", "reason": "mistake"}
            moves = [("find_customer_by_email", email), ("cancel_order", cancel)]
            return answer(said) if made >= 2 else answer(calls=(moves[made],))  # type: ignore[no-any-return]
        return plays_the_user(answer)(body)

    with serve(both) as (url, server):
        model = f"openai:small@{url}/v1?max_output_tokens=100"
        command = (*RETAIL, "-a", model, "--user", model, "--task", "0", "-n", "3")
        ended = passhat(*command, "--budget", "1", "--set", "rate=openai=600/s")
    assert ended.code == 0
    assert [row[2] for row in rows()] == [1] * 3
    assert sum(row[6] for row in rows()) == sum(a.inputs + a.outputs for a in server.served)


@pytest.mark.usefixtures("questions", "way")
def test_a_user_that_breaks_leaves_missing_attempts(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    def breaks(body: Body) -> Answer | Refusal:
        if body["seed"] == seed_of(0, "retail/001", 1) % 2**31:
            return refusal(500)  # type: ignore[no-any-return]
        if body["seed"] == seed_of(0, "retail/001", 2) % 2**31:
            return answer("  ")  # type: ignore[no-any-return]
        if len(body["messages"]) > 3:
            return refusal(429, {"retry-after": "0"})  # type: ignore[no-any-return]
        return plays_the_user(answer)(body)

    with serve(breaks) as (url, _):
        passhat(
            *(*RETAIL, "-a", "demo:careful", "--user", f"openai:small@{url}/v1"),
            *("--task", "0", "-n", "3", "--set", "retries=1"),
        )
    assert Counter((row[2], row[3]) for row in rows()) == {(-1, "user_error"): 3}


@pytest.mark.usefixtures("questions", "way")
def test_a_refused_key_of_the_user_stops_the_run(
    passhat: Passhat, serve: Serve, refusal: Any
) -> None:
    with serve(lambda _body: refusal(401, message="who are you")) as (url, _):
        ended = passhat(
            *(*RETAIL, "-a", "demo:careful", "--user", f"openai:small@{url}/v1", "-n", "4")
        )
    assert (ended.code, "who are you" in ended.err) == (4, True)
    assert {(row[2], row[3]) for row in rows()} == {(-1, "account")}


@pytest.mark.usefixtures("way")
def test_any_agent_can_play_the_user(passhat: Passhat, questions: Path) -> None:
    (questions / "callers.py").write_text(
        "class Caller:\n"
        "    def __init__(self):\n"
        "        self.turns = 0\n"
        "    def __call__(self, prompt):\n"
        "        self.turns += 1\n"
        "        if self.turns == 1:\n"
        "            assert 'You play a customer' in prompt\n"
        "            return 'Hello.'\n"
        f"        return '{STOP}'\n"
        "def raises(prompt):\n"
        "    raise RuntimeError('the line is dead')\n"
    )
    command = (*RETAIL, "-a", "demo:careful", "--task", "0", "-n", "1")
    assert passhat(*command, "--user", "python:callers:Caller").code == 0
    assert passhat(*command, "--user", "python:callers:raises").code == 4
    sys.modules.pop("callers")
    assert [(row[2], row[3]) for row in rows()] == [(0, "task_incomplete"), (-1, "user_error")]
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:json:dumps", "--user", "demo:x")
    assert ended.code == 2
    ended = passhat(
        *("run", "-s", "jsonl:tasks.jsonl", "-a", "python:json:dumps"),
        *("--user", "python:json:dumps"),
    )
    assert (ended.code, "no user to simulate" in ended.err) == (2, True)


@pytest.mark.parametrize("scenario", retail().scenarios, ids=lambda one: one.id)
def test_the_model_is_told_every_wish_and_every_fact(scenario: Any) -> None:
    facts = retail().introduce(retail().desk().data, scenario)
    role = instructions(retail(), scenario, facts, seed=1)
    wishes = [*scenario.wishes, *(w.otherwise for w in scenario.wishes if w.otherwise)]
    for words in [*facts.values(), *(fact for wish in wishes for fact in wish.facts.values())]:
        assert words in role
    assert all(wish.thing in role for wish in wishes)
    assert role == instructions(retail(), scenario, facts, seed=1)
    assert len({instructions(retail(), scenario, facts, seed) for seed in range(20)}) > 1
    # What would give the answer away is not in it.
    assert json.dumps([dict(call.arguments) for call in scenario.goals[0]]) not in role
