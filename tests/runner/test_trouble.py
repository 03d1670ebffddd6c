"""Trouble with the other side is told before money and time are spent on it."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.agents import Agent, AttemptInfo, ProviderFault, Session
from passhat.errors import RunStopped
from passhat.runner.run_spec import RunSpec, load_result, run
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptSet, PlannedAttempts, open_store
from passhat.suites.base import Turn

Passhat = Callable[..., Any]


class Silent(Agent, Session):
    """Never answers, except to the attempts that it is asked to."""

    name = "silent"

    def __init__(self, answers: tuple[int, ...] = ()) -> None:
        self.answers = answers
        self.asked = 0

    async def session(self, _attempt: AttemptInfo) -> Silent:
        return self

    async def answer(self, _turn: Turn) -> str:
        self.asked += 1
        if self.asked in self.answers:
            return "yes"
        raise ProviderFault(MissingReason.RATE_LIMIT, "busy, says the server")


@pytest.mark.usefixtures("folder")
def test_a_closed_port_is_told_before_the_first_attempt(passhat: Passhat) -> None:
    with socket.socket() as silent:  # nobody else can listen there, and it does not either
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-n", "4"),
            *("-a", f"openai:small@http://127.0.0.1:{port}/v1"),
        )
    assert ended.code == 2
    assert f"nothing answers at 127.0.0.1:{port}" in ended.err
    with open_store() as store:
        assert all(not one.attempts for one in store.runs())


@pytest.mark.usefixtures("folder")
def test_a_run_stops_after_attempts_in_a_row_without_an_answer() -> None:
    agent = Silent()
    with pytest.raises(
        RunStopped, match=r"8 attempts in a row got no answer.*busy, says"
    ) as caught:
        run(RunSpec(agent=agent, suite="jsonl:tasks.jsonl", attempts=1_000, jobs=1))
    assert "--only-missing" in str(caught.value.hint)
    assert agent.asked < 5_000  # those made while the eighth was being written
    with open_store() as store:
        (stored,) = store.runs()
        assert stored.status == "stopped"
        assert stored.missing == stored.attempts >= 8


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("answers", "limit"), [((5, 12, 19), 8), ((), 0)])
def test_an_answer_in_between_or_no_limit_lets_it_go_on(
    answers: tuple[int, ...], limit: int
) -> None:
    agent = Silent(answers)
    spec = RunSpec(agent=agent, suite="jsonl:tasks.jsonl", attempts=4, jobs=1, give_up_after=limit)
    result = run(spec)
    assert (agent.asked, result.left) == (20, 0)
    assert result.unscored == 20 - len(answers)
    assert result.stored.status == ("complete" if answers else "stopped")


@pytest.mark.usefixtures("folder")
def test_missing_attempts_are_exit_code_4_with_the_command_that_makes_them(
    passhat: Passhat, folder: Path
) -> None:
    (folder / "own.py").write_text(
        "from tests.runner.test_trouble import Silent\nagent = Silent((1, 2, 3))\n"
    )
    command = ("run", "-s", "jsonl:tasks.jsonl", "-a", "python:own:agent", "-n", "1", "--jobs", "1")
    ended = passhat(*command)
    assert ended.code == 4
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith("2 attempts missing (2 without a verdict); make them with: passhat run")
    assert last.endswith("--only-missing")


@pytest.mark.usefixtures("folder")
def test_claims_given_back_while_they_are_counted_are_not_lost_from_the_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = run(RunSpec(agent=lambda _prompt: "yes", suite="jsonl:tasks.jsonl", attempts=2))
    plan = dataclasses.replace(result.plan, attempts=PlannedAttempts(3))
    with open_store() as store, open_store() as other:
        assert len(other.claim(result.id, [("t0", 3), ("t1", 3)])) == 2
        count = store.load_attempts

        def count_then_release(run: str, *, finished: bool = False) -> AttemptSet:
            counted = count(run, finished=finished)
            other.release(run)
            return counted

        monkeypatch.setattr(store, "load_attempts", count_then_release)
        left = load_result(plan, store)
        assert (left.left, left.held) == (5, 2)  # as it was when the count began
        assert load_result(plan, store).left == 5
