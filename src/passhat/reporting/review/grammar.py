"""A small grammar of claims: a sentence becomes shares, differences and sizes, each with its run.

A sentence is rewritten step by step. Every phrase that is understood (a run, a metric in signs or
in words, an interval, a count, a difference) becomes a token, so that later steps see its place
and kind only. Numbers that no step understands are kept as such: they make a sentence not
checkable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from passhat.reporting.review.rewrites import (
    DROPPED,
    EARLY,
    NEVER,
    PROTOCOLS,
    SETS,
    TWO,
    other_runs,
    plain_comparison,
    plain_number,
)
from passhat.reporting.review.statements import (
    ATTEMPTS,
    BENCHMARK,
    BOUNDS,
    COMPARATIVE,
    ERRORS,
    INTEGER,
    INTERVALS,
    METRIC,
    NUMBER,
    OF_A_LIFT,
    OF_RATES,
    PASSED,
    POLARITY,
    SCORES,
    SPREADS,
    TASKS,
    Size,
    Unread,
    is_known,
    spread_of,
    unknown_words,
)

_N, _INT, _ATT, _TASK = NUMBER, INTEGER, ATTEMPTS, TASKS
# Where a number of tasks or attempts is that of the whole run.
_TOTAL_BEFORE = re.compile(
    r"(?:^|[(,:;=+×]|\b(?:on|over|across|using|with|from|x|and|of|all|the|our|same|shared|these|"
    r"made|used?|using|evaluated|ran|run|has|had|contains?|at|in|for|averag\w+|est\w+|these))\s*$",
    re.IGNORECASE,
)
_PART_AFTER = re.compile(
    r"\s*(?:tasks\s+)?(?:(?:are|is|was|were|that|which|where|can|could|suffice|fail\w*|never|only|"
    r"of ⟦r)\b|⟦r)",
    re.IGNORECASE,
)
# Repeats for an average, not a budget.
_REPEATS = re.compile(r"\b(?:seed|repetition|repeat|rollout|episode)s?\b", re.IGNORECASE)
_SOLVED = rf"(?:{PASSED}|fail\w*|unsolved|unresolved|miss(?:es|ed))"
_SOLVED_BEFORE = re.compile(
    rf"(?:\b{_SOLVED}|\b(?:is|are|was|were)\s+⟦m\d+⟧)(?:\s+⟦[mr]\d+⟧)*\s+(?:on |at |in )?"
    r"(?:only |just |exactly )?$|"
    rf"{POLARITY.pattern}(?:\s+(?:than|to))?(?:\s+⟦r\d+⟧)?\s+(?:on|in)\s+(?:only |just )?$",
    re.IGNORECASE,
)
_SOLVED_AFTER = re.compile(
    rf"\s*(?:tasks\s+)?(?:(?:are|is|was|were|have been|remain\w*|went|go)\s+)?(?:⟦m\d+⟧\s+)?"
    rf"(?:never |always |only )?{_SOLVED}\b|\s*(?:tasks\s+)?(?:are|were|remain)\s+⟦m",
    re.IGNORECASE,
)
_ON_EVERY = re.compile(
    rf"(?P<head>{POLARITY.pattern}(?:\s+(?:than|to|over))?\s+⟦r\d+⟧\s+(?:on|in))\s+"
    rf"(?:all|each|every)(?: single)?(?: one)?(?: of)?(?: the)?(?: (?P<total>{_INT}))? {_TASK}\b",
    re.IGNORECASE,
)
P_VALUE = re.compile(
    rf"\(?\bp(?:-value)?s?\s?(?:\((?P<test>[^)]*)\)\s?)?(?P<sign><=|>=|[<=>≤≥])\s?(?P<p>{_N}(?:e-?\d+)?)\)?",
    re.I,
)
_RATIO = re.compile(
    rf"(?P<op>>=|<=|~|more than |nearly )?\s?\b(?:(?P<verb>doubl|tripl|quadrupl|halv)(?:e[sd]?|"
    rf"ing)\b|(?P<adv>(?:twice|half) as \w+(?: as)?|twice(?=\s+(?:its|that|the|⟦)))|"
    rf"(?P<x>{_N})\s?(?:x|times|-?fold)\b(?: (?:better|higher|as \w+|more \w+|increase|"
    rf"improvement|gain)(?: as| than)?)?)",
    re.IGNORECASE,
)
_RATIOS = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0, "halv": 0.5, "twice": 2.0, "half": 0.5}

_UNKNOWN = re.compile(
    r"(?<![\w⟦@^-])(?:[A-Z][A-Za-z]*-?v?\d[\w.-]*\w|[A-Z][A-Za-z]*-?\d|(?:gpt|claude|llama|"
    r"gemini|qwen|mistral|grok)[\w.-]*|[A-Z][a-zA-Z]+(?:-[\w.]+)*(?='s (?!\w+ing)| (?:reach|achiev|"
    r"score|gets|report|hits|solves|passes|obtain|attain|manages|trails|beats|gains|wins|succeeds|"
    r"fails)))"
)
_COMMON = re.compile(
    rf"(?:{BENCHMARK}|[TNKHpn]\d|[AHVLB]\d{{2,3}}\b|RTX|The|This|That|It|We|Our|Its|Their|Each|"
    r"Every|Accuracy|Success|Performance|Model|Agent|Baseline|Ours|One|Table|Figure|Section|Python|F1|Which|What|Who|And|But|Only|"
    r"Everything)\b"
)


_REACH = r"(?:share|have|had|reach|achieve|get|got|score|attain|hit|solve|pass|are at)(?:e?d)?"
_VERSION = r"(?:release|version|model|agent|system|checkpoint|build|one)"
BOUND_WORDS = {
    **dict.fromkeys(("more than", "over", "at least"), ">="),
    **dict.fromkeys(("fewer than", "less than", "at most"), "<="),
}


# The version 1.4 among numbers: better than 1.4, with 8 tries 1.4 gets to 85.5%.
_VERSION_BEFORE = (
    r"(?:(?<=\bvs )|(?<=\bvs\. )|(?<=\bthan )|(?<=\bover )|(?<=\bagainst )|(?<=\bversion )|"
    r"(?<=\bversus )|(?<=\brelease )|(?<=\bin )|(?=\S+ (?:gets?|got|reach|scor|pass(?![@^])|"
    r"solve|fail|was|is|had|has|complete)))"
)
_VERSION_AFTER = r"(?!\s?(?:%|points?\b|pp\b|x\b|percent|±|to \d|of\b|and \d|[-–]\s?\d))"


@cache
def _name_pattern(names: tuple[tuple[str, ...], ...]) -> re.Pattern[str]:
    words = sorted(
        {word for group in names for word in group if word}, key=lambda word: (-len(word), word)
    )
    # A name of one letter is no article; a run called "new" is not in "new tasks".
    unless = rf"(?!\s+(?:{TASKS})\b)"
    cased = [
        rf"{re.escape(word)}(?!\s+(?:new|single|simple|few)\b)"
        if len(word) == 1
        else f"{_VERSION_BEFORE}{re.escape(word)}{_VERSION_AFTER}"
        if re.fullmatch(r"\d+\.\d+", word)
        else f"(?i:{re.escape(word)}){unless if word.lower() in ('new', 'hard', 'easy') else ''}"
        for word in words
    ]
    return re.compile(
        rf"(?<![\w⟦+-])({'|'.join(cased) or '(?!)'})(?:'s?(?!\w))?(?![\w⟧@^]|[-+]\w|\.\d)"
    )


def name_pattern(names: Sequence[Sequence[str]]) -> re.Pattern[str]:
    """Finds the names of runs; of names that begin alike the longest."""
    return _name_pattern(tuple(map(tuple, names)))


@dataclass(slots=True)
class Value:
    """A number as it is written, before it has an owner and a metric."""

    text: str
    low: float
    high: float
    step: float
    relation: str = "="
    failing: bool = False
    counted: str = ""
    bare: bool = False
    unsure: str = ""
    total: int = 0
    count: int | None = None
    """A number of tasks whose total the text leaves to the data."""


@dataclass(slots=True)
class Reader:
    """One sentence, on its way to tokens; names are the runs it may be about."""

    names: Sequence[Sequence[str]]
    values: list[Value] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    intervals: list[tuple[tuple[float, float] | None, float | None, str]] = field(
        default_factory=list
    )
    sizes: list[Size] = field(default_factory=list)
    p_values: list[tuple[str, float, str]] = field(default_factory=list)
    gaps: list[tuple[float, float, str, str, str]] = field(default_factory=list)
    elsewhere: tuple[str, ...] = ()
    ratios: list[tuple[float, str, str]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    total: tuple[int, str] | None = None
    continues: bool = False

    def rewrite(self, sentence: str) -> str:
        """The sentence with tokens in place of what was understood."""
        text = self.mark_names(sentence)
        text = plain_number(text)
        text = plain_comparison(text)
        text = self._mark_metrics(text)
        text = P_VALUE.sub(self._p_value, text)
        text = self._mark_spread(text)
        text = self._mark_protocols(text, PROTOCOLS[:EARLY])
        text = self._mark_counts(text)
        text = self._mark_protocols(text, PROTOCOLS[EARLY:])
        if not any("<" in metric for metric in self.metrics):
            text = re.sub(NEVER, lambda _: f"{self._add_metric('tasks<n')} fails", text, flags=re.I)
        text = INTERVALS.sub(self._interval, text)
        text = ERRORS.sub(self._error, text)
        text = self._mark_sizes(text)
        for pattern in DROPPED:
            text = re.sub(pattern, " ", text)
        unit = rf"[ -]points?\b| (?=(?:more|fewer) (?:{_TASK}|({_ATT}))\b)"
        text = re.sub(rf"(>=|<=|~)?([-+])?\s?(?<![\d.])({_N})(?:{unit})", self._gap, text)
        text = _RATIO.sub(self._ratio, text)
        return re.sub(r"\s+", " ", self._mark_values(text))

    def mark_names(self, text: str) -> str:
        text = name_pattern(self.names).sub(
            lambda match: f" ⟦r{self._run_of(match[1])}⟧ ", re.sub(r"’", "'", text)
        )
        if "⟦r" not in text and len(self.names) == 2 and re.search(r"(?<![\w-])B(?!\w|-)", text):
            for run, letter in enumerate("AB"):
                text = re.sub(rf"(?<![\w-]){letter}(?:'s)?(?![\w@^-])", f" ⟦r{run}⟧ ", text)
        if "⟦r" not in text and len(self.names) == 2:
            for run, age in enumerate(
                ("(?:old|older|previous|prior|former)", "(?:new|newer|latest)")
            ):
                text = re.sub(rf"\bthe {age} {_VERSION}\b(?:'s)?", f" ⟦r{run}⟧ ", text, flags=re.I)
        if len(re.findall(r"\d%|\d\.\d", text)) == 1:  # A and B reach 87.5%
            text = re.sub(rf"{TWO}(?=\s+{_REACH}\b)", r"⟦r\1+\2⟧", text)
        for pattern, new in SETS:
            text = re.sub(pattern, new, text, flags=re.I)
        agents = (
            r"(?: (?:of )?(?:the )?(?:(?:two|three|four|five|six|[2-6]) )?"
            r"(?:agents?|models?|systems?|variants?|versions?))"
        )
        text = re.sub(
            rf"\b(?:neither|none(?= of the)|no(?= (?:agent|model|system))){agents}",
            " ⟦r*⟧ not ",
            text,
            flags=re.I,
        )
        text = re.sub(
            rf"\b(?:both|either|all|each|every){agents}|\bboth\b(?! ⟦| (?:times|{ATTEMPTS})\b| "
            rf"pass)",
            " ⟦r*⟧ ",
            text,
            flags=re.I,
        )
        text = other_runs(text, len(self.names))
        return _UNKNOWN.sub(self._unknown, text)

    def _run_of(self, word: str) -> int:
        return next(
            run for run, group in enumerate(self.names) if word.lower() in map(str.lower, group)
        )

    def _unknown(self, match: re.Match[str]) -> str:
        word = match[0]
        is_word = word.isalpha() and is_known(word)
        return word if is_word or _COMMON.match(word) else " ⟦r?⟧ "

    def _mark_metrics(self, text: str) -> str:
        """Metrics in signs; "pass@k is 62% at k = 1 and 98% at k = 10" names two of them."""
        words = {match[0]: match for match in METRIC.finditer(text)}
        general = [match for match in words.values() if not (match[3] or "k").isdigit()]
        ks = re.findall(r"\bk\s?=\s?(\d+)", text)
        if len(words) == len(general) == 1 and ks:
            family = f"{general[0][1]}{general[0][2]}"
            if len(set(ks)) > 1 or re.search(r"\d%? (?:at|for|with) k\s?=", text):
                text = text.replace(general[0][0], "")
                text = re.sub(r"\b(?:(?:at|for|with) )?k\s?=\s?(\d+)", rf"{family}\1", text)
        return METRIC.sub(self._metric, text)

    def _metric(self, match: re.Match[str]) -> str:
        k = match[3] if match[3] and match[3].isdigit() else "k"
        return self._add_metric(f"{match[1].lower()}{match[2]}{k}")

    def _add_metric(self, word: str) -> str:
        self.metrics.append(word)
        return f" ⟦m{len(self.metrics) - 1}⟧ "

    def _mark_spread(self, text: str) -> str:
        """Single runs of the benchmark: from the worst to the best, and how far apart."""
        if not re.search(rf"\b(?!times\b){_ATT}\b", text) or BOUNDS.search(text):
            return text
        for match in re.finditer(SCORES, text):
            numbers = re.findall(NUMBER, match[0])
            if re.search(rf"\b{len(numbers)} (?:\w+ )?{_ATT}", text):
                shown = ", ".join(f"{self._add_metric('tasks:any')} {one}%" for one in numbers)
                return f"{text[: match.start()]} {shown} {text[match.end() :]}"
        for pattern, kinds in SPREADS:
            if re.search(pattern, text, re.IGNORECASE):
                return re.sub(pattern, partial(self._spread, kinds), text, flags=re.IGNORECASE)
        return text

    def _spread(self, kinds: Sequence[tuple[str, str]], match: re.Match[str]) -> str:
        ends = zip(kinds, match.groups(), strict=True)
        names = (f"{self._add_metric(f'tasks:{one}')} {sign}{end}%" for (one, sign), end in ends)
        return f" {' and '.join(names)} "

    def _mark_protocols(self, text: str, protocols: Sequence[tuple[str, str]]) -> str:
        for pattern, family in protocols:
            text = re.sub(
                pattern, partial(self._protocol, family=family), text, flags=re.IGNORECASE
            )
        return text

    def _protocol(self, match: re.Match[str], family: str) -> str:
        k = next(filter(None, match.groupdict().values()), "")
        if family == "<" and _REPEATS.search(match[0]):
            return match[0]
        is_share = match[0].count(k) > 1 and k.isdigit()  # passed 5 of 5 attempts, and that is all
        if is_share and not re.search(
            r"\d|\b(?:all|every|none)\b", match.string.replace(match[0], "")
        ):
            return match[0]
        return self._add_metric(f"tasks{family}{k}")

    def _p_value(self, match: re.Match[str]) -> str:
        self.p_values.append((match["sign"], float(match["p"]), match["test"] or ""))
        return " "

    def _interval(self, match: re.Match[str]) -> str:
        low, low_unit, high, high_unit, points = next(
            match.groups()[at : at + 5] for at in range(0, 20, 5) if match.groups()[at] is not None
        )
        if re.match(r"\(\s*\d+\s?,\s?\d+\s*\)$", match[0]) and not low_unit + high_unit:
            return match[0]
        words = match.string[: match.start()] + re.split(r"[-+]?\d", match[0])[0]
        is_lift = points or OF_A_LIFT.search(re.sub(rf"{_N}% ?", "", words))
        unit = "points" if is_lift else "%" if low_unit or high_unit else ""
        self.intervals.append(((float(low), float(high)), None, unit))
        tokens = " ".join(re.findall(r"⟦[rm]\d+⟧", match[0]))
        return f" {tokens} ⟦i{len(self.intervals) - 1}⟧ "

    def _error(self, match: re.Match[str]) -> str:
        half = match["half"] or match["error"]
        self.intervals.append((None, float(half), spread_of(match)))
        return f" ⟦i{len(self.intervals) - 1}⟧ "

    def _mark_counts(self, text: str) -> str:
        """Shares as counts: 3 of 4 tasks, 9 in 10 attempts, all 40 tasks, no failures."""
        noun = rf"(?=(?:(?: [\w-]+){{0,2}}?) ({_TASK}|{_ATT})\b|\W)?"
        text = re.sub(
            rf"(~|>=|<=|(?:more|fewer|less) than |over |at least |at most )?"
            rf"(?<!\d\.)\b({_INT})(?: times| (?:[\w-]+ )??(?:{_TASK}|{_ATT}))?\s?"
            rf"(?:/|out of|of|in)\s*"
            rf"(every |each |the |its |all |those )?(?:⟦r\d+⟧\s*)?({_INT})(?!\.?\d|\s?%){noun}",
            self._count,
            text,
            flags=re.IGNORECASE,
        )
        text = _ON_EVERY.sub(self._on_every, text)
        total = rf"\bof (?:the |its |all )?\s*(?:⟦r\d+⟧\s*)?({_INT}) ({_TASK}|{_ATT})\b,?"
        found = None if self.sizes else re.search(total, text, re.IGNORECASE)
        if found:
            self.total = int(found[1]), "task" if re.fullmatch(_TASK, found[2], re.I) else "attempt"
        never = (
            rf"(?:never (?:once )?fail(?:s|ed)?(?: (?:a|any|one) (?:single )?{_TASK})?|"
            r"(?:zero|no|0) failures?|without (?:a single |any |a )?failures?)"
        )
        runs = (
            rf"(?:in|over|across|of|after|out of) (?:all |its |"
            rf"our )?({_INT}) (?:\w+ )?({_TASK}|{_ATT})\b"
        )
        text = re.sub(
            rf"\b{never} {runs}|\b{runs},?(?P<between>[^.;\d]{{0,40}}?)\b{never}\b",
            self._never,
            text,
            flags=re.IGNORECASE,
        )
        whole = (
            rf"\b(?:all|each of|every(?: single)?)(?: of)?(?: the| its)?(?: ({_INT}))? (?:[\w-]+ "
            rf")??({_TASK})\b|\b(?:zero|no|without any|without a single|0) (?:failures?|errors)\b|"
            rf"\bnever (?:once )?fail(?:s|ed)?\b(?!⟦| (?:a|an|the|on|more)\b)|\balways (?=pass|"
            rf"succe|solv|work|gets it right)(?![^,;.]*\d)|\bperfect (?:scores?|record|accuracy)|"
            rf"\bfail\w* (?:on |in )?(?:none|no)(?: of the)?(?: ({_INT}))? ({_TASK})"
        )
        return re.sub(whole, self._whole, text, flags=re.IGNORECASE)

    def _count(self, match: re.Match[str]) -> str:
        passed, total, noun = int(match[2]), int(match[4]), (match[5] or "").lower()
        has_sign = re.search(r"/|\bof\b", match[0])
        named = re.search(rf"({_TASK})|({_ATT})", match[0][len(match[2]) :], re.IGNORECASE)
        if not total or passed > total or not (noun or has_sign or named):
            return match[0]
        is_task = bool(re.fullmatch(_TASK, noun) or (not noun and named and named[1]))
        kind = "task" if is_task else "attempt" if noun or named else ""
        is_every = match[3] in ("every ", "each ") or " in " in match[0].lower()
        is_every = is_every or (match[1] == "~" and total in (10, 100))
        unsure = ""
        if not is_every:
            self.total = total, kind
            words = re.match(rf"((?: [\w-]+)*?) (?:{_TASK}|{_ATT})\b", match.string[match.end() :])
            has_kind = bool(words and unknown_words(words[1]))
            self.sizes.append(
                Size(
                    f"{total:,} {noun or 'tasks or attempts'}",
                    total,
                    is_task or not kind,
                    not is_task,
                    is_certain=not has_kind,
                )
            )
            unsure = "" if not has_kind else words[1].strip()  # type: ignore[index]
        step = min(1 / total, 0.06) if is_every else 1 / total
        relation = BOUND_WORDS.get((match[1] or "=").strip().lower(), match[1] or "=")
        token = self._fraction(match[0], passed / total, step, relation, kind)
        self.values[-1].unsure, self.values[-1].total = unsure, total
        return token

    def _on_every(self, match: re.Match[str]) -> str:
        if match["total"]:
            count = int(match["total"])
            self.sizes.append(Size(f"{count:,} tasks", count, True, False))
        return f"{match['head']} {self._fraction('all', 1.0, 0.002, '=', 'task')} tasks"

    def _fraction(self, text: str, share: float, step: float, relation: str, kind: str) -> str:
        self.values.append(Value(text.strip(), share, share, step, relation, counted=kind))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _whole(self, match: re.Match[str]) -> str:
        before, after = match.string[: match.start()], match.string[match.end() :]
        if re.search(r"\b(?:on|over|across|for|than|in|of) $", before, re.IGNORECASE):
            return match[0]
        if match[0].lower().startswith("without") and re.search(r"\d%", before):
            return match[0]
        is_task = bool(match[2] or match[4])
        if match[2] and not (
            re.search(rf"\b{PASSED} (?:\w+ )?$", before, re.IGNORECASE)
            or re.match(rf"\s*(?:was|were|are|is|get|got|been)? ?{PASSED}", after, re.IGNORECASE)
        ):
            return match[0]
        count = match[1] or match[3]
        if count:
            self.sizes.append(Size(f"{int(count):,} tasks", int(count), True, False))
        kind = "task" if is_task else "attempt"
        verb = "" if match[2] else "passes"
        return f" {verb} {self._fraction(match[0], 1.0, 0.002, '=', kind)}"

    def _never(self, match: re.Match[str]) -> str:
        count, noun = match[1] or match[3], (match[2] or match[4]).lower()
        is_task = bool(re.fullmatch(_TASK, noun))
        self.sizes.append(Size(f"{int(count):,} {noun}", int(count), is_task, not is_task))
        share = self._fraction("no failures", 1.0, 0.002, "=", "attempt")
        return f" {match['between'] or ''} passes {share}"

    def _rest_of_total(self, match: re.Match[str]) -> str:
        """A count whose total was given before: 36 of 40 cases, the other 37."""
        assert self.total is not None
        total, kind = self.total
        if not total or int(match[1]) > total:
            return match[0]
        self.continues = True
        share = int(match[1]) / total
        return self._fraction(f"{match[1]} of {total}", share, 1 / total, "=", kind)

    def _mark_sizes(self, text: str) -> str:
        words = r"(?:[A-Za-z][\w/-]* ){0,2}?"
        patterns = (
            (rf"\b[nN]\s?=\s?({_INT})\s+{_TASK}\b", "t"),
            (rf"\b[nNk]\s?=\s?({_INT})\s+(?:independent )?{_ATT}\b(?: each| per \w+)?", "a"),
            (rf"\b[nN]\s?=\s?({_INT})\b", "e"),
            (
                rf"(?<![\w.=@^⟦])(?!\d+ times\s+(?:its|that|the \w+ of|⟦))({_INT})(?![.\d%])[ "
                rf"-](?!more|fewer|other|extra)(?:[a-z-]+ )?{_ATT}\b(?!\s+(?:better|higher|as|"
                rf"more|faster|less|{_TASK}))(?P<each> each| per \w+| on each| for each)?",
                "a",
            ),
            (
                rf"(?P<bound>(?:at least|more than|over|fewer than|at most) )?"
                rf"(?<![\w.=@^⟦])({_INT})(?![.\d%])[ -](?!more|fewer|other|extra){words}{_TASK}\b"
                rf"(?:\s*(?:x|×)\s*({_INT})(?: {_ATT})?(?: each)?)?",
                "t",
            ),
            (r"\bk\s?=\s?\d+", "k"),
        )
        for pattern, kind in patterns:
            text = re.sub(pattern, partial(self._size, kind=kind), text)
        return text

    def _size(self, match: re.Match[str], kind: str) -> str:
        if kind == "k":
            k = match[0].rpartition("=")[2].strip()
            self.metrics = [
                f"{word[:-1]}{k}" if word.endswith("k") else word for word in self.metrics
            ]
            return " "
        if re.match(rf"{_INT} points?\b", match[0]):
            return match[0]
        bound = match.groupdict().get("bound") or ""
        at = 2 if "bound" in match.groupdict() else 1
        count, phrase = int(match[at]), match[0].removeprefix(bound).strip()
        before, after = match.string[: match.start()], match.string[match.end() :]
        per_task = bool(re.search(rf"\beach\b|\bper {_TASK}\b", phrase)) or "each of" in before
        per_task = per_task and not re.search(r"\btotal(?: of)?\W*$", before)
        is_certain = "=" in phrase or per_task or bool(_TOTAL_BEFORE.search(before))
        is_certain = is_certain and not _PART_AFTER.match(after)
        is_part = _SOLVED_BEFORE.search(before) or _SOLVED_AFTER.match(after)
        is_change = re.search(r"\b(?:from|to) $", before) is not None
        is_change = is_change and any(one.startswith("tasks") for one in self.metrics)
        if kind == "t" and (is_part or is_change) and not self._has_share(before, after):
            relation = BOUND_WORDS.get(bound.strip().lower(), "=")
            self.values.append(
                Value(phrase, count, count, 1.0, relation, counted="task", count=count)
            )
            return f" ⟦v{len(self.values) - 1}⟧ tasks "
        self.sizes.append(
            Size(phrase, count, kind != "a", kind != "t", per_task and kind == "a", is_certain)
        )
        if at == 2 and match[3]:
            self.sizes.append(Size(f"{match[3]} attempts", int(match[3]), False, True, True))
        return f" {bound} ⟦s{len(self.sizes) - 1}⟧ {'tasks' if kind == 't' else ''} "

    def _has_share(self, before: str, after: str) -> bool:
        """Whether the sentence gives a share of these tasks: then their number is all of them."""
        part = re.split(r"[,;]", before)[-1] + re.split(r"[,;]", after)[0]
        return bool(re.search(r"⟦v\d+⟧|\d%", part))

    def _gap(self, match: re.Match[str]) -> str:
        size = float(f"{match[2] or ''}{match[3]}")
        is_points = "point" in match[0]
        counted = "" if is_points else "attempt" if match[4] else "task"
        shown = match[0].strip() if is_points else f"{match[0].strip()} {counted}s"
        self.gaps.append((size, _step(match[3]), match[1] or "=", shown, counted))
        return f" {'+' if match[2] == '+' else ''} ⟦d{len(self.gaps) - 1}⟧ "

    def _ratio(self, match: re.Match[str]) -> str:
        after = match.string[match.end() :]
        if COMPARATIVE.match(after) or re.search(rf" as (?!{OF_RATES})\w", match[0]):
            self.unread.append(Unread(match[0].strip(), "it is a ratio of something else"))
            return " "
        word = (match["verb"] or match["adv"] or "").lower().split(" ")[0]
        relation = {"more than ": ">=", "nearly ": "~"}.get(
            (match["op"] or "=").lower(), match["op"] or "="
        )
        self.ratios.append(
            (_RATIOS[word] if word else float(match["x"]), relation, match[0].strip())
        )
        return f" ⟦c{len(self.ratios) - 1}⟧ "

    def _mark_values(self, text: str) -> str:
        if (
            self.total
            and not METRIC.search(text)
            and not any("pass" in one for one in self.metrics)
        ):
            text = re.sub(r"(?<![\w.⟦+$/@^#-])(\d+)(?![\w%⟧/-]|\.\d)", self._rest_of_total, text)
        text = re.sub(rf"(?<![\w.⟦])({_N})%?\s?(?:-|–|to)\s?({_N})%", self._range, text)
        text = re.sub(rf"(>=|<=|~)?\s?(?<![\w.⟦+-])({_N})%", self._percent, text)
        text = re.sub(
            r"(>=|<=|~)?\s?(?<![\w.⟦+$/-])((?:0?\.\d+)|1\.0+|0\.0+)(?![\w%]|\.\d)",
            self._decimal,
            text,
        )
        text = re.sub(
            r"(>=|<=|~)?\s?(?<![\w.⟦+$/@^#-])(\d{1,2}\.\d{1,2}|\d{1,2}|100(?:\.0+)?)(?![\w%⟧]|"
            r"\.\d|-\w)",
            self._bare,
            text,
        )
        for match in re.finditer(rf"(?<![\w⟦.+-])[-+]?{_N}%?(?![\w⟧])", text):
            self.unread.append(
                Unread(match[0], "what this number counts was not understood", blocks=True)
            )
        return text

    def _range(self, match: re.Match[str]) -> str:
        if re.search(r"\bfrom\s*$", match.string[: match.start()]):
            return f"{match[1]}% to {match[2]}%"
        low, high = float(match[1]) / 100, float(match[2]) / 100
        if low > high or (
            match.string[: match.start()].count("⟦r") > 1 and POLARITY.search(match.string)
        ):
            return f"{match[1]}% vs {match[2]}%"
        self.values.append(Value(match[0], low, high, _step(match[2]) / 100))
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _percent(self, match: re.Match[str]) -> str:
        share = float(match[2]) / 100
        self.values.append(
            Value(f"{match[2]}%", share, share, _step(match[2]) / 100, match[1] or "=")
        )
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _decimal(self, match: re.Match[str]) -> str:
        self.values.append(
            Value(match[2], float(match[2]), float(match[2]), _step(match[2]), match[1] or "=")
        )
        return f" ⟦v{len(self.values) - 1}⟧ "

    def _bare(self, match: re.Match[str]) -> str:
        share, step, count = float(match[2]) / 100, _step(match[2]) / 100, None
        if match[2].isdigit() and any(one.count is not None for one in self.values):
            count, share, step = int(match[2]), float(match[2]), 1.0  # 20 tasks, the other 6
        kind = "" if count is None else "task"
        self.values.append(
            Value(
                match[2], share, share, step, match[1] or "=", counted=kind, bare=True, count=count
            )
        )
        return f" ⟦v{len(self.values) - 1}⟧ "


def _step(text: str) -> float:
    return 10.0 ** -len(text.partition(".")[2])
