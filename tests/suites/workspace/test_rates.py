"""Tasks in three languages, eight attempts each, by agents of known rates."""

from __future__ import annotations

import shutil
from math import comb
from pathlib import Path

import pytest
from tests.suites.workspace.conftest import write_task

import passhat
from passhat.runner.run_spec import RunSpec, run

LANGUAGES = {
    "python": ("add.py", "import sys\nprint(sum(map(int, sys.argv[1:])) {})\n", "python3 add.py"),
    "javascript": (
        "add.js",
        "console.log(+process.argv[2] + +process.argv[3] {})\n",
        "node add.js",
    ),
    "shell": ("add.sh", "echo $(($1 + $2 {}))\n", "sh add.sh"),
}
TASKS, ATTEMPTS = 9, 8  # benchmarks/workspaces.py has 30 tasks


def write_suite(folder: Path, count: int, languages: list[str]) -> None:
    """Tasks by turns in each language; the start is off by one."""
    for i in range(count):
        file, code, command = LANGUAGES[languages[i % len(languages)]]
        test = f'echo 1..1; [ "$({command} 2 3)" = 5 ] && echo ok 1 || {{ echo not ok 1; exit 1; }}'
        write_task(
            folder / f"task-{i:02d}",
            f"instruction = 'Fix {file}.'\ntest = '''{test}'''\nresult = 'tap'\n",
            **{f"start__{file}": code.format("+ 1"), f"solution__{file}": code.format("")},
        )


def test_pass_k_is_as_computed_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace_cache: Path
) -> None:
    """Task i passes i mod 9 of its 8 attempts, whatever the order they are made in."""
    languages = [name for name in LANGUAGES if name != "javascript" or shutil.which("node")]
    write_suite(tmp_path / "tasks", TASKS, languages)
    (tmp_path / "rate_coder.py").write_text(
        "def fix(prompt, attempt):\n"
        "    place, rate = attempt.workspace, int(attempt.task[-2:]) % 9\n"
        "    (file,) = [path.name for path in place.folder.iterdir() if 'add' in path.name]\n"
        "    text = place.read(file)\n"
        "    good = attempt.number <= rate\n"
        "    place.write(file, text.replace('+ 1', '') if good else text + '\\n')\n"
        "    return 'done'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert workspace_cache.name == "workspaces"
    result = run(
        RunSpec(
            agent="python:rate_coder:fix",
            suite=f"workspace:{tmp_path / 'tasks'}",
            attempts=ATTEMPTS,
            store=str(tmp_path / "s.db"),
            in_process=True,
        )
    )
    rates = [i % 9 for i in range(TASKS)]
    assert result.stored.passed == sum(rates)
    (loaded,) = passhat.read(str(tmp_path / "s.db"))
    for k in (1, 4, 8):
        by_hand = sum(comb(c, k) / comb(ATTEMPTS, k) for c in rates) / TASKS
        assert passhat.estimate(loaded, f"pass^{k}").value == pytest.approx(by_hand)
