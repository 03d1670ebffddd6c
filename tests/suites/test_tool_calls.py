"""The text protocol, as agents write it."""

from __future__ import annotations

import pytest

from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.tools import invoke
from passhat.suites.tool_calls import Call, Unreadable, read_call

CALL = Call("get_order", {"order": "R-2101"})
OBJECT = '{"name": "get_order", "arguments": {"order": "R-2101"}}'


@pytest.mark.parametrize(
    "answer",
    [
        f"<json>{OBJECT}</json>",
        f"I will look.\n<json>\n{OBJECT}\n</json>\nOne moment.",
        OBJECT.replace("arguments", "kwargs"),
        f"```json\n{OBJECT}\n```",
        f"Sure:\n```\n{OBJECT}\n```",
        OBJECT,
    ],
)
def test_a_call_is_read(answer: str) -> None:
    assert read_call(answer) == CALL


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "no <json>"),
        ("I will look.", "no <json>"),
        ("<json>{]</json>", "not JSON"),
        ("<json>[1]</json>", '"name"'),
        ('<json>{"name": 3}</json>', '"name"'),
        ('<json>{"name": "a", "arguments": 3}</json>', "object"),
        ('<json>{"name": "respond", "arguments": {}}</json>', "content"),
    ],
)
def test_what_is_no_call_says_why(answer: str, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        read_call(answer)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (CALL, "Tool result: {"),
        (Call("fly", {}), "Tool error: there is no tool 'fly'."),
        (Call("get_order", {"id": "R-1"}), "Tool error: get_order takes order; it was given id."),
        (Call("get_order", {"order": "R-1"}), "Tool error: there is no 'R-1' among the orders."),
        (Call("give_voucher", {"order": "R-2113", "amount": "much"}), "Tool error: amount should"),
        (Call("give_voucher", {"order": "R-2113", "amount": "$6.40"}), "Tool result: {"),
    ],
)
def test_a_tool_answers_in_text(call: Call, text: str) -> None:
    domain = retail()
    assert invoke(domain.tools, domain.desk(), call).startswith(text)
