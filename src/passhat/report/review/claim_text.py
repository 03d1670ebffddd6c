"""A claim taken apart by rule: which metrics, which numbers, what stands beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Claimed", "Mention", "Passage", "passages"]

_METRIC = re.compile(r"(?<![\w@^])(g?pass)\s?([@^])\s?(\d+|k\b|n\b)?(:0?\.\d+)?", re.IGNORECASE)
_VALUE = re.compile(
    r"(?<![\w.@^+\-−±])(\d{1,3}(?:\.\d+)?)\s?%"
    r"|(?<![\w.@^+\-−±\[])((?:0?\.\d+)|1\.0+)(?!\w|\.\d)"
)
_RATED = re.compile(
    r"\b(solves?|solved|pass(?:es|ed)?|success|succeeds?|accuracy|tasks|problems)\b", re.IGNORECASE
)
_A_LEVEL = re.compile(r"\s*-?\s*(?:confidence|credible|CI\b|interval|band|level)", re.IGNORECASE)
_A_SETTING = re.compile(r"(?:level|temperature|T|top_p|p)\s*(?:=|of|<|>|is)?\s*$")
_BETTER = re.compile(
    r"\b(better|worse|beats?|beaten|outperform\w*|outscor\w*|surpass\w*|improv(?:es?|ed|ing)|"
    r"improvement|regress(?:es|ed|ion)?|superior|inferior|stronger|weaker|wins?|won|leads?|"
    r"ahead of|"
    r"exceeds?|more (?:reliable|capable|accurate|consistent)|higher than|lower than|above that of|"
    r"below that of|gains?|(?:up|down) from|"
    r"best(?! (?:run|seed|checkpoint|prompt|configuration|result|of))|"
    r"state of the art|sota)\b",
    re.IGNORECASE,
)
_INTERVAL = re.compile(
    r"±|\+/-|\b(?:intervals?|confidence|credible|CI|error bars?|standard error|s\.?e\.?m?\.?)\b"
    r"|\[\s*[-+−]?\d*\.?\d+%?\s*,\s*[-+−]?\d*\.?\d+%?\s*\]",
    re.IGNORECASE,
)
_THINGS = (
    r"(?:paired |shared |held-out |same |distinct |new )*"
    r"(?:tasks?|problems?|questions?|issues?|instances?|examples?|items|prompts)"
)
_TASKS = re.compile(rf"\b(\d[\d,]*)\s+(?:[\w\-/]+\s+){{0,2}}?{_THINGS}\b", re.IGNORECASE)
_ATTEMPTS = re.compile(
    r"\bn\s?=\s?(\d[\d,]*)|\b(\d[\d,]*)\s+(?:\w+\s+)?(?:attempts?|samples?|tries|trials?|runs|"
    r"rollouts?|seeds|generations|completions)\b(?! without)"
    r"|(?:tasks?|problems?|questions?)\s+x\s+(\d+)",
    re.IGNORECASE,
)
_LIFT = re.compile(
    r"([-+−]?\d+(?:\.\d+)?)\s*(?:to|\.\.|–|,)\s*([-+−]?\d+(?:\.\d+)?)\s*(?:percentage )?points",
    re.IGNORECASE,
)
_INCONCLUSIVE = re.compile(
    r"\b(inconclusive|not settled|cannot (?:tell|say)|no evidence|includes zero|crosses zero|"
    r"does not exclude zero|too few)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A metric by name, at a place in the text; ``k`` is ``None`` where it is not said."""

    family: str
    k: int | None
    start: int

    @property
    def word(self) -> str:
        return f"{self.family}{'k' if self.k is None else self.k}"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A number that the text states: as a share of one, with the step of its last digit."""

    share: float
    step: float
    text: str
    start: int


@dataclass(frozen=True)
class Passage:
    """A paragraph that claims something, and the text it stands in."""

    text: str
    line: int
    whole: str

    @cached_property
    def metrics(self) -> tuple[Mention, ...]:
        return tuple(
            Mention(
                f"{found[1].lower()}{found[2]}",
                int(found[3]) if found[3] and found[3].isdigit() else None,
                found.start(),
            )
            for found in _METRIC.finditer(self.text)
        )

    @cached_property
    def values(self) -> tuple[Claimed, ...]:
        """Shares that are stated, without levels of confidence and the ends of intervals."""
        return tuple(self._values())

    def _values(self) -> Iterator[Claimed]:
        for found in _VALUE.finditer(self.text):
            before, after = self.text[: found.start()], self.text[found.end() :]
            if _A_LEVEL.match(after) or _A_SETTING.search(before):
                continue
            if before.count("[") > before.count("]"):
                continue
            text = found[1] or found[2]
            decimals = len(text.partition(".")[2])
            scale = 100 if found[1] else 1
            yield Claimed(float(text) / scale, 10.0**-decimals / scale, found[0], found.start())

    @property
    def compares(self) -> bool:
        """Whether it sets one thing against another."""
        return bool(_BETTER.search(self.text)) and not _INCONCLUSIVE.search(self.text)

    @property
    def states(self) -> bool:
        """Whether there is anything to review: a metric or a share, with a number or a rank."""
        rated = bool(self.metrics) or bool(_RATED.search(self.text))
        bounded = bool(self.metrics) and self.has_interval
        return rated and bool(self.values or self.compares or self.lift_interval or bounded)

    @property
    def has_interval(self) -> bool:
        return bool(_INTERVAL.search(self.text))

    @property
    def tasks(self) -> int | None:
        found = _TASKS.search(self.text)
        return int(found[1].replace(",", "")) if found else None

    @property
    def attempts(self) -> int | None:
        """Attempts per task, as far as one number can be taken for them."""
        found = _ATTEMPTS.search(self.text)
        if found is None:
            return None
        return int(next(group for group in found.groups() if group).replace(",", ""))

    @property
    def lift_interval(self) -> tuple[float, float] | None:
        """The interval of a lift in points, where one is stated."""
        found = _LIFT.search(self.text)
        if found is None:
            return None
        low, high = (float(end.replace("−", "-")) for end in found.groups())
        return low, high

    def says(self, pattern: str, *, anywhere: bool = False) -> bool:
        """Whether the passage (or the whole text) has these words."""
        return bool(re.search(pattern, self.whole if anywhere else self.text, re.IGNORECASE))


def passages(text: str) -> list[Passage]:
    """Paragraphs and list items; code, tables and headings are passed over."""
    found: list[Passage] = []
    lines: list[str] = []
    first = 0
    fenced = False

    def close() -> None:
        if lines:
            found.append(Passage(" ".join(lines), first, text))
            lines.clear()

    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fenced = not fenced
            close()
            continue
        if fenced or not stripped or stripped.startswith(("|", "#", "<")):
            close()
            continue
        if re.match(r"(?:[-*+]|\d+[.)])\s", stripped):
            close()
            stripped = re.sub(r"^(?:[-*+]|\d+[.)])\s+", "", stripped)
        if not lines:
            first = number
        lines.append(re.sub(r"[*_`]{1,2}(?=\S)|(?<=\S)[*_`]{1,2}", "", stripped))
    close()
    return [passage for passage in found if passage.states]
