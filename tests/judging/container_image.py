"""The smallest image that holds a Python: the one that runs the tests, and what it links to."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

from passhat.judging.interpreters import Interpreter

_LEFT_OUT = ("site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "tkinter")


def build_image(engine: str, interpreter: Interpreter) -> str:
    """Import the image, unless it is there; its name."""
    known = hashlib.sha256(repr(interpreter).encode()).hexdigest()[:12]
    image = f"localhost/passhat-tests:{known}"
    if subprocess.run([engine, "image", "inspect", image], capture_output=True).returncode == 0:
        return image
    with tempfile.TemporaryDirectory(prefix="passhat-") as folder:
        packed = Path(folder) / "root.tar"
        _pack(packed, interpreter)
        subprocess.run([engine, "import", packed, image], check=True, capture_output=True)
    return image


def _pack(packed: Path, interpreter: Interpreter) -> None:
    stdlib = Path(interpreter.stdlib)
    modules = list((stdlib / "lib-dynload").glob("*.so"))
    with tarfile.open(packed, "w") as archive:
        for name in ("tmp", "proc", "dev", "sys", "etc", "usr/bin"):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(made)
        for path in sorted(find_libraries([interpreter.executable, *map(str, modules)])):
            archive.add(Path(path).resolve(), path.lstrip("/"))
        archive.add(interpreter.executable, interpreter.executable.lstrip("/"))
        archive.add(stdlib, str(stdlib).lstrip("/"), filter=_wanted)
        link = tarfile.TarInfo("usr/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, interpreter.executable
        archive.addfile(link)


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(entry.name).name in _LEFT_OUT else entry


def find_libraries(files: list[str]) -> set[str]:
    """The libraries that these files are linked to, by the names they are looked up with."""
    said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    words = [word for line in said.splitlines() if line.startswith("\t") for word in line.split()]
    return {word for word in words if word.startswith("/") and Path(word).is_file()}
