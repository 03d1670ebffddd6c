"""The shape of a table: attempts, counts, rates, "3/4", or a column for each model.

A table is looked at once, by its header and its first rows, before any row is taken. Where two
readings give different numbers and nothing in the table decides, it is refused with both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from passhat._display import counted, some
from passhat.errors import InvalidValue, ReadError
from passhat.readers.parsing import are_bits, is_verdict_list, split_list
from passhat.readers.record_map import map_option
from passhat.readers.summary_labels import refuse_other_words, with_odd_endings
from passhat.readers.wide_tables import (
    FRACTION,
    N_CELL,
    PASSES_CELL,
    Shape,
    distinct_cells,
    find_wide,
    is_judge_name,
    list_unused,
    reward_or_none,
    unpivot_all,
    verdict_columns,
)
from passhat.readers.zip_members import SHEET_COLUMN
from passhat.stats.outcomes.cells import is_empty, parse_number
from passhat.stats.outcomes.columns import (
    ALIASES,
    ANSWER_NAMES,
    EVERY_COLUMN,
    EVERY_PART,
    JOIN_SIGN,
    ColumnMap,
    fold_name,
    is_first_success,
    is_percent,
)
from passhat.stats.outcomes.gathering import RUN_COLUMNS, Chunk
from passhat.stats.outcomes.rewards import RewardWords, is_odd_ending

_COUNTER = re.compile(r".*\d\s*|(?:run|trial|attempt|seed|rep)[\s_-]?[a-z]", re.IGNORECASE)
_TRIAL_CELL, _VERDICT_CELL, _MISSING_CELL = "passhat:trial", "passhat:success", "passhat:missing"
_FINAL = re.compile(
    r"(final|consensus|majority|agreed|adjudicated)(_(vote|verdict|label|result|decision|pass(ed)?))?"
)
_PLAIN_WORDS = frozenset({"true", "false", "yes", "no", "y", "n", "t", "f", "0", "1"})


def find_shape(columns: ColumnMap, chunk: Chunk, source: str, *, is_named: bool = True) -> Shape:
    """The shape of a table, from its header and its first rows.

    In a file that was named (``is_named``), not its folder, the only yes-or-no column decides.
    """
    meaning = columns.meaning
    if "task" not in meaning:
        return find_wide(columns, chunk) or Shape(columns)
    if SHEET_COLUMN in chunk and "model" not in meaning:
        # Sheets with the same columns, and no column that names the model.
        columns = replace(columns, meaning=MappingProxyType({**meaning, "model": SHEET_COLUMN}))
        shape = find_shape(columns, chunk, source, is_named=is_named)
        return replace(shape, decisions=("each sheet is a model", *shape.decisions))
    for word in ("model", "trial", "task"):
        if meaning.get(word, "").startswith(EVERY_COLUMN):
            return unpivot_all(columns, chunk, word)
    if meaning["task"].endswith(EVERY_PART):
        task = meaning["task"].removesuffix(EVERY_PART)
        columns = replace(columns, meaning=MappingProxyType({**meaning, "task": task}))
        return unpivot_all(columns, chunk, "task")
    plain = columns.without(*_unstated(columns, "n", "c", "fails", "rate"))
    if "success" in columns.stated:
        return _stated_shape(columns, plain, chunk, source)
    return _count_shape(columns, chunk, source) or _attempt_shape(plain, chunk, is_named=is_named)


def _stated_shape(columns: ColumnMap, plain: ColumnMap, chunk: Chunk, source: str) -> Shape:
    """The shape where the user states the column of verdicts: it may hold 3/4, lists or rates."""
    if "n" in columns.stated and "c" not in columns.meaning and "trial" not in columns.meaning:
        return _total_with(columns, chunk, source) or Shape(plain)
    cells = distinct_cells(chunk[columns.meaning["success"]])
    if cells and all(isinstance(cell, str) and FRACTION.fullmatch(cell) for cell in cells):
        return _fractions(plain)
    if are_bits(cells) or (cells and all(split_list(cell) is not None for cell in cells)):
        return _list_cells(plain, cells)
    return Shape(plain)


def _attempt_shape(columns: ColumnMap, chunk: Chunk, *, is_named: bool = True) -> Shape:
    """The shape of a table whose cells or rows are attempts."""
    success = columns.meaning.get("success")
    if success is None:
        wide = find_wide(columns, chunk) or _rate_verdict(columns, chunk)
        return wide or _lone_verdict(columns, chunk, is_named=is_named) or Shape(columns)
    if "trial" not in columns.meaning:
        wide = find_wide(columns.without("success", "score"), chunk, numbered_only=True)
        if wide is not None:
            return wide  # the verdict beside run_1, run_2 is made from them
    cells = distinct_cells(chunk[success])
    if cells and all(isinstance(cell, str) and FRACTION.fullmatch(cell) for cell in cells):
        return _fractions(columns)
    if are_bits(cells) or (cells and all(split_list(cell) is not None for cell in cells)):
        return _list_cells(columns, cells)
    _refuse_key(columns, chunk, cells)
    words = RewardWords()
    if not {reward_or_none(words, cell) for cell in cells} - {None}:
        lone = _lone_verdict(columns.without("success", "score"), chunk, is_named=is_named)
        if lone is not None:
            return lone  # completed in every row says nothing beside another verdict
    refuse_other_words(columns, chunk, cells)
    return with_odd_endings(_run_names(columns, chunk), cells, chunk)


def _rate_verdict(columns: ColumnMap, chunk: Chunk) -> Shape | None:
    """An accuracy of 1 or 0 in every row, without a number of attempts: each row is one."""
    names = [name for name in verdict_columns(columns, chunk) if fold_name(name) in ALIASES["rate"]]
    if len(names) != 1:
        return None
    meaning = MappingProxyType({**columns.meaning, "success": names[0]})
    rest = [repr(name) for name in chunk if re.match(r"pass_?(@|\^|at)_?(?!1$)\d", fold_name(name))]
    decision = f"column {names[0]!r} holds the verdicts" + "; not read: " * bool(rest)
    return Shape(replace(columns, meaning=meaning), decisions=(decision + some(rest, 3),))


def _lone_verdict(columns: ColumnMap, chunk: Chunk, *, is_named: bool) -> Shape | None:
    """The only column with verdicts, by words that mean nothing else or beside no other column."""
    names = list_unused(columns, chunk)
    lists = [
        name
        for name in names
        if fold_name(name) not in ANSWER_NAMES
        and (cells := distinct_cells(chunk[name]))
        and (are_bits(cells) or (all(map(is_verdict_list, cells)) and not _are_empty(cells)))
    ]
    verdicts = list(dict.fromkeys((*verdict_columns(columns, chunk, fractions=True), *lists)))
    verdicts = [name for name in verdicts if not is_first_success(name)]
    if any(map(is_judge_name, verdicts)):
        verdicts = [n for n in verdicts if _FINAL.fullmatch(fold_name(n))] or verdicts
    if len(verdicts) != 1:
        return None
    name = verdicts[0]
    words = {str(cell).strip().lower() for cell in distinct_cells(chunk[name])}
    is_final = _FINAL.fullmatch(fold_name(name)) is not None
    if words <= _PLAIN_WORDS and ((len(names) > 1 and not is_final) or not is_named):
        return None
    meaning = MappingProxyType({**columns.meaning, "success": name})
    shape = _attempt_shape(replace(columns, meaning=meaning), chunk)
    return replace(shape, decisions=(f"column {name!r} holds the verdicts", *shape.decisions))


def _refuse_key(columns: ColumnMap, chunk: Chunk, cells: Sequence[object]) -> None:
    """Refuse ``correct`` beside an answer in the same words: it may be the right one."""
    name = columns.meaning["success"]
    if "success" in columns.stated or fold_name(name) != "correct":
        return
    for other in chunk:
        words = {str(cell) for cell in distinct_cells(chunk[other])}
        if fold_name(other) not in ANSWER_NAMES or words != {str(cell) for cell in cells}:
            continue
        pairs = list(zip(map(str, chunk[other]), map(str, chunk[name]), strict=True))
        good, rewards = sum(a == b for a, b in pairs), RewardWords()
        passed = sum(reward_or_none(rewards, b) == 1 for _, b in pairs)
        raise InvalidValue(
            f"{name!r} may be the verdict ({passed} of {len(pairs)} passed), or the right answer "
            f"beside {other!r}, which has the same words ({good} of {len(pairs)} are equal).",
            hint=f"Say which: --map success={name}, or --pass '{other} == @{name}'",
        )


def _are_empty(cells: Sequence[object]) -> bool:
    """Whether lists hold no verdict at all, but nulls."""
    return all(is_empty(part) for cell in cells for part in split_list(cell) or ())


def _run_names(columns: ColumnMap, chunk: Chunk) -> Shape:
    """A column ``run`` with names such as A and B: two runs, not two attempts of one."""
    trial = columns.meaning.get("trial")
    if trial is None or "model" in columns.meaning or "trial" in columns.stated:
        return Shape(columns)
    if trial.strip().lower() not in ("run", "experiment", "variant", "config", "run_name"):
        return Shape(columns)
    labels = [str(cell) for cell in distinct_cells(chunk[trial])]
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


def _list_cells(columns: ColumnMap, cells: Sequence[object]) -> Shape:
    """Cells that hold the verdicts of all attempts at a task, in their order."""
    name = columns.meaning["success"]
    split = (lambda cell: list(str(cell or ""))) if are_bits(cells) else split_list
    columns = columns.without("trial", "score")
    meaning = {**columns.meaning, "success": _VERDICT_CELL, "trial": _TRIAL_CELL}

    def rearrange(chunk: Chunk) -> tuple[Chunk, list[int]]:
        lists = [split(cell) or [] for cell in chunk[name]]
        origins = [row for row, verdicts in enumerate(lists) for _ in verdicts]
        rows: dict[str, Sequence[object]] = {
            other: [chunk[other][row] for row in origins] for other in chunk if other != name
        }
        rows[_VERDICT_CELL] = [verdict for verdicts in lists for verdict in verdicts]
        rows[_TRIAL_CELL] = [number for verdicts in lists for number in range(len(verdicts))]
        return rows, origins

    decision = f"a row is a task: {name!r} lists the verdicts of its attempts"
    new = replace(columns, meaning=MappingProxyType(meaning), rivals=())
    return Shape(new, rearrange, (decision,))


def _count_shape(columns: ColumnMap, chunk: Chunk, source: str) -> Shape | None:
    """The shape of a table whose rows are tasks; ``None`` when they are not."""
    meaning = columns.meaning
    if {"n", "c"} <= meaning.keys() and "success" not in meaning:
        if not {"n", "c"} <= columns.stated:
            _refuse_tests(columns, chunk, meaning["c"], source)
        return _counts(columns, chunk)
    if "trial" in meaning:
        return None
    if "c" in meaning and not {"n", "fails", "success"} & meaning.keys():
        total = next(
            (n for n in list_unused(columns, chunk) if fold_name(n) in _OTHER_TOTALS), None
        )
        if total is not None and _are_counts(chunk, total):
            columns = replace(columns, meaning=MappingProxyType({**meaning, "n": total}))
            shape = _counts(columns, chunk)
            decision = f"column {total!r} is the number of attempts"
            return replace(shape, decisions=(decision, *shape.decisions))
    if "n" in meaning and not {"c", "success", "rate", "fails"} & meaning.keys():
        return _total_and_error_rate(columns, chunk, source) or _model_rates(columns, chunk)
    passes = meaning.get("c") or meaning.get("success")
    if passes and "fails" in meaning and "n" in meaning and _are_counts(chunk, passes):
        known = replace(columns, meaning=MappingProxyType({**meaning, "c": passes}))
        return _counts(known.without("success", "score", "rate"), chunk, passes)
    if passes and "fails" in meaning and "n" not in meaning:
        columns = _with_missing(columns, chunk)
        _refuse_ties(columns, chunk, passes, source)
        return _passes_and_fails(columns, chunk, passes)
    if "fails" in meaning and "n" in meaning and passes is None and "rate" not in meaning:
        return _total_and_fails(columns, chunk)
    return _total_with(columns, chunk, source) if "n" in meaning and "c" not in meaning else None


def _are_counts(chunk: Chunk, name: str) -> bool:
    numbers = [parse_number(cell) for cell in distinct_cells(chunk[name])]
    return bool(numbers) and all(n is not None and n.is_integer() and n >= 0 for n in numbers)


def _unstated(columns: ColumnMap, *words: str) -> list[str]:
    return [word for word in words if word not in columns.stated]


def _as_counts(
    columns: ColumnMap,
    count: Callable[[Chunk], tuple[list[object], list[object]]],
    decision: str,
) -> Shape:
    """A shape whose rows are tasks, with n and c computed from the cells of a row."""
    left_out = ("n", "c", "success", "score", "fails", "rate")
    plain = columns.without(*left_out)
    meaning = MappingProxyType({**plain.meaning, "n": N_CELL, "c": PASSES_CELL})

    def rearrange(chunk: Chunk) -> tuple[Chunk, None]:
        n, c = count(chunk)
        return {**{name: chunk[name] for name in chunk}, N_CELL: n, PASSES_CELL: c}, None

    return Shape(replace(plain, meaning=meaning, rivals=()), rearrange, (decision,))


def _counts(columns: ColumnMap, chunk: Chunk, passes: str = "") -> Shape:
    """Rows that are tasks with n and c; a column that repeats c / n is named, not used."""
    meaning = columns.meaning
    n, c, fails = meaning["n"], meaning["c"], meaning.get("fails")
    others = [name for name in columns.rivals or columns.ignored if _is_score(name, chunk)]
    names = some([repr(name) for name in others if name != passes], 3)
    decisions = [f"columns {n!r} and {c!r} are counts; {names} not used"] if names else []
    if fails is not None and _are_counts(chunk, fails):
        return replace(_counts_with_fails(columns, n, c, fails), decisions=tuple(decisions))
    columns = columns.without("fails", "rate")
    cells = [cell for name in (n, c) for cell in distinct_cells(chunk[name])]
    if any("," in str(cell) for cell in cells):  # 1,000

        def rearrange(part: Chunk) -> tuple[Chunk, None]:
            numbers = {name: [_whole_or_cell(cell) for cell in part[name]] for name in (n, c)}
            return {**{name: part[name] for name in part}, **numbers}, None

        return Shape(columns, rearrange, tuple(decisions))
    return Shape(columns, decisions=tuple(decisions))


def _whole_or_cell(cell: object) -> object:
    number = parse_number(cell)
    return cell if number is None else number


def _counts_with_fails(columns: ColumnMap, n: str, c: str, fails: str) -> Shape:
    """Attempts that neither passed nor failed are missing."""
    missing_column = columns.meaning.get("missing")
    plain = columns.without("fails", "rate", "missing")
    meaning = {**plain.meaning, "n": N_CELL, "c": c, "missing": _MISSING_CELL}
    leftovers: list[float] = []

    def rearrange(part: Chunk) -> tuple[Chunk, None]:
        scored: list[object] = []
        missing: list[object] = []
        stated = part.get(missing_column or "", [0] * len(part[n]))
        rows = zip(part[n], part[c], part[fails], stated, strict=True)
        for total_cell, passed_cell, failed_cell, missing_cell in rows:
            cells = (total_cell, passed_cell, failed_cell)
            total, passed, failed = (parse_number(cell) for cell in cells)
            if total is None or passed is None or failed is None:
                scored.append(total_cell)
                missing.append(missing_cell)
                continue
            rest = total - passed - failed
            if rest < 0:  # the row is lost with this text
                scored.append(f"{passed:g} passed + {failed:g} failed of {total:g}")
                missing.append(0)
                continue
            leftovers.append(rest)
            scored.append(passed + failed)
            missing.append(max(rest, parse_number(missing_cell) or 0))
        cells_of = {name: part[name] for name in part}
        cells_of[c] = [_whole_or_cell(cell) for cell in part[c]]
        return {**cells_of, N_CELL: scored, _MISSING_CELL: missing}, None

    def remarks() -> tuple[str, ...]:
        rest = int(sum(leftovers))
        if not rest:
            return ()
        return (f"{counted(rest, 'attempt')} of {n!r} neither passed nor failed: missing",)

    return Shape(
        replace(plain, meaning=MappingProxyType(meaning), rivals=()), rearrange, (), remarks
    )


def _is_score(name: str, chunk: Chunk) -> bool:
    lower = name.strip().lower()
    return ("score" in lower or "reward" in lower or "rate" in lower) and name in chunk


def _passes_and_fails(columns: ColumnMap, chunk: Chunk, passes: str) -> Shape | None:
    fails = columns.meaning["fails"]
    pairs = [
        (parse_number(p), parse_number(f)) for p, f in zip(chunk[passes], chunk[fails], strict=True)
    ]
    numbers = [(p, f) for p, f in pairs if p is not None and f is not None]
    if len(numbers) < len(pairs) or not numbers:
        return None
    if all(p + f == 1 for p, f in numbers) and "missing" not in columns.meaning:
        return None  # a verdict and its opposite: one attempt per row

    def count(part: Chunk) -> tuple[list[object], list[object]]:
        n: list[object] = []
        for p, f in zip(part[passes], part[fails], strict=True):
            first, second = parse_number(p), parse_number(f)
            n.append(None if first is None or second is None else first + second)
        return n, [_whole_or_cell(cell) for cell in part[passes]]

    decision = f"a row is a task: {passes!r} of {passes!r} + {fails!r} attempts passed"
    missing = columns.meaning.get("missing")
    if missing is not None:
        decision += f", {missing!r} are missing"
    return _as_counts(columns, count, decision)


_OTHER_TOTALS = ("k", "games", "matches", "tries", "reps", "repeats", "out_of", "max", "rollouts")
_TIES = ("ties", "tie", "tied", "draws", "draw", "drawn")
_ERROR_RATES = ("error_rate", "fail_rate", "failure_rate", "failed_rate", "loss_rate")


def _is_nothing(name: str) -> bool:
    """Whether a column counts attempts without a verdict, as infra and not_run do."""
    reward = reward_or_none(RewardWords(), fold_name(name).replace("_", " "))
    return reward is not None and reward != reward


def _with_missing(columns: ColumnMap, chunk: Chunk) -> ColumnMap:
    """The columns with the one that counts what has no verdict."""
    names = [n for n in list_unused(columns, chunk) if _is_nothing(n) and _are_counts(chunk, n)]
    if "missing" in columns.meaning or len(names) != 1:
        return columns
    return replace(columns, meaning=MappingProxyType({**columns.meaning, "missing": names[0]}))


def _refuse_ties(columns: ColumnMap, chunk: Chunk, passes: str, source: str) -> None:
    """Refuse passes and failures beside ties or errors: those are failures, or do not count."""
    unused = [n for n in list_unused(columns, chunk) if _are_counts(chunk, n)]
    ties = next((n for n in unused if fold_name(n) in _TIES or is_odd_ending(n)), None)
    if ties is None or {"fails", "missing"} & columns.stated:
        return
    fails = columns.meaning["fails"]
    c, failed, tied = (sum(parse_number(x) or 0 for x in chunk[n]) for n in (passes, fails, ties))
    raise ReadError(
        f"{ties!r} may be failures ({c:g} of {c + failed + tied:g} passed) or not count "
        f"({c:g} of {c + failed:g} passed).",
        source=source,
        hint=f"Say which: {map_option(f'c={passes},fails={fails}{JOIN_SIGN}{ties}')} (failures), "
        f"or {map_option(f'c={passes},fails={fails},missing={ties}')} (missing)",
    )


def _total_and_error_rate(columns: ColumnMap, chunk: Chunk, source: str) -> Shape | None:
    """A number of attempts and the share of them that failed, or a number of errors."""
    total, unused = columns.meaning["n"], list_unused(columns, chunk)
    rate = next((name for name in unused if fold_name(name) in _ERROR_RATES), None)
    is_graded = any(re.search(r"correct|score|acc|success|pass", fold_name(n)) for n in unused)
    if rate is not None and not is_graded:
        cells = [parse_number(cell) for cell in distinct_cells(chunk[rate])]
        if not cells or any(cell is None or cell < 0 for cell in cells):
            return None
        percent = max(cell for cell in cells if cell is not None) > 1

        def count(part: Chunk) -> tuple[list[object], list[object]]:
            n, failed = count_rates(part[total], part[rate], percent)
            pairs = zip(n, failed, strict=True)
            return n, [
                t - f if isinstance(f, int) and isinstance(t, float) else f for t, f in pairs
            ]

        decision = f"a row is a task: {rate!r} is the share of its {total!r} attempts that failed"
        return _as_counts(columns, count, decision)
    errors = columns.meaning.get("missing")
    if errors is not None and "error" in fold_name(errors) and _are_counts(chunk, errors):
        failed, runs = (sum(parse_number(x) or 0 for x in chunk[n]) for n in (errors, total))
        raise ReadError(
            f"no column counts what passed; if {errors!r} are all that failed, {runs - failed:g} "
            f"of {runs:g} attempts passed.",
            source=source,
            hint=f"If they are: --map n={total},fails={errors} ; otherwise name the column of "
            "passes: --map c=COLUMN",
        )
    return None


def _total_and_fails(columns: ColumnMap, chunk: Chunk) -> Shape | None:
    """A number of attempts and how many of them failed; the others passed."""
    total, fails = columns.meaning["n"], columns.meaning["fails"]
    if not (_are_counts(chunk, total) and _are_counts(chunk, fails)):
        return None

    def count(part: Chunk) -> tuple[list[object], list[object]]:
        pairs = [
            tuple(map(parse_number, row)) for row in zip(part[total], part[fails], strict=True)
        ]
        return [n for n, _ in pairs], [
            None if n is None or failed is None else n - failed for n, failed in pairs
        ]

    decision = f"a row is a task: all of its {total!r} attempts but {fails!r} passed"
    return _as_counts(columns, count, decision)


def _total_with(columns: ColumnMap, chunk: Chunk, source: str) -> Shape | None:
    """A number of attempts beside a score: passes, a pass rate, or the verdict of one attempt."""
    meaning = columns.meaning
    total, score = meaning["n"], meaning.get("success") or meaning.get("rate")
    if score is None:
        return None
    totals = [parse_number(cell) for cell in chunk[total]]
    whole = [n for n in totals if n is not None and n.is_integer() and n >= 0]
    if len(whole) < len(totals) or not whole or max(whole) <= 1:
        return None
    cells = distinct_cells(chunk[score])
    numbers = [number for cell in cells if (number := parse_number(cell)) is not None]
    if len(numbers) < len(cells) or not numbers:
        return None  # words are verdicts
    names = [meaning[word] for word in ("task", *RUN_COLUMNS) if meaning.get(word) in chunk]
    tasks = list(zip(*(map(str, chunk[name]) for name in names), strict=True))
    if len(set(tasks)) < len(tasks):
        return None  # a task has several rows: they are its attempts
    is_stated = {"n", "success"} <= columns.stated
    is_graded = any(not n.is_integer() for n in numbers)
    is_rate = "success" not in meaning or is_graded or is_percent(score)
    is_rate = is_rate or (is_stated and max(numbers) <= 1)
    percent = max(numbers) > 1 and is_rate
    if is_rate:
        return _as_counts(
            columns,
            lambda part: count_rates(part[total], part[score], percent),
            f"a row is a task: {score!r} is the share of its {total!r} attempts that passed",
        )
    if max(numbers) > 1:
        if not is_stated:
            _refuse_tests(columns, chunk, score, source)
        return _as_counts(
            columns,
            lambda part: (
                [_whole_or_cell(cell) for cell in part[total]],
                [_whole_or_cell(cell) for cell in part[score]],
            ),
            f"a row is a task: {score!r} of its {total!r} attempts passed",
        )
    passes = sum(number for cell in chunk[score] if (number := parse_number(cell)) is not None)
    raise ReadError(
        f"{score!r} beside {total!r} may be a verdict ({passes:g} of {len(tasks)} attempts passed) "
        f"or the number of passes ({passes:g} of {sum(whole):g}).",
        source=source,
        hint=f"Say which: --map success={score} (a row is an attempt), or --map "
        f"n={total},c={score} (a row is a task).",
    )


def _model_rates(columns: ColumnMap, chunk: Chunk) -> Shape | None:
    """A number of attempts beside a column for each model, with shares of passes."""
    wide = find_wide(columns.without("n"), chunk)
    if wide is None or wide.columns.meaning.keys() != {"task", "model", "success"}:
        return None
    total, rate = columns.meaning["n"], wide.columns.meaning["success"]
    if {parse_number(cell) for cell in wide.rearrange(chunk)[0][rate]} <= {0, 1, None}:
        return None
    decision = f"cells are the share of the {total!r} attempts that passed"

    def count(part: Chunk) -> tuple[list[object], list[object]]:
        return count_rates(part[total], part[rate], False)

    counts = _as_counts(wide.columns, count, decision)

    def rearrange(part: Chunk) -> tuple[Chunk, list[int] | None]:
        part, origins = wide.rearrange(part)
        return counts.rearrange(part)[0], origins

    return replace(counts, rearrange=rearrange, decisions=(*wide.decisions, decision))


_ANSWERS = (
    *("answer", "completion", "response", "output", "code", "solution", "patch", "diff"),
    *("generated_code", "model_output", "model_answer", "generation", "prediction", "program"),
)
_UNCLEAR_TOTALS = ("total", "n_total", "num_total", "count")  # not attempts or runs


def _refuse_tests(columns: ColumnMap, chunk: Chunk, passes: str, source: str) -> None:
    """Refuse counts beside one answer per row: they may be the tests that the answer passed."""
    answer = next((name for name in chunk if fold_name(name) in _ANSWERS), None)
    if answer is None or fold_name(columns.meaning["n"]) not in _UNCLEAR_TOTALS:
        return
    texts = [cell for cell in distinct_cells(chunk[answer]) if cell not in (None, "")]
    if not texts or not all(isinstance(c, str) and split_list(c) is None for c in texts):
        return
    total = columns.meaning["n"]
    pairs = [tuple(map(parse_number, row)) for row in zip(chunk[passes], chunk[total], strict=True)]
    numbers = [(p, n) for p, n in pairs if p is not None and n is not None]
    whole = sum(p >= n for p, n in numbers)
    name = columns.meaning["task"]
    task = "" if fold_name(name) in ALIASES["task"] else f" {map_option(f'task={name}')}"
    raise ReadError(
        f"{passes!r} and {total!r} may count the tests of one answer, since {answer!r} holds one "
        f"per row ({counted(whole, 'row')} of {len(numbers):,} passed all), or attempts "
        f"({sum(p for p, _ in numbers):,.0f} of {sum(n for _, n in numbers):,.0f} passed).",
        source=source,
        hint=f"Say which: --pass '{passes} >= @{total}'{task} (a row is an attempt), or --map "
        f"n={total},c={passes} (a row is a task).",
    )


def count_rates(
    totals: Sequence[object], rates: Sequence[object], percent: bool
) -> tuple[list[object], list[object]]:
    """n and c; a rate that no number of passes gives stays as it is, and its row is lost."""
    n: list[object] = []
    c: list[object] = []
    for total_cell, cell in zip(totals, rates, strict=True):
        total, rate = parse_number(total_cell), parse_number(cell)
        n.append(total_cell if total is None else total)
        if total is None or rate is None:
            c.append(cell)
            continue
        share = rate / 100 if percent and not str(cell).strip().endswith("%") else rate
        decimals = len(str(cell).strip().rstrip("%").partition(".")[2])
        step = 10.0 ** -(decimals + (2 if percent or str(cell).strip().endswith("%") else 0))
        passes = round(share * total)
        # A rounded rate gives the passes when the rounding is less than half a pass.
        close = abs(share * total - passes) <= max(step * total, 1e-6) and step * total < 1
        is_whole = close or abs(share * total - passes) < 1e-6
        c.append(passes if is_whole else f"{cell} of {total:g} attempts")
    return n, c


def _fractions(columns: ColumnMap) -> Shape:
    """Cells such as 3/4: passes of attempts."""
    name = columns.meaning["success"]

    def count(chunk: Chunk) -> tuple[list[object], list[object]]:
        pairs = [FRACTION.fullmatch(str(cell)) or (cell, cell, cell) for cell in chunk[name]]
        return [pair[2] for pair in pairs], [pair[1] for pair in pairs]

    return _as_counts(columns, count, f"a row is a task: {name!r} holds passes / attempts")
