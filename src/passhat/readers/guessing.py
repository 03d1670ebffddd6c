"""A mapping for a file of unknown structure: proposed by the names and types of its fields."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from passhat._display import some
from passhat.errors import UnknownFormat, shorten
from passhat.readers.base import ReadOptions
from passhat.readers.parsing import number_or_none, outline
from passhat.readers.record_map import (
    PREDICTION,
    RecordMap,
    is_code,
    likely_pass,
    map_option,
    suggest_rule,
)
from passhat.readers.records import RecordFile, content_kind, elements, plain_log
from passhat.readers.sources import Source
from passhat.readers.wide_tables import (
    distinct_cells,
    find_answers,
    is_judge_name,
    is_model_name,
    list_unused,
    parse_number,
    reward_or_none,
    verdict_columns,
)
from passhat.stats.outcomes.columns import (
    ALIASES,
    EVERY_COLUMN,
    JOIN_SIGN,
    ColumnMap,
    fold_name,
    is_negative,
)
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords

__all__ = [
    "describe_structure",
    "find_facts",
    "guess_mapping",
    "suggest_columns",
    "unknown_format",
]

_SAMPLE_ROWS = 200
_VERDICT_LIKE = re.compile(r"success|reward|correct|pass|solved|resolved|score|exact|acc", re.I)
_YES_NO = frozenset({"0", "1", "0.0", "1.0", "True", "False", "None"})
_DECIDING = ("model", "suite", "task", "trial", "success", "n", "c", "temperature")
"""Fields that a hint names: without the others the numbers are the same."""


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
    mapping, _ = guess_mapping(source, options)
    fields = [s for path in _containers(source, options)[:1] for s in _fields(source, path)]
    shown_fields = some([f"{shorten(s.path, 40)[1:-1]} ({s.kind})" for s in fields], 8)
    has = f"; a record has {shown_fields}" if fields else ""
    lacking = [w for w in ("task", "success") if w not in mapping.fields]
    place, success = mapping.records, ""
    if "success" in lacking:
        place, success = _suggest_verdict(source, mapping, fields)
    records = f" --records {place!r}" if place else ""
    up = "" if place == mapping.records else "^"
    pairs = [
        f"{word}={up}{paths[0]}" for word, paths in mapping.fields.items() if word in _DECIDING
    ]
    # Records with a verdict and no name are tasks of their own, by their place.
    inner_task = "@index" if "success" in mapping.fields and place.endswith("[*]") else "FIELD"
    if up and "task" in lacking:
        inner, _ = _guess_fields(place, _fields(source, place), options)
        inner_task = inner.fields.get("task", ("FIELD",))[0]
    pairs += [f"{word}={success if word == 'success' else inner_task}" for word in lacking]
    rule = suggest_rule([s.path for s in fields], _sample_rows(source, mapping.records))
    if rule and "success" not in mapping.fields:
        pairs = [pair for pair in pairs if not pair.startswith("success=")]
        records += f" --pass '{rule}'"
    lists = [s for s in fields if s.kind == "list"]
    if len(lists) > 1 and place in ("", "[*]") and all(_is_verdict_word(s.path) for s in lists):
        # {"passed": ["task-1"], "failed": ["task-2"]}, or a list of such runs
        around = [w for w in ("model", "trial") if w in mapping.fields and place]
        records = f" --records '{place}{'.' if place else ''}*[*]'"
        pairs = ["task=@value", "success=^@key"]
        pairs += [f"{word}=^^{mapping.fields[word][0]}" for word in around]
    verdicts = ("list", "list of verdicts", "true or false", "number")
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
        hint=f"State what is what:{records} {map_option(','.join(pairs))} ; or start from: "
        f"passhat read {shlex.quote(source.name)} --guess > mapping.toml",
    )


_VERDICT_NAME = re.compile(
    r"(.*_)?(pass(ed|es)?|success(ful)?|correct(ness)?|solved|resolved|succeeded|verified|accepted|"
    r"completed?|em|exact(_match)?|won|achieved|fixed|compliant|valid|ok|verdict|outcome)"
)
_MOST_WORDS = 6
_LONGEST_NAME = 200


def suggest_columns(columns: ColumnMap, chunk: Chunk, source: Source, options: ReadOptions) -> str:
    """The options that would read a table whose columns are not recognized."""
    verdicts = verdict_columns(columns, chunk)
    varying = [name for name in verdicts if len(distinct_cells(chunk[name])) > 1]
    likely = [name for name in varying if _VERDICT_NAME.fullmatch(fold_name(name))]
    # parsed_ok says less about an attempt than oracle_pass.
    weak_names = [name for name in likely if fold_name(name).endswith(("ok", "valid", "complete"))]
    likely = [name for name in likely if name not in weak_names] or likely
    # part1_correct and part2_correct, or old_success and new_success, are of one kind.
    families = {kind for name in likely for kind in _name_kinds(name)}
    likely += [n for n in verdicts if n not in likely and families & _name_kinds(n)]
    column = columns.meaning.get("task") or _likely_task(columns, chunk)
    task_pair = "" if fold_name(column) in ALIASES["task"] else f"task={column}"
    task = f" {map_option(task_pair)}" if task_pair else ""
    # A number of failures is no verdict, nor is the text of an error.
    names = [n for n in chunk if not is_negative(n) or _holds_flags(chunk[n]) or is_code(n)]
    rule = suggest_rule(names, _rows_of_chunk(chunk))
    indirect = _suggest_reasons(columns, chunk, varying) or _suggest_judges(
        varying, chunk, task_pair
    )
    if not indirect and rule and "@" in rule and len(likely) != 1:
        indirect = _suggest_answers(rule, columns, chunk, task_pair)
    if indirect:
        return indirect if "task=" in indirect else indirect + task
    if "task" in columns.meaning and len(verdicts) > 1:
        verdict = (*likely, *varying, *verdicts)[0]
        choice = map_option(f"success={verdict}")
        if len(likely) == 1:
            return f"If {verdict!r} is the verdict: {choice}"
        return (
            f"If each of {some(verdicts, 4)} is a model: --map model=@column ; if each is an "
            f"attempt: --map trial=@column ; if one of them is the verdict: {choice} ; if each is "
            f"a task of its own: {map_option(f'task={column}{JOIN_SIGN}{EVERY_COLUMN}')}"
        )
    words = _word_columns(columns, chunk)
    if rule and not varying and not words:
        case = "0 means a pass" if rule.endswith("== 0") else "true means a failure"
        return f"If {case}: --pass '{rule}'{task}"
    verdicts = varying or ([] if words else verdicts)
    mapping, _ = guess_mapping(source, options)
    fields = {word: paths[0] for word, paths in mapping.fields.items()}
    if not any("." in path for path in fields.values()):
        # The columns as they were recognized; a document may need fields inside a record.
        fields = {w: c for w, c in columns.meaning.items() if w in ("task", "model", "trial")}
    fields.setdefault("task", column)
    if "success" not in columns.meaning:
        inner = _find_numbers(source, mapping.records)
        if rule and not verdicts and not inner:
            return f"If true means a failure: --pass '{rule}'{task}"
        if not likely and not inner and words:
            name, word = words[0]
            hint = f"If a word in {name!r} means a pass: --pass '{name} == {word}'{task}"
            others = [
                f" ; if {v!r} is the verdict: {map_option(f'success={v}')}{task}"
                for v in verdicts[:1]
            ]
            return hint + "".join(others)
        numbers = [name for name in list_unused(columns, chunk) if _holds_numbers(chunk[name])]
        used = (column, *fields.values())
        numbers = [name for name in numbers if name not in used]
        others = [name for name in (*verdicts, *inner) if name not in used]
        others += numbers if len(numbers) == 1 else []
        fields.setdefault("success", (*others, "COLUMN")[0])
    pairs = ",".join(f"{word}={path}" for word, path in fields.items())
    return (
        f"Say which column is which: {map_option(pairs)} ; if several columns hold an attempt "
        "each: --trials PATTERN, as in 'run_*'"
    )


def _suggest_reasons(columns: ColumnMap, chunk: Chunk, verdicts: Sequence[str]) -> str:
    """The rule for a table that says why attempts failed, and nothing where they passed."""
    failure = columns.meaning.get("failure")
    reasons = [name for name in chunk if is_negative(name) or name == failure]
    empty = [name for name in reasons if _holds_reasons(chunk[name])]
    if not empty or verdicts or "success" in columns.meaning:
        return ""
    return f"If an empty {empty[0]!r} means a pass: --pass '{empty[0]} == \"\"'"


def _suggest_answers(rule: str, columns: ColumnMap, chunk: Chunk, task_pair: str) -> str:
    """Options for a table of answers beside the right ones, of one model or of several."""
    key = rule.partition(" == @")[2]
    answers = find_answers(columns, chunk, key) if key in chunk else []
    answers = [n for n in answers if PREDICTION.fullmatch(fold_name(n)) or is_model_name(n)]
    if len(answers) > 1:
        pairs = filter(None, (f"model={EVERY_COLUMN}", f"expected={key}", task_pair))
        return (
            f"If each of {some(answers, 4)} is a model, and an answer that equals {key!r} passes: "
            f"{map_option(','.join(pairs))}"
        )
    case = "an equal answer passes"
    if ">=" in rule:
        is_limit = re.search(r"threshold|cutoff", rule, re.IGNORECASE) is not None
        case = "a score from the threshold on passes" if is_limit else "all tests must pass"
    case = "an answer that ends with the right one passes" if "ends with" in rule else case
    return f"If {case}: --pass '{rule}'"


def _suggest_judges(names: Sequence[str], chunk: Chunk, task_pair: str) -> str:
    """Options for a table with the verdicts of several judges, with the passes by each."""
    judges = [name for name in names if is_judge_name(name)]
    counts = {name: sum(_is_verdict_word(str(c), 1.0) for c in chunk[name]) for name in judges}
    pairs = [",".join(filter(None, (f"success={name}", task_pair))) for name in judges[:4]]
    choices = [
        f"{map_option(pair)} ({counts[name]} pass)"
        for name, pair in zip(judges, pairs, strict=False)
    ]
    return f"Say whose verdict counts: {', or '.join(choices)}" if len(judges) > 1 else ""


def _name_kinds(name: str) -> set[str]:
    """A name without its numbers, and without its first word."""
    return {re.sub(r"\d+", "", name), re.sub(r"^[A-Za-z0-9]+(?=[_ -])", "", name)}


def _rows_of_chunk(chunk: Chunk) -> list[dict[str, object]]:
    cells = zip(*(islice(column, _SAMPLE_ROWS) for column in chunk.values()), strict=True)
    return [dict(zip(chunk, row, strict=True)) for row in cells]


def _sample_rows(source: Source, path: str) -> list[Mapping[str, object]]:
    records = RecordFile(source, plain_log(source), path).records()
    return [r.data for r in islice(records, _SAMPLE_ROWS) if isinstance(r.data, dict)]


def _likely_task(columns: ColumnMap, chunk: Chunk) -> str:
    """The first column of texts that differ from row to row, or of any texts."""
    names = [name for name in list_unused(columns, chunk) if len(name) <= _LONGEST_NAME]
    texts = [n for n in names if any(parse_number(c) is None for c in distinct_cells(chunk[n]))]
    texts.sort(key=lambda name: len(distinct_cells(chunk[name])) < len(chunk[name]))
    ids = [n for n in names if re.fullmatch(r"(.*_)?(id|index|idx|no|number|key)", fold_name(n))]
    ids = [name for name in ids if len(distinct_cells(chunk[name])) == len(chunk[name])]
    # A subject may be named as the reason of a failure is.
    labels = [columns.meaning[word] for word in ("failure",) if word in columns.meaning]
    return (*ids, *texts, *names, *labels, "COLUMN")[0]


def _holds_numbers(cells: Sequence[object]) -> bool:
    numbers = [parse_number(cell) for cell in distinct_cells(cells)]
    return bool(numbers) and None not in numbers


def _holds_flags(cells: Sequence[object]) -> bool:
    words = RewardWords()
    rewards = [reward_or_none(words, cell) for cell in distinct_cells(cells)]
    return bool(rewards) and all(r is not None and not r > 1 for r in rewards)


def _holds_reasons(cells: Sequence[object]) -> bool:
    """Whether some cells say why an attempt failed, and the others are empty."""
    texts = distinct_cells(cells)
    has_empty = any(cell is None or not str(cell).strip() for cell in cells)
    return has_empty and bool(texts) and not _holds_numbers(cells) and not _holds_flags(cells)


def _word_columns(columns: ColumnMap, chunk: Chunk) -> list[tuple[str, str]]:
    """Columns with a few words that repeat, as grades do, and the word that may mean a pass."""
    found = []
    for name in list_unused(columns, chunk):
        words = [str(cell) for cell in distinct_cells(chunk[name])]
        if any(parse_number(word) is not None for word in words):
            continue
        if 2 <= len(words) <= _MOST_WORDS and len(words) < len(chunk[name]):
            found.append((name, likely_pass(words)))
    return found


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
    if _is_table_by_index(data) or _holds_records(data):
        return ["*"]
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


def _find_numbers(source: Source, path: str) -> list[str]:
    """Fields inside the records that may hold the verdict, as ``scores.exact``."""
    kinds = ("number", "true or false")
    fields = [s for s in _fields(source, path) if "." in s.path and s.kind in kinds]
    paths = [s.path for s in fields if _is_verdict_like(s.path) or _YES_NO.issuperset(s.examples)]
    return sorted(paths, key=lambda path: not _is_verdict_like(path))


def _suggest_verdict(
    source: Source, mapping: RecordMap, fields: Sequence[_FieldExamples]
) -> tuple[str, str]:
    """Where the verdicts may be: the path of the records, and the field."""
    records = mapping.records
    lists = [s.path for s in fields if s.kind == "list of verdicts"]
    inner = [path for path in _find_numbers(source, records) if _is_verdict_like(path)]
    if lists or inner:
        return records, (inner or lists)[0]
    for holder in (s.path for s in fields if s.kind == "list of objects"):
        place = f"{records}.{holder}[*]" if records else f"{holder}[*]"
        names = [
            s.path
            for s in _fields(source, place)
            if _YES_NO.issuperset(s.examples) or s.kind == "list of verdicts"
        ]
        likely = [name for name in names if _is_verdict_like(name)] or names
        if len(likely) == 1:
            return place, likely[0]
    return records, "FIELD"


def _is_verdict_word(text: str, *rewards: float) -> bool:
    return reward_or_none(RewardWords(), text) in (rewards or (0.0, 1.0))


def _is_verdict_like(path: str) -> bool:
    return _VERDICT_LIKE.search(path.rpartition(".")[2]) is not None


def find_facts(source: Source) -> tuple[str | None, float | None]:
    """The model and the share of passes that a JSON document states at its top."""
    names = {*ALIASES["model"], *ALIASES["rate"]}
    if not any(fold_name(key) in names for key in source.outline.keys):
        return None, None
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    data = whole.data if whole is not None and isinstance(whole.data, dict) else {}
    top = {fold_name(str(key)): value for key, value in data.items()}
    model = next((top[a] for a in ALIASES["model"] if isinstance(top.get(a), str) and top[a]), None)
    rates = (number_or_none(top.get(alias)) for alias in ALIASES["rate"])
    rate = next((number for number in rates if number is not None and 0 <= number <= 100), None)
    return model, rate if rate is None or rate <= 1 else rate / 100


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
    is_by_column = all(str(key).isdigit() for key in rows[0])  # {"task": {"0": ..., "1": ...}}
    return not is_by_column and not any(isinstance(cell, dict | list) for cell in cells)


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
    if path in ("*.*", "*[*]") and not {"model", "^@key"} & {*fields_of, *claimed_names}:
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
