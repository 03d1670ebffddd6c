"""Requests as strangers write them: every form, and every reason to refuse one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from passhat.integrations.agentbeats.assessments import BadRequest, Rules, is_greeting, read_request

WHITE = "http://localhost:9210"


def v2(participants: object = None, **config: object) -> str:
    found = {"agent": WHITE} if participants is None else participants
    return json.dumps({"participants": found, "config": config})


def battle_start(**changed: object) -> str:
    known: dict[str, object] = {
        "type": "battle_start",
        "battle_id": "b-1",
        "opponent_infos": [{"name": "white", "agent_url": WHITE}],
    }
    return json.dumps(known | changed)


def test_a_plain_request_means_the_whole_retail_desk_four_times() -> None:
    asked = read_request(v2(), Rules())
    assert dict(asked.participants) == {"agent": WHITE}
    assert (asked.suite.name, len(asked.tasks), asked.k, asked.attempts) == (
        *("orderdesk/retail", 24, 4, 4),
    )
    assert asked.battle is None


@pytest.mark.parametrize(
    ("config", "tasks"),
    [
        ({"task_id": 5}, ["retail/006"]),
        ({"task_id": "5", "mode": "manual"}, ["retail/006"]),
        ({"task_id": "retail/006"}, ["retail/006"]),
        ({"task_ids": [0, 1.0]}, ["retail/001", "retail/002"]),
        ({"domain": "airline", "task_id": 0}, ["airline/001"]),
        ({"env": "airline", "task_ids": [1]}, ["airline/002"]),
        ({"suite": "orderdesk/airline", "task_id": 0}, ["airline/001"]),
    ],
)
def test_tasks_by_place_and_by_id(config: dict[str, object], tasks: list[str]) -> None:
    assert [task.id for task in read_request(v2(**config), Rules()).tasks] == tasks


def test_random_tasks_come_from_the_seed() -> None:
    drawn = [
        [task.id for task in read_request(v2(num_battles=5, seed=seed), Rules()).tasks]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5


def test_random_tasks_are_of_both_domains_unless_one_is_named() -> None:
    drawn = read_request(v2(mode="random", num_battles=30), Rules())
    assert {task.id.split("/")[0] for task in drawn.tasks} == {"retail", "airline"}
    retail = read_request(v2(mode="random", num_battles=9, domain="retail"), Rules())
    assert {task.id.split("/")[0] for task in retail.tasks} == {"retail"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ("orderdesk/retail", ["retail/006"], 6)),
        ({"k": 2}, ("orderdesk/retail", ["retail/006"], 2)),
        ({"task_id": 1}, ("orderdesk/retail", ["retail/002"], 6)),
        ({"domain": "airline", "task_id": 0}, ("orderdesk/airline", ["airline/001"], 6)),
    ],
)
def test_what_a_request_leaves_out_comes_from_the_servers_file(
    config: dict[str, object], expected: tuple[str, list[str], int]
) -> None:
    file = {"mode": "manual", "k": 6, "domain": "retail", "task_id": 5, "num_battles": 5}
    asked = read_request(v2(**config), Rules(defaults=file))
    assert (asked.suite.name, [task.id for task in asked.tasks], asked.k) == expected
    assert not asked.notes


def test_a_file_of_random_mode_may_keep_the_keys_of_the_other() -> None:
    file = {"mode": "random", "k": 4, "domain": "retail", "task_id": 5, "num_battles": 20}
    asked = read_request(v2(), Rules(defaults=file))
    assert (asked.suite.name, len(asked.tasks)) == ("orderdesk", 20)
    assert asked.sentence.startswith("20 tasks of orderdesk, 4 attempts each, pass^4 and pass@4")


def test_every_setting_is_taken_over() -> None:
    asked = read_request(
        v2(k=2, n=6, max_steps=9, step_timeout=1.5, timeout=20, jobs=3, temperature=0.5, win_at=1),
        Rules(),
    )
    assert (asked.k, asked.attempts, asked.jobs, asked.temperature, asked.win_at) == (
        2,
        6,
        3,
        0.5,
        1,
    )
    limits = asked.limits
    assert (limits.max_steps, limits.step_seconds, limits.attempt_seconds) == (9, 1.5, 20)


def test_what_is_not_understood_is_said() -> None:
    (note,) = read_request(v2(colour="blue"), Rules()).notes
    assert "colour" in note


@pytest.mark.parametrize(
    "extra",
    [
        {"backend_url": "http://localhost:9000/", "config": {"k": 2, "task_id": 1}},
        {
            "green_battle_context": {
                "backend_url": "http://localhost:9000",
                "agent_name": "passhat",
                "task_config": 'Task description: {"k": 2, "task_id": 1}',
            }
        },
    ],
    ids=["short", "as the backend sends it"],
)
def test_a_battle_start(extra: dict[str, object]) -> None:
    asked = read_request(battle_start(**extra), Rules())
    assert dict(asked.participants) == {"white": WHITE}
    assert (asked.k, [task.id for task in asked.tasks]) == (2, ["retail/002"])
    assert asked.battle is not None
    assert (asked.battle.id, asked.battle.backend_url) == ("b-1", "http://localhost:9000")


def test_a_battle_start_with_a_description_in_words() -> None:
    context = {"task_config": "Task description: be thorough"}
    asked = read_request(battle_start(green_battle_context=context), Rules())
    assert len(asked.tasks) == 24
    assert "be thorough" in " ".join(asked.notes)


@pytest.mark.parametrize(
    ("words", "k", "tasks"),
    [
        ("Task index = 1", 4, ["retail/002"]),
        ("k=2, task 5", 2, ["retail/006"]),
        ("Please use K: 3 and task_id: 0", 3, ["retail/001"]),
    ],
)
def test_a_battle_start_with_settings_in_words(words: str, k: int, tasks: list[str]) -> None:
    context = {"task_config": words}
    asked = read_request(battle_start(green_battle_context=context), Rules())
    assert (asked.k, [task.id for task in asked.tasks]) == (k, tasks)
    assert asked.notes == ()


def test_a_battle_start_with_its_settings_beside_the_opponents() -> None:
    asked = read_request(battle_start(task_config="Task index = 3\nk = 2"), Rules())
    assert (asked.k, [task.id for task in asked.tasks]) == (2, ["retail/004"])


def test_settings_that_are_null_are_left_out() -> None:
    asked = read_request(v2(k=None, n=None, seed=None, task_id=0, win_at=None), Rules())
    assert (asked.k, asked.attempts, asked.seed, asked.win_at) == (4, 4, 0, 0.5)


def test_a_desk_is_built_once() -> None:
    first, second = (read_request(v2(task_id=0), Rules()).suite for _ in range(2))
    assert first is second


def test_tags() -> None:
    asked = read_request(
        f"Your task is to assess the agent at:\n<white_agent_url>\n{WHITE}\n</white_agent_url>\n"
        'with\n<env_config>\n{"env": "retail", "task_ids": [1], "k": 3}\n</env_config>',
        Rules(),
    )
    assert dict(asked.participants) == {"white_agent": WHITE}
    assert (asked.k, [task.id for task in asked.tasks]) == (3, ["retail/002"])


def test_a_greeting_is_no_request() -> None:
    assert is_greeting('{"type": "battle_info", "battle_id": "b"}')
    assert not is_greeting(battle_start())
    assert not is_greeting("hello")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "expected"),
        ("[]", "expected"),
        ("[" * 100_000, "expected"),
        (v2({}), "no participant"),
        (v2([1]), "should be objects"),
        (v2({"agent": "localhost:9210"}), "should be http://"),
        (v2({"agent": "http://[::1"}), "should be http://"),
        (v2({"agent": "http://evil.example/"}), "--allow-host evil.example"),
        (v2({"agent": "http://169.254.169.254/"}), "not allowed"),
        (v2({f"a{i}": WHITE for i in range(9)}), "at most 8"),
        (v2(k=0), "k should be a number from 1"),
        (v2(k="many"), "k should be a number"),
        (v2(k=True), "k should be a number"),
        (v2(k=1.5), "k should be a number"),
        (v2(k=4, n=2), "n should be at least k"),
        (v2(n=1000, k=1), "over 10,000"),
        (v2(mode="chaos"), "mode should be one of"),
        (v2(mode="manual"), "needs a task_id"),
        (v2(task_id=99), "no task '99'"),
        (v2(num_battles=99), "num_battles should be a number from 1 to 48"),
        (v2(domain="moon"), "no domain 'moon'"),
        (v2(suite="python:os:system"), "not allowed"),
        (v2(suite="jsonl:/etc/passwd"), "not allowed"),
        (v2(suite="orderdeskx"), "not allowed"),
        (battle_start(opponent_infos="white"), "opponent_infos"),
        (battle_start(battle_id=None), "battle_id"),
        (battle_start(backend_url="http://evil.example"), "the backend is at evil.example"),
        (battle_start(opponent_infos=[{"name": "white"}]), "should be http://"),
        ("<white_agent_url>http://localhost</white_agent_url><env_config>{</env_config>", "JSON"),
    ],
)
def test_a_bad_request_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_request(text, Rules())
    assert reason in str(caught.value)


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(BadRequest) as caught:
        read_request(v2({"agent": "http://evil.example"}, k=0, mode="chaos"), Rules())
    assert len(caught.value.reasons) == 3


def test_hosts_and_suites_can_be_allowed(tmp_path: Any) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "t", "prompt": "?", "answer": "yes"}')
    suite = f"jsonl:{tmp_path / 't.jsonl'}"
    rules = Rules.with_hosts(["Agents.Example"], [suite])
    asked = read_request(v2({"agent": "https://agents.example:8443/x"}, suite=suite), rules)
    assert [task.id for task in asked.tasks] == ["t"]
