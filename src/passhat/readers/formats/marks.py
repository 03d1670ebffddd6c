"""Cells of several marks, an attempt each: ``+-+``, ``PPF`` and ``✓✗✓ (2/3)``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from passhat.readers.parsing import Rewrite, is_verdict_list
from passhat.readers.wide_tables import distinct_cells
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import Chunk

_NO_VERDICT = dict.fromkeys("?·.⚠⏭_", "?")
_TICKS = dict.fromkeys("✓✔✅☑🟢🟩", "✓") | dict.fromkeys("✗✘✖✕❌☒🔴🟥", "✗")
_MARKS_OF = (
    {**_TICKS, **_NO_VERDICT, "-": "?"},
    {"+": "✓", **dict.fromkeys("-−–", "✗"), **_NO_VERDICT},
    *(
        {**dict.fromkeys("-xEST", "?"), **_NO_VERDICT, good: "✓", bad: "✗"}
        for good, bad in ("PF", "SF", "TF", "YN", "CI", "OX", "WL")
    ),
    {"1": "✓", "0": "✗"},
)
_COUNT_BEHIND = re.compile(r"(?<=\D)\s*[(\[]?\s*\d{1,4}\s*/\s*\d{1,4}\s*[)\]]?$")
_SUM = re.compile(r"\d{1,6}(?:[.,]\d+)?\s*(?:%|(?:/|of)\s*(\d{1,6}))?(?:\s*\([^()]*\))?")
_SIDE_BY_SIDE = re.compile(r"[^\W\d_]{2}")
_LONGEST_MARKS, _LOOKED_AT = 200, 500


def _spell(cell: object, marks: Mapping[str, str]) -> str | None:
    """A cell of several marks as ticks and crosses; ``None`` for any other, and for one mark."""
    text = "" if cell is None else str(cell)[: _LONGEST_MARKS + 1].strip()
    if text in ("", "-", "–", "—", "n/a"):
        return ""
    words = [marks.get(s, "") for s in re.sub(r"[\s,;|\ufe0f]", "", _COUNT_BEHIND.sub("", text))]
    return "".join(words) if 1 < len(words) <= _LONGEST_MARKS and all(words) else None


def find_spelled(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns of cells such as ``+-+`` and ``✓✗✓ (2/3)`` as ticks, without their sums below."""
    success = {**ColumnMap.resolve(chunk).meaning, **stated}.get("success")
    for marks in _MARKS_OF:
        names = [name for name in list(chunk)[1:] if _is_spelled(chunk[name], marks)]
        cells = [str(cell) for name in names for cell in list(chunk[name])[:-1]]
        texts = {text for cell in cells if (text := _spell(cell, marks))}
        is_even = len(names) > 1 == len({*map(len, texts)}) and any(c[:1] == "0" for c in cells)
        is_long = not any(map(str.isalpha, marks)) or max(map(len, texts), default=0) > 2
        if {"✓", "✗"} <= {*"".join(texts)} and is_long and ("1" not in marks or is_even):
            break  # 100 and 110 may be numbers, and "CI" an abbreviation
    else:
        return None
    texts = {str(cell) for name in names for cell in distinct_cells(chunk[name])}
    is_spaced = len(names) > 1 and " " in "".join(texts)
    # A dash between letters parts them only where no two letters are side by side.
    is_spaced |= any("-" in text for text in texts) and any(map(_SIDE_BY_SIDE.search, texts))
    if success not in (None, *names) or (all(map(is_verdict_list, texts)) and not is_spaced):
        return None  # beside a verdict, or read as it is

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        texts = {name: [_spell(cell, marks) for cell in chunk[name]] for name in names}
        rows = [row for row in range(len(lines)) if {texts[name][row] for name in names} != {None}]
        pairs = {name: (texts.get(name, chunk[name]), chunk[name]) for name in chunk}
        columns = {n: [c[i] if t[i] is None else t[i] for i in rows] for n, (t, c) in pairs.items()}
        return columns, [lines[row] for row in rows]

    example = next(cell for cell in cells if _spell(cell, marks))
    decision = f"cells such as {example!r} are marks of attempts: {_spell(example, marks)}"
    sums = f"; left out as sums: {str(next(iter(chunk.values()))[-1])!r}"
    return rewrite, decision + sums * any(_spell(text, marks) is None for text in texts)


def _is_spelled(column: Sequence[object], marks: Mapping[str, str]) -> bool:
    """Whether cells are several marks each, but the last, which may be their sum."""
    cells = distinct_cells(column) if _spell(column[0], marks) is not None else []
    texts = {str(cell): _spell(cell, marks) for cell in cells[:_LOOKED_AT]}
    odd = [cell for cell, text in texts.items() if text is None]
    size = max((len(text) for text in texts.values() if text), default=0)
    match = _SUM.fullmatch(odd[0].strip(" *_")) if odd == [str(column[len(column) - 1])] else None
    is_sum = match is not None and (match[1] is None or int(match[1]) > size)
    return size > 1 and len(texts) < _LOOKED_AT and (not odd or is_sum)
