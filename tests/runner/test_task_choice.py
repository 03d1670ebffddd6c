"""Which tasks a run has, and how many attempts each of them gets; case by case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.chat import ChatAgent
from passhat.errors import InvalidValue
from passhat.runner import task_choice
from passhat.runner.task_choice import (
    Shard,
    choose_tasks,
    digest_selection,
    distribute_attempts,
    refuse_other_attempts,
    refuse_pair,
)
from passhat.stats.plan import EarlierRun
from passhat.store import PlannedAttempts
from passhat.suites.base import Task, fingerprint


def _suite(*ids: str, name: str = "s", **parts: Any) -> Any:
    fields = {"fingerprint": "f", "harness": "", "has_workspaces": False, **parts}
    return SimpleNamespace(name=name, tasks=[Task(id_, "?") for id_ in ids], **fields)


# -- shards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/1", (1, 1)),
        ("3/8", (3, 8)),
        (" 8 / 8 ", (8, 8)),
        *((text, None) for text in ("0/1", "2/1", "9/8", "1", "1/", "-1/2", "1/2/3", "", "a/b")),
    ],
)
def test_a_shard_is_a_number_of_a_count(text: str, expected: tuple[int, int] | None) -> None:
    if expected is None:
        with pytest.raises(InvalidValue) as caught:
            Shard.of_text(text)
        assert caught.value.message == f"{text!r} is not a shard."
        assert caught.value.hint == "Write NUMBER/COUNT from 1/8 to 8/8."
    else:
        shard = Shard.of_text(text)
        assert (shard.number, shard.count) == expected
        assert str(shard) == f"{expected[0]}/{expected[1]}"


def test_shards_take_turns_and_one_without_tasks_is_refused() -> None:
    tasks = [Task(name, "?") for name in "abcde"]
    parts = [[task.id for task in Shard(number, 3).of(tasks)] for number in (1, 2, 3)]
    assert parts == [["a", "d"], ["b", "e"], ["c"]]
    for count, words in ((1, "1 task"), (2, "2 tasks")):
        with pytest.raises(InvalidValue) as caught:
            Shard(3, 3).of(tasks[:count])
        assert caught.value.message == f"shard 3/3 has nothing to do: the suite has {words}."
        assert caught.value.hint == f"Use at most {words.replace('task', 'shard')}."


# -- tasks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["a", "b", "1"]),
        (["b"], ["b"]),
        (["0"], ["a"]),
        (["2"], ["1"]),
        (["1"], ["1"]),  # the id is meant before the position
        (["b", "0", "b"], ["b", "a"]),
    ],
)
def test_tasks_are_chosen_by_id_and_by_position(words: list[str], expected: list[str]) -> None:
    assert [task.id for task in choose_tasks(_suite("a", "b", "1"), words, None, 0)] == expected


@pytest.mark.parametrize("word", ["3", "c", "-1", "", "1.0"])
def test_a_task_that_is_not_there_is_named(word: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        choose_tasks(_suite("a", "b", "d"), ["a", word], None, 0)
    assert caught.value.message == f"s has no task {word!r}."


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tasks_are_drawn_by_the_seed(size: int) -> None:
    suite = _suite("a", "b", "c")
    draws = [tuple(t.id for t in choose_tasks(suite, [], size, seed)) for seed in range(20)]
    assert {len(set(draw)) for draw in draws} == {size}
    assert len(set(draws)) > 1
    assert draws == [tuple(t.id for t in choose_tasks(suite, [], size, seed)) for seed in range(20)]
    assert {t.id for t in choose_tasks(suite, ["a", "b"], min(size, 2), 1)} <= {"a", "b"}


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_more_or_fewer_tasks_than_there_are_cannot_be_drawn(size: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        choose_tasks(_suite("a", "b"), [], size, 0)
    assert caught.value.message == f"--random {size} is not possible: the suite has 2 tasks."
    assert caught.value.hint == "Choose a number from 1 to 2."


def test_a_choice_of_tasks_has_a_digest_and_all_of_them_have_none() -> None:
    suite = _suite("a", "b", "c")
    assert digest_selection(suite, suite.tasks) == ""
    assert digest_selection(suite, suite.tasks[::-1]) == ""
    two = digest_selection(suite, suite.tasks[:2])
    assert two == digest_selection(suite, suite.tasks[1::-1]) == fingerprint(["a", "b"])
    assert two != digest_selection(suite, suite.tasks[1:])


# -- attempts at each task -------------------------------------------------------------------------


def _allocation(by_task: dict[str, int], **earlier: Any) -> Any:
    parts = {"id": "1234", "name": "base", "started": "now", "digest": "d", **earlier}
    return SimpleNamespace(earlier=EarlierRun(**parts), by_task=by_task, others=2, metric="pass^2")


def _distribute(allocation: Any, suite: Any) -> tuple[PlannedAttempts, list[str]]:
    told: list[str] = []
    return distribute_attempts(allocation, suite, suite.tasks, told.append), told


def test_one_number_is_the_same_at_every_task() -> None:
    assert _distribute(3, _suite("a")) == (PlannedAttempts(3), [])


def test_attempts_are_those_of_the_plan_and_say_where_they_are_from() -> None:
    planned, told = _distribute(_allocation({"a": 1, "b": 5, "gone": 9}), _suite("a", "b"))
    assert (planned.each, planned.by_task) == (5, {"a": 1, "b": 5})
    source = {"metric": "pass^2", "id": "1234", "name": "base", "started": "now", "digest": "d"}
    assert planned.source == source
    assert told == []


def test_tasks_that_the_earlier_run_has_not_get_the_number_of_others() -> None:
    planned, told = _distribute(_allocation({"a": 1}), _suite("a", "b"))
    assert (planned.each, planned.by_task) == (2, {"a": 1, "b": 2})
    assert told == ["1 task not in run 1234 (b): 2 attempts each"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("ab", None),
        ("abc", "the plan was made from run 1234, which has 1 of the 3 tasks: that is another"),
        ("b", "the plan was made from run 1234, which has 0 of the 1 task: that is another"),
    ],
)
def test_a_plan_for_less_than_half_of_the_tasks_is_another_suites(
    ids: str, message: str | None
) -> None:
    allocation, suite = _allocation({"a": 1}), _suite(*ids)
    if message is None:
        _distribute(allocation, suite)
        return
    with pytest.raises(InvalidValue) as caught:
        _distribute(allocation, suite)
    assert caught.value.message == f"{message} suite."


@pytest.mark.parametrize(
    ("earlier", "is_refused"),
    [
        ({"suite": "s", "suite_fingerprint": "f"}, False),
        ({"suite": "s", "suite_fingerprint": "g"}, False),
        ({"suite": "other", "suite_fingerprint": "f"}, False),
        ({"suite": "other", "suite_fingerprint": None}, False),
        ({"suite": None, "suite_fingerprint": "g"}, False),
        ({"suite": "other", "suite_fingerprint": "g"}, True),
    ],
)
def test_a_plan_of_another_suite_is_refused(earlier: dict[str, Any], is_refused: bool) -> None:
    allocation, suite = _allocation({"a": 1}, **earlier), _suite("a")
    if not is_refused:
        _distribute(allocation, suite)
        return
    with pytest.raises(InvalidValue) as caught:
        _distribute(allocation, suite)
    assert caught.value.message == (
        "the plan was made from run 1234, which is about another suite, other, not s."
    )


# -- attempts of a run that was begun --------------------------------------------------------------


def _refusal(monkeypatch: pytest.MonkeyPatch, stored: str | None, attempts: PlannedAttempts) -> str:
    """Why the attempts are refused; empty where they are not."""
    found = SimpleNamespace(
        id="r", started="then", planned=4, plan=SimpleNamespace(protocol_text=stored)
    )
    store: Any = SimpleNamespace(load_allocation=lambda _: stored, find=lambda _: found)
    plan: Any = SimpleNamespace(attempts=attempts, record=SimpleNamespace(id="r"))
    monkeypatch.setattr(task_choice, "_digest", lambda *_: "own digest")
    try:
        refuse_other_attempts(plan, store)
    except InvalidValue as error:
        return error.message
    return ""


OWN = "the attempts per task come from run r, which is the run that they would be added to"


@pytest.mark.parametrize(
    ("by_task", "source", "begin"),
    [
        ({"a": 1}, {"id": "r", "started": "then"}, OWN),
        ({}, {"id": "r", "started": "then"}, OWN),
        ({"a": 1}, {"id": "r", "started": "later"}, "run r was begun with other numbers"),
        ({"a": 1}, {"id": "q", "started": "then"}, "run r was begun with other numbers"),
        ({"a": 1}, {"digest": "own digest"}, OWN),
        ({}, {"digest": "own digest"}, "run r was begun with other numbers"),
        ({"a": 1}, {"digest": "another"}, "run r was begun with other numbers"),
    ],
)
def test_a_runs_own_results_do_not_choose_its_attempts(
    monkeypatch: pytest.MonkeyPatch, by_task: dict[str, int], source: dict[str, str], begin: str
) -> None:
    message = _refusal(monkeypatch, "1 to 3 by task", PlannedAttempts(3, by_task, source))
    assert message.startswith(begin)


def test_the_same_attempts_and_a_new_run_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = PlannedAttempts(3, {"a": 1}, {"id": "r", "started": "then"})
    assert _refusal(monkeypatch, attempts.text, attempts) == ""
    assert _refusal(monkeypatch, None, attempts) == ""


@pytest.mark.parametrize(
    ("stored", "before"), [("1 to 3 by task", "1 to 3 by task"), ("", "4 at every task")]
)
def test_the_attempts_that_a_run_was_begun_with_are_named(
    monkeypatch: pytest.MonkeyPatch, stored: str, before: str
) -> None:
    assert _refusal(monkeypatch, stored, PlannedAttempts(9, {"a": 9})) == (
        f"run r was begun with other numbers of attempts per task ({before})."
    )


# -- suites and agents -----------------------------------------------------------------------------


_HOOKS = dict.fromkeys(("body", "open_client", "send", "warm"))


def _agent(harness: str = "", *, is_chat: bool = False) -> Any:
    fields = {"harness": harness, "name": "m"}
    chat = type("_Chat", (ChatAgent,), {**_HOOKS, **fields})
    return object.__new__(chat) if is_chat else SimpleNamespace(**fields)


@pytest.mark.parametrize(
    ("suite", "agent", "message"),
    [
        ({}, _agent(), ""),
        ({}, _agent(is_chat=True), ""),
        ({"has_workspaces": True}, _agent(), ""),
        ({"harness": "inspect"}, _agent("inspect"), ""),
        (
            {"has_workspaces": True},
            _agent(is_chat=True),
            "'m' answers with text, and s needs an agent that edits files.",
        ),
        (
            {"harness": "inspect"},
            _agent(),
            "s is run by inspect itself, so 'm' cannot attempt it.",
        ),
        (
            {"harness": "other"},
            _agent("inspect"),
            "s is run by other itself, so 'm' cannot attempt it.",
        ),
        ({}, _agent("inspect"), "'m' is a model inside inspect, so it cannot attempt s."),
    ],
)
def test_which_agents_can_attempt_which_suites(
    suite: dict[str, Any], agent: Any, message: str
) -> None:
    refusal = ""
    try:
        refuse_pair(_suite("a", **suite), agent)
    except InvalidValue as error:
        refusal = error.message
    assert refusal == message
