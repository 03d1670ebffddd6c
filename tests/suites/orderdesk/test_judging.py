"""Each failure category is decided by rule."""

from __future__ import annotations

import pytest

from passhat.stats.outcomes import Verdict
from passhat.suites import Judgement
from passhat.suites.orderdesk import OrderdeskSuite
from passhat.suites.orderdesk.episode import OrderdeskEpisode, goals_of, is_told
from passhat.suites.orderdesk.retail import retail
from passhat.suites.tool_calls import RESPOND, write_call

SUITE = OrderdeskSuite("retail")
INES = write_call("find_customer_by_email", {"email": "ines.halden@mail.example"})
JAKUB = write_call("find_customer_by_email", {"email": "j.wolny@post.example"})
SAMIR = write_call("find_customer_by_email", {"email": "samir.aziz@mail.example"})


def bye(text: str = "") -> str:
    return write_call(RESPOND, {"content": f"{text} Anything else?"})


def cancel(order: str, reason: str) -> str:
    return write_call("cancel_order", {"order": order, "reason": reason})


def back(order: str, sku: str) -> str:
    return write_call("return_items", {"order": order, "items": [sku], "refund_to": "card"})


def judged(task: str, *answers: str) -> Judgement:
    episode = SUITE.episode(next(one for one in SUITE.tasks if one.id == task), seed=1)
    episode.open()
    for answer in answers:
        if episode.reply(answer) is None:
            break
    return episode.judge()


CASES = [
    ("retail/001", (INES, cancel("R-2101", "mistake"), bye("48.00 back.")), ""),
    ("retail/001", (INES, cancel("R-2101", "not_needed"), bye("48.00")), "wrong_state"),
    ("retail/001", (INES, bye("It cannot be done.")), "task_incomplete"),
    ("retail/001", (INES, cancel("R-2101", "mistake"), bye()), "missing_outputs"),
    ("retail/001", (cancel("R-2101", "mistake"), bye("48.00")), "policy_violation"),
    ("retail/001", (INES, cancel("R-2102", "mistake"), bye("57.00")), "policy_violation"),
    ("retail/010", (JAKUB, back("R-2131", "HEAD-GREY"), bye("135")), "policy_violation"),
    ("retail/001", ("I will cancel it.", "Yes.", "It is cancelled."), "format_error"),
    ("retail/001", ("Hm.", "Hm.", INES, cancel("R-2101", "mistake"), bye("48")), ""),
    (
        "retail/017",
        (SAMIR, cancel("R-2182", "not_needed"), back("R-2181", "LAMP-BLACK"), bye("44"), bye()),
        "incomplete_outputs",
    ),
]


@pytest.mark.parametrize(("task", "answers", "why"), CASES)
def test_the_category(task: str, answers: tuple[str, ...], why: str) -> None:
    assert judged(task, *answers).why == why


def test_the_detail_names_the_first_difference() -> None:
    ended = judged("retail/001", INES, cancel("R-2101", "not_needed"), bye())
    assert ended.detail == ("orders.R-2101.cancel_reason is 'not_needed', it should be 'mistake'")


def test_a_user_that_breaks_is_not_the_agents_fault() -> None:
    class Broken:
        def first(self) -> str:
            return "Hello."

        def reply_to(self, text: str) -> str | None:
            raise RuntimeError(text)

    domain = retail()
    scenario = domain.scenarios[0]
    episode = OrderdeskEpisode(domain, scenario, goals_of(domain, scenario), Broken())
    episode.open()
    assert episode.reply(bye()) is None
    assert (episode.judge().verdict, episode.judge().why) == (Verdict.MISSING, "user_error")


@pytest.mark.parametrize(
    ("output", "text", "heard"),
    [
        ("6.40", "a voucher of €6.4", True),
        ("6.40", "a voucher of 16.40", False),
        ("1300", "1,300.00 in all", True),
        ("14 days|fourteen days", "within Fourteen days", True),
        ("14 days|fourteen days", "within 30 days", False),
    ],
)
def test_what_counts_as_told(output: str, text: str, heard: bool) -> None:
    assert is_told(output, [text]) is heard
