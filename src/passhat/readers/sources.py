"""Where runs are read from: files, folders, globs, stores, and the examples that ship with passhat.

This is the front door for files of unknown origin: only regular files are opened, links that leave
a folder or loop are not followed, and the unpacked size of a compressed file is limited.
"""

from __future__ import annotations

import atexit
import codecs
import glob
import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING

from passhat.errors import InvalidValue, ReadError, UnknownFormat, shorten
from passhat.readers.parsing import Outline, outline
from passhat.readers.platforms import download, platform_of
from passhat.store import DEFAULT_PATH, is_address, open_store, without_password

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

EXAMPLE_PREFIX = "example:"
STANDARD_INPUT = "-"
_HEAD_BYTES = 64 * 1024
_HEAD_BLOCK = 4 * 1024
_LONGEST_OUTLINE = 64 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_NOT_TEXT = (b"PAR1", b"PK\x03\x04", b"SQLite format 3", b"ARROW1")

UNPACKED_FLOOR = 64 * 1024 * 1024
"""Bytes that any compressed file may unpack to, whatever its ratio."""
MOST_RATIO = 50
"""Logs compress 5 to 30 times (measured on inspect_ai and tau2-bench logs), a bomb 1,000 times."""

_ENDINGS = frozenset(
    {
        *(".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".eval", ".xlsx"),
        *(".xml", ".gz", ".zst", ".db", ".sqlite", ".log", ".md", ".zip", ".yaml", ".yml"),
        *(".arrow", ".sqlite3", ".html", ".htm", ".tex", ".ipynb", ".tap", ".toml", ".out", ".ini"),
    }
)
"""Endings of files. Anything else behind a dot belongs to the name: ``gpt-4.1``."""

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnpackedTooLarge(ReadError):
    """A compressed file unpacks to more than is allowed."""

    def __init__(self, source: str, limit: int) -> None:
        super().__init__(
            f"unpacks to more than {limit / 1e6:,.0f} MB, which is more than {MOST_RATIO} times "
            "its size or than the limit that was set; nothing was read.",
            source=source,
            hint="If the file is sound, allow more: --max-unpacked 4GB",
        )


def limit_unpacked(packed: int, stated: int | None) -> int:
    """How many bytes a compressed file of this size may unpack to."""
    return max(UNPACKED_FLOOR, MOST_RATIO * packed) if stated is None else stated


@dataclass(frozen=True)
class Source:
    """A file, compressed or not, or a folder.

    Attributes
    ----------
    name : str
        The path as the user wrote it.
    path : Path
        The file or folder.
    found : bool
        Whether the user named the folder around it: a file that is not a log is then passed over
        rather than refused.
    part : str
        The id of one run inside a store.
    address : str
        Set for a store on a server, which has no file.
    size : int, optional
        How many bytes of a plain file count, when not all do.
    max_unpacked : int, optional
        The stated limit on the unpacked size of a compressed file.
    conversion : str
        How the rows of this file were made from another, for the user to know.
    stated_rate : float, optional
        The share of passes that the other file states at its end.
    """

    name: str
    path: Path
    found: bool = False
    part: str = ""
    address: str = ""
    size: int | None = None
    max_unpacked: int | None = None
    conversion: str = ""
    stated_rate: float | None = None

    @property
    def stem(self) -> str:
        """The file's name without its endings, as a name for runs without a name."""
        if self.name == STANDARD_INPUT:
            return "stdin"
        path = Path(self.path.resolve().name)
        while path.suffix.lower() in _ENDINGS and path.stem:
            path = Path(path.stem)
        return path.name

    @property
    def is_prose(self) -> bool:
        """Whether the name is that of a file of any kind: a table only by certain headings."""
        endings = ("", ".txt", ".log", ".diff", ".patch", ".out", ".rst")
        return self.is_markdown or self.path.suffix.lower() in endings

    @property
    def is_markdown(self) -> bool:
        """Whether the file is Markdown by its name."""
        return self.path.suffix.lower() in (".md", ".markdown")

    @cached_property
    def is_folder(self) -> bool:
        """Whether this is a folder: some harnesses write one per run."""
        return self.path.is_dir()

    @cached_property
    def outline(self) -> Outline:
        """The keys of the first JSON object, by which most logs are recognized.

        Those behind a list that is longer than the head are found in the whole document.
        """
        found = outline(self.head)
        line = self.head.split(b"\n", 1)[0].rstrip()
        is_cut = found.opens == "{" and len(self.head) > _HEAD_BYTES - 4
        is_cut = is_cut and self.path.stat().st_size <= _LONGEST_OUTLINE
        if not is_cut or (len(line) > 1 and len(line) < len(self.head) and line.endswith(b"}")):
            return found  # or lines of objects
        import msgspec

        with suppress(ReadError, msgspec.MsgspecError, RecursionError), self.open() as stream:
            data = stream.read(_LONGEST_OUTLINE + 1).removeprefix(b"\xef\xbb\xbf")
            if len(data) <= _LONGEST_OUTLINE:
                keys = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
                return Outline("{", frozenset(keys))
        return found

    def inside(self, *names: str) -> Source:
        """A file inside this folder."""
        return Source(
            str(Path(self.name, *names)),
            self.path.joinpath(*names),
            max_unpacked=self.max_unpacked,
        )

    def path_below(self, folder: Source) -> PurePath:
        """The path below a folder as its user sees it, also of a file that was rewritten."""
        path, root = PurePath(self.name), PurePath(folder.name)
        return path.relative_to(root) if path.is_relative_to(root) else path

    def children(self, pattern: str) -> list[Source]:
        """The regular files below this folder that match a glob, each once and without links."""
        root = self.path.resolve()
        sources = []
        for path in sorted(self.path.glob(pattern)):
            relative = path.relative_to(self.path)
            # A link anywhere on the way would count a trial twice, or read outside the folder.
            if path.is_file() and path.resolve() == root / relative:
                sources.append(self.inside(*relative.parts))
        return sources

    def whole_lines(self) -> Source:
        """The file up to the end of its last whole line: the rest is still being written."""
        try:
            with self.path.open("rb") as file:
                if file.read(2) == _GZIP_MAGIC:
                    return self
                end = file.seek(0, io.SEEK_END)
                while end:
                    start = file.seek(max(0, end - _HEAD_BYTES))
                    newline = file.read(end - start).rfind(b"\n")
                    if newline >= 0:
                        return replace(self, size=start + newline + 1)
                    end = start
        except OSError:  # reported when it is read
            return self
        return replace(self, size=0)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the content, decompressed; empty for a folder.

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

    @cached_property
    def encoding(self) -> str:
        """The encoding of a text that is not UTF-8; empty for UTF-8 and for other files."""
        if self.is_folder or self.address:
            return ""
        try:
            with self._open_raw() as stream:
                head = stream.read(_HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        except (ReadError, EOFError, zlib.error):
            return ""
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if len(head) > 3 and head[1::2].count(0) == len(head) // 2 and 0 not in head[::2]:
            return "utf-16-le"  # without a mark at its start
        if head.startswith(_NOT_TEXT) or head.lstrip()[:1] in (b"{", b"[", b"<") or b"\0" in head:
            return ""
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            control = sum(byte < 9 or 13 < byte < 32 for byte in head)
            return "" if control > len(head) // 100 else _guess_code_page(head)
        return ""

    @property
    def decisions(self) -> tuple[str, ...]:
        """Choices on the way to the content that a reader passes on to its runs."""
        name = _ENCODINGS.get(self.encoding)
        encoding = "" if name is None else f"the text is not UTF-8 and was read as {name}"
        return tuple(line for line in (encoding, self.conversion) if line)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as bytes, decompressed, a text as UTF-8; every failure is a ReadError."""
        with self._open_raw() as stream:
            if not self.encoding:
                yield stream
                return
            text = codecs.getreader(self.encoding)(stream, "replace")
            with io.BufferedReader(_Encoded(text)) as encoded:
                yield encoded

    @contextmanager
    def _open_raw(self) -> Iterator[IO[bytes]]:
        try:
            self._refuse_special()
            with self.path.open("rb") as plain:
                magic = plain.read(4)
                plain.seek(0)
                if magic.startswith(_GZIP_MAGIC):
                    with gzip.open(plain) as unpacked, self._limit(unpacked) as content:  # type: ignore[arg-type]
                        yield content
                elif magic == _ZSTD_MAGIC:
                    import zstandard

                    decompressor = zstandard.ZstdDecompressor(max_window_size=2**27)
                    try:
                        with self._limit(decompressor.stream_reader(plain)) as content:
                            yield content
                    except zstandard.ZstdError as error:
                        raise zlib.error(str(error)) from None
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

    def _refuse_special(self) -> None:
        """Refuse a special file before opening it: a pipe without a writer blocks."""
        mode = os.stat(self.path).st_mode  # noqa: PTH116 - a test may replace Path's methods
        kind = next((name for test, name in _KINDS if test(mode)), None)
        if kind is not None:
            raise ReadError(
                f"is {kind}, not a file, and can be read only once.",
                source=self.name,
                hint="Pipe it to standard input instead: COMMAND | passhat read -",
            )

    def _limit(self, unpacked: IO[bytes]) -> io.BufferedReader:
        limit = limit_unpacked(self.path.stat().st_size, self.max_unpacked)
        return io.BufferedReader(_Beginning(unpacked, limit, UnpackedTooLarge(self.name, limit)))


class _Encoded(io.RawIOBase):
    """Text as UTF-8."""

    def __init__(self, text: codecs.StreamReader) -> None:
        self._text = text
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        if not self._rest:
            self._rest = self._text.read(len(view)).encode("utf-8", "replace")
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(part)] = part
        return len(part)


class _Beginning(io.RawIOBase):
    """The first bytes of a stream; the rest is dropped, or raises an error."""

    def __init__(self, file: IO[bytes], size: int, beyond: ReadError | None = None) -> None:
        self._file = file
        self._left = size
        self._beyond = beyond

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        part = self._file.read(min(len(view), self._left))
        if not part and self._beyond is not None and self._left == 0 and self._file.read(1):
            raise self._beyond
        view[: len(part)] = part
        self._left -= len(part)
        return len(part)


def examples() -> dict[str, Path]:
    """The example tables that ship with passhat, by name."""
    folder = Path(str(files("passhat.examples")))
    tables = (path for path in sorted(folder.glob("*.csv*")) if ".rates." not in path.name)
    return {path.name.partition(".")[0]: path for path in tables}


def expand(
    sources: Iterable[str], store: str = DEFAULT_PATH, max_unpacked: int | None = None
) -> list[Source]:
    """Turn words of a user into files: paths, globs, ``example:NAME``, ids of runs in a store.

    Of a live platform (``langfuse:PROJECT``) the results are downloaded into a temporary file.
    """
    sources_by_path: dict[tuple[Path, str], Source] = {}
    for word in sources:
        for source in _expand_one(word, store):
            key = (source.path.resolve(), source.part)
            sources_by_path.setdefault(key, replace(source, max_unpacked=max_unpacked))
    return list(sources_by_path.values())


def _expand_one(word: str, store: str) -> list[Source]:
    if word.startswith(EXAMPLE_PREFIX):
        tables = examples()
        name = word.removeprefix(EXAMPLE_PREFIX)
        if name not in tables:
            raise ReadError(
                "there is no such example.", source=word, hint=f"There are: {', '.join(tables)}."
            )
        return [Source(word, tables[name])]
    if word == STANDARD_INPUT:
        return [Source(word, _save_standard_input())]
    if is_address(word):
        address, _, part = word.partition("#")
        return [Source(without_password(word), Path(word), part=part, address=address)]
    path = Path(word)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a loop of links, a name that is too long, a null byte
        exists = False
    if exists:
        return [Source(word, path)]
    if platform_of(word) is not None:
        return [Source(word, download(word))]
    matches = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - a glob may be absolute
    if not matches:
        return [_find_stored_run(word, store)]
    return [Source(match, Path(match), found=Path(match).is_dir()) for match in matches]


def _find_stored_run(word: str, store: str) -> Source:
    """A run of the store, by its id."""
    hint = "Check the path or the glob."
    address = store if is_address(store) else ""
    if address or Path(store).is_file():
        with open_store(store) as opened, suppress(InvalidValue):
            return Source(word, Path(store), part=opened.find(word).id, address=address)
        hint += f" Nor is it a run in {without_password(store)}; passhat runs lists those."
    elif word.startswith("latest"):
        raise ReadError(
            f"there is no store at {store}, so there is no newest run.",
            source=word,
            hint="passhat run makes one. Or name a log or a table, as in results.csv",
        )
    raise ReadError("there is no such file.", source=word, hint=hint)


def files_inside(
    folder: Source,
    is_log: Callable[[Source], bool],
    passed_over: list[tuple[str, str]] | None = None,
) -> Iterator[Source]:
    """Every regular file below a folder in order of its name, without hidden files.

    A folder that is a log itself is one source, and is not looked into. Links that leave the
    folder or lead back up are not followed; ``passed_over`` receives their names and why.
    """
    yield from _walk(
        folder, folder.path.resolve(), is_log, [] if passed_over is None else passed_over
    )


def _walk(
    folder: Source,
    root: Path,
    is_log: Callable[[Source], bool],
    passed_over: list[tuple[str, str]],
) -> Iterator[Source]:
    try:
        paths = sorted(folder.path.iterdir())
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}."
        raise ReadError(message, source=folder.name) from None
    # Links last: of a file and a link to it, the file itself is read and the link is named.
    paths.sort(key=lambda path: path.is_symlink())
    for path in paths:
        if path.name.startswith("."):
            continue
        source = replace(folder.inside(path.name), found=True)
        why = _why_not_followed(path, root)
        if why:
            passed_over.append((source.name, why))
        elif source.is_folder and not is_log(source):
            yield from _walk(source, root, is_log, passed_over)
        elif source.is_folder or path.is_file():
            yield source
        else:
            passed_over.append((source.name, "not a regular file"))


def _why_not_followed(path: Path, root: Path) -> str:
    if not path.is_symlink():
        return ""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a loop is a RuntimeError before Python 3.13
        return "a link that leads nowhere or to itself"
    if not target.is_relative_to(root):
        return f"a link that leaves the folder (to {target})"
    if target.is_dir():
        return "a link to a folder that is read anyway"
    return ""


def make_folder() -> Path:
    """A temporary folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="passhat-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _save_standard_input() -> Path:
    """Standard input saved to a file: a log is read more than once."""
    file = tempfile.NamedTemporaryFile(prefix="passhat-", delete=False)  # noqa: SIM115
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    with file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


_ENCODINGS = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "cp1252": "Windows-1252 (Latin-1)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp932": "Shift-JIS",
    "euc_kr": "EUC-KR",
    "gb18030": "GB18030 (Chinese)",
    "big5": "Big5",
}
# The usual letters of each script, by the bytes that write them, and what else such a text holds.
_USUAL_LETTERS = {
    "cp1251": rb"[\xa8\xb8\xc0-\xff]{2,}",
    "cp932": rb"(?:[\x81-\x83][\x40-\xfc]|[\x88-\x98][\x40-\xfc]){2,}",
    "euc_kr": rb"(?:[\xb0-\xc8][\xa1-\xfe])+",
    "gb18030": rb"(?:[\xa1\xa3\xb0-\xd7][\xa1-\xfe])+",
    "big5": rb"(?:[\xa1-\xc6][\x40-\x7e\xa1-\xfe])+",
}


def _guess_code_page(head: bytes) -> str:
    """The encoding in which nearly all bytes beyond ASCII are usual letters of one script."""
    beyond = sum(byte > 127 for byte in head)
    for name, letters in _USUAL_LETTERS.items():
        usual = sum(byte > 127 for run in re.findall(letters, head) for byte in run)
        if 20 * usual >= 17 * beyond:
            try:
                codecs.getincrementaldecoder(name)().decode(head)
            except UnicodeDecodeError:
                continue
            return name
    return "cp1252"


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def unknown_file(source: Source) -> UnknownFormat:
    """The error for a file that no reader accepts: its likely kind, and a remedy."""
    if source.head.startswith(_UTF16):
        return UnknownFormat(
            "is UTF-16 text; tables and logs are read as UTF-8.",
            source=source.name,
            hint="Save it as UTF-8, or: iconv -f UTF-16 -t UTF-8 FILE > NEW",
        )
    try:
        source.head[:-4].decode("utf-8")
    except UnicodeDecodeError as error:
        # A head is cut after some bytes, which may be in the middle of a character.
        if error.start < len(source.head) - 8 and b"\x00" not in source.head:
            return UnknownFormat(
                "is text, but not UTF-8.",
                source=source.name,
                hint="Save it as UTF-8, or: iconv -f LATIN1 -t UTF-8 FILE > NEW",
            )
    control = sum(byte < 9 or 13 < byte < 32 for byte in source.head)
    if control > len(source.head) // 20:
        what = "is a binary file of a format that passhat does not know."
    else:
        first = source.head.decode("utf-8", "replace").splitlines()[0]
        begin = first if len(first) <= 40 else first[:40].rpartition(" ")[0] or first[:40]
        what = f"is text of a format that passhat does not know; it begins {shorten(begin)}."
    return UnknownFormat(
        what,
        source=source.name,
        hint="docs/logs.md lists the formats; any table, JSON or XML can be read by stating its "
        "fields: --map task=FIELD,success=FIELD",
    )


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file are UTF-8."""
    if not head.strip() or b"\x00" in head:
        return False
    # The head may end in the middle of a character; anything broken before that is not text.
    tail = head[-4:]
    try:
        head[:-4].decode("utf-8") if len(head) > 4 else head.decode("utf-8", "replace")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 8 and bool(tail)
    return True
