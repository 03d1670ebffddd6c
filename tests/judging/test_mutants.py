"""Weak tests are visible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.suites.code_mutants import mutants_of

STRONG = (
    "def check(f):\n    assert [f(x) for x in (-1, 0, 1, 4, 5, 6, 9)] == [-1, 0, 1, 4, 5, 5, 5]"
)
PROMPT = 'def cap(days):\n    """At most 5."""\n'
CANONICAL = "    if days > 5:\n        return 5\n    return days\n"


def test_mutants_differ_from_the_program_and_from_each_other() -> None:
    program = "def f(a, b):\n    while a < b and b > 3:\n        a += 1\n    return a * 2 % b"
    found = mutants_of(program, most=100)
    assert len(found) == len(set(found)) >= 8
    assert program not in found
    assert len(mutants_of(program, most=3)) == 3


@pytest.mark.usefixtures("best")
def test_weak_tests_are_marked(tmp_path: Path, passhat: Callable[..., Any]) -> None:
    rows = [
        {"task_id": name, "prompt": PROMPT, "entry_point": "cap"}
        | {"test": test, "canonical_solution": body}
        for name, test, body in (
            ("strong", STRONG, CANONICAL),
            ("weak", "def check(f):\n    assert f(2) == 2", CANONICAL),
            ("wrong", STRONG, "    return days\n"),
        )
    ]  # fmt: skip
    suite = tmp_path / "suite.jsonl"
    suite.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = passhat("judge", "--mutants", "-s", f"code:{suite}", "--json")
    found = {one["task"]: one for one in json.loads(done.out)}
    assert not found["strong"]["weak"]
    assert found["weak"]["weak"]
    assert not found["wrong"]["canonical_passes"]
    assert passhat("judge", "-s", f"code:{suite}").code == 2
