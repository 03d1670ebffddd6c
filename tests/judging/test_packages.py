"""Programs import the packages they were granted, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.judging.bench import JudgingChoice
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import find_interpreter
from passhat.judging.sandbox_check import SandboxKind, examine_machine
from passhat.judging.sandbox_kinds import ProgramLimits
from passhat.judging.tasks import CodeSuite, CodeTask

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
    call = ("judge", tmp_path / "s.jsonl", "-s", "code:ordercode", "--with")
    ended = passhat(*call, "no-such-package")
    assert ended.code == 2
    assert "has no package no-such-package" in ended.err
    with pytest.raises(InvalidValue, match="not the name of a package"):
        find_interpreter(None, ["numpy>=2"])
