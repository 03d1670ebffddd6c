"""Commands that passhat advises do what they say when they are typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passhat as api

Passhat = Callable[..., Any]
AGENTS = """
def raises(prompt):
    raise KeyError("KEY")

def four(prompt):
    return "4"

def same(prompt):
    return "Error: 401"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "advised.py").write_text(AGENTS)
    lines = [f'{{"id": "t{i}", "prompt": "{i}?", "answer": "{4 + i}"}}' for i in range(3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    return tmp_path


def _run(passhat: Passhat, agent: str, *words: str) -> Any:
    command = ("run", "-a", f"python:advised:{agent}", "-s", "jsonl:tasks.jsonl", "-n", "2")
    return passhat(*command, "--keep-going", *words)


def _advised(text: str) -> list[list[str]]:
    """The commands in the lines of advice, without the words after them."""
    found = re.findall(r"^(?:Next|Read a failure): (?:.*: )?(passhat .*)$", text, re.M)
    more = re.findall(r"(passhat report[^,\n]*)", text)
    return [shlex.split(line)[1:] for line in (*found, *more)]


@pytest.mark.parametrize(
    ("agent", "store"),
    [
        ("four", ()),
        ("four", ("--store", "other place.db")),
        ("raises", ("--store", "other place.db")),
        ("same", ("--store", "other place.db")),
    ],
)
@pytest.mark.usefixtures("folder")
def test_commands_after_a_run_and_its_report_work(
    passhat: Passhat, agent: str, store: tuple[str, ...]
) -> None:
    first = _run(passhat, agent, *store)
    source = store[1:] or ("latest",)
    texts = [first.out, passhat("report", *source).out]
    assert ("plan" in texts[1]) is (agent == "four")
    _run(passhat, "same" if agent == "four" else "four", *store)
    texts.append(passhat("report", store[1] if store else ".passhat/passhat.db").out)
    commands = [words for text in texts for words in _advised(text)]
    assert {words[0] for words in commands} >= {"show", "report"}
    for words in commands:
        assert passhat(*words).code == 0, words


@pytest.mark.parametrize("name", ["advised:four", "python:advised:four"])
@pytest.mark.usefixtures("folder")
def test_the_name_in_a_report_chooses_the_run(passhat: Passhat, name: str) -> None:
    for agent in ("four", "same"):
        _run(passhat, agent, "--store", "s.db")
    chosen = passhat("explain", "pass^1", "s.db", "--run", name)
    assert "python:advised:four" in chosen.out
    _run(passhat, "four", "--store", "s.db", "--name", "again")
    several = passhat("explain", "pass^1", "s.db", "--run", "python:advised:four")
    assert several.code == 2
    assert "2 runs are called 'python:advised:four'" in several.err


@pytest.mark.usefixtures("folder")
def test_a_sample_of_a_model_judge_can_be_labeled_as_the_note_says(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from passhat.cli.shared.configuring import store_words

    tasks = [{"id": "t", "prompt": "2 + 2?", "answer": "4"}]
    api.run(lambda _prompt: "4", tasks, n=3, store="r.db", progress=False)
    command = f"label latest --sample 50{store_words('r.db')} -o drawn.csv"
    ended = passhat(*shlex.split(command))
    assert (ended.code, "drawn" in ended.out) == (0, True), ended.err
    monkeypatch.setenv("PASSHAT_STORE", "r.db")
    assert store_words("./r.db") == ""


def test_one_attempt_at_one_task_is_counted_in_the_singular(passhat: Passhat, folder: Path) -> None:
    (folder / "tasks.jsonl").write_text('{"id": "t", "prompt": "?", "answer": "4"}')
    ended = passhat("run", "-a", "python:advised:four", "-s", "jsonl:tasks.jsonl", "-n", "1")
    text = ended.out + ended.err + passhat("report", "--full").out + passhat("runs").out
    assert "1 of 1 attempt: 1 passed" in text
    assert not re.findall(
        r"(?<![\d,.])1 (?:attempts|tasks|calls|runs|steps|notes|failures|labels|times)\b", text
    )


def test_a_suggestion_is_made_for_near_names_only(passhat: Passhat, folder: Path) -> None:
    package = folder / "pkg"
    package.mkdir()
    (package / "agent.py").write_text(AGENTS)
    ask = ("run", "-s", "jsonl:tasks.jsonl", "-a")
    assert "Did you mean python:advised:four?" in passhat(*ask, "python:advised:fourr").err
    far = passhat(*ask, "python:advised:nothere").err
    assert "Did you mean" not in far
    assert "It has: raises, four, same" in far
    dotted = passhat(*ask, "python:pkg/agent:four").err
    assert "Write python:pkg.agent:NAME, with dots as in an import." in dotted
