"""Candidates for what passes: verdicts, words, right answers, counts, a column per attempt.

Each candidate has a weight: what its name and its values say for it. Names are one piece of
evidence; the others are values: which words they are, whether two columns share them, whether one
sums up others, whether shares are those of whole passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations

import numpy as np

from passhat.readers.guessing import Column, SampleTable
from passhat.readers.record_map import is_code
from passhat.readers.row_groups import RUN_PARTS, TASK_PARTS
from passhat.readers.wide_tables import is_judge_name, is_model_name, reward_or_none
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes.cells import parse_number
from passhat.stats.outcomes.columns import (
    ANSWERS,
    BAD_WORDS,
    EVERY_COLUMN,
    GOOD_WORDS,
    GRADES,
    KEYS,
    PARTS,
    PASS_MARKS,
    PASS_TIMES,
    RATES,
    REASONS,
    SUMMARIES,
    TOTALS,
    TRIAL_NAMES,
    VERDICTS,
    fold_name,
    is_first_success,
    is_negative,
    is_percent,
)
from passhat.stats.outcomes.rewards import RewardWords, is_odd_ending

MOST_WORDS = 8
_MOST_ATTEMPTS = 51
_MOST_RUNS = 1_000_000  # a larger number is a time or an id
_STEPS = re.compile(r"(.*_)?(turns?|steps?|history|trajectory|actions|messages|logs?)(_.*)?")
"""In the path of a list: an element is a step of an attempt."""
_ATTACK = re.compile(r"attack|jailbr(eak|oken)|harmful|toxic|inject(ed|ion)|hijack(ed)?|leak(ed)?")
_FINAL = re.compile(r"(final|consensus|adjudicated|agreed)_")
_PLAIN = frozenset({"true", "false", "yes", "no", "y", "n", "t", "f", "0", "1", "0.0", "1.0"})
_NEGATIONS = frozenset({"no", "not", "without", "0", "zero"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule for what passes: the options for it, the columns that it uses, and the evidence."""

    pairs: Mapping[str, str]
    weight: float
    used: frozenset[str]
    values: IntArray | None = None
    """A code of each row's verdict, where a row is an attempt."""


def find_outcomes(table: SampleTable) -> Iterator[Outcome]:
    """Everything that may say which rows passed, with its weight."""
    columns = [c for c in table.columns.values() if c.words]
    verdicts = [c for c in columns if c.is_verdict and not is_negative(c.name)]
    rivals = [*verdicts, *(c for c in columns if c.is_fraction)]
    plain = [c for c in rivals if verdict_likeness(c) <= 0]
    folds = [set(re.split(r"[_\W]+", c.fold)) for c in verdicts]
    for column in columns:
        bonus = 0.0
        if column in verdicts:
            bonus += 3.0 * _is_conjunction(column, verdicts)
            mine = folds[verdicts.index(column)]
            alike = [v for v, f in zip(verdicts, folds, strict=True) if mine & f and v != column]
            is_alone = verdict_likeness(column) > max(map(verdict_likeness, alike), default=-9)
            bonus -= 1.0 * (bool(alike) and not is_alone)
        # Of several columns without a name for verdicts each may be a model or an attempt.
        is_one_of_several = column in plain and len(plain) > 1
        for outcome in _single_outcomes(column, table.size):
            weight = outcome.weight + bonus - is_one_of_several
            if column not in verdicts and _says_whether_judged(outcome, verdicts):
                weight -= 3.0
            yield replace(outcome, weight=min(weight, 1.0) if is_one_of_several else weight)
    yield from _equal_pairs([c for c in columns if not c.is_inner])
    yield from _counts([c for c in columns if c.numbers])


def _says_whether_judged(outcome: Outcome, verdicts: Sequence[Column]) -> bool:
    """Whether a rule holds exactly where another column has a verdict: no error, completed."""
    if outcome.values is None:
        return False
    return any(
        verdict.has_empty
        and verdict.name not in outcome.used
        and (np.array([text != "" for text in verdict.texts]) == (outcome.values == 1)).all()
        for verdict in verdicts
    )


def _is_conjunction(column: Column, others: Sequence[Column]) -> bool:
    """Whether a verdict holds exactly where all of several others do, so that it sums them up."""
    words = RewardWords()
    parts = [
        np.array([words[text] == 1 for text in other.texts])
        for other in others
        if other is not column and other.words.keys() == column.words.keys()
    ]
    mine = np.array([words[text] == 1 for text in column.texts])
    parts = [part for part in parts if not (mine & ~part).any() and (part != mine).any()]
    return len(parts) > 1 and bool((np.logical_and.reduce(parts) == mine).all())


def _single_outcomes(column: Column, size: int) -> Iterator[Outcome]:
    """Verdicts, grades, reasons of failures and fractions in one column."""
    name, used, likeness = column.name, frozenset({column.name}), verdict_likeness(column)
    if is_first_success(name.rpartition(".")[2]) and not column.is_inner:
        yield from _first_success_outcomes(column)
        return
    if any(map(_STEPS.fullmatch, map(fold_name, name.split(".")[:-1]))):
        likeness -= 4.0 * (column.is_list or name.endswith("]"))
    if column.is_list or column.is_fraction:
        yield Outcome({"success": name}, 2.5 + likeness, used)
    elif column.is_verdict:
        yield from _verdict_outcomes(column, likeness)
    elif not column.is_inner and not PASS_TIMES.fullmatch(column.fold):
        if set(column.words) <= {"1", "-1", "1.0", "-1.0"}:
            yield Outcome({"success": f"{name} == 1"}, 0.8 + likeness, used, column.codes)
        elif column.numbers:
            yield from _graded(column, likeness)
        elif len(column.words) <= MOST_WORDS and len(column.words) * 2 <= max(size, 4):
            yield from _word_outcomes(column, likeness)
        yield from _absence_outcomes(column)
    if column.has_empty and not column.is_inner:
        yield from _empty_outcomes(column, likeness)


def _first_success_outcomes(column: Column) -> Iterator[Outcome]:
    """The number of the attempt that passed first: solved at all, or at the first attempt."""
    numbers = [parse_number(text) for text in column.texts]
    is_plain = column.has_empty and min(column.numbers, default=0) >= 1
    top = max((n for n in numbers if n is not None and n < np.inf), default=0)
    rules = (('!= ""' if is_plain else ">= 1", top, 3.0), ("== 1", 1, 2.9))
    for rule, most, weight in rules:
        values = np.array([n is not None and 1 <= n <= most for n in numbers], np.int64)
        pairs = {"success": f"{column.name} {rule}"}
        yield Outcome(pairs, weight, frozenset({column.name}), values)


def _absence_outcomes(column: Column) -> Iterator[Outcome]:
    """No error: an exit code or a number of failures of 0, or a word such as none."""
    used, is_bad = frozenset({column.name}), _counts_failures(column)
    if column.is_whole and "0" in column.words and (is_code(column.name) or is_bad):
        values = np.array([text == "0" for text in column.texts], np.int64)
        yield Outcome(
            {"success": f"{column.name} == 0"}, 1.0 + 2.5 * (values.min() < 1), used, values
        )
    if not column.numbers and REASONS.fullmatch(column.fold):
        for word in column.words:
            reward = reward_or_none(RewardWords(), word)
            if (reward is not None and reward != 0) or re.match(
                r"no(t|ne)?\b", word, re.IGNORECASE
            ):
                values = np.array([text == word for text in column.texts], np.int64)
                yield Outcome({"success": f"{column.name} == {word}"}, 3.0, used, values)


def _counts_failures(column: Column) -> bool:
    return (
        is_negative(column.name)
        or column.named("fails", "missing")
        or bool(REASONS.fullmatch(column.fold))
    )


def _verdict_outcomes(column: Column, likeness: float) -> Iterator[Outcome]:
    """A column of verdicts; in one called failed, true is a failure."""
    name, used = column.name, frozenset({column.name})
    plain = _PLAIN.issuperset(map(str.lower, column.words))
    base = (1.0 if column.numbers else 1.5) if plain else 3.0
    base -= 1.5 if len(column.words) < 2 else 0.0
    words = column.fold.split("_")
    is_positive = not {"no", "not", "true"}.isdisjoint(words)
    is_flag = any(map(is_negative, (column.fold, *words))) and not is_positive
    is_attack = any(map(_ATTACK.fullmatch, words))
    if is_flag or is_attack:
        rule = f"{name} == {0 if column.numbers else 'false'}"
        weight = base + (2.0 if is_attack or REASONS.fullmatch(column.fold) else 0.5)
        yield Outcome({"success": rule}, weight, used, column.codes)
    likeness = -2.5 if is_flag else likeness - is_attack
    yield Outcome({"success": name}, base + likeness, used, column.codes)


def _empty_outcomes(column: Column, likeness: float) -> Iterator[Outcome]:
    """A reason of a failure that is empty where it passed, or the time of a pass."""
    name, used = column.name, frozenset({column.name})
    values = np.array([text == "" for text in column.texts], np.int64)
    reason, dated = REASONS.fullmatch(column.fold), PASS_TIMES.fullmatch(column.fold)
    if reason or not (column.numbers or column.is_verdict or likeness < -2):
        yield Outcome({"success": f'{name} == ""'}, 2.5 if reason else -1.0, used, values)
    if dated or (len(column.words) == 1 and not column.numbers):
        weight = 2.5 if dated else 0.5 + likeness
        yield Outcome({"success": f'{name} != ""'}, weight, used, values)


def verdict_likeness(column: Column) -> float:
    """How much a name speaks for a column of verdicts."""
    if column.name.startswith("^") and column.name != "^@key":
        return -3.0  # a fact about the record around it
    if column.named("success"):
        return 3.0
    if column.is_measure or column.named("model", "task", "trial") or column.fold == "id":
        return -2.5
    if column.fold in TASK_PARTS or column.fold in RUN_PARTS:
        return -2.5
    is_verdict = VERDICTS.fullmatch(column.fold) is not None
    if SUMMARIES.fullmatch(column.fold) and not column.fold.endswith(("_reward", "_score")):
        return 1.0 if is_verdict else -0.5
    if is_key(column):
        return -1.0
    if is_verdict and _FINAL.match(column.fold):
        return 2.7
    return 2.0 if is_verdict else 1.0 if is_judge_name(column.name) else 0.0


def _is_letter_grade(column: Column) -> bool:
    """Whether words are marks: A, B+ and C, of which no single one is a pass."""
    letters = {word[:1] for word in column.words if re.fullmatch(r"[A-F][+-]?", word)}
    is_named = GRADES.fullmatch(column.fold) is not None or column.fold in ("mark", "marks")
    return is_named and "A" in letters and len(letters) > 2 and len(column.words) < 16


def _letter_outcomes(column: Column, likeness: float) -> Iterator[Outcome]:
    """Marks from the best down to some other one."""
    order = sorted(column.words, key=lambda w: (w[:1], {"+": 0, "": 1, "-": 2}.get(w[1:], 3)))
    letters = list(dict.fromkeys(word[:1] for word in order if word[:1].isalpha()))
    for place, last in enumerate(letters[:3]):
        good = [word for word in order if word[:1] in letters[: place + 1]]
        values = np.array([text in good for text in column.texts], np.int64)
        rule = f"{column.name} in {'|'.join(good)}"
        weight = 1.0 + likeness - 0.2 * abs(place - 1) - 1.0 * (last == letters[-1])
        yield Outcome({"success": rule}, weight, frozenset({column.name}), values)


def _word_outcomes(column: Column, likeness: float) -> Iterator[Outcome]:
    """A word that means a pass, for each that may; the others are failures."""
    if _is_letter_grade(column):
        yield from _letter_outcomes(column, likeness)
        return
    words = RewardWords()
    is_about = any(map(GOOD_WORDS.match, column.words)) and any(map(_is_bad, column.words))
    if column.is_time or (is_judge_name(column.name) and not is_about):
        return  # a day, or the name of a judge
    if any(r == 1 for r in column.rewards) and all(
        r is not None or is_odd_ending(word)
        for word, r in zip(column.words, column.rewards, strict=True)
    ):  # crashed beside success and failure is no verdict
        yield Outcome({"success": column.name}, 4.8 + likeness, frozenset({column.name}))
    rewards = {word: reward_or_none(words, word) for word in column.words}
    if sum(r == 1 for r in rewards.values()) == 1 or any(r == 0 for r in rewards.values()):
        likeness += 1.0  # some of them are verdicts
    likeness -= 2.0 if REASONS.fullmatch(column.fold) else 0.0
    bad = {word for word in rewards if _is_bad(word)}
    good = {word for word in rewards if GOOD_WORDS.match(word)} - bad
    if len(good) == 1 and len(good) + len(bad) == len(rewards) > 1:
        # Grades of success in words, whatever their column is called.
        likeness = max(likeness, 2.0 if len(rewards) > 2 else 0.5)
    for word, reward in rewards.items():
        known = 2.0 if reward == 1 else -2.0 if reward == 0 else 0.0
        weight = 0.3 + likeness + known + 1.0 * (word in good) - 0.7 * (word in bad)
        weight -= (1.5 if word in good else 3.0) * (len(rewards) == 1)  # a label of all rows
        values = np.array([text == word for text in column.texts], np.int64)
        rule = f"{column.name} == {word}"
        yield Outcome({"success": rule}, weight, frozenset({column.name}), values)


def _is_bad(word: str) -> bool:
    """Whether a word, or a later part of it that nothing negates, is one for a failure."""
    first, *others = re.split(r"[\W_]+", word.lower())
    later = [part for before, part in pairwise((first, *others)) if before not in _NEGATIONS]
    return bool(BAD_WORDS.match(word)) or any(
        len(part) > 2 and BAD_WORDS.match(part) for part in later
    )


def _graded(column: Column, likeness: float) -> Iterator[Outcome]:
    """Scores up to 1, 5, 10 or 100: passed from the top on, or from the middle on."""
    if _counts_failures(column):
        return
    scale = re.search(r"\d\s*(?:-|–|to|\.\.)\s*(5|7|10|100)\b", column.name)
    scale = None if is_model_name(column.name) else scale  # claude-opus-4-5
    top = next((t for t in (1, 5, 10, 100) if max(column.numbers) <= t), None)
    top = int(scale[1]) if scale else top
    if top is None or min(column.numbers) < 0 or (column.is_whole and top == 1):
        return
    if TRIAL_NAMES.fullmatch(column.fold) and not scale:
        return
    likeness = max(likeness, 1.0) if scale else likeness
    weight = likeness if GRADES.fullmatch(column.fold) or likeness > 0 else -2.5
    weight -= 1.5 if PARTS.fullmatch(column.fold) else 0.0  # of a number of tests
    numbers = np.array([parse_number(text) or 0.0 for text in column.texts])
    is_other = column.is_measure or is_model_name(column.name) or is_percent(column.name)
    if top == 1 and not is_other and not RATES.fullmatch(column.fold):  # kept as it is
        weight = max(weight, -0.5)
        yield Outcome({"success": column.name}, weight, frozenset({column.name}))
    for cut, loss in ((0.8 * top, 0.3),) if scale else ((top, 0.5), (top / 2, 1.0)):
        rule = f"{column.name} >= {cut:g}"
        values = (numbers >= cut).astype(np.int64)
        loss += 1.0 * (values.min() == values.max())
        yield Outcome({"success": rule}, weight - loss, frozenset({column.name}), values)


def _equal_pairs(columns: Sequence[Column]) -> Iterator[Outcome]:
    """Answers beside the right ones: two columns with the same words that agree in some rows."""
    texts = [c for c in columns if not (c.is_measure or c.is_time or c.is_prose)][:25]
    answers: dict[str, list[str]] = {}
    for first, second in combinations(texts, 2):
        if any(VERDICTS.fullmatch(c.fold) and c.is_verdict for c in (first, second)):
            continue  # two verdicts: answer_correct and format_correct
        if any(set(c.words) == {"C", "I"} for c in (first, second)):
            continue  # correct and incorrect, beside answers A to D
        if first.is_verdict and second.is_verdict:
            named = {(is_key(c), _is_answer(c)) for c in (first, second)}
            if not any(key for key, _ in named) or not any(answer for _, answer in named):
                continue  # two facts about an attempt
        answer, key = (second, first) if is_key(first) and not is_key(second) else (first, second)
        if _is_answer(key) and not _is_answer(answer):
            answer, key = key, answer
        if is_key(key) and _is_answer(answer) and answer.words.keys() & key.words.keys():
            answers.setdefault(key.name, []).append(answer.name)
        yield from _equal_outcomes(answer, key)
    for name, others in answers.items():
        if len(others) > 1:
            used = frozenset({name, *others})
            yield Outcome({"model": EVERY_COLUMN, "expected": name}, 5.0, used)


def _equal_outcomes(answer: Column, key: Column) -> Iterator[Outcome]:
    hits = np.array([a == b != "" for a, b in _text_pairs(answer, key)])
    shared = len(answer.words.keys() & key.words.keys())
    overlap = shared / min(len(answer.words), len(key.words))
    names = 1.2 * is_key(key) + 1.2 * _is_answer(answer)
    if is_key(answer) and not _is_answer(answer) and is_key(key):
        return  # two labels
    if not names and (shared < 3 or answer.numbers or key.numbers):
        return  # two models' words or two counts may agree as well
    is_rare = not 0.01 < hits.mean() < 1
    rules = [("==", 1.5 * overlap + names - 1.5 * is_rare, hits)]
    if names > 2 and overlap < 1:
        ends = np.array([_ends_with(a, b) for a, b in _text_pairs(answer, key)])
        rules.append(("ends with", names + (0.5 if ends.sum() > 1.2 * hits.sum() else -1), ends))
    for sign, weight, values in rules:
        if weight > 1 and values.any():
            rule = f"{answer.name} {sign} @{key.name}"
            used = frozenset({answer.name, key.name})
            yield Outcome({"success": rule}, weight, used, values.astype(np.int64))


def _ends_with(text: str, ending: str) -> bool:
    return bool(ending) and text.rstrip(".*\"'` ").casefold().endswith(ending.casefold())


def is_key(column: Column) -> bool:
    return KEYS.fullmatch(column.fold) is not None and column.fold != "true_false"


def _is_answer(column: Column) -> bool:
    return ANSWERS.fullmatch(column.fold) is not None and column.fold != "answer"


def _counts(columns: Sequence[Column]) -> Iterator[Outcome]:
    """Numbers of attempts and passes, of passes and failures, or a share of a number."""
    whole = [c for c in columns if c.is_whole and not c.is_measure and not c.named("task", "trial")]
    whole = [c for c in whole if max(c.numbers) < _MOST_RUNS]
    for n, c in permutations(whole[:10], 2):
        if any(is_percent(each.name) for each in (c, n)):
            continue
        if _is_below(c, n) and max(n.numbers) > 1 and not _counts_failures(c):
            yield from _parts_of(n, c)
        if not any(_is_sum_below(c, n, total) for total in columns):
            yield from _passes_and_failures(c, n)
    for score, limit in permutations(columns[:12], 2):
        yield from _pass_marks(score, limit)
        if score in whole and GRADES.fullmatch(limit.fold) and _is_share(limit, score):
            weight = 2.0 * score.named("n") + 2.0 + limit.named("rate")
            used = frozenset({score.name, limit.name})
            yield Outcome({"n": score.name, "success": limit.name}, weight, used)
    for c in whole:
        stated = re.search(r"(?:of|/|max\.?)\s*(\d+)\s*[)\]]?$", c.name)
        if stated and max(c.numbers) <= int(stated[1]) and int(stated[1]) > 1:
            yield Outcome({"n": stated[1], "c": c.name}, 3.5, frozenset({c.name}))
        elif c.named("c") and max(c.numbers) > 1 and not is_percent(c.name):
            yield Outcome({"n": f"{max(c.numbers):g}", "c": c.name}, 0.5, frozenset({c.name}))


def unstated_totals(columns: Sequence[Column], every: Mapping[str, str]) -> Iterator[Outcome]:
    """Shares, or passes in several columns, of a number of attempts that the table does not state.

    It is at least the smallest number of which all shares are whole passes.
    """
    named = ("task", "model", "trial", "n", "suite")
    columns = [c for c in columns if not (c.is_measure or c.named(*named) or c.name[0] in "@^")]
    columns = [c for c in columns if not SUMMARIES.fullmatch(c.fold) and c.fold != "id"]
    texts = [text for c in columns for text in c.words]
    numbers = [number for c in columns for number in c.numbers]
    top = max(numbers, default=0)
    if all(c.is_verdict for c in columns) or top > 100 or min(numbers) < 0:
        return
    used = frozenset(c.name for c in columns)
    is_count = all(map(str.isdigit, texts))
    if is_count and top <= _MOST_ATTEMPTS:
        least = int(top) if len(columns) > 1 and top > 1 else 0
    else:
        scale = 100 if top > 1 else 1
        shares = [number / scale for number in numbers]
        decimals = max(
            len(re.split("[.,]", text.split("±")[0].strip(" %") + ".")[1]) for text in texts
        )
        is_percent = scale == 100 or any("%" in text for text in texts)
        close = 0.6 * 10.0 ** -min(decimals + 2 * is_percent, 4)
        # Tenths of all kinds are shares of ten, though each is near to one of eight, too.
        most = 11 if is_count else _MOST_ATTEMPTS  # 33 and 67 of a hundred are thirds
        sizes = [(n, 1e-9) for n in range(2, min(most, 21))] + [(n, close) for n in range(2, most)]
        least = next(
            (
                n
                for n, limit in sizes
                if all(abs(share * n - round(share * n)) <= limit * n for share in shares)
            ),
            0,
        )
    models = sum(is_model_name(c.name) for c in columns) / len(columns)
    if len(columns) > 1 and 5 < top <= 10 and not any("%" in text for text in texts):
        weight = 2.5 if top == 10 or not is_count else 1.5
        yield Outcome({**every, "success": ">= 5"}, weight + models, used)
        yield Outcome({**every, "success": ">= 8"}, weight - 0.2 + models, used)
    if least and len(columns) > 1:
        yield Outcome({**every, "n": str(least)}, 2.0 + models, used)
    elif least and GRADES.fullmatch(columns[0].fold):
        yield Outcome({"n": str(least), "success": columns[0].name}, 1.0, used)


def _parts_of(n: Column, c: Column) -> Iterator[Outcome]:
    """Passes of attempts at a task, or passed tests of one attempt, which has to pass them all."""
    weight = 2.0 * n.named("n") + 2.0 * c.named("c")
    weight += 1.5 if not c.named("c") and verdict_likeness(c) > 0 else 0.0
    weight += 1.0 if len(n.words) == 1 else 0.0
    weight -= 2.0 if not (n.named("n") or c.named("c")) else 0.0
    parts = bool(PARTS.fullmatch(n.fold) or PARTS.fullmatch(c.fold))
    used = frozenset({n.name, c.name})
    yield Outcome({"n": n.name, "c": c.name}, weight - 1.5 * parts, used)
    passed = np.array([a == b for a, b in _text_pairs(n, c)], np.int64)
    rule = f"{c.name} >= @{n.name}"
    yield Outcome({"success": rule}, weight - 2.0 + 3.0 * parts, used, passed)


def _pass_marks(score: Column, limit: Column) -> Iterator[Outcome]:
    if PASS_MARKS.fullmatch(limit.fold) and GRADES.fullmatch(score.fold):
        pairs = [(parse_number(a), parse_number(b)) for a, b in _text_pairs(score, limit)]
        values = np.array([(a or 0) >= (b or 0) for a, b in pairs], np.int64)
        rule = f"{score.name} >= @{limit.name}"
        yield Outcome({"success": rule}, 4.0, frozenset({score.name, limit.name}), values)


def _is_sum_below(first: Column, second: Column, total: Column) -> bool:
    """Whether attempts of a stated total are in neither of two columns."""
    if not (total.is_whole and TOTALS.fullmatch(total.fold)) or total in (first, second):
        return False
    rows = zip(first.texts, second.texts, total.texts, strict=True)
    gaps = [n - a - b for a, b, n in ([parse_number(t) or 0 for t in row] for row in rows)]
    return min(gaps) >= 0 and max(gaps) > 0


def _passes_and_failures(c: Column, fails: Column) -> Iterator[Outcome]:
    """Two numbers by their names, or because their sum is the same in every row."""
    is_score = re.search(r"score|reward|points|grade|rating", c.fold) is not None
    names = int(c.named("c") or (verdict_likeness(c) > 1 and not is_score))
    names -= 2 * _counts_failures(c)
    names += _counts_failures(fails) or BAD_WORDS.match(fails.name) is not None
    pairs = [(parse_number(a), parse_number(b)) for a, b in _text_pairs(c, fails)]
    sums = {(a or 0) + (b or 0) for a, b in pairs}
    is_same = len(sums) == 1 and max(sums) > 1 and len(c.words) > 1
    if names == 2 or (names >= 0 and is_same):
        used = frozenset({c.name, fails.name})
        weight = 1.0 + 1.5 * names + (len(sums) == 1)
        yield Outcome({"c": c.name, "fails": fails.name}, weight, used)


def _text_pairs(first: Column, second: Column) -> list[tuple[str, str]]:
    return list(zip(first.texts, second.texts, strict=True))


def _is_below(low: Column, high: Column) -> bool:
    pairs = [(parse_number(a), parse_number(b)) for a, b in _text_pairs(low, high)]
    numbers = [(a, b) for a, b in pairs if a is not None and b is not None]
    return len(numbers) == len(pairs) and all(a <= b for a, b in numbers) and len(low.words) > 1


def _is_share(rate: Column, total: Column) -> bool:
    """Whether every share is one that whole passes of so many attempts give."""
    scale = 100 if max(rate.numbers) > 1 else 1
    if min(rate.numbers) < 0 or max(rate.numbers) > scale or max(total.numbers) < 2:
        return False
    for share, n in _text_pairs(rate, total):
        number, size = parse_number(share), parse_number(n)
        if number is None or size is None or not size:
            continue
        passes = number / scale * size
        decimals = re.search(r"(?<=\d[.,])\d+|$", share)
        step = 10.0 ** -len(decimals[0] if decimals else "") / (100 if "%" in share else scale)
        if abs(passes - round(passes)) > max(1e-6, step * size / 2 * (step * size < 1)):
            return False
    return any(not number.is_integer() for number in rate.numbers) or scale == 100
