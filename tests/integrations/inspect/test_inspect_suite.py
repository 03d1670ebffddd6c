"""inspect runs its own tasks, with its mock model and offline; passhat plans, keeps and resumes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import estimate
from passhat.integrations.inspect.inspect_suite import (
    InspectProcess,
    this_owner,
)
from passhat.integrations.inspect.samples import with_conversation
from passhat.readers import read
from passhat.runner.redaction import Redactor
from passhat.stats.outcomes import FailureCategory
from passhat.store import AttemptRecord, open_store
from passhat.suites.base import Judgement

Call = Callable[..., Any]
MODEL = ("-a", "inspect:mockllm/model")

pytestmark = pytest.mark.usefixtures("folder")


def _verdicts(store: Path) -> dict[str, list[tuple[int, int, str]]]:
    """Task to (number, verdict, why) of its attempts."""
    rows: dict[str, list[Any]] = {}
    with open_store(str(store), must_exist=True) as found:
        for block in found.rows(found.runs()[-1].id):
            for task, number, verdict, why, *_ in block:
                rows.setdefault(str(task), []).append((number, verdict, why))
    return rows


def test_pass_at_4_and_pass_hat_4_are_those_of_inspects_own_reducers(
    passhat: Call, store: Path
) -> None:
    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import Score, pass_at, pass_k

    import passhat.integrations.inspect.reducers as ours

    ended = passhat("run", "-s", "inspect:my_tasks.py@luck", *MODEL, "-n", 4, "--store", store)
    assert ended.code == 0, ended.err
    assert "20 of 20 attempts: 10 passed, 10 failed, 0 missing" in ended.err
    (run,) = read(store)
    assert run.outcomes.c.tolist() == [0, 1, 2, 3, 4]
    assert run.outcomes.labels["kind"] == ("even", "odd", "even", "odd", "even")

    (log,) = store.parent.rglob("*.eval")
    scores: dict[object, list[Score]] = {}
    for sample in read_eval_log(str(log)).samples or ():
        scores.setdefault(sample.id, []).append((sample.scores or {})["so_often"])
    for k in (1, 2, 3, 4):
        for metric, theirs, mine in (
            (f"pass@{k}", pass_at(k), ours.pass_at(k)),
            (f"pass^{k}", pass_k(k), ours.pass_hat(k)),
        ):
            expected = sum(theirs(each).as_float() for each in scores.values()) / len(scores)
            again = sum(mine(each).as_float() for each in scores.values()) / len(scores)
            assert estimate(run.outcomes, metric).value == pytest.approx(expected, abs=1e-12)
            assert again == pytest.approx(expected, abs=1e-12)


def test_the_protocol_says_what_inspect_was_told(passhat: Call, folder: Path, store: Path) -> None:
    run = ("run", "-s", "inspect:my_tasks.py@luck", *MODEL, "-n", 1, "--store", store)
    passhat(*run, "--task", "3", "--temperature", "0.7")
    with open_store(str(store)) as found:
        (first,) = found.runs()
        told = found.protocol(first.id)
    assert (first.agent, first.tasks) == ("inspect:mockllm/model", 1)
    assert (told.suite, told.judge) == ("inspect:my_tasks.py@luck", "so_often")
    assert (told.max_steps, told.decoding["temperature"]) == (10, 0.7)
    tasks = folder / "my_tasks.py"
    before = tasks.read_text()
    tasks.write_text(before.replace('f"{i}?"', 'f"{i}!"'))
    passhat(*run, "--task", "3", "--temperature", "0.7")
    tasks.write_text(before)
    with open_store(str(store)) as found:
        assert len(found.runs()) == 2  # another question, another run


def test_only_what_is_missing_is_asked_for(passhat: Call, store: Path) -> None:
    run = ("run", "-s", "inspect:my_tasks.py@broken", *MODEL, "--store", store)
    passhat(*run, "-n", 2)
    gone = (-1, "judge_error")
    assert _verdicts(store) == {
        "sound": [(1, 1, ""), (2, 1, "")],
        "broken": [(1, *gone), (2, *gone)],
    }
    # The second time one sample lacks one attempt, the other all three: two evaluations.
    ended = passhat(*run, "-n", 3, "--only-missing", "--verbose")
    made = sorted(line.split()[1] for line in ended.err.splitlines() if "#" in line)
    assert made == ["broken#1", "broken#2", "broken#3", "sound#3"]
    assert _verdicts(store)["sound"] == [(1, 1, ""), (2, 1, ""), (3, 1, "")]
    assert len(list(store.parent.rglob("*.eval"))) == 3
    assert "attempts:" not in passhat(*run, "-n", 3).err  # nothing is left to do


def test_stopped_it_goes_on(passhat: Call, folder: Path, store: Path) -> None:
    words = ["run", "-s", "inspect:my_tasks.py@waits", *MODEL, "-n", "3", "--store", str(store)]
    program = str(Path(sys.executable).with_name("passhat"))
    finished: list[str] = []
    with subprocess.Popen(
        [program, *words, "--verbose"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while len(finished) < 2:
            line = process.stderr.readline()
            assert line, finished
            finished += [line.split()[1]] if "#" in line else []
        os.kill(process.pid, signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    assert sorted(finished) == ["a#1", "b#1"]
    (folder / "go").touch()
    ended = passhat(*words)
    (folder / "go").unlink()
    assert ended.code == 0
    assert "4 of 4 attempts" in ended.err  # what was finished is not made again
    assert {task: len(rows) for task, rows in _verdicts(store).items()} == {"a": 3, "b": 3}


def test_a_log_that_a_killed_run_left_behind_is_taken_in(passhat: Call, store: Path) -> None:
    run = ("run", "-s", "inspect:my_tasks.py@luck", *MODEL, "-n", 2, "--store", store)
    passhat(*run)
    before = _verdicts(store)
    with open_store(str(store)) as found:
        found.remove(found.runs()[0].id)
    (taken,) = store.parent.rglob("taken.json")
    host, _, _ = this_owner().partition("/")
    asked = {**json.loads(taken.read_text()), "owner": f"{host}/4194305/0"}  # runs no more
    taken.with_name("asked.json").write_text(json.dumps(asked))
    taken.unlink()
    assert "attempts:" not in passhat(*run).err  # nothing had to be made again
    assert _verdicts(store) == before
    assert len(list(store.parent.rglob("*.eval"))) == 1


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("nothing.py", "nothing.py is not a file, a module or a registered task"),
        ("my_tasks.py@lick", "'lick' not found"),
        ("my_tasks.py", "name one: my_tasks.py@luck"),
        ("no_package/task", "is not a file, a module or a registered task"),
        ("my_tasks.py@two_scorers", "Choose with --set scorer=NAME: so_often, match"),
    ],
)
def test_a_wrong_suite_is_explained(passhat: Call, store: Path, suite: str, said: str) -> None:
    ended = passhat("run", "-s", f"inspect:{suite}", *MODEL, "--store", store)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_a_scorer_is_chosen_and_a_module_will_do(passhat: Call, store: Path) -> None:
    run = ("run", "-s", "inspect:my_tasks@two_scorers", *MODEL, "-n", 2, "--store", store)
    assert passhat(*run, "--set", "scorer=so_often").code == 0
    assert _verdicts(store) == {"a": [(1, 1, ""), (2, 0, "unknown_failure")]}


def test_a_wrong_model_or_agent_is_explained(passhat: Call, store: Path) -> None:
    luck = "inspect:my_tasks.py@luck"
    for suite, agent, said in (
        (luck, "inspect:nobody/model", "Model API nobody"),
        (luck, "inspect:gpt", "Models read PROVIDER/MODEL"),
        (luck, "demo:careful", "run by inspect itself"),
        ("orderdesk/retail", "inspect:mockllm/model", "cannot attempt orderdesk/retail"),
    ):
        ended = passhat("run", "-s", suite, "-a", agent, "-n", 1, "--store", store)
        assert ended.code == 2
        assert said in " ".join(ended.err.split())


def test_without_the_extra_it_is_named(
    passhat: Call, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    from passhat.integrations.inspect import inspect_suite

    monkeypatch.setattr(inspect_suite, "InspectProcess", InspectProcess)
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    ended = passhat("run", "-s", "inspect:my_tasks.py@luck", *MODEL, "--store", store)
    assert ended.code == 2
    assert "passhat[inspect]" in ended.err


def test_answers_reasons_conversations_and_calls_are_kept(passhat: Call, store: Path) -> None:
    ended = passhat("run", "-s", "inspect:my_tasks.py@talk", *MODEL, "-n", 2, "--store", store)
    assert ended.code == 0, ended.err
    with open_store(str(store), must_exist=True) as found:
        run = found.runs()[-1].id
        attempt = found.attempt(run, "sum", 1)
        calls = found.calls(run, "sum", 1)
        rows = [row for block in found.rows(run) for row in block]
    assert attempt is not None
    five = "It is" + " five" * 60
    assert [(entry["role"], entry["text"]) for entry in attempt.transcript] == [
        ("system", "Be brief. [redacted]"),
        ("user", "2 + 3?"),
        ("agent", "tool call for tool add"),
        ("agent", '<json>{"name": "add", "arguments": {"x": 2, "y": 3}}</json>'),
        ("tool", "5"),
        ("agent", five),
    ]
    assert (attempt.why, attempt.detail) == (
        "truncated",
        "cut at the token limit (6 tokens); the judge: too long",
    )
    # The answer that was judged, the same one twice.
    assert [row[9] for row in rows] == [hashlib.sha256(b"five").hexdigest()[:16]] * 2
    facts = [
        (call["name"], call.get("role", "agent"), call.get("stop"), call.get("input_tokens"))
        for call in calls
    ]
    assert facts == [
        ("mockllm/model", "agent", "tool_calls", 30),
        ("add", "tool", None, None),
        ("mockllm/model", "agent", "length", 40),
        ("mockllm/model", "judge", "stop", 9),
    ]
    assert (calls[1]["request"], calls[1]["reply"]) == ({"x": 2, "y": 3}, "5")
    assert (calls[2]["cached_tokens"], calls[2]["reasoning_tokens"]) == (2, 1)
    asked = [message["role"] for message in calls[2]["request"]["messages"]]
    assert asked == ["system", "user", "assistant", "tool"]
    shown = passhat("report", store, "--full").out
    assert "50% of answers were cut at 6 tokens" in shown
    (first, _) = [json.loads(line) for line in passhat("export", store).out.splitlines()]
    assert (first["answer"], first["detail"], first["retries"]) == (five, attempt.detail, 0)
    assert "sk-abc" not in passhat("show", run, "sum#1", "--calls", "--store", store).out


def test_a_sample_of_another_shape_loses_no_verdict() -> None:
    record = AttemptRecord("t", 1, Judgement.failed(FailureCategory.WRONG_ANSWER))
    strange: list[dict[str, Any]] = [
        {},
        {"messages": 3, "events": [1, {"event": "model"}, {"event": "tool"}], "scores": []},
        {"messages": [{"role": "user", "content": [{"type": "image"}, "x"]}], "attachments": 1},
        {"events": [{"event": "model", "output": {"choices": [], "usage": {"input_tokens": "x"}}}]},
    ]
    for sample in strange:
        kept = with_conversation(record, sample, "s", Redactor())
        assert kept.judgement.why == "wrong_answer"
    long = {"messages": [{"role": "assistant", "content": "attachment://1"}]}
    kept = with_conversation(record, {**long, "attachments": {"1": "long"}}, "s", Redactor())
    assert kept.transcript == [{"role": "agent", "text": "long"}]
