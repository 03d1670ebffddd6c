"""A document: what a screen, a file or a page says, in blocks, before any form is chosen.

Builders in :mod:`passhat.reporting.documents` make documents from facts. The renderers
(:mod:`~passhat.reporting.terminal`, :mod:`~passhat.reporting.markdown` and the HTML pages) lay
blocks out and compute nothing, so the same facts read the same in every form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Literal

_BAR_COLUMNS = 40
_TREND_ROWS, _TREND_COLUMNS = 11, 34
Tone = Literal["lead", "plain", "warning"]


class Level(Flag):
    """Where a block is shown: on one screen, in the full form, or in both."""

    SHORT = auto()
    FULL = auto()
    BOTH = SHORT | FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leveled:
    level: Level = Level.BOTH


@dataclass(frozen=True, slots=True)
class Heading(_Leveled):
    """A title, with a few words beside it."""

    text: str
    detail: str = ""
    rank: int = 2


@dataclass(frozen=True, slots=True)
class Sentence(_Leveled):
    """A sentence; ``ending`` is a command to paste, and is not broken into lines."""

    text: str
    tone: Tone = "plain"
    ending: str = ""


@dataclass(frozen=True, slots=True)
class Note(_Leveled):
    """A remark on how to read what stands beside it, or where more is."""

    text: str


@dataclass(frozen=True, slots=True)
class OptionsNote(Note):
    """Options of the command line that show more; a report in Python has methods instead."""


@dataclass(frozen=True, slots=True)
class NextStep(_Leveled):
    """The step that would make the answer better."""

    text: str

    @property
    def has_command(self) -> bool:
        """Whether it ends with a command to copy."""
        return ": passhat " in self.text

    @property
    def line(self) -> str:
        """The step as it is read: ``Next:`` announces a command, other steps are sentences."""
        if self.has_command:
            return f"Next: {self.text}"
        return f"{upper_first(self.text.rstrip('.'))}."


@dataclass(frozen=True, slots=True)
class Table(_Leveled):
    """A table; columns in ``left`` hold text, the others numbers.

    A terminal shows at most ``most`` rows, and ``more`` says where the others are.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    left: tuple[int, ...] = (0,)
    most: int | None = None
    more: str = ""


@dataclass(frozen=True, slots=True)
class Facts(_Leveled):
    """Lines with a title each; lines with the same title belong together."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Properties(_Leveled):
    """Names with their values, such as a protocol."""

    title: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Listing(_Leveled):
    """Items after a title; where there are too many, their number."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding(_Leveled):
    """A verdict with its sign, what it is about, and the evidence line by line."""

    sign: str
    verdict: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure(_Leveled):
    """pass^k and pass@k over k; ``points`` are (k, pass^k, pass@k)."""

    title: str
    points: tuple[tuple[int, float, float], ...]


@dataclass(frozen=True, slots=True)
class Bar(_Leveled):
    """A change with its interval beside zero, in points, and the drop that a gate would catch."""

    text: str
    low: float
    value: float
    high: float
    detectable: float | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the axis: zero, the interval and the drop lie within, rounded to fives."""
        places = [self.low, self.value, self.high, 0.0]
        places += [] if self.detectable is None else [-self.detectable]
        left, right = 5 * math.floor(min(places) / 5), 5 * math.ceil(max(places) / 5)
        return (left - 5, right + 5) if left == right else (left, right)

    def place(self, point: float) -> float:
        """Where a number of points lies on the axis, from 0 to 1."""
        left, right = self.ends
        return (point - left) / (right - left)

    @property
    def line(self) -> str:
        """The interval, the value in it, zero, and the drop that would be caught, as text.

        Examples
        --------
        >>> Bar("", -14.0, -9.0, -4.0, 10.0).line
        '-15 ···├─────────▼──●────────────┤··········│ 0'
        """
        cells = ["·"] * (_BAR_COLUMNS + 1)
        points = (self.low, self.high, 0.0, self.value, -(self.detectable or 0.0))
        first, last, zero, value, drop = (round(self.place(x) * _BAR_COLUMNS) for x in points)
        cells[first : last + 1] = "─" * (last - first + 1)
        cells[first], cells[last], cells[zero] = "├", "┤", "│"
        if self.detectable is not None:
            cells[drop if drop != value else max(drop - 1, 0)] = "▼"
        cells[value] = "●"
        left, right = (f"{end:+d}" if end else "0" for end in self.ends)
        return f"{left} {''.join(cells)} {right}"


@dataclass(frozen=True, slots=True)
class Trend(_Leveled):
    """Values of runs in the order of time, with intervals; changes begin at some of them."""

    text: str
    points: tuple[tuple[float | None, float, float, float], ...]
    """(value, upper value, low, high) of every run; without a verdict there is no value."""
    changes: tuple[int, ...] = ()
    other_tasks: tuple[int, ...] = ()
    """Where the tasks changed."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The newest runs as a drawing: a column each, the interval around the value."""
        first = max(0, len(self.points) - _TREND_COLUMNS)
        columns = [
            _trend_column(
                *point, "┊" if place in self.changes else "¦" if place in self.other_tasks else " "
            )
            for place, point in enumerate(self.points[first:], first)
        ]
        labels = {0: "1.0", _TREND_ROWS // 2: "0.5", _TREND_ROWS - 1: "0.0"}
        return tuple(
            f"{labels.get(row, ''):>4} {'┤' if row in labels else '│'}"
            f"{''.join(column[row] for column in columns)}".rstrip()
            for row in range(_TREND_ROWS)
        )


def _trend_column(
    value: float | None, upper: float, low: float, high: float, before: str
) -> list[str]:
    """The cells of one run from 1.0 down to 0.0; ○ is the value had missing attempts passed."""
    place, upper_place, bottom, top = (
        round((1 - min(1.0, max(0.0, x))) * (_TREND_ROWS - 1))
        for x in (value or 0.0, upper, low, high)
    )
    cells = [f"{before}{'│' if top <= row <= bottom else ' '}" for row in range(_TREND_ROWS)]
    if value is not None:
        cells[upper_place] = f"{before}○"
        cells[place] = f"{before}●"
    return cells


@dataclass(frozen=True, slots=True)
class Mark:
    """An attempt in an outline; ``link`` is where it is shown, if anywhere."""

    number: int
    passed: bool
    link: str = ""


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """A line of an outline with its attempts; ``strong`` lines stand out."""

    text: str
    detail: str
    marks: tuple[Mark, ...] = ()
    items: tuple[OutlineItem, ...] = ()
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Outline(_Leveled):
    """A tree, drawn from left to right or as nested lists."""

    items: tuple[OutlineItem, ...]


Block = (
    Heading
    | Sentence
    | Note
    | NextStep
    | Table
    | Facts
    | Properties
    | Listing
    | Finding
    | Figure
    | Bar
    | Trend
    | Outline
)


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a name; ``subject`` is the run that they are about, where there are several."""

    name: str
    blocks: tuple[Block, ...]
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """Sections in reading order."""

    title: str
    sections: tuple[Section, ...]

    def blocks(self, level: Level) -> Iterator[Block]:
        """Yield the blocks of a level in order."""
        for section in self.sections:
            yield from (block for block in section.blocks if level in block.level)

    def find(self, name: str, level: Level = Level.FULL) -> list[Section]:
        """The sections by this name that have blocks at this level."""
        matches = []
        for section in self.sections:
            blocks = tuple(block for block in section.blocks if level in block.level)
            if section.name == name and blocks:
                matches.append(Section(name, blocks, section.subject))
        return matches

    @classmethod
    def of(cls, title: str, blocks: Iterable[Block], name: str = "main") -> Document:
        """A document of one section."""
        return cls(title, (Section(name, tuple(blocks)),))


def first_warning(warnings: Sequence[str]) -> Iterator[Sentence]:
    """Yield the first warning for one screen, and every warning for the full form."""
    for warning in warnings:
        yield Sentence(f"Warning: {warning}.", "warning", level=Level.FULL)
    if warnings:
        more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
        yield Sentence(f"Warning: {warnings[0]}{more}.", "warning", level=Level.SHORT)


def upper_first(text: str) -> str:
    """The text with a capital at its start."""
    return f"{text[:1].upper()}{text[1:]}"
