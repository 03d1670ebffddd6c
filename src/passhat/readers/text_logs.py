"""Rows of plain texts: a line for each attempt, ``name=value`` pairs, or blocks of fields.

A line about an attempt has a verdict at a fixed place. What varies before it, between brackets,
colons and words that are the same in all such lines, are its fields; the word before a field is its
name. Names that only stand in lines above, such as a heading, hold for the lines below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from passhat._display import counted
from passhat.errors import ReadError
from passhat.readers.csv_blocks import STAMP, is_delimited
from passhat.readers.formats.pages import is_markdown
from passhat.readers.sources import Source, make_folder
from passhat.readers.wide_tables import is_model_name
from passhat.readers.zip_members import write_lines
from passhat.stats.outcomes.columns import ALIASES, ColumnMap, fold_name, is_negative

_MOST_TEXT = 64 << 20
_LONGEST_LINE = 300
_LEVEL = r"\[?\b(?:INFO|DEBUG|WARN(?:ING)?|ERROR|CRITICAL|NOTICE)\b\]?[ \t]*[-:|]?"
_ALARM = re.compile(r"\b(?:DEBUG|WARN(?:ING)?|ERROR|CRITICAL)\b")
_BEGIN = re.compile(rf"\s*(?:(?:{STAMP})\s*[-|]?\s*)?(?:{_LEVEL}\s+)?(?:[\w.]+\s+[-|]\s)?")
_NEGATED = (
    r"(?:(?:(?:did|does|do|was|were|is|has|have|had|could|can)(?:\s+not|n['’]?t)|cannot|not|never)"
    r"(?:\s+(?:be|been|yet|a))*[\s_]+|fail(?:ed|s|ure)?\s+to\s+(?:be\s+)?)"
    r"(?:ok|pass(?:ed|ing|es)?|succeed(?:ed)?|success(?:ful(?:ly)?)?|solved?|resolved?|correct(?:ly)?"
    r"|accepted|win|won)"
)
_WORDS = (
    rf"{_NEGATED}|ok|pass(?:ed|es)?|fail(?:ed|ure|s)?|ko|(?:un)?success(?:ful(?:ly)?)?|succeeded|"
    r"(?:un)?solved|(?:un)?resolved|(?:in)?correct(?:ly)?|wrong|accepted|rejected|errored|error|"
    r"skip(?:ped)?|ignored|xfail(?:ed)?|xpass(?:ed)?|timeout|timed out|won|lost|"
    r"(?:nicht\s+)?(?:bestanden|erfolgreich|gelöst)|fehlgeschlagen|gescheitert|(?:non\s+)?réussi|"
    r"échoué|(?:no\s+)?(?:aprobado|superado)|fallido|未?通过|成功|失败|不?合格"
)
VERDICT_WORD = re.compile(
    rf"(?<![\w./:-])(?i:{_WORDS})(?![\w/-]|\.\w)|[✓✔✅☑✗✘✖✕❌☒×]\ufe0f?|(?<=- \[)[ xX](?=\])"
    rf"|(?:(?<==)|(?<=[=:] ))(?i:true|false|yes|no|y|n|[01])(?![\w./%-])"
)
_ASSIGNED = re.compile(r"(?i)\s*(?:=\s*(?:true|false|yes|no|y|n|[01])|:\s*(?:true|false))")
"""Behind ``passed``: the line has a field and its value, and no name of a task."""
_GRID = re.compile(rf"({VERDICT_WORD.pattern})[\s|]+({VERDICT_WORD.pattern})")
"""Two verdicts side by side: a table."""
_SAME_WORD = {
    "x": "pass",
    "": "fail",
    **dict.fromkeys(("skip", "ignored", "xfail", "xfailed"), "skipped"),
    **dict.fromkeys(("xpass", "xpassed", "successfully", "correctly"), "pass"),
    "errored": "error",
    "unsuccessfully": "fail",
}


def _plain_word(match: str) -> str:
    """The word for a verdict as tables write it: ``did not pass`` is a failure."""
    word = " ".join(match.lower().removesuffix("\ufe0f").replace("_", " ").split())
    return "fail" if re.fullmatch(_NEGATED, word) else _SAME_WORD.get(word, word)


_SIGN = re.compile(
    r"\s*(?:\.{2,}|…|->|=>|→|\s::\s|:(?=\s|$)|\s[-–—]+\s|\||\t|;(?=\s)|,(?=\s)|\s{2,}"
    r"|(?<![\w.-])[\[({<'\"]|[\])}>'\"](?=$|[\s:,.;-]))\s*"
)
_TRIAL_NAMES = (
    "attempt|trial|run|try|rep|repeat|repetition|seed|sample|epoch|iteration|iter|rollout|round"
)
TRIAL = re.compile(
    rf"(?<![\s,(\[/@-])[\s,(\[/@-]*+\b({_TRIAL_NAMES})(?:\s*(?:no\.?|number|nr))?[\s#=:_-]*(\d+)(?:\s*(?:/|of)\s*\d+)?\b[)\]]?",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?<![^\s,;|(\[{])([A-Za-z_][\w.]*)=(\"[^\"]*\"|'[^']*'|[^\s,;|)\]}]+)")
_MEASURE = re.compile(r"[\d.,:]+\s*(?:%|ms|s|sec|seconds|min|m|h|k|tokens|\$|/\s*\d+)?|\$[\d.]+")
_SUMMARY = re.compile(
    r"(?<![\w.#-])\d++\s*+(?:/\s*+\d++\s*+)?(?:tests?|tasks?|attempts?|runs?)?\s*+(?:were\s++)?"
    rf"(?:{_WORDS})\b|\b(?:{_WORDS})\s*+[:=]\s*+\d[\d./]*|\b(?:rate|accuracy)\b|^\s*(?:total|overall|summary)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"\s*(?:#+\s+(.+?)\s*#*|([=*~-])\2{1,}\s*(\S.*?\S)\s*\2{2,}|\[([^\[\]]+)\]|(\S[^:]*?):|<+\s*(.+?)\s*>+|[▶►▸●»]\s*(\S.*?))\s*"
)
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?!<|\s)")
_RULE_LINE = re.compile(r"\s*([*=_#~-])\1{2,}\s*")
_FIELD_LINE = re.compile(r"\s*([A-Za-z][\w ./-]{0,40}?)\s*(?::|=)\s+(\S.*)")
_NAMED = frozenset(alias for word in ("task", "model", "trial", "suite") for alias in ALIASES[word])
_MOST_NAMES = 6
_OPTION = re.compile(r"(?<=\s)--(model|agent|task)(?:=|\s+)([^\s-]\S*)")
_EXITED = re.compile(
    r"(?i)(?<!\w)(?:exit(?:ed)?(?:\s+with)?(?:[\s_]+(?:code|status))?|return[\s_]?code|rc)"
    r"\s*[=:]?\s*(\d{1,3})(?![\w.])"
)
_EXIT_NAMES = re.compile(r"(?:exit|return|ret)_?(?:code|status|value|val)?|rc")


def read_text(source: Source) -> str:
    """The whole text of a file."""
    with source.open() as stream:
        data = stream.read(_MOST_TEXT + 1)
    if len(data) > _MOST_TEXT:
        raise ReadError(
            "is a text of more than 64 MiB; texts of lines and blocks are read up to there.",
            source=source.name,
            hint="Write its attempts as CSV or JSON lines.",
        )
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _short_lines(text: str) -> list[str]:
    """The lines of a text; a longer one is no message about an attempt."""
    return [line for line in text.splitlines() if len(line) <= _LONGEST_LINE]


def convert_text(source: Source) -> Source | None:
    """The rows of a text that is no table; ``None`` for any other."""
    if _MARKUP.match(source.head) or (is_delimited(source.head) and not _are_sentences(source)):
        return None
    return _from_pairs(source) or _from_blocks(source) or _from_verdict_lines(source)


def _are_sentences(source: Source) -> bool:
    """Whether lines have a comma or bar between words, and each a verdict: there is no header."""
    lines = [line for line in _text_lines(source.head)[:40] if re.search(r",\s|\s\|\s", line)]
    cells = re.split(r"\s*[,|]\s+", lines[0].strip("| ")) if lines else []
    names = [cell for cell in cells if not any(cell in line for line in lines[1:])]
    return (
        len(lines) > 1
        and not any(re.search(r",\S|\S\||;|\t", line) for line in lines)
        and all(map(VERDICT_WORD.search, lines))
        and not ColumnMap.resolve(names).meaning
    )


def as_rows(
    source: Source, rows: Iterable[Mapping[str, object]], decision: str, lines: Sequence[str]
) -> Source:
    """Write rows as JSON lines, with the share of passes that the last lines of a text state."""
    path = make_folder() / f"{source.stem}.jsonl"
    write_lines(path, map(dict, rows))
    rate = find_stated_rate(lines)
    return Source(source.name, path, found=source.found, conversion=decision, stated_rate=rate)


_RATE_LINE = re.compile(
    r"(?i)\W*(?:\w+ )?(?:accuracy|acc|(?:pass|success|solve)[ _]rate|pass@1)\b[^\d\n]{0,20}"
    r"(\d++(?:\.\d++)?)(?!\s*/)\s*+(%?)(?:\W.*)?"
)


def find_stated_rate(lines: Sequence[str]) -> float | None:
    """The share of passes that the last lines of a text state, as in ``accuracy : 69.6``."""
    for line in reversed(lines[-20:]):
        match = _RATE_LINE.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if match is not None:
            rate = float(match[1])
            rate = rate / 100 if match[2] or rate > 1 else rate
            return rate if rate <= 1 else None
    return None


# -- lines with a verdict ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a verdict: the text that names the attempt, cut at its signs."""

    signs: tuple[str, ...]
    segments: tuple[str, ...]
    verdict: str
    named: Mapping[str, str]
    """Fields with a name of their own: pairs, and the number of an attempt."""
    above: Mapping[str, str]
    """Names that lines above give."""
    begin: str | None
    """The signs before a verdict that begins the line."""

    @property
    def key(self) -> object:
        return self.signs, self.begin


def _from_verdict_lines(source: Source) -> Source | None:
    """A row for each line with a verdict; ``None`` for a text without several of one form."""
    head = _short_lines(source.head.decode("utf-8", "replace"))
    has_words = any(VERDICT_WORD.search(line) for line in head)
    if is_markdown(source.head) or not (has_words or any(map(_EXITED.search, head))):
        return None
    texts = _short_lines(read_text(source))
    if not has_words:
        texts = [_EXITED.sub(lambda m: " pass" if int(m[1]) == 0 else " fail", t) for t in texts]
    if 2 * sum(bool(_GRID.search(text)) for text in texts) > len(texts):
        return None
    lines = list(_parse_lines(texts))
    groups = Counter(line.key for line in lines)
    if not groups or max(groups.values()) < 2:
        return None
    best = max(groups, key=lambda key: groups[key])
    chosen = [line for line in lines if line.key == best]
    if not all(line.above or line.named or any(line.segments) for line in chosen):
        return None  # names come behind their verdicts, and would be taken for the next ones'
    texts_read = {segment for line in chosen for segment in line.segments if segment}
    rest = [line for line in lines if line.key != best]
    others = [line for line in rest if texts_read.isdisjoint(line.segments)]
    if 4 * len(others) > len(chosen) or (others and len({line.verdict for line in chosen}) < 2):
        return None  # they may be attempts, too
    rows = _name_fields(chosen)
    if rows is None:
        return None
    decision = "each line with a verdict is an attempt"
    decision += "" if has_words else "; exit code 0 is a pass, any other a failure"
    if names := list(dict.fromkeys(name for row in rows[:50] for name in row)):
        decision += f", with {', '.join(names)}"
    if rest:
        decision += f"; left out: {counted(len(rest), 'line')} of another form"
    decision = "; ".join((decision, *numbered_tests(str(row.get("task")) for row in rows)))
    return as_rows(source, rows, decision, texts)


def numbered_tests(tasks: Iterable[str]) -> Iterator[str]:
    """A decision where only a number tells tests apart: it may be that of the attempt."""
    numbered = [task for task in dict.fromkeys(tasks) if re.search(r"\[\d+\]$", task)]
    if len({task.rpartition("[")[0] for task in numbered}) < len(numbered):
        yield f"{numbered[0]!r} and {numbered[1]!r} are read as different tests, not as attempts"


def _parse_lines(texts: Sequence[str]) -> Iterator[_Line]:
    above: dict[str, str] = {}
    for text in texts:
        if not text.strip():
            continue
        plain = TRIAL.sub(" ", _PAIR.sub("", text))  # "attempt 2 passed" is no number of passes
        matches = [] if _SUMMARY.search(plain) else list(VERDICT_WORD.finditer(text))
        line = _parse_line(text, matches, above) if matches else None
        if line is not None:
            yield line
        else:
            above = _names_above(text, above)


def _parse_line(text: str, matches: list[re.Match[str]], above: dict[str, str]) -> _Line | None:
    begin = _BEGIN.match(text)
    start = begin.end() if begin is not None and begin.end() <= matches[0].start() else 0
    lead = text[start : matches[0].start()].strip(" \t[(*+-")
    is_field = not lead and _ASSIGNED.fullmatch(text[matches[0].end() :].rstrip()) is not None
    match = matches[-1] if lead or is_field else matches[0]
    word = _plain_word(match[0])
    pairs = {name: value.strip("\"'") for name, value in _PAIR.findall(text)}
    before, after = text[start : match.start()], text[match.end() :]
    if is_field:
        if is_negative(matches[0][0]):
            return None
        before = ""
    elif not lead:
        before = re.split(r"\s+#|\s+\(\d|\s{2,}|\s\[", after.strip(" :])-\t"), maxsplit=1)[0]
        before = re.sub(r"^(\d+\s*[-.)]\s+|- )", "", _PAIR.sub("", before).strip())
        before = before if after.lstrip()[:1].isdigit() else re.split(r"\s-\s", before)[0]
        if re.search(r"#\s*(skip|todo)", after, re.IGNORECASE):
            word = "skipped"  # TAP marks a test that was not run as "ok 3 # SKIP"
    elif _MEASURE.fullmatch(word) or re.search(r"\w\s+(?:of|to|by)\s*$", before):
        return None
    named = {name: value for name, value in pairs.items() if value != match[0]}
    before = _PAIR.sub("", before)
    before = re.sub(r"[A-Za-z_]\w*=\s*$|\s+(?:has|have|had|was|were|is)\s*$", "", before)
    trial = TRIAL.search(before)
    if trial is not None:
        named["trial"] = trial[2]
        before = before[: trial.start()] + " " + before[trial.end() :]
    signs = tuple(sign.strip() or " " for sign in _SIGN.findall(before.strip()))
    segments = tuple(map(_close, _SIGN.split(before.strip())))
    if not lead and segments:
        signs, segments = (), (" ".join(before.split()),)
    if not (lead or is_field or before or named):
        return None
    mark = None if lead else re.sub(r"\d+", "1", text[start : match.start()].strip())
    return _Line(signs, segments, word, named, dict(above), mark)


def _close(text: str) -> str:
    """The text with the bracket at its end that was taken as a sign: ``test_sort[small``."""
    text = " ".join(text.split())
    return f"{text}]" if text.count("[") > text.count("]") else text


def split_segments(name: str) -> list[str]:
    """The parts of a name between signs: ``gpt-5: sort (small)``."""
    return [part for text in _SIGN.split(name.strip()) if (part := _close(text))] or [name]


def drop_stamp(line: str) -> str:
    """The line without the time at its begin, as logs of servers have it."""
    return re.sub(rf"(?:{STAMP}) ?", "", line, count=1) if line[:1].isdigit() else line


def _names_above(text: str, above: dict[str, str]) -> dict[str, str]:
    """The names that hold below a line without a verdict: those before, and its own."""
    line, text = text, _BEGIN.sub("", text, count=1)
    named = {n: v.strip("\"'") for n, v in _PAIR.findall(text) if fold_name(n) in _NAMED}
    field = _FIELD_LINE.fullmatch(text)
    # "WARNING llm: rate limited, sleeping": the name of a logger, and its message.
    is_message = field is not None and _ALARM.search(line) and " " in field[2].strip()
    if field is not None and fold_name(field[1]) in _NAMED and not is_message:
        named[fold_name(field[1])] = field[2].strip()
    for match in re.finditer(
        r"\b(?i:(task|problem|scenario|model|agent))(?:\s+\d+\s*/\s*\d+)?\s*[:#]?\s+[\"'`]?([\w./:-]*[\d_-][\w./:-]*)",
        text,
    ):
        named.setdefault(match[1].lower(), match[2].rstrip(".:,"))
    for match in _OPTION.finditer(text):
        named[match[1].lower()] = match[2].strip("\"'")
    trial = TRIAL.search(text)
    if trial is not None:
        named["trial"] = trial[2]
    heading = _HEADING.fullmatch(text)
    if heading is not None and not named:
        title = next(part for place, part in enumerate(heading.groups()) if part and place != 1)
        word, _, rest = title.partition(":")
        if rest.strip() and fold_name(word) in _NAMED:
            named[fold_name(word)] = rest.strip()
        else:
            named["heading"] = title.strip()
    return {**above, **named} if named else above


def _name_fields(lines: Sequence[_Line]) -> list[dict[str, object]] | None:
    """A row for each line: its fields under their names, those that never vary left out."""
    columns: dict[str, list[str]] = {}
    count = min(len(line.segments) for line in lines)
    for place in range(count):
        label = _last_word(lines, place)
        for name, cells in _split_segment([line.segments[place] for line in lines], label):
            name = name if name not in columns else f"{name} {place + 1}"
            columns[name] = cells
    for name in dict.fromkeys(name for line in lines for name in line.named):
        columns.setdefault(name, [line.named.get(name, "") for line in lines])
    for name in dict.fromkeys(name for line in lines for name in line.above):
        cells = [line.above.get(name, "") for line in lines]
        if name not in columns and len(set(cells)) > 1:
            columns[name] = cells
        elif name in ("model", "agent"):
            columns.setdefault(name, cells)
    numbers = [cells for cells in columns.values() if all(map(str.isdigit, cells))]
    columns = _without_repeats(columns)
    if not columns and any(len(set(cells)) == len(cells) for cells in numbers):
        columns = {"task": [" ".join(line.segments) for line in lines]}  # "parses case 7"
    columns = _with_roles(columns, len(lines))
    if not columns or len(columns) > 3 * _MOST_NAMES:
        return None
    rows = []
    for place, line in enumerate(lines):
        row: dict[str, object] = {name: cells[place] for name, cells in columns.items()}
        rows.append({**row, "status": line.verdict})
    return rows


def _last_word(lines: Sequence[_Line], place: int) -> str:
    """The word before a segment that all lines share, as in ``Task: parse``."""
    if place == 0 or not lines[0].signs[place - 1].startswith((":", "'", '"', "[", "(")):
        return ""
    words = {(line.segments[place - 1].split() or [""])[-1] for line in lines}
    return words.pop() if len(words) == 1 else ""


def _split_segment(cells: list[str], label: str) -> Iterator[tuple[str, list[str]]]:
    """The columns of a segment: word by word where all lines have as many, else as a whole."""
    rows = [cell.split() for cell in cells]
    widths = set(map(len, rows))
    if len(set(cells)) < 2 or 0 in widths:
        if len(set(cells)) > 1:
            yield label or "part", cells
        return
    width = min(widths)
    start = 0
    while start < width and len({row[start] for row in rows}) == 1:
        label = rows[0][start]
        start += 1
    end = 0
    while end < width - start and len({row[-1 - end] for row in rows}) == 1:
        end += 1
    parts = [row[start : len(row) - end] for row in rows]
    is_constant = [len({row[i] for row in parts}) == 1 for i in range(min(map(len, parts)))]
    if len(widths) > 1 or not any(is_constant):
        models = [i for i in range(min(map(len, parts))) if all(is_model_name(p[i]) for p in parts)]
        if len(widths) == 1 == len(models) < len(parts[0]):  # gpt-5 sort
            yield "model", [part.pop(models[0]) for part in parts]
        yield label or "part", [" ".join(part) for part in parts]
        return
    for place, constant in enumerate(is_constant):
        if constant:
            label = parts[0][place]
        else:
            yield label or "part", [part[place] for part in parts]
            label = ""


def _without_repeats(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without measures, and without what another field says more finely."""
    kept: dict[str, list[str]] = {}
    for name, cells in columns.items():
        is_named = fold_name(name) in _NAMED
        is_measure = all(_MEASURE.fullmatch(cell) for cell in cells) and not is_named
        is_number = is_measure and all(map(str.isdigit, cells)) and len(set(cells)) < len(cells)
        if not is_named and ((is_measure and not is_number) or len(set(cells)) < 2):
            continue
        pairs = {other: len(set(zip(cells, others, strict=True))) for other, others in kept.items()}
        if not is_named and any(
            pairs[other] == len(set(cells)) == len(set(kept[other])) for other in pairs
        ):
            continue  # one says what the other says
        kept[name] = cells
    return kept


def _with_roles(columns: dict[str, list[str]], size: int) -> dict[str, list[str]]:
    """With names for the model and for the only text, the task, where none is named so."""
    folds = {name: fold_name(name) for name in columns}
    tasks = [name for name, fold in folds.items() if fold in ALIASES["task"]]
    models = [name for name, fold in folds.items() if fold in ALIASES["model"]]
    others = [n for n, fold in folds.items() if fold not in _NAMED and n != "heading"]
    texts = [n for n in others if not all(_MEASURE.fullmatch(cell) for cell in columns[n])]
    if not models:
        named = [n for n in columns if 2 * sum(map(is_model_name, columns[n])) > size]
        if len(named) == 1 and named[0] not in tasks and (tasks or set(texts) - set(named)):
            columns = {("model" if n == named[0] else n): cells for n, cells in columns.items()}
            texts = [name for name in texts if name != named[0]]
    if not tasks:
        if not texts and "heading" in columns:
            texts = ["heading"]
        texts = texts or others
        if len(texts) == 1:
            columns = {("task" if n == texts[0] else n): cells for n, cells in columns.items()}
    return columns


_RESULT = re.compile(
    rf"(?i)(?:.*\b(?:result|outcome|status|verdict|reward|score|final|success|passed|resolved|solved|correct)\b"
    rf"[^:=\n]{{0,30}}[:=]\s*[\"'*`]*)?((?:{_WORDS}|true|false|yes|no|[01](?:\.0+)?)|[✓✔✅✗✘✖✕❌])[\"'*`.!]*\s*"
)


_EXIT_CODE = re.compile(
    r"(?i)(?:.*\b)?exit(?:ed)?\s*(?:with\s+)?(?:code|status)\s*[:=]?\s*(\d{1,3})\.?"
)


def find_last_verdict(text: str) -> str | None:
    """The verdict in the last lines of the log of one attempt, as in ``RESULT: PASS``."""
    for line in reversed(_short_lines(text)[-20:]):
        code = _EXIT_CODE.fullmatch(line.strip())
        if code is not None:
            return "pass" if int(code[1]) == 0 else "fail"
        match = _RESULT.fullmatch(_BEGIN.sub("", line, count=1).strip("=-*# \t"))
        if match is not None:
            return _plain_word(match[1])
    return None


def read_attempt_log(source: Source) -> dict[str, object] | None:
    """The verdict at the end of a log, and the names in it; ``None`` without a verdict."""
    text = read_text(source)
    verdict = find_last_verdict(text)
    if verdict is None:
        return None
    named: dict[str, str] = {}
    for line in _short_lines(text):
        field = _FIELD_LINE.fullmatch(line)
        if field is not None and fold_name(field[1]) in _NAMED:
            named.setdefault(fold_name(field[1]), field[2].strip())
    return {**named, "status": verdict}


# -- pairs and blocks --------------------------------------------------------------------


def _holds_pairs(line: str) -> bool:
    return len(_PAIR.findall(line)) > 1


def _from_pairs(source: Source) -> Source | None:
    """A row for each line of ``name=value`` pairs; ``None`` for a text of other lines."""
    sample = [line for line in _text_lines(source.head) if line.strip()]
    if len(sample) < 2 or sum(map(_holds_pairs, sample)) * 2 <= len(sample):
        return None
    lines = _short_lines(read_text(source))
    pairs = [_PAIR.findall(line) for line in lines]
    rows = [{name: value.strip("\"'") for name, value in row} for row in pairs if len(row) > 1]
    meaning = ColumnMap.resolve(name for row in rows for name in row).meaning
    code = None if "success" in meaning else _judge_exits(rows)
    if code is None and "success" not in meaning:
        return None
    meaning = {"success": "status", **meaning}
    rows = _without_begins(rows, meaning)
    left_out = sum(map(bool, map(str.strip, lines))) - len(rows)
    more = f"; {code}=0 is a pass, any other {code} a failure" if code else ""
    more += f"; left out: {counted(left_out, 'line')} without any" if left_out else ""
    return as_rows(source, rows, f"each line of name=value pairs is a row{more}", lines)


def _judge_exits(rows: list[dict[str, str]]) -> str | None:
    """The only name of exit codes, after rows with one got their status; ``None`` without it."""
    names = {name for row in rows for name in row if _EXIT_NAMES.fullmatch(fold_name(name))}
    name = names.pop() if len(names) == 1 else ""
    codes = [row[name] for row in rows if name in row]
    if len(codes) < 2 or not all(re.fullmatch(r"-?\d{1,5}", code) for code in codes):
        return None
    for row in rows:
        row |= {"status": "pass" if row[name] == "0" else "fail"} if name in row else {}
    return name


def _without_begins(rows: list[dict[str, str]], meaning: Mapping[str, str]) -> list[dict[str, str]]:
    """Without lines about an attempt, such as its begin, of which another line has the verdict."""
    names = [meaning[word] for word in ("task", "model", "trial") if word in meaning]
    trial, success = meaning.get("trial", ""), meaning["success"]
    for row in rows:  # attempt=1/4
        row |= {trial: re.sub(r"(?<=\d)/\d+$", "", row[trial])} if trial in row else {}
    keys = [tuple(map(row.get, names)) for row in rows]
    ended = {key for row, key in zip(rows, keys, strict=True) if success in row}
    last = {key: place for place, key in enumerate(keys)} if trial else {}
    return [
        row
        for place, (row, key) in enumerate(zip(rows, keys, strict=True))
        if success in row or (any(key) and key not in ended and last.get(key, place) == place)
    ]


def _text_lines(head: bytes) -> list[str]:
    return _short_lines(head.decode("utf-8", "replace"))


def _from_blocks(source: Source) -> Source | None:
    """A row for each block of ``name: value`` lines; ``None`` for a text without such blocks."""
    lines = _text_lines(source.head)
    is_list = any(line.startswith(("- ", "---")) for line in lines)  # of YAML
    if is_list or sum(map(bool, map(_FIELD_LINE.fullmatch, lines))) < 2:
        return None
    text = read_text(source)
    blocks: list[list[str]] = [[]]
    has_rules = sum(map(bool, map(_RULE_LINE.fullmatch, text.splitlines()))) > 2
    for line in text.splitlines():
        if _RULE_LINE.fullmatch(line) if has_rules else not line.strip():
            blocks.append([])
        else:
            blocks[-1].append(line)
    blocks_found: list[dict[str, object]] = []
    for block in blocks:
        pairs = [match for line in block if (match := _FIELD_LINE.fullmatch(line))]
        record: dict[str, object] = {}
        for match in pairs:
            record.setdefault(match[1], match[2].strip())
        blocks_found.append(record)
    records = [record for record in blocks_found if len(record) > 1]
    counts = Counter(name for record in records for name in record)
    names = [name for name, count in counts.items() if 2 * count > len(records)]
    rows = [
        {name: record[name] for name in record if name in names}
        for record in records
        if 2 * sum(name in record for name in names) > len(names)
    ]
    if len(rows) < 3 or len(names) < 2 or 2 * len(rows) < len(records):
        return None
    has_task = any(fold_name(name) in ALIASES["task"] for name in names)
    if not has_task and any("task" in _names_above(line, {}) for line in lines):
        return None  # a line above each block names the task
    decision = "each block of name: value lines is a row"
    if left_out := sum(map(bool, blocks_found)) - len(rows):
        decision += f"; left out: {counted(left_out, 'block')} with other names"
    return as_rows(source, rows, decision, text.splitlines())
