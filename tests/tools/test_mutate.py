"""Random changes of the source: which are made, and which a test notices."""

from __future__ import annotations

import json
import subprocess
from itertools import islice
from pathlib import Path

import pytest

import mutate

SOURCE = b'''"""A docstring with 3 numbers."""
LIMIT: int = 10


def check(x: int, text: str = "a") -> int:
    """Return 1 more."""
    if x > LIMIT and text:
        raise ValueError(f"{x + 1}")
    print(x)
    assert x < 99
    return min(x, 5) if x else -x


def pair(a: str) -> list[tuple[str, str]]:
    return list(zip(a, a[x > 7], strict=True))
'''


def changes() -> set[tuple[str, str]]:
    return {(m.before, m.after) for m in mutate.find_mutants("m.py", SOURCE)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x > LIMIT", "(x >= LIMIT)"),
        ("x > LIMIT and text", "(x > LIMIT or text)"),
        ("x > LIMIT and text", "(text)"),
        ("x > LIMIT and text", "False"),
        ("10", "11"),
        ("print(x)", "pass"),
        ("min(x, 5)", "(max(x, 5))"),
        ("min(x, 5) if x else -x", "(-x if x else min(x, 5))"),
        ("-x", "(x)"),
    ],
)
def test_a_change_is_found(before: str, after: str) -> None:
    assert (before, after) in changes()


def test_messages_assertions_and_annotations_are_left_alone() -> None:
    left_alone = {"x + 1", "x < 99", "99", "int", '"a"', "True"}
    assert not {before for before, _ in changes()} & left_alone
    assert ("x > 7", "(x >= 7)") in changes()


def test_a_mutant_changes_its_place_only_and_knows_its_function() -> None:
    mutant = next(m for m in mutate.find_mutants("m.py", SOURCE) if m.after == "(x >= LIMIT)")
    assert mutant.apply(SOURCE) == SOURCE.replace(b"x > LIMIT", b"(x >= LIMIT)")
    assert (mutant.line, mutant.function) == (7, 5)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a tested bound and an untested one."""
    files = {
        "src/passhat/__init__.py": "",
        "src/passhat/stats/__init__.py": "",
        "src/passhat/stats/bounds.py": (
            "def low(x):\n    return x > 3\n\n\ndef high(x):\n    return x > 3\n"
        ),
        "tests/stats/test_bounds.py": (
            "from passhat.stats.bounds import high, low\n\n"
            "def test_low():\n    assert low(4) and not low(3)\n\n"
            "def test_high():\n    assert high(5)\n\n"
            "def test_broken():\n    assert False\n"
        ),
        "tools/trace_tests.py": Path(mutate.__file__).with_name("trace_tests.py").read_text(),
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow: slow"]\n',
    }
    root = tmp_path / "project"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    monkeypatch.setattr(mutate, "ROOT", root)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # this project's is not in the tree
    return root


def test_the_seed_decides_which_mutants_are_tried(tree: Path) -> None:
    def first(seed: int) -> list[mutate.Mutant]:
        return list(islice(mutate.sample(tree / "src", "stats", seed), 4))

    assert first(1) == first(1)
    assert any(first(1) != first(seed) for seed in range(2, 6))


def test_what_a_test_sees_is_caught_and_what_none_sees_survives(tree: Path, tmp_path: Path) -> None:
    scratch = mutate.Scratch(tmp_path / "scratch")
    scratch.create()
    file = "passhat/stats/bounds.py"
    source = (tree / "src" / file).read_bytes()
    mutants = [m for m in mutate.find_mutants(file, source) if m.after == "(x >= 3)"]
    low, high = sorted(mutants, key=lambda mutant: mutant.line)

    # A test that fails in the unchanged tree says nothing about a mutant.
    assert set(scratch.map_tests("stats")) == {
        "tests/stats/test_bounds.py::test_low",
        "tests/stats/test_bounds.py::test_high",
    }
    trial = scratch.try_mutant("stats", low)
    assert trial.caught
    assert trial.test == "tests/stats/test_bounds.py::test_low"
    assert not scratch.try_mutant("stats", high).caught
    assert (scratch.source / file).read_bytes() == source
    assert (tree / "src" / file).read_bytes() == source


@pytest.mark.usefixtures("tree")
def test_a_run_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mutants"
    arguments = ["--package", "stats", "--folder", str(folder)]
    mutate.main([*arguments, "--count", "1"])
    mutate.main([*arguments, "--count", "2"])
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    assert len({row["id"] for row in rows}) == 2
    capsys.readouterr()
    mutate.main([*arguments, "--report"])
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["stats", "2"]
