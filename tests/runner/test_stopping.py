"""A run ends once the rule it was made for is settled, and not before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from passhat.cli.shared.exits import ExitCode
from passhat.runner.queues import Outbox, StopRule
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord

Passhat = Callable[..., Any]


@pytest.fixture
def many(folder: Path) -> Path:
    lines = [{"id": f"t{i:03}", "prompt": "yes?", "answer": "yes"} for i in range(200)]
    (folder / "many.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def _run(passhat: Passhat, agent: str, *more: str) -> Any:
    return passhat(
        "run", "-s", "jsonl:many.jsonl", "-a", f"python:some_agents:{agent}", "-n", "4", *more
    )


@pytest.mark.usefixtures("many", "way")
@pytest.mark.parametrize(("agent", "verdict"), [("yes", "shown"), ("no", "refuted")])
def test_a_clear_case_ends_early_either_way(passhat: Passhat, agent: str, verdict: str) -> None:
    ended = _run(passhat, agent, "--stop-when", "pass^4 >= 0.6")
    assert ended.code == ExitCode.OK
    assert f"pass^4 >= 0.6: {verdict}" in ended.err
    (run,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert 0 < run["attempts"] < 400
    again = _run(passhat, agent, "--stop-when", "pass^4 >= 0.6")
    assert f"pass^4 >= 0.6: {verdict}" in again.err
    (same,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert same["attempts"] == run["attempts"], "a settled run makes nothing more"


@pytest.mark.usefixtures("many")
def test_without_the_rule_the_run_goes_on_to_its_end(passhat: Passhat) -> None:
    _run(passhat, "yes", "--stop-when", "pass^4 >= 0.6")
    assert _run(passhat, "yes").code == ExitCode.OK
    (run,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert (run["attempts"], run["status"]) == (800, "complete")


@pytest.mark.usefixtures("many")
def test_a_rule_that_cannot_be_asked_is_told_before_anything_runs(passhat: Passhat) -> None:
    ended = _run(passhat, "yes", "--stop-when", "pass^8 >= 0.6")
    assert ended.code == ExitCode.USAGE
    assert "4 are planned" in ended.err
    assert json.loads(passhat("runs", "--json").out)["runs"] == []


def test_only_whole_tasks_count() -> None:
    rule = StopRule(["pass^2 >= 0.1"], [f"t{i}" for i in range(50)], attempts=2, seed="x")
    for task in range(50):
        rule.take(f"t{task}", 1, Verdict.PASSED)
    assert not rule.ask()
    for task in range(50):
        rule.take(f"t{task}", 2, Verdict.PASSED)
    assert rule.ask()


def test_attempts_beyond_the_plan_do_not_make_a_task_whole() -> None:
    rule = StopRule(["pass^2 >= 0.1"], ["a", "b"], attempts=2, seed=1)
    for task in ("a", "b"):
        rule.take(task, 1, Verdict.PASSED)
        rule.take(task, 3, Verdict.PASSED)  # of an earlier, longer plan
    assert not rule.ask()
    assert rule.look is None


@pytest.mark.parametrize(("decisive", "most"), [(True, 50), (False, 300)])
def test_little_is_made_before_it_is_decided_whether_to_end(decisive: bool, most: int) -> None:
    async def work(outbox: Outbox) -> None:
        for _ in range(300):
            await outbox.wait_for_room()
            outbox.put(cast("AttemptRecord", None))

    async def count() -> int:
        outbox = Outbox(decisive=decisive)
        worker = asyncio.ensure_future(work(outbox))
        for _ in range(1_000):  # nobody writes: it comes to rest where there is no room
            await asyncio.sleep(0)
        worker.cancel()
        return len(await outbox.take())

    assert asyncio.run(count()) == most
