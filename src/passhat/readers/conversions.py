"""Files of other libraries as files that a reader takes: SQLite, Arrow, YAML, HTML and test logs.

Each is written once to a temporary folder, which is removed when the process ends: rows as JSON
lines or Parquet, a document as JSON.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from passhat._display import counted
from passhat.errors import MissingExtra, ReadError, shorten
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, ReadOptions, RunFacts
from passhat.readers.nested_records import find_verdict, read_object
from passhat.readers.records import steps_of, value_at
from passhat.readers.rows import is_markdown
from passhat.readers.sources import Source, UnpackedTooLarge, limit_unpacked, make_folder
from passhat.readers.zip_members import NO_HEADER, from_sqlite, name_without_header, write_lines
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import SLICE_PREFIX, ColumnMap
from passhat.stats.outcomes.rewards import RewardWords

__all__ = ["convert", "is_dataset", "is_path_pattern", "read_paths", "suggest_pattern"]


_PART = re.compile(r"\\{([\w:]+)\\}")
_WORDS = ("model", "suite", "task", "trial", "seed", "success")
_LONGEST = 256
"""Bytes of a file that holds one verdict."""


def is_path_pattern(records: str | None) -> bool:
    """Whether --records names parts of a path, as in {model}/{task}/result.txt."""
    return records is not None and re.search(r"\{task\}|\{.*/", records) is not None


def read_paths(folder: Source, options: ReadOptions) -> list[Run]:
    """Every file below a folder whose path fits the pattern; each is an attempt."""
    pattern = options.records or ""
    path_re = _compile(pattern, folder.name)
    slices = [name for name in path_re.groupindex if name not in _WORDS]
    log = LogBuilder(folder, "one file per attempt", options, order="trial", slices=slices)
    words, runs = RewardWords(), dict[str, tuple[str, str]]()
    files_of: dict[tuple[object, ...], str] = {}
    for file in folder.children("**/*"):
        relative = file.path.relative_to(folder.path).as_posix()
        match = path_re.fullmatch(relative)
        if match is None:
            log.skip("a file whose path does not fit the pattern")
            continue
        parts = match.groupdict()
        model, suite = parts.get("model") or "", parts.get("suite") or ""
        with log.row(relative):
            try:
                reward = words[parts.pop("success", None) or _content(file, options)]
            except ValueError:
                log.lose(relative, "holds no verdict")
                continue
            first = files_of.setdefault(tuple(parts.values()), relative)
            if first != relative:
                raise ReadError(
                    f"{first} and {relative} are one attempt by the pattern {pattern}.",
                    source=folder.name,
                    hint="Name the part that tells them apart, as {trial} or {suite}.",
                )
            key = f"{model}\x1f{suite}"
            runs.setdefault(key, (model, suite))
            log.add(
                relative,
                parts["task"],
                None if reward != reward else reward,
                run=key,
                trial=parts.get("trial") or parts.get("seed"),
                why="not_recorded: empty file" if reward != reward else "",
                transcript=relative,
                labels=[parts[name] for name in slices],
            )

    def facts(key: str) -> RunFacts:
        model, suite = runs[key]
        return RunFacts(
            model or folder.stem,
            Protocol(suite=suite or None),
            variant=f"on {suite}" if suite else "",
            guessed=not model,
            decisions=(f"files that fit {pattern} are attempts",),
        )

    return log.runs(facts)


def _compile(pattern: str, source: str) -> re.Pattern[str]:
    names = re.findall(r"\{([\w:]+)\}", pattern)
    unknown = [n for n in names if n not in _WORDS and not re.fullmatch(r"slice:[^\W\d]\w*", n)]
    if unknown or "task" not in names or len(set(names)) < len(names):
        raise ReadError(
            f"the pattern {pattern!r} needs {{task}}, and each of its names once.",
            source=source,
            hint=f"Names: {', '.join(_WORDS)}, slice:NAME; * stands for any other part.",
        )
    text = re.escape(pattern).replace("slice:", "")
    text = _PART.sub(r"(?P<\1>[^/]+)", text)
    if "**/" not in pattern and not any(name.startswith(SLICE_PREFIX) for name in names):
        # A task may lie in folders: chrome/t1
        text = text.replace("(?P<task>[^/]+)", "(?P<task>.+)")
    return re.compile(text.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*"))


def _content(file: Source, options: ReadOptions | None = None) -> object:
    """The verdict that a file holds: its text, or a field of its object."""
    data = read_object(file)
    if data is not None:
        stated = (options.columns if options is not None else {}).get("success")
        verdict = find_verdict(data)
        if stated is not None:
            return value_at(data, steps_of(stated))
        return "no verdict" if verdict is None else verdict[1]
    with file.open() as stream:
        return stream.read(_LONGEST).decode("utf-8", "replace").strip()


def suggest_pattern(folder: Source) -> str | None:
    """The pattern for a folder of small files of one name, or for folders called pass and fail.

    ``None`` when it is no such folder.
    """
    by_folder = _suggest_verdict_folders(folder)
    files = list(_small_files(folder))
    files = files if len(files) > 1 else _document_paths(folder)
    if by_folder is not None or len(files) < 2:
        return by_folder
    (depth, name), count = Counter((len(p.parts), p.name) for p in files).most_common(1)[0]
    alike = [p for p in files if len(p.parts) == depth and p.name == name]
    if depth == 2 and count < len(files) and {p.suffix for p in files} == {".json"}:
        return f"{{model}}/{{task}}{files[0].suffix}"
    words = RewardWords()
    try:
        for path in alike[:50]:
            words[_content(folder.inside(*path.parts))]
    except ValueError:
        return None
    if len(alike) < 2 or depth < 2:
        return None
    folders = depth - 1
    has_trial = folders > 1 and all(path.parts[depth - 2].isdigit() for path in alike)
    model = ["{model}"] if folders - has_trial > 1 else []
    return "/".join((*model, "{task}", *(["{trial}"] if has_trial else []), name))


def _suggest_verdict_folders(folder: Source) -> str | None:
    """The pattern for files that lie in a folder for those that passed and one for the others."""
    paths = [file.path.relative_to(folder.path).parts for file in folder.children("**/*")]
    depth = Counter(map(len, paths)).most_common(1)[0][0] if paths else 0
    paths = [path for path in paths if len(path) == depth]
    words = RewardWords()
    for level in range(depth - 1):
        names = {path[level] for path in paths}
        try:
            is_verdict = {words[name] for name in names} == {0.0, 1.0}
        except ValueError:
            continue
        if is_verdict:
            folders = [{path[i] for path in paths} for i in range(depth - 1)]
            parts = [next(iter(each)) if len(each) == 1 else "*" for each in folders]
            parts[level] = "{success}"
            first, *others = (path[-1] for path in paths)
            ending = next(
                first[start:]
                for start in range(1, len(first) + 1)
                if all(name.endswith(first[start:]) for name in others)
            )
            return "/".join((*parts, "{task}" + ending))
    return None


def _document_paths(folder: Source) -> list[Path]:
    files = [file for file in folder.children("**/*.json") if read_object(file) is not None]
    return [file.path.relative_to(folder.path) for file in files]


def _small_files(folder: Source) -> Iterator[Path]:
    for file in folder.children("**/*"):
        if file.path.stat().st_size <= _LONGEST:
            yield file.path.relative_to(folder.path)


_SQLITE = b"SQLite format 3\x00"
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
_YAML_START = re.compile(rb"(?:---|%YAML|-\s+[\w-]+:)\s|(?:[^:\n,;|]+:[ \t]+\w+[ \t]*\r?\n){2}")
"""A document, a list of objects, or lines such as ``task-1: PASS``."""
_YAML_ENDINGS = (".yaml", ".yml")
_MOST_YAML = 64 << 20
"""Bytes of a YAML file: it is parsed as a whole, and slowly."""


def convert(source: Source) -> Source | None:
    """The source in a form that readers take; ``None`` for one that needs no conversion."""
    if source.address or source.part:
        return None
    if source.is_folder:
        return _from_arrow(source, _find_shards(source)) if is_dataset(source) else None
    head = source.head
    if head.startswith(_SQLITE):
        return from_sqlite(source)
    if head.startswith((_ARROW_FILE, _ARROW_STREAM)):
        return _from_arrow(source, [source.path])
    if source.path.suffix.lower() == ".toml":
        return _from_toml(source)
    if b"\0" in head or (source.outline.opens and not _BRACKETS.match(head)):
        return None
    is_named = source.path.suffix.lower() in _YAML_ENDINGS
    # A page or a text beside other files is seldom their result.
    rows = None if is_named or source.found else _from_text(source)
    if rows is None and (is_named or _YAML_START.match(head)):
        return _from_yaml(source, is_named)
    return rows


def is_dataset(source: Source) -> bool:
    """Whether a folder is a dataset as the library datasets saves it to disk."""
    return (source.path / "state.json").is_file() and bool(_find_shards(source))


def _find_shards(source: Source) -> list[Path]:
    return sorted(source.path.glob("*.arrow"))


def _from_arrow(source: Source, files: list[Path]) -> Source:
    """A Parquet file with the rows of all files; a dataset on disk is split into several."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("Reading Arrow files and datasets", extra="arrow") from None
    path = make_folder() / f"{source.stem}.parquet"
    try:
        tables = []
        for file in files:
            with arrow.memory_map(str(file)) as stream:
                is_stream = stream.read(4) == _ARROW_STREAM
                stream.seek(0)
                batches = (arrow.ipc.open_stream if is_stream else arrow.ipc.open_file)(stream)
                tables.append(batches.read_all())
        parquet.write_table(arrow.concat_tables(tables), path)
    except (arrow.ArrowException, OSError) as error:
        message = shorten(str(error).splitlines()[0], 120)
        raise ReadError(f"is not a sound Arrow file ({message}).", source=source.name) from None
    return Source(source.name, path, found=source.found, max_unpacked=source.max_unpacked)


def _from_toml(source: Source) -> Source | None:
    """The document as JSON; ``None`` for a text that is none."""
    with source.open() as stream:
        text = stream.read(_MOST_YAML)
    try:
        data = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    path = make_folder() / f"{source.stem}.json"
    path.write_text(json.dumps(data, default=str), encoding="utf-8")
    return Source(source.name, path, found=source.found)


def _from_yaml(source: Source, is_named: bool) -> Source | None:
    """The document as JSON; ``None`` for a text that is none."""
    try:
        import yaml
    except ImportError:
        if is_named:
            raise MissingExtra("Reading YAML", extra="yaml") from None
        return None
    with source.open() as stream:
        text = stream.read(_MOST_YAML + 1)
    if len(text) > _MOST_YAML:
        raise ReadError("is a YAML file of more than 64 MB: write it as JSON.", source=source.name)
    try:
        data = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict | list):
        return None
    limit = limit_unpacked(len(text), source.max_unpacked)
    if _count_nodes(data, {}) > limit:
        raise UnpackedTooLarge(source.name, limit)
    path = make_folder() / f"{source.stem}.json"
    path.write_text(json.dumps(data, default=str), encoding="utf-8")
    return Source(source.name, path, found=source.found)


def _count_nodes(data: object, counts: dict[int, int]) -> int:
    """Values in a document, those behind an alias each time: a short file may stand for many."""
    if not isinstance(data, dict | list):
        return 1
    if id(data) not in counts:
        inner = data.values() if isinstance(data, dict) else data
        counts[id(data)] = 1 + sum(_count_nodes(value, counts) for value in inner)
    return counts[id(data)]


# -- text --------------------------------------------------------------------------

_MOST_TEXT = 64 << 20
_STAMP = (
    r"[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?"
    r"(?:\s*[-|]?\s*\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR)\]?\s*[-:|]?)?(?:\s*[\w.]+\s+[-|]\s)?"
)
_PYTEST = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS"
_TEST_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<task>\S+::.+?)\s+(?P<verdict>{_PYTEST})(?: \(.*\))?(?:\s+\[\s*\d+%\])?",  # pytest -v
        rf"(?P<verdict>{_PYTEST})\s+(?P<task>\S+::.+?)(?: - .*)?",  # pytest -rA
        r"\s*(?P<verdict>not ok|ok)\s+(?P<task>\d+(?:\s[^#]*?)?|-\s[^#]*?)(?:\s*#.*)?",  # TAP
        r"(?P<task>\w+ \([\w.]+\)) \.\.\. (?P<verdict>ok|FAIL|ERROR|skipped\b.*)",  # unittest -v
        r"\s*--- (?P<verdict>PASS|FAIL|SKIP): (?P<task>\S+) \([\d.]+s\)",  # go test -v
        r"test (?P<task>\S+) \.\.\. (?P<verdict>ok|FAILED|ignored)",  # cargo test
        r"\s*(?P<verdict>[✓✔✅✗✘✖✕❌×])\ufe0f?\s+(?P<task>.+?)(?:\s+\([\d.]+\s*m?s\))?",
        r"\s*[-*+]\s+\[(?P<verdict>[ xX])\]\s+(?P<task>.+?)",  # a check list
        r"\[?(?P<verdict>PASS|FAIL|PASSED|FAILED|OK|KO)\]?:?\s+(?P<task>.+?)"
        r"(?:\s+(?:run|trial|attempt|try|rep|seed)[\s#=:]*(?P<trial>\d+))?(?:\s+[\w.]+=\S+)*",
        r"(?P<task>[^:|,;]+?)\s*(?:\.{2,}|:|->|=>|\s-)\s*(?P<verdict>PASS|FAIL|PASSED|FAILED|OK|KO)",
        rf"(?:{_STAMP}\s*)?(?P<task>[^\s:|,;=]+)\s+[(\[]?(?i:attempt|trial|run|try|rep|seed|sample)"
        r"[\s#=:]*(?P<trial>\w+)[)\]]?\s*(?:\.{2,}|:|->|=>|-|=|\s)\s*(?i:result\s*[:=]\s*|status\s*[:=]"
        r"\s*)?(?P<verdict>(?i:pass(?:ed)?|fail(?:ed)?|ok|ko|success|failure|error|skipped|timeout))"
        r"\b.*",
        rf"{_STAMP}\s*(?P<task>[^\s:|,;=]+)\s*(?:\.{{2,}}|:|->|=>|-|=|\s)\s*(?P<verdict>"
        r"(?i:pass(?:ed)?|fail(?:ed)?|ok|ko|success|failure|error|skipped|timeout))\b.*",
        r"(?i:test(?: case)?)\s+['\"](?P<task>[^'\"]+)['\"]\s+(?P<verdict>passed|failed)\b.*",
    )
)
"""A line of a log for each test; of several kinds in one log the first in this order counts."""
_VERDICT_WORDS = {"x": "pass", "": "fail", "skip": "skipped", "ignored": "skipped", "xpass": "pass"}
_BRACKETS = re.compile(rb"\[(?:(PASS|FAIL|OK|KO)(ED)?\]|\d{4}-\d\d-\d\d[ T])")
_RULE_LINE = re.compile(r"\s*([*=_#~-])\1{2,}\s*")
_FIELD_LINE = re.compile(r"\s*([A-Za-z][\w ./-]{0,40}?)\s*(?::|=)\s+(\S.*)")


def _is_delimited(head: bytes) -> bool:
    """Whether the first two lines have as many commas, tabs, semicolons or bars: a table."""
    lines = [line for line in head.split(b"\n")[:40] if line.strip() and line[:1] != b"#"][:2]
    if all(re.match(_STAMP.encode(), line) for line in lines):
        return False  # the comma before the milliseconds of a log
    return len(lines) < 2 or any(
        0 < lines[0].count(sign) == lines[1].count(sign) for sign in (b",", b"\t", b";", b"|")
    )


def _read_text(source: Source) -> str:
    with source.open() as stream:
        data = stream.read(_MOST_TEXT + 1)
    if len(data) > _MOST_TEXT:
        raise ReadError(
            "is a text of more than 64 MiB; texts of lines and blocks are read up to there.",
            source=source.name,
            hint="Write its attempts as CSV or JSON lines.",
        )
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _from_text(source: Source) -> Source | None:
    """The rows of a text that is no table: a page, a log of tests, or blocks of fields."""
    page = _from_page(source)
    if page is not None or _is_delimited(source.head):
        return page
    return _from_pairs(source) or _from_blocks(source) or _from_test_log(source)


def _text_lines(head: bytes) -> list[str]:
    return head.decode("utf-8", "replace").splitlines()


def _match_test(line: str) -> bool:
    return any(pattern.fullmatch(line.rstrip()) for pattern in _TEST_LINES)


def _from_test_log(source: Source) -> Source | None:
    """A row for each line about a test; ``None`` for a text with fewer than two of one kind."""
    if is_markdown(source.head) or not any(map(_match_test, _text_lines(source.head))):
        return None
    lines = [line.rstrip() for line in _read_text(source).splitlines()]
    for pattern in _TEST_LINES:
        matches = [match for line in lines if line and (match := pattern.fullmatch(line))]
        if len(matches) < 2:
            continue
        rows: list[dict[str, object]] = []
        for number, match in enumerate(matches, 1):
            word = match["verdict"].strip().lower()
            word = "skipped" if word.startswith(("skip", "xfail")) else word
            task = re.sub(r"^\d+\s+-\s+|^\d+[.)]?\s+(?=\S)|^-\s+", "", match["task"].strip())
            # TAP marks a test that was not run as "ok 3 # SKIP".
            is_skipped = re.search(r"#\s*(skip|todo)", match[0], re.IGNORECASE) is not None
            word = "skipped" if is_skipped else _VERDICT_WORDS.get(word, word)
            number_of = match.groupdict().get("trial")
            trial = {} if number_of is None else {"trial": number_of}
            rows.append({"task": task or str(number), **trial, "status": word})
        return _as_lines(source, rows, "lines about tests are read: a task and its verdict each")
    return None


_PAIR = re.compile(r"(?<![^\s,;|])([A-Za-z_][\w.]*)=(\"[^\"]*\"|'[^']*'|[^\s,;|]+)")


def _holds_pairs(line: str) -> bool:
    return len(_PAIR.findall(line)) > 1


def _from_pairs(source: Source) -> Source | None:
    """A row for each line of ``name=value`` pairs; ``None`` for a text of other lines."""
    sample = [line for line in _text_lines(source.head) if line.strip()]
    is_page = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    if is_page or len(sample) < 2 or sum(map(_holds_pairs, sample)) * 2 <= len(sample):
        return None
    lines = _read_text(source).splitlines()
    pairs = [_PAIR.findall(line) for line in lines]
    rows: list[dict[str, object]] = [
        {name: value.strip("\"'") for name, value in row} for row in pairs if len(row) > 1
    ]
    if "success" not in ColumnMap.resolve(name for row in rows for name in row).meaning:
        return None
    left_out = sum(map(bool, map(str.strip, lines))) - len(rows)
    more = f"; left out: {counted(left_out, 'line')} without any" if left_out else ""
    return _as_lines(source, rows, f"each line of name=value pairs is a row{more}")


def _from_blocks(source: Source) -> Source | None:
    """A row for each block of ``name: value`` lines; ``None`` for a text without such blocks."""
    lines = _text_lines(source.head)
    is_list = any(line.startswith(("- ", "---")) for line in lines)  # of YAML
    if is_list or sum(map(bool, map(_FIELD_LINE.fullmatch, lines))) < 2:
        return None
    text = _read_text(source)
    blocks: list[list[str]] = [[]]
    has_rules = sum(map(bool, map(_RULE_LINE.fullmatch, text.splitlines()))) > 2
    for line in text.splitlines():
        if _RULE_LINE.fullmatch(line) if has_rules else not line.strip():
            blocks.append([])
        else:
            blocks[-1].append(line)
    blocks_found: list[dict[str, object]] = []
    for block in blocks:
        pairs = [match for line in block if (match := _FIELD_LINE.fullmatch(line))]
        record: dict[str, object] = {}
        for match in pairs:
            record.setdefault(match[1], match[2].strip())
        blocks_found.append(record)
    records = [record for record in blocks_found if len(record) > 1]
    counts = Counter(name for record in records for name in record)
    names = [name for name, count in counts.items() if 2 * count > len(records)]
    rows = [
        {name: record[name] for name in record if name in names}
        for record in records
        if 2 * sum(name in record for name in names) > len(names)
    ]
    if len(rows) < 3 or len(names) < 2 or 2 * len(rows) < len(records):
        return None
    decision = "each block of name: value lines is a row"
    if left_out := sum(map(bool, blocks_found)) - len(rows):
        decision += f"; left out: {counted(left_out, 'block')} with other names"
    return _as_lines(source, rows, decision)


def _as_lines(source: Source, rows: Iterable[dict[str, object]], decision: str) -> Source:
    path = make_folder() / f"{source.stem}.jsonl"
    write_lines(path, rows)
    return Source(source.name, path, found=source.found, conversion=decision)


class _HtmlTables(HTMLParser):
    """Writes a page as Markdown: its tables, its headings, and the other lines as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._rows: list[list[str]] = []
        self._has_header = False
        self.is_nameless = False
        self._heading = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "table":
            self._close_table()
            self._has_header = False
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._close_cell()
            self._cell = []
            self._has_header = self._has_header or tag == "th"
        elif re.fullmatch("h[1-6]", tag):
            self._heading = "#" * int(tag[1]) + " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._close_cell()
        elif tag in ("tr", "table") and self._row is not None:
            self._close_cell()
            row, self._row = self._row, None
            if row:
                self._rows.append(row)
            if tag == "table":
                self._close_table()

    def close(self) -> None:
        super().close()
        self._close_table()

    def _close_table(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        names = None if self._has_header else name_without_header(rows)
        self.is_nameless = self.is_nameless or names is not None
        header, *others = rows if names is None else [names, *rows]
        self.lines += ["", _bars(header), _bars(["---"] * len(header)), *map(_bars, others), ""]

    def _close_cell(self) -> None:
        if self._cell is not None and self._row is not None:
            self._row.append(" ".join("".join(self._cell).split()))
        self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif self._row is None and data.strip():
            self.lines += [f"{self._heading}{line}" for line in data.splitlines()]
            self._heading = ""


def _bars(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _from_page(source: Source) -> Source | None:
    """The tables of a page, or of a Markdown text with such tables, as Markdown."""
    if source.head.startswith(b"<?xml") or not re.search(rb"(?i)<table[\s>]", source.head):
        return None
    page = _HtmlTables()
    page.feed(_read_text(source))
    page.close()
    path = make_folder() / f"{source.stem}.md"
    path.write_text("\n".join(page.lines), encoding="utf-8")
    conversion = NO_HEADER if page.is_nameless else ""
    return Source(source.name, path, found=source.found, conversion=conversion)
