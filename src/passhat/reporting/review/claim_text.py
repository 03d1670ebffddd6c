"""Claims in a text, parsed by rule: metrics, numbers, counts and comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Claimed", "Mention", "Passage", "passages"]

_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
_METRIC = re.compile(r"(?<![\w@^])(g?pass)\s?([@^])\s?(\d+|k\b|n\b)?(:0?\.\d+)?", re.IGNORECASE)
_PERCENT = r"(?:%|per ?cent\b)"
_VALUE = re.compile(
    rf"(?<![\w.@^+\-−±–])(\d{{1,3}}(?:\.\d+)?)\s?{_PERCENT}"
    r"|(?<![\w.@^+\-−±\[–])((?:0?\.\d+)|1\.0+)(?!\w|\.\d)",
    re.IGNORECASE,
)
_RANGE = re.compile(
    rf"(?<![\w.@^+\-−±\[])(\d{{1,3}}(?:\.\d+)?)\s?{_PERCENT}?\s?(?:-|–|to|and)\s?"
    rf"(\d{{1,3}}(?:\.\d+)?)\s?{_PERCENT}",
    re.IGNORECASE,
)
_PASSED = r"(?:pass(?:es|ed)?|solve[sd]?|succe(?:eds?|eded|ssful)|right|correct|completed?)"
_COUNT = re.compile(
    rf"(?<![\w.@^+\-−±/])({_NUMBER})\s?(?:/|(?:out )?of)\s?(?:the |its |all )?"
    rf"({_NUMBER})(?![\w/]|\.\d)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    rf"^\W*(?:\w+[\s-])?(?:tasks?|problems?|questions?|issues?|attempts?|runs?|tries|trials?|"
    rf"{_PASSED})\b",
    re.IGNORECASE,
)
_COUNTED_BEFORE = re.compile(rf"\b(?:{_PASSED}|gets?|got|scor(?:es|ed))\s+(?:on )?$", re.IGNORECASE)
_RATED = re.compile(
    r"\b(solves?|solved|pass(?:es|ed)?|success(?:ful)?|succeeds?|accuracy|correct|tasks?|problems|"
    r"lift|scores?|gets?|got|scored|achiev(?:es|ed)|reach(?:es|ed)|attains?|resolv(?:es|ed))\b",
    re.IGNORECASE,
)
_NOT_A_RATE = re.compile(
    r"\s*-?\s*(?:confidence|credible|CI\b|interval|band|level|probability that|chance that|"
    r"certain that|cheaper|faster|slower|quicker|smaller|larger|less|fewer|more (?:expensive|time)|"
    r"discount|of (?:the )?(?:cost|time|budget|tokens|redraws))",
    re.IGNORECASE,
)
_A_SETTING = re.compile(
    r"(?:(?:level|temperatures?|\bT|top_p|\bp)\s*(?:=|of|<|>|≤|≥|<=|>=|is|in|at|:)?\s*[\[{(]?"
    r"|margin of (?:±\s?)?)"
    r"(?:\d*\.?\d+\s*(?:,|and|or|to|-|–)\s*)*$"
)
_BETTER = re.compile(
    r"\b(better|worse|beats?|beaten|outperform\w*|outscor\w*|surpass\w*|improv(?:es?|ed|ing)|"
    r"improvement|regress(?:es|ed|ion)?|superior|inferior|stronger|weaker|wins?|won|leads?|"
    r"ahead of|(?:more|fewer) \w+ than|"
    r"exceeds?|more (?:reliable|capable|accurate|consistent)|higher than|lower than|above that of|"
    r"below that of|gains?|(?:up|down) from|"
    r"(?<!report the )(?<!reports the )(?<!reported the )best"
    r"(?! (?:run|seed|checkpoint|prompt|configuration|result|of|one))|"
    r"state of the art|sota)\b",
    re.IGNORECASE,
)
_EQUAL = re.compile(
    r"\b(?:no (?:real |true |actual )?difference|no worse than|not different|do(?:es)? not differ|"
    r"(?:are|is|perform\w*|equally|just) (?:the same|as (?:good|capable|reliable|accurate))|"
    r"equal(?:ly)?(?: (?:good|capable|reliable|accurate|well))?|equivalent|on par|identical|"
    r"indistinguishable|tied)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"^\W*(?:null hypothesis|H0)\b|\b(?:may|might|could|would) (?:beat|win|outperform|be better)",
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
_WORDS = r"(?:[A-Za-z][\w\-/]*\s+)"
# A number such as the 0 of "T=0, 4 attempts" or the 8 of "T = 0.8" counts nothing.
_TASKS = re.compile(
    rf"(?<![\w.=@^])({_NUMBER})(?![.\d]|\s?{_PERCENT})[\s-]+{_WORDS}{{0,2}}?{_THINGS}\b",
    re.IGNORECASE,
)
_ATTEMPTS = re.compile(
    rf"\bn\s?=\s?({_NUMBER})|(?<![\w.=@^])({_NUMBER})(?![.\d])[\s-]+{_WORDS}?(?:attempts?|samples?|"
    r"tries|trials?|runs|rollouts?|seeds|generations|completions)\b(?! without)"
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
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_COUNT_STEP = 0.002
"""A count such as 3 of 4 is exact; a source may round it to three digits."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A metric by name, at a place in the text; ``k`` is ``None`` where it is not given."""

    family: str
    k: int | None
    start: int

    @property
    def word(self) -> str:
        return f"{self.family}{'k' if self.k is None else self.k}"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A share that the text states, with the step of its last digit.

    ``in_range`` marks an end of a range such as 60 to 65%; ``total`` is the 4 of "3 of 4".
    """

    share: float
    step: float
    text: str
    start: int
    in_range: bool = False
    total: int | None = None


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class Passage:
    """A paragraph that claims something, and the text around it."""

    text: str
    line: int
    whole: str

    @cached_property
    def metrics(self) -> tuple[Mention, ...]:
        return tuple(
            Mention(
                f"{match[1].lower()}{match[2]}",
                int(match[3]) if match[3] and match[3].isdigit() else None,
                match.start(),
            )
            for match in _METRIC.finditer(self.text)
        )

    @cached_property
    def claimed_metrics(self) -> tuple[Mention, ...]:
        """The metrics that have a number or are part of a comparison.

        "pass@5 is listed separately" names a metric and claims nothing about it.
        """
        if not self.compares:
            return tuple(mention for mention in self.metrics if self._has_number(mention))
        starts = [0, *(match.end() for match in _SENTENCE_END.finditer(self.text))]
        mentions = []
        for mention in self.metrics:
            first = max(start for start in starts if start <= mention.start)
            last = min((start for start in starts if start > mention.start), default=len(self.text))
            if _BETTER.search(self.text[first:last]) or self._has_number(mention):
                mentions.append(mention)
        return tuple(mentions)

    def _has_number(self, mention: Mention) -> bool:
        return any(self.metric_of(value) is mention for value in self.values)

    def metric_of(self, value: Claimed) -> Mention | None:
        """The metric that a number belongs to: the last one before it, or else the first."""
        before = [mention for mention in self.metrics if mention.start < value.start]
        return before[-1] if before else self.metrics[0] if self.metrics else None

    @cached_property
    def values(self) -> tuple[Claimed, ...]:
        """Shares that are stated, without levels of confidence and the ends of intervals."""
        return tuple(sorted(self._values(), key=lambda value: value.start))

    def _values(self) -> Iterator[Claimed]:
        spans: list[tuple[int, int]] = []
        for match in _RANGE.finditer(self.text):
            spans.append(match.span())
            if self._is_rate(match) and not self._is_interval(match):
                for end in (1, 2):
                    decimals = len(match[end].partition(".")[2])
                    share, step = float(match[end]) / 100, 10.0**-decimals / 100
                    yield Claimed(share, step, match[0], match.start(end), in_range=True)
        for match in _COUNT.finditer(self.text):
            passed, total = _whole(match[1]), _whole(match[2])
            before, after = self.text[: match.start()], self.text[match.end() :]
            if (
                total
                and passed <= total
                and (_COUNTED.match(after) or _COUNTED_BEFORE.search(before))
            ):
                spans.append(match.span())
                yield Claimed(passed / total, _COUNT_STEP, match[0], match.start(), total=total)
        for match in _VALUE.finditer(self.text):
            if any(first <= match.start() < last for first, last in spans):
                continue
            if self._is_rate(match):
                text = match[1] or match[2]
                decimals = len(text.partition(".")[2])
                scale = 100 if match[1] else 1
                step = 10.0**-decimals / scale
                yield Claimed(float(text) / scale, step, match[0], match.start())

    def _is_rate(self, match: re.Match[str]) -> bool:
        """Whether a number is a share of tasks rather than a level, a setting or a bound."""
        before, after = self.text[: match.start()], self.text[match.end() :]
        if _NOT_A_RATE.match(after) or _A_SETTING.search(before):
            return False
        return before.count("[") <= before.count("]")

    def _is_interval(self, match: re.Match[str]) -> bool:
        """Whether a range is given as the ends of an interval."""
        before = self.text[: match.start()]
        return bool(re.search(r"(?:interval|CI|band|bounds?)\b[^.;]{0,40}$", before))

    @property
    def compares(self) -> bool:
        """Whether it claims that one side is better than another."""
        return (
            bool(_BETTER.search(self.text))
            and not _INCONCLUSIVE.search(self.text)
            and not _HEDGED.search(self.text)
        )

    @property
    def equates(self) -> bool:
        """Whether it claims that two sides are equally good."""
        return bool(_EQUAL.search(self.text)) and not _HEDGED.search(self.text)

    @property
    def states(self) -> bool:
        """Whether there is anything to review: a metric or a share, with a number or a rank."""
        if _HEDGED.match(self.text):
            return False
        is_test = self.equates and self.says(r"overlap|\bp ?[<=>]|significan")
        has_rate = bool(self.metrics) or bool(_RATED.search(self.text)) or is_test
        has_bounds = bool(self.metrics) and self.has_interval
        is_comparison = self.compares or is_test
        return has_rate and bool(self.values or is_comparison or self.lift_interval or has_bounds)

    @property
    def illustrates(self) -> bool:
        """Whether the text states that it is too small for a conclusion."""
        return self.says(
            r"\b(?:teaching|toy|worked|illustrative) example|\b(?:for|as an) illustration|"
            r"\bsample is (?:too small|tiny)|\btoo small to (?:conclude|generali[sz]e)"
        )

    @property
    def has_interval(self) -> bool:
        return bool(_INTERVAL.search(self.text))

    @property
    def tasks(self) -> int | None:
        match = _TASKS.search(self.text)
        if match is not None:
            return _whole(match[1])
        # "passed 3 out of 5" counts tasks unless it names attempts.
        totals = [value.total for value in self.values if value.total is not None]
        return totals[0] if totals and self.attempts not in totals else None

    @property
    def attempts(self) -> int | None:
        """Attempts per task, as far as one number can be taken for them."""
        match = _ATTEMPTS.search(self.text)
        if match is None:
            return None
        return _whole(next(group for group in match.groups() if group))

    @property
    def lift_interval(self) -> tuple[float, float] | None:
        """The interval of a lift in points, where one is stated."""
        match = _LIFT.search(self.text)
        if match is None:
            return None
        low, high = (float(end.replace("−", "-")) for end in match.groups())
        return low, high

    def says(self, pattern: str, *, anywhere: bool = False) -> bool:
        """Whether the passage (or the whole text) matches a pattern."""
        return bool(re.search(pattern, self.whole if anywhere else self.text, re.IGNORECASE))


def passages(text: str) -> list[Passage]:
    """Paragraphs and list items that claim something; code, tables and headings are skipped."""
    parts: list[Passage] = []
    lines: list[str] = []
    first = 0
    in_fence = False

    def close() -> None:
        if lines:
            parts.append(Passage(" ".join(lines), first, text))
            lines.clear()

    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if content.startswith(("```", "~~~")):
            in_fence = not in_fence
            close()
            continue
        if in_fence or not content or content.startswith(("|", "#", "<")):
            close()
            continue
        if re.match(r"(?:[-*+]|\d+[.)])\s", content):
            close()
            content = re.sub(r"^(?:[-*+]|\d+[.)])\s+", "", content)
        if not lines:
            first = number
        lines.append(re.sub(r"[*_`]{1,2}(?=\S)|(?<=\S)[*_`]{1,2}", "", content))
    close()
    return [passage for passage in parts if passage.states]
