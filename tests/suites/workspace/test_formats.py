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
    SHELL_FIXED,
    SHELL_START,
    SHELL_TESTS,
    Attempting,
    write_task,
)

import passhat
from passhat.errors import ReadError
from passhat.readers.base import Needs
from passhat.reporting.export import as_csv_rows, as_json_lines, write_parquet
from passhat.runner.run_spec import RunSpec, run
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


def test_exports_of_a_run_are_read_back(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts, scores, slices and the summary of each diff."""
    assert tasks.is_dir()  # with the cache of this session
    monkeypatch.chdir(tmp_path)
    for band, name in (("easy", "one"), ("hard", "two")):
        write_task(
            tmp_path / "suite" / name,
            f'instruction = "Fix {name}."\ntest = "sh checks/run.sh"\nresult = "tap"\n'
            f'slices = {{ band = "{band}" }}\n',
            **{
                "start__add.sh": SHELL_START,
                "solution__add.sh": SHELL_FIXED,
                "hidden__checks__run.sh": SHELL_TESTS,
            },
        )
    (tmp_path / "agent.sh").write_text(
        "grep -q one && sed -i 's/ - / + /' add.sh || echo 'echo 5' > add.sh; echo done\n"
    )
    run(RunSpec(agent="command:sh agent.sh", suite="workspace:suite", attempts=2, store="s.db"))
    needs = Needs(details=True)
    (stored,) = passhat.read("s.db", needs=needs)
    summary = "1 file changed, +1 -{}: add.sh"
    rows = [
        (row.task, str(row.verdict), row.score, row.extras["answer"])
        for row in stored.iterate_attempts()
    ]
    assert rows == [
        *(("one", "passed", 1.0, summary.format(1)),) * 2,
        *(("two", "failed", 0.5, summary.format(2)),) * 2,
    ]
    assert stored.label_rows() == {"one": ("easy",), "two": ("hard",)}
    (tmp_path / "out.jsonl").write_text("".join(as_json_lines([stored])))
    (tmp_path / "out.csv").write_text("".join(as_csv_rows([stored])))
    write_parquet([stored], "out.parquet")
    for suffix in ("jsonl", "csv", "parquet"):
        (again,) = passhat.read(f"out.{suffix}", needs=Needs(conversations=True))
        for one, other in zip(again.iterate_attempts(), stored.iterate_attempts(), strict=True):
            assert (one.id, one.verdict, one.why) == (other.id, other.verdict, other.why)
            assert (one.detail, one.score) == (other.detail, other.score)
            assert other.extras["answer"] in one.extras["conversation"]
        assert again.label_rows() == stored.label_rows()
        assert again.protocol == stored.protocol


@pytest.mark.parametrize(
    ("target", "path"),
    [
        *(("./", ""), (".", ""), ("/app", ""), ("/app/", ""), ("data/..", "")),
        *(("./data/", "data/"), ("/app/data", "data"), ("a/./b/.", "a/b/"), ("x.", "x.")),
    ],
)
def test_a_recipe_copies_below_its_folder(tmp_path: Path, target: str, path: str) -> None:
    recipe = f"FROM localhost/base:1\nWORKDIR /app\nCOPY data/ {target}\n"
    write_task(tmp_path / "hello", HARBOR, **{**FILES, "environment__Dockerfile": recipe})
    (task,) = load_folder(str(tmp_path))
    assert task.start.copies == (("data/", path),)


@pytest.mark.parametrize("target", ["/etc", "..", "/", "/apple", "a/../../b"])
def test_a_recipe_that_copies_elsewhere_is_refused(tmp_path: Path, target: str) -> None:
    recipe = f"FROM localhost/base:1\nWORKDIR /app\nCOPY data/ {target}\n"
    write_task(tmp_path / "hello", HARBOR, **{**FILES, "environment__Dockerfile": recipe})
    with pytest.raises(ReadError, match=r"copies files to .*, outside of /app"):
        load_folder(str(tmp_path))
