"""Judge again without making again; what cannot be judged again is said, never guessed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]

JUDGE = "def grade(answer, expected):\n    return answer == '{}'\n"


@pytest.fixture
def judge(folder: Path) -> Iterator[Callable[[str], None]]:
    """A grader of one's own that can be changed: it wants the word it is given."""
    lines = [
        {"id": f"t{i}", "prompt": "yes?", "answer": "", "grader": "python:own_judge:grade"}
        for i in range(5)
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def wants(word: str) -> None:
        (folder / "own_judge.py").write_text(JUDGE.format(word))
        sys.modules.pop("own_judge", None)

    wants("yes")
    sys.dont_write_bytecode = True
    yield wants
    sys.dont_write_bytecode = False
    sys.modules.pop("own_judge", None)


def run_of(passhat: Passhat, agent: str, *more: object) -> str:
    command = ["run", "-s", "jsonl:tasks.jsonl", "-a", agent, "-n", "2", "--keep-going", *more]
    assert passhat(*command).code in (0, 4)  # 4: attempts are missing
    runs = json.loads(passhat("runs", "--json").out)["runs"]
    return str(runs[-1]["id"])


def test_the_same_judge_says_the_same(passhat: Passhat, judge: Callable[[str], None]) -> None:
    del judge
    run = run_of(passhat, "python:some_agents:coin")
    ended = passhat("regrade", run)
    assert ended.code == 0
    assert "10 attempts: 10 the same, 0 verdicts changed" in ended.out


def test_another_judge_changes_verdicts_and_the_first_ones_are_kept(
    passhat: Passhat, judge: Callable[[str], None]
) -> None:
    run = run_of(passhat, "python:some_agents:yes")
    judge("no")
    trial = passhat("regrade", run, "--dry-run")
    assert "10 verdicts would change" in trial.out
    assert "10 passed" in passhat("show", run).out
    ended = passhat("regrade", run)
    assert ended.code == 0
    assert "10 verdicts changed" in ended.out
    assert "passed → failed, wrong_answer" in ended.out
    assert "0 passed" in passhat("show", run).out
    shown = passhat("show", run, "t0#1").out
    assert "the judge     passed" in shown
    assert "judged again  failed, wrong_answer" in shown
    assert "10 the same" in passhat("regrade", run).out
    judge("yes")
    data = json.loads(passhat("regrade", run, "--json").out)
    assert {one["outcome"] for one in data["attempts"]} == {"changed"}
    assert "10 passed" in passhat("show", run).out


def test_a_turn_that_differs_is_not_regradable(
    passhat: Passhat, folder: Path, judge: Callable[[str], None]
) -> None:
    run = run_of(passhat, "python:some_agents:yes")
    judge("no")
    text = (folder / "tasks.jsonl").read_text().splitlines()
    text[0] = text[0].replace("yes?", "really?")
    (folder / "tasks.jsonl").write_text("\n".join(text[:4]))
    ended = passhat("regrade", run)
    assert ended.code == 4
    assert "6 verdicts changed, 4 not regradable" in ended.out
    assert "turn 1 now reads 'really?', then 'yes?'" in ended.out
    assert "has no such task any more" in ended.out
    assert "4 passed" in passhat("show", run).out


def test_an_answer_without_its_secret_is_not_judged(
    passhat: Passhat, folder: Path, judge: Callable[[str], None]
) -> None:
    (folder / "tells_key.py").write_text("def agent(p):\n    return 'sk-abcdefghijklmnopqrst'\n")
    run = run_of(passhat, "python:tells_key:agent")
    judge("[redacted]")
    ended = passhat("regrade", run)
    assert ended.code == 4
    assert "10 not regradable" in ended.out
    assert "a secret was removed" in ended.out
    assert "0 passed" in passhat("show", run).out


def test_what_the_judge_never_saw_stays_as_it_is(
    passhat: Passhat, judge: Callable[[str], None]
) -> None:
    run = run_of(passhat, "python:some_agents:raises")
    judge("no")
    ended = passhat("regrade", run)
    assert ended.code == 0
    assert "10 ended before the judge" in ended.out


def test_a_judge_that_was_down_can_be_asked_again(
    passhat: Passhat, folder: Path, judge: Callable[[str], None]
) -> None:
    (folder / "own_judge.py").write_text("def grade(a, e):\n    raise OSError('down')\n")
    run = run_of(passhat, "python:some_agents:yes")
    sys.modules.pop("own_judge")
    ended = passhat("regrade", run)
    assert "10 not regradable" in ended.out
    assert "the judge broke: OSError: down" in ended.out
    judge("yes")
    assert "10 verdicts changed" in passhat("regrade", run).out
    (stored,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert (stored["passed"], stored["missing"]) == (10, 0)


def test_a_whole_conversation_is_played_again(passhat: Passhat, folder: Path) -> None:
    del folder
    passhat("run", "-s", "orderdesk", "-a", "demo:hasty", "-n", "1")
    (run,) = json.loads(passhat("runs", "--json").out)["runs"]
    ended = passhat("regrade", run["id"])
    assert "48 attempts: 48 the same" in ended.out
    assert ended.code == 0
    cut = passhat(
        "run", "-s", "orderdesk/retail", "-a", "demo:hasty", "-n", "1", "--set", "max_steps=2"
    )
    assert cut.code == 0
    run = json.loads(passhat("runs", "--json").out)["runs"][-1]
    ended = passhat("regrade", run["id"])
    assert ended.code == 0
    assert "24 ended before the judge" in ended.out


def test_a_persons_word_is_kept_beside_the_judges(
    passhat: Passhat, judge: Callable[[str], None]
) -> None:
    run = run_of(passhat, "python:some_agents:yes")
    reason = "It is right, but rude."
    ended = passhat("show", run, "t1#2", "--override", "failed", "--because", reason)
    assert ended.code == 0
    assert "t1#2 failed, unknown_failure: It is right, but rude." in ended.out
    assert "the judge  passed" in ended.out
    assert "a person   failed, unknown_failure: It is right, but rude." in ended.out
    assert "9 passed" in passhat("show", run).out
    judge("no")
    again = passhat("regrade", run)
    assert "9 verdicts changed, 1 keeps a person's word" in again.out
    passhat("show", run, "t1#2", "--override", "passed", "--because", "After all.")
    assert "1 passed" in passhat("show", run).out


@pytest.mark.parametrize(
    "words",
    [
        ["t1#1", "--override", "passed"],
        ["t1#1", "--override", "passed", "--because", " "],
        ["--override", "passed", "--because", "x"],
        ["t1#1", "--because", "x"],
        ["t1#1", "--override", "missing", "--because", "x"],
        ["t1#9", "--override", "passed", "--because", "x"],
    ],
)
def test_a_word_of_ones_own_needs_everything(
    passhat: Passhat, judge: Callable[[str], None], words: list[str]
) -> None:
    del judge
    run = run_of(passhat, "python:some_agents:yes", "--task", "t1")
    assert passhat("show", run, *words).code == 2
