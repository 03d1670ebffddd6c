"""Settings from flag, environment, file and default, in this order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]

GREEN = """
name = "a green agent"

[pass_k_config]
mode = "{mode}"
k = 4
domain = "airline"
task_id = 5
num_battles = 3
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(passhat: Passhat, *arguments: str) -> dict[str, tuple[Any, str]]:
    ended = passhat("run", "--show-config=json", *arguments)
    assert ended.code == 0, ended.err
    data = json.loads(ended.out)["settings"]
    return {one["key"]: (one["value"], f"{one['source']} {one['where']}".strip()) for one in data}


def test_flag_then_environment_then_file_then_default(
    passhat: Passhat, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "passhat.toml").write_text("[run]\nattempts = 6\nseed = 7\njobs = 2\nstore = 'x.db'\n")
    monkeypatch.setenv("PASSHAT_SEED", "8")
    monkeypatch.setenv("PASSHAT_ATTEMPTS", "9")
    found = settings(passhat, "-n", "5")
    assert found["attempts"] == (5, "flag --attempts")
    assert found["seed"] == (8, "environment PASSHAT_SEED")
    assert found["jobs"] == (2, "file passhat.toml [run]")
    assert found["store"] == ("x.db", "file passhat.toml [run]")
    assert found["step_timeout"] == (None, "default")
    table = passhat("run", "--show-config", "-n", "5").out
    assert "environment PASSHAT_SEED" in table


def test_a_named_file_is_used_instead_of_the_one_that_lies_here(
    passhat: Passhat, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "passhat.toml").write_text("[run]\njobs = 2\n")
    (here / "other.toml").write_text("[run]\nseed = 3\ntask = ['a', 4]\nverbose = true\n")
    found = settings(passhat, "--config", "other.toml")
    assert found["jobs"] == (8, "default")
    assert found["task"] == (["a", "4"], "file other.toml [run]")
    assert found["verbose"] == (True, "file other.toml [run]")
    monkeypatch.setenv("PASSHAT_CONFIG", "other.toml")
    assert settings(passhat)["seed"] == (3, "file other.toml [run]")


def test_the_table_of_green_agents_manual_and_random(passhat: Passhat, here: Path) -> None:
    path = here / "green.toml"
    path.write_text(GREEN.format(mode="manual"))
    found = settings(passhat, "--config", "green.toml")
    where = "file green.toml [pass_k_config]"
    assert found["suite"] == ("orderdesk/airline", where)
    assert found["task"] == (["5"], where)
    assert found["attempts"] == (4, where)
    assert found["random"] == (None, "default")
    assert "not passhat's: name" in passhat("run", "--show-config", "--config", "green.toml").out
    path.write_text(GREEN.format(mode="random"))
    found = settings(passhat, "--config", "green.toml")
    assert found["suite"] == ("orderdesk", where)
    assert found["random"] == (3, where)
    assert found["task"] == ([], "default")
    # A flag that chooses tasks ends the file's way of choosing them.
    found = settings(passhat, "--config", "green.toml", "--task", "retail/002")
    assert (found["task"][0], found["random"][0]) == (["retail/002"], None)


def test_a_run_by_a_green_agents_file(passhat: Passhat, here: Path) -> None:
    (here / "green.toml").write_text(GREEN.format(mode="manual"))
    ended = passhat("run", "--config", "green.toml", "-a", "demo:careful", "--full")
    assert ended.code == 0
    assert "airline/006  " in ended.out
    assert "first^4" in ended.out
    assert "window^2" in ended.out
    (here / "green.toml").write_text(GREEN.format(mode="random"))
    ended = passhat("run", "--config", "green.toml", "-a", "demo:careful", "--store", "b.db")
    assert "12 of 12 attempts" in ended.err
    for words in ("first^4", "window^2", "on average on success", "all 4 pass on"):
        assert words in ended.out, words
    arguments = ("run", "-a", "demo:careful", "-s", "orderdesk/retail", "--random", "1", "-n", "2")
    assert "k=6 needs 6 attempts" in passhat(*arguments, "--set", "k=6").err
    ended = passhat("run", "--config", "green.toml", "-a", "demo:careful", "-n", "2")
    assert "first^2" in ended.out


def test_a_file_that_says_nothing_to_serve_is_refused(passhat: Passhat, here: Path) -> None:
    (here / "other.toml").write_text("[run]\njobs = 2\n")
    ended = passhat("serve", "--config", "other.toml", "--port", "0")
    assert (ended.code, "other.toml: has no table [pass_k_config]" in ended.err) == (2, True)


def test_random_draws_over_both_domains(passhat: Passhat) -> None:
    passhat("run", "-s", "orderdesk", "--random", "8", "--seed", "1", "-a", "demo:hasty", "-n", "1")
    (run,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert (run["tasks"], run["attempts"]) == (8, 8)
    text = passhat("show", run["id"]).out
    assert "retail/" in text
    assert "airline/" in text


def test_every_command_looks_for_the_store_that_the_file_names(
    passhat: Passhat, here: Path
) -> None:
    (here / "passhat.toml").write_text(
        "[run]\nstore = 'mine.db'\nagent = 'demo:careful'\nsuite = 'orderdesk/retail'\ntask = 0\n"
        "attempts = 1\n"
    )
    assert passhat("run").code == 0
    assert (here / "mine.db").exists()
    assert len(json.loads(passhat("runs", "--json").out)["runs"]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\njbos = 1\n", "Did you mean jobs?"),
        ("[rnu]\njobs = 1\n", "Did you mean run?"),
        ("[run]\njobs = 1.5\n", "[run] jobs: '1.5' is not a valid integer"),
        ("[run]\njobs = true\n", "takes a value, not true or false"),
        ("[run]\nverbose = 1\n", "must be true or false"),
        ("[run]\njobs = [1]\n", "takes one value"),
        ("[run]\njobs = {a = 1}\n", "must be text, a number"),
        ("run = 3\n", "must be a table"),
        ("[run\n", "is not TOML"),
        ("[pass_k_config]\nk = 3\nmode = 'manual'\n", "k must be even, not 3"),
        ("[pass_k_config]\nk = 4\nmode = 'both'\n", "mode must be"),
        ("[pass_k_config]\nk = 4\ndomain = 'hotel'\ntask_id = 1\n", "domain must be"),
        ("[pass_k_config]\nk = 4\ndomain = 'retail'\n", "task_id must be a whole number"),
        ("[pass_k_config]\nk = 4\nmode = 'random'\n", "num_battles must be a whole number"),
        ("[pass_k_config]\nk = 4\nmodus = 'random'\n", "Did you mean mode?"),
        ("[pass_k_config]\nk = true\n", "k must be a whole number"),
        ("[pass_k_config]\nk = 4\nmode = 'random'\nnum_battles = 1\n[runn]\n", "Did you mean run?"),
    ],
)
def test_mistakes_in_a_file_are_told_with_its_name(
    passhat: Passhat, here: Path, text: str, message: str
) -> None:
    (here / "passhat.toml").write_text(text)
    ended = passhat("run", "--show-config")
    assert ended.code == 2
    assert "passhat.toml" in ended.err
    assert message in ended.err
    assert passhat("run", "--help").code == 0


def test_several_words_in_one_variable(passhat: Passhat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSHAT_STOP_WHEN", "pass^4 >= 0.6, pass^1 >= 0.9")
    monkeypatch.setenv("PASSHAT_TASK", "retail/001,2")
    found = settings(passhat)
    assert found["stop_when"][0] == ["pass^4 >= 0.6", "pass^1 >= 0.9"]
    assert found["task"][0] == ["retail/001", "2"]
    assert found["canary"] == (None, "default")
    assert settings(passhat, "--set", "canary=no")["canary"] == (False, "flag --set canary")


def test_a_variable_that_is_no_setting_is_pointed_out(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSHAT_JBOS", "3")
    assert "variables that are not a setting: PASSHAT_JBOS" in passhat("run", "--show-config").out


def test_a_key_in_a_setting_is_not_shown(passhat: Passhat) -> None:
    word = "command:./agent --key sk-abcdefghijklmnopqrst"
    for form in ("--show-config", "--show-config=json"):
        text = passhat("run", "-a", word, form).out
        assert "sk-abc" not in text
        assert "[redacted]" in text


def test_a_file_that_is_not_there(passhat: Passhat) -> None:
    ended = passhat("run", "--config", "nothing.toml")
    assert ended.code == 2
    assert "cannot be read" in ended.err


def test_a_wrong_value_in_the_environment_names_the_option(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSHAT_JOBS", "many")
    ended = passhat("run", "--show-config")
    assert ended.code == 2
    assert "jobs" in ended.err


def test_the_question_is_recorded_before_the_run_and_stands_beside_the_result(
    passhat: Passhat,
) -> None:
    tasks = ("-s", "orderdesk/retail", "--random", "3", "-n", "2")
    asked = ("--set", "question=pass^2 greater 0.9")
    passhat("run", "-a", "demo:hasty", *tasks, "--name", "a")
    ended = passhat("run", "-a", "demo:careful", *tasks, *asked, "--name", "b")
    sentence = "Asked before the run: a greater pass^2 than the other run, at 90%"
    assert sentence in ended.out
    assert sentence in passhat("compare", "a", "b").out
    assert "Asked before" not in passhat("report", "a").out
    full = passhat("report", "b", "--full").out
    assert sentence in full
    assert "of 3 tasks, each further one adds" in full
    assert "Did you mean pass^4" in passhat("run", "-a", "x", *tasks, "--set", "question=pss^4").err


def test_a_gate_without_a_rule_takes_those_of_the_file(passhat: Passhat, here: Path) -> None:
    (here / "t.csv").write_text("task,passed\n" + "".join(f"t{i},1\n" * 4 for i in range(9)))
    ended = passhat("gate", "t.csv")
    assert ended.code == 2
    assert "passhat gate t.csv 'pass^1 >= 0.5'" in ended.err
    (here / "passhat.toml").write_text("[gate]\nrules = ['pass^1 >= 0.5', 'missing <= 2%']\n")
    ended = passhat("gate", "t.csv")
    assert ended.code == 0, ended.err
    assert "Rules of passhat.toml: pass^1 >= 0.5, missing <= 2%" in ended.err
    assert "Rules of" not in passhat("gate", "t.csv", "pass^1 >= 0.4").err
    assert "Rules of" not in passhat("gate", "t.csv", "--against", "t.csv", "--allow").err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("rules = 3", "must be a list of rules, not"),
        ("rulse = ['pass^1 >= 0.5']", "Did you mean rules?"),
        ("rules = ['pass^1']", "is not a rule"),
    ],
)
def test_rules_of_the_file_that_mean_nothing_are_refused(
    passhat: Passhat, here: Path, table: str, message: str
) -> None:
    (here / "t.csv").write_text("task,passed\na,1\n")
    (here / "passhat.toml").write_text(f"[gate]\n{table}\n")
    ended = passhat("gate", "t.csv")
    assert ended.code == 2
    assert message in ended.err


def test_a_table_with_a_slip_in_its_name_is_refused(passhat: Passhat, here: Path) -> None:
    (here / "passhat.toml").write_text("[gaet]\nrules = []\n")
    assert "Did you mean gate?" in passhat("run", "--show-config").err


def test_a_missing_argument_comes_with_a_command_to_type(passhat: Passhat) -> None:
    for command in ("why", "show", "forecast", "export", "leaderboard", "label", "regrade"):
        assert f"For example: passhat {command} " in passhat(command).err
