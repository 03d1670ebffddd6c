"""Programs import the packages they were granted, and no others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.judging.bench import JudgingChoice
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Granted, find_interpreter
from passhat.judging.sandbox_check import examine_machine
from passhat.judging.sandbox_kinds import ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeSuite, CodeTask
from passhat.stats.outcomes import Verdict

TASK = CodeTask("t", entry_point="f", tests="def check(f):\n    assert f([1, 2, 3]) == 6")
NUMPY = "import numpy\ndef f(xs): return int(numpy.array(xs).sum())"
OTHER = "import rich\ndef f(xs): return sum(xs)"


@pytest.mark.parametrize("chosen", [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def test_a_granted_package_can_be_imported_and_no_other(chosen: SandboxKind) -> None:
    without, granted = find_interpreter(), find_interpreter(None, ["numpy"])
    finding = examine_machine(granted, chosen)
    if finding.problem:
        pytest.skip(str(finding))
    assert finding.holds, str(finding)
    found = []
    for interpreter, program in ((granted, NUMPY), (granted, OTHER), (without, NUMPY)):
        examiner = Examiner(chosen, interpreter, ProgramLimits(wall=120))
        try:
            found.append(examiner.judge(TASK, program))
        finally:
            examiner.close()
    assert [int(one.verdict) for one in found] == [1, 0, 0], found
    assert {one.category for one in found[1:]} <= {"exception", "sandbox_violation"}


@pytest.mark.parametrize("chosen", [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def test_a_package_below_tmp_is_seen_and_cannot_be_changed(chosen: SandboxKind) -> None:
    """A checkout in /tmp: every program has a /tmp of its own there."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        root = Path(folder, "lib", "site-packages")
        (root / "granted_here").mkdir(parents=True)
        (root / "granted_here" / "__init__.py").write_text("total = sum\n")
        (root / "alone.py").write_text("zero = 0\n")
        for path in (Path(folder), root.parent, root):
            path.chmod(0o755)
        granted = tuple(
            Granted(str(root / name), str(root), name) for name in ("granted_here", "alone.py")
        )
        interpreter = replace(find_interpreter(), granted=granted)
        examiner = Examiner(chosen, interpreter, ProgramLimits(wall=120))
        use = "import granted_here, alone\ndef f(xs): return granted_here.total(xs) + alone.zero"
        write = f"open({str(root / 'alone.py')!r}, 'w').write('zero = 1')\n"
        try:
            assert examiner.judge(TASK, use).verdict is Verdict.PASSED
            assert examiner.judge(TASK, f"{write}{use}").verdict is Verdict.FAILED
            # The /tmp that a program has used is replaced.
            touch = "open('/tmp/mine', 'w').write('x')\n"
            for program in (f"{touch}{use}", use):
                assert examiner.judge(TASK, program).verdict is Verdict.PASSED
        finally:
            examiner.close()
        assert (root / "alone.py").read_text() == "zero = 0\n"


def test_what_a_package_needs_comes_with_it() -> None:
    found = find_interpreter(None, ["scipy"])
    assert found.named[0] == f"numpy {np.__version__}"
    assert {"numpy", "scipy"} <= {one.name for one in found.granted}
    assert not any(one.name == "rich" for one in found.granted)


def test_the_judge_says_what_programs_may_import() -> None:
    suite = CodeSuite.of("s", [TASK])
    choice = JudgingChoice(packages=("numpy",), unsafe=True)
    assert choice.bench(suite).judge.endswith(f"with numpy {np.__version__}")
    assert "numpy" not in JudgingChoice(unsafe=True).bench(suite).judge


def test_a_package_that_is_not_there(passhat: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"task_id": "ordercode/late_credit", "completion": ""}\n')
    call = ("judge", tmp_path / "s.jsonl", "-s", "code:ordercode", "--set")
    ended = passhat(*call, "with=no-such-package")
    assert ended.code == 2
    assert "has no package no-such-package" in ended.err
    with pytest.raises(InvalidValue, match="not the name of a package"):
        find_interpreter(None, ["numpy>=2"])


def test_no_shown_folder_lies_in_another_and_all_are_there() -> None:
    shown = find_interpreter().shown
    assert all(Path(path).exists() for path in shown)
    assert not [(a, b) for a in shown for b in shown if a.startswith(f"{b}/")]
