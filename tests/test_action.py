"""The GitHub Action: its scripts with stand-ins for passhat and gh, its steps with passhat."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from passhat.cli import init

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = {
    "example": yaml.safe_load((ROOT / "docs/examples/github-actions.yml").read_text()),
    "init": yaml.safe_load(init._WORKFLOW.replace("{install}", init._install_step())),
}
HERE = str(Path(sys.executable).parent)

GH = """#!/usr/bin/env python3
import json, os, pathlib, sys
if os.environ.get("READ_ONLY") == "1" and ("POST" in sys.argv or "PATCH" in sys.argv):
    sys.exit("HTTP 403: Resource not accessible by integration")
if os.environ.get("READ_ONLY") == "2":
    sys.exit("HTTP 401: Bad credentials")
log = pathlib.Path("comments.json")
comments = json.loads(log.read_text()) if log.exists() else []
arguments = sys.argv[1:]
assert arguments[0] == "api", arguments
bodies = [one.partition("=@")[2] for one in arguments if one.startswith("body=@")]
body = pathlib.Path(bodies[0]).read_text() if bodies else ""
if "POST" in arguments:
    comments.append({"id": 100 + len(comments), "body": body})
elif "PATCH" in arguments:
    number = int(next(one for one in arguments if "comments/" in one).rpartition("/")[2])
    next(one for one in comments if one["id"] == number)["body"] = body
else:
    marker = next(one for one in arguments if "startswith" in one).split('"')[1]
    print("\\n".join(str(one["id"]) for one in comments if one["body"].startswith(marker)))
log.write_text(json.dumps(comments))
"""

# Notes how it was called, writes what it is asked to, and ends with $CODE_run, $CODE_gate ...
PASSHAT = """#!/bin/bash
echo "$@" >> calls.txt
if [ "$1" = gate ]; then
  if [ "${CODE_gate:-0}" = 2 ]; then echo "passhat: baseline.jsonl: holds no row." >&2; exit 2; fi
  echo "new against old  ${VERDICT:-No regression.}"
  echo "# ${VERDICT:-No regression.}" > passhat-gate.md
fi
[ "$1" != runs ] || echo "[{\\"name\\": \\"$RUNS\\"}]"
[ "$1" != gate ] || echo "{\\"verdict\\": \\"${JSON:-shown}\\"}" > passhat-gate.json
[ "$1" != export ] || echo "{}" > "${@: -1}"
code="CODE_$1"
exit "${!code:-0}"
"""

AGENT = """
import os

def answer(prompt):
    if os.environ.get("BROKEN") == "1" and prompt.startswith("easy"):
        return "no"
    return "yes"
"""


class Runner:
    """A folder in which the action's scripts and steps run, as the GitHub runner runs them."""

    def __init__(self, folder: Path, *, stub: bool) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        programs = {"gh": GH, "python": "#!/bin/sh\nexit 0\n"}  # nothing is installed here
        if stub:
            programs["passhat"] = PASSHAT
        for name, text in programs.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        (folder / "agent.py").write_text(AGENT)
        tasks = [
            {"id": f"{kind}{i}", "prompt": f"{kind} question {i}", "answer": "yes"}
            for kind in ("easy", "hard")
            for i in range(3)
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))

    def execute(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=self.folder,
            env={
                **os.environ,
                **environment,
                "PATH": ":".join([str(self.folder / "bin"), HERE, os.environ["PATH"]]),
                "GITHUB_OUTPUT": str(self.folder / "output.txt"),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                "GITHUB_ACTION_PATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def outputs(self) -> dict[str, str]:
        path = self.folder / "output.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)

    def calls(self, word: str) -> list[str]:
        path = self.folder / "calls.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(word)]

    def run(self, inputs: Mapping[str, str], number: int = 1, **environment: str) -> dict[str, str]:
        """Run all steps whose condition holds; outputs, and how the job ended as ``result``."""
        given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
        given |= {"token": "t", **inputs}
        (self.folder / "output.txt").unlink(missing_ok=True)
        for step in ACTION["runs"]["steps"]:
            values = self._values(given, number)
            if "uses" in step or not _evaluate(step.get("if", "true"), values):
                continue
            filled = {name: _fill(str(text), values) for name, text in step.get("env", {}).items()}
            done = self.execute(step["run"], **environment, **filled)
            if done.returncode:
                return {**self.outputs(), "result": str(done.returncode), "step": step["name"]}
        return {**self.outputs(), "result": "0"}

    def _values(self, inputs: Mapping[str, str], number: int) -> dict[str, str]:
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        outputs = self.outputs()
        for name in ("exit-code", "verdict", "gated", "settled", "key"):
            values[f"steps.gate.outputs.{name}"] = outputs.get(name, "")
        values["steps.run.outputs.run-exit-code"] = outputs.get("run-exit-code", "")
        github = {"event_name": "pull_request", "repository": "o/r", "server_url": "https://x"}
        github |= {"workflow": "ci", "job": "gate"}
        github |= {"run_id": str(number), "run_attempt": "1", "event.pull_request.number": "7"}
        values["strategy.job-index"] = "0"
        return values | {f"github.{name}": value for name, value in github.items()}


def _fill(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{(.+?)\}\}", lambda match: str(_evaluate(match[1], values)), text)


def _evaluate(expression: str, values: Mapping[str, str]) -> object:
    """The value of a workflow expression, of the few forms that the action uses."""
    text = expression.strip()
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(name, repr(values[name]))
    text = text.replace("&&", " and ").replace("||", " or ").replace("true", "True", 1)
    text = re.sub(r"'True'", "'true'", text)
    return eval(text, {"format": lambda form, *words: form.format(*words)})


@pytest.fixture
def stub(tmp_path: Path) -> Runner:
    return Runner(tmp_path, stub=True)


BOTH = {"baseline": "baseline.jsonl", "save-baseline": "baseline.jsonl"}


def test_without_a_baseline_the_job_is_green_says_so_and_the_first_one_is_saved(
    stub: Runner,
) -> None:
    ended = stub.run(BOTH)
    assert ended["result"] == "0"
    assert ended["gated"] == "false"
    assert ended["verdict"].startswith("No baseline yet (baseline.jsonl does not exist)")
    assert [call.split()[2:] for call in stub.calls("gate")] == [["pass^1", ">=", "0"]]
    assert (stub.folder / "baseline.jsonl").exists()
    assert "No baseline yet" in (stub.folder / "summary.md").read_text()


@pytest.mark.parametrize("code", ["2", "4"])
def test_what_was_never_judged_is_no_first_baseline(stub: Runner, code: str) -> None:
    ended = stub.run(BOTH, CODE_gate=code, VERDICT="Incomplete: no attempt has a verdict.")
    assert ended["result"] == ended["exit-code"] == code
    assert stub.calls("export") == []
    assert not (stub.folder / "baseline.jsonl").exists()


def test_rules_that_wait_for_a_baseline_are_named(stub: Runner) -> None:
    inputs = {"RULES": "pass^1 >= base - 0.03\npass^1 >= 0.1", "BASELINE": "nope.jsonl"}
    empty = dict.fromkeys(("MARGIN", "MAX_MISSING", "RESULTS", "RUN_OPTIONS", "SAVE"), "")
    gate = f"bash {ROOT}/.github/action/gate.sh"
    done = stub.execute(
        gate, SOURCE="new.jsonl", CONFIRM="True", UNSETTLED="warn", **inputs, **empty
    )
    assert "not asked: pass^1 >= base - 0.03" in done.stdout
    assert stub.outputs()["verdict"].endswith("No regression.")


def test_the_first_baseline_may_be_in_a_folder_that_is_not_there_yet(stub: Runner) -> None:
    target = "kept/of main/baseline.jsonl"
    assert stub.run({"baseline": target, "save-baseline": target})["result"] == "0"
    assert (stub.folder / target).exists()


def test_the_gate_comes_before_the_save_and_a_red_one_leaves_the_baseline_alone(
    stub: Runner,
) -> None:
    baseline = stub.folder / "baseline.jsonl"
    baseline.write_text("the last good one\n")
    red = stub.run(BOTH, CODE_gate="1", VERDICT="Regression: 1 task broke.")
    assert (red["result"], red["step"], red["exit-code"]) == ("1", "Result", "1")
    assert red["verdict"] == "new against old  Regression: 1 task broke."
    assert baseline.read_text() == "the last good one\n"
    assert stub.calls("export") == []
    assert stub.run(BOTH)["result"] == "0"
    assert baseline.read_text() == "{}\n"
    words = [line.split()[0] for line in stub.calls("")]
    assert words.index("gate") < words.index("export")


@pytest.mark.parametrize("code", ["3", "4"])
def test_codes_of_the_gate_are_the_codes_of_the_job(stub: Runner, code: str) -> None:
    (stub.folder / "baseline.jsonl").write_text("{}\n")
    ended = stub.run({**BOTH, "unsettled": "fail"}, CODE_gate=code)
    assert ended["result"] == ended["exit-code"] == code
    assert stub.calls("export") == []


def test_missing_attempts_are_never_swallowed(stub: Runner) -> None:
    alone = stub.run(BOTH, CODE_run="4")
    assert alone["result"] == alone["run-exit-code"] == "4"
    assert alone["verdict"].startswith("Incomplete: passhat run ended with 4")
    assert not (stub.folder / "baseline.jsonl").exists()  # half a run is no baseline
    (stub.folder / "baseline.jsonl").write_text("{}\n")
    judged = stub.run(BOTH, CODE_run="4", CODE_gate="4", VERDICT="Incomplete: 3 of 6.")
    assert judged["result"] == "4"
    (comment,) = json.loads((stub.folder / "comments.json").read_text())
    assert "passhat run ended with 4" in comment["body"]


def test_a_run_that_fails_ends_the_job_with_its_code(stub: Runner) -> None:
    ended = stub.run(BOTH, CODE_run="130")
    assert (ended["result"], ended["step"]) == ("130", "Run the agent")
    assert stub.calls("gate") == stub.calls("export") == []


def test_a_baseline_that_cannot_be_read_is_red_and_says_why(stub: Runner) -> None:
    (stub.folder / "baseline.jsonl").write_text("")
    ended = stub.run(BOTH, CODE_gate="2")
    assert ended["result"] == "2"
    assert ended["verdict"] == "passhat: baseline.jsonl: holds no row."
    (comment,) = json.loads((stub.folder / "comments.json").read_text())
    assert "holds no row" in comment["body"]


@pytest.mark.parametrize("token", ["1", "2"])
@pytest.mark.parametrize("code", ["0", "1"])
def test_a_comment_that_cannot_be_written_changes_no_verdict(
    stub: Runner, token: str, code: str
) -> None:
    (stub.folder / "baseline.jsonl").write_text("{}\n")
    ended = stub.run(BOTH, CODE_gate=code, READ_ONLY=token)
    assert ended["result"] == code
    comments = stub.folder / "comments.json"
    assert not comments.exists() or json.loads(comments.read_text()) == []


def test_one_comment_is_kept_up_to_date(stub: Runner) -> None:
    (stub.folder / "baseline.jsonl").write_text("{}\n")
    stub.run(BOTH, CODE_gate="1", VERDICT="Regression.")
    stub.run(BOTH, VERDICT="No regression.")
    (comment,) = json.loads((stub.folder / "comments.json").read_text())
    assert "# No regression." in comment["body"]
    assert "https://x/o/r/actions/runs/1#artifacts" in comment["body"]


def test_two_gates_of_a_pull_request_have_a_comment_each(stub: Runner) -> None:
    for suite in ("jsonl:a.jsonl", "jsonl:b.jsonl", "jsonl:a.jsonl"):
        stub.run({**BOTH, "suite": suite}, VERDICT=f"No regression on {suite}.")
    comments = json.loads((stub.folder / "comments.json").read_text())
    assert [text in one["body"] for one in comments for text in ("a.jsonl", "b.jsonl")] == [
        *(True, False),
        *(False, True),
    ]


def test_a_gate_that_is_not_settled_saves_no_baseline(stub: Runner) -> None:
    baseline = stub.folder / "baseline.jsonl"
    baseline.write_text("the last good one\n")
    ended = stub.run(BOTH, JSON="not settled", VERDICT="Unsettled (warning).")
    assert (ended["result"], ended["settled"]) == ("0", "false")
    assert baseline.read_text() == "the last good one\n"


@pytest.mark.parametrize("name", ["gpt-4.1-main", "team/nightly"])
def test_a_run_of_the_store_may_have_a_dot_or_a_slash(stub: Runner, name: str) -> None:
    assert stub.run({"baseline": name}, RUNS=name)["gated"] == "true"
    (gate,) = stub.calls("gate")
    assert f"--against {name} " in gate
    assert stub.run({"baseline": f"{name}2"}, RUNS=name)["gated"] == "false"


def test_inputs_become_options(stub: Runner) -> None:
    (stub.folder / "base.csv").write_text("x")
    stub.run(
        {
            "agent": "python:a:b",
            "suite": "jsonl:t.jsonl",
            "attempts": "8",
            "run-options": "--jobs 2",
            "baseline": "base.csv",
            "margin": "5",
            "max-missing": "2",
            "confirm": "16",
        },
        number=9,
    )
    (run,), (gate,) = stub.calls("run"), stub.calls("gate")
    assert run == (
        "run --name candidate-9-1 --agent python:a:b --suite jsonl:t.jsonl --attempts 8 --jobs 2"
    )
    assert gate.startswith(
        "gate candidate-9-1 --against base.csv --margin 5 --max-missing 2 --confirm 16 "
        "--again --jobs 2 --unsettled warn -o passhat-gate.xml"
    )


def test_rules_without_their_baseline_are_judged_as_far_as_they_can_be(stub: Runner) -> None:
    rules = "pass^4 >= 0.6\n\npass^1 >= base - 0.05\n"
    stub.run({"results": "mine.csv", "rules": rules, "baseline": "none.jsonl"})
    assert stub.calls("run ") == []
    (gate,) = stub.calls("gate")
    assert gate.startswith("gate mine.csv pass^4 >= 0.6 --unsettled")


def test_with_passhat_itself(tmp_path: Path) -> None:
    runner = Runner(tmp_path, stub=False)
    inputs = {"agent": "python:agent:answer", "suite": "jsonl:tasks.jsonl", "attempts": "6"}
    first = runner.run({**inputs, **BOTH}, 1)
    assert (first["result"], first["gated"]) == ("0", "false"), first
    baseline = (tmp_path / "baseline.jsonl").read_text()
    assert len(baseline.splitlines()) == 36

    red = runner.run({**inputs, **BOTH}, 2, BROKEN="1")
    assert red["result"] == red["exit-code"] == "1", red
    assert "Regression" in red["verdict"]
    assert (tmp_path / "baseline.jsonl").read_text() == baseline
    (comment,) = json.loads((tmp_path / "comments.json").read_text())
    for text in (
        "Broken, first and fresh attempts counted: easy",
        "Before and after",
        "caught a drop of",
    ):
        assert text in comment["body"], comment["body"]
    assert "easy0" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "passhat-gate.xml").read_text().startswith("<testsuites")
    assert (tmp_path / "passhat-report.html").exists()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_use_inputs_the_action_has(name: str) -> None:
    workflow = WORKFLOWS[name]
    steps: list[dict[str, Any]] = workflow["jobs"]["gate"]["steps"]
    (ours,) = [step for step in steps if step.get("uses", "").startswith("passhat/")]
    assert set(ours["with"]) <= set(ACTION["inputs"])
    assert ours["with"]["baseline"] == "baseline.jsonl"
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    caches = [step["uses"] for step in steps if "cache" in step.get("uses", "")]
    assert caches == ["actions/cache/restore@v4", "actions/cache/save@v4"]


def test_every_script_of_the_action_is_used() -> None:
    used = set(re.findall(r"\.github/action/(\w+\.sh)", (ROOT / "action.yml").read_text()))
    assert used == {path.name for path in (ROOT / ".github/action").iterdir()}
