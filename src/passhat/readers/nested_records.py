"""Records inside a document of unknown structure: models, tasks and attempts by keys and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from passhat.readers.json_records import FACTS, NOT_ATTEMPTS, WEAK_TASKS
from passhat.readers.parsing import is_verdict_list
from passhat.readers.record_map import RecordMap, compile_path, value_of
from passhat.readers.records import RecordFile, content_kind, is_frame, plain_log
from passhat.readers.sources import Source
from passhat.readers.wide_tables import FRACTION, is_model_name, reward_or_none
from passhat.stats.outcomes.columns import ALIASES, JOIN_SIGN, fold_name, is_negative
from passhat.stats.outcomes.rewards import RewardWords, is_failure_reason, is_odd_ending

_NODES_LOOKED_AT = 30
_DEEPEST = 5
_ATTEMPTS = frozenset(
    {
        *("attempts", "trials", "runs", "samples", "rollouts", "generations", "episodes"),
        *("repeats", "repetitions", "tries", "epochs", "completions"),
    }
)
"""Lists of attempts at a task: they count, whatever else the task states."""
_ITEMS = frozenset(
    {
        *("results", "tasks", "questions", "items", "cases", "outcomes", "records", "data"),
        *("evals", "evaluations", "problems", "instances", "examples", "scenarios", "details"),
        *("models", "agents", "logs", "rows", "entries", "tests_run", "seeds", "per_task"),
    }
)
ONE_SIDED = re.compile(
    r"(failures?|failed|errors?|wrong|incorrect|mistakes|unresolved|unsolved|misses|passes|passed|"
    r"successes|skipped|pending)(_(tests?|tasks?|cases?|examples?|items?|runs?|attempts?))?"
)
"""Lists of some attempts by how they ended: the others are elsewhere, or not in the file."""
_MODELS = frozenset({"models", "agents", "systems", "llms", "candidates"})
_SETUPS = frozenset(
    {
        *("configs", "configurations", "variants", "setups", "submissions", "experiments"),
        *("conditions", "arms", "methods", "checkpoints", "policies", "solvers", "players"),
    }
)
"""Lists of what is compared, each with the same tasks."""
_TASK_LISTS = frozenset(
    {"tasks", "questions", "items", "cases", "problems", "instances", "examples", "scenarios"}
)
_SUITES = frozenset({"suites", "categories", "groups", "domains", "datasets", "benchmarks"})
_LABELS = ("name", "label", "title", "id", "key")
_PARTS_OF_ROWS = ("task", "model", "trial")
_MOST_COMPARED = 20_000
_YES_NO = frozenset({"yes", "no", "true", "false", "y", "n", "0", "1", "0.0", "1.0"})
_PARTS = re.compile(
    r"(criteri\w+|check|test|rubric|step|assertion)s?(_(results?|scores?|details?))?"
)
"""Lists of parts of an attempt by other names."""
_TRIAL_KEY = re.compile(r"(?:(?:run|trial|attempt|seed|sample|rep|try|epoch)[\s_#-]*)?\d+", re.I)
_NAMED_TRIAL = re.compile(r"(?:run|trial|attempt|seed|rep|repeat|try|epoch)[\s_#-]*\d+", re.I)


@dataclass(frozen=True, slots=True)
class _Level:
    """A list or an object of like elements on the way to the records."""

    has_keys: bool
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    """Plain fields of the elements."""
    facts: tuple[str, ...]
    """Fields of an object about the element: ``meta.model``."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of possible records: the path, the levels on the way, and some of the records."""

    path: str
    levels: tuple[_Level, ...]
    nodes: tuple[Any, ...]


def guess_nested(source: Source, *, attempts_only: bool = False) -> RecordMap | None:
    """The mapping of a document with nested records; ``None`` where its structure is unclear.

    ``attempts_only`` looks for lists of attempts alone, which count whatever the task states.
    """
    is_lines = content_kind(source) == "JSON lines"
    nodes = []
    for record in RecordFile(source, plain_log(source)).records():
        nodes.append(record.data)
        if len(nodes) >= _NODES_LOOKED_AT:
            break
    if not nodes or (not is_lines and is_frame(nodes[0])):
        return None
    root = nodes[0] if not is_lines and isinstance(nodes[0], dict) else {}
    start = _Level(False, (), _plain_fields(nodes), _facts(nodes))
    levels = (start,) if is_lines else ()
    places = sorted(_walk(nodes, "", levels, 0), key=lambda place: -len(place.levels))
    for place in places:
        names = re.findall(r"([^.\[\]*\"]+)(?:\[\*\]|\.\*)?$", place.path)
        is_attempts = bool(names) and fold_name(names[0]) in _ATTEMPTS
        is_leaf = not any(isinstance(node, dict) for node in place.nodes)
        if (attempts_only and not is_attempts) or (is_leaf and source.found):
            continue  # true and false in a file beside others may be settings
        mapping = _map_place(place, _plain_fields([root]))
        if mapping is not None:
            return _with_names_around(mapping, source, place)
    return None


def _walk(
    nodes: Sequence[Any], path: str, levels: tuple[_Level, ...], depth: int
) -> Iterator[_Place]:
    """Places of possible records below some nodes of one kind."""
    if depth > _DEEPEST or not nodes:
        return
    lists = [node for node in nodes if isinstance(node, list)]
    objects = [node for node in nodes if isinstance(node, dict)]
    if len(lists) * 2 > len(nodes):
        inner = [element for node in lists for element in node[:_NODES_LOOKED_AT]]
        if inner and all(isinstance(element, dict) for element in inner):
            level = _Level(False, (), _plain_fields(inner), _facts(inner))
            place = _Place(f"{path}[*]", (*levels, level), tuple(inner))
            yield place
            yield from _walk(inner, place.path, place.levels, depth + 1)
        return
    if len(objects) * 2 <= len(nodes):
        return
    if _is_map(objects, path):
        objects = [(not path and _sections(node)) or node for node in objects]
        inner = [value for node in objects for value in list(node.values())[:_NODES_LOOKED_AT]]
        keys = tuple(dict.fromkeys(str(key) for node in objects for key in node))
        level = _Level(True, keys, _plain_fields(inner), _facts(inner))
        star = f"{path}.*" if path else "*"
        yield _Place(star, (*levels, level), tuple(inner))
        yield from _walk(inner, star, (*levels, level), depth + 1)
        return
    names = dict.fromkeys(key for node in objects for key in node)
    if len(objects) > 1 and _has_verdict(objects):  # what is inside are its parts
        names = {name: None for name in names if fold_name(str(name)) in _ATTEMPTS}
    for name in names:
        fold = fold_name(str(name))
        values = [node[name] for node in objects if name in node]
        if (
            fold in NOT_ATTEMPTS
            or _PARTS.fullmatch(fold)
            or ONE_SIDED.fullmatch(fold)
            or not any(isinstance(value, list | dict) for value in values)
        ):
            continue
        step = name if re.fullmatch(r"[^.\[\]\"*]+", str(name)) else f'"{name}"'
        yield from _walk(values, f"{path}.{step}" if path else step, levels, depth + 1)


def _has_verdict(objects: Sequence[dict[str, Any]]) -> bool:
    """Whether all objects have a verdict under a name for it."""
    names = [name for name in objects[0] if fold_name(str(name)) in ALIASES["success"]]
    return any(
        all(name in node and node[name] is not None and _is_verdict(node[name]) for node in objects)
        for name in names
    )


def _sections(data: dict[str, Any]) -> dict[str, Any]:
    """The objects of a document that have the same keys as each other, beside plain fields."""
    found = {key: value for key, value in data.items() if isinstance(value, dict)}
    first, *others = found.values() or [{}]
    is_alike = len(first) > 1 and all(other.keys() == first.keys() for other in others)
    is_plain = all(not isinstance(v, list) for k, v in data.items() if k not in found)
    return found if others and is_alike and is_plain else {}


def _is_map(objects: Sequence[dict[str, Any]], path: str) -> bool:
    """Whether objects hold like things by their names, rather than the fields of a thing."""
    alike = {} if path or len(objects) > 1 else _sections(objects[0])
    objects = [alike] if alike else objects
    names = {fold_name(str(key)) for node in objects for key in node}
    values = [value for node in objects for value in node.values()]
    known = {alias for aliases in ALIASES.values() for alias in aliases if len(alias) > 1}
    if not values or names & (_ATTEMPTS | _ITEMS | NOT_ATTEMPTS | known):
        return False
    kinds = {_kind(value) for value in values}
    if kinds in ({"object"}, {"list"}):
        return path.endswith("*") or len(values) > 1 or all(map(is_model_name, names))
    # Elements of a list with the same few fields are records, and the fields their metrics:
    # [{"em": 1, "f1": 0}, {"em": 0, "f1": 0}].
    is_record = (path.endswith("[*]") or (not path and len(objects) > 1)) and all(
        node.keys() == objects[0].keys() for node in objects
    )
    is_numbered = all(any(map(str.isdigit, name)) for name in names)
    is_map = len(names) > 1 and is_numbered if is_record else len(values) > 1
    return kinds == {"verdict"} and is_map


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "object"
    if _is_verdict(value) or (isinstance(value, list) and value and all(map(_is_verdict, value))):
        return "verdict"
    return "list" if isinstance(value, list) else "other"


def _is_verdict(value: object) -> bool:
    if value is None or isinstance(value, dict | list):
        return value is None
    reward = reward_or_none(RewardWords(), value)
    if reward is None and isinstance(value, str):
        is_ending = is_failure_reason(value) or is_odd_ending(value)
        return is_ending or FRACTION.fullmatch(value) is not None or is_verdict_list(value)
    return reward is not None and (reward in (0.0, 1.0) or reward != reward)


def _plain_fields(nodes: Sequence[Any]) -> tuple[str, ...]:
    names = {
        str(key): None
        for node in nodes
        if isinstance(node, dict)
        for key, value in node.items()
        if not isinstance(value, dict | list)
    }
    return tuple(names)


def _facts(nodes: Sequence[Any]) -> tuple[str, ...]:
    objects = [node for node in nodes if isinstance(node, dict)]
    return tuple(
        f"{name}.{field}"
        for name in dict.fromkeys(key for node in objects for key in node)
        if fold_name(str(name)) in (*FACTS, *ALIASES["task"])
        for field in _plain_fields([node.get(name) for node in objects])
    )


def _map_place(place: _Place, root: Sequence[str]) -> RecordMap | None:
    """The mapping of the records at a place; ``None`` without a task or a verdict."""
    fields = _verdict_fields(place)
    if fields is None:
        return None
    _add_aliases(fields, place.levels)
    models = [name for name in root if fold_name(name) in ALIASES["model"]]
    if models and "model" not in fields:
        fields["model"] = f"/{models[0]}"
    if "success" not in fields:
        _add_verdict_words(fields, place)
    if "success" not in fields:
        return None
    _add_named_models(fields, place)
    is_group = _is_group(place, fields)
    if is_group is None:
        return None
    if is_group:
        _add_weak_task(fields, place.levels[-1:])
    else:
        _add_keys(fields, place.levels)
    _add_weak_task(fields, place.levels, from_level=int(_are_named_attempts(place)))
    _add_weak_task(fields, place.levels)
    if "task" not in fields:
        return None
    if fields["success"] == "@value" and place.path.endswith("*") and "@key" not in fields.values():
        return None  # several verdicts on one attempt, each by its name
    return _as_mapping(place.path, fields)


def _as_mapping(path: str, fields: Mapping[str, str]) -> RecordMap:
    paths = {word: (field,) for word, field in fields.items()}
    said = ", ".join(f"{word} = {field}" for word, field in fields.items())
    mapping = RecordMap(name="nested", records=path, fields=paths)
    return replace(mapping, decision=f"records at {path}: {said}")


def _is_group(place: _Place, fields: Mapping[str, str]) -> bool | None:
    """Whether keys around lists are groups of tasks: {"easy": [{"name": "a", "passed": 1}]}.

    ``None`` where the keys may as well be the tasks: their records have ids of their own.
    """
    *outer, last = place.levels
    keys = [key for level in outer if level.has_keys for key in level.keys]
    weak = next((name for name in last.fields if fold_name(name) in WEAK_TASKS), None)
    if (
        last.has_keys
        or not keys
        or weak is None
        or "task" in fields
        or all(map(is_model_name, keys))
    ):
        return False
    names = [str(node.get(weak)) for node in place.nodes]
    is_distinct = len(set(names)) == len(names)
    if fold_name(weak) == "id":
        return False if all(map(_TRIAL_KEY.fullmatch, names)) else None
    return True if is_distinct else None


def _verdict_fields(place: _Place) -> dict[str, str] | None:
    """The value itself where it is a verdict; ``None`` where plain values are something else."""
    leaves = [node for node in place.nodes if not isinstance(node, dict)]
    if not leaves:
        return {}
    is_verdict = len(leaves) == len(place.nodes) and all(_kind(n) == "verdict" for n in leaves)
    return {"success": "@value"} if is_verdict else None


def _add_aliases(fields: dict[str, str], levels: Sequence[_Level]) -> None:
    """Fields by their names: the verdict in the record, the others also around it."""
    for up, level in enumerate(reversed(levels)):
        for word in ("success", "task", "trial", "model", "score"):
            if word in fields or (word in ("success", "score") and up):
                continue
            facts = [f for f in level.facts if fold_name(f.partition(".")[0]) in FACTS]
            names = (*level.fields, *(facts if word == "model" else ()))
            name = _find_alias(word, names, set(fields.values()))
            if name is not None:
                fields[word] = "^" * up + name


def _add_verdict_words(fields: dict[str, str], place: _Place) -> None:
    """The only field whose values are words for verdicts, and not merely yes and no."""
    words = RewardWords()
    found = []
    for name in place.levels[-1].fields:
        values = [node.get(name) for node in place.nodes if isinstance(node, dict)]
        texts = [value for value in values if isinstance(value, str)]
        rewards = {reward_or_none(words, text) for text in texts if not is_failure_reason(text)}
        if (
            rewards
            and len(texts) == len(values)
            and rewards <= {0.0, 1.0}
            and not is_negative(name)
        ):
            found += [] if _YES_NO.issuperset(map(str.lower, texts)) else [name]
    if len(found) == 1 and found[0] not in fields.values():
        fields["success"] = found[0]


def _add_named_models(fields: dict[str, str], place: _Place) -> None:
    """The name of an element of a list called models: [{"name": "gpt-4", "answers": [...]}]."""
    for up, (level, step) in enumerate(_named_levels(place)):
        name = next((n for n in level.fields if fold_name(n) in ("name", "id", "title")), None)
        if up and name is not None and fold_name(step) in _MODELS:
            fields.setdefault("model", "^" * up + name)


def _named_levels(place: _Place) -> Iterator[tuple[_Level, str]]:
    """The levels from the inside out, with the name of the list or object of each."""
    steps = [match[1] for match in re.finditer(r"([^.\[\]*\"]*)\"?(?:\[\*\]|\.?\*)", place.path)]
    for up, level in enumerate(reversed(place.levels)):
        yield level, fold_name(steps[-up - 1]) if up < len(steps) else ""


def _are_named_attempts(place: _Place) -> bool:
    """Whether the records are attempts with names, or numbers, in a list of named tasks."""
    (last, step), *outer = _named_levels(place)
    label = _find_label(last)
    if step not in _ATTEMPTS or label is None:
        return False
    names = [str(node.get(label)) for node in place.nodes if isinstance(node, dict)]
    others = _ATTEMPTS | _MODELS | _SETUPS
    others |= set() if all(map(_TRIAL_KEY.fullmatch, names)) else {""}
    return any(_find_label(level) is not None and step not in others for level, step in outer)


def _find_label(level: _Level) -> str | None:
    """The field with the name of each element."""
    folds = {fold_name(name): name for name in reversed(level.fields)}
    facts = {fold_name(fact.partition(".")[2]): fact for fact in level.facts}
    names = [each[word] for word in _LABELS for each in (folds, facts) if word in each]
    return names[0] if names else None


def _with_names_around(mapping: RecordMap, source: Source, place: _Place) -> RecordMap | None:
    """The mapping with the names of runs around the records, where they tell attempts apart."""
    file = RecordFile(source, plain_log(source), mapping.records)
    records = list(islice(file.records(), _MOST_COMPARED))

    def texts_at(path: str) -> list[str]:
        compiled = compile_path(path, "")
        return [str(value_of(record, file.root, compiled)) for record in records]

    fields = {word: paths[0] for word, paths in mapping.fields.items()}
    tasks = texts_at(fields["task"])
    rows = list(zip(*(texts_at(fields[w]) for w in _PARTS_OF_ROWS if w in fields), strict=True))
    task_level = fields["task"].count("^")
    for up, (level, step) in enumerate(_named_levels(place)):
        label = _find_label(level)
        path = "^" * up + (label or "")
        is_setup = step in _SETUPS | _SUITES | _ATTEMPTS | _ITEMS - _TASK_LISTS
        if (
            label is None
            or path in fields.values()
            or up == task_level
            or not (is_setup or not step)
        ):
            continue
        texts = texts_at(path)
        pairs, names = set(zip(tasks, texts, strict=True)), set(texts)
        joined = list(zip(rows, texts, strict=True))
        if len(set(joined)) == len(set(rows)) or 2 * len(pairs) < len(set(tasks)) * len(names):
            continue
        word = "trial" if all(map(_TRIAL_KEY.fullmatch, names)) else "model"
        word = "suite" if step in _SUITES else word
        if word not in fields or fields[word].startswith("/"):
            fields[word], rows = path, joined
    return _tell_tasks_apart(fields, rows, place, texts_at)


def _tell_tasks_apart(
    fields: dict[str, str],
    rows: Sequence[object],
    place: _Place,
    texts_at: Callable[[str], list[str]],
) -> RecordMap | None:
    """The mapping, with a name around the task where tasks of one id have other questions.

    ``None`` where nothing names what is around them.
    """
    questions = [n for n in place.levels[-1].fields if _QUESTION.fullmatch(fold_name(n))]
    if len(set(rows)) == len(rows) or JOIN_SIGN in fields["task"] or not questions:
        return _as_mapping(place.path, fields)
    if len({*zip(rows, texts_at(questions[0]), strict=True)}) < len(rows):
        return _as_mapping(place.path, fields)
    for up, (level, _) in [*enumerate(_named_levels(place))][1:]:
        for path in ("^" * up + name for name in level.fields):
            if len({*zip(rows, texts_at(path), strict=True)}) == len(rows):
                return _as_mapping(place.path, fields | {"task": f"{path}+{fields['task']}"})
    return None


_QUESTION = re.compile(r"(.*_)?(question|prompt|input|query|problem|instruction|content)(_.*)?")


def _add_keys(fields: dict[str, str], levels: Sequence[_Level]) -> None:
    """Keys from the inside out: the number of an attempt, the task, the model."""
    for up, level in enumerate(reversed(levels)):
        if not level.has_keys:
            continue
        has_outer = any(outer.has_keys for outer in levels[: len(levels) - up - 1])
        is_trial = all(_TRIAL_KEY.fullmatch(key) for key in level.keys) and "task" not in fields
        has_id = any(fold_name(n) in WEAK_TASKS for outer in levels[:-1] for n in outer.fields)
        is_model = all(map(is_model_name, level.keys)) and (has_outer or has_id)
        # {"task-1": {"my-model": [...]}, "task-2": {"my-model": [...]}}
        outer_keys = [outer.keys for outer in levels[: len(levels) - up - 1] if outer.has_keys]
        if len(level.keys) == 1 and any(len(keys) > 1 for keys in outer_keys):
            # But {"gpt-4": {"task-1": [...]}, "claude": {"task-1": [...]}} has one task.
            is_model |= not any(all(map(is_model_name, keys)) for keys in outer_keys)
        word = "model" if is_model or "task" in fields else "task"
        is_named = "task" in fields and all(map(_NAMED_TRIAL.fullmatch, level.keys))
        if ((is_trial and has_outer) or is_named) and "trial" not in fields:
            word = "trial"
        fields.setdefault(word, f"{'^' * up}@key")


def _add_weak_task(
    fields: dict[str, str], levels: Sequence[_Level], *, from_level: int = 0
) -> None:
    for up, level in [*enumerate(reversed(levels))][from_level:]:
        weak = next((n for n in level.fields if fold_name(n) in WEAK_TASKS), None)
        if weak is not None:
            fields.setdefault("task", "^" * up + weak)
        # {"task": {"id": "a", "level": 2}, "trials": [...]}
        pairs = [(*map(fold_name, fact.split(".", 1)), fact) for fact in level.facts]
        facts = {tail: fact for head, tail, fact in pairs if head in ALIASES["task"]}
        named = next((facts[tail] for tail in ("id", "key", "name") if tail in facts), None)
        if named is not None:
            fields.setdefault("task", "^" * up + named)


def _find_alias(word: str, names: Sequence[str], used: set[str]) -> str | None:
    usable = [name for name in reversed(names) if not is_negative(name)]
    folds = {fold_name(name.rpartition(".")[2]): name for name in usable}
    return next((folds[a] for a in ALIASES[word] if a in folds and folds[a] not in used), None)
