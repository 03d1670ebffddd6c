"""Samples in bulk: reading suites and samples, resuming, diversity, refusing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import ReadError, SandboxUnavailable
from passhat.judging import sandbox_check
from passhat.judging.interpreters import Interpreter, find_interpreter
from passhat.judging.sandbox_kinds import SandboxKind
from passhat.reporting.build import diversity_notes
from passhat.suites.code_files import read_code_suite
from passhat.suites.code_samples import normalize, read_samples

TASKS: list[dict[str, object]] = [
    {
        "task_id": "t/0",
        "prompt": 'def add(a, b):\n    """Add."""\n',
        "entry_point": "add",
        "canonical_solution": "    return a + b\n",
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    },
    {"task_id": 7, "code": "def twice(x): return 2 * x", "test_list": ["assert twice(2) == 4"]},
    {"task_id": "s", "inputs": ["1 2\n"], "outputs": ["3"]},
]
SAMPLES = [
    {"task_id": "t/0", "completion": "    return a + b\n"},
    {"task_id": "t/0", "completion": "    return a * b\n"},
    {"task_id": "7", "completion": "def twice(y): return y + y"},
    {"task_id": "7", "solution": "def twice(z):\n    return z + z  # the same"},
    {"task_id": "s", "completion": "print(sum(map(int, input().split())))"},
    {"task_id": "s", "completion": "print(1 / 0)"},
]


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(f"{json.dumps(t)}\n" for t in TASKS).encode()))
    return packed, lines(tmp_path / "mine.jsonl", SAMPLES)


@pytest.mark.usefixtures("best")
def test_judging_resumes_and_reports(
    files: tuple[Path, Path], tmp_path: Path, passhat: Callable[..., Any]
) -> None:
    suite, samples = files
    out = tmp_path / "out.jsonl"
    call = ("judge", samples, "-s", f"code:{suite}", "-o", out, "--jobs", 2, "--json")
    first = passhat(*call)
    assert first.code == 0, first.err
    (run,) = json.loads(first.out)["runs"]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {(r["task"], r["trial"]): r["success"] for r in rows} == {
        ("t/0", 0): 1, ("t/0", 1): 0, ("7", 0): 1, ("7", 1): 1, ("s", 0): 1, ("s", 1): 0,
    }  # fmt: skip
    assert any("6 attempts, 5 distinct programs" in note for note in run["notes"])
    # Cut off in the writing, and one row that a broken sandbox left: both are judged again.
    rows[0] |= {"success": None, "failure": "sandbox_error"}
    text = "".join(f"{json.dumps(row)}\n" for row in rows[:4])
    out.write_text(text + json.dumps(rows[4])[:30])
    second = passhat(*call)
    assert "3 of 6 were there" in second.err
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(r["task"], r["trial"]) for r in again}) == len(again) == 6
    assert json.loads(second.out)["runs"][0]["estimates"] == run["estimates"]
    assert passhat("report", out).code == 0
    lines(samples, [*SAMPLES[1:], SAMPLES[0]])
    refused = passhat(*call)
    assert refused.code == 2
    assert "another sample" in refused.err


def test_no_sandbox_is_loud_and_in_the_protocol(
    files: tuple[Path, Path], passhat: Callable[..., Any]
) -> None:
    suite, samples = files
    done = passhat("judge", samples, "-s", f"code:{suite}", "--sandbox", "none", "--json")
    assert "WARNING: no sandbox" in done.err
    (run,) = json.loads(done.out)["runs"]
    assert "UNSAFE: no sandbox" in run["protocol"]["judge"]


def test_without_any_wall_it_refuses_and_says_what_helps(
    monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(SandboxUnavailable, match="bwrap is not installed") as caught:
        sandbox_check.choose_sandbox(interpreter, SandboxKind.BUBBLEWRAP)
    assert "apt-get install bubblewrap" in str(caught.value.hint)


def test_a_wrong_interpreter_is_named() -> None:
    with pytest.raises(SandboxUnavailable, match="no/such/python"):
        find_interpreter("/no/such/python")


def test_the_check_command(passhat: Callable[..., Any], best: SandboxKind) -> None:
    done = passhat("sandbox", "check", "--json")
    assert done.code == 0
    assert json.loads(done.out)["use"] == best
    assert "holds all" in passhat("sandbox", "check").out


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("[1]", "one JSON object"),
        ("{", "not JSON"),
        ('{"prompt": "x"}', "no task_id"),
        ('{"task_id": "a"}', "no tests"),
        ('{"task_id": "a", "test_list": "x"}', "a list of texts"),
        ('{"task_id": "a", "inputs": ["1"], "outputs": []}', "shorter"),
        ('{"task_id": "a", "test": 5}', "should be text"),
    ],
)
def test_a_suite_that_is_none(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(f"{row}\n")
    with pytest.raises(ReadError, match=said):
        read_code_suite(f"code:{path}")


def test_samples_for_another_suite(files: tuple[Path, Path], tmp_path: Path) -> None:
    suite = read_code_suite(f"code:{files[0]}")
    with pytest.raises(ReadError, match="not in code:tasks"):
        read_samples(str(lines(tmp_path / "a.jsonl", [{"task_id": "x", "completion": ""}])), suite)
    with pytest.raises(ReadError, match="no text"):
        read_samples(str(lines(tmp_path / "b.jsonl", [{"task_id": "7", "answer": ""}])), suite)


def test_programs_are_alike_but_for_layout_comments_and_names() -> None:
    first = 'def f(a):\n    """Doc."""\n    total = a + 1  # add\n    return total\n'
    assert normalize(first) == normalize("def f(x):\n  y = x+1\n  return y")
    assert normalize(first) != normalize("def f(x):\n  y = x+2\n  return y")
    assert normalize(first) != normalize("def g(x):\n  y = x+1\n  return y")
    assert normalize("def f(:\n") == normalize("def  f(:")


def test_diversity_is_said_next_to_pass_at_k() -> None:
    rows = [{"task": "a", "answer": str(i % 3), "success": int(i % 3 == 0)} for i in range(10)]
    notes = diversity_notes(rows)
    assert notes[0].startswith("10 attempts, 3 distinct programs; over distinct programs pass@3")
    same = [{"task": "a", "answer": "x", "success": 1} for _ in range(10)]
    assert "bought nothing" in diversity_notes(same)[1]
