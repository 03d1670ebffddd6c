"""Tables with a column for each attempt, model or task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from passhat._display import some
from passhat.errors import shorten
from passhat.stats.outcomes.cells import CellCodes, is_empty, parse_number
from passhat.stats.outcomes.columns import (
    ALIASES,
    ANSWER_NAMES,
    DATES,
    MEASURES,
    SUMMARIES,
    ColumnMap,
    cross_headings,
    fold_name,
    is_negative,
)
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import (
    RewardWords,
    are_endings,
    has_failure_reasons,
    is_agent_ending,
    is_odd_ending,
)

FRACTION = re.compile(
    r"\s*(\d+)\s*(?:/|of|out of|von|sur|su|de|di|из)\s*(\d+)\s*(?:\(\s*[\d.,]+\s*%\s*\)\s*)?"
    r"(?:(?:runs|attempts|trials|tries)?\s*(?:pass(?:ed|es)?|ok|solved|succeeded|correct)\s*)?",
    re.IGNORECASE,
)
"""Passes of attempts: 3/4, 3 of 4, 3/4 (75%), 3 out of 4 passed."""
N_CELL, PASSES_CELL = "passhat:n", "passhat:c"


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


def distinct_cells(cells: Sequence[object]) -> list[object]:
    """The different cells that are not empty."""
    values: Iterable[object] = cells.values if isinstance(cells, CellCodes) else cells
    with suppress(TypeError):  # nearly always texts, without a call in Python for each
        return list(dict.fromkeys(filter(str.strip, values)))  # type: ignore[arg-type]
    texts = {str(value): value for value in values if value is not None and str(value).strip()}
    return list(texts.values())


def list_unused(columns: ColumnMap, chunk: Chunk) -> list[str]:
    """Columns without a meaning."""
    used = set(columns.meaning.values()) | set(columns.slices.values())
    return [name for name in chunk if name not in used and name.strip()]


def reward_or_none(words: RewardWords, cell: object) -> float | None:
    """The reward behind a cell, NaN for an empty one, ``None`` for a word that is no verdict."""
    try:
        return words[cell]
    except (ValueError, TypeError, OverflowError):
        return None


_MODEL = re.compile(
    r"((sprach|ki-?)?modell?|agent|system|llm|bot)(\b|_|[A-Z]$)|.*(gpt|claude|sonnet|opus|haiku|llama|gemini|"
    r"gemma|qwen|mistral|mixtral|deepseek|grok|phi-?\d|command-r|kimi|glm|nova|o[134]\b)",
    re.IGNORECASE,
)
"""Headings that name a model: without one of these a wide table is refused with a hint."""
_JUDGES = {"judge", "judges", "rater", "grader", "annotator", "reviewer", "evaluator", "labeler"}
_TRIAL_WORDS = {
    *("run", "trial", "attempt", "seed", "sample", "try", "rep", "repeat", "repetition"),
    *("iteration", "iter", "epoch", "pass", "k", "r", "t", "a", "s", "round", "rollout"),
    *("replicate", "generation", "gen", "completion", "day", "week", "versuch", "durchlauf"),
    *("lauf", "essai", "tentative", "intento", "tentativa", "prova", "попытка", "第", "試行"),
    *("시도", "number"),
}
"""Before a number in the heading of a column: the column is an attempt."""
_VERDICT_WORDS = {*ALIASES["success"], "ok", "points", "grade", "is_ok"}
_LABELS = re.compile(rf"{MEASURES.pattern}|.*(date|day|stamp|error|message|status)", re.I)
"""Columns that differ from attempt to attempt."""
_TRIAL_FIRST = re.compile(r"((?:run|trial|attempt|seed|rep)[\s_#-]*\d+)[\s_./|:-]+(.+)", re.I)
_LONGEST_NAME = 200
"""A name of megabytes would take an expression minutes."""
_WORDS = ("model", "trial", "task")
_LABEL_CELLS = {word: f"passhat:{word}" for word in _WORDS}
_VERDICT_CELL = "passhat:success"


@dataclass(frozen=True, slots=True)
class _WideColumn:
    """A column of cells, and the model, attempt or task that its heading names."""

    name: str
    labels: tuple[tuple[str, object], ...]


def find_wide(columns: ColumnMap, chunk: Chunk, *, numbered_only: bool = False) -> Shape | None:
    """The shape of a table with a column of cells for each attempt, model or task.

    ``numbered_only`` looks for columns such as run_1 and run_2 alone.
    """
    if "task" not in columns.meaning:
        return _task_columns(columns, chunk)
    names = [name for name in list_unused(columns, chunk) if len(name) <= _LONGEST_NAME]
    names = [name for name in names if not is_negative(name)]
    numbered = _numbered_columns(names, chunk)
    if _is_one_sided([column.name for column in numbered], chunk):
        return None
    if numbered and not all(_holds_fractions(chunk[column.name]) for column in numbered):
        return _unpivot(columns, numbered, chunk)
    if numbered_only:
        return None
    names = [name for name in names if _holds_rewards(chunk[name])]
    dated = [name for name in names if DATES.fullmatch(name.strip())]
    if len(dated) > 1:
        return _unpivot(columns, [_WideColumn(n, (("trial", n.strip()),)) for n in dated], chunk)
    if any(map(is_model_name, names)) and _are_percentages(columns, names, chunk):
        return None
    models = _model_columns(columns, names, chunk)
    if not models or _is_one_sided([column.name for column in models], chunk):
        return None
    return _unpivot(columns, models, chunk)


def _are_percentages(columns: ColumnMap, names: Sequence[str], chunk: Chunk) -> bool:
    """Whether columns of other models hold numbers up to 100: 0 and 1 are percentages, too."""
    others = [n for n in list_unused(columns, chunk) if n not in names and is_model_name(n)]
    cells = [cell for name in _without_measures(others) for cell in distinct_cells(chunk[name])]
    return any((parse_number(cell) or 0) > 1 for cell in cells)


def _is_one_sided(names: Sequence[str], chunk: Chunk) -> bool:
    """Whether another word stands beside failures alone, or passes alone: proved and failed."""
    cells = {str(cell).strip() for name in names for cell in distinct_cells(chunk[name])}
    rewards = {cell: reward_or_none(RewardWords(), cell) for cell in cells}
    odd = [cell for cell, r in rewards.items() if r is None and re.fullmatch(r"[^/,]+", cell)]
    return len(odd) == 1 and not is_odd_ending(odd[0]) and not {0.0, 1.0} <= {*rewards.values()}


def is_model_name(name: str) -> bool:
    """Whether a heading or a key names a model by its words."""
    return len(name) <= _LONGEST_NAME and _MODEL.match(name.strip()) is not None


def is_judge_name(name: str) -> bool:
    """Whether a heading names a judge of the attempts, as judge_gpt and Rater 2 do."""
    return any(word in _JUDGES for word in _name_words(re.sub(r"\d+", " ", name)))


def unpivot_all(columns: ColumnMap, chunk: Chunk, word: str) -> Shape:
    """Every column of verdicts is a model, or an attempt, as the user states."""
    stated = columns.meaning[word].partition(":")[2] if word in columns.meaning else ""
    names = _without_measures(verdict_columns(columns, chunk, fractions=True))
    names = [name for name in names if not SUMMARIES.fullmatch(name.strip())] or names
    expected = columns.meaning.get("expected")
    good = columns.meaning.get("success", "")
    if expected is not None:
        names = find_answers(columns, chunk, expected)
    elif good:
        columns = columns.without("success")
        names = _columns_with(good, columns, chunk)
    names = [name for name in stated.split("|") if name in chunk] if stated else names
    if word == "trial":
        names = names or [
            column.name for column in _numbered_columns(list_unused(columns, chunk), chunk)
        ]
    if not names:
        return Shape(columns.without(word))
    shape = _unpivot(columns, _label_columns(names, word), chunk, expected)
    if not good or expected is not None:
        return shape

    def rearrange(part: Chunk) -> tuple[Chunk, list[int] | None]:
        cells = {name: _mark_cells(part[name], good) for name in names if name in part}
        return shape.rearrange({**part, **cells})

    return replace(shape, rearrange=rearrange, decisions=(*shape.decisions, f"{good!r} passes"))


def _label_columns(names: Sequence[str], word: str) -> list[_WideColumn]:
    """The columns with a name or a number each; as attempts also with the models in their names."""
    if word != "trial":
        return [_WideColumn(name, ((word, name.strip()),)) for name in names]
    headings = [parsed for name in names if (parsed := _parse_heading(name.strip()))]
    if len(headings) == len(names) and len({(model, number) for _, model, number in headings}) > 1:
        pairs = zip(names, headings, strict=True)
        return _name_attempts([(name, model, number) for name, (_, model, number) in pairs])
    crossed = cross_headings(names)
    if crossed:
        return _name_attempts(crossed)
    return [_WideColumn(name, (("trial", place),)) for place, name in enumerate(names, 1)]


def _columns_with(word: str, columns: ColumnMap, chunk: Chunk) -> list[str]:
    """Columns without a meaning that hold a word among few others."""
    cells = {
        name: set(map(str, distinct_cells(chunk[name]))) for name in list_unused(columns, chunk)
    }
    start = {text for texts in cells.values() if word in texts and len(texts) < 9 for text in texts}
    if AT_LEAST.fullmatch(word):
        numbers = {name: [parse_number(text) for text in texts] for name, texts in cells.items()}
        return [name for name, found in numbers.items() if found and None not in found]
    return [name for name, texts in cells.items() if texts and texts <= start]


AT_LEAST = re.compile(r">=\s*(\d+(?:\.\d+)?)")
"""Scores from which on a cell of a wide table passes, in place of a word."""


def _mark_cells(cells: Sequence[object], word: str) -> list[object]:
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    if rule := AT_LEAST.fullmatch(word):
        numbers = [parse_number(text) for text in texts]
        return [None if number is None else int(number >= float(rule[1])) for number in numbers]
    return [int(text == word) if text else None for text in texts]


def find_answers(columns: ColumnMap, chunk: Chunk, expected: str) -> list[str]:
    """Columns without a meaning whose cells equal the right answer in some row, and in some not."""
    keys = [str(cell).strip() for cell in chunk[expected]]
    found = []
    for name in list_unused(columns, chunk):
        pairs = zip(map(str, chunk[name]), keys, strict=True)
        hits = [cell.strip() == key for cell, key in pairs]
        if name != expected and any(hits) and not all(hits):
            found.append(name)
    return found


def verdict_columns(columns: ColumnMap, chunk: Chunk, *, fractions: bool = False) -> list[str]:
    """Columns without a meaning that hold verdicts: yes or no, 1 or 0.

    Some cells may be words such as ``timeout``; mostly words make a column of remarks, and any
    other number one of scores or times. ``fractions`` are cells such as 3/4.
    """
    names = [name for name in list_unused(columns, chunk) if not is_negative(name)]
    names = [name for name in names if fold_name(name) not in ANSWER_NAMES and not _is_id(name)]
    return [
        name
        for name in names
        if _holds_verdicts(chunk[name]) or (fractions and _holds_fractions(chunk[name]))
    ]


def _is_id(name: str) -> bool:
    """Whether a column holds ids: one of zeros alone is no column of failures."""
    return re.fullmatch(r"(.*_)?(id|uuid|guid|hash|sha)", fold_name(name)) is not None


def _holds_verdicts(column: Sequence[object]) -> bool:
    words = RewardWords()
    rewards = [reward_or_none(words, cell) for cell in distinct_cells(column)]
    numbers = [reward for reward in rewards if reward is not None and reward == reward]
    is_verdict = bool(numbers) and all(number in (0.0, 1.0) for number in numbers)
    if not is_verdict or None not in rewards:
        return is_verdict
    cells = [reward_or_none(words, cell) for cell in column]
    return 2 * cells.count(None) <= len(cells)


def _holds_fractions(column: Sequence[object]) -> bool:
    cells = distinct_cells(column)
    return bool(cells) and all(isinstance(c, str) and FRACTION.fullmatch(c) for c in cells)


def _holds_rewards(column: Sequence[object]) -> bool:
    """Whether most cells are verdicts, scores up to 1, or passes such as 3/4; or all are empty."""
    if _holds_fractions(column) or _holds_verdicts(column) or not distinct_cells(column):
        return True
    words = RewardWords()
    cells = [reward_or_none(words, cell) for cell in column]
    numbers = [cell for cell in cells if cell is not None and cell == cell]
    is_rate = any(str(cell).strip().endswith("%") for cell in distinct_cells(column))
    return (
        (bool(numbers) and not is_rate)
        and all(0 <= number <= 1 for number in numbers)
        and 2 * cells.count(None) <= len(cells)
    )


_Family = tuple[tuple[str, ...], tuple[str, ...]]
"""The words for an attempt and for a verdict that the headings of some columns share."""


def _numbered_columns(names: Sequence[str], chunk: Chunk) -> list[_WideColumn]:
    """The columns of attempts: run_1, trial_0_reward, score 2, gpt-4 run 1."""
    families: dict[_Family, list[tuple[str, str, int]]] = {}
    for name in names:
        # pandas writes the second column "passed" as passed.1
        heading = f"{name.strip()}.0" if f"{name}.1" in names else name.strip()
        parsed = _parse_heading(heading)
        if parsed is not None:
            family, model, number = parsed
            families.setdefault(family, []).append((name, model, number))
    rewarding = {
        key: [
            member
            for member in members
            if _holds_rewards(cells := chunk[member[0]]) or are_endings(distinct_cells(cells))
        ]
        for key, members in families.items()
        if len(members) > 1
    }
    # Of trial_0_reward and trial_0_score one is read; the order is that of the names of verdicts.
    best = [
        (key, members)
        for key, members in rewarding.items()
        if len(members) > 1 and any(distinct_cells(chunk[name]) for name, _, _ in members)
    ]
    if not best:
        return []
    family, members = min(best, key=lambda entry: _verdict_rank(entry[0][1]))
    texts = {str(c) for name, *_ in members for c in distinct_cells(chunk[name])}
    words = {text for text in texts if len(texts) < 9 and parse_number(text) is None}
    # A column of T/O beside others of P, F and T/O is an attempt, too.
    near = [m for m in families[family] if words & set(map(str, distinct_cells(chunk[m[0]])))]
    members = [m for m in families[family] if m in members or m in near]
    if len({(model, number) for _, model, number in members}) < len(members):
        return []
    return _name_attempts(members)


def _name_attempts(members: Sequence[tuple[str, str, int]]) -> list[_WideColumn]:
    """Columns with the number of the attempt, and with the model where there is any."""
    models, wide = {model for _, model, _ in members}, []
    for name, model, number in members:
        # A seed tells attempts apart, and gives no order.
        label = ("trial", name.strip() if "seed" in name.lower() else number)
        group = (("model", model.strip(" _./|(:#№-")),) if models != {""} else ()
        wide.append(_WideColumn(name, (*group, label)))
    return wide


def _parse_heading(heading: str) -> tuple[_Family, str, int] | None:
    """The words of a heading with a number, the model in it, and the number."""
    swapped = _TRIAL_FIRST.fullmatch(heading)
    if swapped and is_model_name(swapped[2]):  # run1_gpt4
        heading = f"{swapped[2]} {swapped[1]}"
    match = re.fullmatch(r"(.*?)(\d+)(\D*)", heading)
    if match is None:
        return None
    before, after = _name_words(match[1]), _name_words(match[3].strip().removesuffix("次"))
    before += ["number"] if before and match[1].rstrip().endswith(("#", "№")) else []
    after = [w for w in after if w not in ("回", "回目", "次目", "회", "st", "nd", "rd", "th")]
    trial = [word for word in before if word in _TRIAL_WORDS]
    verdict = [word for word in (*before, *after) if word in _VERDICT_WORDS]
    rest = [word for word in before if word not in (*trial, *verdict)]
    model = re.split(rf"(?i)[\s_./|-]*(?:{'|'.join(trial)})[\s_#.-]*$", match[1])[0]
    if any(word not in _VERDICT_WORDS for word in after):
        return None
    if rest and not (trial and before[-1] in _TRIAL_WORDS):
        return None  # gpt-4: the number belongs to the name
    if not before and not after:
        trial = ["number"]
    if not trial and not verdict:
        return None
    return (tuple(trial), tuple(verdict)), model if rest else "", int(match[2])


def _verdict_rank(words: tuple[str, ...]) -> int:
    order = ALIASES["success"]
    return min((order.index(word) for word in words if word in order), default=-1)


def _name_words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s_#./|:()-]+", fold_name(text)) if word]


def _model_columns(columns: ColumnMap, names: Sequence[str], chunk: Chunk) -> list[_WideColumn]:
    """The columns of models: gpt-4 and claude, or gpt-4_passed and claude_passed."""
    by_suffix: dict[str, list[_WideColumn]] = {}
    for name in names:
        words = name.strip().rstrip("?")
        for pattern in (r"(.+?)[\s_./|:-]+([A-Za-z]+)", r"([A-Za-z]+)[\s_./|:-]+(.+)"):
            match = re.fullmatch(pattern, words)
            if match is None:
                continue
            verdict, model = (match[2], match[1]) if pattern.startswith("(.") else match.groups()
            if fold_name(verdict) in _VERDICT_WORDS and not SUMMARIES.fullmatch(model):
                column = _WideColumn(name, (("model", model.strip()),))
                by_suffix.setdefault(fold_name(verdict), []).append(column)
                break
    families = [
        (verdict, family)
        for verdict, family in by_suffix.items()
        # build_passed and test_passed are no models.
        if len(family) > 1 and any(is_model_name(str(c.labels[0][1])) for c in family)
    ]
    if families:
        return min(families, key=lambda entry: _verdict_rank((entry[0],)))[1]
    plainer = tuple(f"{name.strip()}_" for name in names if not is_model_name(name))
    if any(map(is_judge_name, names)) or any(name.startswith(plainer) for name in names):
        return []  # verdicts of judges on one model: passed, and passed_by_gpt
    plain = _without_measures(names)
    plain = [name for name in plain if not SUMMARIES.fullmatch(name.strip())]
    by_name = [name for name in plain if _MODEL.match(name.strip())]
    has_counts = all(_holds_fractions(chunk[name]) for name in by_name)
    is_alike = _holds_fractions if has_counts else _holds_verdicts
    verdicts = [name for name in plain if is_alike(chunk[name])]
    if len(by_name) < len([name for name in plain if distinct_cells(chunk[name])]):
        # One name of a model is enough where all the others hold verdicts, too.
        others = [name for name in verdicts if name not in by_name]
        if not by_name or any(fold_name(name) in _KNOWN_NAMES for name in others):
            return []
        by_name = [name for name in plain if name in verdicts or name in by_name]
    endings = {name.rpartition("_")[2] for name in by_name if "_" in name}
    rest = [name for name in list_unused(columns, chunk) if name not in by_name]
    if len(endings) == 1 and any(name.endswith("_" + next(iter(endings))) for name in rest):
        return []  # other columns of the kind hold other numbers: they are to be read alike
    models = [_WideColumn(name, (("model", name.strip()),)) for name in by_name]
    return models if len(models) > 1 or (len(models) == 1 and len(columns.meaning) == 1) else []


_KNOWN_NAMES = frozenset(alias for aliases in ALIASES.values() for alias in aliases) | {
    *("cached", "human", "flag", "skipped", "valid", "used_tool", "timeout", "truncated"),
    *("refused", "verified", "public", "hard", "easy"),
}


def _without_measures(names: Sequence[str]) -> list[str]:
    """Without model_a_time beside model_a."""

    def is_longer(name: str) -> bool:
        return any(name != other and name.startswith(other) for other in names)

    return [name for name in names if not (MEASURES.fullmatch(name) and is_longer(name))]


def _task_columns(columns: ColumnMap, chunk: Chunk) -> Shape | None:
    """A row for each model or attempt, and a column for each task."""
    row_words = [word for word in ("model", "trial") if columns.meaning.get(word) in chunk]
    names = [n for n in verdict_columns(columns, chunk) if not SUMMARIES.fullmatch(n.strip())]
    if not row_words or len(names) < 2 or "success" in columns.meaning:
        return None
    if all(re.match(r"(?i)(sub)?(part|step|stage|phase)[\s_-]?\d", name.strip()) for name in names):
        return None  # parts of the task that the row is about
    rest = [n for n in list_unused(columns, chunk) if n not in names and _holds_verdicts(chunk[n])]
    rows = list(zip(*(map(str, chunk[columns.meaning[word]]) for word in row_words), strict=True))
    others = [n for n in list_unused(columns, chunk) if n not in names and not _LABELS.fullmatch(n)]
    if any(len({*zip(rows, map(str, chunk[n]), strict=True)}) > len({*rows}) for n in others):
        return None  # another column tells the rows of a model apart: it may be the task
    texts = [n for n in others if len({*map(str, chunk[n])}) == len(rows) == len({*rows}) > 2]
    if row_words == ["trial"] and any(" " in str(chunk[n][0]) for n in texts):
        return None  # numbers of tasks, whose text is beside them
    wide = [_WideColumn(name, (("task", name.strip()),)) for name in names]
    return _unpivot(columns, wide, chunk) if len(names) > 1 and len(rest) < len(names) else None


def _join_tasks(
    tasks: Sequence[object] | None, rows: list[int], cells: Mapping[str, Sequence[object]]
) -> dict[str, Sequence[object]]:
    """The task of a row and the heading of a column together, where both name a task."""
    if tasks is None:
        return {}
    headings = cells[_LABEL_CELLS["task"]]
    return {
        _LABEL_CELLS["task"]: [
            f"{tasks[row]}/{heading}" for row, heading in zip(rows, headings, strict=True)
        ]
    }


def _judge_answers(
    answers: list[object], keys: Sequence[object] | None, origins: Sequence[int]
) -> list[object]:
    """Whether answers equal the right one of their row; without right ones they stay."""
    if keys is None:
        return answers
    pairs = [
        ["" if cell is None else str(cell).strip() for cell in (answer, keys[row])]
        for answer, row in zip(answers, origins, strict=True)
    ]
    return [int(answer == key) if answer and key else None for answer, key in pairs]


def _word_decisions(
    words: Sequence[str], names: Sequence[str], others: Sequence[str], cells: str
) -> tuple[str, ...]:
    kinds = {"model": "model", "trial": "attempt", "task": "task"}
    what = " and ".join(kinds[word] for word in words)
    decisions = [f"a column for each {what}: {some(names, 6)}", cells]
    decisions += [f"columns not read: {some(others, 6)}"] if others else []
    return tuple(filter(None, decisions))


def _planned_column(others: Sequence[str], names: Sequence[str], chunk: Chunk) -> str | None:
    """The column with the number of attempts at each task: the cells of the others are empty."""
    rows = list(zip(*(chunk[name] for name in names), strict=True))
    filled = [max((i for i, c in enumerate(row, 1) if not is_empty(c)), default=0) for row in rows]
    for name in others if len(set(filled)) > 1 else ():
        counts = [parse_number(cell) for cell in chunk[name]]
        pairs = list(zip(counts, filled, strict=True))
        is_bound = all(count is not None and count >= last for count, last in pairs)
        if is_bound and 3 * sum(count == last for count, last in pairs) > 2 * len(pairs):
            return name
    return None


def _unpivot(
    columns: ColumnMap, wide: Sequence[_WideColumn], chunk: Chunk, expected: str | None = None
) -> Shape:
    """The shape in which every cell of these columns is an attempt, or the counts of a task.

    With ``expected`` a cell is an answer, which passes where it equals that of this column.
    """
    words = [word for word, _ in wide[0].labels]
    names = [column.name for column in wide]
    others = [name for name in list_unused(columns, chunk) if name not in names]
    task_column = columns.meaning.get("task", "") if "task" in words else ""
    columns = columns.without(*words, "score", "n", "c", "fails", "rate")
    filled = [name for name in names if distinct_cells(chunk[name])]
    has_counts = all(_holds_fractions(chunk[name]) for name in filled)
    cell_names = {"n": N_CELL, "c": PASSES_CELL} if has_counts else {"success": _VERDICT_CELL}
    meaning = {**columns.meaning, **{word: _LABEL_CELLS[word] for word in words}, **cell_names}
    reward_words, odd_cells, failed_cells = RewardWords(), Counter[str](), Counter[str]()
    has_reasons = any(has_failure_reasons(distinct_cells(chunk[name])) for name in filled)

    def verdict_cell(cell: object) -> object:
        if reward_or_none(reward_words, cell) is not None:
            return cell
        is_failure = has_reasons and is_agent_ending(str(cell))
        (failed_cells if is_failure else odd_cells)[shorten(cell)] += 1
        return 0 if is_failure else None

    def rearrange(part: Chunk) -> tuple[Chunk, list[int]]:
        size = len(next(iter(part.values())))
        origins = [row for row in range(size) for _ in names]
        columns_of_cells = [part.get(name, [None] * size) for name in names]
        values = [column[row] for row in range(size) for column in columns_of_cells]
        values = _judge_answers(values, part.get(expected or ""), origins)
        if has_counts:  # a model without any attempt at a task has no row
            kept = [i for i, v in enumerate(values) if v is not None and str(v).strip()]
        else:
            counts = part.get(planned or "", [None] * size)
            most = [len(names) if is_empty(c) else parse_number(c) or 0 for c in counts]
            most = [most[row] for row in origins]
            kept = [i for i, v in enumerate(values) if i % len(names) < most[i] or not is_empty(v)]
        labels = [column.labels for _ in range(size) for column in wide]
        cells: dict[str, Sequence[object]] = {
            name: [part[name][origins[i]] for i in kept] for name in part if name not in names
        }
        for place, word in enumerate(words):
            cells[_LABEL_CELLS[word]] = [labels[i][place][1] for i in kept]
        cells |= _join_tasks(part.get(task_column), [origins[i] for i in kept], cells)
        if has_counts:
            pairs = [FRACTION.fullmatch(str(values[i])) or (None, *[values[i]] * 2) for i in kept]
            cells[N_CELL] = [pair[2] for pair in pairs]
            cells[PASSES_CELL] = [pair[1] for pair in pairs]
        else:
            cells[_VERDICT_CELL] = [verdict_cell(values[i]) for i in kept]
        return cells, [origins[i] for i in kept]

    def remarks() -> tuple[str, ...]:
        kinds = (("missing attempts", odd_cells), ("failed attempts", failed_cells))
        return tuple(
            f"cells read as {kind}: {some([f'{cell} ({n:,})' for cell, n in cells.items()], 6)}"
            for kind, cells in kinds
            if cells
        )

    cells_said = "a cell holds passes / attempts" if has_counts else ""
    planned = _planned_column(others, names, chunk) if words == ["trial"] else None
    if planned:
        cells_said = f"cells beyond the number in {planned!r} are no attempts"
    if expected is not None:
        cells_said = f"an answer passes where it equals {expected!r}"
    ignored = tuple(name for name in columns.ignored if name not in names)
    return Shape(
        replace(columns, meaning=MappingProxyType(meaning), rivals=(), ignored=ignored),
        rearrange,
        _word_decisions(words, names, [n for n in others if n != expected], cells_said),
        remarks,
    )
