"""Candidates for tables with a column for each attempt, model or task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from passhat.readers.guessing import Column, SampleTable
from passhat.readers.outcome_candidates import (
    MOST_WORDS,
    Outcome,
    is_key,
    unstated_totals,
    verdict_likeness,
)
from passhat.readers.row_groups import TASK_PARTS
from passhat.readers.wide_tables import is_judge_name, is_model_name, reward_or_none
from passhat.stats.outcomes.columns import (
    BAD_WORDS,
    EVERY_COLUMN,
    EVERY_PART,
    GOOD_WORDS,
    RUN_NUMBERS,
    SUMMARIES,
    cross_headings,
    fold_name,
    is_negative,
)
from passhat.stats.outcomes.rewards import RewardWords

_MOST_CODES = 4
_NUMBERS = ("id", "idx", "index", "no", "nr", "number")
_FLAG = re.compile(r"(is|has|had|was|used|uses|with|needs?|can|did|contains)_")


def find_pivots(table: SampleTable) -> Iterator[Outcome]:
    """A column of verdicts, fractions or words for each attempt, model or task."""
    columns = [c for c in table.columns.values() if c.words]
    yield from _inner_verdicts(columns)
    plain = [
        c
        for c in columns
        if not c.named("task", "model", "trial")
        and not c.name.startswith(("@", "^"))
        and not SUMMARIES.fullmatch(c.fold)
        and not is_negative(c.name)
    ]
    verdicts = [c for c in plain if c.is_mostly_verdict]
    if any(is_model_name(c.name) and max(c.numbers, default=0) > 1 for c in plain):
        verdicts = []  # percentages of other models: 0 is one, too
    for kind in (verdicts, [c for c in plain if c.is_fraction]):
        # A column of passes alone is like one of failures alone where a third has both.
        near = {first: [c for c in kind if _is_alike(c, first)] for first in kind}
        reach = {first: {c for other in near[first] for c in near[other]} for first in kind}
        families = [[c for c in kind if c in reach[first]] for first in kind]
        for family in {
            frozenset(c.name for c in members): members for members in families
        }.values():
            yield from _pivot(family, {}, is_all=len(family) == len(kind))
    graded = [c for c in plain if c.numbers and not c.is_whole and max(c.numbers) <= 1]
    is_numbered = len({re.sub(r"\d+", "", c.fold) for c in graded}) == 1
    if is_numbered and not any(is_model_name(c.name) for c in graded):
        yield from _pivot(graded, {})
    codes = [c for c in plain if c.is_whole and "1" in c.words and len(c.words) <= _MOST_CODES]
    codes = [c for c in codes if c.fold not in _NUMBERS and "[" not in c.name]
    if not all(c.is_verdict for c in codes):
        yield from _pivot(codes, {"success": "1"})
    texts = [c for c in plain if not (c.numbers or c.is_mostly_verdict or c.is_inner)]
    texts = [c for c in texts if len(c.words) <= MOST_WORDS and c.fold not in TASK_PARTS]
    for column in texts[:1] + texts[-1:]:
        family = [c for c in texts if c.words.keys() & column.words.keys()]
        vocabulary = {word for c in family for word in c.words}
        if len(vocabulary) <= MOST_WORDS and not any(map(is_key, family)):
            words = sorted(w for w in vocabulary if reward_or_none(RewardWords(), w) is None)
            good = [w for w in words if GOOD_WORDS.match(w) and not BAD_WORDS.match(w)]
            for word in good or words or sorted(vocabulary):
                yield from _pivot(family, {"success": word})
    named = {word for word in ("model", "task") for c in columns if c.named(word)}
    every = {"task" if named == {"model"} else "model": EVERY_COLUMN}
    yield from unstated_totals([c for c in columns if c.numbers], every)


def _inner_verdicts(columns: Sequence[Column]) -> Iterator[Outcome]:
    """A verdict in each of several objects of a record: one for each model."""
    families: dict[str, list[Column]] = {}
    for column in columns:
        head, _, name = column.name.partition(".")
        if head and "." not in name and column.is_verdict and column.named("success"):
            families.setdefault(name, []).append(column)
    for family in families.values():
        if len(family) > 1:
            yield Outcome({"model": EVERY_COLUMN}, 5.0, frozenset(c.name for c in family))


def _is_alike(first: Column, second: Column) -> bool:
    """Whether two columns share their words: yes and no, or 0 and 1."""
    words = [{word.lower().removesuffix(".0") for word in c.words} for c in (first, second)]
    return first.is_fraction or bool(words[0] & words[1])


def _pivot(
    family: Sequence[Column], pairs: Mapping[str, str], *, is_all: bool = True
) -> Iterator[Outcome]:
    if len(family) < 2:
        return
    every = EVERY_COLUMN if is_all else f"{EVERY_COLUMN}:{'|'.join(c.name for c in family)}"
    used = frozenset(c.name for c in family)
    words = [set(re.split(r"[_\W]+", c.fold)) for c in family]
    shared = {word for word in set.intersection(*words) if not word.isdigit()}
    strong = sum(verdict_likeness(c) >= 2 for c in family)
    is_series = bool(shared) and len({c.fold for c in family}) == len(family)
    base = min(1.0 + 0.4 * len(family), 3.0) + (1.0 if is_series else -1.2 * strong)
    base -= 1.5 * any(_FLAG.match(c.fold) for c in family)
    base -= 3.0 * any(map(is_judge_name, _without_shared_end(family)))  # of the same attempts
    stems = {re.sub(r"\d+|(?<![a-z])[a-z]$", "", c.fold) for c in family}
    numbered = len(stems) == 1 and stems != {""}
    ordinal = len(stems) == 1 and all(re.search(r"\d", c.name) for c in family)
    if ordinal and len(family) > 2 and _is_cumulative(family):
        return  # solved within one, two and three attempts
    models = sum(is_model_name(c.name) for c in family) / len(family)
    if all(RUN_NUMBERS.fullmatch(fold_name(c.name)) for c in family):
        models, numbered = 1.0, False
    yield Outcome({"model": every, **pairs}, base + 0.2 + 2 * models, used)
    if not all(c.is_fraction for c in family):  # 3/4 is no attempt
        # Names that nothing numbers are rather those of models.
        loss = 0.0 if numbered or ordinal or strong else 0.5
        loss -= 4.0 * bool(cross_headings([c.name for c in family]))  # of several models
        yield Outcome({"trial": every, **pairs}, base + numbered + ordinal - loss, used)
    yield Outcome({"task": EVERY_COLUMN, **pairs}, base - 0.3 + 0.5 * ordinal, used)
    yield Outcome({"task": EVERY_PART, **pairs}, base - 0.6 + 0.5 * ordinal, used)


def _without_shared_end(family: Sequence[Column]) -> list[str]:
    """The names without the words at their end that all share: of what a judge said of each."""
    names = [re.split(r"[_\W]+", c.fold) for c in family]
    while len({name[-1] for name in names}) == 1 and min(map(len, names)) > 1:
        names = [name[:-1] for name in names]
    return ["_".join(name) for name in names]


def _is_cumulative(family: Sequence[Column]) -> bool:
    """Whether what passed in a column passed in all with a larger number, too."""
    words = RewardWords()
    number = {c.name: int(re.findall(r"\d+", c.name)[-1]) for c in family}
    order = sorted(family, key=lambda c: number[c.name])
    rows = zip(*([reward_or_none(words, text) for text in c.texts] for c in order), strict=True)
    known = [[r for r in row if r is not None and r == r] for row in rows]
    return any(row[0] < row[-1] for row in known if row) and all(
        first <= second for row in known for first, second in pairwise(row)
    )
