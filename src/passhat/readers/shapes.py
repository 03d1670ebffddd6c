"""The shape of a table: attempts, counts, rates, "3/4", or a column for each model.

A table is looked at once, by its header and its first rows, before any row is taken. Where two
readings give different numbers and nothing in the table decides, it is refused with both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from passhat._display import counted, some
from passhat.errors import ReadError, shorten
from passhat.readers.records import SHEET_COLUMN
from passhat.stats.outcomes.cells import CellCodes
from passhat.stats.outcomes.columns import EVERY_COLUMN, ColumnMap, is_negative
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords, verdicts_from_rewards

__all__ = ["RivalVerdicts", "Shape", "find_shape", "verdict_columns"]

_FRACTION = re.compile(r"\s*(\d+)\s*(?:/|of|out of)\s*(\d+)\s*")
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_COUNTER = re.compile(r".*\d\s*")
_MODEL = re.compile(
    r"(model|agent|system|llm|bot)\b|.*(gpt|claude|sonnet|opus|haiku|llama|gemini|gemma|qwen|"
    r"mistral|mixtral|deepseek|grok|phi-?\d|command-r|kimi|glm|nova|o[134]\b)",
    re.IGNORECASE,
)
"""Headings that name a model: without one of these a wide table is refused with a hint."""
_NUMBERED = re.compile(r"(.*?)[\s_#.-]*\d+")
_TRIAL_WORDS = {
    *("", "run", "trial", "attempt", "seed", "sample", "try", "rep", "repeat", "repetition"),
    *("iteration", "iter", "epoch", "pass", "k", "r", "t", "a", "s", "round", "result"),
}
"""Before a number in the heading of a column: the column is an attempt."""
_N, _C, _TRIAL_CELL = "passhat:n", "passhat:c", "passhat:trial"
_NAME_CELL, _VERDICT_CELL = "passhat:name", "passhat:success"


@dataclass(frozen=True, slots=True)
class Shape:
    """How to read a table: the meaning of its columns, after cells were rearranged.

    Attributes
    ----------
    columns : ColumnMap
        The meaning of the columns that ``rearrange`` returns.
    rearrange : callable
        Makes of a chunk of the file one of plain attempts or counts. Where a row becomes several
        or none, the second result is the place in the file's chunk of every row.
    decisions : tuple of str
        What was decided here and changes the numbers.
    remarks : callable
        Further decisions, known once all chunks were rearranged.
    """

    columns: ColumnMap
    rearrange: Callable[[Chunk], tuple[Chunk, list[int] | None]] = lambda chunk: (chunk, None)
    decisions: tuple[str, ...] = ()
    remarks: Callable[[], tuple[str, ...]] = tuple


def find_shape(columns: ColumnMap, chunk: Chunk, source: str) -> Shape:
    """The shape of a table, from its header and its first rows."""
    meaning = columns.meaning
    if "task" not in meaning:
        return Shape(columns)
    if SHEET_COLUMN in chunk and "model" not in meaning:
        # Sheets with the same columns, and no column that names the model.
        columns = replace(columns, meaning=MappingProxyType({**meaning, "model": SHEET_COLUMN}))
        shape = find_shape(columns, chunk, source)
        return replace(shape, decisions=("each sheet is a model", *shape.decisions))
    for word in ("model", "trial"):
        if meaning.get(word) == EVERY_COLUMN:
            names = verdict_columns(columns, chunk)
            return _unpivot(columns, names, word, chunk) if names else Shape(columns.without(word))
    plain = columns.without(*_unstated(columns, "n", "c", "fails", "rate"))
    if "success" in columns.stated:
        return Shape(plain)
    return _count_shape(columns, chunk, source) or _attempt_shape(plain, chunk)


def _count_shape(columns: ColumnMap, chunk: Chunk, source: str) -> Shape | None:
    """The shape of a table whose rows are tasks; ``None`` when they are not."""
    meaning = columns.meaning
    if {"n", "c"} <= meaning.keys() and "success" not in meaning:
        return _counts(columns, chunk)
    passes = meaning.get("c") or meaning.get("success")
    if "trial" in meaning:
        return None
    if passes and "fails" in meaning and "n" not in meaning:
        return _passes_and_fails(columns, chunk, passes)
    return _total_with(columns, chunk, source) if "n" in meaning and "c" not in meaning else None


def _attempt_shape(columns: ColumnMap, chunk: Chunk) -> Shape:
    """The shape of a table whose cells or rows are attempts."""
    if "success" not in columns.meaning:
        return _wide(columns, chunk)
    cells = _distinct(chunk[columns.meaning["success"]])
    if cells and all(isinstance(cell, str) and _FRACTION.fullmatch(cell) for cell in cells):
        return _fractions(columns)
    if cells and all(_list_of(cell) is not None for cell in cells):
        return _list_cells(columns)
    return _run_names(columns, chunk)


def _unstated(columns: ColumnMap, *words: str) -> list[str]:
    return [word for word in words if word not in columns.stated]


def _distinct(cells: Sequence[object]) -> list[object]:
    """The different cells that are not empty."""
    values: Iterable[object] = cells.values if isinstance(cells, CellCodes) else cells
    seen: dict[str, object] = {}
    for value in values:
        if value is not None and str(value).strip() != "":
            seen.setdefault(str(value), value)
    return list(seen.values())


def _number(cell: object) -> float | None:
    """A number as tables write it, 66.7% included."""
    text = str(cell).strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def _as_counts(
    columns: ColumnMap,
    count: Callable[[Chunk], tuple[list[object], list[object]]],
    decision: str,
) -> Shape:
    """A shape whose rows are tasks, with n and c computed from the cells of a row."""
    left_out = ("n", "c", "success", "score", "fails", "rate")
    plain = columns.without(*left_out)
    meaning = MappingProxyType({**plain.meaning, "n": _N, "c": _C})

    def rearrange(chunk: Chunk) -> tuple[Chunk, None]:
        n, c = count(chunk)
        return {**{name: chunk[name] for name in chunk}, _N: n, _C: c}, None

    return Shape(replace(plain, meaning=meaning, rivals=()), rearrange, (decision,))


def _counts(columns: ColumnMap, chunk: Chunk) -> Shape:
    """Rows that are tasks with n and c; a column that repeats c / n is named, not used."""
    others = [name for name in columns.rivals or columns.ignored if _is_score(name, chunk)]
    columns = columns.without("fails", "rate")
    if not others:
        return Shape(columns)
    n, c = columns.meaning["n"], columns.meaning["c"]
    names = some([repr(name) for name in others], 3)
    return Shape(columns, decisions=(f"columns {n!r} and {c!r} are counts; {names} not used",))


def _is_score(name: str, chunk: Chunk) -> bool:
    lower = name.strip().lower()
    return ("score" in lower or "reward" in lower or "rate" in lower) and name in chunk


def _passes_and_fails(columns: ColumnMap, chunk: Chunk, passes: str) -> Shape | None:
    fails = columns.meaning["fails"]
    pairs = [(_number(p), _number(f)) for p, f in zip(chunk[passes], chunk[fails], strict=True)]
    numbers = [(p, f) for p, f in pairs if p is not None and f is not None]
    if len(numbers) < len(pairs) or not numbers:
        return None
    if all(p + f == 1 for p, f in numbers):
        return None  # a verdict and its opposite: one attempt per row

    def count(part: Chunk) -> tuple[list[object], list[object]]:
        n: list[object] = []
        for p, f in zip(part[passes], part[fails], strict=True):
            first, second = _number(p), _number(f)
            n.append(None if first is None or second is None else first + second)
        return n, list(part[passes])

    decision = f"a row is a task: {passes!r} of {passes!r} + {fails!r} attempts passed"
    return _as_counts(columns, count, decision)


def _total_with(columns: ColumnMap, chunk: Chunk, source: str) -> Shape | None:
    """A number of attempts beside a score: passes, a pass rate, or the verdict of one attempt."""
    meaning = columns.meaning
    total, score = meaning["n"], meaning.get("success") or meaning.get("rate")
    if score is None:
        return None
    totals = [_number(cell) for cell in chunk[total]]
    whole = [n for n in totals if n is not None and n.is_integer() and n >= 0]
    if len(whole) < len(totals) or not whole or max(whole) <= 1:
        return None
    cells = _distinct(chunk[score])
    numbers = [number for cell in cells if (number := _number(cell)) is not None]
    if len(numbers) < len(cells) or not numbers:
        return None  # words are verdicts
    tasks = list(chunk[meaning["task"]])
    if len(set(tasks)) < len(tasks):
        return None  # a task has several rows: they are its attempts
    percent = max(numbers) > 1 and any(not number.is_integer() for number in numbers)
    is_rate = "success" not in meaning or percent or any(not n.is_integer() for n in numbers)
    if is_rate:
        return _as_counts(
            columns,
            lambda part: _from_rates(part[total], part[score], percent),
            f"a row is a task: {score!r} is the share of its {total!r} attempts that passed",
        )
    if max(numbers) > 1:
        return _as_counts(
            columns,
            lambda part: (list(part[total]), list(part[score])),
            f"a row is a task: {score!r} of its {total!r} attempts passed",
        )
    passes = sum(number for cell in chunk[score] if (number := _number(cell)) is not None)
    raise ReadError(
        f"{score!r} beside {total!r} may be a verdict ({passes:g} of {len(tasks)} attempts passed) "
        f"or the number of passes ({passes:g} of {sum(whole):g}).",
        source=source,
        hint=f"Say which: --map success={score} (a row is an attempt), or --map "
        f"n={total},c={score} (a row is a task).",
    )


def _from_rates(
    totals: Sequence[object], rates: Sequence[object], percent: bool
) -> tuple[list[object], list[object]]:
    """n and c; a rate that no number of passes gives stays as it is, and its row is lost."""
    n: list[object] = []
    c: list[object] = []
    for total_cell, cell in zip(totals, rates, strict=True):
        total, rate = _number(total_cell), _number(cell)
        n.append(total_cell)
        if total is None or rate is None:
            c.append(cell)
            continue
        share = rate / 100 if percent and not str(cell).strip().endswith("%") else rate
        decimals = len(str(cell).strip().rstrip("%").partition(".")[2])
        step = 10.0 ** -(decimals + (2 if percent or str(cell).strip().endswith("%") else 0))
        passes = round(share * total)
        # A rounded rate gives the passes when the rounding is less than half a pass.
        close = abs(share * total - passes) <= max(step * total, 1e-6) and step * total < 1
        c.append(passes if close or abs(share * total - passes) < 1e-6 else cell)
    return n, c


def _fractions(columns: ColumnMap) -> Shape:
    """Cells such as 3/4: passes of attempts."""
    name = columns.meaning["success"]

    def count(chunk: Chunk) -> tuple[list[object], list[object]]:
        pairs = [_FRACTION.fullmatch(str(cell)) or (cell, cell, cell) for cell in chunk[name]]
        return [pair[2] for pair in pairs], [pair[1] for pair in pairs]

    return _as_counts(columns, count, f"a row is a task: {name!r} holds passes / attempts")


def _run_names(columns: ColumnMap, chunk: Chunk) -> Shape:
    """A column ``run`` with names such as A and B: two runs, not two attempts of one."""
    trial = columns.meaning.get("trial")
    if trial is None or "model" in columns.meaning or "trial" in columns.stated:
        return Shape(columns)
    if trial.strip().lower() not in ("run", "experiment", "variant", "config"):
        return Shape(columns)
    labels = [str(cell) for cell in _distinct(chunk[trial])]
    if not labels or any(_COUNTER.fullmatch(label) for label in labels):
        return Shape(columns)
    meaning = {**columns.without("trial").meaning, "model": trial}
    return Shape(
        replace(columns, meaning=MappingProxyType(meaning)),
        decisions=(
            f"column {trial!r} holds names, so each is a run of its own; if they are attempts of "
            f"one agent: --map trial={trial}",
        ),
    )


def _wide(columns: ColumnMap, chunk: Chunk) -> Shape:
    """A table with a task column and a column of verdicts for every attempt or every model."""
    names = verdict_columns(columns, chunk)
    prefixes = {_trial_prefix(name) for name in names}
    if len(names) > 1 and len(prefixes) == 1 and prefixes <= _TRIAL_WORDS:
        # All columns of the series: a graded or empty one is an attempt like its neighbors.
        series = [n for n in _unused(columns, chunk) if _trial_prefix(n) in prefixes]
        return _unpivot(columns, series, "trial", chunk)
    if len(names) > 1 and all(_MODEL.match(name.strip()) for name in names):
        return _unpivot(columns, names, "model", chunk)
    return Shape(columns)


def _trial_prefix(name: str) -> str | None:
    # A name of megabytes would take the expression minutes.
    match = _NUMBERED.fullmatch(name.strip()) if len(name) <= 200 else None
    return match[1].strip(" _-#.").lower() if match else None


def _unused(columns: ColumnMap, chunk: Chunk) -> list[str]:
    """Columns without a meaning."""
    used = set(columns.meaning.values()) | set(columns.slices.values())
    return [name for name in chunk if name not in used and name.strip()]


def verdict_columns(columns: ColumnMap, chunk: Chunk) -> list[str]:
    """Columns without a meaning that hold verdicts: yes or no, 1 or 0.

    Some cells may be words such as ``timeout``; mostly words make a column of remarks, and any
    other number one of scores or times.
    """
    words = RewardWords()

    def holds_verdicts(name: str) -> bool:
        rewards = [_reward_or_none(words, cell) for cell in _distinct(chunk[name])]
        numbers = [reward for reward in rewards if reward is not None and reward == reward]
        is_verdict = bool(numbers) and all(number in (0.0, 1.0) for number in numbers)
        if not is_verdict or None not in rewards:
            return is_verdict
        cells = [_reward_or_none(words, cell) for cell in chunk[name]]
        return 2 * cells.count(None) <= len(cells)

    return [
        name for name in _unused(columns, chunk) if not is_negative(name) and holds_verdicts(name)
    ]


def _reward_or_none(words: RewardWords, cell: object) -> float | None:
    """The reward behind a cell, NaN for an empty one, ``None`` for a word that is no verdict."""
    try:
        return words[cell]
    except (ValueError, TypeError):
        return None


def _unpivot(columns: ColumnMap, names: Sequence[str], word: str, chunk: Chunk) -> Shape:
    """Every one of these columns is a model, or an attempt, and every cell in them a verdict."""
    others = [name for name in _unused(columns, chunk) if name not in names]
    columns = columns.without(word, "score")
    meaning = {**columns.meaning, word: _NAME_CELL, "success": _VERDICT_CELL}
    labels: list[object] = [name.strip() for name in names]
    if word == "trial" and not names[0].strip().lower().startswith("seed"):
        labels = list(range(1, len(names) + 1))  # a seed tells attempts apart, and gives no order
    words, odd_cells = RewardWords(), Counter[str]()

    def verdict_cell(cell: object) -> object:
        if _reward_or_none(words, cell) is not None:
            return cell
        odd_cells[shorten(cell)] += 1
        return None

    def rearrange(part: Chunk) -> tuple[Chunk, list[int]]:
        size = len(part[columns.meaning["task"]])
        origins = [row for row in range(size) for _ in names]
        cells: dict[str, Sequence[object]] = {
            name: [part[name][row] for row in origins] for name in part if name not in names
        }
        cells[_NAME_CELL] = labels * size
        cells[_VERDICT_CELL] = [
            verdict_cell(part[name][row]) for row in range(size) for name in names
        ]
        return cells, origins

    def remarks() -> tuple[str, ...]:
        shown_words = some([f"{cell} ({count:,})" for cell, count in odd_cells.items()], 6)
        return (f"cells read as missing attempts: {shown_words}",) if odd_cells else ()

    what = "a column for each model" if word == "model" else "a column for each attempt"
    decisions = [f"{what}: {some(list(names), 6)}"]
    if others:
        decisions.append(f"columns not read: {some(others, 6)}")
    ignored = tuple(name for name in columns.ignored if name not in names)
    return Shape(
        replace(columns, meaning=MappingProxyType(meaning), rivals=(), ignored=ignored),
        rearrange,
        tuple(decisions),
        remarks,
    )


def _list_of(cell: object) -> list[object] | None:
    """The verdicts in a cell such as [1, 0, 1]; ``None`` for a cell that is no list."""
    if isinstance(cell, list):
        return cell
    if not isinstance(cell, str) or not _LIST.fullmatch(cell):
        return None
    words = cell.strip()[1:-1].split(",")
    return [word.strip(" \t\"'") for word in words if word.strip()]


def _list_cells(columns: ColumnMap) -> Shape:
    """Cells that hold the verdicts of all attempts at a task, in their order."""
    name = columns.meaning["success"]
    columns = columns.without("trial", "score")
    meaning = {**columns.meaning, "success": _VERDICT_CELL, "trial": _TRIAL_CELL}

    def rearrange(chunk: Chunk) -> tuple[Chunk, list[int]]:
        lists = [_list_of(cell) or [] for cell in chunk[name]]
        origins = [row for row, verdicts in enumerate(lists) for _ in verdicts]
        cells: dict[str, Sequence[object]] = {
            other: [chunk[other][row] for row in origins] for other in chunk if other != name
        }
        cells[_VERDICT_CELL] = [verdict for verdicts in lists for verdict in verdicts]
        cells[_TRIAL_CELL] = [number for verdicts in lists for number in range(len(verdicts))]
        return cells, origins

    decision = f"a row is a task: {name!r} lists the verdicts of its attempts"
    new = replace(columns, meaning=MappingProxyType(meaning), rivals=())
    return Shape(new, rearrange, (decision,))


@dataclass(slots=True)
class RivalVerdicts:
    """Counts what other columns that may hold the verdict would have given."""

    chosen: str
    rivals: Sequence[str]
    score: str = ""
    _words: RewardWords = field(default_factory=RewardWords)
    _rewards: dict[str, list[float]] = field(default_factory=dict)

    def add(self, chunk: Chunk) -> None:
        """Take the next rows; a column with a cell that is no reward is no rival."""
        if not self.rivals:
            return
        for name in (self.chosen, *self.rivals):
            try:
                numbers = [self._words[cell] for cell in chunk[name]]
            except (ValueError, TypeError, KeyError):
                if name == self.chosen:
                    self.rivals = ()
                    return
                self.rivals = [rival for rival in self.rivals if rival != name]
                continue
            self._rewards.setdefault(name, []).extend(numbers)

    def decisions(self, pass_at: float | None, source: str) -> tuple[str, ...]:
        """Sentences about the rivals; two that give different numbers are refused with both."""
        import numpy as np

        def verdicts(name: str) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
            rewards = np.array(self._rewards[name])
            at = 1.0 if pass_at is None and np.nanmax(rewards, initial=0) > 1 else pass_at
            return verdicts_from_rewards(rewards, at).verdicts

        def is_graded(name: str) -> bool:
            return any(r == r and r not in (0.0, 1.0, -1.0) for r in self._rewards[name])

        lines = []
        for rival in self.rivals:
            mine, other = verdicts(self.chosen), verdicts(rival)
            if len(mine) != len(other) or (mine == other).all():
                continue
            if is_graded(rival) and not is_graded(self.chosen):
                use = "read as the score" if rival == self.score else "not used"
                lines.append(f"column {self.chosen!r} decides; {rival!r} is graded and {use}")
                continue
            passes = [int((each == 1).sum()) for each in (mine, other)]
            raise ReadError(
                f"columns {self.chosen!r} and {rival!r} may both hold the verdict, and differ: "
                f"{passes[0]:,} and {passes[1]:,} of {counted(len(mine), 'attempt')} passed.",
                source=source,
                hint=f"Choose: --map success={self.chosen}, or --map success={rival}",
            )
        return tuple(lines)
