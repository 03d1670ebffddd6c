"""Revisions of a small repository: their order, what each contains, a tree of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from passhat.errors import InvalidValue
from passhat.runner.revisions import (
    Lineage,
    Revision,
    current_revision,
    list_revisions,
    open_worktree,
    resolve_commit,
    run_git,
)


def _git(*words: str) -> str:
    output = run_git(["-c", "user.name=a", "-c", "user.email=a@b", *words])
    assert output is not None, words
    return output.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """one - two - merge - last, and side from one to the merge."""
    folder = tmp_path_factory.mktemp("repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _git("init", "-q", "-b", "main")
        for name in ("one", "two"):
            (folder / "file").write_text(name)
            _git("add", ".")
            _git("commit", "-qm", name)
            _git("tag", name)
        _git("checkout", "-q", "-b", "side", "one")
        (folder / "other").write_text("side")
        _git("add", ".")
        _git("commit", "-qm", "side")
        _git("checkout", "-q", "main")
        _git("merge", "-q", "--no-ff", "-m", "merge", "side")
        _git("commit", "-q", "--allow-empty", "-m", "last")
    return folder


@pytest.fixture(autouse=True)
def _inside(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)


def test_every_commit_after_the_good_one_with_what_it_contains() -> None:
    lineage = list_revisions("one", "main")
    titles = [revision.title for revision in lineage.revisions]
    assert set(titles[:2]) == {"two", "side"}
    assert titles[2:] == ["merge", "last", "one"]
    assert (lineage.good, lineage.bad) == (4, 3)
    rows = {title: lineage.contains[place].tolist() for place, title in enumerate(titles[:-1])}
    assert rows["merge"] == [False, False, True, True, False]
    assert rows["last"] == [False, False, False, True, False]
    for title in ("two", "side"):
        assert rows[title] == [title == titles[0], title == titles[1], True, True, False]
    # The first parent of the merge is on main; those of the two first ones are the good commit.
    assert lineage.parents == (4, 4, titles.index("two"), 2)
    assert lineage.revisions[0].short == lineage.revisions[0].id[:10]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("main", "one", "main is not an ancestor of one"),
        ("two", "two", "two and two are the same commit"),
        ("nothing", "one", "'nothing' is not a commit of this repository"),
        ("--help", "one", "'--help' is not a commit of this repository"),
    ],
)
def test_what_is_no_range_is_refused(good: str, bad: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        list_revisions(good, bad)


def test_outside_a_repository_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_revision() == ""
    with pytest.raises(InvalidValue, match="not in a git repository"):
        resolve_commit("HEAD")
    with pytest.raises(InvalidValue, match="with a working tree"), open_worktree():
        pass


def test_a_list_is_a_lineage_in_its_order() -> None:
    lineage = Lineage.of_list(["good", "a", "b", "bad"])
    assert [revision.id for revision in lineage.revisions] == ["a", "b", "bad", "good"]
    assert (lineage.good, lineage.bad, lineage.parents) == (3, 2, (3, 0, 1))
    assert lineage.contains.tolist() == [
        [True, True, True, False],
        [False, True, True, False],
        [False, False, True, False],
    ]
    assert str(Revision("a")) == "a"
    assert str(Revision("f" * 40, "title")) == f"{'f' * 10} title"
    assert Revision("f" * 40).short == "f" * 40


def test_a_worktree_has_the_files_of_a_commit_and_goes_away(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "before")
    with open_worktree() as tree:
        tree.check_out("two")
        assert sorted(path.name for path in tree.path.iterdir()) == [".git", "file"]
        assert (tree.path / "file").read_text() == "two"
        (tree.path / "new").write_text("made by a run")
        tree.check_out("main")
        names = sorted(path.name for path in tree.path.iterdir())
        assert names == [".git", "file", "other"]
        assert (tree.top, tree.below) == (repository, tree.path)
        paths = tree.variables["PYTHONPATH"].split(os.pathsep)
        assert paths == [str(tree.path), str(tree.path / "src"), "before"]
        with pytest.raises(InvalidValue, match="could not check out nothing"):
            tree.check_out("nothing")
        with open_worktree() as other:
            assert tree.path.exists()  # a search that is at work is left alone
        assert not other.path.exists()
    assert not tree.path.parent.exists()
    assert len(_git("worktree", "list").splitlines()) == 1
    assert (repository / "file").read_text() == "two"


def test_changed_files_make_a_revision_dirty(repository: Path) -> None:
    commit = resolve_commit("main")
    assert current_revision() == commit
    (repository / "untracked").write_text("x")
    assert current_revision() == commit
    (repository / "file").write_text("changed")
    assert current_revision() == f"{commit}-dirty"
    _git("checkout", "-q", "file")
    (repository / "untracked").unlink()
