"""What a function or a program may return, and how its use is counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import AgentFault, Meter, Usage
from passhat.agents.framework_answers import read_answer
from passhat.agents.function import agent_from_object
from passhat.agents.prices import Price, PriceTable
from passhat.errors import InvalidValue
from passhat.store import open_store

Passhat = Callable[..., Any]
PRICES = PriceTable({("openai", "small"): Price(1.0, 4.0)})


@pytest.mark.parametrize(
    ("value", "used"),
    [
        ("yes", Usage()),
        (("yes", Usage(12, 0.5)), Usage(12, 0.5)),
        (("yes", {"input_tokens": 10, "output_tokens": 2}), Usage(12, None)),
        (("yes", {"tokens": 7, "cost": 0.25}), Usage(7, 0.25)),
        (SimpleNamespace(output="yes", usage=SimpleNamespace(total_tokens=9)), Usage(9, None)),
        (
            SimpleNamespace(
                final_output="yes",
                model="small",
                usage=SimpleNamespace(prompt_tokens=1_000_000, completion_tokens=0),
            ),
            Usage(1_000_000, 1.0),
        ),
        ({"text": "yes", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}, Usage(4, None)),
        (SimpleNamespace(raw="yes", usage=lambda: {"input": 3, "output": 4}), Usage(7, None)),
    ],
)
def test_text_and_use_of_what_is_returned(value: object, used: Usage) -> None:
    meter = Meter()
    assert read_answer(value, meter, PRICES) == "yes"
    assert meter.usage == used


@pytest.mark.parametrize("value", [None, 4, ["yes"], ("yes",), SimpleNamespace(usage=1)])
def test_what_has_no_text_is_a_format_error(value: object) -> None:
    with pytest.raises(AgentFault, match="expected text"):
        read_answer(value, Meter())


FUNCTIONS = """
import asyncio
from passhat.agents import Usage

async def later(prompt):
    await asyncio.sleep(0)
    return "yes", Usage(10, 0.125)

def plain(prompt):
    return later(prompt)

def metered(prompt, attempt):
    attempt.meter.settle(Usage(10, 0.125))
    return "yes"

def silent(prompt):
    return "yes"
"""


@pytest.fixture
def functions(questions: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (questions / "used_functions.py").write_text(FUNCTIONS)
    (questions / "program.py").write_text(
        "#!/usr/bin/env python3\nimport json, sys\nfor line in sys.stdin:\n"
        "    print(json.dumps({'text': 'yes', 'usage': {'tokens': 10, 'cost': 0.125}}), flush=True)"
    )
    (questions / "program.py").chmod(0o755)
    monkeypatch.syspath_prepend(str(questions))
    return questions


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    "word",
    [
        *("python:used_functions:plain", "python:used_functions:later"),
        *("python:used_functions:metered", "command:./program.py"),
    ],
)
def test_a_cap_holds_for_an_agent_that_says_what_it_used(passhat: Passhat, word: str) -> None:
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", word, "-n", "2", "--budget", "0.6")
    assert ended.code == 4, ended.err
    with open_store() as store:
        (run,) = store.runs()
        rows = [row for block in store.rows(run.id) for row in block]
    assert {(row[2], row[6], row[7]) for row in rows} == {(1, 10.0, 0.125)}
    assert 2 <= len(rows) <= 4


@pytest.mark.usefixtures("functions")
def test_a_cap_on_an_agent_that_does_not_say_stops_the_run(passhat: Passhat) -> None:
    ended = passhat(
        *("run", "-s", "jsonl:tasks.jsonl", "-a", "python:used_functions:silent"),
        *("-n", "2", "--budget", "1"),
    )
    assert ended.code in (2, 4)
    assert "does not say what it uses" in ended.err
    assert "(text, Usage" in ended.err


def test_the_record_of_a_call_is_plain_data() -> None:
    meter = Meter()
    read_answer(("yes", {"input_tokens": 10, "output_tokens": 2}), meter)
    assert json.dumps(meter.calls[0].reply) == "null"
    assert (meter.calls[0].input_tokens, meter.calls[0].stop) == (10, "stop")


def test_usage_with_input_output_and_a_model_is_priced() -> None:
    meter = Meter()
    used = Usage(
        input_tokens=10, output_tokens=2, cached_tokens=4, reasoning_tokens=1, model="small"
    )
    read_answer(("yes", used), meter, PRICES)
    (call,) = meter.calls
    assert (call.input_tokens, call.output_tokens) == (10, 2)
    assert (call.cached_tokens, call.reasoning_tokens, call.model) == (4, 1, "small")
    assert meter.usage.tokens == 12
    assert meter.usage.cost == call.cost is not None


def test_usage_with_input_and_output_only_counts_both() -> None:
    meter = Meter()
    meter.settle(Usage(input_tokens=10, output_tokens=2))
    assert meter.usage == Usage(12, None)


@pytest.mark.parametrize(
    ("package", "name"),
    [("dspy.primitives", "DSPy"), ("google.adk.agents", "ADK"), ("smolagents", "smolagents")],
)
def test_an_object_of_a_framework_that_is_not_run_is_refused_before_any_attempt(
    package: str, name: str
) -> None:
    program = type("Program", (), {"__module__": package, "__call__": lambda _self, **_: "yes"})
    with pytest.raises(InvalidValue, match=name) as refused:
        agent_from_object(program())
    assert "def answer(prompt)" in str(refused.value.hint)
