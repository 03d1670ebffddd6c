"""The shape of a table, and cells as tables write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from passhat.stats.outcomes.cells import CellCodes
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords

__all__ = [
    "FRACTION",
    "N_CELL",
    "PASSES_CELL",
    "Shape",
    "distinct_cells",
    "list_unused",
    "parse_number",
    "reward_or_none",
    "split_list",
]

FRACTION = re.compile(r"\s*(\d+)\s*(?:/|of|out of)\s*(\d+)\s*")
N_CELL, PASSES_CELL = "passhat:n", "passhat:c"
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_SIGNS = re.compile(r"[✓✔✅✗✘✖❌🟢🔴🟩🟥👍👎]\ufe0f?")
_LETTERS = re.compile(r"[PF]{2,}|[TF]{2,}|[YN]{2,}|[CI]{2,}")
_LONGEST_LETTERS = 500
_LETTER_WORDS = {"P": "pass", "T": "true", "Y": "yes", "C": "correct"}
_THOUSANDS = re.compile(r"\d{1,3}(?:[,' \u202f\u00a0]\d{3})+")


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
    texts: dict[str, object] = {}
    for value in values:
        if value is not None and str(value).strip() != "":
            texts.setdefault(str(value), value)
    return list(texts.values())


def list_unused(columns: ColumnMap, chunk: Chunk) -> list[str]:
    """Columns without a meaning."""
    used = set(columns.meaning.values()) | set(columns.slices.values())
    return [name for name in chunk if name not in used and name.strip()]


def parse_number(cell: object) -> float | None:
    """A number as tables write it: 66.7%, 1,000 and 0,5 included."""
    text = str(cell).strip()
    scale = 100 if text.endswith("%") else 1
    text = text.removesuffix("%").strip()
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"\D", "", text)
    elif re.fullmatch(r"-?\d*,\d+", text):
        text = text.replace(",", ".")
    try:
        return float(text) / scale
    except ValueError:
        return None


def reward_or_none(words: RewardWords, cell: object) -> float | None:
    """The reward behind a cell, NaN for an empty one, ``None`` for a word that is no verdict."""
    try:
        return words[cell]
    except (ValueError, TypeError, OverflowError):
        return None


def split_list(cell: object) -> list[object] | None:
    """The verdicts in a cell such as [1, 0, 1], 1;0;1, PFP or ✅❌; ``None`` for any other."""
    if isinstance(cell, list):
        return None if any(isinstance(part, dict | list) for part in cell) else cell
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if _LIST.fullmatch(text):
        parts = text[1:-1].split(",")
        return [word.strip(" \t\"'") for word in parts if word.strip()]
    letters = re.sub(r"[\s,;|/]", "", text) if len(text) <= _LONGEST_LETTERS else ""
    if _LETTERS.fullmatch(letters):
        return [_LETTER_WORDS.get(letter, "fail") for letter in letters]
    signs = _SIGNS.findall(text)
    if len(signs) > 1 and not re.sub(r"[\s,;|]", "", _SIGNS.sub("", text)):
        return list(signs)
    words = RewardWords()
    tokens = text.split()
    if reward_or_none(words, text) is not None and len(set(tokens)) == len(tokens):
        return None  # one verdict: ❌ FAIL
    for sign in (";", "|", ",", " ", "/"):
        parts = [part.strip() for part in text.split(sign)]
        if len(parts) > 1 and not (sign in ",/" and len(parts) == 2):
            rewards = [reward_or_none(words, part) for part in parts]
            if all(reward is not None and reward in (0, 1) for reward in rewards):
                return list(parts)
    return None
