"""The demo agents solve tasks from the conversation alone, and slip as they should."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

import pytest

from passhat.agents import load_agent
from passhat.agents.base import Agent, AttemptInfo
from passhat.agents.demo import DemoAgent
from passhat.agents.demo.talking import HABITS, Habits, Mind
from passhat.runner.attempt import Attempter, seed_of
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import AttemptLimits, Watch
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord
from passhat.suites import load_suite

SUITES = {name: load_suite(f"orderdesk/{name}") for name in ("retail", "airline")}


def played(
    agent: Agent, domain: str, numbers: range, temperature: float | None = None
) -> dict[str, list[AttemptRecord]]:
    suite = SUITES[domain]

    async def whole() -> dict[str, list[AttemptRecord]]:
        found = defaultdict(list)
        attempter, clock = (
            Attempter(suite, agent, AttemptLimits(), Redactor()),
            Watch(AttemptLimits()).clock(),
        )
        for task in suite.tasks:
            for number in numbers:
                info = AttemptInfo(task.id, number, seed_of(7, task.id, number), temperature)
                record = await attempter.attempt(task, info, clock)
                found[task.id].append(record)
        return found

    return asyncio.run(whole())


def rate(found: dict[str, list[AttemptRecord]]) -> float:
    verdicts = [one.judgement.verdict for records in found.values() for one in records]
    return verdicts.count(Verdict.PASSED) / len(verdicts)


def with_habits(habits: Habits) -> DemoAgent:
    agent = DemoAgent("careful")
    agent._habits = habits
    return agent


@pytest.mark.parametrize("domain", SUITES)
def test_without_slips_every_task_is_solved(domain: str) -> None:
    found = played(with_habits(Habits(0.0, 0.0)), domain, range(1, 5))
    failed = [
        (one.task, one.number, one.judgement)
        for records in found.values()
        for one in records
        if one.judgement.verdict is not Verdict.PASSED
    ]
    assert not failed


@pytest.mark.parametrize("domain", SUITES)
def test_with_many_slips_it_fails_in_many_ways_but_never_breaks(domain: str) -> None:
    found = played(with_habits(Habits(0.2, 0.3)), domain, range(1, 6))
    reasons = Counter(one.judgement.why for records in found.values() for one in records)
    assert not {"exception", "agent_error", "judge_error", "infrastructure"} & set(reasons)
    assert {
        "wrong_state",
        "policy_violation",
        "task_incomplete",
        "missing_outputs",
        "format_error",
    } <= set(reasons)


def test_careful_is_better_and_steadier_than_hasty() -> None:
    careful, hasty = (
        {d: played(load_agent(f"demo:{name}"), d, range(1, 9)) for d in SUITES}
        for name in ("careful", "hasty")
    )
    for domain in SUITES:
        assert rate(careful[domain]) > rate(hasty[domain]) + 0.05
        always = [
            sum(
                all(one.judgement.verdict is Verdict.PASSED for one in records)
                for records in found[domain].values()
            )
            for found in (careful, hasty)
        ]
        assert always[0] > always[1]
    for found in (careful, hasty):
        bands = {task.id: task.labels["band"] for suite in SUITES.values() for task in suite.tasks}
        both = {task: records for one in found.values() for task, records in one.items()}
        easy, hard = (
            rate({task: records for task, records in both.items() if bands[task] == band})
            for band in ("easy", "hard")
        )
        assert easy > hard + 0.05


def test_temperature_makes_slips_likelier() -> None:
    def slips(temperature: float | None) -> int:
        minds = [Mind(HABITS["hasty"], AttemptInfo("a", n, n, temperature)) for n in range(2000)]
        return sum(mind.slips(4.0) for mind in minds)

    assert slips(0.2) < slips(None) < slips(1.5)


def test_at_temperature_0_every_attempt_has_the_same_dice() -> None:
    minds = [Mind(HABITS["hasty"], AttemptInfo("a", n, n, 0.0)) for n in range(5)]
    assert len({tuple(mind.slips(20.0) for _ in range(40)) for mind in minds}) == 1


def test_attempts_do_not_sound_alike() -> None:
    found = played(load_agent("demo:careful"), "retail", range(1, 5))
    assert all(len({one.answer_hash for one in records}) > 1 for records in found.values())


def test_a_wrong_name_and_a_wrong_suite_are_said() -> None:
    with pytest.raises(ValueError, match="no demo agent 'lazy'"):
        load_agent("demo:lazy")

    from passhat.agents.base import AgentFault
    from passhat.suites import Turn

    async def elsewhere() -> str:
        session = await load_agent("demo:hasty").session(AttemptInfo("a", 1, 1))
        return await session.answer(Turn("2 + 2?"))

    with pytest.raises(AgentFault, match="only work at orderdesk"):
        asyncio.run(elsewhere())
