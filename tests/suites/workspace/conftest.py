"""Small tasks for coding agents, and a way to make one attempt at them."""

from __future__ import annotations

import os
import shlex
import stat
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from passhat.runner.run_spec import RunSpec, run
from passhat.store import AttemptRecord

PYTHON_START = "def total(prices):\n    return sum(prices[1:])\n"
PYTHON_FIXED = "def total(prices):\n    return sum(prices)\n"
PYTHON_TESTS = """
from shop import total

def test_all():
    assert total([1, 2, 3]) == 6

def test_empty():
    assert total([]) == 0
"""
SHELL_START = "#!/bin/sh\necho $(($1 - $2))\n"
SHELL_FIXED = "#!/bin/sh\necho $(($1 + $2))\n"
SHELL_TESTS = """
echo 1..2
[ "$(sh add.sh 2 3)" = 5 ] && echo "ok 1 - small" || { echo "not ok 1 - small"; bad=1; }
[ "$(sh add.sh 20 30)" = 50 ] && echo "ok 2 - large" || { echo "not ok 2 - large"; bad=1; }
exit ${bad:-0}
"""


def write_task(folder: Path, toml: str, **files: str) -> Path:
    """A task folder; names of files have ``__`` for a slash."""
    for name, text in {"task.toml": toml, **files}.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_tasks(folder: Path) -> Path:
    """One task in Python, judged by pytest, and one in shell, judged by TAP."""
    write_task(
        folder / "python",
        'instruction = "Fix total()."\ntest = "python -m pytest -q tests"\nresult = "pytest"\n'
        "[limits]\nseconds = 60\n",
        **{
            "start__shop.py": PYTHON_START,
            "solution__shop.py": PYTHON_FIXED,
            "hidden__tests__test_shop.py": PYTHON_TESTS,
        },
    )
    write_task(
        folder / "shell",
        'instruction = "Fix add.sh."\ntest = "sh checks/run.sh"\nresult = "tap"\n',
        **{
            "start__add.sh": SHELL_START,
            "start__README.md": "Adds.\n",
            "solution__add.sh": SHELL_FIXED,
            "hidden__checks__run.sh": SHELL_TESTS,
        },
    )
    return folder


@dataclass(frozen=True)
class Attempt:
    """An attempt as it was stored."""

    verdict: str
    why: str
    detail: str
    score: float | None
    texts: dict[str, str]


Attempting = Callable[..., Attempt]


@pytest.fixture(scope="session")
def workspace_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this session's own: prepared starts and checks are made once."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder / "passhat" / "workspaces"
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory, workspace_cache: Path) -> Path:
    assert workspace_cache.name == "workspaces"
    return write_tasks(tmp_path_factory.mktemp("suite") / "tasks")


@pytest.fixture
def attempt(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempting:
    """Make one attempt by a shell script at a task."""
    monkeypatch.chdir(tmp_path)

    def make(script: str, task: str = "shell", suite: Path = tasks, **options: Any) -> Attempt:
        (tmp_path / "agent.sh").write_text(textwrap.dedent(script))
        agent = options.pop("agent", "command:sh agent.sh")
        spec = RunSpec(
            agent=agent,
            suite=f"workspace:{suite}",
            tasks=(task,),
            attempts=1,
            store=str(tmp_path / "s.db"),
            keep_going=True,
            name=shlex.quote(script)[:40] + str(options.pop("number", "")),
            **options,
        )
        records: list[AttemptRecord] = []
        run(spec, progress=lambda record, _: records.append(record))
        (record,) = records
        texts = {entry["role"]: entry["text"] for entry in record.transcript}
        judgement = record.judgement
        return Attempt(
            str(judgement.verdict), judgement.why, judgement.detail, judgement.score, texts
        )

    return make


def remains(cache: Path) -> list[str]:
    """Folders of attempts that were left behind."""
    return [str(path) for path in (cache / "attempts").iterdir()]


def modes(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder with mode and content."""
    return {
        str(path): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


HELPER_TESTS = """
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
from helper import same
from shop import total

def test_all():
    assert same(total([1, 2, 3]), 6)
"""
PROGRAM_TESTS = """
import subprocess, sys

def test_sum():
    command = [sys.executable, "prog.py", "2", "3"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "5\\n"
"""
NODE_TESTS = """
const { test } = require('node:test');
const assert = require('assert');
const { add } = require('../calc');
test('small', () => assert.strictEqual(add(2, 3), 5));
"""
REWARD_TESTS = "[ $(sh add.sh 2 3) = 5 ] && r=1 || r=0\necho $r > reward.txt\n"
PYTEST = 'instruction = "Fix it."\ntest = "python3 -m pytest -q checks"\nresult = "pytest"\n'


@pytest.fixture(scope="session")
def traps(tmp_path_factory: pytest.TempPathFactory, workspace_cache: Path) -> Path:
    """Tasks whose tests have helpers, start the program, run in node, or write a reward."""
    assert workspace_cache.name == "workspaces"
    folder = tmp_path_factory.mktemp("traps") / "tasks"
    node = 'instruction = "Fix it."\nresult = "tap"\n'
    write_task(
        folder / "helper",
        PYTEST,
        **{
            "start__shop.py": PYTHON_START,
            "solution__shop.py": PYTHON_FIXED,
            "hidden__checks__helper.py": "def same(a, b):\n    return a == b\n",
            "hidden__checks__test_hid.py": HELPER_TESTS,
        },
    )
    write_task(
        folder / "program",
        PYTEST,
        **{
            "start__prog.py": "import sys\nprint(int(sys.argv[1]) - int(sys.argv[2]))\n",
            "solution__prog.py": "import sys\nprint(int(sys.argv[1]) + int(sys.argv[2]))\n",
            "hidden__checks__test_p.py": PROGRAM_TESTS,
        },
    )
    write_task(
        folder / "node",
        node + 'test = "node --test --test-reporter=tap checks/"\n',
        **{
            "start__calc.js": "exports.add = (a, b) => a - b;\n",
            "solution__calc.js": "exports.add = (a, b) => a + b;\n",
            "hidden__checks__t.test.js": NODE_TESTS,
        },
    )
    write_task(
        folder / "reward",
        'instruction = "Fix it."\nresult = "reward:reward.txt"\ntest = "sh checks/check.sh"\n',
        **{
            "start__add.sh": SHELL_START,
            "solution__add.sh": SHELL_FIXED,
            "hidden__checks__check.sh": REWARD_TESTS,
        },
    )
    return folder
