"""Tasks in TOML: what is read, what is refused and in which words, and what a check finds."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.suites.workspace.conftest import write_task

from passhat.errors import ReadError
from passhat.suites import load_suite
from passhat.suites.workspace.changes import matches
from passhat.suites.workspace.definition import read_size
from passhat.suites.workspace.loading import load_folder
from passhat.suites.workspace.places import extract_start

GOOD = 'instruction = "Fix it."\ntest = "true"\n'
BAD = {
    "": "has no instruction|missing required field `test`",
    'instruction = "x"\n': "missing required field `test`",
    'test = "true"\n': "it has no instruction: write instruction.md",
    GOOD + 'tests = "x"\n': "unknown key 'tests'. Did you mean 'hidden'?",
    GOOD + 'hiden = "x"\n': "unknown key 'hiden'. Did you mean 'hidden'?",
    GOOD + 'start = "nowhere"\n': "start should be a folder, an archive .* there is no such file",
    GOOD + 'start = "task.toml"\n': "it is another file",
    GOOD + 'start = {git = ".", commit = "abc"}\n': "git finds no commit 'abc'",
    GOOD + 'hidden = "nowhere"\n': "hidden names 'nowhere', and there is no such file or folder",
    GOOD + 'result = "junit"\n': "result must be one of exit, pytest, tap, junit:FILE",
    GOOD + 'result = "junit:../x.xml"\n': "must lie in the workspace",
    GOOD + "must_pass = 3\n": r"Expected `array`, got `int` - at `\$.must_pass`",
    GOOD + "[limits]\nseconds = 0\n": "limits.seconds must be between 0 and 86400, not 0",
    GOOD + '[limits]\ndisk = "much"\n': "a size is written as in 512MB or 2GB, not 'much'",
    GOOD + "pass_at = 2\n": "pass_at must be above 0 and at most 1, not 2",
    GOOD + 'id = "a#1"\n': "it needs a printable id without '#'",
    "test = \n": "is not TOML",
}


@pytest.mark.parametrize("toml", BAD)
def test_a_bad_task_is_refused_with_its_place(tmp_path: Path, toml: str) -> None:
    write_task(tmp_path / "a", toml, start__x="")
    with pytest.raises(ReadError, match=BAD[toml]) as caught:
        load_folder(str(tmp_path))
    assert "a/task.toml" in str(caught.value)


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"holds no task: no task\.toml"):
        load_folder(str(tmp_path))
    with pytest.raises(ReadError, match="is neither a folder nor a file"):
        load_folder(str(tmp_path / "nowhere"))


def test_many_tasks_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "many.toml").write_text(
        '[defaults]\ntest = "true"\ninstruction = "Fix it."\n'
        '[[task]]\nid = "a"\n[[task]]\nid = "b"\nslices = {lang = "c"}\n'
        "[task.limits]\nseconds = 5\n"
    )
    first, second = load_folder(str(tmp_path / "many.toml"))
    assert (first.id, second.id, second.labels) == ("a", "b", {"lang": "c"})
    assert second.limits.seconds == 5
    (tmp_path / "many.toml").write_text('[[task]]\nid = "a"\ntest = "true"\n[[task]]\nid = "a"\n')
    with pytest.raises(ReadError, match=r"many.toml \(task 1\): is not a task: it has no instr"):
        load_folder(str(tmp_path / "many.toml"))


def test_a_start_from_git_has_no_history(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("before")
    (repo / ".gitattributes").write_text("b.txt export-ignore\n")
    (repo / "b.txt").write_text("kept")
    who = "-c user.name=a -c user.email=a@b.c"
    steps = f"git init -q . && git add -A && git {who} commit -qm one"
    steps += f" && echo after > a.txt && git {who} commit -qam two"
    subprocess.run(steps, shell=True, cwd=repo, check=True)
    write_task(tmp_path / "a", GOOD + 'start = {git = "../repo", commit = "HEAD~1"}\n')
    (task,) = load_folder(str(tmp_path))
    extract_start(task.start, tmp_path / "out" / "tree")
    assert (tmp_path / "out/tree/a.txt").read_text() == "before"
    assert (tmp_path / "out/tree/b.txt").read_text() == "kept"
    assert not (tmp_path / "out/tree/.git").exists()
    assert str(repo) in task.secrets()  # its later commits hold the fix


def test_a_start_from_an_archive(tmp_path: Path) -> None:
    (tmp_path / "src/project").mkdir(parents=True)
    (tmp_path / "src/project/a.txt").write_text("text")
    archive = tmp_path / "a/start.tar.gz"
    write_task(tmp_path / "a", GOOD + 'start = "start.tar.gz"\n')
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path / "src", "project"], check=True)
    (task,) = load_folder(str(tmp_path))
    extract_start(task.start, tmp_path / "out" / "tree")
    assert (tmp_path / "out/tree/a.txt").read_text() == "text"


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("src/a.py", "src/**", True),
        ("src/a.py", "src", True),
        ("lib/src/a.py", "src/**", False),
        ("deep/down/conftest.py", "conftest.py", True),
        ("conftest.py.txt", "conftest.py", False),
        ("a/b.test.js", "*.test.*", True),
        ("a/b/c.py", "a/*.py", False),
        ("a/b/c.py", "a/**/*.py", True),
        ("src\n/x", "src", False),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_sizes() -> None:
    assert [read_size(text) for text in ("512MB", "1.5 GiB", "100", 7)] == [
        512 << 20,
        3 << 29,
        100,
        7,
    ]


CHECKS = {
    "start passes": ({"start__add.sh": "echo 5\n"}, "the untouched start passes"),
    "reference fails": (
        {"solution__add.sh": "echo 6\n"},
        "the reference fails: the test command ended (exit status 1)",
    ),
    "reference left out": (
        {"solution__Makefile": "x\n"},
        "its change of Makefile was left out: it steers the tests",
    ),
    "weak": (
        {"hidden__checks__run.sh": ". ./add.sh > out; [ $(cat out) = 5 ]\n"},
        "ends its process",
    ),
    "setup": ({}, "the set-up failed (exit status 3): no such tool"),
}


@pytest.mark.usefixtures("workspace_cache")
@pytest.mark.parametrize("name", CHECKS)
def test_a_broken_task_is_found_before_any_attempt(tmp_path: Path, name: str) -> None:
    files, problem = CHECKS[name]
    toml = 'instruction = "Fix."\ntest = "sh checks/run.sh"\n'
    toml += 'setup = "echo no such tool; exit 3"\n' if name == "setup" else ""
    base = {
        "start__add.sh": "echo 4\n",
        "solution__add.sh": "echo 5\n",
        "hidden__checks__run.sh": '[ "$(sh add.sh)" = 5 ]\n',
    }
    if name == "reference left out":
        del base["solution__add.sh"]
    write_task(tmp_path / "a", toml, **{**base, **files})
    suite = load_suite(f"workspace:{tmp_path}")

    async def check() -> list[str]:
        (found,) = list(await suite.check(suite.tasks))  # type: ignore[misc]
        await suite.close()  # type: ignore[misc]
        return list(found.problems)

    found = asyncio.run(check())
    assert any(problem in text for text in found), found
