"""Formats described as data: the place of the records, and the meaning of their fields.

A mapping is a small TOML file. passhat ships one for each format that needs no code (the folder
``mappings``), users write their own, and ``passhat read FILE --guess`` proposes one.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from passhat._display import some
from passhat.errors import InvalidValue, ReadError, UnknownFormat, shorten
from passhat.protocol import Protocol, Scalar
from passhat.readers.base import Reader, ReadOptions
from passhat.readers.builder import LogBuilder, RunFacts, number_or_none, why_missing
from passhat.readers.json_parts import outline
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
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import ALIASES, SLICE_PREFIX
from passhat.stats.outcomes.rewards import RewardWords

__all__ = ["MappedReader", "RecordMap", "guess", "mapped_readers", "read_mapped", "structure"]

_WORDS = (*ALIASES, "id", "seed", "error", "experiment")
_RUN_WORDS = ("model", "experiment", "suite", "temperature")
_SCORER = "{scorer}"
_RULE = re.compile(r"\s*(.+?)\s*(>=|<=|==|!=|>|<)\s*(.+?)\s*")
_SAMPLE = 200
_MOST_COUNTED = 1_000_000

_Path = tuple[str, tuple[Step, ...]]
"""Where a path starts (``record``, ``root``, ``parent``, ``@key``, ...), and its steps."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A comparison such as ``score >= 0.5``."""

    path: _Path
    sign: str
    value: object

    def holds(self, record: Record, root: object) -> bool | None:
        """Whether it holds; ``None`` when the field is absent."""
        value = _value(record, root, self.path)
        if value is None or value == "":
            return True if self.sign == "!=" else None
        if isinstance(self.value, bool | int | float):
            word = _REWARDS[value] if isinstance(value, str | bool | int | float) else None
            left, right = number_or_none(word), float(self.value)
            return None if left is None else _compared(left, self.sign, right)
        return _compared(str(value), self.sign, str(self.value))


def _compared(left: Any, sign: str, right: Any) -> bool:
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


_REWARDS = RewardWords()


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

    @property
    def scorer_texts(self) -> list[str]:
        """The paths and rules in which {scorer} stands for the name of a judge."""
        texts = [path for paths in self.fields.values() for path in paths]
        return [text for text in (*texts, self.passes, self.where) if _SCORER in text]

    @classmethod
    def from_toml(cls, text: str, name: str) -> RecordMap:
        """Read a mapping; ``name`` is the file's, for messages."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidValue(f"{name} is not TOML: {error}.") from None
        known = {"name", "title", "records", "header", "trials", "pass", "where", "order"}
        known |= {"absent"}
        tables = {"fields", "run", "says", "recognize"}
        for key in data.keys() - known - tables:
            raise InvalidValue(
                f"{name}: {key!r} is not part of a mapping.",
                hint=f"It has: {', '.join(sorted(known | tables))}.",
            )
        texts = {key: str(data.get(key, "")) for key in known}
        recognize = data.get("recognize", {})
        made = cls(
            name=texts["name"] or Path(name).stem,
            title=texts["title"],
            records=texts["records"],
            header=texts["header"],
            fields={str(k): _paths(v) for k, v in data.get("fields", {}).items()},
            trials=texts["trials"],
            passes=texts["pass"],
            where=texts["where"],
            order=texts["order"] or "trial",
            constants={str(k): _paths(v) for k, v in data.get("run", {}).items()},
            says={str(k): _paths(v) for k, v in data.get("says", {}).items()},
            keys=tuple(recognize.get("keys", ())),
            without=tuple(recognize.get("without", ())),
            marks=tuple(recognize.get("marks", ())),
            unmarked=tuple(recognize.get("unmarked", ())),
            columns=tuple(recognize.get("columns", ())),
            absent=texts["absent"],
        )
        made.check(name)
        return made

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
                    _compiled(path)
        except ValueError as error:
            raise InvalidValue(f"{name}: {error}.") from None
        for text in (self.passes, self.where):
            if text:
                _rule(text, "x")

    def to_toml(self, comments: Sequence[str] = ()) -> str:
        """The mapping as TOML, with comments at the top."""
        lines = [f"# {line}" for line in comments]
        lines.append(f"name = {_quoted(self.name)}")
        for key, value in (
            ("title", self.title),
            ("records", self.records),
            ("trials", self.trials),
            ("pass", self.passes),
            ("where", self.where),
        ):
            if value:
                lines.append(f"{key} = {_quoted(value)}")
        lines += ["", "[fields]"]
        for word, paths in self.fields.items():
            key = word if word.isidentifier() else _quoted(word)
            texts = [_quoted(path) for path in paths]
            lines.append(f"{key} = {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}")
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", escaped) + '"'


def _paths(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _compiled(path: str, scorer: str = _SCORER) -> _Path:
    if path == "^@key":
        return path, ()
    for sign, start in (("/", "root"), ("^", "parent")):
        if path.startswith(sign):
            return start, _with_scorer(path[1:], scorer)
    if path in ("@key", "@index", "@value"):
        return path, ()
    return "record", _with_scorer(path, scorer)


def _with_scorer(path: str, scorer: str) -> tuple[Step, ...]:
    """The steps of a path; the scorer is a single name, even with dots and brackets in it."""

    def filled(step: Step) -> Step:
        where = step.where
        return replace(
            step,
            key=step.key and step.key.replace(_SCORER, scorer),
            where=where and (where[0], where[1].replace(_SCORER, scorer)),
        )

    return tuple(map(filled, steps_of(path)))


def _value(record: Record, root: object, path: _Path) -> object:
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


def _rule(text: str, scorer: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"{text!r} is not a rule.", hint="Write FIELD SIGN VALUE, as in: score >= 0.5"
        )
    value: object = match[3].strip("'\"")
    number = number_or_none(match[3])
    if value == _SCORER:
        value = scorer
    elif number is not None:
        value = number
    elif match[3].lower() in ("true", "false"):
        value = float(match[3].lower() == "true")
    try:
        return Rule(_compiled(match[1], scorer), match[2], value)
    except ValueError as error:
        raise InvalidValue(f"{text!r} is not a rule: {error}.") from None


# -- reading ---------------------------------------------------------------------------------


class MappedReader(Reader):
    """Reads one format that a mapping describes."""

    name: ClassVar[str] = "mapping"

    def __init__(self, mapping: RecordMap) -> None:
        self._map = mapping
        self.name = mapping.name  # type: ignore[misc]
        self.has_scorers = bool(mapping.scorer_texts)  # type: ignore[misc]

    def recognizes(self, source: Source) -> bool:
        mapping, head = self._map, source.head
        if mapping.columns and head and not source.outline.opens:
            first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
            names = {name.strip().strip('"') for name in first.strip().split(",")}
            if set(mapping.columns) <= names:
                return True
        seen = source.outline
        return (
            bool(mapping.keys or mapping.marks)
            and bool(seen.opens)
            and set(mapping.keys) <= seen.keys
            and seen.keys.isdisjoint(mapping.without)
            and all(mark.encode() in head for mark in mapping.marks)
            and not any(mark.encode() in head for mark in mapping.unmarked)
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        return read_mapped(source, options, self._map)


@lru_cache(maxsize=1)
def _shipped() -> tuple[RecordMap, ...]:
    folder = files("passhat.readers") / "mappings"
    mapping_files = sorted(
        (f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name
    )
    return tuple(RecordMap.from_toml(f.read_text(encoding="utf-8"), f.name) for f in mapping_files)


def mapped_readers() -> list[Reader]:
    """A reader for every mapping that ships with passhat."""
    return [MappedReader(mapping) for mapping in _shipped()]


def read_mapped(source: Source, options: ReadOptions, mapping: RecordMap) -> list[Run]:
    """All runs in a file, by a mapping."""
    if mapping.absent:
        raise ReadError(mapping.absent, source=source.name)
    return _MappedFile(source, options, mapping).runs()


class _MappedFile:
    def __init__(self, source: Source, options: ReadOptions, mapping: RecordMap) -> None:
        self._source = source
        self._options = options
        self._map = mapping
        scorer = self._scorer()
        self._fields = {
            word: [_compiled(path, scorer) for path in paths]
            for word, paths in mapping.fields.items()
        }
        self._passes = _rule(mapping.passes, scorer) if mapping.passes else None
        self._where = _rule(mapping.where, scorer) if mapping.where else None
        self._judge = scorer or next(iter(mapping.constants.get("judge", ())), "")
        slices = [
            w.removeprefix(SLICE_PREFIX) for w in mapping.fields if w.startswith(SLICE_PREFIX)
        ]
        self._slices = [*slices, *(name for name in options.labels if name not in slices)]
        kind = mapping.title or f"{content_kind(source)} file, mapped"
        self._log = LogBuilder(
            source,
            kind,
            options,
            order="appearance" if mapping.order == "appearance" else "trial",
            slices=self._slices,
        )
        self._file = RecordFile(source, self._log, mapping.records)
        self._runs: dict[str, dict[str, object]] = {}

    def runs(self) -> list[Run]:
        for record in self._named(self._file.records(), self._file):
            with self._log.row(record.where):
                self._take(record)
        return self._log.runs(self._facts)

    def _named(self, records: Iterator[Record], file: RecordFile) -> Iterator[Record]:
        """Records whose cells are a list get their names from the header of the document."""
        for record in records:
            if self._map.header and isinstance(record.data, list):
                names = value_at(file.root, steps_of(self._map.header))
                if isinstance(names, list) and len(names) == len(record.data):
                    data = dict(zip(map(str, names), record.data, strict=True))
                    yield replace(record, data=data)
                    continue
            yield record

    def _take(self, record: Record) -> None:
        if not isinstance(record.data, dict) and "task" in self._fields:
            simple = isinstance(record.data, str | int | float | bool | list) or record.data is None
            if not (simple and record.key):
                self._log.lose(record.where, f"is not an object but {shorten(record.data)}")
                return
        if self._where is not None and self._where.holds(record, self._file.root) is not True:
            self._log.skip("a record that the mapping leaves aside")
            return
        if self._map.trials:
            self._take_wide(record)
            return
        n, c = self._get(record, "n"), self._get(record, "c")
        if "success" not in self._fields and self._passes is None and n is not None:
            self._take_counts(record, n, c)
            return
        value = self._success(record)
        tasks = self._get(record, "task")
        if isinstance(tasks, list) and isinstance(value, list):
            self._take_columns(record, tasks, value)
            return
        if isinstance(value, list):
            if not value:
                self._log.lose(record.where, "has no verdicts")
            for number, verdict in enumerate(value, 1):
                self._add(record, f"{record.where}.{number}", verdict, number)
            return
        self._add(record, record.where, value, self._get(record, "trial"))

    def _take_columns(self, record: Record, tasks: list[object], values: list[object]) -> None:
        """A record that holds columns: the lists belong together place by place."""
        if len(tasks) != len(values):
            self._log.lose(
                record.where, f"has {len(tasks)} tasks and {len(values)} verdicts, side by side"
            )
            return
        long = {
            name: cells
            for name, cells in record.data.items()
            if isinstance(cells, list) and len(cells) == len(tasks)
        }
        for number in range(len(tasks)):
            row = {**record.data, **{name: cells[number] for name, cells in long.items()}}
            inner = replace(record, data=row, where=f"{record.where}, row {number + 1}")
            with self._log.row(inner.where):
                self._take(inner)

    def _success(self, record: Record) -> object:
        if self._passes is not None:
            return self._passes.holds(record, self._file.root)
        return self._get(record, "success")

    def _take_wide(self, record: Record) -> None:
        """Add an attempt for every matching field: its value, or a value inside it."""
        names = [n for n in record.data if fnmatch.fnmatchcase(str(n), self._map.trials)]
        if not names:
            self._log.lose(record.where, f"has no field that matches {self._map.trials!r}")
            return
        start = len(self._map.trials.split("*", 1)[0])
        for place, name in enumerate(names, 1):
            inner = record.data[name]
            label = str(name)[start:] or place
            data = (
                {**record.data, **inner}
                if isinstance(inner, dict)
                else {
                    **record.data,
                    "value": inner,
                }
            )
            attempt = replace(record, data=data)
            if isinstance(inner, dict) or self._passes is not None:
                value = self._success(attempt)
            else:
                value = inner
            # Every field beyond the first is a row of its own, as in a long table.
            self._add(attempt, f"{record.where}, {name}", value, label)

    def _take_counts(self, record: Record, n: object, c: object) -> None:
        total, passed = number_or_none(n), number_or_none(c)
        if total is None or passed is None or not 0 <= passed <= total <= _MOST_COUNTED:
            self._log.lose(record.where, f"n = {shorten(n)}, c = {shorten(c)} are not counts")
            return
        for number in range(int(total)):
            self._add(record, record.where, number < passed, None)

    def _add(self, record: Record, where: str, value: object, trial: object) -> None:
        run = {word: self._get(record, word) for word in _RUN_WORDS if word in self._fields}
        key = "\x1f".join("" if v is None else str(v) for v in run.values())
        self._runs.setdefault(key, run)
        reward = _reward(value)
        error, failure = self._get(record, "error"), self._get(record, "failure")
        why = "" if failure in (None, "") else str(failure)
        if error not in (None, "", False, [], {}) and (reward is None or "error" in self._fields):
            reward, why = None, why_missing(_message(error))
        elif reward is None:
            why = why or "not_recorded: no verdict"
        slices = [self._get(record, SLICE_PREFIX + name) for name in self._slices]
        if self._options.labels:
            slices = [
                value_at(record.data, steps_of(name)) if s is None else s
                for name, s in zip(self._slices, slices, strict=True)
            ]
        self._log.add(
            where,
            self._task(record),
            reward,
            run=key,
            trial=None if trial is None else self._trial(trial),
            why=why if reward != 1 else "",
            seconds=self._get(record, "duration"),
            steps=self._get(record, "steps"),
            tokens=self._get(record, "tokens"),
            cost=self._get(record, "cost"),
            answer=_text(self._get(record, "answer")),
            seed=self._get(record, "seed"),
            labels=[None if s is None else str(s) for s in slices],
            source_id=self._get(record, "id"),
        )

    def _trial(self, trial: object) -> object:
        """The label of an attempt; a seed distinguishes attempts, but gives no order."""
        paths = self._map.fields.get("trial", ())
        if self._map.order == "unknown":
            return f"trial {trial}"
        if any(path.rpartition(".")[2] == "seed" for path in paths):
            return f"seed {trial}"
        number = number_or_none(trial) if isinstance(trial, str) else None
        return int(number) if number is not None and number.is_integer() else trial

    def _task(self, record: Record) -> object:
        task = self._get(record, "task")
        return task if isinstance(task, str | int | float) or task is None else _text(task)

    def _get(self, record: Record, word: str) -> object:
        for path in self._fields.get(word, ()):
            value = _value(record, self._file.root, path)
            if value is not None and value != "":
                return value
        return None

    def _facts(self, key: str) -> RunFacts:
        run, constants, root = self._runs[key], self._map.constants, self._file.root
        facts: dict[str, str] = {}
        for word in ("model", "experiment", "suite"):
            value = run.get(word)
            if value is None and word in constants:
                values = map(self._constant, constants[word])
                value = next((v for v in values if v is not None), None)
            facts[word] = "" if value is None else str(_text(value))
        temperature = number_or_none(run.get("temperature"))
        decoding: dict[str, Scalar] = {} if temperature is None else {"temperature": temperature}
        variant = " ".join(
            part
            for part in (
                facts["experiment"] if facts["model"] else "",
                f"on {facts['suite']}" if run.get("suite") is not None else "",
                f"T={temperature:g}" if temperature is not None else "",
            )
            if part
        )
        says = {
            metric: number
            for metric, paths in self._map.says.items()
            if (number := _printed(root, paths)) is not None and len(self._runs) == 1
        }
        taken = ", ".join(f"{w} = {' or '.join(p)}" for w, p in self._map.fields.items())
        reading = [f"fields: {taken}"]
        if not facts["model"]:
            named = "its experiment" if facts["experiment"] else "the file"
            reading.append(f"the agent is not named: the run is named after {named}")
        return RunFacts(
            facts["model"] or facts["experiment"] or self._source.stem,
            Protocol(suite=facts["suite"] or None, decoding=decoding, judge=self._judge or None),
            variant=variant,
            says=says,
            reading=tuple(reading),
            guessed=not facts["model"],
        )

    def _constant(self, text: str) -> object:
        if not text.startswith("/"):
            return text
        return value_at(self._file.root, steps_of(text[1:]))

    # -- which judge counts ------------------------------------------------------------------

    def _scorer(self) -> str:
        """The name to fill in for {scorer}; refuses when there are several to choose from."""
        chosen = self._map.scorer_texts
        if not chosen:
            return ""
        names = next((names for text in chosen if (names := self._scorers(text))), [])
        scorer = self._options.scorer
        if scorer is not None and (scorer in names or not names):
            return scorer
        if scorer is None and len(names) == 1:
            return names[0]
        if not names:
            return "score"
        raise ReadError(
            f"has no scorer called {scorer!r}."
            if scorer is not None
            else f"was scored by {len(names)} scorers, and only one can decide what passed.",
            source=self._source.name,
            hint=f"Choose with --scorer: {some(names, 20)}.",
        )

    def _scorers(self, text: str) -> list[str]:
        """The names that fit {scorer} in a path, from the first records."""
        before, _, after = text.partition(_SCORER)
        names: dict[str, None] = {}
        file = RecordFile(self._source, plain_log(self._source), self._map.records)
        rows = self._named(file.records(), file)
        for record in islice(rows, _SAMPLE):
            names |= dict.fromkeys(_names_at(record, before, after))
        return list(names)


def _names_at(record: Record, before: str, after: str) -> Iterator[str]:
    """The names that fit {scorer} in a record, between two parts of a path."""
    rule = re.fullmatch(r"\s*(\S+)\s*==\s*", before)
    listed = re.fullmatch(r"(.*)\[([^\[=]+)=", before)
    if rule:  # where = "name == {scorer}"
        value = value_at(record.data, steps_of(rule[1]))
        yield from () if value is None else (str(value),)
    elif listed:  # feedback[key={scorer}].score
        rows = value_at(record.data, steps_of(listed[1]))
        for row in rows if isinstance(rows, list) else ():
            name = value_at(row, steps_of(listed[2]))
            yield from () if name is None else (str(name),)
    elif after.startswith("/") or (before and not before.endswith(".")):
        yield from _column_names(record.data, before, after)  # correctness/value
    else:
        yield from _field_names(record.data, before, after)


def _column_names(data: object, before: str, after: str) -> Iterator[str]:
    for key in map(str, data if isinstance(data, dict) else ()):
        if key.startswith(before) and key.endswith(after) and len(key) > len(before + after):
            yield key[len(before) : len(key) - len(after)]


def _field_names(data: object, before: str, after: str) -> Iterator[str]:
    path = before.removesuffix(".")
    inside = value_at(data, steps_of(path)) if path else data
    if inside is None:
        # A table writes the path as the name of a column: feedback.correct
        yield from _column_names(data, before, after)
        return
    rest = after.split(" ")[0].lstrip(".")
    for key, value in inside.items() if isinstance(inside, dict) else ():
        if rest and value_at(value, steps_of(rest)) is None:
            continue
        number = isinstance(value, bool | int | float) or number_or_none(value) is not None
        if rest or number or value is None:
            yield str(key)


def _reward(value: object) -> object:
    """A verdict as the builder takes it; words such as ``passed`` become numbers."""
    if not isinstance(value, str):
        return value
    try:
        reward = _REWARDS[value]
    except ValueError:
        return value  # lost there, with its text
    return None if reward != reward else reward


def _text(value: object) -> object:
    """Text as it is, anything nested as its JSON: the same content is the same text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    import msgspec

    return msgspec.json.encode(value, order="sorted").decode()


def _message(error: object) -> object:
    return error.get("message", error) if isinstance(error, dict) else error


def _printed(root: object, paths: tuple[str, ...]) -> float | None:
    numbers = [number_or_none(value_at(root, steps_of(path.lstrip("/")))) for path in paths]
    if any(number is None for number in numbers):
        return None
    known = [number for number in numbers if number is not None]
    if len(known) == 1:
        return known[0]
    return known[0] / sum(known) if sum(known) else None


# -- looking at an unknown file --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FieldExamples:
    """Kind and examples of a field in the first records."""

    path: str
    kind: str
    examples: tuple[str, ...]


def guess(source: Source, options: ReadOptions) -> tuple[RecordMap, bool]:
    """The mapping a file seems to need, and whether it is certain enough to read by.

    It is certain when a task and a verdict (or n and c) are fields of the record itself under
    names that mean nothing else. Fields further inside are proposed, not used.
    """
    best: tuple[RecordMap, bool] | None = None
    for path in _containers(source, options):
        seen = _fields(source, path)
        mapping, certain = _guessed(path, seen, options)
        if certain:
            return mapping, True
        if best is None or len(mapping.fields) > len(best[0].fields):
            best = mapping, False
    return best or (RecordMap(), False)


def structure(source: Source, options: ReadOptions) -> list[str]:
    """The structure of a file: where its records are, and per field its type and three values."""
    lines = []
    kind = content_kind(source)
    if kind == "JSON":
        keys = sorted(outline(source.head).keys)
        if keys:
            lines.append(f"top keys: {some(keys, 12)}")
    for path in _containers(source, options)[:2]:
        seen = _fields(source, path)
        if not seen:
            continue
        lines.append(f"records at {path or 'the top'!r}:" if kind == "JSON" else "a record has:")
        lines += [f"  {s.path} ({s.kind}): {', '.join(s.examples)}" for s in seen[:30]]
    return lines


def unknown(source: Source, options: ReadOptions) -> UnknownFormat:
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
            f"jq -c . {shorten(source.name, 60)} | passhat read -",
        )
    keys = sorted(source.outline.keys)
    top = f"; its top keys are {some([shorten(k, 30) for k in keys], 10)}" if keys else ""
    mapping, _ = guess(source, options)
    fields = [s for path in _containers(source, options)[:1] for s in _fields(source, path)]
    seen = some([f"{shorten(s.path, 40)[1:-1]} ({s.kind})" for s in fields], 8)
    has = f"; a record has {seen}" if fields else ""
    lacking = [w for w in ("task", "success") if w not in mapping.fields]
    records = f" --records {mapping.records!r}" if mapping.records else ""
    pairs = [f"{word}={paths[0]}" for word, paths in mapping.fields.items()]
    pairs += [f"{word}=FIELD" for word in lacking]
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
        f"passhat read {shorten(source.name, 60)} --guess > mapping.toml",
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
    log = plain_log(source)
    whole = next(iter(RecordFile(source, log).records()), None)
    data = whole.data if whole is not None else {}
    candidates: list[tuple[int, str]] = []
    for path, value in _inside(data, ""):
        rows = list(value.values()) if isinstance(value, dict) else value
        objects = sum(isinstance(row, dict) for row in rows)
        if rows and objects * 2 > len(rows):
            sign = "[*]" if isinstance(value, list) else ".*"
            candidates.append((objects, path + sign))
    # The shallow ones first, then the long ones.
    candidates.sort(key=lambda item: (item[1].count("."), -item[0]))
    return [path for _, path in candidates] or [""]


def _inside(data: object, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every list and every object that could hold records, down to two levels."""
    if not isinstance(data, dict) or depth > 2:
        return
    for key, value in data.items():
        name = str(key) if re.fullmatch(r"[^.\[\]\"*]+", str(key)) else f'"{key}"'
        here = f"{path}.{name}" if path else name
        if isinstance(value, list) or (isinstance(value, dict) and len(value) > 1):
            yield here, value
        yield from _inside(value, here, depth + 1)


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
    for record in islice(rows, _SAMPLE):
        if not isinstance(record.data, dict):
            continue
        if record.key:
            values.setdefault("@key", {}).setdefault(shorten(record.key))
            kinds.setdefault("@key", {}).setdefault("text")
        for name, value in _flat(record.data, ""):
            kinds.setdefault(name, {}).setdefault(_kind(value))
            known = values.setdefault(name, {})
            if len(known) < 3:
                known.setdefault(shorten(value))
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


_WEAK = {
    "task": ("id", "name", "@key", "input", "prompt", "question"),
    "success": ("result", "status", "outcome", "verdict"),
}
"""Names that may mean something else: proposed, never used unasked."""


def _guessed(path: str, seen: list[_FieldExamples], options: ReadOptions) -> tuple[RecordMap, bool]:
    taken: dict[str, tuple[str, ...]] = {w: (p,) for w, p in options.columns.items()}
    certain = dict.fromkeys(taken, True)
    names = [s.path for s in seen if s.kind != "list" or s.path.count(".") == 0]
    used = {p for paths in taken.values() for p in paths}
    for word, aliases in ALIASES.items():
        if word in taken:
            continue
        match = _best(word, aliases, names, used)
        if match is not None:
            taken[word] = (match[0],)
            certain[word] = match[1]
            used.add(match[0])
    verdict = "success" if "success" in taken else "c" if {"n", "c"} <= taken.keys() else ""
    if verdict == "c" or "success" in taken:
        for word in ("n", "c", "missing") if "success" in taken else ():
            taken.pop(word, None)
    mapping = RecordMap(
        name="mine",
        records=path,
        fields=taken,
        trials=options.trials or "",
        passes=options.passes or "",
    )
    has_verdict = bool(options.passes or options.trials) or (verdict and certain.get(verdict))
    return mapping, bool(certain.get("task") and has_verdict)


def _best(
    word: str, aliases: Sequence[str], names: list[str], used: set[str]
) -> tuple[str, bool] | None:
    """The field that seems to be meant, and whether its name leaves no doubt."""
    folded = {name: name.rpartition(".")[2].strip('"').strip().lower() for name in names}
    for deep in (False, True):
        for alias in aliases:
            for name in names:
                if name not in used and folded[name] == alias and ("." in name) == deep:
                    return name, not deep
    for alias in _WEAK.get(word, ()):
        for name in names:
            if name not in used and folded[name] == alias:
                return name, False
    return None
