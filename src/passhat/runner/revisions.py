"""Revisions of a git repository: the current one, those between two, and a worktree for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import BoolArray

DIRTY = "-dirty"
"""Follows a commit whose files were changed and not committed, as in ``git describe --dirty``."""
_SECONDS = 10.0
_FOLDER = "passhat-bisect-"
_LOCK = "lock"


def run_git(
    words: Sequence[str],
    folder: str | os.PathLike[str] | None = None,
    seconds: float | None = _SECONDS,
    variables: Mapping[str, str] | None = None,
) -> str | None:
    """The output of a git command; ``None`` without git, without a repository, or on an error."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=None if variables is None else {**os.environ, **variables},
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def current_revision(folder: str | os.PathLike[str] | None = None) -> str:
    """The commit that is checked out, with ``-dirty`` where tracked files differ from it.

    Empty without git, outside a repository, and before its first commit.
    """
    commit = run_git(["rev-parse", "--verify", "--quiet", "HEAD"], folder)
    if commit is None:
        return ""
    changes = run_git(["status", "--porcelain", "--untracked-files=no"], folder)
    return f"{commit.strip()}{DIRTY if changes else ''}"


class SubmoduleAbsent(Exception):
    """A commit of a submodule is not in the user's clone of it."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit with the first line of its message, or an entry of a list."""

    id: str
    title: str = ""

    @property
    def short(self) -> str:
        """The beginning of a commit's id; an entry of a list as it is."""
        return self.id[:10] if len(self.id) == 40 and self.title else self.id

    def __str__(self) -> str:
        return f"{self.short} {self.title}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """Revisions between a good and a bad one.

    Attributes
    ----------
    revisions : tuple of Revision
        The candidates, each after its parents, the bad one last of all; then the good one.
    contains : bool array, candidates x revisions
        Whether a revision contains the change of a candidate: it is the candidate, or comes
        after it. So branches and merges need no order.
    parents : tuple of int
        The place of each candidate's first parent. One that is older than the good revision
        counts as good, too: attempts are made at the good one.
    """

    revisions: tuple[Revision, ...]
    contains: BoolArray
    parents: tuple[int, ...]

    @property
    def good(self) -> int:
        return len(self.revisions) - 1

    @property
    def bad(self) -> int:
        return len(self.revisions) - 2

    @classmethod
    def of_list(cls, words: Sequence[str]) -> Lineage:
        """A list in order: the first is good, the last is bad."""
        count = len(words) - 1
        contains = np.zeros((count, count + 1), np.bool_)
        contains[:, :count] = np.triu(np.ones((count, count), np.bool_))
        revisions = tuple(Revision(word) for word in (*words[1:], words[0]))
        return cls(revisions, contains, (count, *range(count - 1)))


def resolve_commit(word: str) -> str:
    """The commit that a word such as ``v1.2`` or ``HEAD~20`` names."""
    commit = run_git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}"])
    if commit is None:
        if run_git(["rev-parse", "--git-dir"]) is None:
            raise InvalidValue(
                "this folder is not in a git repository.",
                hint="Go to it first, or list what to try in a file: --candidates models.txt",
            )
        raise InvalidValue(f"{word!r} is not a commit of this repository.")
    return commit.strip()


def list_revisions(good: str, bad: str) -> Lineage:
    """The commits that the bad one contains and the good one does not, with branches and merges."""
    good_commit, bad_commit = resolve_commit(good), resolve_commit(bad)
    if run_git(["merge-base", "--is-ancestor", good_commit, bad_commit]) is None:
        raise InvalidValue(
            f"{good} is not an ancestor of {bad}.",
            hint="Name a good commit that the bad one was made from, as git merge-base prints it.",
        )
    lines = run_git(
        [
            *("log", "--topo-order", "--reverse", "--format=%H%x00%P%x00%s"),
            *(f"{good_commit}..{bad_commit}", "--"),
        ]
    )
    rows = [line.split("\0") for line in (lines or "").splitlines()]
    if not rows:
        raise InvalidValue(f"{good} and {bad} are the same commit.")
    place_of = {row[0]: place for place, row in enumerate(rows)}
    good_place = len(rows)
    contains = np.zeros((len(rows), len(rows) + 1), np.bool_)
    parents = []
    for place, (_, parent_ids, _) in enumerate(rows):
        contains[place, place] = True
        inside = [place_of[parent] for parent in parent_ids.split() if parent in place_of]
        for parent in inside:
            contains[:, place] |= contains[:, parent]
        first = parent_ids.split()[0] if parent_ids else ""
        parents.append(place_of.get(first, good_place))
    title = (run_git(["log", "-1", "--format=%s", good_commit]) or "").strip()
    revisions = tuple(Revision(commit, subject or "-") for commit, _, subject in rows)
    return Lineage((*revisions, Revision(good_commit, title or "-")), contains, tuple(parents))


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of our own; the user's is never touched."""

    top: Path
    """The user's own working tree."""
    path: Path
    below: Path
    """The folder in it that matches the one that the command was called in."""
    lock: int

    def check_out(self, commit: str) -> None:
        """Put the files of a commit there, and nothing else."""
        for words in (
            ["checkout", "--quiet", "--detach", "--force", commit],
            ["clean", "-ffdxq"],
        ):
            if run_git(words, self.path, None) is None:
                raise InvalidValue(f"git could not check out {commit} in {self.path}.")
        for folder in (run_git(["rev-parse", "--git-common-dir"], self.path) or "").splitlines():
            _fill_submodules(self.path / folder, commit, self.path, self.top)

    @property
    def variables(self) -> dict[str, str]:
        """Python imports from the worktree, also what is installed from the user's folder."""
        places = [self.below, self.path, self.path / "src"]
        old = os.environ.get("PYTHONPATH", "")
        paths = [*dict.fromkeys(str(place) for place in places), *([old] if old else [])]
        return {"PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def open_worktree() -> Iterator[Worktree]:
    """A worktree for the time of a search; those that a killed search left are removed.

    Its lock is handed to the runs that are made in it: a run that outlives a killed search
    keeps its files.
    """
    top = run_git(["rev-parse", "--show-toplevel"])
    if top is None:
        raise InvalidValue("this folder is not in a git repository with a working tree.")
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _try_lock(lock)
        path = folder / "tree"
        words = ["worktree", "add", "--quiet", "--detach", "--no-checkout", str(path)]
        if run_git(words, None, None) is None:
            raise InvalidValue("git could not add a worktree.", hint="See: git worktree list")
        below = path / Path.cwd().resolve().relative_to(Path(top.strip()).resolve())
        yield Worktree(Path(top.strip()), path, below, lock)
    finally:
        os.close(lock)
        _remove_abandoned()


def _fill_submodules(repository: Path, commit: str, tree: Path, top: Path) -> None:
    """Put the files of a commit's submodules into a tree, from the user's clones of them.

    ``git submodule update`` would fetch each anew, and write to the user's configuration.
    """
    listing = run_git([f"--git-dir={repository}", "ls-tree", "-r", "-z", commit]) or ""
    entries = [line.partition("\t") for line in listing.split("\0")]
    links = {path: head.split()[2] for head, _, path in entries if head.startswith("160000 ")}
    if not links:
        return
    blob = f"--blob={commit}:.gitmodules"
    words = [f"--git-dir={repository}", "config", blob, "-z", "--get-regexp", r"\.path$"]
    pairs = [line.partition("\n") for line in (run_git(words) or "").split("\0")]
    name_of = {
        path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in pairs if key
    }
    for path, link in links.items():
        clones = (repository / "modules" / name_of.get(path, path), top / path / ".git")
        clone = next((place for place in clones if place.is_dir()), None)
        shutil.rmtree(tree / path, ignore_errors=True)
        (tree / path).mkdir(parents=True)
        if clone is None or not _write_files(clone, link, tree / path):
            raise SubmoduleAbsent(
                f"the submodule {path} is not in this clone at {link[:10]}: "
                "git submodule update --init --recursive, or git fetch in it"
            )
        _fill_submodules(clone, link, tree / path, top / path)


def _write_files(repository: Path, commit: str, folder: Path) -> bool:
    """Write the files of a commit; with an index of its own, the user's stays as it is."""
    with tempfile.TemporaryDirectory() as place:
        variables = {"GIT_INDEX_FILE": str(Path(place) / "index")}
        words = [f"--git-dir={repository}", f"--work-tree={folder}"]
        steps = (["read-tree", commit], ["checkout-index", "--all", "--force"])
        return all(run_git([*words, *step], folder, None, variables) is not None for step in steps)


def _remove_abandoned() -> None:
    """Remove worktrees of searches that ended, by force or not."""
    listing = run_git(["worktree", "list", "--porcelain"]) or ""
    for line in listing.splitlines():
        path = Path(line.removeprefix("worktree "))
        if not line.startswith("worktree ") or not path.parent.name.startswith(_FOLDER):
            continue
        with suppress(OSError):
            lock = os.open(path.parent / _LOCK, os.O_RDWR)
            try:
                if not _try_lock(lock):
                    continue  # another search is at work there
            finally:
                os.close(lock)
        run_git(["worktree", "remove", "--force", str(path)])
        shutil.rmtree(path.parent, ignore_errors=True)


def _try_lock(file: int) -> bool:
    """Lock a file, unless another process has locked it."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
