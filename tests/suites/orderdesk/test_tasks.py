"""Every task of both domains can be solved, and not by doing nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from passhat.stats.outcomes import Verdict
from passhat.suites import Judgement, Task, load_suite
from passhat.suites.orderdesk import OrderdeskSuite
from passhat.suites.orderdesk.airline import airline
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.tool_calls import RESPOND, Call, write_call

SUITE = OrderdeskSuite()
DOMAINS = {"retail": retail(), "airline": airline()}
SCENARIOS = [(domain, one) for domain in DOMAINS.values() for one in domain.scenarios]
TASKS = {task.id: task for task in SUITE.tasks}
KNOWN = {"retail": "customers", "airline": "travellers"}
FIND = {"retail": "find_customer_by_email", "airline": "find_traveller_by_email"}


def play(task: Task, calls: list[Call], seed: int = 0) -> Judgement:
    """Make the calls, then say goodbye until the user leaves, and judge."""
    episode = SUITE.episode(task, seed)
    episode.open()
    for call in calls:
        episode.reply(write_call(call.name, call.arguments))
    for _ in range(8):
        if episode.reply(write_call(RESPOND, {"content": "Is there anything else?"})) is None:
            break
    return episode.judge()


def identified(domain: Domain, scenario: Scenario) -> Call:
    customer = domain.desk().find(KNOWN[domain.name], scenario.customer)
    return Call(FIND[domain.name], {"email": customer["email"]})


def spoken(scenario: Scenario) -> Call:
    text = " and ".join(one.split("|")[0] for one in scenario.outputs)
    return Call(RESPOND, {"content": f"Done: {text}."})


@pytest.mark.parametrize(("domain", "scenario"), SCENARIOS, ids=lambda one: getattr(one, "id", ""))
def test_the_gold_actions_pass(domain: Domain, scenario: Scenario) -> None:
    for goal in scenario.goals:
        # A hand-over ends the conversation: what the user should know comes before it.
        ends = [call for call in goal if call.name == "hand_over"]
        calls = [call for call in goal if call.name != "hand_over"]
        gold = [identified(domain, scenario), *calls, spoken(scenario), *ends]
        for seed in (1, 2):
            judgement = play(TASKS[scenario.id], gold, seed)
            assert judgement.verdict is Verdict.PASSED, judgement


@pytest.mark.parametrize("scenario", [one for _, one in SCENARIOS], ids=lambda one: one.id)
def test_doing_nothing_fails(scenario: Scenario) -> None:
    judgement = play(TASKS[scenario.id], [])
    wanted = "task_incomplete" if scenario.goals[0] else "missing_outputs"
    assert (judgement.verdict, judgement.why) == (Verdict.FAILED, wanted)


@pytest.mark.parametrize("name", DOMAINS)
def test_what_a_domain_has(name: str) -> None:
    domain = DOMAINS[name]
    assert len(domain.tools) >= 10
    assert Counter(one.band for one in domain.scenarios) == {"easy": 8, "medium": 8, "hard": 8}
    for scenario in domain.scenarios:
        for wish in (*scenario.wishes, *(w.otherwise for w in scenario.wishes if w.otherwise)):
            assert wish.kind in domain.phrases
            assert set(wish.facts) <= set(domain.topics)


def test_the_spellings_of_the_suite() -> None:
    assert load_suite("orderdesk/retail").name == load_suite("orderdesk:retail").name
    assert len(load_suite("orderdesk/airline").tasks) == 24
    assert len(load_suite("orderdesk").tasks) == 48
    with pytest.raises(ValueError, match="no domain 'hotel'"):
        load_suite("orderdesk/hotel")


def test_the_fingerprints_differ_between_domains_and_stay() -> None:
    one, other = OrderdeskSuite("retail"), OrderdeskSuite("airline")
    assert one.fingerprint == OrderdeskSuite("retail").fingerprint != other.fingerprint
    assert one.judge_fingerprint != other.judge_fingerprint


def test_every_attempt_has_its_own_records() -> None:
    task = TASKS["retail/001"]
    domain, scenario = SCENARIOS[0]
    play(task, [identified(domain, scenario), *scenario.goals[0]])
    assert play(task, []).why == "task_incomplete"
