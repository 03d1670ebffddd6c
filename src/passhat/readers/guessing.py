"""A mapping for a file of unknown structure: proposed by the names and types of its fields."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from passhat._display import some
from passhat.errors import UnknownFormat, shorten
from passhat.readers.base import ReadOptions
from passhat.readers.nested_records import ONE_SIDED
from passhat.readers.parsing import as_fraction, is_verdict_list, outline
from passhat.readers.record_map import RecordMap
from passhat.readers.records import (
    Record,
    RecordFile,
    content_kind,
    elements,
    is_frame,
    plain_log,
    records_below,
    steps_of,
)
from passhat.readers.sources import Source
from passhat.readers.summary_labels import STATISTICS, fold_label
from passhat.readers.summary_rows import is_total
from passhat.readers.wide_tables import FRACTION, reward_or_none
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes.cells import parse_number
from passhat.stats.outcomes.columns import ALIASES, MEASURES, fold_name
from passhat.stats.outcomes.rewards import RewardWords

_SAMPLE_ROWS = 200
_MOST_CONTAINERS = 12
"""Places that are looked at: each takes decoding the document."""


@dataclass(frozen=True, slots=True)
class _FieldExamples:
    """Kind and examples of a field in the first records."""

    path: str
    kind: str
    examples: tuple[str, ...]


def guess_mapping(source: Source, options: ReadOptions) -> tuple[RecordMap, bool]:
    """The mapping a file seems to need, and whether it is certain enough to read by.

    It is certain when a task and a verdict (or n and c) are fields of the record itself under
    names that mean nothing else. Fields further inside are proposed, not used.
    """
    best: tuple[RecordMap, bool] | None = None
    for path in _containers(source, options)[:_MOST_CONTAINERS]:
        examples = _fields(source, path)
        mapping, certain = _guess_fields(path, examples, options)
        if certain:
            return mapping, True
        rank = ("success" in mapping.fields, len(mapping.fields))
        if best is None or rank > ("success" in best[0].fields, len(best[0].fields)):
            best = mapping, False
    return best or (RecordMap(), False)


def describe_structure(source: Source, options: ReadOptions) -> list[str]:
    """The structure of a file: where its records are, and per field its type and three values."""
    lines = []
    kind = content_kind(source)
    if kind == "JSON":
        keys = sorted(outline(source.head).keys)
        if keys:
            lines.append(f"top keys: {some(keys, 12)}")
    for path in _containers(source, options)[:2]:
        examples = _fields(source, path)
        if not examples:
            continue
        lines.append(f"records at {path or 'the top'!r}:" if kind == "JSON" else "a record has:")
        lines += [f"  {s.path} ({s.kind}): {', '.join(s.examples)}" for s in examples[:30]]
    return lines


def unknown_format(source: Source, options: ReadOptions) -> UnknownFormat:
    """The error for a valid file of unknown format: its structure, and how to read it."""
    kind = content_kind(source)
    if kind == "XML" and re.match(rb"\s*<(!doctype html|html|table|head|body)", source.head, re.I):
        return UnknownFormat(
            "is an HTML page, which is not read.",
            source=source.name,
            hint="Save its table as CSV, Excel or Markdown.",
        )
    log = plain_log(source)
    if kind == "JSON" and next(iter(RecordFile(source, log).records()), None) is None:
        losses = log.tally().losses
        why = f" ({str(losses[0]).rstrip('.')})" if losses else ""
        return UnknownFormat(
            f"begins like JSON and is none{why}.",
            source=source.name,
            hint="Was it written to its end? If it holds several objects one after the other: "
            f"jq -c . {shlex.quote(source.name)} | passhat read -",
        )
    keys = sorted(source.outline.keys)
    top = f"; its top keys are {some([shorten(k, 30) for k in keys], 10)}" if keys else ""
    fields = [s for path in _containers(source, options)[:1] for s in _fields(source, path)]
    shown_fields = some([f"{shorten(s.path, 40)[1:-1]} ({s.kind})" for s in fields], 8)
    has = f"; a record has {shown_fields}" if fields else ""
    return UnknownFormat(
        f"is valid {kind}, but not of a format passhat knows{top}{has}.",
        source=source.name,
        hint="State what is what: --map records=PATH,task=FIELD,success=FIELD ; or start from: "
        f"passhat read {shlex.quote(source.name)} --guess > mapping.toml",
    )


def _containers(source: Source, options: ReadOptions) -> list[str]:
    """Paths of possible records, the most likely first."""
    if options.records is not None:
        return [options.records]
    kind = content_kind(source)
    if kind == "XML":
        return _xml_containers(source)
    if kind != "JSON":
        return [""]
    if source.outline.opens == "[":
        return ["[*]"]
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    return _json_containers(whole.data if whole is not None else {})


def _json_containers(data: object) -> list[str]:
    """Paths of possible records in a document that is an object."""
    if is_frame(data):
        return [""]
    if _is_table_by_index(data) or _holds_records(data):
        return ["*"]
    candidates: list[tuple[int, str]] = []
    for path, value in _find_containers(data, ""):
        rows = list(value.values()) if isinstance(value, dict) else value
        objects = sum(isinstance(row, dict) for row in rows)
        is_one_sided = ONE_SIDED.fullmatch(fold_name(path.rpartition(".")[2])) is not None
        if rows and objects * 2 > len(rows) and not is_one_sided:
            sign = "[*]" if isinstance(value, list) else ".*"
            candidates.append((objects, path + sign))
    # The shallow ones first, then the long ones.
    candidates.sort(key=lambda item: (item[1].count("."), -item[0]))
    paths = [path for _, path in candidates]
    if isinstance(data, dict) and len(data) > 1:
        # {"model-1": {"task-1": {...}}, "model-2": {...}}: all of them, by the key around each.
        for sign in (".*", "[*]"):
            if sum(
                path.count(".") == sign.count(".") and path.endswith(sign) for path in paths
            ) == len(data):
                return [f"*{sign}", *paths]
        # {"task-1": {"model-1": [{...}], "model-2": [{...}]}, ...}: one of them is not all.
        inner = [
            value for node in data.values() if isinstance(node, dict) for value in node.values()
        ]
        if len(inner) > len(data) and all(map(_is_list_of_objects, inner)):
            return ["*.*[*]", *paths]
    return paths or [""]


def _holds_records(data: object) -> bool:
    """Whether a document is an object of objects that share most of their plain fields."""
    rows = list(data.values())[:_SAMPLE_ROWS] if isinstance(data, dict) else []
    if len(rows) < 2 or not all(isinstance(row, dict) for row in rows):
        return False
    names = [{k for k, v in row.items() if not isinstance(v, dict | list)} for row in rows]
    shared = set.intersection(*names)
    return len(shared) > 1 and len(shared) * 2 >= len(names[0])


def _is_table_by_index(data: object) -> bool:
    """Whether a document is {"0": {"task": ...}, "1": {"task": ...}}, an object per row."""
    rows = list(data.values()) if isinstance(data, dict) else []
    if len(rows) < 2 or not all(isinstance(r, dict) and r.keys() == rows[0].keys() for r in rows):
        return False
    cells = [cell for row in rows for cell in row.values()]
    return not any(isinstance(cell, dict | list) for cell in cells)


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _find_containers(data: object, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every list and every object that could hold records, down to two levels."""
    if not isinstance(data, dict) or depth > 2:
        return
    for key, value in data.items():
        name = str(key) if re.fullmatch(r"[^.\[\]\"*]+", str(key)) else f'"{key}"'
        here = f"{path}.{name}" if path else name
        if isinstance(value, list) or (isinstance(value, dict) and len(value) > 1):
            yield here, value
        yield from _find_containers(value, here, depth + 1)


def _xml_containers(source: Source) -> list[str]:
    counts: dict[str, int] = {}
    for path, element in islice(elements(source, plain_log(source)), 5_000):
        if len(element.attrib) + len(element) >= 2:
            counts[".".join(path)] = counts.get(".".join(path), 0) + 1
    return sorted(counts, key=lambda path: -counts[path])[:3]


def _fields(source: Source, path: str) -> list[_FieldExamples]:
    """The fields of the first records, with their types and up to three different values."""
    values: dict[str, dict[str, None]] = {}
    kinds: dict[str, dict[str, None]] = {}
    rows = RecordFile(source, plain_log(source), path).records()
    for record in islice(rows, _SAMPLE_ROWS):
        if not isinstance(record.data, dict):
            continue
        if record.key:
            values.setdefault("@key", {}).setdefault(shorten(record.key))
            kinds.setdefault("@key", {}).setdefault("text")
        for name, value in _flat(record.data, ""):
            kinds.setdefault(name, {}).setdefault(_kind(value))
            shown_values = values.setdefault(name, {})
            if len(shown_values) < 3:
                shown_values.setdefault(shorten(value))
    return [
        _FieldExamples(name, " or ".join(kinds[name]), tuple(examples))
        for name, examples in values.items()
    ]


def _flat(
    data: Mapping[str, Any], path: str, depth: int = 0, *, is_table: bool = False
) -> Iterator[tuple[str, object]]:
    for key, value in data.items():
        name = str(key) if is_table and not path else _step(key)
        here = f"{path}.{name}" if path else name
        if isinstance(value, dict) and depth < 3:
            yield from _flat(value, here, depth + 1)
        else:
            yield here, value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if not isinstance(value, list) or not value:
        return "text" if isinstance(value, str) else "list" if value == [] else "object"
    if all(isinstance(part, dict) for part in value):
        return "list of objects"
    is_verdicts = all(isinstance(part, int | float) and part in (0, 1) for part in value)
    return "list of verdicts" if is_verdicts else "list"


_WEAK = {"task": ("id", "name", "@key", "input", "prompt", "question", "idx", "index")}
"""Names that may mean something else: proposed, never used unasked."""


def _guess_fields(
    path: str, seen: list[_FieldExamples], options: ReadOptions
) -> tuple[RecordMap, bool]:
    fields_of: dict[str, tuple[str, ...]] = {w: (p,) for w, p in options.columns.items()}
    certain = dict.fromkeys(fields_of, True)
    names = [s.path for s in seen if "list" not in s.kind or s.path.count(".") == 0]
    claimed_names = {p for paths in fields_of.values() for p in paths}
    for word, aliases in ALIASES.items():
        if word in fields_of:
            continue
        match = _find_field(word, aliases, names, claimed_names)
        if match is not None and (match[1] or word != "score"):
            fields_of[word] = (match[0],)
            certain[word] = match[1]
            claimed_names.add(match[0])
    has_counts = {"n", "c"} <= fields_of.keys()
    if has_counts and "success" not in options.columns and "trial" not in fields_of:
        # Stated counts beat derived ones, unless a field numbers the attempts.
        fields_of.pop("success", None)
    verdict = "success" if "success" in fields_of else "c" if has_counts else ""
    for word in ("fails", "rate", *(("n", "c", "missing") if verdict == "success" else ())):
        fields_of.pop(word, None)
    claimed_names |= set((options.passes or "").split()[:1])
    if path in ("*.*", "*[*]") and not {"model", "^@key"} & {*fields_of, *claimed_names}:
        fields_of["model"] = ("^@key",)
    mapping = RecordMap(
        name="mine",
        records=path,
        fields=fields_of,
        trials=options.trials or "",
        passes=options.passes or "",
        where=options.where or "",
    )
    has_verdict = bool(options.passes or options.trials) or (verdict and certain.get(verdict))
    return mapping, bool(certain.get("task") and has_verdict)


def _find_field(
    word: str, aliases: Sequence[str], names: list[str], used: set[str]
) -> tuple[str, bool] | None:
    """The field that seems to be meant, and whether its name leaves no doubt."""
    plain_names = {name: fold_name(name.rpartition(".")[2].strip('"')) for name in names}
    for deep in (False, True):
        for alias in aliases:
            for name in names:
                if name not in used and plain_names[name] == alias and ("." in name) == deep:
                    return name, not deep
    for alias in _WEAK.get(word, ()):
        for name in names:
            if name not in used and plain_names[name] == alias:
                return name, False
    return None


# -- samples of the rows of a file, for the search over readings ------------------------------

_TIME = re.compile(
    r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{2,4})([ T].*)?|\d\d?:\d\d(:\d\d.*)?|"
    r"1[67]\d{8}(\d{3})?(\.\d+)?"
)
_NOT_RECORDS = re.compile(
    r"(config|metadata|meta|info|params|parameters|settings|usage|summary|stats|totals?|aggregates?|"
    r"overall|by_\w+|messages|history|trajectory|events|args|tool_calls|turns|steps|logs?|versions?)"
)
_ROWS_LOOKED_AT = 1_000
_MOST_PLACES = 10
_MOST_COLUMNS = 40
_NODES = 50
_LONGEST_TEXT = 400
_DEEPEST = 4


def _short_text(cell: object) -> str:
    """The begin of a cell: a verdict is short, and a conversation may have megabytes."""
    if isinstance(cell, dict | list):
        return "[]" if cell else ""
    return "" if cell is None else str(cell)[:_LONGEST_TEXT].strip()


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column or a field, and what they look like."""

    name: str
    cells: Sequence[object]

    @cached_property
    def fold(self) -> str:
        return fold_name(self.name.rpartition(".")[2].strip('"^/'))

    @cached_property
    def texts(self) -> list[str]:
        return [_short_text(cell) for cell in self.cells]

    @cached_property
    def words(self) -> dict[str, int]:
        """The different texts that are not empty, with their counts."""
        counts: dict[str, int] = {}
        for text in self.texts:
            if text:
                counts[text] = counts.get(text, 0) + 1
        return counts

    @cached_property
    def codes(self) -> IntArray:
        places: dict[str, int] = {}
        return np.array([places.setdefault(text, len(places)) for text in self.texts], np.int64)

    @cached_property
    def is_inner(self) -> bool:
        return any(isinstance(cell, dict | list) for cell in self.cells)

    @cached_property
    def has_empty(self) -> bool:
        return "" in self.texts

    @cached_property
    def rewards(self) -> list[float | None]:
        """The rewards behind the different words."""
        words = RewardWords()
        return [reward_or_none(words, word) for word in self.words]

    @cached_property
    def numbers(self) -> list[float]:
        """The different numbers; empty where some cell is neither one nor a word such as NA."""
        pairs = zip(self.words, self.rewards, strict=True)
        values = [
            parse_number(word) for word, reward in pairs if reward is None or reward == reward
        ]
        return [] if None in values else [value for value in values if value is not None]

    @cached_property
    def is_whole(self) -> bool:
        return bool(self.numbers) and all(n.is_integer() and n >= 0 for n in self.numbers)

    @cached_property
    def is_verdict(self) -> bool:
        rewards = [r for r in self.rewards if r is not None and r == r]
        return bool(rewards) and None not in self.rewards and set(rewards) <= {0.0, 1.0}

    @cached_property
    def is_mostly_verdict(self) -> bool:
        """Whether at least half of the cells are verdicts, and no number is another one."""
        pairs = list(zip(self.words.values(), self.rewards, strict=True))
        verdicts = sum(count for count, reward in pairs if reward in (0.0, 1.0))
        others = [r for r in self.rewards if r is not None and r == r and r not in (0.0, 1.0)]
        return 2 * verdicts >= sum(self.words.values()) and not others

    @cached_property
    def is_time(self) -> bool:
        return bool(self.words) and all(map(_TIME.fullmatch, islice(self.words, 20)))

    @cached_property
    def is_prose(self) -> bool:
        """Whether most texts are longer than an answer that is compared."""
        return 2 * sum(len(text) > _LONGEST_TEXT / 2 for text in self.texts) > len(self.texts)

    @cached_property
    def is_fraction(self) -> bool:
        words = self.words
        return bool(words) and all(FRACTION.fullmatch(word) or as_fraction(word) for word in words)

    @cached_property
    def is_list(self) -> bool:
        cells = [cell for cell in self.cells if cell not in (None, "", [])]
        return bool(cells) and all(map(is_verdict_list, cells))

    def named(self, *words: str) -> bool:
        """Whether the name is one that tables use for this."""
        return any(self.fold in ALIASES[word] for word in words)

    @cached_property
    def is_measure(self) -> bool:
        measures = ("duration", "steps", "tokens", "cost", "temperature")
        is_grade = self.fold == "note" and bool(self.numbers)  # a remark in most tables
        return not is_grade and (self.named(*measures) or MEASURES.fullmatch(self.fold) is not None)


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Columns of equal length, and the place of the records that they are from."""

    records: str
    columns: Mapping[str, Column]
    size: int
    weight: float
    where: str = ""
    """The rows that count, where others are something else."""
    verdict: str = ""
    """The column whose words are verdicts in these rows alone."""


def sample_tables(source: Source) -> Iterator[SampleTable]:
    """The first rows of a file as tables, one for each place where its records may be."""
    kind = content_kind(source)
    log = plain_log(source)
    if kind not in ("JSON", "JSON lines"):
        if kind != "XML":
            yield _table("", islice(RecordFile(source, log).records(), _ROWS_LOOKED_AT))
        return
    roots = list(islice(RecordFile(source, log).records(), _ROWS_LOOKED_AT))
    if kind == "JSON lines":
        yield _table("", roots)
    found = _find_places([root.data for root in roots], "", 0)
    paths = list(islice(dict.fromkeys(found), _MOST_PLACES))
    for path in paths:
        steps = steps_of(path)
        records = chain.from_iterable(records_below(root, steps) for root in roots)
        table = _table(path, islice(records, _ROWS_LOOKED_AT))
        is_part = any(_covers(other, path) for other in paths if other != path)
        yield replace(table, weight=table.weight - 0.7 * is_part)


def _covers(path: str, part: str) -> bool:
    """Whether one path leads to all that another leads to: ``*.*[*]`` and ``gpt.*[*]``."""
    pattern = re.escape(path).replace(r"\[\*\]", "\0").replace(r"\*", r'(?:"[^"]*"|[^.\[\]"]+)')
    return re.fullmatch(pattern.replace("\0", r"\[\*\]"), part) is not None


def _find_places(nodes: Sequence[Any], path: str, depth: int) -> Iterator[str]:
    """Paths of lists and of objects of like things, the outer ones first."""
    lists = [node for node in nodes if isinstance(node, list)]
    objects = [node for node in nodes if isinstance(node, dict)]
    if depth > _DEEPEST:
        return
    if len(lists) * 2 > len(nodes):
        inner = [element for node in lists for element in node[:_NODES]]
        if inner:
            yield f"{path}[*]"
            yield from _find_places(inner, f"{path}[*]", depth + 1)
    elif len(objects) * 2 > len(nodes):
        if _are_alike(objects):
            star = f"{path}.*" if path else "*"
            yield star
            inner = [value for node in objects for value in islice(node.values(), _NODES)]
            yield from _find_places(inner, star, depth + 1)
        names = dict.fromkeys(name for node in objects for name in node)
        words = RewardWords()
        if {0.0, 1.0} <= {reward_or_none(words, n) for n in names if not str(n).isdigit()}:
            yield f"{path}.*[*]" if path else "*[*]"  # {"passed": ["a"], "failed": ["b"]}
        for name in islice(names, _NODES):
            if ONE_SIDED.fullmatch(fold_name(str(name))):
                continue
            values = [node[name] for node in objects if name in node]
            if any(isinstance(value, dict | list) for value in values):
                step = _step(name)
                yield from _find_places(values, f"{path}.{step}" if path else step, depth + 1)


def _step(name: object) -> str:
    return str(name) if re.fullmatch(r"[^.\[\]\"*+]+", str(name)) else f'"{name}"'


def _are_alike(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects hold like things by their names, rather than the fields of one thing."""
    values = [value for node in objects[:_NODES] for value in islice(node.values(), _NODES)]
    if len(values) < 2:
        return False
    if all(isinstance(value, dict) for value in values):
        shared = set.intersection(*(set(value) for value in values))
        return bool(shared) or 2 * sum(_are_alike([value]) for value in values) > len(values)
    if all(isinstance(value, list) for value in values):
        return True
    words = RewardWords()
    return all(
        reward_or_none(words, value) in (0.0, 1.0)
        or (isinstance(value, str) and (FRACTION.fullmatch(value) or is_verdict_list(value)))
        for value in values
        if not isinstance(value, dict | list)
    ) and not any(isinstance(value, dict | list) for value in values)


def _table(path: str, records: Iterable[Record]) -> SampleTable:
    rows = [_fields_of(record, is_table=not path) for record in records]
    words = RewardWords()
    firsts = [next(iter(row.values()), "") for row in rows]
    # "passed" may name a total, or be the verdict in the first column.
    totals = [is_total(cell) and reward_or_none(words, cell) is None for cell in firsts]
    averages = [fold_label(cell) in STATISTICS for cell in firsts[-2:]]  # else names of tasks, too
    totals[-2:] = [any(each) for each in zip(totals[-2:], averages, strict=True)]
    rows = [row for row, is_sum in zip(rows, totals, strict=True) if not is_sum]
    names = list(dict.fromkeys(name for row in rows for name in row))[:_MOST_COLUMNS]
    columns = {name: Column(name, [row.get(name) for row in rows]) for name in names}
    odd = any(_NOT_RECORDS.fullmatch(fold_name(step)) for step in re.split(r"[.\[\]*]+", path))
    weight = min(np.log2(len(rows) + 1) * 0.15, 1.0) - 2.0 * odd - 0.1 * path.count("*")
    return SampleTable(path, columns, len(rows), float(weight))


def _fields_of(record: Record, *, is_table: bool) -> dict[str, object]:
    """The fields of a record by their paths, with the keys and plain fields around it."""
    data = record.data
    fields: dict[str, object] = {"@value": data}
    if isinstance(data, dict):
        fields = dict(_flat(data, "", is_table=is_table))
        for name, value in [*fields.items()]:  # the first of several right answers
            if isinstance(value, list) and value and not isinstance(value[0], dict | list):
                fields[f"{name}[0]"] = value[0]
    keys = (*record.parent_keys, record.key)
    for level, key in enumerate(reversed(keys)):
        if key:
            fields[f"{'^' * level}@key"] = key
    for level, parent in enumerate(reversed(record.parents), 1):
        for name, value in parent.items() if isinstance(parent, dict) else ():
            if not isinstance(value, dict | list):
                fields[f"{'^' * level}{_step(name)}"] = value
    return fields
