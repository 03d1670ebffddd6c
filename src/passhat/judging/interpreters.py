"""The Python that runs generated code: which folders a sandbox shows of it, and which packages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passhat._display import some
from passhat.errors import InvalidValue, SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Granted:
    """A folder or file of an installed package: where it is, and its name below ``root``."""

    path: str
    root: str
    name: str


_LIBRARIES = """
def libraries(places):
    # By the names under which the dynamic linker finds them, since a sandbox looks them up again.
    import ctypes, pathlib
    class Info(ctypes.Structure):
        _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]
    files = [file for place in places for file in pathlib.Path(place).rglob("*.so")]
    for file in [*files, "libgcc_s.so.1", "libpthread.so.0", "librt.so.1", "libdl.so.2"]:
        try:
            ctypes.CDLL(str(file))
        except OSError:
            pass
    names = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
    see = kind(lambda info, size, data: names.append(os.fsdecode(info[0].name)) or 0)
    ctypes.CDLL(None).dl_iterate_phdr(see, None)
    return [name for name in names if name[:1] == "/" and not name.startswith(tuple(places))]
"""
# Runs on the interpreter that the packages belong to, with nothing but its standard library.
_ASK_PACKAGES = (
    _LIBRARIES
    + """
import importlib.metadata as metadata, json, os, re, sys

def distribution(name):
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None

def parts(found):
    root = str(found.locate_file(""))
    files = found.files or [found.locate_file(found.metadata["Name"].replace("-", "_"))]
    names = set()
    for file in files:
        words = os.path.relpath(str(found.locate_file(file)), root).split(os.sep)
        if words[0] in ("..", "__pycache__") or words[0].endswith(".pth"):
            continue
        top = os.path.join(root, words[0])
        whole = not os.path.isdir(top) or os.path.exists(os.path.join(top, "__init__.py"))
        # A folder without __init__ may be shared with packages that were not named.
        names.add(words[0] if whole or words[0].endswith("-info") else os.path.join(*words[:2]))
    return [[os.path.join(root, n), root, n] for n in sorted(names)
            if os.path.exists(os.path.join(root, n))]

wanted = [(name, True) for name in sys.argv[1:]]
seen, said = set(), {"parts": [], "named": [], "absent": []}
while wanted:
    name, needed = wanted.pop()
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        continue
    seen.add(key)
    found = distribution(name)
    if found is None:
        said["absent"] += [name] if needed else []
        continue
    said["named"].append("%s %s" % (found.metadata["Name"], found.version))
    said["parts"] += parts(found)
    for line in found.requires or []:
        text, _, marker = line.partition(";")
        if "extra" not in marker:
            wanted.append((re.match(r"[A-Za-z0-9._-]+", text).group(), not marker))
said["named"].sort()
said["libraries"] = libraries([path for path, root, name in said["parts"]])
print(json.dumps(said))
"""
)


def grant(
    names: Sequence[str], run_code: Callable[..., Any]
) -> tuple[tuple[Granted, ...], tuple[str, ...], tuple[str, ...]]:
    """Find installed distributions and their dependencies; ``told`` runs code in the interpreter.

    Returns
    -------
    tuple of Granted, tuple of str, tuple of str
        Folders and files to show, distributions with their versions, and libraries they link to.
    """
    if not names:
        return (), (), ()
    for name in names:
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise InvalidValue(
                f"--with {name!r} is not the name of a package.",
                hint="Name what is installed, without a version, as in --with numpy.",
            )
    reply = run_code(_ASK_PACKAGES, *names)
    if reply["absent"]:
        raise InvalidValue(
            f"--with: the interpreter has no package {some(reply['absent'])}.",
            hint="Install it there, or choose the interpreter that has it with --python.",
        )
    granted = {path: Granted(path, root, name) for path, root, name in reply["parts"]}
    return tuple(granted.values()), tuple(reply["named"]), tuple(reply["libraries"])


_ALL_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64")
"""Where they are, if the interpreter cannot say which it needs."""
_DATA = (
    "/usr/share/zoneinfo",  # time zones are a part of the standard library's data
    *("/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8", "/etc/ld.so.cache"),
)
_PACKAGES = ("site-packages", "dist-packages")
_ASK = (
    _LIBRARIES
    + """
import json, os, sys
stdlib = os.path.dirname(os.path.realpath(os.__file__))
try:
    found = libraries([stdlib + "/lib-dynload"])
except ImportError:
    found = []
print(json.dumps({
    "libraries": found,
    "executable": os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable),
    "called": sys.executable,
    "prefix": sys.prefix, "base": sys.base_prefix,
    "stdlib": stdlib,
    "version": sys.version.split()[0],
}))
"""
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, by the folders that a sandbox must show of it.

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
    libraries: tuple[str, ...] = ()

    @property
    def granted_roots(self) -> tuple[str, ...]:
        """The folders that hold the granted packages."""
        return tuple(dict.fromkeys(granted.root for granted in self.granted))

    @property
    def command(self) -> list[str]:
        """How it is called: no environment, no user's folder, no stale bytecode."""
        return [self.executable, "-I", "-B", *([] if self.packages else ["-S"])]

    @property
    def shown(self) -> tuple[str, ...]:
        """Folders and files to show, outermost first."""
        paths = [*_DATA, *(self.libraries or _ALL_LIBRARIES), self.stdlib, self.executable]
        paths += [self.prefix, str(Path(self.base) / "bin")] if self.packages else []
        folders: list[str] = []
        for path in sorted(dict.fromkeys(paths), key=len):
            if Path(path).exists() and not any(path.startswith(f"{folder}/") for folder in folders):
                folders.append(path)
        return tuple(folders)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Folders of installed packages below the visible folders."""
        if self.packages:
            return ()
        # The second is Debian's, which is shown only where all libraries are.
        roots = (Path(self.stdlib), Path("/usr/lib/python3"))
        folders = (root / name for root in roots for name in _PACKAGES)
        return tuple(str(path) for path in folders if path.is_dir())

    def readable(self) -> tuple[list[str], list[str]]:
        """The same as folders to list and paths to read, for rules that cannot take away."""
        if self.packages:
            return [], list(self.shown)
        hidden = set(self.hidden)
        listable = [*(path for path in self.shown if Path(path).is_dir()), self.stdlib]
        readable = [path for path in self.shown if not Path(path).is_dir()]
        readable += [granted.path for granted in self.granted]
        for folder in listable:
            readable += [
                str(entry)
                for entry in Path(folder).iterdir()
                if not any(path.startswith(str(entry.resolve())) for path in hidden)
            ]
        # Python lists a folder before it imports from it; the names there are all that shows.
        return [*listable, *self.granted_roots], readable


def find_interpreter(path: str | None = None, packages: Sequence[str] = ()) -> Interpreter:
    """Describe the interpreter at ``path``, by default that of passhat.

    Without ``packages`` the one at ``path`` comes with everything installed there. With them only
    these, and their dependencies, are shown.
    """
    facts = _run_code(path, _ASK)
    whole = path is not None and not packages
    granted, named, libraries = grant(packages, lambda code, *words: _run_code(path, code, *words))
    return Interpreter(
        facts["called"] if whole else facts["executable"],
        facts["prefix"],
        facts["base"],
        facts["stdlib"],
        whole,
        facts["version"],
        granted,
        named,
        (*facts["libraries"], *libraries) if facts["libraries"] else (),
    )


def _run_code(path: str | None, code: str, *words: str) -> Any:
    """The JSON output of an interpreter that runs some code."""
    try:
        completed = subprocess.run(
            [path or sys.executable, "-I", "-c", code, *words],
            capture_output=True,
            timeout=60,
            check=True,
        )
        return json.loads(completed.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(
            f"{path} does not work as a Python interpreter ({error}).",
            hint="Name one with --python, as in --python /usr/bin/python3.",
        ) from None
