"""Mappings: where the records of a file are, and the meaning of their fields.

A mapping is a small TOML file. passhat ships one for each format that needs no code (the folder
``mappings``), users write their own, and ``passhat read FILE --guess`` proposes one.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from passhat.errors import InvalidValue, shorten
from passhat.readers.parsing import number_or_none
from passhat.readers.records import (
    Record,
    Step,
    steps_of,
    value_at,
)
from passhat.stats.outcomes.columns import (
    ALIASES,
    JOIN_SIGN,
    SLICE_PREFIX,
    ColumnMap,
    fold_name,
    is_first_success,
    split_joined,
)
from passhat.stats.outcomes.gathering import RUN_COLUMNS, Chunk
from passhat.stats.outcomes.rewards import RewardWords, ScoreRange


def scorer_names(record: Record, before: str, after: str) -> Iterator[str]:
    """The names that fit {scorer} in a record, between two parts of a path."""
    rule = re.fullmatch(r"\s*(\S+)\s*==\s*", before)
    list_step = re.fullmatch(r"(.*)\[([^\[=]+)=", before)
    if rule:  # where = "name == {scorer}"
        value = value_at(record.data, steps_of(rule[1]))
        yield from () if value is None else (str(value),)
    elif list_step:  # feedback[key={scorer}].score
        rows = value_at(record.data, steps_of(list_step[1]))
        for row in rows if isinstance(rows, list) else ():
            name = value_at(row, steps_of(list_step[2]))
            yield from () if name is None else (str(name),)
    elif after.startswith("/") or (before and not before.endswith(".")):
        yield from _scorer_columns(record.data, before, after)  # correctness/value
    else:
        yield from _scorer_fields(record.data, before, after)


def _scorer_columns(data: object, before: str, after: str) -> Iterator[str]:
    for key in map(str, data if isinstance(data, dict) else ()):
        if key.startswith(before) and key.endswith(after) and len(key) > len(before + after):
            yield key[len(before) : len(key) - len(after)]


def _scorer_fields(data: object, before: str, after: str) -> Iterator[str]:
    path = before.removesuffix(".")
    container = value_at(data, steps_of(path)) if path else data
    if container is None:
        # A table writes the path as the name of a column: feedback.correct
        yield from _scorer_columns(data, before, after)
        return
    rest = after.split(" ")[0].lstrip(".")
    for key, value in container.items() if isinstance(container, dict) else ():
        if rest and value_at(value, steps_of(rest)) is None:
            continue
        number = isinstance(value, bool | int | float) or number_or_none(value) is not None
        if rest or number or value is None:
            yield str(key)


ABOUT_WORDS = ("model_version", "provider")
EXTRA_WORDS = ("sample_hash", "retries", "expected")
_WORDS = (
    *(*ALIASES, "id", "seed", "error", "experiment", "duration_ms", "protocol", "run_name"),
    *(*ABOUT_WORDS, *EXTRA_WORDS),
)
SCORER = "{scorer}"
"""Stands for the name of a judge in a path or a rule."""
# A sign between brackets is part of a name: "OK (grade <= 2)".
_RULE = re.compile(
    r"\s*((?>\([^()]*\)|.)+?)\s*(>=|<=|==|!=|>|<|\s(?:ends with|in(?=\s+[^<>=|]+\|))\s)\s*(.+?)\s*"
)

FieldPath = tuple[str, tuple[Any, ...]]
"""Where a path starts (``record``, ``root``, ``^``, ``@key``, ...), and its steps."""

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
        """Whether the record has the field of the rule, and the field it is compared with."""
        paths = [self.path]
        if isinstance(self.value, FieldValue):
            paths.append(self.value.path)
        return all(value_of(record, root, path) not in (None, "") for path in paths)

    @property
    def _is_first_success(self) -> bool:
        """Whether it compares the number of the attempt that passed first: no score."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        name = self.path[1][-1].key if is_number and self.path[1] else None
        return name is not None and is_first_success(name)

    @property
    def threshold(self) -> float | None:
        """The number from which a rule such as ``score >= 0.5`` holds; ``None`` for other rules."""
        is_score = isinstance(self.value, int | float) and not self._is_first_success
        is_least = self.sign == ">=" and is_score
        return float(str(self.value)) if is_least else None

    def number(self, record: Record, root: object) -> float | None:
        """The number that a rule such as ``score >= 0.5`` looks at; ``None`` for other rules."""
        if self.sign not in (">=", ">") or not isinstance(self.value, int | float):
            return None
        if self._is_first_success:
            return None
        return number_or_none(value_of(record, root, self.path))

    def holds(self, record: Record, root: object) -> bool | None:
        """Whether it holds; ``None`` when the field is absent."""
        value = value_of(record, root, self.path)
        if self._is_first_success and self.value != "":
            number = number_or_none(value)
            return number is not None and _compare(number, self.sign, float(f"{self.value}"))
        if isinstance(self.value, FieldValue):
            return self._matches_field(value, value_of(record, root, self.value.path))
        if self.value == "" and self.sign in ("==", "!="):  # error == ""
            return (value is None or str(value).strip() == "") == (self.sign == "==")
        if value is None or value == "":
            return True if self.sign == "!=" else None
        if self.sign == "ends with":
            return _ends_with(str(value), f"{self.value}")
        if self.sign == "in":  # Action in pass|fail
            return str(value).strip() in str(self.value).split("|")
        if isinstance(self.value, bool | int | float):
            word = REWARD_WORDS[value] if isinstance(value, str | bool | int | float) else None
            left, right = number_or_none(word), float(self.value)
            return None if left is None else _compare(left, self.sign, right)
        text, other = str(value), str(self.value)
        if self.sign in ("==", "!=") and text != other and _is_nothing(text):
            return None  # "Outcome == green" beside "not run"
        return _compare(text, self.sign, other)

    def _matches_field(self, value: object, other: object) -> bool | None:
        """Whether the comparison with another field holds; without that field nothing is known."""
        if value is None or other is None or str(other).strip() == "":
            return None
        if self.sign == "ends with":
            return _ends_with(str(value), str(other))
        if self.sign in ("==", "!="):
            return _compare(str(value).strip(), self.sign, str(other).strip())
        if str(value).strip() == "":
            return None
        left, right = number_or_none(value), number_or_none(other)
        if left is None or right is None:
            word = shorten(value if left is None else other)
            raise ValueError(f"{word} is not a number, and {self.sign} compares numbers")
        return _compare(left, self.sign, right)


def _is_nothing(text: str) -> bool:
    """Whether a word says that there is no verdict."""
    try:
        reward = REWARD_WORDS[text]
    except ValueError:
        return False
    return reward != reward


def _ends_with(text: str, ending: str) -> bool:
    """Whether a text ends with a word or several, as in "So the answer is No." and "No"."""
    text, ending = (part.strip().rstrip(".\"'`*").strip().casefold() for part in (text, ending))
    before = text[: len(text) - len(ending)]
    # 13 and -3 do not end with 3.
    is_whole = not re.search(r"[\w.,-]$", before) or not ending[:1].isalnum()
    return bool(ending) and text.endswith(ending) and is_whole


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
        record and one with ``^^`` at the object around that; ``@key`` is the record's key in an
        object, ``^@key`` the key of the object around it, ``@index`` the record's place,
        ``@file`` the file's name. Paths with ``+`` between them are joined to one text.
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
    files : tuple of str
        Globs of files that a folder of this format has; ``records`` is then a pattern of paths.
    absent : str
        The message for a file of this format that holds no verdicts at all.
    score_range : str
        The lowest and highest score, as in ``1..5``, where they are not 0 and 1.
    lines, starts : str
        For a log of plain text: expressions for lines with a verdict, whose named groups are the
        fields, and for lines that begin an attempt.
    decision : str
        What was decided by the structure of the file alone, for reports.
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
    files: tuple[str, ...] = ()
    absent: str = ""
    score_range: str = ""
    lines: str = ""
    starts: str = ""
    decision: str = ""

    @property
    def scorer_texts(self) -> list[str]:
        """The paths and rules in which {scorer} stands for the name of a judge."""
        texts = [path for paths in self.fields.values() for path in paths]
        return [text for text in (*texts, self.passes, self.where) if SCORER in text]

    @property
    def has_overall_verdict(self) -> bool:
        """Whether a verdict of all judges together counts, unless one judge is asked for."""
        return len({SCORER in path for path in self.fields.get("success", ())}) == 2

    @classmethod
    def from_toml(cls, text: str, name: str) -> RecordMap:
        """Read a mapping; ``name`` is the file's, for messages."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidValue(f"{name} is not TOML: {error}.") from None
        text_keys = {"name", "title", "records", "header", "trials", "pass", "where", "order"}
        text_keys |= {"absent", "score_range", "lines", "starts"}
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
            files=tuple(recognize.get("files", ())),
            absent=texts["absent"],
            score_range=texts["score_range"],
            lines=texts["lines"],
            starts=texts["starts"],
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
            steps_of("" if self.files else self.records)
            for paths in self.fields.values():
                for path in paths:
                    compile_path(path)
        except ValueError as error:
            raise InvalidValue(f"{name}: {error}.") from None
        if self.passes:
            parse_rule(self.passes, "x")
        parse_rules(self.where, "x")
        if self.score_range:
            ScoreRange.parse(self.score_range)
        _check_expressions(name, self.lines, self.starts)

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


def _check_expressions(name: str, *texts: str) -> None:
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            raise InvalidValue(f"{name}: {text!r} is no expression: {error}.") from None


def _quote_toml(text: str) -> str:
    text_escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", text_escaped) + '"'


def _as_paths(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def compile_path(path: str, scorer: str = SCORER) -> FieldPath:
    """The start of a path and its steps; ``a+b`` is a path for each, joined to one text."""
    parts = split_joined(path) if '"' not in path else [path]
    if len(parts) > 1:
        return JOIN_SIGN, tuple(compile_path(part, scorer) for part in parts)
    level = len(path) - len(path.lstrip("^"))
    rest = path[level:]
    if rest == "@key" or (not level and rest in ("@index", "@value", "@file")):
        return f"{'^' * level}{rest}", ()
    if not level and rest.startswith("/"):
        return "root", _fill_scorer(rest[1:], scorer)
    return "^" * level or "record", _fill_scorer(rest, scorer)


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
    """The value of a field of a record."""
    start, steps = path
    if start == "record":
        return value_at(record.data, steps) if steps else record.data
    if start == JOIN_SIGN:
        values = [value_of(record, root, part) for part in steps]
        return None if all(v is None for v in values) else "/".join(map(_joined_text, values))
    if start == "@index":
        return record.index
    if start == "@file":
        return steps[0].key if steps else None
    if start == "@value":
        return None if isinstance(record.data, dict) else record.data
    level = start.count("^")
    if start.endswith("@key"):
        keys = (*record.parent_keys, record.key)
        return keys[-1 - level] if level < len(keys) else None
    data = root
    if start != "root" and level <= len(record.parents):
        data = record.parents[-level]
    return value_at(data, steps) if steps else data


def _joined_text(value: object) -> str:
    return "" if value is None else str(value).strip()


def parse_rule(text: str, scorer: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"{text!r} is not a rule.", hint="Write FIELD SIGN VALUE, as in: score >= 0.5"
        )
    sign = match[2].strip()
    if match[3].startswith("@"):
        return Rule(compile_path(match[1], scorer), sign, FieldValue(compile_path(match[3][1:])))
    value: object = match[3].strip("'\"")
    number = number_or_none(match[3])
    if value == SCORER:
        value = scorer
    elif number is not None:
        value = number
    elif match[3].lower() in ("true", "false"):
        value = float(match[3].lower() == "true")
    try:
        return Rule(compile_path(match[1], scorer), sign, value)
    except ValueError as error:
        raise InvalidValue(f"{text!r} is not a rule: {error}.") from None


def parse_rules(text: str, scorer: str) -> list[Rule]:
    """The rules that ``and`` joins; none in an empty text."""
    rules = re.split(r"\s+and\s+(?=\S+\s*(?:[<>=!]=|[<>]|in\s))", text) if text else []
    return [parse_rule(rule, scorer) for rule in rules]


def parse_stated_metric(root: object, paths: tuple[str, ...]) -> float | None:
    """A number that a file prints, or the first of several as a share of their sum."""
    numbers = [number_or_none(value_at(root, steps_of(path.lstrip("/")))) for path in paths]
    if any(number is None for number in numbers):
        return None
    stated_numbers = [number for number in numbers if number is not None]
    if len(stated_numbers) == 1:
        return stated_numbers[0]
    return stated_numbers[0] / sum(stated_numbers) if sum(stated_numbers) else None


_STATED_RULE = re.compile(r"\S\s+(>=|<=|==|!=|>|<|ends with|in(?=\s+[^|]+\|))\s+\S")


def is_code(name: str) -> bool:
    """Whether a field holds the exit code of a program, where 0 is a pass."""
    return fold_name(name).endswith(("exit_code", "exitcode", "return_code", "returncode", "rc"))


_GOOD = re.compile(
    r"(not[_ -]?(mis|fail|hijack|leak)|c|pass|correct|good|complete|success|win|a|1|full|safe)\w*$",
    re.IGNORECASE,
)
"""Grades that usually mean a pass; a hint names the first, and the user decides."""


def likely_pass(words: Iterable[object]) -> str:
    """The word of a column that most likely means a pass."""
    return min(map(str, words), key=lambda word: (not _is_pass(word), not _GOOD.match(word), word))


def _is_pass(word: str) -> bool:
    try:
        return REWARD_WORDS[word] == 1
    except ValueError:
        return False


def split_map(columns: Mapping[str, str]) -> dict[str, Any]:
    """The options that ``--map`` states: fields, the place of records, rules for them.

    ``records=results[*]`` is the place, ``where=event == end`` says which of them count, and
    ``success=status == green`` is a rule for a pass.
    """
    fields = dict(columns)
    options: dict[str, Any] = {word: fields.pop(word, None) for word in ("records", "where")}
    is_rule = _STATED_RULE.search(re.sub(r"\([^()]*\)", "", fields.get("success", ""))) is not None
    return {**options, "passes": fields.pop("success") if is_rule else None, "columns": fields}


def map_option(pairs: str) -> str:
    """The option that states fields, in quotes where a shell needs them."""
    is_plain = re.fullmatch(r"[\w@%+=:,./~^-]+", pairs) is not None
    return f"--map {pairs if is_plain else shlex.quote(pairs)}"


def rule_option(columns: ColumnMap, chunk: Chunk, word: object) -> str:
    """The option by which a word is the only pass, with the columns as they were found."""
    names = columns.names_of("task", *RUN_COLUMNS, "trial")
    pairs = [f"{kind}={name}" for kind, name in names.items() if name in chunk]
    return map_option(",".join((*pairs, f"success={columns.meaning['success']} == {word}")))
