"""Conversations in logs of other tools: read where they are needed, in the form of the store."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.errors import ReadError
from passhat.readers import Needs
from passhat.readers.parsing import transcript_entries
from passhat.readers.store import attempt_record
from passhat.reporting.answers import find_differences
from passhat.reporting.why import read_traces
from passhat.stats.why import Step

WANTED = (Step("find", {"id": 7}, failed=True), Step("pay", {"sum": 2}))


def messages(style: str) -> list[dict[str, Any]]:
    """The same conversation as each tool writes it."""

    def call(name: str, arguments: dict[str, object]) -> dict[str, Any]:
        if style == "tau2":
            return {"id": "1", "name": name, "arguments": arguments}
        if style == "inspect":
            return {"id": "1", "function": name, "arguments": arguments}
        return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

    failure: dict[str, Any] = {"role": "tool", "content": "not found", "error": True}
    if style == "inspect":
        failure |= {"error": {"type": "unknown", "message": "not found"}}
    if style == "openai":
        failure = {"role": "tool", "content": "Error: not found"}
    return [
        {"role": "user", "content": "Pay it."},
        {"role": "assistant", "content": None, "tool_calls": [call("find", {"id": 7})]},
        failure,
        {"role": "assistant", "content": "Paying.", "tool_calls": [call("pay", {"sum": 2})]},
        {"role": "tool", "content": "ok"},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def write_tau2(folder: Path) -> Path:
    simulations = [
        {"id": "a", "task_id": "1", "trial": 0, "termination_reason": "agent_stop",
         "reward_info": {"reward": 1.0}, "messages": messages("tau2")},
    ]  # fmt: skip
    info = {"environment_info": {"domain_name": "d"}, "agent_info": {"llm": "m"}}
    path = folder / "tau2.json"
    path.write_text(json.dumps({"info": info, "tasks": [], "simulations": simulations}))
    return path


def write_tau(folder: Path) -> Path:
    row = {"task_id": 1, "reward": 1.0, "trial": 0, "info": {}, "traj": messages("openai")}
    path = folder / "tau.json"
    path.write_text(json.dumps([row]))
    return path


def inspect_log() -> dict[str, Any]:
    score = {"match": {"value": "C"}}
    sample = {"id": "1", "epoch": 1, "scores": score, "messages": messages("inspect")}
    about = {"task": "t", "task_id": "x", "model": "m", "config": {"epochs": 1}, "dataset": {}}
    return {"version": 2, "status": "success", "eval": about, "plan": {}, "samples": [sample]}


def write_inspect_json(folder: Path) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(inspect_log()))
    return path


def write_inspect_zip(folder: Path) -> Path:
    log = inspect_log()
    (sample,) = log.pop("samples")
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(log))
        summary = {name: sample[name] for name in ("id", "epoch", "scores")}
        archive.writestr("summaries.json", json.dumps([summary]))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    return path


def write_promptfoo(folder: Path) -> Path:
    result = {
        "provider": {"id": "p"}, "prompt": {"raw": "Pay it."}, "vars": {"a": 1}, "success": True,
        "response": {"output": "Done."}, "metadata": {"messages": messages("openai")},
    }  # fmt: skip
    path = folder / "promptfoo.json"
    path.write_text(json.dumps({"results": {"version": 3, "results": [result], "stats": {}}}))
    return path


@pytest.mark.parametrize(
    "write", [write_tau2, write_tau, write_inspect_json, write_inspect_zip, write_promptfoo]
)
def test_calls_of_a_log(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path)
    (run,) = read(path, needs=Needs(conversations=True))
    (attempt,) = read_traces(run)
    assert attempt.trace is not None
    assert attempt.trace.calls == WANTED
    assert attempt.trace.messages == 2
    assert attempt.trace.passed
    (without,) = read(path)
    assert without.attempts is not None
    assert "conversation" not in without.attempts.extras
    assert run.attempts is not None
    (one,) = run.attempts
    assert "conversation" not in one.to_dict()


def test_tools_of_a_simulated_user_are_not_the_agents() -> None:
    talk = [
        {
            "role": "user",
            "tool_calls": [{"name": "reboot", "arguments": {}}],
            "content": "one moment",
        },
        {"role": "tool", "requestor": "user", "content": "ok"},
    ]
    assert list(transcript_entries(talk)) == [("user", "one moment"), ("other", "ok")]


def test_what_is_no_message_is_left_out() -> None:
    odd = [
        3,
        {"role": "assistant", "tool_calls": ["x", {"function": {"name": "a", "arguments": "{"}}]},
    ]
    ((role, text),) = transcript_entries(odd)
    assert role == "agent"
    assert '"name": "a"' in text
    assert list(transcript_entries(None)) == []


def _transcript(path: Path) -> dict[str, str]:
    """The last text of every role of the only attempt of a log, as it is imported."""
    (run,) = read(path, needs=Needs(conversations=True))
    assert run.attempts is not None
    (attempt,) = run.attempts
    return {entry["role"]: entry["text"] for entry in attempt_record(attempt).transcript}


def test_a_target_of_inspect_is_imported_beside_the_answer(tmp_path: Path) -> None:
    log = inspect_log()
    for target, text in (("Paid.", "Paid."), (["Paid."], "Paid."), (["a", "b"], '["a", "b"]')):
        log["samples"][0]["target"] = target
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        assert _transcript(path) | {"user": "", "tool": ""} == {
            "user": "",
            "agent": "Done.",
            "tool": "",
            "expected": text,
        }


@pytest.mark.parametrize("style", ["tau2", "openai"])
def test_expected_actions_are_compared_with_calls_of_the_same_tools(
    tmp_path: Path, style: str
) -> None:
    """The call of find failed, so only pay counts; its argument differs."""
    actions = [
        {"name": "find", "arguments": {"id": 7}, "kwargs": {"id": 7}},
        {"name": "pay", "arguments": {"sum": 3}, "kwargs": {"sum": 3}},
    ]
    if style == "tau2":
        path = write_tau2(tmp_path)
        log = json.loads(path.read_text())
        log["tasks"] = [{"id": "1", "evaluation_criteria": {"actions": actions}}]
    else:
        path = write_tau(tmp_path)
        log = json.loads(path.read_text())
        log[0]["info"]["task"] = {"actions": actions}
    path.write_text(json.dumps(log))
    texts = _transcript(path)
    assert json.loads(texts["expected"]) == {"find": {"id": 7}, "pay": {"sum": 3}}
    assert json.loads(texts["got"]) == {"pay": {"sum": 2}}
    assert list(find_differences(texts["expected"], texts["got"])) == [
        'find is absent, expected {"id": 7}',
        "pay.sum is 2, expected 3",
    ]


def test_assertions_of_promptfoo_and_deepeval_are_imported(tmp_path: Path) -> None:
    checks = [{"type": "equals", "value": "4"}, {"type": "javascript", "value": "output > 3"}]
    row = {
        "prompt": {"raw": "2 + 2?"},
        "vars": {"q": "2 + 2?"},
        "testCase": {"vars": {"q": "2 + 2?"}, "assert": checks},
        "provider": {"id": "m"},
        "success": False,
        "response": {"output": "5"},
    }
    path = tmp_path / "promptfoo.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": [row]}}))
    assert _transcript(path) == {"user": "2 + 2?", "agent": "5", "expected": "4"}
    case = {"input": "2 + 2?", "success": False, "actualOutput": "5", "expectedOutput": "4"}
    path = tmp_path / "deepeval.json"
    path.write_text(json.dumps({"testCases": [case]}))
    assert _transcript(path) == {"agent": "5", "expected": "4"}


def test_secrets_of_a_log_are_not_imported(tmp_path: Path) -> None:
    log = inspect_log()
    log["samples"][0]["target"] = "sk-abcdefghijklmnopqrstuvwx"
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    assert "sk-abc" not in _transcript(path)["expected"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_stated_column_of_expected_answers_stands_beside_the_answer(
    tmp_path: Path, kind: str
) -> None:
    rows = [{"task": "a", "attempt": i, "passed": i, "answer": ["five", "four"][i]} for i in (0, 1)]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        lines = [",".join(map(str, [*row.values(), "four"])) for row in rows]
        path.write_text("\n".join(["task,attempt,passed,answer,gold", *lines]))
    else:
        path.write_text("\n".join(json.dumps({**row, "gold": "four"}) for row in rows))
    needs = Needs(conversations=True)
    (run,) = read(path, columns={"expected": "gold"}, needs=needs)
    assert run.attempts is not None
    texts = [attempt_record(attempt).transcript for attempt in run.attempts]
    assert [[entry["text"] for entry in one] for one in texts] == [["five", "four"], ["four"] * 2]


@pytest.mark.parametrize("lines", [1, 2])
def test_spans_of_opentelemetry_say_that_they_have_no_verdicts(tmp_path: Path, lines: int) -> None:
    span = {"traceId": "5b8e", "spanId": "eee1", "name": "invoke_agent"}
    record = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    path = tmp_path / "spans.json"
    path.write_text("\n".join([json.dumps(record)] * lines))
    with pytest.raises(ReadError, match="OpenTelemetry spans, with neither tasks nor verdicts"):
        read(path)
