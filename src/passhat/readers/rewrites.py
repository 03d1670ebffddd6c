"""Tables that say in another form what plain columns say, rewritten before their shape is found.

Merged cells that are empty below the first, a mark in one of the columns Pass and Fail, the names
of those that solved a task, a heading that states the rule for a pass, an id that ends with the
number of the attempt, a row for each metric, rows that later ones replace. What is rewritten is a
decision that reports print.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from passhat._display import some
from passhat.errors import InvalidValue, shorten
from passhat.readers.formats.attempt_files import find_inner_verdicts
from passhat.readers.formats.marks import find_spelled
from passhat.readers.parsing import Rewrite, find_listed
from passhat.readers.shapes import count_rates
from passhat.readers.summary_labels import find_numbered_names
from passhat.readers.summary_rows import is_total
from passhat.readers.wide_tables import distinct_cells, is_model_name, reward_or_none
from passhat.stats.outcomes.cells import CellCodes, is_empty, parse_number
from passhat.stats.outcomes.columns import ALIASES, EVERY_COLUMN, MEASURES, ColumnMap, fold_name
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords

_LOOKED_AT = 500
_LONGEST_NAME = 200
_MOST_LEADING = 3
_MARKS = frozenset({"x", "✓", "✔", "✔️", "✅", "*", "•", "●", "1", "yes", "y", "true"})
_SOLVED_BY = re.compile(
    r"(solved|passed|completed|resolved|done|fixed|succeeded|answered|won)_(by|models|agents)|solvers?|"
    r"winners|(passing|successful|solving)_(models|agents|systems)|who_(solved|passed)|models_passed"
)
_NAMES = re.compile(r"\s*(?:[,;|/+]|\band\b)\s*")
_NOBODY = frozenset({"", "-", "–", "—", "none", "(none)", "no one", "n/a", "[]"})
_STATED_RULE = re.compile(
    r"(.+?)\s*[(\[].*?\b(?:pass(?:ed|es)?|ok|success|correct|solved)\b[\s:=]*(?:if|when|is|from)?\s*"
    r"(>=|≥|=>|>|<=|≤|<|at least)?\s*([\d.]+).*[)\]]\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Rewrites:
    """Finds in the first rows what is to be rewritten, and rewrites every chunk."""

    stated: Mapping[str, str]
    """The columns that the user states: no other one is made for them."""
    is_sheet: bool = True
    """Whether cells may be empty because they were merged: a record of JSON has no such cell."""
    decisions: tuple[str, ...] = ()
    _found: list[Rewrite] | None = None

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The rewritten rows, and the line of each."""
        if self._found is None:
            self._found = []
            if any(len(name) > _LONGEST_NAME for name in chunk):
                return chunk, lines  # an expression would take minutes
            for find in _FINDERS if self.is_sheet else _FINDERS[1:]:
                found = find(chunk, self.stated)
                if found is not None:
                    rewrite, decision = found
                    self._found.append(rewrite)
                    self.decisions = (*self.decisions, decision)
                    chunk, lines = rewrite(chunk, lines)
            return chunk, lines
        for rewrite in self._found:
            chunk, lines = rewrite(chunk, lines)
        return chunk, lines


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


# -- merged cells ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Filler:
    names: Sequence[str]
    _last: dict[str, object] = field(default_factory=dict)

    def __call__(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        filled: dict[str, list[object]] = {}
        for name in self.names:
            cells = filled[name] = []
            for cell in chunk[name]:
                if not is_empty(cell):
                    self._last[name] = cell
                cells.append(self._last[name])
        return {**{name: chunk[name] for name in chunk}, **filled}, lines


def _find_merged(chunk: Chunk, _stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Leading columns of names that are empty in a third of the rows, where others are not."""
    names = list(_merged_columns(chunk))
    if not names:
        return None
    said = some(list(map(repr, names)), 3)
    return _Filler(names), f"empty cells of {said} are filled with the cell above"


def _merged_columns(chunk: Chunk) -> Iterator[str]:
    is_inner = False
    for place, name in enumerate(list(chunk)[:_MOST_LEADING]):
        cells = chunk[name]
        values = cells.values if isinstance(cells, CellCodes) else cells
        if not any(map(is_empty, values)) or is_empty(cells[0]):
            continue
        empty = [row for row, cell in enumerate(cells) if is_empty(cell)]
        is_named = not {"task", "model"}.isdisjoint(ColumnMap.resolve([name]).meaning)
        texts = [_text(cell) for cell in cells if not is_empty(cell)]
        is_label = len(set(texts)) == len(texts) and not any(map(parse_number, texts))
        # The first column names blocks, and one beside it the blocks in them.
        is_name = is_named or is_inner or (place == 0 and is_label)
        if not is_name or 3 * len(empty) < len(cells) or len(cells) - len(empty) < 2:
            continue
        rest = [n for n in chunk if n != name and not is_empty(chunk[n][0])]
        if rest and all(not is_empty(chunk[rest[-1]][row]) for row in empty):
            is_inner = True
            yield name


# -- a mark in one of several columns --------------------------------------------------------


def _find_marks(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns that are named after verdicts, of which each row marks exactly one."""
    words = RewardWords()
    names = [n for n in chunk if not n.strip().isdigit() and reward_or_none(words, n) is not None]
    rewards = {words[name] for name in names if words[name] == words[name]}
    if len(names) < 2 or rewards != {0.0, 1.0} or {"success", "n", "c"} & stated.keys():
        return None
    rows = list(zip(*(map(_text, chunk[name]) for name in names), strict=True))
    if not all(
        sum(map(bool, row)) == 1 and set(map(str.lower, row)) <= _MARKS | {""} for row in rows
    ):
        return None

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        rows = zip(*(map(_text, chunk[name]) for name in names), strict=True)
        verdicts = [next((n for n, c in zip(names, row, strict=True) if c), "") for row in rows]
        rest = {name: chunk[name] for name in chunk if name not in names}
        return {**rest, "verdict": verdicts}, lines

    said = some(list(map(repr, names)), 4)
    return rewrite, f"the one of {said} that a row marks is its verdict"


# -- the names of those that solved a task ---------------------------------------------------


def _find_solvers(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    column = next((name for name in chunk if _SOLVED_BY.fullmatch(fold_name(name))), None)
    is_open = not {"success", "model", "n", "c"} & (
        stated.keys() | ColumnMap.resolve(chunk).meaning.keys()
    )
    if column is None or not is_open:
        return None
    models = list(dict.fromkeys(name for cell in chunk[column] for name in _solvers(cell)))
    if not 1 < len(models) <= max(20, len(chunk[column]) // 2):
        return None

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        solvers = [set(_solvers(cell)) for cell in chunk[column]]
        rows = [row for row in range(len(solvers)) for _ in models]
        rest: dict[str, Sequence[object]] = {
            name: [chunk[name][row] for row in rows] for name in chunk if name != column
        }
        rest["model"] = models * len(solvers)
        rest["solved"] = [int(model in names) for names in solvers for model in models]
        return rest, [lines[row] for row in rows]

    decision = f"{column!r} names those that passed; the others of {some(models, 6)} failed"
    return rewrite, decision


def _solvers(cell: object) -> list[str]:
    if isinstance(cell, list):
        return [_text(name) for name in cell]
    text = _text(cell).strip("[]{}()")
    names = [name.strip(" \t\"'") for name in _NAMES.split(text)]
    return [] if text.lower() in _NOBODY else [name for name in names if name]


# -- a rule in a heading ---------------------------------------------------------------------


def _find_rule(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A column of numbers whose heading states from where on they pass: ``score (pass >= 4)``."""
    matches = [match for name in chunk if (match := _STATED_RULE.fullmatch(name))]
    if len(matches) != 1 or {"success", "n", "c"} & stated.keys():
        return None
    name, sign, limit = matches[0][0], matches[0][2] or ">=", parse_number(matches[0][3])
    numbers = [parse_number(cell) for cell in distinct_cells(chunk[name])]
    if limit is None or not numbers or None in numbers:
        return None
    is_below, is_strict = sign[0] in "<≤", sign in ("<", ">")

    def passes(cell: object) -> object:
        number = parse_number(cell)
        if number is None:
            return None if is_empty(cell) else cell
        left, right = (limit, number) if is_below else (number, limit)
        return left > right or (left == right and not is_strict)

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        rest = {other: chunk[other] for other in chunk if other != name}
        return {**rest, "passed": [passes(cell) for cell in chunk[name]]}, lines

    return rewrite, f"passed means {matches[0][1].strip()} {sign} {limit:g}, as its heading states"


# -- counts of each model side by side -------------------------------------------------------

_COUNT_NAMES = {alias: word for word in ("n", "c", "fails") for alias in ALIASES[word] if alias[1:]}
_COUNT_NAMES |= {"pass": "c", "passed": "c", "solved": "c", "success": "c", "ok": "c"}


def _find_pairs(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns such as alpha_passes, alpha_runs, beta_passes, beta_runs."""
    families: dict[str, dict[str, str]] = {}
    for name in chunk:
        words = re.split(r"[\s_./:|-]+", fold_name(name))
        for cut in range(1, len(words)):
            head, tail = "_".join(words[:cut]), "_".join(words[cut:])
            model, kind = (head, tail) if tail in _COUNT_NAMES else (tail, head)
            if kind in _COUNT_NAMES and model not in _COUNT_NAMES:
                families.setdefault(model, {})[_COUNT_NAMES[kind]] = name
                break
    kinds = [frozenset(names) for names in families.values()]
    if len(kinds) < 2 or len(set(kinds)) > 1 or "c" not in kinds[0] or len(kinds[0]) < 2:
        return None
    used = {name for names in families.values() for name in names.values()}
    cells = [parse_number(cell) for name in used for cell in distinct_cells(chunk[name])]
    if (
        {"success", "model", "n", "c"} & stated.keys()
        or None in cells
        or max(filter(None, cells), default=0) <= 1
    ):
        return None

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        size = len(lines)
        rows = [row for row in range(size) for _ in families]
        rest: dict[str, Sequence[object]] = {
            name: [chunk[name][row] for row in rows] for name in chunk if name not in used
        }
        rest["model"] = list(families) * size
        for word in kinds[0]:
            rest[word] = [
                chunk[names[word]][row] for row in range(size) for names in families.values()
            ]
        return rest, [lines[row] for row in rows]

    return rewrite, f"columns of counts for each model: {some(list(families), 6)}"


def _find_totals(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Numbers of passes or shares in a column for each model, of a stated number of attempts."""
    total = stated.get("n", "")
    if not any(path.startswith(EVERY_COLUMN) for path in stated.values()):
        return None
    if total not in chunk and not total.isdigit():
        return None
    first = next(iter(chunk))
    tasks = [row for row, cell in enumerate(chunk[first]) if not is_total(cell)]
    cells_of = {
        name: [chunk[name][row] for row in tasks if not is_empty(chunk[name][row])]
        for name in chunk
        if name not in stated.values() and not MEASURES.fullmatch(name)
    }
    numbers = {name: list(map(parse_number, cells)) for name, cells in cells_of.items()}
    numbers = {name: each for name, each in numbers.items() if each and None not in each}
    values = [number for each in numbers.values() for number in each if number is not None]
    if not values:
        return None
    most = max(parse_number(n) or 0 for n in chunk[total]) if total in chunk else int(total)
    is_percent = max(values) > most
    is_rate = is_percent or any(not number.is_integer() for number in values)

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        totals = chunk[total] if total in chunk else [int(total)] * len(lines)
        fractions: dict[str, Sequence[object]] = {}
        for name in numbers:
            passes = count_rates(totals, chunk[name], is_percent)[1] if is_rate else chunk[name]
            cells = zip(passes, totals, chunk[name], strict=True)
            fractions[name] = [None if is_empty(cell) else f"{c}/{n}" for c, n, cell in cells]
        rest = {name: chunk[name] for name in chunk} | fractions
        rows = [row for row, cell in enumerate(chunk[first]) if not is_total(cell)]
        return {n: [rest[n][row] for row in rows] for n in rest}, [lines[row] for row in rows]

    kind = "the share of passes" if is_rate else "the number of passes"
    return rewrite, f"cells of {some(list(map(repr, numbers)), 4)} are {kind} of {total} attempts"


# -- ids with the number of the attempt ------------------------------------------------------


_ATTEMPT_AT_END = re.compile(
    r"(.*?[^\s_./:#@(\[-])(?:[\s_./:(\[-]+(?:attempt|trial|run|try|rep|repeat|repetition|seed|epoch|"
    r"rollout)[\s_#=:.-]*|[\s_./:-]*([#@])|(?=__\d)(__)|[\s_./:(-]+(sample)[\s_#=:.-]*)(\d+)[)\]]?",
    re.IGNORECASE,
)
"""The name of a task with the number of an attempt: ``parse_run2``, ``a-3#2``, ``a (trial 1)``."""


def match_attempt(name: str) -> re.Match[str] | None:
    """The task and the number of the attempt (groups 1 and 5) in a name that is not too long."""
    return _ATTEMPT_AT_END.fullmatch(name) if len(name) <= _LONGEST_NAME else None


def are_attempts(matches: Sequence[re.Match[str]]) -> bool:
    """Whether names number attempts: a bare sign (``algebra#2``) may number questions.

    It does where a task has a number of its own (``task-3#2``), or there are no fewer tasks
    than numbers.
    """
    tasks, numbers = {match[1] for match in matches}, {match[5] for match in matches}
    has_sign = any(match[2] or match[3] or match[4] for match in matches)
    has_digits = all(any(map(str.isdigit, task)) for task in tasks)
    return not has_sign or has_digits or len(numbers) <= len(tasks)


def _find_numbered(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A task such as ``sort/names#2``, of which other numbers are there, too."""
    meaning = ColumnMap.resolve(chunk).meaning
    column = meaning.get("task")
    if column is None or "trial" in meaning or {"task", "trial"} & stated.keys():
        return None
    cells = list(map(_text, distinct_cells(chunk[column])[:_LOOKED_AT]))
    matches = [match for cell in cells if (match := match_attempt(cell))]
    tasks = {match[1] for match in matches}
    if (
        not matches
        or len(matches) < len(cells)
        or 3 * len(tasks) > 2 * len(cells)
        or len(tasks) < 2
        or not are_attempts(matches)
    ):
        return None
    trial = next(name for name in ("trial", *ALIASES["trial"]) if name not in chunk)

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        pairs = [match_attempt(_text(cell)) for cell in chunk[column]]
        rest = {name: chunk[name] for name in chunk}
        rest[column] = [
            cell if pair is None else pair[1]
            for pair, cell in zip(pairs, chunk[column], strict=True)
        ]
        return {**rest, trial: [pair and pair[5] for pair in pairs]}, lines

    example = matches[0]
    said = (
        f"{column!r} names task and attempt: {example[0]} is attempt {example[5]} of {example[1]}"
    )
    return rewrite, f"{said}; if each is a task of its own: --map 'task={column}'"


# -- rows that another row replaces ----------------------------------------------------------

_FINAL = re.compile(r"(is_|was_)?(final|latest|last)(_attempt|_try|_run)?")
_REPLACED = re.compile(r"(is_|was_)?(superseded|replaced|retried|discarded|obsolete)")


def _find_replaced(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A column such as ``final``: each row that is not is about an attempt that one row ends."""
    folds = {name: fold_name(name) for name in chunk}
    named = [n for n, fold in folds.items() if _FINAL.fullmatch(fold) or _REPLACED.fullmatch(fold)]
    meaning = {**ColumnMap.resolve(chunk).meaning, **stated}
    verdicts = chunk.get(meaning.get("success", ""))
    if len(named) != 1 or named[0] in meaning.values() or "task" not in meaning:
        return None
    (name,) = named
    if verdicts is None:
        return None
    good, words = float(_FINAL.fullmatch(folds[name]) is not None), RewardWords()
    rewards = {reward_or_none(words, cell) for cell in distinct_cells(chunk[name])}
    if rewards != {0.0, 1.0} or any(map(is_empty, chunk[name])):
        return None
    is_final = [words[cell] == good for cell in chunk[name]]
    rewards_of: dict[bool, set[float | None]] = {True: set(), False: set()}
    for verdict, final in zip(verdicts, is_final, strict=True):
        rewards_of[final].add(reward_or_none(words, verdict))
    if 1.0 in rewards_of[False] or (0.0 in rewards_of[False] and rewards_of[True] == {1.0}):
        return None  # a pass is not tried again, and the column may be the verdict itself
    for key_words in (("task", "model", "suite", "trial"), ("task", "model", "suite")):
        columns = [chunk[meaning[w]] for w in key_words if meaning.get(w) in chunk]
        keys = list(zip(*(map(_text, cells) for cells in columns), strict=True))
        ended = Counter(key for key, final in zip(keys, is_final, strict=True) if final)
        if columns and all(
            ended[key] == 1 for key, final in zip(keys, is_final, strict=True) if not final
        ):
            break
    else:
        return None

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        cells = enumerate(chunk[name])
        rows = [row for row, cell in cells if reward_or_none(words, cell) != 1 - good]
        rest: dict[str, Sequence[object]] = {
            other: [column[row] for row in rows] for other, column in chunk.items()
        }
        return rest, [lines[row] for row in rows]

    count = is_final.count(False)
    return rewrite, f"rows that a later one replaces, by {name!r}, are left out: {count} at least"


_SKIPPED = re.compile(r"(is_|was_)?(skipped|excluded|not_run|disabled)")


def _find_skipped(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A column such as ``skipped`` beside the verdict: what it marks was not judged."""
    success = {**ColumnMap.resolve(chunk).meaning, **stated}.get("success", "")
    names = [name for name in chunk if _SKIPPED.fullmatch(fold_name(name))]
    if len(names) != 1 or success not in chunk or names[0] in stated.values():
        return None
    (name,), words = names, RewardWords()
    marks = [reward_or_none(words, cell) for cell in chunk[name]]
    passed = [reward_or_none(words, cell) == 1 for cell in chunk[success]]
    is_flag = all(mark is not None and mark in (0.0, 1.0) for mark in marks)
    if (
        not is_flag
        or len(set(marks)) < 2
        or True in {p for p, m in zip(passed, marks, strict=True) if m}
    ):
        return None

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        pairs = zip(chunk[success], chunk[name], strict=True)
        verdicts = [None if reward_or_none(words, mark) == 1 else cell for cell, mark in pairs]
        return {**{other: chunk[other] for other in chunk}, success: verdicts}, lines

    return rewrite, f"rows that {name!r} marks are missing: {marks.count(1.0)} at least"


# -- metrics below each other ----------------------------------------------------------------


_METRICS = ("metric", "measure", "variable", "metric_name")


def _find_tidy(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A row for each metric of an attempt, of which one by its name is the verdict."""
    folds = {fold_name(name): name for name in chunk}
    metric = next((folds[n] for n in _METRICS if n in folds), "")
    value = next((folds[n] for n in ("value", "metric_value") if n in folds), "")
    meaning = ColumnMap.resolve(chunk).meaning
    if not (metric and value) or {"success", "n", "c"} & meaning.keys():
        return None
    if {metric, value} & set(stated.values()):
        return None
    kinds = [_text(cell) for cell in distinct_cells(chunk[metric])[:_LOOKED_AT]]
    found = [ColumnMap.resolve([kind]).meaning.get("success") for kind in kinds]
    verdicts = [kind for kind in found if kind is not None]
    if len(verdicts) != 1 or len(kinds) < 2 or verdicts[0] in chunk:
        return None
    (verdict,) = verdicts

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        rows = [row for row, cell in enumerate(chunk[metric]) if _text(cell) == verdict]
        rest: dict[str, Sequence[object]] = {
            verdict if name == value else name: [cells[row] for row in rows]
            for name, cells in chunk.items()
            if name != metric
        }
        return rest, [lines[row] for row in rows]

    return rewrite, f"rows with another {metric!r} than {verdict!r} are left out"


# -- names that join model, task and attempt -------------------------------------------------

_TEST_PARAMETERS = re.compile(r"\[([^\[\]-]{1,80})-([^\[\]]{1,80})-(\d{1,9})\]$")
_JOINT = re.compile(r"[/\\|()\[\]]|::|,\s")
_PLACES = frozenset(
    {"file", "path", "file_path", "filename", "filepath", "folder", "dir", "log", "name"}
)
_COUNTED = re.compile(
    r"(?:(?:run|trial|attempt|seed|rep|repeat|sample|try|epoch)[\s_#-]?)?\d{1,9}(?:\.\w{1,6})?",
    re.I,
)
_MOST_PARTS = 16


def _split_name(cell: object) -> list[str]:
    """The parts of ``gpt-5/sort/1/out.txt``, ``bench (gpt-5, sort, 1)``, ``test[gpt-sort-1]``."""
    text = _TEST_PARAMETERS.sub(r"[\1|\2|\3]", _text(cell)[:_LONGEST_NAME])
    return [part.strip() for part in _JOINT.split(text)]


def _find_grid(cells: Sequence[str]) -> tuple[list[set[str]], list[int], list[int]] | None:
    """The texts at each place of names, the places of two parts in every pair, and of numbers."""
    widths = {len(_split_name(cell)) for cell in cells[:_LOOKED_AT]}
    rows = [_split_name(cell) for cell in cells] if len(widths) == 1 else []
    if not rows or not 2 < len(rows[0]) <= _MOST_PARTS or any(len(r) not in widths for r in rows):
        return None
    kinds = [set(part) for part in zip(*rows, strict=True)]
    varying = [place for place, kind in enumerate(kinds) if len(kind) > 1]
    trials = [place for place in varying if all(map(_COUNTED.fullmatch, kinds[place]))][-1:]
    pair = [place for place in varying if place not in trials]
    if len(pair) != 2:
        return None
    first, second = (len(kinds[place]) for place in pair)
    count = len({(row[pair[0]], row[pair[1]]) for row in rows})
    numbers = len(kinds[trials[0]]) if trials else 1
    is_grid = 5 * count >= 4 * first * second and 2 * len(rows) > count * numbers
    return (kinds, pair, trials) if is_grid else None


def _find_parameters(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """A column of names with every pair of two parts: a model and a task, and the attempt's number.

    ``None`` for plain tasks, and for those in folders, which are no such grid.
    """
    meaning = ColumnMap.resolve(chunk).meaning
    names = ("parameter 1", "parameter 2", "trial")
    is_stated = bool(set(names[:2]) & set(stated.values()))
    places = [name for name in chunk if fold_name(name) in _PLACES]
    column = meaning.get("task") or next(iter(places), None)
    if column is None or (not is_stated and {"task", "model"} & stated.keys()):
        return None
    cells = [cell for cell in distinct_cells(chunk[column]) if isinstance(cell, str)]
    grid = None if "model" in meaning else _find_grid(cells)
    if grid is None:
        return None
    kinds, pair, trials = grid
    are_models = [all(map(is_model_name, kinds[place])) for place in pair]
    is_clear = are_models[0] != are_models[1]
    if not is_stated and not is_clear:
        if not trials or not (column in places or re.search(r"[\[(]", cells[0])):
            return None  # a task in folders
        readings = " or ".join(
            f"--map 'task={task},model={model}'" for task, model in (names[1::-1], names[:2])
        )
        raise InvalidValue(
            f"{column!r} joins parameters, as in {shorten(cells[0])}: a model, a task and the "
            "number of the attempt may be among them.",
            hint=f"Say what they are: {readings}. If each is a task of its own: "
            f"--map 'task={column}'",
        )
    words = names if is_stated else ("model", "task", "trial") if are_models[0] else _TASK_FIRST
    wanted = dict(zip([*pair, *trials], words, strict=False))

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        parts: list[list[str] | None] = []
        for cell in chunk[column]:
            row = _split_name(cell)
            is_like = len(row) == len(kinds) and all(
                part in kind or place in wanted
                for place, (part, kind) in enumerate(zip(row, kinds, strict=True))
            )
            parts.append(row if is_like else None)
        rest = {name: cells for name, cells in chunk.items() if name != column}
        for place, word in wanted.items():
            rest[word] = [row and row[place] for row in parts]
        if trials:
            rest["trial"] = [row and PurePath(row[trials[0]]).stem for row in parts]
        return rest, lines

    said = f"{column!r} joins {', '.join(wanted.values())}: {shorten(cells[0])}"
    return rewrite, f"{said}; if each is a task of its own: --map 'task={column}'"


_TASK_FIRST = ("task", "model", "trial")


_FINDERS = (
    _find_merged,
    find_inner_verdicts,
    find_spelled,
    _find_tidy,
    _find_replaced,
    _find_skipped,
    _find_parameters,
    _find_marks,
    _find_solvers,
    _find_rule,
    _find_pairs,
    _find_totals,
    find_listed,
    find_numbered_names,
    _find_numbered,
)
