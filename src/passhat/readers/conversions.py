"""Files of other libraries as files that a reader takes: SQLite, Arrow, YAML, HTML and test logs.

Each is written once to a temporary folder, which is removed when the process ends: rows as JSON
lines or Parquet, a document as JSON.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from os.path import commonprefix
from pathlib import Path
from typing import Any

from passhat._display import counted, some
from passhat.errors import MissingExtra, PasshatError, ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, ReadOptions, RunFacts
from passhat.readers.formats.attempt_files import find_verdict
from passhat.readers.formats.databases import (
    ARROW_STARTS,
    SQLITE,
    convert_arrow,
    convert_dataset,
    convert_sqlite,
    is_dataset,
)
from passhat.readers.formats.pages import HtmlTables, is_markdown, parse_latex, write_table
from passhat.readers.formats.test_logs import convert_marks, convert_test_log
from passhat.readers.json_records import read_object
from passhat.readers.record_map import parse_rule
from passhat.readers.records import Record, steps_of, value_at
from passhat.readers.sources import Source, UnpackedTooLarge, limit_unpacked, make_folder
from passhat.readers.text_logs import convert_text, find_last_verdict, read_text
from passhat.readers.wide_tables import is_model_name, reward_or_none
from passhat.readers.zip_members import NO_HEADER
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import SLICE_PREFIX
from passhat.stats.outcomes.rewards import RewardWords, is_failure_reason

_PART = re.compile(r"\\{([\w:]+)\\}")
_WORDS = ("model", "suite", "task", "trial", "seed", "success")
_LONGEST = 256
"""Bytes of a file that holds one verdict."""
_LONGEST_LOG = 16 << 20
_SAMPLE = 20
_NO_VERDICT = "no verdict"


def is_path_pattern(records: str | None) -> bool:
    """Whether --records names parts of a path, as in {model}/{task}/result.txt."""
    return records is not None and re.search(r"\{\w+\}|\{.*/", records) is not None


def read_paths(folder: Source, options: ReadOptions) -> list[Run]:
    """Every file below a folder whose path fits the pattern; each is an attempt."""
    pattern = options.records or ""
    path_re = _compile(pattern, folder.name)
    slices = [name for name in path_re.groupindex if name not in _WORDS]
    log = LogBuilder(folder, "one file per attempt", options, order="trial", slices=slices)
    words, runs = RewardWords(), dict[str, tuple[str, str]]()
    files_of: dict[tuple[object, ...], str] = {}
    entries = list(_judge_files(folder, path_re, options, log))
    judged = [parts for _, parts, verdict in entries if verdict != _NO_VERDICT]
    names = {word: {parts.get(word) for parts in judged} for word in ("task", "trial")}
    limits = sorted({str(verdict) for *_, verdict in entries if is_failure_reason(verdict)})
    for relative, parts, verdict in entries:
        model, suite = parts.get("model") or "", parts.get("suite") or ""
        with log.row(relative):
            labels = [parts["task"], *filter(str.isalpha, [parts.get("trial") or ""])]
            if judged and any(n not in names[w] for w, n in zip(names, labels, strict=False)):
                log.skip("a file of a name that never has a verdict")
                continue
            try:
                reward = 0.0 if is_failure_reason(verdict) else words[verdict]
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
                why="not_recorded: no verdict" if reward != reward else "",
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
            decisions=(
                f"files that fit {pattern} are attempts",
                *((f"counted as failed: {some(list(map(repr, limits)), 4)}",) if limits else ()),
            ),
        )

    return log.runs(facts)


def _judge_files(
    folder: Source, path_re: re.Pattern[str], options: ReadOptions, log: LogBuilder
) -> Iterator[tuple[str, dict[str, str], object]]:
    """The files whose path fits, with the parts of the path and the verdict of each."""
    for file in folder.children("**/*"):
        relative = file.path.relative_to(folder.path).as_posix()
        match = path_re.fullmatch(relative)
        if match is None:
            log.skip("a file whose path does not fit the pattern")
            continue
        with log.row(relative):
            parts = match.groupdict()
            yield relative, parts, parts.pop("success", None) or _content(file, options)


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
        if options is not None and options.passes:
            rule = parse_rule(options.passes, options.scorer or "")
            return rule.holds(Record(file.name, data), data)
        if stated is not None:
            return value_at(data, steps_of(stated))
        return _NO_VERDICT if verdict is None else verdict[1]
    with file.open() as stream:
        text = stream.read(_LONGEST_LOG).decode("utf-8", "replace").strip()
    return (find_last_verdict(text) if len(text) > _LONGEST or "\n" in text else None) or text


def suggest_pattern(folder: Source) -> str | None:
    """The pattern for a folder of small files of one name, or for folders called pass and fail."""
    paths = [file.path.relative_to(folder.path) for file in folder.children("**/*")]
    if len(paths) < 2:
        return None
    depth = Counter(len(path.parts) for path in paths).most_common(1)[0][0]
    by_name = _pattern_of([path.parts for path in paths if len(path.parts) == depth])
    if by_name is not None and "{success}" in by_name:
        return by_name
    kinds = Counter(path.suffix for path in paths)
    for suffix, _ in kinds.most_common():
        alike = [path for path in paths if path.suffix == suffix]
        if 1 < len({path.name for path in alike}) < _SAMPLE:  # of several files of an attempt
            alike = [path for path in alike if _holds_verdict(folder, path)]
        if len(alike) > 1 and all(_holds_verdict(folder, path) for path in alike[:_SAMPLE]):
            break
    else:
        return None
    depths = Counter(len(path.parts) for path in alike)
    # A task may lie in folders: the pattern of the others covers it.
    for depth in sorted(depths, key=lambda depth: (depths[depth] < 2, depth)):
        pattern = _pattern_of([path.parts for path in alike if len(path.parts) == depth])
        if pattern is not None:
            return pattern
    return None


def _holds_verdict(folder: Source, path: Path) -> bool:
    file = folder.inside(*path.parts)
    verdict = _content(file) if b"\0" not in file.head else _NO_VERDICT
    is_word = reward_or_none(RewardWords(), verdict) is not None or is_failure_reason(verdict)
    return is_word and verdict != _NO_VERDICT


_COUNTER = re.compile(
    r"(.*?)([_.-]*(?:run|trial|attempt|seed|sample|rep|try|epoch|iter)?[_.-]?)\d+(\D*)",
    re.IGNORECASE,
)


def _pattern_of(paths: Sequence[tuple[str, ...]]) -> str | None:
    """The pattern for paths of equal depth, by the parts that differ; ``None`` for too many."""
    columns = list(zip(*paths, strict=True))
    ending = ""
    if _are_verdicts({Path(name).suffix[1:] for name in columns[-1]}):  # sort.2.ok, sort.3.fail
        columns[-1], ending = tuple(Path(name).stem for name in columns[-1]), ".{success}"
    parts = ["{success}" if _are_verdicts(set(column)) else column[0] for column in columns]
    places = [
        place
        for place, column in enumerate(columns)
        if len(set(column)) > 1 and parts[place] != "{success}"
    ]
    if not places:
        return None
    *others, last = places
    numbered = [place for place in others if _numbered_part(columns[place]) is not None][-1:]
    for place in numbered:  # {model}/seed_{trial}/{task}.json
        parts[place] = str(_numbered_part(columns[place]))
        others.remove(place)
    part = None if numbered else _counted_part(columns[last], has_others=bool(others))
    names = ["model", "task"] if part is not None and "{task}" not in part else ["model"]
    if part is None:
        shared = commonprefix([name[::-1] for name in columns[last]])[::-1]  # noqa: RUF071
        tail = re.search(r"[._-].*", shared) if last == len(parts) - 1 else None
        part = "{task}" + (tail[0] if tail else "")
    parts[last] = part
    if len(others) > len(names):
        return None
    names = names[len(names) - len(others) :]
    if len(names) == 2 and _is_task_first(*(set(columns[place]) for place in others)):
        names.reverse()
    for place, name in zip(others, names, strict=True):
        parts[place] = f"{{{name}}}"
    if part == "{task}":
        parts[last + 1 : -1] = []  # folders that are the same everywhere: the task spans them
    return "/".join(parts) + ending


def _counted_part(names: Sequence[str], *, has_others: bool) -> str | None:
    """The pattern for names that number attempts, of a task that they name or that is around."""
    matches = [match for name in names if (match := _COUNTER.fullmatch(name))]
    befores = {match[1] for match in matches}
    if len(matches) < len(names) or len({(match[2], match[3]) for match in matches}) > 1:
        return None
    sign, end = matches[0].group(2, 3)
    if has_others and len(befores) == 1:
        return f"{befores.pop()}{sign}{{trial}}{end}"
    is_counter = re.search("[a-z]", sign) or 2 * len(befores) <= len(names)
    return f"{{task}}{sign}{{trial}}{end}" if is_counter else None


def _numbered_part(names: Sequence[str]) -> str | None:
    """The pattern for folders that number attempts: ``seed_{trial}`` for seed_0 and seed_1."""
    matches = [_COUNTER.fullmatch(name) for name in names]
    ends = {(match[1], match[2], match[3]) if match else None for match in matches}
    (end, *others) = ends
    return None if others or end is None or end[0] else f"{end[1]}{{trial}}{end[2]}"


def _is_task_first(first: set[str], second: set[str]) -> bool:
    """Whether the outer of two folders is the task, and the inner one the model."""
    are_models = [all(map(is_model_name, names)) for names in (first, second)]
    return not are_models[0] and (are_models[1] or len(first) > 2 * len(second))


def _are_verdicts(names: set[str]) -> bool:
    """Whether names are words for verdicts, those for a pass and for a failure among them."""
    rewards = {reward_or_none(RewardWords(), name) for name in names if not name.isdigit()}
    return None not in rewards and {0.0, 1.0} <= rewards


_YAML_START = re.compile(rb"(?:---|%YAML|-\s+[\w-]+:)\s|(?:[^:\n,;|]+:[ \t]+\w+[ \t]*\r?\n){2}")
"""A document, a list of objects, or lines such as ``task-1: PASS``."""
_YAML_ENDINGS = (".yaml", ".yml")
_BRACKETS = re.compile(r"\s*\[(?:[A-Za-z✓✗✅❌]|\d{4}-|\d\d:|\s*\d+\s*/\s*\d+\])".encode())
"""Lines of a log begin so, and no JSON."""
_MOST_YAML = 64 << 20
"""Bytes of a YAML file: it is parsed as a whole, and slowly."""


def convert(source: Source) -> Source | None:
    """The source in a form that readers take; ``None`` for one that needs no conversion."""
    if source.address or source.part:
        return None
    if source.is_folder:
        return convert_dataset(source) if is_dataset(source) else None
    head = source.head
    if head.startswith(SQLITE):
        return convert_sqlite(source)
    if head.startswith(ARROW_STARTS):
        return convert_arrow(source, [source.path])
    if b"\0" in head:
        return None
    if _COLOR.search(head.decode("utf-8", "replace")):
        plain = _without_colors(source)
        return _convert_text(plain) or plain
    return _convert_text(source)


def _convert_text(source: Source) -> Source | None:
    head = source.head
    if source.path.suffix.lower() == ".toml":
        return _from_toml(source)
    if _NOTEBOOK.match(head):
        return _from_notebook(source)
    literal = _from_literals(source) if _LITERAL.match(head) else None
    if literal is None and _OBJECTS.search(head):
        return _from_objects(source)
    if literal is not None or (source.outline.opens and not _BRACKETS.match(head)):
        return literal or (_from_sections(source) if _SECTION.match(head) else None)
    is_named = source.path.suffix.lower() in _YAML_ENDINGS
    # A page or a text beside other files is seldom their result.
    is_text = not is_named and not source.found
    sections = _from_sections(source) if is_text and _SECTION.match(head) else None
    rows = (sections or _from_page(source) or _from_lines(source)) if is_text else None
    if source.found and _SESSION.match(head):  # not in a transcript of an agent that ran tests
        rows = convert_test_log(source)
    if rows is None and (is_named or _YAML_START.match(head)):
        return _from_yaml(source, is_named)
    return rows


_SESSION = re.compile(rb"\s*=+ test session starts =+\s*\n")


def _from_lines(source: Source) -> Source | None:
    return convert_test_log(source) or convert_marks(source) or convert_text(source)


_NOTEBOOK = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat\w*)"\s*:(?s:.*)"cell_type"')
_COLOR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][\w])")
"""A sequence of a terminal: a color, a title, or a set of characters."""


def _without_colors(source: Source) -> Source:
    """The text without what colors it in a terminal, and what was written over in its lines."""
    lines = _COLOR.sub("", read_text(source)).replace("\r\n", "\n").split("\n")
    path = make_folder() / source.path.name
    path.write_text("\n".join(line.rpartition("\r")[2] for line in lines), encoding="utf-8")
    return Source(source.name, path, found=source.found)


def _from_notebook(source: Source) -> Source | None:
    """The tables that a notebook shows, or the lines that it prints."""
    if source.found:
        return None  # beside the files that it reads
    shown = _as_markdown(source, _parse_notebook(read_text(source)))
    rows = shown if is_markdown(shown.head) else _from_lines(shown)
    if rows is None:
        raise ReadError(
            "is a notebook that shows no table of attempts.",
            source=source.name,
            hint="Save the table as CSV, as df.to_csv does, or run the cells that show it.",
        )
    return rows


_LITERAL = re.compile(rb"\s*(?:[\[(]\s*)*\{\s*(?:'|\"[^\"]*\"\s*:\s*(?:True|False|None)\b)")
"""What Python prints of a dictionary, which JSON is not."""
_SECTION = re.compile(rb"\s*(?:[;#][^\n]*\n\s*)*\[[^\[\]\n]+\]\s*\n\s*[^\[\]\n=:]+[=:]")


_OBJECTS = re.compile(rb"(?m)^\}\s*\{")
"""An object over several lines ends, and another begins."""


def _from_objects(source: Source) -> Source | None:
    """Objects over several lines, one after the other, as JSON lines; ``None`` when one breaks."""
    text, decoder, at = read_text(source).strip(), json.JSONDecoder(), 0
    path = make_folder() / f"{source.stem}.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        while at < len(text):
            try:
                row, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                return None
            lines.write(json.dumps(row) + "\n")
            at += len(text[at : at + 100]) - len(text[at : at + 100].lstrip())
    return Source(source.name, path, found=source.found)


def _from_literals(source: Source) -> Source | None:
    """The dictionaries that Python printed, one per line or as one document, as JSON."""
    text = read_text(source)
    path = make_folder() / f"{source.stem}.json"
    try:
        rows = [ast.literal_eval(line) for line in text.splitlines() if line.strip()]
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        try:
            path.write_text(json.dumps(ast.literal_eval(text.strip()), default=str))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return Source(source.name, path, found=source.found)


def _from_sections(source: Source) -> Source | None:
    """The sections of a file of settings, each with its fields, as JSON."""
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(read_text(source))
    except ConfigError:
        return None
    path = make_folder() / f"{source.stem}.json"
    data = {name: dict(parser[name]) for name in parser.sections()}
    path.write_text(json.dumps(data), encoding="utf-8")
    return Source(source.name, path, found=source.found)


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
        documents = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    documents = [document for document in documents if document is not None]
    data = documents[0] if len(documents) == 1 else documents
    if not documents or not isinstance(data, dict | list):
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


# -- pages, LaTeX and notebooks ---------------------------------------------------------------


def _from_page(source: Source) -> Source | None:
    """The tables of a page, of LaTeX or of a Markdown text with such tables, as Markdown."""
    if re.search(rb"\\begin\{(?:tabular|longtable|tblr)", source.head):
        lines = parse_latex(read_text(source))
        return _as_markdown(source, lines) if lines else None
    if source.head.startswith(b"<?xml") or not re.search(rb"(?i)<table[\s>]", source.head):
        return None
    page = HtmlTables()
    page.feed(read_text(source))
    page.close()
    return _as_markdown(source, page.lines, NO_HEADER if page.is_nameless else "")


def _as_markdown(source: Source, lines: list[str], decision: str = "") -> Source:
    path = make_folder() / f"{source.stem}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Source(source.name, path, found=source.found, conversion=decision)


def _parse_notebook(text: str) -> list[str]:
    """The texts, the tables and the printed lines of a notebook, as Markdown."""
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    lines: list[str] = []
    for cell in cells if isinstance(cells, list) else ():
        if not isinstance(cell, dict):
            continue
        if cell.get("cell_type") == "markdown":
            lines += [*_join_parts(cell.get("source")).splitlines(), ""]
        for output in cell.get("outputs") or ():
            lines += _output_lines(output) if isinstance(output, dict) else []
    return lines


def _join_parts(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _output_lines(output: Mapping[str, Any]) -> list[str]:
    """The lines of an output: its HTML, Markdown or text, the first of these that there is."""
    data = output.get("data")
    data = data if isinstance(data, dict) else {}
    if "text/html" in data:
        page = HtmlTables()
        page.feed(_join_parts(data["text/html"]))
        page.close()
        return page.lines
    text = _join_parts(data.get("text/markdown") or data.get("text/plain") or output.get("text"))
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [
        re.split(r"\s{2,}", f"  {line.strip()}" if line[:1] == " " else line.strip())
        for line in lines
    ]
    widths = {len(row) for row in rows}
    # A data frame: the lines of one width, the numbers of the rows without a name.
    is_frame = len(rows) > 2 and len(widths) == 1 < len(rows[0]) and not rows[0][0]
    return write_table(rows) if is_frame else text.splitlines()


# -- folders that nothing can be read from ------------------------------------------------------

_PARTS_OF_PATHS = {1: "{task}", 2: "{task}/{trial}", 3: "{model}/{task}/{trial}"}


def refuse_folder(folder: Source, errors: Sequence[PasshatError], looked_at: int) -> ReadError:
    """The refusal of a folder that nothing could be read from."""
    pattern, common = suggest_pattern(folder), _common_hint(errors)
    command = f"passhat report {shlex.quote(folder.name)} --map 'records={pattern}'"
    hints = [f"If each file is an attempt: {command}"] if pattern else []
    if common and (not pattern or ("passhat report" in common and "{success}" not in pattern)):
        hints.append(common)
    files = f" ({counted(looked_at, 'file')} looked at)" if looked_at else ""
    paths = [f.path_below(folder) for f in folder.children("**/*") if f.path.suffix == ".json"]
    depth = max((len(path.parts) for path in paths), default=0)
    if not hints and depth in _PARTS_OF_PATHS:
        option = f"--map 'records={_PARTS_OF_PATHS[depth]}.json,success=FIELD == WORD'"
        hints.append(f"If each file is an attempt, say what passes: {option}")
    return ReadError(
        f"is a folder without any log or table that passhat can read{files}.",
        source=folder.name,
        hint="\n".join(hints) or f"Name the files: '{folder.name}/*.csv'",
    )


def _common_hint(errors: Sequence[PasshatError]) -> str | None:
    """The options that would read most of the tables that were passed over."""
    commands = [str(error.hint) for error in errors if "passhat report" in str(error.hint)]
    if commands:
        return commands[0]
    hints = Counter(str(error.hint) for error in errors if "--" in str(error.hint or ""))
    hint, count = hints.most_common(1)[0] if hints else ("", 0)
    return hint if count > 1 or len(hints) == 1 else None
