"""Revisions of a git repository: the current one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

__all__ = ["current_revision"]

DIRTY = "-dirty"
"""Follows a commit whose files were changed and not committed, as in ``git describe --dirty``."""
_SECONDS = 10.0


def run_git(words: Sequence[str], folder: str | os.PathLike[str] | None = None) -> str | None:
    """The output of a git command; ``None`` without git, without a repository, or on an error."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
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
