"""Reads the formats that a mapping describes."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, ClassVar

from passhat._display import counted, some
from passhat.errors import InvalidValue, ReadError, shorten
from passhat.protocol import RULE_JUDGE, Protocol, Scalar
from passhat.readers.base import LogBuilder, NotResults, Reader, ReadOptions, RunFacts
from passhat.readers.conversions import read_paths
from passhat.readers.json_records import decode, decode_protocol
from passhat.readers.parsing import error_message, number_or_none, split_list, why_missing
from passhat.readers.record_map import (
    ABOUT_WORDS,
    EXTRA_WORDS,
    SCORER,
    RecordMap,
    compile_path,
    parse_rule,
    parse_rules,
    parse_stated_metric,
    scorer_names,
    value_of,
)
from passhat.readers.records import (
    Record,
    RecordFile,
    Step,
    content_kind,
    plain_log,
    steps_of,
    text_records,
    value_at,
)
from passhat.readers.row_groups import Regrouping, RowGroups, ScorerChoice, is_scorer_name
from passhat.readers.sources import Source
from passhat.readers.summary_labels import Endings, LabelFilter
from passhat.readers.summary_rows import MODEL_HINT, REPEATED_HEADER, TOTALS, is_header, is_total
from passhat.readers.wide_tables import FRACTION
from passhat.stats.outcomes import Run, ScoreRange
from passhat.stats.outcomes.columns import EVERY_COLUMN, SLICE_PREFIX, split_joined
from passhat.stats.outcomes.gathering import RUN_COLUMNS

_SAMPLE_ROWS = 200
"""Records at the start of a file that are looked at for names."""
_RUN_WORDS = ("model", "experiment", "suite", "temperature", "protocol", "run_name", *ABOUT_WORDS)
_MOST_COUNTED = 1_000_000
_ROWS_FOR_GROUPS = 20_000
_LONGEST_LABEL = 100  # a longer text is no name of a group


class MappedReader(Reader):
    """Reads one format that a mapping describes."""

    name: ClassVar[str] = "mapping"

    def __init__(self, mapping: RecordMap) -> None:
        self._map = mapping
        self.name = mapping.name  # type: ignore[misc]
        self.has_scorers = bool(mapping.scorer_texts)  # type: ignore[misc]

    def recognizes(self, source: Source) -> bool:
        mapping, head = self._map, source.head
        if mapping.files:
            return source.is_folder and all(any(source.path.glob(p)) for p in mapping.files)
        if mapping.columns and head and not source.outline.opens:
            first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
            names = {name.strip().strip('"') for name in first.strip().split(",")}
            if set(mapping.columns) <= names:
                return True
        outline = source.outline
        if mapping.lines:
            return bool(mapping.marks) and all(mark.encode() in head for mark in mapping.marks)
        return (
            bool(mapping.keys or mapping.marks)
            and bool(outline.opens)
            and set(mapping.keys) <= outline.keys
            and outline.keys.isdisjoint(mapping.without)
            and all(mark.encode() in head for mark in mapping.marks)
            and not any(mark.encode() in head for mark in mapping.unmarked)
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        if self._map.files:
            return read_paths(source, replace(options, records=self._map.records))
        return read_mapped(source, options, self._map)


@lru_cache(maxsize=1)
def _load_shipped_mappings() -> tuple[RecordMap, ...]:
    folder = files("passhat.readers") / "mappings"
    mapping_files = sorted(
        (f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name
    )
    return tuple(RecordMap.from_toml(f.read_text(encoding="utf-8"), f.name) for f in mapping_files)


def mapped_readers() -> list[Reader]:
    """A reader for every mapping that ships with passhat."""
    return [MappedReader(mapping) for mapping in _load_shipped_mappings()]


def read_mapped(source: Source, options: ReadOptions, mapping: RecordMap) -> list[Run]:
    """All runs in a file, by a mapping."""
    if mapping.absent:
        raise NotResults(mapping.absent, source=source.name)
    if mapping.title:
        return _MappedFile(source, options, mapping).runs()
    return _read_own(source, options, mapping)


def _read_own(
    source: Source, options: ReadOptions, mapping: RecordMap, regroupings: int = 0
) -> list[Run]:
    """The runs by a mapping that no format states: columns may tell rows of a task apart."""
    file = _MappedFile(source, options, mapping)
    runs = file.runs()
    found = file.find_groups()
    if isinstance(found, ScorerChoice):
        raise ReadError(
            f"{found.column!r} names {len(found.names)} judges of the same attempts, and only one "
            "can decide what passed.",
            source=source.name,
            hint=f"Choose with --scorer: {some(list(found.names), 20)}.",
        )
    if found is None or regroupings > 1:
        return runs
    paths = {word: (path,) for word, path in found.columns.items()}
    decision = "; ".join(line for line in (mapping.decision, *found.decisions) if line)
    mapping = replace(mapping, fields={**mapping.fields, **paths}, decision=decision)
    return _read_own(source, options, mapping, regroupings + 1)


class _MappedFile:
    def __init__(self, source: Source, options: ReadOptions, mapping: RecordMap) -> None:
        self._source = source
        if mapping.score_range and options.score_range is None:
            options = replace(options, score_range=ScoreRange.parse(mapping.score_range))
        self._options = options
        self._map = mapping
        scorer = self._scorer()
        scorer_field = self._scorer_field() if options.scorer and not scorer else None
        if scorer_field is not None:
            scorer = str(options.scorer)
            mapping = self._map = replace(mapping, where=f"{scorer_field} == {scorer}")
        self._fields = {
            word: [
                (path, (Step(source.stem),)) if path == "@file" else compile_path(path, scorer)
                for path in paths
            ]
            for word, paths in mapping.fields.items()
        }
        self._passes = parse_rule(mapping.passes, scorer) if mapping.passes else None
        self._where = parse_rules(mapping.where, scorer)
        self._several_scores = 0
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
            extras=[word for word in EXTRA_WORDS if word in mapping.fields],
        )
        self._file = RecordFile(source, self._log, mapping.records)
        self._labels, self._endings = LabelFilter({}), Endings(mapping, is_open=not mapping.title)
        self._runs: dict[str, dict[str, object]] = {}
        self._never = set(self._fields)
        self._passes_seen = False
        self._is_sheet = not mapping.title and content_kind(source) in ("CSV", "Excel", "Markdown")
        self._places_without_model = Counter[str]()
        self._rows_for_groups: list[dict[str, object]] = []

    def find_groups(self) -> Regrouping | ScorerChoice | None:
        """How rows of one task are told apart by fields that the mapping does not use."""
        if not self._rows_for_groups:
            return None
        words = ("task", "trial", *RUN_COLUMNS)
        meaning = {w: self._map.fields[w][0] for w in words if w in self._map.fields}
        texts = [*(path for paths in self._map.fields.values() for path in paths)]
        rules = re.split(r"[<>=!\s@]+", f"{self._map.passes} {self._map.where}")
        used = {part for text in (*texts, *rules) for part in split_joined(text)}
        names = dict.fromkeys(name for row in self._rows_for_groups for name in row)
        groups = RowGroups(meaning, [n for n in names if n not in used])
        groups.add({name: [row.get(name) for row in self._rows_for_groups] for name in names})
        return groups.find(self._source.name, scorer=self._options.scorer)

    def runs(self) -> list[Run]:
        for record in self._records():
            with self._log.row(record.where):
                self._take(record)
        self._refuse_absent()
        self._refuse_nameless()
        if not self._map.title:
            self._endings.refuse_unknown(self._source.name, self._options.is_stated)
            self._log.refuse_repeats()
        return self._log.runs(self._facts)

    def _records(self) -> Iterator[Record]:
        if self._map.lines:
            return text_records(self._source, self._map.lines, self._map.starts)
        return self._with_header_names(self._file.records(), self._file)

    def _refuse_absent(self) -> None:
        """Refuse a field that the user stated and that no record has."""
        paths = dict(self._options.columns)
        if self._options.mapping is not None and self._passes is None:
            paths.setdefault("success", " or ".join(self._map.fields.get("success", ())))
        absent = [word for word in paths if word in self._never and paths[word] != EVERY_COLUMN]
        if absent:
            missing = f"{absent[0]}={paths[absent[0]]}"
        elif self._passes is not None and not self._passes_seen:
            missing = f"the rule {self._map.passes!r}"
        else:
            return
        name = self._source.name
        raise InvalidValue(
            f"{missing}: no record of {name} has such a field.",
            hint=f"See its fields with: passhat read {shlex.quote(name)} --guess",
        )

    def _refuse_nameless(self) -> None:
        """Refuse records without a model beside others that have one."""
        is_shipped = bool(self._map.title)
        without = self._places_without_model
        if (
            is_shipped
            or not without
            or all(run.get("model") is None for run in self._runs.values())
        ):
            return
        raise ReadError(
            f"{counted(without.total(), 'record')} without a model ({some(list(without), 4)}), "
            "while others have one.",
            source=self._source.name,
            hint=MODEL_HINT,
        )

    def _with_header_names(self, records: Iterator[Record], file: RecordFile) -> Iterator[Record]:
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
            if not (simple and (record.key or ("@value", ()) in self._fields["task"])):
                self._log.lose(record.where, f"is not an object but {shorten(record.data)}")
                return
        if self._leave_aside(record):
            return
        if self._map.trials:
            self._take_wide(record)
            return
        n, c = self._get(record, "n"), self._get(record, "c")
        if "success" not in self._fields and self._passes is None and n is not None:
            self._take_counts(record, n, c)
            return
        self._take_verdict(record, self._success(record))

    def _take_verdict(self, record: Record, value: object) -> None:
        """Add the attempts of a record by its verdict, which may be 3/4 or a list."""
        if isinstance(value, str) and self._passes is None:
            fraction = FRACTION.fullmatch(value)
            if fraction is not None:
                self._take_counts(record, fraction[2], fraction[1])
                return
            value = split_list(value) or value
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
        self._note_fields(record)
        self._add(record, record.where, value, self._get(record, "trial"))

    def _note_fields(self, record: Record) -> None:
        """Keep the fields of the first records that may tell rows of a task apart."""
        if not self._map.title and len(self._rows_for_groups) < _ROWS_FOR_GROUPS:
            self._rows_for_groups.append(self._plain_fields(record))

    def _plain_fields(self, record: Record) -> dict[str, object]:
        """The short plain fields of a record, and those that name task, run and attempt."""
        fields = record.data.items() if isinstance(record.data, dict) else ()
        short: dict[str, object] = {
            str(name): value
            for name, value in fields
            if isinstance(value, bool | int | float)
            or (isinstance(value, str) and len(value) <= _LONGEST_LABEL)
        }
        for word in ("task", "trial", *RUN_COLUMNS):
            if word in self._map.fields:
                short[self._map.fields[word][0]] = self._get(record, word)
        return short

    def _leave_aside(self, record: Record) -> bool:
        """Note a record that is no attempt: a second header, a total, another scorer's."""
        if is_header(record.data):
            self._log.skip(REPEATED_HEADER)
            return True
        cells = {word: self._get(record, word) for word in ("task", "trial", "model")}
        if self._is_sheet and is_total(cells["task"]):
            what = f"{shorten(cells['task'])} looks like a total of other rows, not like a task"
            self._log.lose(record.where, what)
            return True
        if not self._map.title and self._labels.has_summary(cells):
            self._log.skip(TOTALS)
            return True
        if any(rule.holds(record, self._file.root) is not True for rule in self._where):
            self._log.skip("a record that the mapping leaves aside")
            return True
        return False

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
            self._passes_seen |= self._passes.is_present(record, self._file.root)
            return self._passes.holds(record, self._file.root)
        value = self._get(record, "success")
        # The object around a verdict that is null, where a later path names the object.
        return None if isinstance(value, dict) and len(self._fields["success"]) > 1 else value

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
            if self._labels.has_summary({"trial": label}):
                continue
            fields = inner if isinstance(inner, dict) else {"value": inner}
            attempt = replace(record, data={**record.data, **fields})
            is_inner = isinstance(inner, dict) or self._passes is not None
            value = self._success(attempt) if is_inner else inner
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
        if (
            "model" in run
            and not str(run["model"] or "").strip()
            and not self._map.constants.get("model")
        ):
            self._places_without_model[record.where] += 1
        reward = self._endings.reward(value)
        error, failure = self._get(record, "error"), self._get(record, "failure")
        why = "" if failure in (None, "") else str(failure)
        if error not in (None, "", False, [], {}) and (reward is None or "error" in self._fields):
            reward, why = None, why_missing(error_message(error))
        elif reward is None:
            why = why or f"not_recorded: {value or 'no verdict'}"
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
            seconds=self._seconds(record),
            steps=self._get(record, "steps"),
            tokens=self._get(record, "tokens"),
            cost=self._get(record, "cost"),
            answer=_text(self._get(record, "answer")),
            seed=self._get(record, "seed"),
            labels=[None if s is None else str(s) for s in slices],
            source_id=self._get(record, "id"),
            score=self._score(record),
            extras=[self._get(record, word) for word in EXTRA_WORDS if word in self._fields],
            expected=self._get(record, "expected"),
        )

    def _seconds(self, record: Record) -> object:
        seconds = self._get(record, "duration")
        milliseconds = number_or_none(self._get(record, "duration_ms"))
        return seconds if milliseconds is None or seconds is not None else milliseconds / 1000

    def _score(self, record: Record) -> object:
        """The graded result beside the verdict: a field, or the number that a rule looks at."""
        if "score" in self._fields or self._passes is None:
            score = self._get(record, "score")
            if not isinstance(score, list):
                return score
            self._several_scores += len(score) > 1  # no score of the attempt as a whole
            return score[0] if len(score) == 1 else None
        return self._passes.number(record, self._file.root)

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
            value = value_of(record, self._file.root, path)
            if value is not None and value != "":
                self._never.discard(word)
                return value
        return None

    def _facts(self, key: str) -> RunFacts:
        run, constants, root = self._runs[key], self._map.constants, self._file.root
        facts: dict[str, str] = {}
        for word in ("model", "experiment", "suite", *ABOUT_WORDS):
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
            if (number := parse_stated_metric(root, paths)) is not None and len(self._runs) == 1
        }
        field_texts = ", ".join(f"{w} = {' or '.join(p)}" for w, p in self._map.fields.items())
        reading = [f"fields: {field_texts}"]
        if not facts["model"]:
            namesake = "its experiment" if facts["experiment"] else "the file"
            reading.append(f"the agent is not named: the run is named after {namesake}")
        stated = run.get("protocol")
        return RunFacts(
            facts["model"] or facts["experiment"] or self._source.stem,
            decode_protocol(decode(str(stated).encode(), dict[str, Any]))
            if stated is not None
            else self._protocol(facts["suite"], decoding),
            decisions=self._decisions(),
            variant=variant,
            name=str(run.get("run_name") or ""),
            says=says,
            reading=tuple(reading),
            guessed=not facts["model"],
            about={word: facts[word] for word in ABOUT_WORDS},
        )

    def _decisions(self) -> tuple[str, ...]:
        rule = f"passed means {self._options.passes}" if self._options.passes else ""
        several = (
            f"{counted(self._several_scores, 'attempt')} with scores of several metrics, of which "
            "none is kept; passhat read --scorer NAME takes one of them"
        )
        lost_scores = several if self._several_scores else ""
        words = (*self._endings.decisions(), *self._labels.decisions)
        lines = (self._map.decision, rule, lost_scores, *words)
        return tuple(filter(None, lines))

    def _protocol(self, suite: str, decoding: dict[str, Scalar]) -> Protocol:
        """The protocol; a rule that the user states is part of how attempts were judged."""
        protocol = Protocol(suite=suite or None, decoding=decoding, judge=self._judge or None)
        rule = self._options.passes
        if not rule or self._passes is None:
            return protocol
        judge = " by ".join((*([self._judge] if self._judge else []), f"{RULE_JUDGE}{rule}"))
        threshold, bounds = self._passes.threshold, self._options.score_range
        if threshold is not None and bounds is not None:
            threshold = (threshold - bounds.low) / (bounds.high - bounds.low)
        return replace(
            protocol, judge=judge, pass_at=protocol.pass_at if threshold is None else threshold
        )

    def _constant(self, text: str) -> object:
        return value_at(self._file.root, steps_of(text[1:])) if text[:1] == "/" else text

    # -- which judge counts ------------------------------------------------------------------

    def _scorer(self) -> str:
        """The name to fill in for {scorer}; refuses when there are several to choose from."""
        texts = self._map.scorer_texts
        if not texts or (self._options.scorer is None and self._map.has_overall_verdict):
            return ""
        names = next((names for text in texts if (names := self._scorers(text))), [])
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

    def _scorer_field(self) -> str | None:
        """The field that names the judge of a record."""
        if self._map.title or self._map.where:
            return None
        file = RecordFile(self._source, plain_log(self._source), self._map.records)
        first = next(file.records(), None)
        names = first.data if first is not None and isinstance(first.data, dict) else ()
        return next((name for name in names if is_scorer_name(name)), None)

    def _scorers(self, text: str) -> list[str]:
        """The names that fit {scorer} in a path, from the first records."""
        before, _, after = text.partition(SCORER)
        names: dict[str, None] = {}
        file = RecordFile(self._source, plain_log(self._source), self._map.records)
        rows = self._with_header_names(file.records(), file)
        for record in islice(rows, _SAMPLE_ROWS):
            names |= dict.fromkeys(scorer_names(record, before, after))
        return list(names)


def _text(value: object) -> object:
    """Text as it is, anything nested as its JSON: the same content is the same text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    import msgspec

    return msgspec.json.encode(value, order="sorted").decode()
