"""Claims in a text, parsed by rule: metrics, numbers, counts and comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from passhat.reporting.review.statements import (
    BENCHMARK,
    METRIC,
    TASKS,
    Difference,
    Size,
    Statement,
)
from passhat.reporting.review.tables import cells_of, is_rule, table_text, text_lines, without_marks

__all__ = ["ITEM", "Claimed", "Mention", "Passage", "all_passages", "passages"]

_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
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
# A number without a sign of percent, as tables and papers write them: 71.3, 45, 100.
_BARE = re.compile(
    r"(?<![\w.@^+\-−±–$#/\[])(\d{1,2}\.\d{1,2}|\d{1,2}|100(?:\.0+)?)"
    rf"(?!\w|\.?\d|\s?{_PERCENT}|\s*(?:percentage|points?|pp|pts|tasks?|problems?|questions?|"
    r"issues?|attempts?|runs?|tries|trials?|samples?|seeds?|times|x\b|of\b|out of|/|million|"
    r"billion|seconds?|minutes?|hours?|tokens|steps|dollars))",
    re.IGNORECASE,
)
_VERSUS = r"\s*(?:vs\.?|versus|against|→|->|compared (?:to|with))\s*"
_BARE_BEFORE = re.compile(
    r"(?:(?:pass|maj|cons|avg|mean|best|worst)\s?[@^]\s?(?:\d+|k)|scor(?:es?|ed|ing)|accuracy|"
    rf"{BENCHMARK}(?: \w+)*\s*[:=]|"
    r"(?:success|pass|solve|resolve|resolution|completion) rate)\s*(?:\([^)]*\)\s*)?(?:(?:score "
    r")?(?:of|is|was|=|:|at|to|reaches|reached|hits|are)\s*)?(?:about |roughly |nearly )?$",
    re.IGNORECASE,
)
_BARE_AFTER = re.compile(
    rf"\s*(?:±|\+/-|\(±)|\s+(?:on|in) (?:the )?(?:\w+ )?{BENCHMARK}|{_VERSUS}\d", re.IGNORECASE
)
_FAILURE_BEFORE = re.compile(
    r"\b(?:fail(?:s|ed|ures?|ing)?|errors?|error rate|wrong)\s+(?:rate )?(?:only )?"
    r"(?:on|in|of|for|at|is|was|=|:)?\s*(?:only |about |just )?$",
    re.IGNORECASE,
)
_PERFECT = (
    r"(?:never (?:once )?fail(?:s|ed)|(?:no|zero|0) failures?|without (?:a |a single |any "
    r")?failures?|always (?:pass(?:es|ed)|succeed(?:s|ed)|works?|worked))"
)
_RUNS = (
    r"(?:tasks?|problems?|questions?|issues?|attempts?|runs?|tries|trials?|samples?|times|cases?|"
    r"episodes?)"
)
_NEVER = re.compile(
    rf"\b(?:in|over|across|of|after) (?:all )?({_NUMBER}) (?:\w+ "
    rf")?{_RUNS}\b[^.;]{{0,40}}?{_PERFECT}|{_PERFECT}[^.;\d]{{0,40}}?\b({_NUMBER}) (?:\w+ "
    rf")?{_RUNS}\b|\ball ({_NUMBER}) (?:\w+ )?{_RUNS} (?:\w+ )?(?:pass(?:ed)?|succeed(?:ed)?|were "
    r"(?:solved|successful|correct|right))",
    re.IGNORECASE,
)
_POINTS = r"(?:percentage[ -]points?|%-points?|points?|pp|pts|p\.p\.)"
_GAIN = re.compile(
    rf"(?:\bby|\bof|\+|\bimprov\w+|\bgain\w*|\bdrop\w*|\blift:?|\blead\w*|\brose|"
    rf"\bfell)\s*(?:about |nearly |over |roughly |some )?\+?(\d+(?:\.\d+)?)[\s-]*{_POINTS}|"
    rf"(\d+(?:\.\d+)?)[\s-]*{_POINTS}\s*(?:better|higher|worse|lower|above|below|ahead|behind|more|"
    r"gain|improvement|increase|drop|lift)",
    re.IGNORECASE,
)
_DOWNWARD = re.compile(
    r"\b(?:drop\w*|worse|lower|below|behind|fell|falls?|decreas\w*|regress\w*|declin\w*|los\w+|"
    r"underperform\w*|weaker|inferior|trail\w*)\b",
    re.IGNORECASE,
)
_PASSED = r"(?:pass(?:es|ed)?|solve[sd]?|succe(?:eds?|eded|ssful)|right|correct|completed?)"
_COUNT = re.compile(
    rf"(?<![\w.@^+\-−±/])({_NUMBER})(?: times)?\s?(?:/|(?:out )?of)\s?(?:the |its |all )?"
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
    r"lift|scores?|gets?|got|scored|achiev(?:es?|ed)|reach(?:es|ed)?|attains?|resolv(?:es|ed)|"
    r"hits?|agents?|runs?|attempts?|points?|pp|reliab\w+|fail(?:s|ed|ures?)?|complet(?:es|ed|ion)|"
    r"(?:solve|resolve|win|error) rate)\b",
    re.IGNORECASE,
)
_NOT_A_RATE = re.compile(
    r"\s*-?\s*(?:confidence|credible|CI\b|interval|band|level|probability that|chance that|"
    r"certain that|cheaper|faster|slower|quicker|smaller|larger|less|fewer|more (?:expensive|time)|"
    r"discount|of (?:the )?(?:cost|time|budget|tokens|redraws))",
    re.IGNORECASE,
)
_A_SETTING = re.compile(
    r"(?:(?:level|temperatures?|\bT|top_p|\bp)\s*(?:=|of|<|>|≤|≥|<=|>=|is|in|at|:)?\s*[\[{(]?|"
    r"margin of (?:±\s?)?)(?:\d*\.?\d+\s*(?:,|and|or|to|-|–)\s*)*$"
)
_BETTER = re.compile(
    r"\b(better|worse|beats?|beaten|outperform\w*|outscor\w*|surpass\w*|improv(?:es?|ed|ing)|"
    r"improvement|regress(?:es|ed|ion)?|superior|inferior|stronger|weaker|wins?|won|leads?|ahead "
    r"of|(?:more|fewer) \w+ than|exceeds?|more (?:reliable|capable|accurate|consistent)|higher "
    r"than|lower than|above that of|below that of|gains?|(?:up|down) from|(?<!report the "
    r")(?<!reports the )(?<!reported the )best(?! (?:run|seed|checkpoint|prompt|configuration|"
    r"result|of|one))|state of the art|sota)\b",
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
_ENDS = r"([-+−]?\d+(?:\.\d+)?)\s*(?:to|\.\.|–|,|and)\s*([-+−]?\d+(?:\.\d+)?)"
_LIFT = re.compile(
    rf"{_ENDS}\s*{_POINTS}|{_POINTS}[^.;]{{0,40}}?(?:interval|"
    rf"CI)\b[^\d.;+−-]{{0,20}}{_ENDS}(?!\s?%|\d)",
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

    ``in_range`` marks an end of a range such as 60 to 65%; ``total`` is the 4 of "3 of 4". A
    share of failures is turned round.
    """

    share: float
    step: float
    text: str
    start: int
    in_range: bool = False
    total: int | None = None


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _percent_share(text: str) -> tuple[float, float]:
    """A number of percent as a share, and the step of its last digit."""
    return float(text) / 100, 10.0 ** -len(text.partition(".")[2]) / 100


def _is_inside(match: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    return any(first <= match.start() < last for first, last in spans)


@lru_cache(maxsize=16)
def _says_anywhere(whole: str, pattern: str) -> bool:
    """Whether a text matches; every claim of a long document asks the same of it."""
    return bool(re.search(pattern, whole, re.IGNORECASE))


@dataclass(frozen=True)
class Passage:
    """A paragraph that claims something, and the text around it."""

    text: str
    line: int
    whole: str
    names: tuple[str, ...] = ()
    """Names of runs: who is called better or worse."""
    rows: tuple[tuple[str, ...], ...] = ()
    """The cells, where the passage is a table."""

    @cached_property
    def metrics(self) -> tuple[Mention, ...]:
        return tuple(
            Mention(
                f"{match[1].lower().replace('-', '')}{match[2]}",
                int(match[3]) if match[3] and match[3].isdigit() else None,
                match.start(),
            )
            for match in METRIC.finditer(self.text)
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
        values = sorted(self._values(), key=lambda value: value.start)
        return tuple(self._turn_failures(value) for value in values)

    def _values(self) -> Iterator[Claimed]:
        spans: list[tuple[int, int]] = []
        yield from self._counts(spans)
        for match in _RANGE.finditer(self.text):
            spans.append(match.span())
            if self._is_rate(match) and not self._is_interval(match):
                for end in (1, 2):
                    share, step = _percent_share(match[end])
                    # "From 55 to 62%" tells of two runs.
                    is_range = not re.search(r"\bfrom\s*$", self.text[: match.start()])
                    text = match[0] if is_range else match[end]
                    yield Claimed(share, step, text, match.start(end), in_range=is_range)
        for match in _VALUE.finditer(self.text):
            is_new = not _is_inside(match, spans)
            spans.append(match.span())
            if is_new and self._is_rate(match):
                text = match[1] or match[2]
                share, step = _percent_share(text)
                scale = 1 if match[1] else 100
                yield Claimed(share * scale, step * scale, match[0], match.start())
        for match in _BARE.finditer(self.text):
            if not _is_inside(match, spans) and self._is_rate(match) and self._is_bare_rate(match):
                share, step = _percent_share(match[1])
                yield Claimed(share, step, match[0], match.start())

    def _counts(self, spans: list[tuple[int, int]]) -> Iterator[Claimed]:
        """Shares that are given as counts; their places are added to ``spans``."""
        for match in _NEVER.finditer(self.text):
            total = _whole(next(group for group in match.groups() if group))
            spans.append(match.span())
            yield Claimed(1.0, _COUNT_STEP, match[0], match.start(), total=total)
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

    def _is_bare_rate(self, match: re.Match[str]) -> bool:
        """Whether a number without a sign of percent stands where a share stands."""
        before, after = self.text[: match.start()], self.text[match.end() :]
        if _BARE_BEFORE.search(before) or _BARE_AFTER.match(after):
            return True
        return "." in match[1] and bool(re.search(rf"\d\d?\.\d{_VERSUS}$", before, re.IGNORECASE))

    def _turn_failures(self, value: Claimed) -> Claimed:
        """A share of failures as the share of passes."""
        if not _FAILURE_BEFORE.search(self.text[: value.start]):
            return value
        return replace(value, share=1 - value.share)

    def _is_rate(self, match: re.Match[str]) -> bool:
        """Whether a number is a share of tasks rather than a level, a setting or a bound."""
        before, after = self.text[: match.start()], self.text[match.end() :]
        if _NOT_A_RATE.match(after) or _A_SETTING.search(before) or re.search(r"[±]\s*$", before):
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
        has_rate = has_rate or bool(re.search(BENCHMARK, self.text)) or "±" in self.text
        has_rate = has_rate or bool(re.search(rf"\d\.\d{_VERSUS}\d\d?\.\d", self.text))
        has_rate = has_rate or any(
            re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.text) for name in self.names
        )
        has_bounds = bool(self.metrics) and self.has_interval
        is_comparison = self.compares or is_test or self.gain is not None
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
        low, high = (float(end.replace("−", "-")) for end in match.groups() if end is not None)
        return low, high

    @property
    def gain(self) -> float | None:
        """The lift in points, where one is stated; negative where the text says that it fell."""
        match = _GAIN.search(self.text)
        if match is None:
            return None
        sentence = self.sentence_at(match.start())
        size = float(match[1] or match[2])
        return -size if _DOWNWARD.search(sentence) else size

    def sentence_at(self, start: int) -> str:
        """The sentence around a place of the text."""
        first = max(
            (match.end() for match in _SENTENCE_END.finditer(self.text) if match.end() <= start),
            default=0,
        )
        last = min(
            (match.start() for match in _SENTENCE_END.finditer(self.text) if match.start() > start),
            default=len(self.text),
        )
        return self.text[first:last]

    def says(self, pattern: str, *, anywhere: bool = False) -> bool:
        """Whether the passage (or the whole text) matches a pattern."""
        if anywhere:
            return _says_anywhere(self.whole, pattern)
        return bool(re.search(pattern, self.text, re.IGNORECASE))


def passages(text: str, names: Sequence[str] = ()) -> list[Passage]:
    """Paragraphs, headings, list items and tables that claim something; code is skipped.

    A table (Markdown, LaTeX, HTML, CSV) whose header or first column names a metric is read as
    sentences, a row each. ``names`` are runs that claims may be about.
    """
    return [passage for passage in all_passages(text, names) if passage.states]


def all_passages(text: str, names: Sequence[str] = ()) -> list[Passage]:
    """Every paragraph, heading, list item and table of a text."""
    return [
        Passage(
            table_text(part.rows) if part.rows else " ".join(" ".join(part.lines).split()),
            part.first,
            text,
            tuple(names),
            tuple(map(tuple, part.rows)),
        )
        for part in _parts(text)
        if part.lines or len(part.rows) > 1
    ]


@dataclass(slots=True)
class _Part:
    """The lines of a paragraph, or the rows of a table."""

    first: int = 0
    lines: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def _parts(text: str) -> Iterator[_Part]:
    part = _Part()
    in_fence = False
    for number, line in text_lines(text):
        content = _without_latex(line)
        is_fence = content.startswith(("```", "~~~"))
        in_fence ^= is_fence
        cells = [] if in_fence else cells_of(content)
        if part.rows and is_rule(content):
            continue
        heading = re.match(r"#+\s+", content)
        is_break = in_fence or is_fence or not content
        is_break = is_break or (content.startswith(("|", "<", "\\")) and not cells)
        item = ITEM.match(content)
        if is_break or item or heading or (part.lines and cells) or (part.rows and not cells):
            yield part
            part = _Part()
        if is_break:
            continue
        part.first = part.first or number
        if cells:
            part.rows.append(cells)
        else:
            start = item or heading
            part.lines.append(without_marks(content[start.end() if start else 0 :]))
        if heading:
            yield part
            part = _Part()
    yield part


ITEM = re.compile(r"(?:[-*+>]|\d+[.)])\s+")


def _without_latex(line: str) -> str:
    """The line without the marks of LaTeX that stand in and around numbers and metrics."""
    if "\\" not in line and "$" not in line:
        return line
    line = re.sub(r"\$([^$]*[\\^_][^$]*|[kKnN])\$", r"\1", line)
    line = re.sub(r"\$\s*([\d.,±\s%\\-]+)\$", r"\1", line)
    line = (
        re.sub(r"\\textasciicircum(?:\{\}|\\ )?\s*", "^", line)
        .replace(r"\^{}", "^")
        .replace("\\ ", " ")
        .replace(r"\pm", "±")
        .replace(r"\rightarrow", "→")
        .replace(r"\to ", "→ ")
        .replace(r"\,", " ")
        .replace("~", " ")
    )
    line = re.sub(
        r"\\(?:text(?:bf|it|tt|sc|rm)?|mathrm|mathbf|emph|underline)\{([^{}]*)\}", r"\1", line
    )
    line = re.sub(r"\^\{?(\d+|k|n)\}?", r"^\1", line)
    return re.sub(r"\\([%@&^_#])", r"\1", line)


_SUITE = r"(?:suite|benchmark|(?:test |task |data ?)?set|evaluation|eval|dataset|collection)"
_OTHER_SUITE = re.compile(
    rf"\b(?:subset|slice|split|sub\w+|other|another|larger|smaller|full|original|public|earlier|"
    rf"previous|old\w*|next|new|plan\w*|will|would|should|if|could|might|future|extend\w*|hard\w*|"
    rf"easy|sampled?|random|part|once|used to)\b|{BENCHMARK}",
    re.IGNORECASE,
)


def find_sizes(text: str, tasks: frozenset[int]) -> Iterator[Size]:
    """The size of the suite in words: a 50-task suite; the suite has 50 tasks."""
    if _OTHER_SUITE.search(text):
        return
    counts = {int(one) for one in re.findall(rf"\b(\d+)[ -](?:[a-z]+ )?{TASKS}\b", text)}
    forms = (
        rf"\b(?:a|an|the|our|this|its) (\d+)-{TASKS} (?:[a-z]+ )?{_SUITE}\b",
        rf"\b(?:the|our|this) (?:[a-z]+ )?{_SUITE} (?:has|had|contains?|comprises|includes|"
        rf"consists of|holds|is made (?:up )?of) (?:exactly |just |only )?(\d+) "
        rf"(?:[a-z]+ )?{TASKS}",
        rf"\beach of (?:the|our|its) (\d+) (?:[a-z]+ )?{TASKS} (?:was|were|is|got|gets|had)\b",
    )
    for form in forms:
        for match in re.finditer(form, text, re.IGNORECASE):
            if not counts & tasks:
                yield Size(f"{match[1]} tasks", int(match[1]), True, False)
    times = re.search(
        rf"\beach (?:of (?:the|our|its) (?:\d+ )?)?(?:[a-z]+ )?{TASKS} (?:was|were|is) (?:run|"
        r"attempted|tried|repeated|sampled|evaluated|tested) (\d+) times\b(?! (?:in|over))",
        text,
        re.IGNORECASE,
    )
    if times:
        yield Size(f"{times[1]} attempts", int(times[1]), False, True, per_task=True)


_GAP_ENDS = re.compile(
    r"\b(?:intervals?|CIs?|bounds?) (?:on|of|for|around|about) (?:the|this|that|their|its) (?:\w+ "
    r")??(?:gap|difference|lift|improvement|lead|change|advantage|margin)\b(?:(?: (?:between|of|"
    r"in|over|to|and|from|is|was|goes|runs|spans|ranges|extends|stretches|covers)|⟦r\d+⟧|"
    r"pass[@^]\d+|[\s=:,(\[])*?)[\[(]?(?P<a>[-+−]?\d+(?:\.\d+)?)\s?%?(?: points)?\s*(?:to|and|,|"
    r"\.\.|–)\s*(?P<b>[-+−]?\d+(?:\.\d+)?)(?![\w.]*\d)",
    re.IGNORECASE,
)


def find_gap_interval(clause: str, pairs: Sequence[int], text: str) -> list[Statement]:
    """The interval of a difference that is not stated itself."""
    match = _GAP_ENDS.search(clause)
    rest = re.sub(r"\b(?:the )?\d+\s?%(?: \w+)?\s*$", "", clause[: match.start()] if match else "")
    if match is None or len(pairs) != 2 or re.search(r"\d(?![\d+*]*⟧)", rest):
        return []
    if re.search(r"\d points?\b", text.replace(match[0], "")):
        return []
    low, high = (float(match[end].replace("−", "-")) for end in "ab")
    metric = re.search(r"pass[@^]\d+", match[0])
    word = metric[0] if metric else ""
    shown = f"interval {low:g} to {high:g}"
    return [Difference(shown, pairs[0], pairs[1], 0, ends=(low, high), metric=word)]
