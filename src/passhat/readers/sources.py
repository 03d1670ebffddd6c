"""Where runs are read from: files, globs, and the examples that ship with passhat."""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import IO

from passhat.errors import ReadError

__all__ = ["EXAMPLE_PREFIX", "Source", "examples", "expand"]

EXAMPLE_PREFIX = "example:"
_HEAD_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """One file, compressed or not. ``name`` is what the user called it."""

    name: str
    path: Path

    @property
    def stem(self) -> str:
        """The file's name without its endings, for naming what has no name."""
        return self.path.name.split(".")[0] or self.path.name

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the content, decompressed."""
        with self.open() as stream:
            return stream.read(_HEAD_BYTES)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as bytes, decompressed; what goes wrong on the way is a ReadError."""
        try:
            with self.path.open("rb") as plain:
                packed = plain.read(2) == _GZIP_MAGIC
                plain.seek(0)
                if packed:
                    with gzip.open(plain) as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield plain
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ReadError(
                f"the compressed data is broken or ends too early ({error}).",
                source=self.name,
                hint="Copy or download the file again.",
            ) from None
        except OSError as error:
            raise ReadError(
                f"cannot be read: {error.strerror or error}.", source=self.name
            ) from None


def examples() -> dict[str, Path]:
    """The example tables that ship with passhat, by name."""
    folder = Path(str(files("passhat.examples")))
    return {path.stem: path for path in sorted(folder.glob("*.csv"))}


def expand(sources: Iterable[str]) -> list[Source]:
    """Turn what a user typed into files: paths, globs and ``example:NAME``."""
    found: dict[Path, Source] = {}
    for word in sources:
        for source in _expand_one(word):
            found.setdefault(source.path.resolve(), source)
    return list(found.values())


def _expand_one(word: str) -> list[Source]:
    if word.startswith(EXAMPLE_PREFIX):
        known = examples()
        name = word.removeprefix(EXAMPLE_PREFIX)
        if name not in known:
            raise ReadError(
                "there is no such example.", source=word, hint=f"There are: {', '.join(known)}."
            )
        return [Source(word, known[name])]
    path = Path(word)
    if path.is_dir():
        raise ReadError(
            "is a folder; files are needed.", source=word, hint=f"Name them: '{word}/*.csv'"
        )
    if path.exists():
        return [Source(word, path)]
    matches = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - a glob may be absolute
    if not matches:
        raise ReadError("there is no such file.", source=word, hint="Check the path or the glob.")
    return [Source(match, Path(match)) for match in matches if Path(match).is_file()]
