"""A reference told to one attempt must not come back in another."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.runner.boundary import Canary
from passhat.runner.run_spec import RunSpec

Passhat = Callable[..., Any]

LEAKY = """
HEARD = []

def leaky(prompt):
    HEARD.append(prompt[:80])
    return " ".join(HEARD)

def fresh(prompt):
    return prompt[:80]
"""


@pytest.fixture
def agents(folder: Path) -> Any:
    (folder / "leaky_agents.py").write_text(LEAKY)
    yield folder
    sys.modules.pop("leaky_agents", None)


@pytest.mark.usefixtures("agents", "way")
@pytest.mark.parametrize(
    "suite", [["orderdesk/retail", "--random", "3"], ["jsonl:tasks.jsonl", "--set", "canary=yes"]]
)
def test_an_agent_with_a_memory_is_caught(passhat: Passhat, suite: list[str]) -> None:
    command = ("run", "-s", *suite, "-a", "python:leaky_agents:leaky", "-n", "3", "--jobs", "1")
    ended = passhat(*command, "--keep-going")
    assert ended.code == 0
    assert "Warning: leak: in " in ended.out
    assert "Warning: leak: in " in passhat("report", ".passhat/passhat.db").out
    report = json.loads(passhat("report", ".passhat/passhat.db", "--json").out)
    assert "no number of this run is to be trusted" in report["runs"][0]["warnings"][0]


@pytest.mark.usefixtures("agents")
def test_an_agent_that_repeats_only_what_it_was_told_is_not(passhat: Passhat) -> None:
    ended = passhat("run", "-s", "orderdesk/retail", "-a", "python:leaky_agents:fresh", "-n", "2")
    assert "leak:" not in ended.out


@pytest.mark.usefixtures("folder")
def test_a_prompt_that_is_graded_word_for_word_stays_as_it_is(passhat: Passhat) -> None:
    """A question with one right answer gets no reference unless it is asked for."""
    passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:yes", "-n", "1")
    (run,) = (one["id"] for one in json.loads(passhat("runs", "--json").out)["runs"])
    assert "ref-" not in passhat("show", run, "t0#1").out


def test_the_attempt_that_leaked_is_named() -> None:
    canary = Canary("key", ["a", "b"], 2)
    other = canary.token("b", 2)
    assert canary.stray(f"as {other} said", "a", 1) == "b#2"
    assert canary.stray(f"mine: {canary.token('a', 1)}", "a", 1) == ""
    assert canary.stray("ref-000000000000 is nobody's", "a", 1) == ""
    assert Canary("another", ["a", "b"], 2).stray(other, "a", 1) == ""


@pytest.mark.parametrize("word", ["orderdesk/retail", "jsonl:tasks.jsonl"])
@pytest.mark.parametrize("choice", [None, True, False])
def test_references_are_for_suites_that_take_them_unless_the_user_says_otherwise(
    word: str, choice: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text('{"id": "t", "prompt": "yes?", "answer": "yes"}\n')
    spec = RunSpec(suite=word, agent="demo:careful", attempts=1, canary=choice)
    takes = word.startswith("orderdesk")
    assert spec.plan().canary == (takes if choice is None else choice)


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("agent", ["fresh", "leaky"])
def test_evidence_of_fresh_attempts_is_given_only_where_there_is_some(
    passhat: Passhat, agent: str
) -> None:
    suite = ("jsonl:tasks.jsonl", "--set", "canary=yes", "--jobs", "1")
    word = f"python:leaky_agents:{agent}"
    ended = passhat("run", "-s", *suite, "-a", word, "-n", "2", "--full")
    has_evidence = "no attempt repeated what only another was told" in " ".join(ended.out.split())
    assert has_evidence == (agent == "fresh")


def test_conversations_that_are_shared_are_warned_about() -> None:
    from passhat.readers.store import _conversation_notes, _origin_warnings
    from passhat.store import Origins

    new, shared = Origins(contexts=8, distinct_contexts=8), Origins(contexts=8, distinct_contexts=6)
    (note,) = _conversation_notes(new, has_leaks=False)
    assert note == (
        "every attempt began a new conversation: 8 context ids of the agent for 8 attempts"
    )
    assert _conversation_notes(shared, has_leaks=False) == _origin_warnings(new) == ()
    assert "2 attempts went on in the conversation of another" in _origin_warnings(shared)[0]
