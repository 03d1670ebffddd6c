"""Attacks that once passed: files beside hidden tests, plug-ins, memory, signals, patched asserts.

Each passes where its guard is taken away.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.suites.workspace.conftest import (
    PYTHON_FIXED,
    SHELL_FIXED,
    Attempting,
    write_task,
)

from passhat.judging.inside.seccomp import guard_memory
from passhat.stats.outcomes import Verdict
from passhat.suites.workspace.changes import HiddenLayout
from passhat.suites.workspace.checking import expectation
from passhat.suites.workspace.loading import load_folder
from passhat.suites.workspace.results import TestRun, decide
from passhat.suites.workspace.suite import WorkspaceSuite
from passhat.suites.workspace.walls import CommandEnd

PATCH = "import shop; shop.total = lambda prices: 6"
PLUGIN = f"echo '{PATCH}' > evilplug.py"
PYTHON_ATTACKS = {
    "a package beside a hidden module": "mkdir -p checks/helper; printf "
    f"'{PATCH}\\ndef same(a, b): return True\\n' > checks/helper/__init__.py",
    "a plug-in by its metadata": f"{PLUGIN}; mkdir evil-1.0.dist-info; cd evil-1.0.dist-info; "
    "printf 'Name: evil\\nVersion: 1.0\\n' > METADATA; "
    "printf '[pytest11]\\nevil = evilplug\\n' > entry_points.txt",
    "a module that pytest needs": """cat > iniconfig.py <<'END'
import importlib, sys
del sys.modules["iniconfig"]
place = sys.path.pop(0)
sys.modules["iniconfig"] = importlib.import_module("iniconfig")
sys.path.insert(0, place)
import shop
shop.total = lambda prices: 6
END""",
    "a configuration of pytest 9": f"{PLUGIN}; "
    'printf \'[pytest]\\naddopts = ["-p", "evilplug"]\\n\' > pytest.toml',
    "reports patched for the tests' folder alone": """cat > shop.py <<'END'
from _pytest.reports import TestReport
make = TestReport.from_item_and_call.__func__
def forge(cls, item, call):
    if "checks/" in item.nodeid:
        call.excinfo = None
    return make(cls, item, call)
TestReport.from_item_and_call = classmethod(forge)
total = len
END""",
}
WRITE_MEMORY = """cat > prog.py <<'END'
import os, sys
parent = os.getppid()
rows = [line.split() for line in open(f"/proc/{parent}/maps")]
with open(f"/proc/{parent}/mem", "r+b", 0) as memory:
    for row in rows:
        if row[1].startswith("rw"):
            begin, end = (int(part, 16) for part in row[0].split("-"))
            try:
                memory.seek(begin)
                data = memory.read(end - begin)
            except OSError:
                continue
            at = data.find(b"\\x005\\n\\x00")
            while at >= 0:
                memory.seek(begin + at + 1)
                memory.write(b"7")
                at = data.find(b"\\x005\\n\\x00", at + 1)
print(7)
END"""
KILL_PARENTS = """cat > add.sh <<'END'
echo 1 > reward.txt
kill -9 $PPID
END"""
PATCH_ASSERT = """cat > calc.js <<'END'
const assert = require('assert');
for (const name of ['ok', 'equal', 'strictEqual']) assert[name] = () => {};
exports.add = () => 0;
END"""


@pytest.mark.parametrize("name", PYTHON_ATTACKS)
def test_files_around_the_tests_do_not_pass(attempt: Attempting, traps: Path, name: str) -> None:
    ended = attempt(PYTHON_ATTACKS[name], "helper", traps)
    assert ended.verdict == "failed", ended


@pytest.mark.parametrize(
    ("task", "script"),
    [("program", WRITE_MEMORY), ("reward", KILL_PARENTS), ("node", PATCH_ASSERT)],
)
def test_code_against_its_tests_does_not_pass(
    attempt: Attempting, traps: Path, task: str, script: str
) -> None:
    if task == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    ended = attempt(script, task, traps)
    assert ended.verdict == "failed", ended


def test_a_fix_passes_all_the_same(attempt: Attempting, traps: Path) -> None:
    ended = attempt(f"cat > shop.py <<'END'\n{PYTHON_FIXED}END\n", "helper", traps)
    assert ended.verdict == "passed", ended


def test_the_folder_of_the_run_is_hidden(attempt: Attempting, tmp_path: Path) -> None:
    """Of the folder in which a run is started the agent sees itself."""
    (tmp_path / "fix.sh").write_text(SHELL_FIXED)
    (tmp_path / "old.db").write_text("results of an earlier run")
    ended = attempt(f"ls -A {tmp_path}; cp {tmp_path}/fix.sh add.sh; true")
    assert ended.verdict == "failed", ended
    assert ended.texts["agent"].splitlines()[0] == "agent.sh"


def test_names_that_win_over_hidden_files(tmp_path: Path) -> None:
    files = {"hidden__t.test.js": "x", "hidden__src__calc_test.go": "x", "hidden__qa__h.py": "x"}
    toml = 'instruction = "Fix."\ntest = "true"\n'
    write_task(tmp_path, toml, start__add__x="x", **files, **{"solution__src__calc.go": "x"})
    (task,) = load_folder(str(tmp_path))
    snapshot = dict.fromkeys(("t.js", "src/calc.go", "qa/old.py", "t.test.mjs"), (1, 1))
    layout = HiddenLayout.of_task(task, snapshot)
    taken = ("t.js", "t.ts", "src/calc.go", "src/new.go", "src/more/h.py", "t.test.mjs")
    for path in taken:
        assert layout.problem(path, is_new=path not in snapshot) == "", path
    refused = ("t.test", "t.test.ts", "t.test/index.js", "src/calc_test.so", "src.py")
    for path in (*refused, "qa", "qa/old.py", "qa/h.cpython-311.so", "qa/deep/x.py"):
        assert layout.problem(path, is_new=path not in snapshot), path


@pytest.mark.parametrize("status", [0, 3, 1, 137])
def test_only_the_status_of_the_reference_is_accepted(tmp_path: Path, status: int) -> None:
    write_task(tmp_path, 'instruction = "x"\ntest = "x"\nresult = "tap"\n', start__a="x")
    (task,) = load_folder(str(tmp_path))
    runs = [TestRun(CommandEnd(end, "", "", 1.0), {"a": "passed"}) for end in (3, status)]
    expected = expectation(task, runs[0], runs[0])
    is_passed = decide(task, runs[1], expected).verdict is Verdict.PASSED
    assert is_passed == (status in (0, 3))


def test_a_flaky_command_is_told(tmp_path: Path, workspace_cache: Path) -> None:
    assert workspace_cache.name == "workspaces"
    test = "echo 1..1; [ $(cat now) = 1 ] && echo ok 1 - a || echo not ok 1 - a$(date +%N)"
    toml = f'instruction = "x"\nresult = "tap"\ntest = """{test}"""\n'
    write_task(tmp_path, toml, start__now="0\n", solution__now="1\n")
    suite = WorkspaceSuite(str(tmp_path))

    async def check() -> tuple[str, ...]:
        (result,) = await suite.check(suite.tasks)
        await suite.close()
        return result.problems

    (problem,) = asyncio.run(check())
    assert problem.startswith("the tests are flaky: a")


def test_the_filter_is_for_known_machines() -> None:
    assert len(guard_memory("x86_64")) == len(guard_memory("aarch64"))
    assert len(guard_memory()) % 8 == 0
