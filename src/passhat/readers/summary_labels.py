"""Words of rows that sum up others, beside verdicts, and in headings that number attempts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from passhat._display import some
from passhat.errors import InvalidValue, ReadError
from passhat.readers.parsing import Rewrite
from passhat.readers.record_map import REWARD_WORDS, RecordMap, likely_pass, map_option, rule_option
from passhat.readers.row_groups import RUN_PARTS, TASK_PARTS
from passhat.readers.wide_tables import (
    Shape,
    distinct_cells,
    is_model_name,
    list_unused,
    reward_or_none,
)
from passhat.stats.outcomes.cells import CellCodes, is_empty
from passhat.stats.outcomes.columns import (
    ALIASES,
    JOIN_SIGN,
    SUMMARIES,
    ColumnMap,
    fold_name,
    split_joined,
)
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import (
    REWARD_NAMES,
    RewardWords,
    has_failure_reasons,
    is_agent_ending,
    is_failure_reason,
    is_odd_ending,
)

TOTAL_WORDS = frozenset(
    {
        *(
            "pass count",
            "passed count",
            "success count",
            "number passed",
            "total",
            "totals",
            "grand total",
            "subtotal",
            "overall",
            "average",
            "avg",
            "averages",
        ),
        *("ø", "σ", "∑", "all tasks"),
        *("gesamt", "summe", "durchschnitt", "mittelwert", "moyenne", "promedio", "totale"),
        *("итого", "всего", "среднее", "合计", "总计", "平均", "合計", "합계", "평균"),
    }
)
"""Words for a sum or an average that are no name of anything else."""
STATISTICS = frozenset(
    {
        *("mean", "sum", "median", "std", "stdev", "std dev", "sd", "stderr", "sem", "variance"),
        *("mittel", "média", "médiane", "somma", "suma", "średnia", "均值"),
    }
)
"""Also names of tasks and of groups of tasks: functions, kinds of questions."""
_WHAT_IS_COUNTED = re.compile(
    r"(of\s+)?(the\s+)?(pass(es|ed|ing)?|correct|solved|resolved|success(es|ful)?|ok|yes|wins?|scores?|"
    r"[✓✔✅%#]|points|failures?|failed|fails?|pass rate|success rate|accuracy|rate|ja|nein|"
    r"bestanden|"
    r"erfolg(e|reich)?|gelöst|réussis?|réussites?|oui|sí|aciertos|éxitos|aprobad[oa]s|trials?|runs?|"
    r"attempts?|tasks?|all)(\s+(of|out of|/)\s*\d+)?"
)
"""Behind a word for a total: Total passed, Summe ja."""
_NUMBERED = re.compile(r"[^\W\d]*[\s_#.-]*\d+")
_GROUPS = TASK_PARTS | RUN_PARTS
_OTHER_SUMMARIES = re.compile(r"(maj|best|mean|avg)@\w+|summary|aggregated?|media")
_ROW_KINDS = frozenset({"row_type", "record_type", "row_kind", "aggregation", "aggregate", "stat"})


def fold_label(cell: object) -> str:
    """A label as the words for totals are written: ``avg`` for ``**Avg.**`` and ``AVG (n=3)``."""
    text = "" if cell is None else str(cell)[:80].strip(" *_`").lower()
    if text.isalnum():  # nearly always
        return text
    text = re.split(r"\s*[(\[±=]", text, maxsplit=1)[0].strip(" *_`.:")
    first, _, rest = text.partition(" ")
    first = first.rstrip(":")
    is_total = first in TOTAL_WORDS or first in STATISTICS
    return first if is_total and rest and _WHAT_IS_COUNTED.fullmatch(rest) else text


def fold_labels(cells: Iterable[object]) -> Iterator[str]:
    """The labels without those that end in a digit, as names of tasks do: no word does."""
    texts = map(str, cells)
    return map(fold_label, [t for t in texts if not t[-1:].isdigit() or "±" in t])


def is_average(label: str) -> bool:
    """Whether a label is a word for a sum, an average or another statistic."""
    return label in TOTAL_WORDS or label in STATISTICS


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def is_summary(label: str) -> bool:
    """Whether a label beside numbers of attempts is a word for what is made from others."""
    if _NUMBERED.fullmatch(label):
        return False
    found = SUMMARIES.fullmatch(label) or _OTHER_SUMMARIES.fullmatch(label)
    return is_average(label) or found is not None


@dataclass(slots=True)
class LabelFilter:
    """Takes rows out whose label sums up others: mean among the numbers of attempts.

    In the column of the model or the attempt such a word is no name. In one of a group of tasks
    or of a setting it may be: there a row sums up others where one of them has the same task.
    """

    stated: Mapping[str, str]
    """The columns that the user states."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows left out, by column and label."""
    _columns: dict[str, str] = field(default_factory=dict)
    _odd_labels: dict[tuple[str, str], None] = field(default_factory=dict)
    """Words such as final among the numbers of attempts."""
    _tasks: Sequence[str] = ()
    _others: set[str] = field(default_factory=set)
    """Columns in which a label was found that is no such word."""
    _words: dict[str, str] = field(default_factory=dict)
    """Columns in which there was nothing else so far, with the word."""

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The other rows, and their lines."""
        if not self._columns:
            self._find_columns(chunk)
        left_out: set[int] = set()
        for name, word in self._columns.items():
            if name in chunk:
                left_out |= self._find_rows(name, word, chunk)
        if not left_out:
            return chunk, lines
        places = [row for row in range(len(lines)) if row not in left_out]
        rest = {name: [cells[row] for row in places] for name, cells in chunk.items()}
        return rest, [lines[row] for row in places]

    def has_summary(self, cells: Mapping[str, object]) -> bool:
        """Whether a single record, by its task, attempt and model, sums up others."""
        for word, cell in cells.items():
            if not isinstance(cell, str):
                continue
            label = fold_label(cell)
            if label in TOTAL_WORDS or (word != "task" and is_average(label)):
                self.counts[word, str(cell)] += 1
                return True
        return False

    def _find_columns(self, chunk: Chunk) -> None:
        """The columns that tell rows of a task apart, and the meaning of each."""
        stated = {word: name for word, name in self.stated.items() if name in chunk}
        meaning = ColumnMap.resolve(chunk, stated).meaning
        self._tasks = split_joined(meaning.get("task", ""))
        self._columns = {meaning[word]: word for word in ("trial", "model") if word in meaning}
        used = set(meaning.values()) - {meaning.get("suite")}
        for name in chunk:
            fold = fold_name(name)
            if name not in used and fold in _ROW_KINDS:
                self._columns[name] = "kind"
            elif name not in used and (name == meaning.get("suite") or fold in _GROUPS):
                self._columns[name] = "group"

    def _find_rows(self, name: str, word: str, chunk: Chunk) -> set[int]:
        """The rows with a word for a summary in a column."""
        cells = chunk[name]
        values = cells.values if isinstance(cells, CellCodes) else set(map(str, cells))
        labels = {text: "" if text.isdigit() else fold_label(text) for text in map(str, values)}
        others = {text for text, label in labels.items() if not (label and is_average(label))}
        others -= {"", "None"}
        is_numbered = word == "trial" and 2 * sum(map(_has_digit, others)) >= len(others) > 0
        known = is_summary if is_numbered or word == "kind" else is_average
        words = {text for text, label in labels.items() if label and known(label)}
        if is_numbered:
            odd = {
                text for text in others if not _has_digit(text) and not is_summary(fold_label(text))
            }
            self._odd_labels |= dict.fromkeys((name, text) for text in sorted(odd))
        if name in self._words and others:
            raise InvalidValue(
                f"has rows with {self._words[name]!r} in column {name!r}, and others: the former "
                "look like sums of the latter.",
                hint="Delete those rows; if they are attempts, give them another name.",
            )
        if not words:
            self._others |= {name} if others else set()
            return set()
        if not others and name not in self._others:
            if word in ("trial", "kind") and any(labels[text] in STATISTICS for text in words):
                raise InvalidValue(
                    f"holds no attempts: {some(sorted(words), 3)} in column {name!r} are "
                    "summaries of others.",
                    hint="Give the attempts, or the numbers n and c of attempts and passes.",
                )
            self._words[name] = min(words)
            return set()
        self._others.add(name)
        rows = {row for row, cell in enumerate(cells) if str(cell) in words}
        if word == "group":
            rows = {row for row in rows if labels[str(cells[row])] in TOTAL_WORDS}
            columns = [chunk[each] for each in self._tasks if each != name and each in chunk]
            tasks = [" ".join(map(str, parts)) for parts in zip(*columns, strict=True)]
            rest = {task for row, task in enumerate(tasks) if row not in rows}
            rows = {row for row in rows if not tasks or tasks[row] in rest | {"", "None"}}
        self.counts.update((name, str(cells[row]).strip()) for row in rows)
        return rows

    @property
    def decisions(self) -> tuple[str, ...]:
        """Decisions about rows left out."""
        words = [f"{label!r} in {name!r} ({n:,})" for (name, label), n in self.counts.items()]
        lines = [f"left out as summaries of other rows: {some(words, 4)}"] if words else []
        odd = [f"{label!r} in {name!r}" for name, label in self._odd_labels]
        return (*lines, f"read as attempts: {some(odd, 4)}") if odd else tuple(lines)


_FEW_WORDS = 6


def suite_remarks(columns: ColumnMap) -> Iterator[str]:
    """The option for one run of all suites."""
    named = columns.names_of("suite", "task")
    if len(named) == 2:
        joined = f"task={named['suite']}{JOIN_SIGN}{named['task']}"
        yield f"a run for each {named['suite']!r}; for one run of all: --map '{joined}'"


class UnknownWords(InvalidValue):
    """The words of a column are no verdicts."""


def refuse_other_words(columns: ColumnMap, chunk: Chunk, cells: Sequence[object]) -> None:
    """Refuse words of which none is known as a pass, or none as a failure, beside others.

    ``completed`` beside failures may mean a pass or an end, and C and I are grades.
    """
    success, words = columns.meaning["success"], RewardWords()
    rewards = {str(cell): reward_or_none(words, cell) for cell in cells}
    others = [text for text, reward in rewards.items() if reward is None]
    others = [text for text in others if not is_odd_ending(text)]
    is_word = not any(re.search(r"\d", text) for text in others)
    if "success" in columns.stated or not others or len(cells) > _FEW_WORDS or not is_word:
        return
    if {0.0, 1.0} <= set(rewards.values()) or len(chunk[success]) <= len(cells):
        return
    word = likely_pass([text for text, reward in rewards.items() if reward == 1] or others)
    raise UnknownWords(
        f"column {success!r} holds words that are no verdicts: {some(list(map(repr, others)), 4)}.",
        hint=f"If {word!r} is the only pass: {rule_option(columns, chunk, word)}",
    )


def prefer_words(
    columns: ColumnMap, chunk: Chunk, notes: tuple[str, ...]
) -> tuple[ColumnMap, tuple[str, ...]]:
    """The columns with verdicts in words, where graded scores beside them were taken for such.

    Every score of a pass is at least that of a failure: the words are about these scores.
    """
    success, words = columns.meaning.get("success"), RewardWords()
    if success not in chunk or "success" in columns.stated or "c" in columns.meaning:
        return columns, notes
    if fold_name(success or "") not in REWARD_NAMES:
        return columns, notes
    grades = {reward_or_none(words, cell) for cell in distinct_cells(chunk[success or ""])}
    if not any(s is not None and s == s and s not in (0, 1) for s in grades):
        return columns, notes
    scores = [reward_or_none(words, cell) for cell in chunk[success or ""]]
    for name in list_unused(columns, chunk):
        rewards = [reward_or_none(words, cell) for cell in chunk[name]]
        both = zip(chunk[name], rewards, strict=True)
        known = {r for c, r in both if r == r and not (r is None and is_odd_ending(str(c)))}
        if fold_name(name) not in ALIASES["success"] or known != {0.0, 1.0}:
            continue
        pairs = [(s, r) for s, r in zip(scores, rewards, strict=True) if s is not None and s == s]
        passes, fails = ([s for s, r in pairs if r == each] for each in (1.0, 0.0))
        if min(passes, default=0) >= max(fails, default=1):
            meaning = MappingProxyType({**columns.meaning, "success": name, "score": success or ""})
            note = f"column {name!r} decides; {success!r} is graded and read as the score"
            return replace(columns, meaning=meaning, rivals=()), (*notes, note)
    return columns, notes


def with_odd_endings(shape: Shape, cells: Sequence[object], chunk: Chunk) -> Shape:
    """Words about how an attempt ended that are no verdict, beside verdicts: missing, and said."""
    words = RewardWords()
    success = shape.columns.meaning["success"]
    others = [cell for cell in cells if reward_or_none(words, cell) is None]
    is_few = len(cells) <= _FEW_WORDS and not any(re.search(r"\d", str(c)) for c in others)
    column = list(chunk[success]) if is_few and others else []  # one alone may be a mistake
    odd = {c for c in others if column.count(c) > 1 or is_odd_ending(str(c))}
    good = [cell for cell in cells if reward_or_none(words, cell) == 1]
    if not odd or not good:
        return shape

    verdict_of: dict[object, int | None] = dict.fromkeys(odd)
    if has_failure_reasons(cells):
        verdict_of |= dict.fromkeys((c for c in odd if is_agent_ending(str(c))), 0)

    def rearrange(chunk: Chunk) -> tuple[Chunk, list[int] | None]:
        chunk, origins = shape.rearrange(chunk)
        verdicts = [verdict_of.get(cell, cell) for cell in chunk[success]]
        return {**chunk, success: verdicts}, origins

    missing, failed = (
        some(sorted(repr(c) for c, value in verdict_of.items() if value == each), 4)
        for each in (None, 0)
    )
    remedy = f"; if they failed: {rule_option(shape.columns, chunk, good[0])}"
    remedy = remedy if len(good) == 1 else ""
    decisions = [f"counted as missing: {missing} in {success!r}{remedy}"] if missing else []
    decisions += [f"counted as failed: {failed} in {success!r}"] if failed else []
    return replace(shape, rearrange=rearrange, decisions=(*shape.decisions, *decisions))


_PLAIN_WORD = re.compile(r"[^\W\d][^\d]{0,39}")


@dataclass(slots=True)
class Endings:
    """Words in the verdicts of records that are none: how an attempt ended."""

    mapping: RecordMap
    is_open: bool
    """Whether no format states the words: each is then said."""
    count: int = 0
    passes: set[str] = field(default_factory=set)
    failed: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)

    def reward(self, value: object) -> object:
        """A verdict as the builder takes it; words such as ``passed`` become numbers."""
        self.count += 1
        if not isinstance(value, str):
            return value
        with suppress(ValueError):
            reward = REWARD_WORDS[value]
            if reward == 1:
                self.passes.add(value)
            return None if reward != reward else reward
        is_odd = is_odd_ending(value)
        if not self.is_open:
            return None if is_odd else value  # lost there, with its text
        if is_failure_reason(value):
            self.failed[value] += 1
            return 0.0
        if is_odd or _PLAIN_WORD.fullmatch(value):
            self.missing[value] += 1
            return None
        return value

    def decisions(self) -> Iterator[str]:
        """The words that were taken for failures or for missing verdicts."""
        paths = {word: texts[0] for word, texts in self.mapping.fields.items()}
        name = paths.get("success", "")
        failed, missing = (
            some(sorted(map(repr, c)), 4) if c else "" for c in (self.failed, self.missing)
        )
        if failed:
            yield f"counted as failed: {failed} in {name!r}"
        if missing:
            (word, *others) = self.passes or {""}
            pairs = {"records": self.mapping.records, **paths, "success": f"{name} == {word}"}
            texts = [f"{w}={pairs[w]}" for w in (*_MAP_WORDS, "success") if pairs.get(w)]
            remedy = f"; if they failed: {map_option(','.join(texts))}"
            yield f"counted as missing: {missing} in {name!r}{'' if others or not word else remedy}"

    def refuse_unknown(self, source: str, is_stated: bool) -> None:
        """Refuse verdicts of which many are words of unknown meaning."""
        unknown = {word: n for word, n in self.missing.items() if not is_odd_ending(word)}
        if 4 * sum(unknown.values()) <= self.count:
            return
        raise ReadError(
            f"{sum(unknown.values()):,} of {self.count:,} verdicts are words that are none: "
            f"{some(sorted(map(repr, unknown)), 4)}.",
            source=source,
            hint="State the word for a pass: --map 'success=FIELD == WORD'" if is_stated else None,
        )


_MAP_WORDS = ("records", "task", "model", "trial")
_SETTINGS = ("configuration", "config", "variant", "condition", "setup", "arm")
SECTION_COLUMN = "model"


def without_label(title: str) -> str:
    """The name behind a label, as in ``Model: nova``."""
    label, _, name = title.strip().partition(":")
    is_label = fold_name(label) in (*ALIASES["model"], *ALIASES["task"], *_SETTINGS)
    return name.strip() if name.strip() and is_label else title.strip()


@dataclass(slots=True)
class Sections:
    """Rows with a name alone that head the rows below them: the model of each."""

    title: str = ""
    """The line above the header: the name of the first section, where others follow."""
    is_found: bool | None = None
    is_model: bool = False
    count: int = 0
    headers: int = 0
    """Rows below a heading that repeat the header."""
    _name: str = ""

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The other rows, with a column for the model where sections hold the same tasks."""
        if self.is_found is None:
            self._look_at(chunk)
        if not self.is_found:
            return chunk, lines
        first = next(iter(chunk))
        heads = set(self._heads(chunk))
        self.count += len(heads)
        header = list(map(str.strip, chunk))
        places, names = [], []
        for row in range(len(lines)):
            if [str(cells[row]).strip() for cells in chunk.values()] == header:
                self.headers += 1
            elif row in heads:
                self._name = without_label(str(chunk[first][row]))
            else:
                places.append(row)
                names.append(self._name)
        rest: dict[str, Sequence[object]] = {
            name: [chunk[name][row] for row in places] for name in chunk
        }
        if self.is_model:
            rest[SECTION_COLUMN] = names
        return rest, [lines[row] for row in places]

    def _heads(self, chunk: Chunk) -> list[int]:
        first, *others = (list(cells) for cells in chunk.values())
        return [
            row
            for row, cell in enumerate(first)
            if not is_empty(cell) and all(is_empty(cells[row]) for cells in others)
        ]

    def _look_at(self, chunk: Chunk) -> None:
        """The first rows tell: a name alone comes first, and others follow."""
        self.is_found = False
        names = list(chunk)
        is_headed = len(names) > 1 and all(is_empty(chunk[name][0]) for name in names[1:])
        if not is_headed and not (self.title and len(names) > 1):
            return  # nearly always, at the second column
        heads = self._heads(chunk)
        first = [str(cell).strip() for cell in next(iter(chunk.values()))]
        starts = heads if is_headed else [-1, *heads]
        titles = [first[row] if row >= 0 else self.title for row in starts]
        if len(titles) < 2 or len(set(titles)) < len(titles):
            return
        ends = [*starts[1:], len(first)]
        rows = [first[a + 1 : b] for a, b in zip(starts, ends, strict=True)]
        tasks = [{task for task in part if fold_label(task) not in TOTAL_WORDS} for part in rows]
        if not all(tasks) or "model" in ColumnMap.resolve(chunk).meaning:
            return
        self.is_model = any(tasks[0] & other for other in tasks[1:])
        self.is_found = self.is_model or is_headed
        self._name = without_label(self.title)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Decisions about these rows."""
        if not self.count:
            return ()
        what = "name the model of the rows below" if self.is_model else "head sections: left out"
        return (f"{self.count} rows with a single cell {what}",)


# -- numbers of attempts in headings ---------------------------------------------------------

_NUMBERED_NAME = re.compile(r"(.{0,190}[^\s_#])[\s_]+#?(\d{1,3})")


def _last_word(name: str) -> str:
    return fold_name(name).rpartition("_")[2]


def _number_attempts(numbers: Mapping[str, Sequence[int]]) -> bool:
    """Whether names with numbers are models with attempts: each has the same ones, from 0 or 1."""
    first = sorted(next(iter(numbers.values()), ()))
    is_counted = len(first) > 1 and first[0] < 2 and first == list(range(first[0], first[-1] + 1))
    known = {alias for aliases in ALIASES.values() for alias in aliases}
    return (
        is_counted
        and len(numbers) > 1
        and all(sorted(each) == first for each in numbers.values())
        and all(is_model_name(stem) or any(map(str.isdigit, stem)) for stem in numbers)
        and not known & {part for stem in numbers for part in (fold_name(stem), _last_word(stem))}
    )


def find_numbered_names(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns of verdicts such as ``v1.0 1, v1.0 2, v1.1 1, v1.1 2``: models and attempts."""
    matches = {name: _NUMBERED_NAME.fullmatch(name.strip()) for name in chunk}
    found = {name: (match[1], int(match[2])) for name, match in matches.items() if match}
    numbers: dict[str, list[int]] = {}
    for stem, number in found.values():
        numbers.setdefault(stem, []).append(number)
    taken = {"model", "trial", "success"} & {*stated, *ColumnMap.resolve(chunk).meaning}
    if taken or not _number_attempts(numbers):
        return None
    words = RewardWords()
    cells = [cell for name in found for cell in distinct_cells(chunk[name])]
    rewards = {reward_or_none(words, cell) for cell in cells}
    if not rewards & {0.0, 1.0} or any(r not in (0.0, 1.0) and r == r for r in rewards):
        return None
    names = {name: f"{stem} run {number}" for name, (stem, number) in found.items()}

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        return {names.get(name, name): chunk[name] for name in chunk}, lines

    first = next(iter(found))
    return rewrite, f"column {first!r} is read as attempt {found[first][1]} of {found[first][0]!r}"
