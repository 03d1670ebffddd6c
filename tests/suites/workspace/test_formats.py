"""Tasks of other harnesses, and results that are read back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.suites.workspace.conftest import (
    PYTHON_FIXED,
    PYTHON_START,
    PYTHON_TESTS,
    Attempting,
    write_task,
)

from passhat.errors import ReadError
from passhat.suites.workspace.loading import load_folder

HARBOR = """
version = "1.0"
[metadata]
difficulty = "easy"
tags = ["a"]
[verifier]
timeout_sec = 120.0
[agent]
timeout_sec = 240.0
[environment]
memory_mb = 2048
"""
FILES = {
    "instruction.md": "Make it work.\n",
    "environment__Dockerfile": "FROM localhost/base:1\nWORKDIR /app\nCOPY data/ ./data/\n",
    "environment__data__a.txt": "x",
    "tests__test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "solution__solve.sh": "true\n",
}


def test_a_harbor_folder_is_read_as_it_is(tmp_path: Path) -> None:
    write_task(tmp_path / "hello", HARBOR, **FILES)
    (task,) = load_folder(str(tmp_path))
    assert (task.id, task.instruction, task.labels) == (
        "hello",
        "Make it work.\n",
        {"difficulty": "easy"},
    )
    assert (task.image, task.place, task.hidden_place) == (
        "podman:localhost/base:1",
        "/app",
        "/tests",
    )
    assert str(task.result) == "reward:/logs/verifier/reward.txt"
    assert (task.agent_seconds, task.limits.seconds, task.limits.memory) == (240, 120, 2 << 30)
    assert task.start.copies == (("data/", "data/"),)
    assert task.has_reference


def test_a_recipe_that_runs_commands_needs_a_built_image(tmp_path: Path) -> None:
    recipe = "FROM localhost/base:1\nRUN apt-get install -y cowsay\n"
    write_task(tmp_path / "hello", HARBOR, **{**FILES, "environment__Dockerfile": recipe})
    with pytest.raises(ReadError, match="its Dockerfile runs RUN, and no built image is named"):
        load_folder(str(tmp_path))
    built = HARBOR + 'docker_image = "localhost/hello"\n'
    write_task(tmp_path / "hello", built, **{**FILES, "environment__Dockerfile": recipe})
    (task,) = load_folder(str(tmp_path))
    assert task.image == "podman:localhost/hello"


def write_rows(folder: Path, **changes: object) -> Path:
    repo = folder / "repos" / "acme__shop"
    repo.mkdir(parents=True)
    (repo / "shop.py").write_text(PYTHON_START)
    who = "-c user.name=a -c user.email=a@b.c"
    steps = f"git init -q . && git add -A && git {who} commit -qm start"
    subprocess.run(steps, shell=True, cwd=repo, check=True)
    patch = "--- a/shop.py\n+++ b/shop.py\n@@ -1,2 +1,2 @@\n def total(prices):\n"
    patch += "-    return sum(prices[1:])\n+    return sum(prices)\n"
    lines = PYTHON_TESTS.splitlines()
    test_patch = f"--- /dev/null\n+++ b/tests/test_shop.py\n@@ -0,0 +1,{len(lines)} @@\n"
    test_patch += "".join(f"+{line}\n" for line in lines)
    row: dict[str, object] = {
        "instance_id": "acme__shop-1",
        "repo": "acme/shop",
        "base_commit": "HEAD",
        "problem_statement": "total() is wrong.",
        "patch": patch,
        "test_patch": test_patch,
        "FAIL_TO_PASS": json.dumps(["tests/test_shop.py::test_all"]),
        "PASS_TO_PASS": json.dumps(["tests/test_shop.py::test_empty"]),
        "version": "1.0",
        **changes,
    }
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return folder / "rows.jsonl"


def test_a_row_of_swe_bench_is_attempted(attempt: Attempting, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "swe")
    ended = attempt(f"cat > shop.py <<'END'\n{PYTHON_FIXED}END\n", "acme__shop-1", rows)
    assert (ended.verdict, ended.score) == ("passed", 1.0)
    ended = attempt("echo 'total = len' > shop.py", "acme__shop-1", rows)
    assert (ended.verdict, ended.score) == ("failed", 0.5)
    assert ended.detail == "1 of 2 tests did not pass: tests/test_shop.py::test_all"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"repo": "acme/other"}, "the repository acme/other is not on disk"),
        ({"base_commit": "abc123"}, "git finds no commit 'abc123'"),
        ({"FAIL_TO_PASS": "[]"}, "FAIL_TO_PASS is empty"),
        ({"FAIL_TO_PASS": "x"}, "a list of tests should be JSON, not 'x'"),
        ({"patch": 3}, "is not a row of SWE-bench"),
    ],
)
def test_a_bad_row_is_refused(tmp_path: Path, changes: dict[str, object], problem: str) -> None:
    rows = write_rows(tmp_path, **changes)
    with pytest.raises(ReadError, match=problem) as caught:
        load_folder(str(rows))
    assert "line 1" in str(caught.value)
