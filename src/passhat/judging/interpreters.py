"""The Python that runs generated code, and the few places it is read from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passhat.errors import SandboxUnavailable
from passhat.judging.packages import Granted, grant

__all__ = ["Interpreter", "find_interpreter"]

_SYSTEM_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64")
_PACKAGES = ("site-packages", "dist-packages")
_ASK = """
import json, os, sys
print(json.dumps({
    "executable": os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable),
    "called": sys.executable,
    "prefix": sys.prefix, "base": sys.base_prefix,
    "stdlib": os.path.dirname(os.path.realpath(os.__file__)),
    "version": sys.version.split()[0],
}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, by what a sandbox must show of it.

    Without ``packages`` nothing is shown but the standard library: installed packages may hold
    the very tests that are to stay hidden. ``granted`` are shown nevertheless; ``named`` says which
    they are, with their versions.
    """

    executable: str
    prefix: str
    base: str
    stdlib: str
    packages: bool
    version: str = ""
    granted: tuple[Granted, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def granted_roots(self) -> tuple[str, ...]:
        """The folders that hold the granted packages."""
        return tuple(dict.fromkeys(one.root for one in self.granted))

    @property
    def command(self) -> list[str]:
        """How it is called: no environment, no user's folder, no stale bytecode."""
        return [self.executable, "-I", "-B", *([] if self.packages else ["-S"])]

    @property
    def shown(self) -> tuple[str, ...]:
        """Folders and files to show, outermost first."""
        own = [str(Path(self.base) / "lib"), self.stdlib, self.executable]
        own += [self.prefix, str(Path(self.base) / "bin")] if self.packages else []
        found: list[str] = []
        for path in sorted(dict.fromkeys((*_SYSTEM_LIBRARIES, *own)), key=len):
            if Path(path).exists() and not any(path.startswith(f"{one}/") for one in found):
                found.append(path)
        return tuple(found)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Folders of installed packages below what is shown."""
        if self.packages:
            return ()
        roots = {path.resolve() for path in (Path(self.stdlib), Path("/usr/lib/python3"))}
        roots |= {path.resolve() for path in Path(self.base, "lib").glob("python3*")}
        found = (root / name for root in sorted(roots) for name in _PACKAGES)
        return tuple(str(path) for path in found if path.is_dir())

    def readable(self) -> tuple[list[str], list[str]]:
        """The same as folders to list and paths to read, for rules that cannot take away."""
        if self.packages:
            return [], list(self.shown)
        hidden = set(self.hidden)
        listable = [*(path for path in self.shown if Path(path).is_dir()), self.stdlib]
        readable = [path for path in self.shown if not Path(path).is_dir()]
        readable += [one.path for one in self.granted]
        for folder in listable:
            readable += [
                str(entry)
                for entry in Path(folder).iterdir()
                if not any(path.startswith(str(entry.resolve())) for path in hidden)
            ]
        # Python lists a folder before it imports from it; the names there are all that shows.
        return [*listable, *self.granted_roots], readable


def find_interpreter(path: str | None = None, packages: Sequence[str] = ()) -> Interpreter:
    """Look at an interpreter: the one passhat runs on, or the one at ``path``.

    Without ``packages`` the one at ``path`` comes with everything installed there. With them only
    these, and what they need, are shown.
    """
    said = _told(path, _ASK)
    whole = path is not None and not packages
    granted, named = grant(packages, lambda code, *words: _told(path, code, *words))
    return Interpreter(
        said["called"] if whole else said["executable"],
        said["prefix"],
        said["base"],
        said["stdlib"],
        whole,
        said["version"],
        granted,
        named,
    )


def _told(path: str | None, code: str, *words: str) -> Any:
    """What an interpreter prints as JSON when it runs some code."""
    try:
        done = subprocess.run(
            [path or sys.executable, "-I", "-c", code, *words],
            capture_output=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(
            f"{path} does not work as a Python interpreter ({error}).",
            hint="Name one with --python, as in --python /usr/bin/python3.",
        ) from None
