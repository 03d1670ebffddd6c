"""A real checkout of tau2-bench, where PASSHAT_TAU2 names one: its mock domain, 10 tasks x 4."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import estimate, read
from passhat.store import open_store

REAL = Path(os.environ.get("PASSHAT_TAU2", "no checkout is named"))

GOLD = """
import json, os, pathlib

PATH = pathlib.Path(os.environ["PASSHAT_TAU2"], "data/tau2/domains/mock/tasks.json")
CRITERIA = {task["id"]: task["evaluation_criteria"] for task in json.loads(PATH.read_text())}

class Gold:
    def __init__(self):
        self.left = None
    def __call__(self, prompt, attempt):
        wanted = CRITERIA[attempt.task]
        if self.left is None:
            self.left = list(wanted.get("actions") or ())
        if self.left:
            name, given = self.left[0]["name"], self.left.pop(0)["arguments"]
        else:
            said = " ".join(["Done.", *(wanted.get("communicate_info") or ())])
            name, given = "respond", {"content": said}
        return "<json>" + json.dumps({"name": name, "arguments": given}) + "</json>"
"""


VERIFY = """
import json, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from tau2.data_model.simulation import Results
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
from tau2.metrics.agent_metrics import compute_metrics

results = Results.load(__import__("pathlib").Path(sys.argv[1]))
tasks = {task.id: task for task in results.tasks}
differ = raised = 0
for one in results.simulations:
    try:
        again = evaluate_simulation(simulation=one, task=tasks[one.task_id], solo_mode=False,
                                    evaluation_type=EvaluationType.ALL, domain="mock")
        differ += again.reward != one.reward_info.reward
    except Exception:
        raised += 1
        differ += one.reward_info.reward != 0
known = {str(k): float(value) for k, value in compute_metrics(results).pass_hat_ks.items()}
print(json.dumps({"count": len(results.simulations), "differ": differ, "raised": raised,
                  "pass_hat": known}))
"""

real = pytest.mark.skipif(
    not (REAL / "src" / "tau2" / "registry.py").is_file() or not (REAL / "data").is_dir(),
    reason="PASSHAT_TAU2 names no real checkout",
)


@real
def test_its_mock_domain_with_scripted_agent_and_user(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "gold_agent.py").write_text(GOLD)
    ended = passhat("run", "-s", "tau2:mock", "-a", "python:gold_agent:Gold", "-n", 4)
    assert ended.code == 0, ended.err
    with open_store(".passhat/passhat.db") as store:
        (run,) = store.runs()
    # Two tasks need what no gold action says: a check without actions, a tool of the user's.
    assert (run.tasks, run.attempts, run.missing, run.passed) == (10, 40, 0, 32)


@real
def test_rewards_and_metrics_are_those_of_tau2(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its evaluator regrades every simulation, its metrics are computed from what was kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "gold_agent.py").write_text(GOLD)
    monkeypatch.setenv("PASSHAT_TAU2_SAVE", str(tmp_path / "kept"))
    ended = passhat("run", "-s", "tau2:mock", "-a", "python:gold_agent:Gold", "-n", 2)
    assert ended.code == 0, ended.err
    python = os.environ.get("PASSHAT_TAU2_PYTHON", str(REAL / ".venv" / "bin" / "python"))
    done = subprocess.run(
        [python, "-c", VERIFY, str(tmp_path / "kept")], capture_output=True, text=True, check=True
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    assert (theirs["count"], theirs["differ"]) == (20, 0)
    (run,) = read(".passhat/passhat.db")
    for k, value in theirs["pass_hat"].items():
        assert estimate(run, f"pass^{k}").value == pytest.approx(value, abs=1e-12)
