"""Packages that a program may import: named ones and what they need, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from passhat._display import some
from passhat.errors import InvalidValue

__all__ = ["Granted", "grant"]


@dataclass(frozen=True, slots=True)
class Granted:
    """A folder or file of an installed package: where it is, and its name below ``root``."""

    path: str
    root: str
    name: str


# Runs on the interpreter that the packages belong to, with nothing but its standard library.
_ASK = """
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
        # A folder without __init__ may be shared with packages that nobody named.
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
print(json.dumps(said))
"""


def grant(
    names: Sequence[str], told: Callable[..., Any]
) -> tuple[tuple[Granted, ...], tuple[str, ...]]:
    """Find installed distributions and what they need; ``told`` asks the interpreter.

    Returns
    -------
    tuple of Granted, tuple of str
        What to show, and the distributions with their versions.
    """
    if not names:
        return (), ()
    for name in names:
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise InvalidValue(
                f"--with {name!r} is not the name of a package.",
                hint="Name what is installed, without a version, as in --with numpy.",
            )
    said = told(_ASK, *names)
    if said["absent"]:
        raise InvalidValue(
            f"--with: the interpreter has no package {some(said['absent'])}.",
            hint="Install it there, or choose the interpreter that has it with --python.",
        )
    granted = {path: Granted(path, root, name) for path, root, name in said["parts"]}
    return tuple(granted.values()), tuple(said["named"])
