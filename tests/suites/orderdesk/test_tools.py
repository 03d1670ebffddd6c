"""Tools of the order desk: arguments as agents write them, and records that are never shared."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from passhat.agents.chat import arguments_of
from passhat.agents.provider import ToolCall
from passhat.suites.graders import GRADERS
from passhat.suites.orderdesk.airline import airline
from passhat.suites.orderdesk.retail import retail
from passhat.suites.orderdesk.scenarios import Domain, Scenario
from passhat.suites.orderdesk.tools import (
    Desk,
    ToolError,
    invoke,
    list_tools,
    tool,
    tool_specs,
    toolbox,
)
from passhat.suites.tool_calls import RESPOND, Call, Unreadable, read_call, write_call

DOMAINS = {"retail": retail(), "airline": airline()}
SCENARIOS = [(domain, scenario) for domain in DOMAINS.values() for scenario in domain.scenarios]


@tool("Echo what came.", count="how many", price="how much", name="a name", tags="labels")
def echo(_desk: Desk, count: int, price: float, name: str, tags: list[str]) -> object:
    return {"count": count, "price": price, "name": name, "tags": tags}


@tool("Refuse.")
def refuse(_desk: Desk) -> object:
    raise ToolError("not today.")


TOOLS = toolbox([echo, refuse])
GOOD = {"count": 2, "price": 9.5, "name": "x", "tags": ["a"]}


def _result(**changes: object) -> str:
    desk = DOMAINS["retail"].desk()
    return invoke(TOOLS, desk, Call("echo", GOOD | changes))


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, {}),
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"price": "$12.50"}, {"price": 12.5}),
        ({"price": " 7 "}, {"price": 7.0}),
        ({"price": 0.30000000000000004}, {"price": 0.3}),
        ({"name": "  spaced "}, {"name": "spaced"}),
        ({"name": 5}, {"name": "5"}),
        ({"tags": "a, b"}, {"tags": ["a", "b"]}),
        ({"tags": [1, " b "]}, {"tags": ["1", "b"]}),
    ],
)
def test_arguments_are_taken_as_agents_write_them(
    changes: dict[str, object], shown: dict[str, object]
) -> None:
    text = _result(**changes)
    assert text.startswith("Tool result: ")
    assert json.loads(text.removeprefix("Tool result: ")) == GOOD | shown


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"count": "two"}, "count should be a whole number, not 'two'."),
        ({"count": 2.7}, "count should be a whole number, not 2.7."),  # was taken as 2
        ({"price": "inf"}, "price should be a number, not 'inf'."),  # was taken, and no JSON
        ({"price": "nan"}, "price should be a number, not 'nan'."),
        ({"price": None}, "price should be a number, not None."),
        ({"price": [1]}, "price should be a number, not [1]."),
        ({"more": 1}, "echo takes count, price, name, tags; it was given count, price, name,"),
    ],
)
def test_what_is_no_argument_is_a_message_to_the_agent(
    changes: dict[str, object], says: str
) -> None:
    assert _result(**changes).startswith(f"Tool error: {says}")


def test_other_errors_are_text_too() -> None:
    desk = DOMAINS["retail"].desk()
    assert invoke(TOOLS, desk, Call("refuse", {})) == "Tool error: not today."
    assert invoke(TOOLS, desk, Call("nothing", {})) == "Tool error: there is no tool 'nothing'."
    assert invoke(TOOLS, desk, Call("refuse", {"x": 1})) == (
        "Tool error: refuse takes nothing; it was given x."
    )
    with pytest.raises(TypeError, match="describe every parameter"):

        @tool("Undescribed.")
        def undescribed(_desk: Desk, thing: str) -> object:
            return thing


def test_a_list_of_tools_names_each_once_with_its_parameters() -> None:
    assert list_tools(TOOLS).splitlines() == [
        "- echo: Echo what came. Parameters: count (how many), price (how much), name (a name), "
        "tags (labels).",
        "- refuse: Refuse. Parameters: none.",
    ]


@pytest.mark.parametrize("domain", list(DOMAINS.values()), ids=lambda domain: domain.name)
def test_schemas_are_schemas_and_ask_for_every_parameter(domain: Domain) -> None:
    for spec in tool_specs(domain.tools):
        Draft202012Validator.check_schema(spec.parameters)
        assert spec.parameters["required"] == list(domain.tools[spec.name].parameters)
        assert spec.parameters["additionalProperties"] is False
    assert len({spec.name for spec in tool_specs(domain.tools)}) == len(domain.tools)


@pytest.mark.parametrize(
    ("domain", "scenario"), SCENARIOS, ids=lambda value: getattr(value, "id", "")
)
def test_the_right_calls_of_a_task_fit_their_schemas(domain: Domain, scenario: Scenario) -> None:
    specs = {spec.name: spec for spec in tool_specs(domain.tools)}
    for goal in scenario.goals:
        for call in goal:
            problems = list(
                Draft202012Validator(specs[call.name].parameters).iter_errors(dict(call.arguments))
            )
            assert problems == [], call


@pytest.mark.parametrize("domain", list(DOMAINS.values()), ids=lambda domain: domain.name)
def test_no_attempt_sees_what_another_changed(domain: Domain) -> None:
    """Every goal of every task is played on one desk each; fresh ones stay as they were."""
    fresh = json.dumps(domain.desk().data, sort_keys=True)
    changed = 0
    for scenario in domain.scenarios:
        desk = domain.desk()
        for call in scenario.goals[0]:
            assert invoke(domain.tools, desk, call).startswith("Tool result"), call
        changed += json.dumps(desk.data, sort_keys=True) != fresh
        assert json.dumps(domain.desk().data, sort_keys=True) == fresh
    assert changed > len(domain.scenarios) / 2


def test_a_record_is_found_whatever_its_case_and_spaces() -> None:
    desk = DOMAINS["retail"].desk()
    key = next(iter(desk.data["orders"]))
    assert desk.find("orders", f" {key.lower()} ") is desk.find("orders", key)
    with pytest.raises(ToolError, match="there is no 'R-0' among the orders"):
        desk.find("orders", "R-0")


names = st.text("abc_", min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a</json>`"\\é', max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)


@given(names, st.dictionaries(names, values, max_size=3), st.text("ab \n", max_size=6))
def test_a_call_is_read_back_as_it_was_written(
    name: str, arguments: dict[str, object], around: str
) -> None:
    written = write_call(name, arguments)
    assert read_call(f"{around}{written}{around}") == Call(name, arguments)


DEEP = "[" * 100_000


def test_a_hundred_thousand_brackets_are_the_agents_fault() -> None:
    """They ended in RecursionError, so that the attempt was missing and not failed."""
    with pytest.raises(Unreadable, match="not JSON"):
        read_call(f"<json>{DEEP}</json>")
    assert GRADERS["json"](DEEP, []).why == "format_error"
    assert GRADERS["json-schema"](DEEP, {}).why == "format_error"
    assert arguments_of(ToolCall("1", "get_order", DEEP)) is None


def test_a_word_to_the_user_needs_its_content() -> None:
    assert read_call(write_call(RESPOND, {"content": "Hello."})).arguments == {"content": "Hello."}
    with pytest.raises(Unreadable, match="respond takes"):
        read_call(write_call(RESPOND, {"text": "Hello."}))


def test_compensation_is_bounded_by_the_rules_and_not_by_what_is_asked_for() -> None:
    domain = DOMAINS["airline"]
    seen = set()
    for code in domain.desk().data["bookings"]:
        desk = domain.desk()
        invoke(domain.tools, desk, Call("give_voucher", {"code": code, "amount": 1e6}))
        assert desk.violations, code
        seen.add(desk.violations[0].partition("voucher of ")[2].partition(",")[0])
    assert {"0.00"} < seen
