"""Mappings: where the records of a file are, and the meaning of their fields.

A mapping is a small TOML file. passhat ships one for each format that needs no code (the folder
``mappings``), users write their own, and ``passhat read FILE --guess`` proposes one.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from passhat._display import some
from passhat.errors import InvalidValue, UnknownFormat, shorten
from passhat.readers.base import ReadOptions
from passhat.readers.parsing import number_or_none, outline
from passhat.readers.records import (
    Record,
    RecordFile,
    Step,
    content_kind,
    elements,
    plain_log,
    steps_of,
    value_at,
)
from passhat.readers.sources import Source
from passhat.stats.outcomes.columns import ALIASES, SLICE_PREFIX, fold_name
from passhat.stats.outcomes.rewards import RewardWords, ScoreRange

__all__ = [
    "ABOUT_WORDS",
    "EXTRA_WORDS",
    "REWARD_WORDS",
    "SCORER",
    "RecordMap",
    "Rule",
    "compile_path",
    "describe_structure",
    "guess_mapping",
    "parse_rule",
    "suggest_rule",
    "unknown_format",
    "value_of",
]

ABOUT_WORDS = ("model_version", "provider")
EXTRA_WORDS = ("sample_hash", "retries")
_WORDS = (
    *(*ALIASES, "id", "seed", "error", "experiment", "duration_ms"),
    *(*ABOUT_WORDS, *EXTRA_WORDS),
)
SCORER = "{scorer}"
"""Stands for the name of a judge in a path or a rule."""
_RULE = re.compile(r"\s*(.+?)\s*(>=|<=|==|!=|>|<)\s*(.+?)\s*")

FieldPath = tuple[str, tuple[Step, ...]]
"""Where a path starts (``record``, ``root``, ``parent``, ``@key``, ...), and its steps."""

REWARD_WORDS = RewardWords()


@dataclass(frozen=True, slots=True)
class FieldValue:
    """Another field of the record, on the right of a rule: ``pred == @answer``."""

    path: FieldPath


@dataclass(frozen=True, slots=True)
class Rule:
    """A comparison such as ``score >= 0.5``."""

    path: FieldPath
    sign: str
    value: object

    def is_present(self, record: Record, root: object) -> bool:
        """Whether the record has the field of the rule."""
        return value_of(record, root, self.path) not in (None, "")

    def number(self, record: Record, root: object) -> float | None:
        """The number that a rule such as ``score >= 0.5`` looks at; ``None`` for other rules."""
        if self.sign not in (">=", ">") or not isinstance(self.value, int | float):
            return None
        return number_or_none(value_of(record, root, self.path))

    def holds(self, record: Record, root: object) -> bool | None:
        """Whether it holds; ``None`` when the field is absent."""
        value = value_of(record, root, self.path)
        if isinstance(self.value, FieldValue):
            other = value_of(record, root, self.value.path)
            if value is None or other is None:
                return None
            same = str(value).strip() == str(other).strip()
            return same if self.sign == "==" else not same
        if value is None or value == "":
            return True if self.sign == "!=" else None
        if isinstance(self.value, bool | int | float):
            word = REWARD_WORDS[value] if isinstance(value, str | bool | int | float) else None
            left, right = number_or_none(word), float(self.value)
            return None if left is None else _compare(left, self.sign, right)
        return _compare(str(value), self.sign, str(self.value))


def _compare(left: Any, sign: str, right: Any) -> bool:
    if sign in (">=", "<=") and isinstance(left, float) and abs(left - right) <= 1e-9:
        return True  # sums of floating scores land just below the threshold
    signs = {
        ">=": left >= right,
        "<=": left <= right,
        ">": left > right,
        "<": left < right,
        "==": left == right,
        "!=": left != right,
    }
    return bool(signs[sign])


@dataclass(frozen=True, slots=True)
class RecordMap:
    """How to read a file: the place of its records, and the meaning of their fields.

    Attributes
    ----------
    name, title : str
        The format, for programs and for people.
    records : str
        The path to the records, as in ``results[*]``; empty in a table.
    header : str
        Where the names of the fields are, when a record is a list of cells.
    fields : mapping
        passhat's name of a field to paths inside a record, the first that has a value wins. A path
        that starts with ``/`` starts at the document, one with ``^`` at the object around the
        record; ``@key`` is the record's key in an object, ``^@key`` the key of the object around
        it, ``@index`` the record's place.
    trials : str
        Fields that hold one attempt each, as in ``run_*``.
    passes : str
        The rule for a pass, as in ``score >= 0.5``; without it, ``fields["success"]`` decides.
    where : str
        Which records count, as in ``name == {scorer}``; the others are skipped.
    order : {"trial", "appearance", "unknown"}
        The order of attempts at a task, as far as it is known.
    constants : mapping
        Facts about every run: ``model``, ``suite``, ``judge``.
    says : mapping
        Numbers the file prints: a path at the document, or several whose first is divided by the
        sum of all.
    keys, marks : tuple
        The format is recognized when the first object of the file has all keys and the head
        contains all marks, and none of ``without`` and ``unmarked``.
    columns : tuple of str
        Likewise for the header of a table.
    absent : str
        The message for a file of this format that holds no verdicts at all.
    score_range : str
        The lowest and highest score, as in ``1..5``, where they are not 0 and 1.
    """

    name: str = "mapping"
    title: str = ""
    records: str = ""
    header: str = ""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trials: str = ""
    passes: str = ""
    where: str = ""
    order: str = "trial"
    constants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    says: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    absent: str = ""
    score_range: str = ""

    @property
    def scorer_texts(self) -> list[str]:
        """The paths and rules in which {scorer} stands for the name of a judge."""
        texts = [path for paths in self.fields.values() for path in paths]
        return [text for text in (*texts, self.passes, self.where) if SCORER in text]

    @classmethod
    def from_toml(cls, text: str, name: str) -> RecordMap:
        """Read a mapping; ``name`` is the file's, for messages."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidValue(f"{name} is not TOML: {error}.") from None
        text_keys = {"name", "title", "records", "header", "trials", "pass", "where", "order"}
        text_keys |= {"absent", "score_range"}
        tables = {"fields", "run", "says", "recognize"}
        for key in data.keys() - text_keys - tables:
            raise InvalidValue(
                f"{name}: {key!r} is not part of a mapping.",
                hint=f"It has: {', '.join(sorted(text_keys | tables))}.",
            )
        texts = {key: str(data.get(key, "")) for key in text_keys}
        recognize = data.get("recognize", {})
        mapping = cls(
            name=texts["name"] or Path(name).stem,
            title=texts["title"],
            records=texts["records"],
            header=texts["header"],
            fields={str(k): _as_paths(v) for k, v in data.get("fields", {}).items()},
            trials=texts["trials"],
            passes=texts["pass"],
            where=texts["where"],
            order=texts["order"] or "trial",
            constants={str(k): _as_paths(v) for k, v in data.get("run", {}).items()},
            says={str(k): _as_paths(v) for k, v in data.get("says", {}).items()},
            keys=tuple(recognize.get("keys", ())),
            without=tuple(recognize.get("without", ())),
            marks=tuple(recognize.get("marks", ())),
            unmarked=tuple(recognize.get("unmarked", ())),
            columns=tuple(recognize.get("columns", ())),
            absent=texts["absent"],
            score_range=texts["score_range"],
        )
        mapping.check(name)
        return mapping

    def check(self, name: str) -> None:
        """Refuse invalid words and paths, before any file is read."""
        for word in self.fields:
            if word not in _WORDS and not word.startswith(SLICE_PREFIX):
                raise InvalidValue(
                    f"{name}: {word!r} is not a field passhat knows.",
                    hint=f"Known fields: {', '.join(_WORDS)}, and slice:NAME.",
                )
        if self.order not in ("trial", "appearance", "unknown"):
            raise InvalidValue(
                f"{name}: order is trial, appearance or unknown, not {self.order!r}."
            )
        try:
            steps_of(self.records)
            for paths in self.fields.values():
                for path in paths:
                    compile_path(path)
        except ValueError as error:
            raise InvalidValue(f"{name}: {error}.") from None
        for text in (self.passes, self.where):
            if text:
                parse_rule(text, "x")
        if self.score_range:
            ScoreRange.parse(self.score_range)

    def to_toml(self, comments: Sequence[str] = ()) -> str:
        """The mapping as TOML, with comments at the top."""
        lines = [f"# {line}" for line in comments]
        lines.append(f"name = {_quote_toml(self.name)}")
        for key, value in (
            ("title", self.title),
            ("records", self.records),
            ("trials", self.trials),
            ("pass", self.passes),
            ("where", self.where),
        ):
            if value:
                lines.append(f"{key} = {_quote_toml(value)}")
        lines += ["", "[fields]"]
        for word, paths in self.fields.items():
            key = word if word.isidentifier() else _quote_toml(word)
            texts = [_quote_toml(path) for path in paths]
            lines.append(f"{key} = {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}")
        return "\n".join(lines) + "\n"


def _quote_toml(text: str) -> str:
    text_escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", text_escaped) + '"'


def _as_paths(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def compile_path(path: str, scorer: str = SCORER) -> FieldPath:
    if path == "^@key":
        return path, ()
    for sign, start in (("/", "root"), ("^", "parent")):
        if path.startswith(sign):
            return start, _fill_scorer(path[1:], scorer)
    if path in ("@key", "@index", "@value"):
        return path, ()
    return "record", _fill_scorer(path, scorer)


def _fill_scorer(path: str, scorer: str) -> tuple[Step, ...]:
    """The steps of a path; the scorer is a single name, even with dots and brackets in it."""

    def fill_step(step: Step) -> Step:
        where = step.where
        return replace(
            step,
            key=step.key and step.key.replace(SCORER, scorer),
            where=where and (where[0], where[1].replace(SCORER, scorer)),
        )

    return tuple(map(fill_step, steps_of(path)))


def value_of(record: Record, root: object, path: FieldPath) -> object:
    start, steps = path
    if start == "@key":
        return record.key
    if start == "^@key":
        return record.parent_key
    if start == "@index":
        return record.index
    if start == "@value":
        return None if isinstance(record.data, dict) else record.data
    data = {"record": record.data, "root": root}.get(start)
    if start == "parent":
        data = record.parents[-1] if record.parents else root
    return value_at(data, steps) if steps else data


def parse_rule(text: str, scorer: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"{text!r} is not a rule.", hint="Write FIELD SIGN VALUE, as in: score >= 0.5"
        )
    if match[3].startswith("@") and match[2] in ("==", "!="):
        return Rule(
            compile_path(match[1], scorer), match[2], FieldValue(compile_path(match[3][1:]))
        )
    value: object = match[3].strip("'\"")
    number = number_or_none(match[3])
    if value == SCORER:
        value = scorer
    elif number is not None:
        value = number
    elif match[3].lower() in ("true", "false"):
        value = float(match[3].lower() == "true")
    try:
        return Rule(compile_path(match[1], scorer), match[2], value)
    except ValueError as error:
        raise InvalidValue(f"{text!r} is not a rule: {error}.") from None


# -- looking at an unknown file --------------------------------------------------------------

_SAMPLE_ROWS = 200


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
    for path in _containers(source, options):
        examples = _fields(source, path)
        mapping, certain = _guess_fields(path, examples, options)
        if certain:
            return mapping, True
        if best is None or len(mapping.fields) > len(best[0].fields):
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
    mapping, _ = guess_mapping(source, options)
    fields = [s for path in _containers(source, options)[:1] for s in _fields(source, path)]
    shown_fields = some([f"{shorten(s.path, 40)[1:-1]} ({s.kind})" for s in fields], 8)
    has = f"; a record has {shown_fields}" if fields else ""
    lacking = [w for w in ("task", "success") if w not in mapping.fields]
    records = f" --records {mapping.records!r}" if mapping.records else ""
    pairs = [f"{word}={paths[0]}" for word, paths in mapping.fields.items()]
    pairs += [f"{word}=FIELD" for word in lacking]
    rule = suggest_rule([s.path for s in fields])
    if rule and "success" not in mapping.fields:
        pairs.remove("success=FIELD")
        records += f" --pass '{rule}'"
    verdicts = ("list", "true or false", "number")
    if not mapping.fields and fields and all(s.kind in verdicts for s in fields):
        # {"task-1": [true, false], "task-2": [true, true]}
        depth = max(s.path.count(".") for s in fields)
        records = f" --records {'.'.join('*' * (depth + 1))!r}"
        pairs = ["task=@key", "success=@value"]
        if depth:  # {"model-1": {"task-1": [true, false]}}
            pairs.insert(0, "model=^@key")
    return UnknownFormat(
        f"is valid {kind}, but not of a format passhat knows{top}{has}.",
        source=source.name,
        hint=f"State what is what:{records} --map {','.join(pairs)} ; or start from: "
        f"passhat read {shlex.quote(source.name)} --guess > mapping.toml",
    )


_PREDICTIONS = ("pred", "prediction", "predicted", "predicted_answer", "model_answer", "extracted")
_KEYS = (
    *("answer", "gold", "target", "label", "reference", "ground_truth", "expected"),
    *("correct_answer", "gold_answer"),
)


def suggest_rule(names: Sequence[str]) -> str | None:
    """A rule for files that hold an answer and the right one: an equal answer passes."""
    answer = next((name for name in names if fold_name(name) in _PREDICTIONS), None)
    key = next((name for word in _KEYS for name in names if fold_name(name) == word), None)
    return None if answer is None or key is None else f"{answer} == @{key}"


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
    log = plain_log(source)
    whole = next(iter(RecordFile(source, log).records()), None)
    data = whole.data if whole is not None else {}
    candidates: list[tuple[int, str]] = []
    for path, value in _find_containers(data, ""):
        rows = list(value.values()) if isinstance(value, dict) else value
        objects = sum(isinstance(row, dict) for row in rows)
        if rows and objects * 2 > len(rows):
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
    return paths or [""]


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


def _flat(data: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in data.items():
        name = str(key) if re.fullmatch(r"[^.\[\]\"*]+", str(key)) else f'"{key}"'
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
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "object"


_WEAK = {"task": ("id", "name", "@key", "input", "prompt", "question")}
"""Names that may mean something else: proposed, never used unasked."""


def _guess_fields(
    path: str, seen: list[_FieldExamples], options: ReadOptions
) -> tuple[RecordMap, bool]:
    fields_of: dict[str, tuple[str, ...]] = {w: (p,) for w, p in options.columns.items()}
    certain = dict.fromkeys(fields_of, True)
    names = [s.path for s in seen if s.kind != "list" or s.path.count(".") == 0]
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
    if path in ("*.*", "*[*]") and "model" not in fields_of:
        fields_of["model"] = ("^@key",)
    mapping = RecordMap(
        name="mine",
        records=path,
        fields=fields_of,
        trials=options.trials or "",
        passes=options.passes or "",
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
