"""The GitHub Action, executed as far as a shell can: real passhat, and a stand-in for ``gh``."""

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

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOW = yaml.safe_load((ROOT / "docs/examples/github-actions.yml").read_text())

HERE = str(Path(sys.executable).parent)
GH = """#!/usr/bin/env python3
import json, pathlib, sys
log = pathlib.Path("comments.json")
comments = json.loads(log.read_text()) if log.exists() else []
arguments = sys.argv[1:]
assert arguments[0] == "api", arguments
bodies = [one.partition("=")[2] for one in arguments if one.startswith("body=")]
if "POST" in arguments:
    comments.append({"id": 100 + len(comments), "body": bodies[0]})
elif "PATCH" in arguments:
    number = int(next(one for one in arguments if "comments/" in one).rpartition("/")[2])
    next(one for one in comments if one["id"] == number)["body"] = bodies[0]
else:
    print("\\n".join(str(one["id"]) for one in comments if one["body"].startswith("<!-- passhat")))
log.write_text(json.dumps(comments))
"""

AGENT = """
import os, random

def answer(prompt, attempt):
    if os.environ.get("BROKEN") == "1" and prompt.startswith("easy"):
        return "no"
    return "yes" if random.Random(attempt.seed).random() < 0.9 else "no"
"""


class Runner:
    """Runs the steps of the action in a folder, as the GitHub runner would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/gh").write_text(GH)
        (folder / "bin/gh").chmod(0o755)
        # Nothing is installed here: passhat is.
        (folder / "bin/python").write_text("#!/bin/sh\nexit 0\n")
        (folder / "bin/python").chmod(0o755)
        (folder / "agent.py").write_text(AGENT)
        tasks = [
            {"id": f"{kind}{i}", "prompt": f"{kind} question {i}", "answer": "yes"}
            for kind in ("easy", "hard")
            for i in range(5)
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))

    def run(self, inputs: Mapping[str, str], **environment: str) -> dict[str, str]:
        """Run all steps whose condition holds; return the outputs of the gate."""
        given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
        given |= {"token": "t", **inputs}
        output = self.folder / "output.txt"
        output.write_text("")
        outputs: dict[str, str] = {}
        for step in ACTION["runs"]["steps"]:
            if not self._holds(step.get("if", ""), given, outputs):
                continue
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                env={
                    **os.environ,
                    **environment,
                    **{k: self._filled(v, given, outputs) for k, v in step.get("env", {}).items()},
                    "PATH": ":".join([str(self.folder / "bin"), HERE, os.environ["PATH"]]),
                    "GITHUB_OUTPUT": str(output),
                    "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                    "COLUMNS": "80",
                },
                capture_output=True,
                text=True,
                check=False,
            )
            outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
            if step["name"] == "Result":
                outputs["result"] = str(done.returncode)
            else:
                assert done.returncode == 0, f"{step['name']}: {done.stdout}{done.stderr}"
        return outputs

    def _filled(self, text: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            word = found[1].strip()
            if " || " in word:
                first, other = word.split(" || ")
                return self._filled(f"${{{{ {first} }}}}", inputs, outputs) or other.strip("'")
            known = {
                "github.repository": "o/r",
                "github.event.pull_request.number": "7",
                "steps.gate.outputs.exit-code": outputs.get("exit-code", ""),
            }
            return known[word] if word in known else inputs[word.removeprefix("inputs.")]

        return re.sub(r"\$\{\{(.+?)\}\}", value, str(text))

    def _holds(self, condition: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> bool:
        names: dict[str, str] = {f"inputs.{name}": value for name, value in inputs.items()}
        names |= {"steps.gate.outputs.exit-code": outputs.get("exit-code", "")}
        names |= {"github.event_name": "pull_request"}
        text = condition.replace("&&", " and ").replace("||", " or ")
        for name in sorted(names, key=len, reverse=True):
            text = text.replace(name, repr(names[name]))
        return bool(eval(text)) if text else True


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


INPUTS = {"agent": "python:agent:answer", "suite": "jsonl:tasks.jsonl", "attempts": "8"}


def test_a_baseline_is_made_then_a_change_without_effect_is_green_and_a_break_is_red(
    runner: Runner,
) -> None:
    assert runner.run({**INPUTS, "save-baseline": "baseline.jsonl"}) == {}
    assert len((runner.folder / "baseline.jsonl").read_text().splitlines()) == 80

    other_seeds = {**INPUTS, "baseline": "baseline.jsonl", "run-options": "--seed 5"}
    green = runner.run({**other_seeds, "store": "second.db"})
    assert green["result"] == green["exit-code"] == "0"

    red = runner.run({**other_seeds, "store": "third.db"}, BROKEN="1")
    assert red["result"] == red["exit-code"] == "1"
    (comment,) = json.loads((runner.folder / "comments.json").read_text())
    assert "easy0" in comment["body"]
    assert "easy0" in (runner.folder / "summary.md").read_text()
    assert (runner.folder / "passhat-gate.xml").read_text().startswith("<testsuites")


def test_rules_and_results_made_elsewhere(runner: Runner) -> None:
    (runner.folder / "mine.csv").write_text(
        "task,n,c\n" + "".join(f"t{i},8,8\n" for i in range(40))
    )
    ended = runner.run({"results": "mine.csv", "rules": "pass^4 >= 0.6\nmissing <= 2%\n"})
    assert ended["result"] == "0"


def test_the_example_workflow_uses_inputs_the_action_has() -> None:
    steps: list[dict[str, Any]] = WORKFLOW["jobs"]["gate"]["steps"]
    (ours,) = [step for step in steps if step.get("uses", "").startswith("passhat/")]
    assert set(ours["with"]) <= set(ACTION["inputs"])
    assert WORKFLOW["permissions"]["pull-requests"] == "write"
