"""Where runs are read from: files, globs, and the examples that ship with passhat."""

from __future__ import annotations

import atexit
import glob
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING

from passhat.errors import InvalidValue, ReadError
from passhat.readers.json_parts import Outline, outline
from passhat.store import DEFAULT_PATH, is_address, open_store, without_password

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["EXAMPLE_PREFIX", "STANDARD_INPUT", "Source", "examples", "expand", "files_inside"]

EXAMPLE_PREFIX = "example:"
STANDARD_INPUT = "-"
_HEAD_BYTES = 64 * 1024
_HEAD_BLOCK = 4 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """One file, compressed or not, or one folder. ``name`` is what the user called it.

    ``found`` is true when the user named the folder around it: then a file that is no log is
    passed over rather than refused. ``part`` names one run inside a store. ``address`` is set for
    a store on a server, which has no file. ``size`` is how many bytes of a plain file count, when
    not all do.
    """

    name: str
    path: Path
    found: bool = False
    part: str = ""
    address: str = ""
    size: int | None = None

    @property
    def stem(self) -> str:
        """The file's name without its endings, for naming what has no name."""
        if self.name == STANDARD_INPUT:
            return "stdin"
        name = self.path.resolve().name
        return name.split(".")[0] or name

    @cached_property
    def is_folder(self) -> bool:
        """Whether this is a folder: some harnesses write one per run."""
        return self.path.is_dir()

    @cached_property
    def outline(self) -> Outline:
        """The keys of the first JSON object in the head: what most logs are recognized by."""
        return outline(self.head)

    def inside(self, *names: str) -> Source:
        """A file inside this folder."""
        return Source(str(Path(self.name, *names)), self.path.joinpath(*names))

    def whole_lines(self) -> Source:
        """The file up to the end of its last whole line: the rest is being written."""
        try:
            with self.path.open("rb") as file:
                if file.read(2) == _GZIP_MAGIC:
                    return self
                end = file.seek(0, io.SEEK_END)
                while end:
                    start = file.seek(max(0, end - _HEAD_BYTES))
                    found = file.read(end - start).rfind(b"\n")
                    if found >= 0:
                        return replace(self, size=start + found + 1)
                    end = start
        except OSError:  # said when it is read
            return self
        return replace(self, size=0)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the content, decompressed; nothing for a folder.

        A file that breaks off early still shows how it begins.
        """
        if self.is_folder or self.address:
            return b""
        head = b""
        with self.open() as stream:
            try:
                while len(head) < _HEAD_BYTES and (block := stream.read(_HEAD_BLOCK)):
                    head += block
            except (EOFError, zlib.error):
                if not head:
                    raise
        return head

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
                elif self.size is None:
                    yield plain
                else:
                    with io.BufferedReader(_Beginning(plain, self.size)) as beginning:
                        yield beginning
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


class _Beginning(io.RawIOBase):
    """The first bytes of a file, however long it has become."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        part = self._file.read(min(len(memoryview(buffer)), self._left))
        memoryview(buffer)[: len(part)] = part
        self._left -= len(part)
        return len(part)


def examples() -> dict[str, Path]:
    """The example tables that ship with passhat, by name."""
    folder = Path(str(files("passhat.examples")))
    tables = (path for path in sorted(folder.glob("*.csv*")) if ".rates." not in path.name)
    return {path.name.partition(".")[0]: path for path in tables}


def expand(sources: Iterable[str], store: str = DEFAULT_PATH) -> list[Source]:
    """Turn what a user typed into files: paths, globs, ``example:NAME``, ids of runs in a store."""
    found: dict[tuple[Path, str], Source] = {}
    for word in sources:
        for source in _expand_one(word, store):
            found.setdefault((source.path.resolve(), source.part), source)
    return list(found.values())


def _expand_one(word: str, store: str) -> list[Source]:
    if word.startswith(EXAMPLE_PREFIX):
        known = examples()
        name = word.removeprefix(EXAMPLE_PREFIX)
        if name not in known:
            raise ReadError(
                "there is no such example.", source=word, hint=f"There are: {', '.join(known)}."
            )
        return [Source(word, known[name])]
    if word == STANDARD_INPUT:
        return [Source(word, _kept_standard_input())]
    if is_address(word):
        address, _, part = word.partition("#")
        return [Source(without_password(word), Path(word), part=part, address=address)]
    path = Path(word)
    if path.exists():
        return [Source(word, path)]
    matches = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - a glob may be absolute
    if not matches:
        return [_stored_run(word, store)]
    return [Source(match, Path(match), found=Path(match).is_dir()) for match in matches]


def _stored_run(word: str, store: str) -> Source:
    """A run of the store, by its id; what is neither that nor a file is not there."""
    hint = "Check the path or the glob."
    address = store if is_address(store) else ""
    if address or Path(store).is_file():
        with open_store(store) as opened, suppress(InvalidValue):
            return Source(word, Path(store), part=opened.find(word).id, address=address)
        hint += f" Nor is it a run in {without_password(store)}; passhat runs lists those."
    raise ReadError("there is no such file.", source=word, hint=hint)


def files_inside(folder: Source, is_log: Callable[[Source], bool]) -> Iterator[Source]:
    """Every file below a folder in order of its name, hidden ones left out.

    A folder that is a log itself is one source, and is not looked into.
    """
    try:
        paths = sorted(folder.path.iterdir())
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}."
        raise ReadError(message, source=folder.name) from None
    for path in paths:
        if path.name.startswith("."):
            continue
        source = Source(str(Path(folder.name, path.name)), path, found=True)
        if source.is_folder and not is_log(source):
            yield from files_inside(source, is_log)
        elif source.is_folder or path.is_file():
            yield source


@cache
def _kept_standard_input() -> Path:
    """Standard input as a file: a log is looked at more than once."""
    kept = tempfile.NamedTemporaryFile(prefix="passhat-", delete=False)  # noqa: SIM115
    path = Path(kept.name)
    atexit.register(path.unlink, missing_ok=True)
    with kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
    return path
