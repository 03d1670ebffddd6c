"""Logs of tests: TAP, what pytest prints, and marks behind names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from passhat.errors import ReadError
from passhat.readers.csv_blocks import is_delimited
from passhat.readers.formats.junit import split_repeat
from passhat.readers.formats.pages import is_markdown
from passhat.readers.sources import Source
from passhat.readers.summary_labels import without_label
from passhat.readers.text_logs import (
    TRIAL,
    VERDICT_WORD,
    as_rows,
    drop_stamp,
    numbered_tests,
    read_text,
    split_segments,
)
from passhat.readers.wide_tables import is_model_name
from passhat.stats.outcomes.columns import ALIASES, fold_name

_LONGEST_LINE, _MOST_LINES, _LONGEST_TEST = 300, 20_000, 1_000
_TAP = re.compile(r"(?m)^(?:TAP version \d+|\d+\.\.\d+)\s*$")
_TAP_TEST = re.compile(r"( *)(not )?ok\b(?: +(\d+))?(?: +-)? *(.*)")
_TAP_REMARK = re.compile(r"(?<!\\)\s#\s*(?:(skip|todo)|time=|duration).*", re.IGNORECASE)
_TAP_TIME = re.compile(r"\s+in \d+ ?m?s(?:ec)?$")
_TAP_PLAN = re.compile(r"1\.\.(\d{1,9})\s*(?:#.*)?")
_SESSION = re.compile(r"=+ test session starts =+")
_SESSION_END = re.compile(
    r"=+ .*\b(?:passed|failed|errors?|skipped|no tests ran)\b.* in [\d.]+s.*=+"
)
_ENDINGS = r"PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN"
_NODE = r"\S+?\.py::[^\s\[]+(?:\[.*?\])?"
_NODE_LINE = re.compile(rf"({_NODE})(?:\s+({_ENDINGS})\b.*|\s*)")
_WORKER_LINE = re.compile(rf"(?:\[gw\d+\]\s*(?:\[\s*\d+%\]\s*)?)({_ENDINGS})\s+({_NODE})\s*")
_SUMMARY_LINE = re.compile(rf"({_ENDINGS})\s+({_NODE})(?: - .*)?\s*")
_ENDING_LINE = re.compile(rf"({_ENDINGS})\b\s*(?:\[\s*\d+%\])?\s*")
_PYTEST_WORDS = {"RERUN": "failed", "XFAIL": "skipped", "XPASS": "passed"}
_Test = tuple[tuple[str, ...], str]
"""The names of groups around a test and its own, and how it ended."""


def convert_test_log(source: Source) -> Source | None:
    """A row for each test of a TAP stream or of a log of pytest; ``None`` for another text."""
    head = source.head.decode("utf-8", "replace")
    is_tap = _TAP.search(head) and any(map(_TAP_TEST.fullmatch, head.splitlines()))
    if not is_tap and not _SESSION.search(head):
        return None
    texts = read_text(source).splitlines()
    lines = [drop_stamp(line) for line in texts if len(line) <= _LONGEST_TEST]
    if is_tap:
        tests, decisions = _parse_tap(lines)
    else:
        results, decisions = _parse_pytest(lines), list[str]()
        if results is None:
            return None
        tests = results
        if not tests:
            raise ReadError(
                "is what pytest prints without the names of its tests.",
                source=source.name,
                hint="Run it so: pytest -v, or pytest --junitxml=report.xml",
            )
    rows = _name_tests(tests)
    named = numbered_tests(str(row["task"]) for row in rows if "task" in row)
    decision = "; ".join(("each test is an attempt", *decisions, *named))
    return as_rows(source, rows, decision, lines)


def _parse_tap(lines: Sequence[str]) -> tuple[list[_Test], list[str]]:
    """The tests without the lines of blocks that describe them, and those that are lacking."""
    open_tests: dict[int, list[_Test]] = defaultdict(list)
    plan, is_block = 0, False
    for line in lines:
        if is_block or re.fullmatch(r"\s+---\s*", line):
            is_block = not re.fullmatch(r"\s+\.\.\.\s*", line)
            continue
        match, stated = _TAP_TEST.fullmatch(line), _TAP_PLAN.fullmatch(line)
        plan += int(stated[1]) if stated else 0
        if match is None:
            continue
        remark = _TAP_REMARK.search(text := f" {match[4]}")
        name = (text[: remark.start()] if remark else text).strip()
        depth, name = len(match[1]), _TAP_TIME.sub("", name) or f"test {match[3]}"
        inner = [
            each for level in sorted(open_tests) if level > depth for each in open_tests[level]
        ]
        for level in [level for level in open_tests if level > depth]:
            del open_tests[level]
        ending = "skipped" if remark and remark[1] else "failed" if match[2] else "passed"
        own = [((name, *names), end) for names, end in inner]  # the line behind its subtests
        open_tests[depth] += own or [((name,), ending)]
    tests = [each for level in sorted(open_tests) for each in open_tests[level]]
    count = sum(1 for line in lines if _TAP_TEST.fullmatch(line) and line[:1] != " ")
    lacking = (
        [f"{plan - count} of {plan} planned tests are not in the file"] if plan > count else []
    )
    return tests, lacking


def _parse_pytest(lines: Sequence[str]) -> list[_Test] | None:
    """The tests by their lines, or by the summary below; ``None`` in a log of something else."""
    tests: list[_Test] = []
    listed: list[_Test] = []
    node, is_inside, others = "", False, 0
    for line in lines:
        is_inside = bool(_SESSION.search(line)) or (is_inside and not _SESSION_END.search(line))
        if not is_inside and not _SESSION_END.search(line):
            others += VERDICT_WORD.search(line) is not None
        if summary := _SUMMARY_LINE.fullmatch(line):
            listed.append(_pytest_test(summary[2], summary[1]))
            continue
        name, word = "", ""
        if match := _NODE_LINE.fullmatch(line):
            name, word = match[1], match[2] or ""
        elif worker := _WORKER_LINE.fullmatch(line):
            word, name = worker.groups()
        elif node and (ending := _ENDING_LINE.fullmatch(line)):  # below what the test printed
            name, word = node, ending[1]
        node = name if name and not word else node if not name else ""
        if word and not (word == "ERROR" and tests and tests[-1][0] == (name,)):
            tests.append(_pytest_test(name, word))  # an error at the end follows its verdict
    if others > 1:
        return None
    is_whole = {"passed", "failed"} <= {end for _, end in listed}  # pytest -rA
    return tests or (listed if is_whole else [])


def _pytest_test(name: str, word: str) -> _Test:
    return (name,), _PYTEST_WORDS.get(word, word.lower())


def _name_tests(tests: Sequence[_Test]) -> list[dict[str, object]]:
    """A row for each test: its task, its attempt, and the model that a part of all names is."""
    files = {names[0].partition("::")[0] for names, _ in tests if "::" in names[0]}
    trials, parts = list[int | None](), list[tuple[str, ...]]()
    labels: list[str] = []
    for names, _ in tests:
        name = names[-1]
        name = name.partition("::")[2] if len(files) == 1 and len(names) == 1 else name
        name, number = split_repeat(name)
        trial = None if number is not None else TRIAL.search(name)
        if trial is not None:
            name, number = f"{name[: trial.start()]} {name[trial.end() :]}".strip(), int(trial[2])
        trials.append(number)
        path = (*names[:-1], *((name,) if name else ()))
        parts.append(path if len(names) > 1 else tuple(split_segments(name)))
        labels.append(" > ".join(path))
    widths = set(map(len, parts))
    if widths == {1}:
        parts = _split_parameters([part for (part,) in parts])
    columns = list(zip(*parts, strict=True)) if len(set(map(len, parts))) == 1 else []
    models = [i for i, cells in enumerate(columns) if all(map(is_model_name, cells))]
    is_grid = len(columns) == 2 and _is_grid(parts)
    rows: list[dict[str, object]] = []
    for path, label, number, (_, ending) in zip(parts, labels, trials, tests, strict=True):
        row: dict[str, object] = {}
        if len(models) == 1 < len(path):
            row["model"] = path[models[0]]
            row["task"] = " > ".join(part for i, part in enumerate(path) if i != models[0])
        elif is_grid:  # of groups of tests, or of models: not to be guessed
            row |= {"model-or-group": path[0], "name": path[1]}
        else:
            row["task"] = label
        row |= {"trial": number} if number is not None else {}
        rows.append({**row, "status": ending})
    return rows


def _is_grid(pairs: Sequence[tuple[str, ...]]) -> bool:
    firsts, seconds = ({pair[place] for pair in pairs} for place in (0, 1))
    return len(firsts) > 1 and len(seconds) > 1 and len(set(pairs)) == len(firsts) * len(seconds)


def _split_parameters(names: Sequence[str]) -> list[tuple[str, ...]]:
    """``test_agent[gpt-4-sort]`` and ``gpt-4 sort`` as model and task, where each pair is there."""
    cuts: list[list[tuple[str, str]]] = []
    for name in names:
        match = re.fullmatch(r"(.*)\[(.+)\]", name)
        sign, text = ("-", match[2]) if match else (" ", name)
        words = text.split(sign)
        cuts.append([(sign.join(words[:i]), sign.join(words[i:])) for i in range(1, len(words))])
    beside: dict[tuple[int, str], set[str]] = defaultdict(set)
    for first, second in {pair for pairs in cuts for pair in pairs}:
        beside[0, first].add(second)
        beside[1, second].add(first)
    best = [
        max(pairs, key=lambda p: sorted((len(beside[0, p[0]]), len(beside[1, p[1]]))), default=None)
        for pairs in cuts
    ]
    pairs = [pair for pair in best if pair is not None]
    sides = [all(is_model_name(pair[place]) for pair in pairs) for place in (0, 1)]
    if len(pairs) < len(names) or not _is_grid(pairs) or sides[0] == sides[1]:
        return [(name,) for name in names]
    return [pair if sides[0] else pair[::-1] for pair in pairs]


# -- marks behind names ----------------------------------------------------------------------

_GOOD_MARKS, _BAD_MARKS, _NO_MARKS = "✓✔✅☑🟢🟩+PY1", "✗✘✖✕❌☒×🔴🟥FN0", "?⚠⏭·…~_"
_SIGN = r"[^\w\s\"'(){}\[\]<>:;,|/\\#$%&@!=*^`]"
_MARK = rf"(?:{_SIGN}|[PFXOxoYN01SETW_])\ufe0f?"
_MARK_LINE = re.compile(
    rf"(\s*)(?:[-*•]\s+)?(\S.{{0,80}}?)(?::\s*|\s{{2,}}|\s(?=[^\w\s.])|(?=\[))"
    rf"[\[(|]?\s?({_MARK}(?:[ ,|/]{{0,4}}{_MARK}){{1,99}})\s?[\])|]?"
    r"(\s{2,}\S.*|\s?[(#,;–—].*|\s+\d.*|\s*)"
)
_STATED_COUNT = re.compile(r"(?<![\d.])(\d{1,3})\s*/\s*(\d{1,3})(?![\d.])")
_NOT_RUN = re.compile(
    r"\b(?:miss|lost|skip|unknown|unclear|n/?a\b|slept|infra|"
    r"not? (?:be )?(?:run|ran|tried|start|verdict|result|made|execut|judged|graded|measured|data))"
)
_NOT_PASSED = re.compile(
    r"\b(?:no|not|fail\w*|wrong|error\w*|bad|broken?|incorrect|nope)\b|n['’]t\b"
)
_PASSED = re.compile(
    r"\b(?:pass\w*|work\w*|ok|success\w*|solved|good|yes|correct|done|right|fine)\b"
)
_COUNTS = re.compile(r"(?i)\d\s*(?:/\s*\d|(?:passed|failed|ok)\b)|(?:total|overall|passed)\b")
_Marks = tuple[str, str, list[str]]
"""The heading above a line, the name in it, and its marks."""


def convert_marks(source: Source) -> Source | None:
    """A row for each mark of lines such as ``sort: + - ? +``; ``None`` for another text.

    The heading above lines names the model or the task of all of them. Marks that are not usual
    need a legend, as in ``x = passed``.
    """
    head = [line for line in source.head.decode("utf-8", "replace").splitlines() if line.strip()]
    count = sum(map(bool, map(_match_marks, head)))
    is_table = is_markdown(source.head) or is_delimited(source.head)
    if is_table or count < 2 or 4 * count < len(head):
        return None
    lines = [line.expandtabs() for line in read_text(source).splitlines() if line.strip()]
    matches = list(map(_match_marks, lines)) if len(lines) < _MOST_LINES else []
    gaps = {len(re.split(r"\s{2,}", line.strip())) for line in lines}
    if not any(matches) or (len(gaps) == 1 and not matches[0]):
        return None  # a heading with as many columns
    entries = _parse_entries(lines, matches)
    names = {heading for heading, _, _ in entries}
    if 2 * (len(entries) + len(names)) <= len(lines):
        return None
    marks = list(dict.fromkeys(mark for _, _, each in entries for mark in each))
    meaning = _mark_meaning(marks, [t for t, m in zip(lines, matches, strict=True) if m is None])
    if not _are_sound(entries, meaning, [match[4] for match in matches if match]):
        return None
    words = _name_roles(entries)
    rows = [
        {words[0]: heading, words[1]: name, "trial": number, "status": meaning[mark]}
        for heading, name, each in entries
        for number, mark in enumerate(each, 1)
    ]
    for row in rows:
        row.pop("", None)
        row |= {word: without_label(str(row[word])) for word in words if word}
    legend = ", ".join(f"{mark} {meaning[mark] or 'missing'}" for mark in marks)
    return as_rows(source, rows, f"each mark behind a name is an attempt: {legend}", lines)


def _match_marks(line: str) -> re.Match[str] | None:
    is_rule = not re.search(r"[^\W_]", line)
    return None if is_rule or len(line) > _LONGEST_LINE else _MARK_LINE.fullmatch(line)


def _split_marks(text: str) -> list[str]:
    return [mark.replace("\ufe0f", "").replace("−", "-") for mark in re.findall(_MARK, text)]


def _parse_entries(lines: Sequence[str], matches: Sequence[re.Match[str] | None]) -> list[_Marks]:
    """The lines with marks, each with the heading above; none where columns have names."""
    entries: list[_Marks] = []
    heading, depth = "", -1
    first = next(match for match in matches if match)
    for line, match in zip(lines, matches, strict=True):
        indent = len(line) - len(line.lstrip())
        if match is None:
            if _is_header(line, first):
                if not all(map(str.isdigit, (word[-1] for word in line.split()[-2:]))):
                    return []  # a column for each model
            elif not (
                _COUNTS.search(line) or 0 <= depth < indent or not re.search(r"[^\W\d_]", line)
            ):
                heading, depth = line.strip(" #*=_>:-▶►▸•[]"), -1
            continue
        depth = len(match[1])
        entries.append((heading, match[2].strip(" .…-–—"), _split_marks(match[3])))
    return entries


def _is_header(line: str, match: re.Match[str]) -> bool:
    """Whether words of a line stand above the marks of another, one above each."""
    spans = [word.span() for word in re.finditer(r"\S+", line)]
    if " " not in match[3].strip():
        return False
    places = [match.start(3) + mark.start() for mark in re.finditer(_MARK, match[3])]
    above = [next((i for i, (a, b) in enumerate(spans) if a <= at < b), None) for at in places]
    return None not in above and len(set(above)) == len(places)


def _mark_meaning(marks: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """The word for each mark, by a legend in other lines or by its usual meaning."""
    usual = dict.fromkeys(_GOOD_MARKS, "pass") | dict.fromkeys(_BAD_MARKS, "fail")
    usual |= dict.fromkeys(_NO_MARKS, "")
    usual |= dict.fromkeys("-–—", "fail" if "+" in marks else "")
    meaning = {mark: usual[mark] for mark in marks if mark in usual}
    for text in texts:
        found: dict[str, str] = {}
        for mark in marks:
            sign = rf"(?<![^\s,;|(]){re.escape(mark)}\ufe0f?\s*(=|:|->|→|means|is)?\s*"
            match = re.search(
                rf"{sign}([a-z][^,;|()=]*?)(?=\s{{2,}}|\s{_SIGN}|[,;|()]|$)", text, re.I
            )
            if match and (match[1] or text[match.start() :][1:2] == " "):
                found[mark] = match[2].lower()
        for mark, words in found.items():
            is_stated = len(found) > 1 or re.search(rf"{re.escape(mark)}\ufe0f?\s*[=:]", text)
            if is_stated and _NOT_RUN.search(words):
                meaning[mark] = ""
            elif is_stated and _NOT_PASSED.search(words):
                meaning[mark] = "fail"
            elif is_stated and _PASSED.search(words):
                meaning[mark] = "pass"
    return meaning


def _are_sound(
    entries: Sequence[_Marks], meaning: Mapping[str, str], remarks: Sequence[str]
) -> bool:
    """Whether all marks have a meaning, and the passes are as many as the lines state."""
    marks = {mark for _, _, each in entries for mark in each}
    if len(entries) < 2 or marks - meaning.keys() or not {"pass", "fail"} & {*meaning.values()}:
        return False
    if "pass" not in meaning.values() or len({(h, n) for h, n, _ in entries}) < len(entries):
        return False
    if marks <= set("01") and not any(each[0] == "0" for _, _, each in entries):
        return False  # numbers such as 100
    for remark, (_, _, each) in zip(remarks, entries, strict=True):
        stated = _STATED_COUNT.search(remark)
        passes = [meaning[mark] for mark in each].count("pass")
        if stated and int(stated[2]) == len(each) and int(stated[1]) != passes:
            return False
    return True


def _name_roles(entries: Sequence[_Marks]) -> tuple[str, str]:
    """The columns of headings and of names: the model, and the task."""
    headings, names = {heading for heading, _, _ in entries}, {name for _, name, _ in entries}
    labels = {fold_name(heading.partition(":")[0]) for heading in headings if ": " in heading}
    are_models = [2 * sum(map(is_model_name, each)) > len(each) for each in (headings, names)]
    if labels and labels <= {*ALIASES["model"]}:
        return "model", "task"
    if len(headings) < 2:
        return ("model" if are_models[0] else "", "model" if are_models[1] else "task")
    if are_models[0] != are_models[1]:
        return ("model", "task") if are_models[0] else ("task", "model")
    pair = ("model-or-group", "name")
    return pair if len(headings) <= len(names) else pair[::-1]
